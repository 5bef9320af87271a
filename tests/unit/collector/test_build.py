"""From a spec to values, namespace and rights."""

from __future__ import annotations

import msgspec
import pytest

from moorage.api import meta
from moorage.helm.charts import chart_archive, values
from moorage.operators import accounts
from moorage.operators.collector import build, reasons, types
from moorage.runtime import decision, freshness


def contents(schema: dict[str, object] | None) -> chart_archive.Contents:
    """A chart with this values schema."""
    return chart_archive.Contents(
        metadata={"name": "collector", "version": "1.0.0"},
        values={},
        schema=schema,
        templates={},
        crds=(),
        files=(),
        reads_capabilities=False,
        uses_lookup=False,
    )


def spec() -> types.CollectorSpec:
    """A Collector of tenant Acme."""
    return types.CollectorSpec(types.CollectorRef("collector"), types.Tenant("Acme", "main", "t-1"), "gke-dev")


def made(configuration: str, schema: dict[str, object] | None, repository: str) -> values.Given:
    """What a chart with that schema is given."""
    given = values.Given(values.canonical(values.parse(configuration)))
    return build.chart_values(spec(), given, repository, contents(schema))


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
    given = made("replicas: 2", TAKES_ALL, "registry.example/team")

    assert {
        "tenant": {"id": "t-1", "reference": "Acme", "instance": "main"},
        "cluster": "gke-dev",
        "image": {"repository": "registry.example/team/collector"},
        "replicas": 2,
    } == dict(given)


@pytest.mark.parametrize("schema", [None, {"type": "object", "properties": {"replicas": {}}}])
def test_a_chart_whose_schema_takes_nothing_gets_the_configuration_alone(schema: dict[str, object] | None) -> None:
    assert {"replicas": 2} == dict(made("replicas: 2", schema, "registry.example"))


def test_the_configuration_has_the_last_word() -> None:
    given = made("{cluster: mine, image: {tag: x}}", TAKES_ALL, "r")

    assert "mine" == given["cluster"]
    assert {"repository": "r/collector", "tag": "x"} == given["image"]


@pytest.mark.parametrize("text", ["tenant: 5", "tenant: {id: {a: 1}, x: 2}", "{image: null}", "b: 1\na: 2", ""])
def test_values_are_laid_over_others_as_whole_mappings_are(text: str) -> None:
    known = {"tenant": {"id": "t-1", "reference": "Acme", "instance": "main"}, "cluster": "gke-dev"}
    known["image"] = {"repository": "r/collector"}
    given = values.parse(text)

    assert values.canonical(values.merge(known, given)) == made(text, TAKES_ALL, "r").text


@pytest.mark.parametrize(
    ("annotation", "admits"),
    [("", ()), ("default", ("default",)), (" a , b ,", ("a", "b")), (",", ())],
)
def test_admitted_namespaces(annotation: str, admits: tuple[str, ...]) -> None:
    assert admits == build.admitted(annotation)


def test_release_and_namespace_follow_from_the_spec() -> None:
    assert ("collector-main", "acme") == (spec().release, spec().namespace)


RIGHTS = accounts.Rights("s", "moorage-system", "a", "tenant")
MINE = accounts.Subject("ServiceAccount", "s.acme", "a")


@pytest.mark.parametrize(
    ("role", "subjects", "right"),
    [
        (accounts.RoleRef("tenant", "ClusterRole"), (MINE,), (True, True)),
        (accounts.RoleRef("admin", "ClusterRole"), (MINE,), (False, True)),
        (accounts.RoleRef("tenant", "Role"), (MINE,), (False, True)),
        (accounts.RoleRef("tenant", "ClusterRole"), (), (True, False)),
        (accounts.RoleRef("tenant", "ClusterRole"), (MINE, accounts.Subject("User", "eve")), (True, False)),
        (
            accounts.RoleRef("tenant", "ClusterRole"),
            (accounts.Subject("ServiceAccount", "s.other", "a"),),
            (True, False),
        ),
        (
            accounts.RoleRef("tenant", "ClusterRole"),
            (accounts.Subject("ServiceAccount", "s.acme", "acme"),),
            (True, False),
        ),
    ],
)
def test_only_the_exact_binding_is_right(
    role: accounts.RoleRef, subjects: tuple[accounts.Subject, ...], right: tuple[bool, bool]
) -> None:
    """To the one role, and for the account of that very namespace, in the namespace that nobody else has."""
    found = accounts.RoleBinding(meta.ObjectMeta(name="moorage-s", namespace="acme"), role, subjects)
    seen = accounts.look(found, RIGHTS)

    assert seen is not None
    assert right == (seen.role, seen.subject)
    assert all(right) is seen.right


def test_a_binding_to_another_role_is_made_anew() -> None:
    """A roleRef can't be changed; one for somebody else is written over."""

    def acts(found: accounts.BindingSeen) -> list[str]:
        verdict = accounts.is_bound(freshness.Fresh(found), "acme", RIGHTS, reasons.Reason.BINDING, "why")
        assert isinstance(verdict, decision.Act)
        assert all(action.as_operator for action in verdict.actions)
        return [type(action).__name__ for action in verdict.actions]

    assert ["Delete", "Apply"] == acts(accounts.BindingSeen("u", "1", role=False, subject=True))
    assert ["Patch", "Delete", "Apply"] == acts(accounts.BindingSeen("u", "1", role=False, subject=True, held=0))
    assert ["Apply"] == acts(accounts.BindingSeen("u", "1", role=True, subject=False))


HELD = msgspec.structs.replace(RIGHTS, finalizer="s.example/rights")


@pytest.mark.parametrize(
    ("finalizers", "ops"),
    [
        (("s.example/rights",), "/metadata/finalizers/0"),
        (("other", "s.example/rights"), "/metadata/finalizers/1"),
        (("other",), ""),
        ((), ""),
    ],
)
def test_rights_that_a_finalizer_holds_are_let_go_and_nobody_elses_is(finalizers: tuple[str, ...], ops: str) -> None:
    """Right before the binding goes; where the finalizer is not there any more the binding alone goes."""
    found = accounts.RoleBinding(meta.ObjectMeta(name="moorage-s", namespace="acme", finalizers=finalizers))
    seen, guard = accounts.look(found, HELD), decision.Guard("others_stay")
    assert seen is not None
    *first, last = accounts.give_back(seen, "acme", HELD, "why", (guard,))

    assert isinstance(last, decision.Delete)
    assert (guard,) == (first[0] if first else last).require
    assert [op["path"] for it in first if isinstance(it, decision.Patch) for op in it.ops] == [ops, ops] * len(first)
    assert all(it.as_operator for it in (*first, last))
    assert bool(ops) == bool(first)


def test_of_rights_without_a_finalizer_the_binding_alone_goes() -> None:
    found = accounts.RoleBinding(meta.ObjectMeta(name="moorage-s", namespace="acme", finalizers=("other",)))
    seen = accounts.look(found, RIGHTS)
    assert seen is not None

    assert ["Delete"] == [type(it).__name__ for it in accounts.give_back(seen, "acme", RIGHTS, "why")]


@pytest.mark.parametrize("name", ["kube-system", "moorage-system", "moorage-accounts"])
def test_places_that_are_no_tenants(name: str) -> None:
    assert accounts.Rights("s", "moorage-system", "moorage-accounts", "tenant").is_moorages_own(name)
