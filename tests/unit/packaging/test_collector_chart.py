"""The sample chart: names, configuration, what rolls the pods, and what its schema refuses."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest
import yaml

Values = dict[str, Any]


def configuration(objects: list[dict[str, Any]]) -> dict[str, Any]:
    (secret,) = [each for each in objects if each["kind"] == "Secret"]
    return yaml.safe_load(base64.b64decode(secret["data"]["configuration.yaml"]))


def deployment(objects: list[dict[str, Any]]) -> dict[str, Any]:
    (found,) = [each for each in objects if each["kind"] == "Deployment"]
    return found


def test_every_object_bears_the_release_name(render: Any) -> None:
    values = {part: {"enabled": True} for part in ("pdb", "networkPolicy", "serviceMonitor")}
    objects = render("collector", {**values, "serviceAccount": {"create": True}}, release="collector-main")
    assert {each["metadata"]["name"] for each in objects} == {"collector-main"}
    assert len(objects) == 7


def test_by_default_three_objects(render: Any) -> None:
    assert sorted(each["kind"] for each in render("collector")) == ["Deployment", "Secret", "Service"]


def test_optional_parts_come_one_by_one(render: Any) -> None:
    for part, kind in {"pdb": "PodDisruptionBudget", "networkPolicy": "NetworkPolicy"}.items():
        kinds = {each["kind"] for each in render("collector", {part: {"enabled": True}})}
        assert kinds == {"Deployment", "Secret", "Service", kind}


def test_user_configuration_is_merged_and_null_drops(render: Any) -> None:
    seen = configuration(
        render(
            "collector",
            {
                "config": {
                    "exporters": {"debug": None, "otlphttp": {"endpoint": "http://backend:4318"}},
                    "service": {
                        "pipelines": {"traces": None, "metrics": None, "logs": {"exporters": ["otlphttp"]}},
                    },
                }
            },
        )
    )
    assert seen["exporters"] == {"otlphttp": {"endpoint": "http://backend:4318"}}
    assert seen["service"]["pipelines"]["logs"]["exporters"] == ["otlphttp"]
    assert seen["service"]["pipelines"]["logs"]["receivers"] == ["otlp"]
    assert not {name for name, pipeline in seen["service"]["pipelines"].items() if pipeline} - {"logs"}


def test_health_and_metrics_are_there_whatever_the_user_configures(render: Any) -> None:
    service = {"extensions": ["other"], "telemetry": {"logs": {"level": "warn"}}}
    seen = configuration(render("collector", {"config": {"extensions": {"other": {}}, "service": service}}))
    assert seen["extensions"] == {"health_check": {"endpoint": ":13133"}, "other": {}}
    assert seen["service"]["extensions"] == ["other", "health_check"]
    assert seen["service"]["telemetry"]["logs"] == {"level": "warn"}
    (reader,) = seen["service"]["telemetry"]["metrics"]["readers"]
    assert reader["pull"]["exporter"]["prometheus"]["port"] == 8888


def test_large_numbers_survive(render: Any) -> None:
    seen = configuration(render("collector", {"config": {"processors": {"batch": {"send_batch_size": 10_000_000}}}}))
    assert seen["processors"]["batch"]["send_batch_size"] == 10_000_000


def test_only_what_the_pod_reads_rolls_it(render: Any) -> None:
    def template(values: Values) -> dict[str, Any]:
        return deployment(render("collector", values))["spec"]["template"]

    before = template({})
    assert template({"config": {"processors": {"batch": {"timeout": "1s"}}}}) != before
    assert template({"pdb": {"enabled": True}, "networkPolicy": {"enabled": True}, "replicas": 3}) == before
    assert "1.0.0" not in str(before), "the chart's version would roll the pods"


def test_tenant_shows_in_labels_and_environment(render: Any) -> None:
    values = {"tenant": {"id": "t-1", "reference": "Acme", "instance": "main"}, "cluster": "gke-prod"}
    made = deployment(render("collector", values))
    labels = made["metadata"]["labels"]
    assert (labels["example.com/tenant"], labels["example.com/cluster"]) == ("t-1", "gke-prod")
    env = {each["name"]: each.get("value") for each in made["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert env["METADATA_INSTANCE"] == "main"
    assert env["METADATA_TENANT"] == "t-1"
    assert env["METADATA_INFRASTRUCTURE_CLUSTER"] == "gke-prod"


@pytest.mark.parametrize(
    ("tenant", "label"),
    [("acme/eu west", "acme-eu-west"), ("-x-", "x"), ("a" * 62 + "/b", "a" * 62), ("???", None), ("", None)],
)
def test_any_tenant_id_makes_a_legal_label(render: Any, tenant: str, label: str | None) -> None:
    made = deployment(render("collector", {"tenant": {"id": tenant}}))
    assert made["metadata"]["labels"].get("example.com/tenant") == label
    env = made["spec"]["template"]["spec"]["containers"][0]["env"]
    assert {"name": "METADATA_TENANT", "value": tenant} in env


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"replica": 2}, "additional properties 'replica' not allowed"),
        ({"replicas": "2"}, "at '/replicas': got string, want integer"),
        ({"replicas": -1}, "at '/replicas'"),
        ({"image": {"repo": "x"}}, "at '/image': additional properties 'repo' not allowed"),
        ({"image": {"pullPolicy": "Sometimes"}}, "at '/image/pullPolicy'"),
        ({"image": {"tag": "a b"}}, "at '/image/tag'"),
        ({"tenant": {"name": "x"}}, "at '/tenant': additional properties 'name' not allowed"),
        ({"tenant": {"id": 7}}, "at '/tenant/id': got number, want string"),
        ({"config": {"exporter": {}}}, "at '/config': additional properties 'exporter' not allowed"),
        ({"config": {"service": {"pipelines": {"logs": {"receiver": []}}}}}, "at '/config/service/pipelines/logs'"),
        ({"config": "receivers: {}"}, "at '/config': got string, want object"),
        ({"resources": {"request": {}}}, "at '/resources': additional properties 'request' not allowed"),
        ({"resources": {"requests": {"cpu": "much"}}}, "at '/resources/requests/cpu'"),
        ({"serviceMonitor": {"interval": "often"}}, "at '/serviceMonitor/interval'"),
    ],
)
def test_schema_names_what_is_wrong(refusal: Callable[[str, Values], str], values: Values, word: str) -> None:
    assert word in refusal("collector", values)
