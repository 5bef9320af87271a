"""Generated definitions on a real API server: accepted, enforced, and seen as in progress until looked at."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import pytest
from msgspec import Meta

from moorage.api import builtin, common_status, crd
from moorage.api.meta import Resource
from moorage.kube import client as kube_client
from moorage.kube import errors
from tests.api.faults import waiting

Client = kube_client.Client


class Storage(msgspec.Struct, rename="camel", frozen=True):
    """Where it lives."""

    size: Annotated[int | str, Meta(extra_json_schema={"pattern": "^[0-9]+[GM]i$"})] = "1Gi"
    class_name: Annotated[str, Meta(max_length=63)] | None = None

    __cel__: ClassVar = crd.immutable("className")


class Spec(msgspec.Struct, rename="camel", frozen=True):
    """What is wanted."""

    size: Annotated[int, Meta(ge=1, le=9)]
    mode: Literal["slow", "fast"] = "slow"
    storage: Storage = Storage()
    template: dict[str, Any] = {}
    labels: dict[str, str] = {}
    names: Annotated[
        list[Annotated[str, Meta(max_length=20)]],
        Meta(
            max_length=5,
            extra_json_schema={
                "x-kubernetes-validations": [
                    {"rule": "self.all(n, n.startsWith('a'))", "message": "names start with a"}
                ]
            },
        ),
    ] = []
    namespace: Annotated[str, Meta(max_length=63)] | None = None

    __cel__: ClassVar = (
        crd.Rule("self.size % 2 == 1", "size must be odd", field_path=".size"),
        *crd.immutable("namespace"),
    )


class Seen(common_status.Status, frozen=True, kw_only=True):
    members: int = 0
    selector: str = ""


@pytest.fixture
async def gauge(client: Client, namespace: str) -> AsyncIterator[Resource]:
    """A kind of the test's own, served."""
    group = f"{namespace}.moorage.dev"
    definition = crd.crd(
        group=group,
        version="v1",
        kind="Gauge",
        plural="gauges",
        short_names=("gg",),
        spec=Spec,
        status=Seen,
        columns=(crd.Column("Members", ".status.members", "integer"),),
        rules=(crd.Rule("self.metadata.name.size() <= 20", "the name is too long"),),
        scale=crd.Scale(".spec.size", ".status.members", ".status.selector"),
    )
    name = definition["metadata"]["name"]
    resource = Resource(group, "v1", "Gauge", "gauges")
    await client.create(builtin.CRD, "", definition, field_manager="test")

    async def served() -> bool:
        try:
            await client.list(resource, namespace)
        except errors.ApiError:
            return False
        return True

    await waiting.until(served)
    yield resource
    await client.delete(builtin.CRD, "", name, propagation="Background")


def body(gauge: Resource, spec: dict[str, Any], name: str = "a") -> dict[str, Any]:
    return {"apiVersion": gauge.api_version, "kind": gauge.kind, "metadata": {"name": name}, "spec": spec}


async def test_defaults_and_a_status_that_nobody_has_written(client: Client, namespace: str, gauge: Resource) -> None:
    made = await client.create(gauge, namespace, body(gauge, {"size": 3}), field_manager="test")
    assert made["spec"] == {"size": 3, "mode": "slow", "storage": {"size": "1Gi"}}
    assert made["status"] == {"observedGeneration": -1}
    assert (await client.get(gauge, namespace, "a"))["status"] == {"observedGeneration": -1}
    assert (await client.list(gauge, namespace)).items[0]["status"] == {"observedGeneration": -1}
    condition = {"type": "Ready", "status": "True", "reason": "R", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    written = await client.patch_merge(
        gauge,
        namespace,
        "a",
        {"status": {"members": 2, "conditions": [condition]}},
        subresource="status",
        field_manager="test",
    )
    assert written["status"] == {"observedGeneration": -1, "members": 2, "conditions": [condition]}


async def test_what_is_free_survives_and_what_is_unknown_goes(client: Client, namespace: str, gauge: Resource) -> None:
    spec = {"size": 1, "template": {"deep": [{"any": 1}]}, "labels": {"k": "v"}, "unknown": 1}
    made = await client.create(gauge, namespace, body(gauge, spec), field_manager="test")
    assert made["spec"]["template"] == {"deep": [{"any": 1}]}
    assert made["spec"]["labels"] == {"k": "v"}
    assert "unknown" not in made["spec"]


@pytest.mark.parametrize(
    ("spec", "name", "said"),
    [
        ({"size": 2}, "a", "spec.size.*size must be odd"),
        ({"size": 11}, "a", "less than or equal to 9"),
        ({}, "a", "spec.size: Required"),
        ({"size": 1, "mode": "other"}, "a", "spec.mode"),
        ({"size": 1, "names": ["b"]}, "a", "names start with a"),
        ({"size": 1, "names": ["a"] * 6}, "a", "at most 5"),
        ({"size": 1, "storage": {"size": "big"}}, "a", "spec.storage.size"),
        ({"size": 1}, "a" * 21, "the name is too long"),
    ],
)
async def test_rules_fire_at_admission(
    client: Client, namespace: str, gauge: Resource, spec: dict[str, Any], name: str, said: str
) -> None:
    with pytest.raises(errors.Invalid, match=said):
        await client.create(gauge, namespace, body(gauge, spec, name), field_manager="test")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"namespace": "x"}, {"namespace": "y"}),
        ({"namespace": "x"}, {"namespace": None}),
        ({}, {"namespace": "x"}),
        ({"storage": {"className": "x"}}, {"storage": {"className": None}}),
        ({"storage": {"className": "x"}}, {"storage": None}),
        ({}, {"storage": {"className": "x"}}),
    ],
)
async def test_immutable_fields(
    client: Client, namespace: str, gauge: Resource, before: dict[str, Any], after: dict[str, Any]
) -> None:
    await client.create(gauge, namespace, body(gauge, {"size": 1, **before}), field_manager="test")
    with pytest.raises(errors.Invalid, match="can't be changed after creation"):
        await client.patch_merge(gauge, namespace, "a", {"spec": after}, field_manager="test")
    changed = await client.patch_merge(gauge, namespace, "a", {"spec": {"size": 5}}, field_manager="test")
    assert changed["metadata"]["generation"] == 2


async def test_scale(client: Client, namespace: str, gauge: Resource) -> None:
    await client.create(gauge, namespace, body(gauge, {"size": 1}), field_manager="test")
    scaled = await client.patch_merge(
        gauge, namespace, "a", {"spec": {"replicas": 7}}, subresource="scale", field_manager="test"
    )
    assert scaled["spec"]["replicas"] == 7
    assert (await client.get(gauge, namespace, "a"))["spec"]["size"] == 7
