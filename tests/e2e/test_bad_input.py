"""What a user can get wrong in a Collector or its chart: the words they see, no harm done, and that it heals."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from . import conftest, tools, trouble

Make = conftest.Make


def test_bad_base64_is_refused_with_its_position(collector: Make, moorage: tools.Cluster) -> None:
    """Before anything is called; the corrected text heals."""
    one = collector(chart="tricky", cluster="registry", raw="c2FpZDog*Gk=")

    message = one.wait_reason("InvalidConfiguration")

    assert "spec.collector.configuration: byte 8: '*' is no base64 character; encode the YAML with base64" in message
    assert moorage.get("namespace", one.tenant) is None
    one.edit(collector={"configuration": tools.configuration({})})
    one.wait_ready()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("data:\n  said: hi\n  list: [1, 2\n", "line 4, column 1: not valid YAML"),
        ("- a\n- b\n", "line 1, column 1: values must be a mapping of names to values, not a list"),
        ("a: 1\na: 2\n", "line 2, column 1: not valid YAML"),
    ],
    ids=["cut-off", "list", "twice"],
)
def test_bad_yaml_is_refused_with_its_position(text: str, words: str, collector: Make, moorage: tools.Cluster) -> None:
    """Line and column are those of the decoded text."""
    one = collector(chart="tricky", cluster="registry", raw=tools.configuration(text))

    message = one.wait_reason("InvalidConfiguration")

    assert words in message
    assert one.condition("Stalled")["status"] == "True"
    assert moorage.get("namespace", one.tenant) is None


def test_a_bad_edit_leaves_the_running_release_alone(collector: Make) -> None:
    """What runs goes on running, and is still looked after; taking the edit back makes no revision."""
    one = collector(trouble.pod(), chart="tricky", cluster="registry")
    one.wait_ready()

    one.edit(collector={"configuration": "****"})

    assert "byte 0" in one.wait_reason("InvalidConfiguration")
    trouble.untouched(one, revisions=1)
    one.edit(collector={"configuration": tools.configuration(trouble.pod())})
    one.wait_ready()
    trouble.untouched(one, revisions=1)


def test_values_against_the_charts_schema_are_refused_in_the_schemas_words(collector: Make) -> None:
    """Before helm touches the cluster; the corrected value heals."""
    one = collector({"replicas": "many"}, chart="collector")

    message = one.wait_reason("SchemaViolation")

    assert "at '/replicas': got string, want integer" in message
    trouble.nothing_was_made(one)
    one.edit(collector={"configuration": tools.configuration({"replicas": 0})})
    one.wait_ready()


def test_a_template_that_fails_is_told_in_its_own_words(collector: Make) -> None:
    """A chart that can't be rendered with these values."""
    one = collector({"data": 5, "pod": {"args": "x", "labels": "none"}}, chart="tricky", cluster="registry")

    message = one.wait_reason("RenderFailed")

    assert "tricky" in message
    trouble.nothing_was_made(one)


def test_names_that_are_too_long_are_refused_at_admission(collector: Make, moorage: tools.Cluster) -> None:
    """The release's name is made of two fields, and Helm allows 53 characters."""
    one = collector(chart="c" * 30, instance="i" * 30, apply=False)

    message = moorage.refused(_body(one, chart="c" * 30, instance="i" * 30))

    assert (
        "the release is named collector.name-tenant.instance, and may have 53 characters: shorten one of them"
        in message
    )


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        ({"tenant": {"reference": "Another"}}, "tenant can't be changed, as it names the release and its namespace"),
        ({"tenant": {"instance": "another"}}, "tenant can't be changed"),
        ({"tenant": {"id": None}}, "tenant can't be changed"),
        ({"collector": {"name": "another"}}, "collector.name can't be changed, as it names the release"),
    ],
    ids=["reference", "instance", "id", "name"],
)
def test_what_names_the_release_is_immutable(patch: dict[str, Any], words: str, collector: Make) -> None:
    """Refused at admission, so that no release is ever left behind under an old name."""
    one = collector(chart="tricky", cluster="registry")

    with pytest.raises(tools.Failed) as refused:
        one.edit(**patch)

    assert words in str(refused.value)
    assert "create a new Collector and delete this one" in str(refused.value)


def test_a_chart_that_is_not_there_is_named_and_its_publication_heals(
    collector: Make, moorage: tools.Cluster, registry: str, tmp_path: Path
) -> None:
    """No edit and no restart: the source is asked again."""
    name = trouble.own("unpublished")  # what was pushed stays as long as the testbed
    one = collector(chart=name, cluster="registry")

    message = one.wait_reason("ChartNotFound")

    assert f"oci://{registry}/charts has no chart {name}" in message
    push(moorage, registry, tmp_path, name, "1.0.0", "there now")
    one.wait_ready()


