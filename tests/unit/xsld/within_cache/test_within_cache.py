"""Which cache a grid or template means, and who else means the same, as observed from an API server."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec
import pytest

from moorage.api import meta
from moorage.kube import client as kube_client
from moorage.kube.informers import informer
from moorage.operators.xsld import config, group_access, names
from moorage.operators.xsld.cache import kind as cache_kind
from moorage.operators.xsld.cache import types as cache_types
from moorage.operators.xsld.grid import control as grid_control
from moorage.operators.xsld.grid import kind as grid_kind
from moorage.operators.xsld.grid import types as grid_types
from moorage.operators.xsld.group import dialect
from moorage.operators.xsld.template import control as template_control
from moorage.operators.xsld.template import kind as template_kind
from moorage.operators.xsld.within_cache import common_kind
from moorage.runtime import decision, freshness, gate
from moorage.runtime import kind as runtime_kind
from tests.unit.runtime import fake_api
from tests.unit.xsld import states

SETTINGS = config.Config("moorage-accounts", "moorage-xsld-tenant")
CACHE = {"spec": {"license": "accept", "size": 1, "adminPwd": "Abcdefg1-x", "secretKey": "Abcdefg1-x"}}
INLINE = {"source": {"inline": {"objectGridXml": "<a/>", "deploymentXml": "<b/>"}}}
D = {"cacheRef": {"name": "d"}}


class Of(msgspec.Struct, frozen=True):
    """A kind, its object as small as it may be, and the status of one that is in cache c."""

    kind: type[Any]
    steps: Sequence[Any]
    deletion_steps: Sequence[Any]
    spec: dict[str, Any]
    in_c: dict[str, Any]
    name: str  # of the field with the name on the server
    operation: tuple[str, dict[str, Any]]  # by which its cache is asked for something


GRIDS = Of(
    grid_kind.GridKind,
    grid_control.STEPS,
    grid_control.DELETION_STEPS,
    {},
    {"made": True, "cache": "c"},
    "gridName",
    ("ask", {"what": grid_control.CREATE}),
)
TEMPLATES = Of(
    template_kind.TemplateKind,
    template_control.STEPS,
    template_control.DELETION_STEPS,
    INLINE,
    {"asked": True, "hash": "h", "cache": "c"},
    "templateName",
    ("remove", {}),
)
each_kind = pytest.mark.parametrize("of", [GRIDS, TEMPLATES], ids=["grids", "templates"])


class Place:
    """A namespace with caches and objects of one kind, and the kind that looks at them."""

    def __init__(self, of: Of, settings: config.Config = SETTINGS) -> None:
        self.settings = settings
        self.of, self.api, self.woken = of, fake_api.FakeApi(), list[Any]()
        self.kind: common_kind.DependentKind[Any, Any]

    async def caches(self, *found: str) -> None:
        for name in found:
            await self.api.put("xsldcaches", name, CACHE)

    async def put(self, name: str, *, age: int = 0, deleting: bool = False, **content: Any) -> None:
        """An object of the kind; its fields are those of the spec, but for `status`."""
        status = content.pop("status", {})
        metadata = {
            "creationTimestamp": f"2026-01-01T00:00:{30 - age:02}Z",
            "finalizers": [self.of.kind.finalizer],
            **({"deletionTimestamp": "2026-01-02T00:00:00Z"} if deleting else {}),
        }
        content = {"metadata": metadata, "spec": {**self.of.spec, **content}, "status": status}
        await self.api.put(self.of.kind.resource.plural, name, content)

    @contextlib.asynccontextmanager
    async def started(self) -> AsyncIterator[None]:
        client = kube_client.Client(self.api)
        informers = informer.Informers(client)
        world = runtime_kind.World(client, informers, gate.Gate(), lambda key, **_: self.woken.append(key))
        first = cache_kind.CacheKind(self.settings, "moorage-system")
        first.informers = [informers.watch(names.CACHE, cache_types.XsldCache)]
        self.kind = self.of.kind(self.settings, first)
        self.kind.informers = [informers.watch(self.of.kind.resource, self.of.kind.model)]
        await first.start(world)
        await self.kind.start(world)
        try:
            for cache in informers.all():
                await cache.wait_synced(30)
            yield
        finally:
            await self.kind.stop()
            await first.stop()
            await informers.stop()

    async def seen(self, name: str = "x") -> Any:
        """What is observed of it, its documents read."""
        obj = self.kind.find("ns", name)
        assert obj is not None
        documents = lambda: getattr(self.kind.observe(obj, states.NOW), "documents", None)  # noqa: E731
        await fake_api.until(lambda: not isinstance(documents(), freshness.Failed))
        return self.kind.observe(obj, states.NOW)

    async def stands(self, name: str = "x", *, leaving: bool = False) -> tuple[str, str]:
        """The step where it stands, and the reason."""
        made = decision.decide(await self.seen(name), steps=self.of.deletion_steps if leaving else self.of.steps)
        assert made.standing is not None
        return made.standing.name, str(getattr(made.standing.verdict, "reason", ""))


# --- which cache

AVAILABLE = ("cache_is_available", "CacheNotAvailable")
MEANT: dict[str, tuple[tuple[str, ...], dict[str, Any], bool, tuple[str, str]]] = {
    # id: (caches, spec, whether it was made in c, where it stands)
    "the only cache": (("c",), {}, True, AVAILABLE),
    "several": (("c", "d"), {}, True, ("cache_is_clear", "AmbiguousCache")),
    "the one in which it was made is named": (("c", "d"), {"cacheRef": {"name": "c"}}, True, AVAILABLE),
    "another one is named": (("c", "d"), D, True, ("cache_is_clear", "MadeElsewhere")),
    "another one is named, which is not there": (("c",), D, True, ("cache_is_clear", "MadeElsewhere")),
    "another one is named, before it was made": (("c", "d"), D, False, AVAILABLE),
    "its cache is gone, and another one is named": (("d",), D, True, AVAILABLE),
}


@each_kind
@pytest.mark.parametrize(("caches", "spec", "made", "where"), MEANT.values(), ids=MEANT)
async def test_which_cache_is_meant(
    of: Of, caches: tuple[str, ...], spec: dict[str, Any], made: bool, where: tuple[str, str]
) -> None:
    place = Place(of)
    await place.caches(*caches)
    await place.put("x", **spec, status=of.in_c if made else {"cache": "c"})
    async with place.started():
        assert where == await place.stands()


@each_kind
async def test_what_was_made_elsewhere_touches_no_group(of: Of) -> None:
    """Nor does its status forget where it is."""
    place = Place(of)
    await place.caches("c", "d")
    await place.put("x", **D, status=of.in_c)
    async with place.started():
        obj = place.kind.find("ns", "x")
        seen = await place.seen()

        assert "" == place.kind.lane(obj)
        assert names.placement("ns") == place.kind.placement(obj), "one shard, whichever cache it will be"
        assert isinstance(seen.polled, freshness.Failed)
        assert "cache" not in place.kind.report(seen, None)


@each_kind
async def test_it_is_deleted_where_it_was_made(of: Of) -> None:
    place = Place(of)
    await place.caches("c", "d")
    await place.put("x", deleting=True, **D, status=of.in_c)
    async with place.started():
        assert "c" == (await place.seen()).cache.name
        assert names.lane("ns", "c") == place.kind.lane(place.kind.find("ns", "x"))
        assert AVAILABLE == await place.stands(leaving=True)


@each_kind
async def test_it_is_deleted_where_it_was_made_though_there_are_several_caches_now(of: Of) -> None:
    place = Place(of)
    await place.caches("c", "d")
    await place.put("x", deleting=True, status=of.in_c)
    async with place.started():
        assert AVAILABLE == await place.stands(leaving=True)


@each_kind
async def test_with_the_cache_that_it_was_made_in_it_is_gone(of: Of) -> None:
    place = Place(of)
    await place.caches("d")
    await place.put("x", deleting=True, **D, status=of.in_c)
    async with place.started():
        assert ("cache_holds_it", "Leaving") == await place.stands(leaving=True)


@each_kind
@pytest.mark.parametrize(("written", "asked"), [("", "c-0"), ("c-2", "c-2"), ("d-1", "c-0"), ("other", "c-0")])
async def test_nobody_is_asked_but_a_pod_of_its_cache(
    of: Of, written: str, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever the cache's status names as the primary, and before it names one."""
    place, told = Place(of), list[str]()

    async def sent(_self: Any, _place: Any, pod: str, *_: Any) -> Any:
        told.append(pod)
        raise LookupError("nobody is there")

    monkeypatch.setattr(group_access.Groups, "ask", sent)
    await place.api.put("xsldcaches", "c", {**CACHE, "status": {"primary": written}})
    await place.put("x")
    async with place.started():
        obj = place.kind.find("ns", "x")
        operation = of.operation[0]
        await place.kind.operations[operation](obj, of.operation[1])

    assert [asked] == told


