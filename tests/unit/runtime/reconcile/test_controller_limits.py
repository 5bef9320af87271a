"""What never runs hot, and what keeps objects apart: rests, Events on change, incarnations, bad objects, lanes."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from moorage.runtime import decision
from moorage.runtime.decision import DONE, Act, Blocked, Fact, Verdict
from moorage.runtime.reconcile import schedule
from tests.unit.runtime.fake_api import FakeApi, until
from tests.unit.runtime.gadgets import KEY, Bench, GadgetKind, Seen, bench
from tests.unit.runtime.reconcile.test_controller import child_exists, owner, waiting

# --- never hot ---------------------------------------------------------------------------------------------------


async def test_an_act_without_effect_rests_and_says_so(api: FakeApi) -> None:
    def vain(_: Seen) -> Verdict:
        call = decision.Call(why="in vain", operation="nothing")
        return Act("Trying", "it is tried", (call,))

    async def nothing(*_: Any) -> decision.Outcome:
        return decision.Ok()

    await api.put("gadgets", "one")
    async with bench(api, GadgetKind((vain,), operations={"nothing": nothing})) as it:
        with it.clock.held():
            assert await it.turn() == schedule.SAME_ACT_LIMIT + 1
            assert it.conditions["Reconciling"] == ("True", "Trying")
            it.keys.add(it.kinds[0].key("ns", "one"))
            assert await it.turn() == 0, "news does not end its rest"


async def test_news_brings_back_what_was_refused_however_often(api: FakeApi) -> None:
    """As an eviction that a disruption budget forbids: once it would be allowed, it is not slept over."""

    def wanted(_: Seen) -> Verdict:
        return Act("Trying", "it is tried", (decision.Call(why="it is wanted", operation="ask"),))

    async def refused(*_: Any) -> decision.Outcome:
        return decision.Refused("Throttled", "not now")

    await api.put("gadgets", "one")
    async with bench(api, GadgetKind((wanted,), operations={"ask": refused})) as it:
        await it.turn()
        for _ in range(2 * schedule.SAME_ACT_LIMIT):
            it.keys.add(it.kinds[0].key("ns", "one"))
            assert await it.turn() == 1
        assert it.conditions["Ready"] == ("False", "Throttled")


async def test_a_fight_with_another_controller_slows_down(api: FakeApi) -> None:
    await api.put("gadgets", "one")
    async with bench(api, GadgetKind((child_exists,))) as it:
        with it.clock.held():
            for _ in range(10):
                await it.turn()
                await api.put("configmaps", "one-child", {"data": {"size": "spoilt"}})
                await until(lambda: it.kinds[0].children.items()[0]["data"]["size"] == "spoilt")
        assert len(api.writes("configmaps")) == schedule.SAME_ACT_LIMIT + 1


async def test_events_come_on_change_only(api: FakeApi) -> None:
    await api.put("gadgets", "one")
    kind_ = GadgetKind((), facts=(lambda _: Fact("Healthy", False, "Ill", "it coughs"),), ready_facts={"Healthy"})
    async with bench(api, kind_) as it:
        for _ in range(5):
            it.keys.add(it.kinds[0].key("ns", "one"))
            await it.turn()
        assert [(n.reason, n.warning) for n in it.notes] == [("Ill", False)]
        it.kinds[0].steps = (waiting("Slow"),)
        for _ in range(2):
            it.keys.add(it.kinds[0].key("ns", "one"))
            await it.turn()
        assert [n.reason for n in it.notes] == ["Ill", "Slow"]


async def test_an_overdue_wait_says_so_once(api: FakeApi) -> None:
    await api.put("gadgets", "one")
    async with bench(api, GadgetKind((waiting(within=30.0),))) as it:
        await it.turn()
        since = it.status["progress"]["since"]
        await api.put("gadgets", "one", {"status": {"progress": {"since": "2026-01-01T00:00:00Z"}}})
        await until(lambda: len(it.keys))
        await it.turn()
        assert it.status["progress"]["overdue"] is True
        assert since != it.status["progress"]["since"]
        assert [n.warning for n in it.notes] == [False, True]
        await it.turn()
        assert len(it.notes) == 2


# --- a pass that does not end, or is cancelled from within ---------------------------------------------------------


async def test_a_pass_beyond_its_deadline_is_cut_told_and_tried_again(api: FakeApi) -> None:
    hangs = True

    async def work(*_: Any) -> decision.Outcome:
        if hangs:
            await asyncio.Event().wait()
        kind_.steps = ()
        return decision.Ok()

    def act(_: Seen) -> Verdict:
        return Act("Acting", "acts", (decision.Call(why="w", operation="work"),))

    await api.put("gadgets", "one", {"spec": {"lane": "shared"}})
    kind_ = GadgetKind((act,), operations={"work": work}, deadline=0.02)
    async with bench(api, kind_) as it:
        await it.turn()
        assert it.conditions == {
            "Ready": ("Unknown", "DeadlineExceeded"),
            "Reconciling": ("True", "DeadlineExceeded"),
            "Stalled": ("False", "DeadlineExceeded"),
        }
        assert [("DeadlineExceeded", True)] == [(note.reason, note.warning) for note in it.notes]
        counted = {"kind": "Gadget", "reason": "DeadlineExceeded"}
        assert 1 == it.metrics.registry.get_sample_value("moorage_reconciles_total", counted)
        assert (0, 1) == (len(it.keys), it.keys.delayed), "with back-off"

        hangs, kind_.deadline = False, 30.0  # a pass that does not hang has its time
        await until(lambda: it.keys.take() == (KEY,))
        await it.controllers[0].reconcile(KEY)
        it.keys.done(KEY)
        await it.turn()
        assert it.conditions["Ready"] == ("True", "Ready")


async def test_a_cancellation_from_within_is_a_failure_and_the_workers_own_is_not(api: FakeApi) -> None:
    async def cancelled(*_: Any) -> decision.Outcome:
        raise asyncio.CancelledError

    def act(_: Seen) -> Verdict:
        return Act("Acting", "acts", (decision.Call(why="w", operation="cancelled"),))

    await api.put("gadgets", "one")
    async with bench(api, GadgetKind((act,), operations={"cancelled": cancelled})) as it:
        await it.turn()
        assert it.conditions["Ready"] == ("Unknown", "InternalError")
        assert it.keys.delayed == 1


# --- other incarnations, other shapes ----------------------------------------------------------------------------


async def test_an_object_made_anew_under_the_same_name_starts_afresh(api: FakeApi) -> None:
    await api.put("gadgets", "one")
    async with bench(api, GadgetKind()) as it:
        await it.turn()
        await api.drop("gadgets", "one")
        await api.put("gadgets", "one")
        await until(lambda: len(it.keys))
        await until(lambda: it.kinds[0].find("ns", "one") is not None)
        await it.turn()
        assert it.kinds[0].forgotten == ["one"]
        assert it.conditions["Ready"] == ("True", "Ready")


async def test_an_object_made_anew_during_a_pass_gets_no_status_of_the_old(api: FakeApi) -> None:
    async def replace(*_: Any) -> decision.Outcome:
        kind_.steps = ()
        await api.drop("gadgets", "one")
        await api.put("gadgets", "one", {"spec": {"size": 7}})
        await until(lambda: (found := kind_.find("ns", "one")) is not None and found.spec.size == 7)
        return decision.Refused("Gone", "the old one is gone")

    def act(_: Seen) -> Verdict:
        return Act("Acting", "acts", (decision.Call(why="w", operation="replace"),))

    kind_ = GadgetKind((act,), operations={"replace": replace})
    await api.put("gadgets", "one")
    async with bench(api, kind_) as it:
        await it.turn()
        assert it.conditions["Ready"] == ("True", "Ready")
        assert "Gone" not in str(api.writes())


async def test_an_unreadable_object_is_said_once_and_heals(api: FakeApi) -> None:
    await api.put("gadgets", "one", {"spec": {"size": "many"}})
    async with bench(api, GadgetKind()) as it:
        for _ in range(3):
            it.controllers[0].look_for_unreadable()
            await it.turn()
        assert it.conditions == {
            "Ready": ("Unknown", "Unreadable"),
            "Reconciling": ("False", "Unreadable"),
            "Stalled": ("True", "Unreadable"),
        }
        assert (len(api.writes()), len(it.notes)) == (1, 1)
        await api.put("gadgets", "one", {"spec": {"size": 1}})
        await until(lambda: len(it.keys))
        await it.turn()
        assert it.conditions["Ready"] == ("True", "Ready")


async def test_a_deleting_object_without_our_finalizer_is_let_go(api: FakeApi) -> None:
    await api.put("gadgets", "one", {"metadata": {"finalizers": ["somebody.else/x"]}})
    await api.mark_deleted("gadgets", "one")
    async with bench(api, owner()) as it:
        await it.turn()
        assert api.writes() == []
        assert it.kinds[0].forgotten == ["one"]


# --- lanes -------------------------------------------------------------------------------------------------------


async def test_keys_of_one_lane_take_turns(api: FakeApi) -> None:
    inside: list[str] = []
    most = 0

    async def busy(obj: Any, _: Any) -> decision.Outcome:
        nonlocal most
        inside.append(obj.metadata.name)
        most = max(most, len(inside))
        await asyncio.sleep(0.001)
        inside.remove(obj.metadata.name)
        done.add(obj.metadata.name)
        return decision.Ok()

    done: set[str] = set()

    def act(seen: Seen) -> Verdict:
        if seen.gadget.metadata.name in done:
            return DONE
        return Act("Acting", "acts", (decision.Call(why="w", operation="busy"),))

    names = [f"g{n}" for n in range(6)]
    for name in names:
        await api.put("gadgets", name, {"spec": {"lane": "shared"}})
    async with bench(api, GadgetKind((act,), operations={"busy": busy})) as it:
        workers = [asyncio.create_task(_work(it)) for _ in range(4)]
        await until(lambda: all(api.one("gadgets", name).get("status") for name in names))
        it.keys.close()
        await asyncio.gather(*workers, return_exceptions=True)
        assert (most, done) == (1, set(names))


async def _work(it: Bench) -> None:
    while True:
        key = await it.keys.get()
        await it.controllers[0].reconcile(key)
        it.keys.done(key)


async def test_a_lane_is_free_again_after_a_cancelled_pass(api: FakeApi) -> None:
    begun = asyncio.Event()

    async def hang(*_: Any) -> decision.Outcome:
        begun.set()
        await asyncio.Event().wait()
        return decision.Ok()

    def act(_: Seen) -> Verdict:
        return Act("Acting", "acts", (decision.Call(why="w", operation="hang"),))

    await api.put("gadgets", "one", {"spec": {"lane": "shared"}})
    kind_ = GadgetKind((act,), operations={"hang": hang})
    async with bench(api, kind_) as it:
        doing = asyncio.create_task(it.controllers[0].reconcile(("Gadget", "ns", "one")))
        await begun.wait()
        doing.cancel()
        await asyncio.gather(doing, return_exceptions=True)
        kind_.steps = ()
        await it.controllers[0].reconcile(("Gadget", "ns", "one"))
        assert it.conditions["Ready"] == ("True", "Ready")


async def test_blocked_is_stalled_and_says_what_to_do(api: FakeApi) -> None:
    await api.put("gadgets", "one")
    kind_ = GadgetKind((lambda _: Blocked("BadSpec", "size is odd", "make it even"),))
    kind_.steps[0].__name__ = "spec_is_sound"
    async with bench(api, kind_) as it:
        await it.turn()
        assert it.conditions["Stalled"] == ("True", "BadSpec")
        assert "size is odd; make it even" in msgspec.json.encode(it.status).decode()
        assert it.notes[0].warning