def test_a_version_that_is_not_there_is_named(collector: Make) -> None:
    """An exact version and a range; an existing one heals."""
    one = collector(chart="tricky", cluster="registry", version="9.9.9")
    assert "tricky 9.9.9" in one.wait_reason("ChartNotFound")

    one.edit(collector={"version": "^9"})
    tools.wait("the range is named", lambda: "^9" in one.condition("Ready")["message"])
    one.edit(collector={"version": "not a version"})
    tools.wait(
        "it is told from a version", lambda: "neither a version nor a range" in one.condition("Ready")["message"]
    )

    one.edit(collector={"version": "^1"})
    assert one.wait_ready()["status"]["chart"]["version"] == "1.0.0"


def test_an_unreachable_registry_is_waited_for(collector: Make, registry: str) -> None:
    """It may come back, so this is no fault of the user: Reconciling, not Stalled."""
    one = collector(chart="tricky", cluster="unreachable")

    message = one.wait_reason("ChartUnreachable")

    assert f"tricky can't be pulled from oci://{conftest.beside(registry, 1)}/charts" in message
    assert "connection refused" in message
    assert one.condition("Stalled")["status"] == "False"
    one.edit(cluster="registry")
    one.wait_ready()


def test_content_that_changed_under_a_version_is_refused(
    collector: Make, moorage: tools.Cluster, registry: str, tmp_path: Path
) -> None:
    """What runs stays and is Ready; a change can't be carried out; a new version heals."""
    push(moorage, registry, tmp_path, "shifting", "1.0.0", "first")
    one = collector(chart="shifting", cluster="registry", version="1.0.0")
    first = one.wait_ready()["status"]["chart"]["digest"]
    push(moorage, registry, tmp_path, "shifting", "1.0.0", "second")

    trouble.restart(moorage)  # its cache of charts goes with it

    told = f"but {first} was resolved earlier; publish the changed chart under a new version"
    chart = tools.wait("ChartAvailable=False", lambda: _is_false(one.condition("ChartAvailable")))
    assert chart["reason"] == "DigestMismatch"
    assert told in chart["message"]
    one.wait_ready()  # as nothing is to be done
    one.edit(collector={"configuration": tools.configuration({"note": "to be released"})})
    message = one.wait_reason("DigestMismatch")
    assert "serves shifting 1.0.0 with digest sha256:" in message
    assert told in message
    trouble.untouched(one, revisions=1)
    assert _said(one) == "first"

    push(moorage, registry, tmp_path, "shifting", "1.0.1", "third")
    one.edit(collector={"version": "1.0.1"})
    one.wait_ready()
    assert _said(one) == "third"


@pytest.mark.parametrize(
    ("foreign", "words"),
    [
        (
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRole",
                "metadata": {"name": "e2e-reach"},
                "rules": [],
            },
            "ClusterRole e2e-reach belongs to the whole cluster, not to a namespace",
        ),
        (
            trouble.config_map("e2e-reach", namespace="default"),
            "ConfigMap e2e-reach is meant for namespace default, not for",
        ),
        (
            trouble.config_map("e2e-reach", namespace="default", annotations={"helm.sh/hook": "pre-install"}),
            "ConfigMap e2e-reach is meant for namespace default, not for",
        ),
    ],
    ids=["cluster-scoped", "another-namespace", "hook"],
)
def test_a_chart_that_reaches_outside_its_namespace_is_refused(
    foreign: dict[str, Any], words: str, collector: Make, moorage: tools.Cluster
) -> None:
    """Before helm runs, so that nothing of it is made; a chart without it heals."""
    one = collector({"objects": [foreign]}, chart="tricky", cluster="registry")

    message = one.wait_reason("ReachesOutside")

    assert words in message
    trouble.nothing_was_made(one)
    assert moorage.get(foreign["kind"], "e2e-reach", "-n", "default") is None
    one.edit(collector={"configuration": tools.configuration({})})
    one.wait_ready()


def push(cluster: tools.Cluster, registry: str, folder: Path, name: str, version: str, said: str) -> None:
    """Publish a chart with one ConfigMap that says so."""
    chart = folder / f"{name}-{version}-{said.replace(' ', '-')}"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text(yaml.safe_dump({"apiVersion": "v2", "name": name, "version": version}))
    body = trouble.config_map("{{ .Release.Name }}", {"said": said})
    (chart / "templates" / "said.yaml").write_text(yaml.safe_dump(body))
    packed = cluster.helm("package", str(chart), "-d", str(chart)).strip().rpartition(" ")[2]
    cluster.helm("push", packed, f"oci://{registry}/charts", "--plain-http")


def _is_false(condition: dict[str, Any]) -> dict[str, Any]:
    return condition if condition.get("status") == "False" else {}


def _said(one: tools.Collector) -> str:
    return str(one.cluster.get("configmap", one.release, "-n", one.tenant)["data"]["said"])


def _body(one: tools.Collector, *, chart: str, instance: str) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1alpha",
        "kind": "Collector",
        "metadata": {"name": one.name, "namespace": one.namespace},
        "spec": {
            "collector": {"name": chart, "configuration": base64.b64encode(b"{}").decode()},
            "tenant": {"reference": one.tenant, "instance": instance},
        },
    }