# --- who else means the same

TAKEN = ("name_is_free", "NameTaken")
C = {"cacheRef": {"name": "c"}}
OTHERS: dict[str, tuple[tuple[str, ...], dict[str, Any], dict[str, Any], tuple[str, str]]] = {
    # id: (caches, what there is of x, what there is of w, where x stands)
    "an older one": (("c",), {}, {"age": 9}, TAKEN),
    "a younger one": (("c",), {"age": 9}, {}, AVAILABLE),
    "of the same age, first by name": (("c",), {}, {}, TAKEN),
    "an older one that is being deleted": (("c",), {}, {"age": 9, "deleting": True}, TAKEN),
    "an older one of another name": (("c",), {}, {"age": 9, "name": "other"}, AVAILABLE),
    "an older one in another cache": (("c", "d"), C, {"age": 9, **D}, AVAILABLE),
    "both name the cache": (("c", "d"), C, {"age": 9, **C}, TAKEN),
    "an older one whose cache is not clear": (("c", "d"), C, {"age": 9}, AVAILABLE),
    "an older one whose cache is not clear any more": (("c", "d"), C, {"age": 9, "made": True}, TAKEN),
    "an older one that was made in this cache, and names another": (
        ("c", "d"),
        C,
        {"age": 9, "made": True, **D},
        TAKEN,
    ),
    "an older one that names this cache, and was made in another": (
        ("c", "d"),
        D,
        {"age": 9, "made": True, **D},
        AVAILABLE,
    ),
    "an older one of a cache that is gone": (("c",), C, {"age": 9, **D}, AVAILABLE),
}


