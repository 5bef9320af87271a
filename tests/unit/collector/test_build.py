"""From a spec to values, namespace and rights."""

from __future__ import annotations

import base64

import pytest

from moorage.helm import chart, values
from moorage.operators import access
from moorage.operators.collector import build, types


def contents(schema: dict[str, object] | None) -> chart.Contents:
    """A chart with this values schema."""
    return chart.Contents(
        metadata={"name": "collector", "version": "1.0.0"},
        values={},
        schema=schema,
        templates={},
        crds=(),
        files=(),
        reads_capabilities=False,
        uses_lookup=False,
    )


def spec(configuration: str = "") -> types.CollectorSpec:
    """A Collector of tenant Acme."""
    encoded = base64.b64encode(configuration.encode()).decode()
    return types.CollectorSpec(
        types.CollectorRef("collector", configuration=encoded), types.Tenant("Acme", "main", "t-1"), "gke-dev"
    )


TAKES_ALL = {
    "type": "object",
    "properties": {
        "tenant": {
            "type": "object",
            "properties": {key: {"type": "string"} for key in ("id", "reference", "instance")},
        },
        "cluster": {"type": "string"},
        "image": {"type": "object", "properties": {"repository": {"type": "string"}}},
    },
}


def test_a_chart_gets_what_its_schema_takes() -> None:
    given = build.chart_values(spec("replicas: 2"), contents(TAKES_ALL), "registry.example/team")

    assert {
        "tenant": {"id": "t-1", "reference": "Acme", "instance": "main"},
        "cluster": "gke-dev",
        "image": {"repository": "registry.example/team/collector"},
        "replicas": 2,
    } == given


@pytest.mark.parametrize("schema", [None, {"type": "object", "properties": {"replicas": {}}}])
def test_a_chart_whose_schema_takes_nothing_gets_the_configuration_alone(schema: dict[str, object] | None) -> None:
    assert {"replicas": 2} == build.chart_values(spec("replicas: 2"), contents(schema), "registry.example")


def test_the_configuration_has_the_last_word() -> None:
    given = build.chart_values(spec("{cluster: mine, image: {tag: x}}"), contents(TAKES_ALL), "r")

    assert "mine" == given["cluster"]
    assert {"repository": "r/collector", "tag": "x"} == given["image"]


def test_a_fault_in_the_configuration_says_where() -> None:
    with pytest.raises(values.ValuesError, match="line 2"):
        build.chart_values(spec("a: 1\n  b: 2"), contents(None), "")


@pytest.mark.parametrize(
    ("annotation", "admits"),
    [("", ()), ("default", ("default",)), (" a , b ,", ("a", "b")), (",", ())],
)
def test_admitted_namespaces(annotation: str, admits: tuple[str, ...]) -> None:
    assert admits == build.admitted(annotation)


def test_release_and_namespace_follow_from_the_spec() -> None:
    assert ("collector-main", "acme") == (spec().release, spec().namespace)


@pytest.mark.parametrize(
    ("role", "subjects", "right"),
    [
        (access.RoleRef("tenant", "ClusterRole"), (access.Subject("ServiceAccount", "m", "s"),), True),
        (access.RoleRef("admin", "ClusterRole"), (access.Subject("ServiceAccount", "m", "s"),), False),
        (access.RoleRef("tenant", "Role"), (access.Subject("ServiceAccount", "m", "s"),), False),
        (access.RoleRef("tenant", "ClusterRole"), (), False),
        (
            access.RoleRef("tenant", "ClusterRole"),
            (access.Subject("ServiceAccount", "m", "s"), access.Subject("User", "eve")),
            False,
        ),
    ],
)
def test_only_the_exact_binding_is_right(
    role: access.RoleRef, subjects: tuple[access.Subject, ...], right: bool
) -> None:
    assert right is access.binds(role, subjects, access.Rights("m", "s", "tenant", "b"))
