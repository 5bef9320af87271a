"""Weka in moorage's chart: off by default, its rights no wider than is said, and examples that the operator reads."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from moorage.operators import weka
from moorage.operators.weka import config as settings
from moorage.operators.weka import dialect, names, place
from moorage.operators.weka.cluster import types

ROOT = Path(__file__).resolve().parents[3]
VALUES = ROOT / "examples/weka/testbed.yaml"
EXAMPLES = sorted({*(ROOT / "examples/weka").glob("*.yaml")} - {VALUES})
OTHERS_OFF = {"collector": {"enabled": False}, "xsld": {"enabled": False}}
Objects = list[dict[str, Any]]


def only(**section: Any) -> dict[str, Any]:
    """Weka alone is on."""
    return {"systems": {**OTHERS_OFF, "weka": {"enabled": True, **section}}}


@pytest.fixture
def rendered(render: Any) -> Objects:
    found: Objects = render("moorage", only(images=["registry.example/"]), release="moorage")
    return found


def named(objects: Objects, kind: str, name: str) -> dict[str, Any]:
    return next(it for it in objects if (it["kind"], it["metadata"]["name"]) == (kind, name))


def rights(role: dict[str, Any]) -> set[tuple[str, str]]:
    return {(resource, verb) for rule in role["rules"] for resource in rule["resources"] for verb in rule["verbs"]}


def test_it_is_off_by_default_and_leaves_no_trace(render: Any) -> None:
    assert "weka" not in yaml.safe_dump(render("moorage"))


def test_everywhere_it_may_read_and_take_the_first_step(rendered: Objects) -> None:
    """No pods, no exec, no Secrets; of a node annotations alone, by admission."""
    all_ = ("wekaclusters", "wekacontainers", "wekamanualoperations", "wekaclients", "wekapolicies")
    kinds = {(it, verb) for it in all_ for verb in ("get", "list", "watch", "patch")}

    assert rights(named(rendered, "ClusterRole", "moorage-weka")) == kinds | {
        *((f"{it}/status", verb) for it in all_ for verb in ("get", "patch")),
        ("wekamanualoperations", "delete"),
        ("nodes", "patch"),
        *((it, verb) for it in ("namespaces", "nodes") for verb in ("get", "list", "watch")),
        *(("rolebindings", verb) for verb in ("get", "list", "watch", "create", "patch", "delete")),
        ("clusterroles", "bind"),
        *(("events", verb) for verb in ("create", "patch")),
        ("leases", "get"),
    }


def test_in_an_opened_namespace_it_may_what_a_cluster_is_made_of(rendered: Objects) -> None:
    read = ("get", "list", "watch")

    assert rights(named(rendered, "ClusterRole", "moorage-weka-namespace")) == {
        *(("wekacontainers", verb) for verb in ("get", "create", "patch", "delete")),
        *(("pods", verb) for verb in (*read, "create", "delete")),
        *(("pods/exec", verb) for verb in ("get", "create")),
        *(("configmaps", verb) for verb in (*read, "create", "patch", "delete")),
        *(("secrets", verb) for verb in (*read, "create")),
    }


def test_nobody_gets_to_write_these_kinds_by_the_role_edit(rendered: Objects) -> None:
    """Whoever writes them is root on nodes."""
    prefix = "rbac.authorization.k8s.io/aggregate-to-"
    given = {
        it["metadata"]["name"]: {verb for _, verb in rights(it)}
        for it in rendered
        if it["kind"] == "ClusterRole" and any(label.startswith(prefix) for label in it["metadata"]["labels"])
    }

    assert {"moorage-weka-view": {"get", "list", "watch"}} == given


def test_admission_holds_it_to_opened_namespaces_and_listed_images(render: Any, rendered: Objects) -> None:
    binding = named(rendered, "ValidatingAdmissionPolicy", "moorage-weka-bindings")["spec"]["validations"]
    pods = named(rendered, "ValidatingAdmissionPolicy", "moorage-weka-pods")["spec"]

    assert any(f"['{names.OPENED}'] == 'privileged'" in it["expression"] for it in binding)
    assert "Fail" == pods["failurePolicy"]
    assert "system:serviceaccount:moorage-accounts:weka." in pods["matchConditions"][0]["expression"]
    assert any('["registry.example/"].exists(listed' in it["expression"] for it in pods["validations"])
    objects = render("moorage", only(namespaces=["storage"]), release="moorage")
    listed = named(objects, "ValidatingAdmissionPolicy", "moorage-weka-bindings")["spec"]["validations"]
    assert any('request.namespace in ["storage"]' in it["expression"] for it in listed)


def test_helm_asks_before_it_removes_anything(rendered: Objects, render: Any) -> None:
    """A job with moorage's own image and account, whose words helm shows; without Weka there is none."""
    job = named(rendered, "Job", "moorage-before-uninstall")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    operator = named(rendered, "Deployment", "moorage")["spec"]["template"]["spec"]

    assert "pre-delete" == job["metadata"]["annotations"]["helm.sh/hook"]
    assert "hook-failed" == job["metadata"]["annotations"]["helm.sh/hook-output-log-policy"]
    assert ["leftovers", "weka"] == container["args"]
    assert operator["containers"][0]["image"] == container["image"]
    assert operator["serviceAccountName"] == job["spec"]["template"]["spec"]["serviceAccountName"]
    assert [] == [it for it in render("moorage") if it["kind"] == "Job"]