async def put(place: Place, name: str, content: dict[str, Any]) -> None:
    """One that means the name `g` on the server."""
    content = dict(content)
    called = {place.of.name: content.pop("name", "g")}
    status = place.of.in_c if content.pop("made", False) else {}
    await place.put(name, **called, **content, status=status)


@each_kind
@pytest.mark.parametrize(("caches", "own", "other", "where"), OTHERS.values(), ids=OTHERS)
async def test_of_two_that_mean_the_same_the_older_has_it(
    of: Of, caches: tuple[str, ...], own: dict[str, Any], other: dict[str, Any], where: tuple[str, str]
) -> None:
    place = Place(of)
    await place.caches(*caches)
    await put(place, "x", own)
    await put(place, "w", other)
    async with place.started():
        assert where == await place.stands("x")


@each_kind
async def test_the_younger_goes_and_leaves_what_is_the_older_s(of: Of) -> None:
    place = Place(of)
    await place.caches("c")
    await put(place, "w", {"age": 9, "made": True})
    await put(place, "x", {"made": True, "deleting": True})
    async with place.started():
        assert ("cache_holds_it", "Leaving") == await place.stands("x", leaving=True)
        assert AVAILABLE == await place.stands("w", leaving=True)


@each_kind
async def test_nothing_is_asked_for_the_younger_that_was_decided_before_the_older_was_seen(of: Of) -> None:
    place = Place(of)
    await place.caches("c")
    await put(place, "w", {"age": 9})
    await put(place, "x", {"made": True})
    async with place.started():
        obj = place.kind.find("ns", "x")
        for operation in place.kind.operations.values():
            outcome = await operation(obj, {"what": "Delete", "digest": "h"})

            assert decision.Conflict("w means the same, and is older") == outcome


