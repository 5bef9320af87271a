"""Other installations: whose an object is, and when another is gone for good."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from moorage.kube import client as kube_client
from moorage.runtime import decision
from moorage.runtime.decision import DONE, Act, Verdict
from moorage.runtime.leading import installations
from tests.unit.runtime import gadgets
from tests.unit.runtime.fake_api import Asked, FakeApi, Refusal, until
from tests.unit.runtime.gadgets import FINALIZER, GadgetKind, Seen

MINE, THEIRS = "ns/moorage", "there/moorage"


def held(seen: Seen) -> Verdict:
    if FINALIZER in seen.gadget.metadata.finalizers:
        return DONE
    return Act("Holding", "held", (decision.EditFinalizer(why="w", present=True),))


class Placed(GadgetKind):
    """Gadgets share what their lane names."""

    def placement(self, obj: gadgets.Gadget) -> str:
        return obj.spec.lane


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def bench(api: FakeApi, clock: Clock) -> AsyncIterator[gadgets.Bench]:
    async with gadgets.bench(api, Placed((held,))) as made:
        made.world.others = installations.Installations(made.client, MINE, made.keys.add, clock=clock)
        yield made
        await made.world.others.stop()


async def theirs(api: FakeApi, clock: Clock, **spec: Any) -> None:
    """The other installation's Lease, renewed just now unless told otherwise."""
    whole = {"holderIdentity": "p", "leaseDurationSeconds": 15, "renewTime": f"at {clock.now}", **spec}
    await api.put("leases", "moorage", {"spec": whole}, namespace="there")


async def look(bench: gadgets.Bench) -> None:
    """The next look at all Leases."""
    for operator in tuple(bench.world.others._leases._entries):
        looks = sum(r.at.plural == "leases" for r in bench.api.requests)
        bench.world.others._leases.refresh(operator)
        with contextlib.suppress(TimeoutError):
            await until(
                lambda looks=looks: sum(r.at.plural == "leases" for r in bench.api.requests) > looks,  # type: ignore[misc]
                within=0.2,
            )
    await until(lambda: all(e.fetch is None or e.fetch.done() for e in bench.world.others._leases._entries.values()))
    await bench.turn()


def mark(api: FakeApi, name: str = "one") -> str:
    return str(api.one("gadgets", name)["metadata"].get("annotations", {}).get(installations.OPERATOR, ""))


@pytest.mark.parametrize("annotations", [None, {"a": "b"}])
async def test_who_sets_the_finalizer_writes_its_name_beside_it(
    api: FakeApi, bench: gadgets.Bench, annotations: dict[str, str] | None
) -> None:
    """In one write, so that of two one is first."""
    await api.put("gadgets", "one", {"metadata": {"annotations": annotations}} if annotations else {})
    await until(lambda: len(bench.keys))
    await bench.turn()

    assert MINE == mark(api)
    assert {**(annotations or {}), installations.OPERATOR: MINE} == api.one("gadgets", "one")["metadata"]["annotations"]
    assert ["finalizers" in str(w.body) for w in api.writes()] == [True, False], "and then the status"


@pytest.mark.parametrize("annotations", [{}, {"metadata": {"annotations": {"a": "b"}}}])
async def test_what_has_lost_its_name_is_claimed(
    api: FakeApi, bench: gadgets.Bench, annotations: dict[str, Any]
) -> None:
    """As when somebody has given it free, or an earlier version has set the finalizer."""
    await api.put("gadgets", "one", {"metadata": {"finalizers": [FINALIZER], **annotations.get("metadata", {})}})
    await until(lambda: len(bench.keys))
    await bench.turn()

    assert MINE == mark(api)
    assert ("True", "Ready") == bench.conditions["Ready"]
    assert 2 == len(api.writes())


async def test_what_bears_the_name_of_one_that_works_is_left_alone_and_said_once(
    api: FakeApi, bench: gadgets.Bench, clock: Clock
) -> None:
    await theirs(api, clock)
    await api.put("gadgets", "one", {"metadata": {"annotations": {installations.OPERATOR: THEIRS}}})
    await until(lambda: len(bench.keys))
    for n in range(5):
        clock.now += installations.LOOK_EVERY
        await theirs(api, clock)
        await look(bench)
        await api.put("gadgets", "one", {"spec": {"size": n}})
        await until(lambda: len(bench.keys))
        await bench.turn()

    assert [] == api.writes()
    (note,) = bench.notes
    assert ("OtherOperator", True) == (note.reason, note.warning)
    assert THEIRS in note.message
    assert 1 == len(bench.world.others)