def test_the_chart_takes_every_word_of_the_dialect(render: Any) -> None:
    """And no other: its schema is the table of the code."""
    whole = msgspec.to_builtins(dialect.Dialect())
    (config,) = [
        yaml.safe_load(it["data"]["config.yaml"])
        for it in render("moorage", only(dialect=whole), release="moorage")
        if it["kind"] == "ConfigMap"
    ]

    assert dialect.Dialect() == msgspec.convert(config["systems"]["weka"]["dialect"], dialect.Dialect)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_what_the_operator_reads(path: Path) -> None:
    """No field of them is unknown, and none is one that nothing follows from."""
    (obj,) = yaml.safe_load_all(path.read_text())
    definitions: Any = {it["spec"]["names"]["kind"]: it for it in weka.SYSTEM.definitions()}  # type: ignore[index]
    known = definitions[obj["kind"]]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]

    assert f"{names.GROUP}/{names.VERSION}" == obj["apiVersion"]
    assert [] == list(unknown(obj["spec"], known))
    if obj["kind"] == names.CLUSTER.kind:
        spec = msgspec.convert(obj["spec"], types.WekaClusterSpec)
        assert () == types.unheeded(spec)
        assert types.template(spec).containers["drive"] >= types.weakest_stripe(spec)


def unknown(value: Any, schema: dict[str, Any], path: str = "spec") -> Any:
    """Paths that the schema does not have."""
    properties = schema.get("properties")
    if not isinstance(value, dict) or properties is None:
        return
    for name, it in value.items():
        if name not in properties:
            yield f"{path}.{name}"
        else:
            yield from unknown(it, properties[name], f"{path}.{name}")


def test_the_values_for_a_testbed_are_those_of_the_stand_in(render: Any) -> None:
    """The images that are built are those that are listed, and the chart takes all that differs."""
    given = yaml.safe_load(VALUES.read_text())
    (config,) = [
        yaml.safe_load(it["data"]["config.yaml"]) for it in render("moorage", given) if it["kind"] == "ConfigMap"
    ]
    taken = msgspec.convert(config["systems"]["weka"], settings.Config)
    name = tomllib.loads((ROOT / "images/weka/image.toml").read_text())["name"]

    assert place.image_may_run(name, taken.images)
    assert ("", "weka-agent") == (taken.dialect.sizes.huge_pages, taken.dialect.commands.agent)