@each_kind
async def test_the_younger_is_told_when_the_older_goes(of: Of) -> None:
    place = Place(of)
    await place.caches("c")
    await put(place, "w", {"age": 9})
    await put(place, "x", {})
    await put(place, "y", {"name": "other"})
    async with place.started():
        kind = of.kind.resource.kind
        place.woken.clear()
        await place.api.put(of.kind.resource.plural, "w", {"status": {"cache": "c"}})
        await place.api.drop(of.kind.resource.plural, "w")
        await fake_api.until(lambda: bool(place.woken))

        assert {(kind, "ns", "x")} == {key for key in place.woken if key[0] == kind}
        assert AVAILABLE == await place.stands("x")


def test_others_in_other_namespaces_mean_others() -> None:
    first, second = (grid_types.DataGrid(meta.ObjectMeta(name="g", namespace=place)) for place in ("a", "b"))

    assert not common_kind.rivals(first, second)
    assert not common_kind.rivals(first, first)


# --- the upload


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            dialect.TemplateFields(),
            ("PUT", {"description": "d", "objectGridXml": "<a/>", "deploymentXml": "<b/>"}),
        ),
        (
            dialect.TemplateFields(method="POST", description="note", object_grid="grid", deployment="policy"),
            ("POST", {"note": "d", "grid": "<a/>", "policy": "<b/>"}),
        ),
    ],
    ids=["as guessed", "otherwise"],
)
async def test_a_template_is_uploaded_as_the_dialect_says(
    monkeypatch: pytest.MonkeyPatch, said: dialect.TemplateFields, expected: tuple[str, dict[str, str]]
) -> None:
    asked = []

    async def ask(_: Any, __: Any, ___: str, method: str, path: str, body: Any = None) -> None:
        asked.append((method, path, body))

    monkeypatch.setattr(group_access.Groups, "ask", ask)
    place = Place(TEMPLATES, msgspec.structs.replace(SETTINGS, dialect=dialect.Dialect(template=said)))
    await place.caches("c")
    await put(place, "x", {"description": "d"})
    async with place.started():
        outcome = await place.kind.operations["upload"](place.kind.find("ns", "x"), {"digest": "h"})

    assert decision.Ok({"hash": "h", "refused": "", "refusedHash": ""}) == outcome
    assert [(expected[0], "/gridTemplate/g", expected[1])] == asked


# --- documents


async def test_documents_of_another_spec_are_not_this_one_s() -> None:
    """Until they are read nothing is said of them, so that nobody takes the new spec for uploaded."""
    place = Place(TEMPLATES)
    await place.caches("c")
    await place.put("x", status=TEMPLATES.in_c)
    async with place.started():
        before = freshness.value_of((await place.seen()).documents)
        inline = {"objectGridXml": "<new/>", "deploymentXml": "<b/>"}
        await place.api.put("gridtemplates", "x", {"spec": {"source": {"inline": inline}}})
        await fake_api.until(lambda: place.kind.find("ns", "x").spec.source.inline.object_grid_xml == "<new/>")
        first = place.kind.observe(place.kind.find("ns", "x"), states.NOW)

        assert isinstance(first.documents, freshness.Failed)
        after = freshness.value_of((await place.seen()).documents)
        assert before != after
        await place.api.mark_deleted("gridtemplates", "x")
        await fake_api.until(lambda: place.kind.find("ns", "x").metadata.deleting)
        assert after == freshness.value_of(place.kind.observe(place.kind.find("ns", "x"), states.NOW).documents)