@pytest.mark.parametrize("gone", ["stopped renewing", "gave its lease back", "was removed"])
async def test_one_that_is_gone_for_good_is_followed(
    api: FakeApi, bench: gadgets.Bench, clock: Clock, gone: str
) -> None:
    """Not before: a restart or an update takes a while."""
    await theirs(api, clock)
    await api.put("gadgets", "one", {"metadata": {"annotations": {installations.OPERATOR: THEIRS}}})
    await until(lambda: len(bench.keys))
    await bench.turn()
    await look(bench)
    if gone == "gave its lease back":
        await theirs(api, clock, holderIdentity="")
    elif gone == "was removed":
        await api.drop("leases", "moorage", namespace="there")
    begun = clock.now
    while mark(api) == THEIRS:
        clock.now += installations.LOOK_EVERY
        await look(bench)
        assert clock.now - begun < 300

    assert installations.AWAY <= clock.now - begun <= installations.AWAY + 2 * installations.LOOK_EVERY
    assert MINE == mark(api)
    assert FINALIZER in api.one("gadgets", "one")["metadata"]["finalizers"]
    assert 0 == len(bench.world.others)
    assert {} == bench.world.others._seen


async def test_one_that_was_away_for_a_while_keeps_what_it_has(
    api: FakeApi, bench: gadgets.Bench, clock: Clock
) -> None:
    await theirs(api, clock, holderIdentity="")
    await api.put("gadgets", "one", {"metadata": {"annotations": {installations.OPERATOR: THEIRS}}})
    await until(lambda: len(bench.keys))
    await bench.turn()
    for n in range(20):
        clock.now += installations.LOOK_EVERY
        await theirs(api, clock, holderIdentity="" if n % 4 else "p")
        await look(bench)

    assert THEIRS == mark(api)
    assert [] == api.writes()


async def test_what_nobody_has_taken_yet_is_theirs_where_they_are_at_work(
    api: FakeApi, bench: gadgets.Bench, clock: Clock
) -> None:
    """They share what is there, such as the rights; elsewhere it is ours."""
    await theirs(api, clock)
    await api.put(
        "gadgets", "one", {"metadata": {"annotations": {installations.OPERATOR: THEIRS}}, "spec": {"lane": "tenant"}}
    )
    await until(lambda: len(bench.keys))
    await bench.turn()
    await api.put("gadgets", "two", {"spec": {"lane": "tenant"}})
    await api.put("gadgets", "three", {"spec": {"lane": "other"}})
    await until(lambda: len(bench.keys) >= 2)
    await bench.turn()
    assert ["", MINE] == [mark(api, name) for name in ("two", "three")]

    clock.now += 15
    await look(bench)
    clock.now += installations.AWAY
    await look(bench)
    assert [MINE] * 3 == [mark(api, name) for name in ("one", "two", "three")]


async def test_what_somebody_marks_in_another_namespace_says_nothing_of_this_one(
    api: FakeApi, bench: gadgets.Bench, clock: Clock
) -> None:
    """Else who may write objects in one namespace could have those of another left alone."""
    await theirs(api, clock)
    marked = {"metadata": {"annotations": {installations.OPERATOR: THEIRS}}, "spec": {"lane": "tenant"}}
    await api.put("gadgets", "one", marked, namespace="elsewhere")
    await until(lambda: len(bench.keys))
    await bench.turn()
    await api.put("gadgets", "two", {"spec": {"lane": "tenant"}})
    await until(lambda: len(bench.keys))
    await bench.turn()

    assert MINE == mark(api, "two")
    assert 1 == len(bench.world.others)


async def test_of_what_nobody_can_read_the_one_tells_whose_it_is(api: FakeApi, bench: gadgets.Bench) -> None:
    await api.put(
        "gadgets", "one", {"metadata": {"annotations": {installations.OPERATOR: THEIRS}}, "spec": {"size": "many"}}
    )
    await until(lambda: bench.kinds[0].informers[0].unreadable)
    bench.controllers[0].look_for_unreadable()
    await bench.turn()

    assert [] == api.writes()
    assert [] == bench.controllers[0]._unreadable.news()


@pytest.mark.parametrize("name", ["", "nobody", "a/b/c", "../x", "ns/..", "NS/moorage"])
async def test_a_name_that_nobody_can_have_is_nobody_s(api: FakeApi, name: str) -> None:
    """Whoever may edit the object may write anything there; it becomes part of no request."""
    it = installations.Installations(kube_client.Client(api), MINE, lambda _: None)

    assert installations.Other.GONE is await it.look(name)
    assert [] == api.requests


async def test_one_whose_lease_may_not_be_read_counts_as_being_there(api: FakeApi) -> None:
    async def refuse(_: Asked) -> None:
        raise Refusal(403, "Forbidden")

    api.before = refuse
    it = installations.Installations(kube_client.Client(api), MINE, lambda _: None)

    assert installations.Other.HIDDEN is await it.look(THEIRS)


async def test_without_a_name_of_its_own_a_process_minds_no_others(api: FakeApi, clock: Clock) -> None:
    """One that runs without a Lease, as in development."""
    async with gadgets.bench(api, Placed((held,))) as bench:
        await api.put("gadgets", "one", {"metadata": {"annotations": {installations.OPERATOR: THEIRS}}})
        await until(lambda: len(bench.keys))
        await bench.turn()

    assert FINALIZER in api.one("gadgets", "one")["metadata"]["finalizers"]
    assert THEIRS == mark(api)
