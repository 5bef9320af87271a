"""What one object goes through: passes, echoes, failures, and what its status says on every way out."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from moorage.api import kinds
from moorage.kube import errors
from moorage.runtime import decision, schedule
from moorage.runtime.decision import DONE, Act, Blocked, Fact, Verdict, Wait
from tests.unit.runtime.fake_api import Asked, FakeApi, Refusal, until
from tests.unit.runtime.gadgets import FINALIZER, Bench, GadgetKind, Seen, bench, child


def finalizer_is_set(seen: Seen) -> Verdict:
    if FINALIZER in seen.gadget.metadata.finalizers:
        return DONE
    action = decision.EditFinalizer(why="nothing is left behind", present=True)
    return Act("TakingCare", "the finalizer is set", (action,))


def child_exists(seen: Seen) -> Verdict:
    if any(c["data"]["size"] == str(seen.gadget.spec.size) for c in seen.children):
        return DONE
    body = child("one-child", size=str(seen.gadget.spec.size))
    apply = decision.Apply(why="it is wanted", resource=kinds.CONFIG_MAP, body=body)
    return Act("Applying", f"the child gets size {seen.gadget.spec.size}", (apply,))


def child_is_gone(seen: Seen) -> Verdict:
    if not seen.children:
        return DONE
    ref = kinds.CONFIG_MAP.ref("ns", "one-child", seen.children[0]["metadata"]["uid"])
    return Act("Leaving", "the child goes", (decision.Delete(why="it leaves", resource=kinds.CONFIG_MAP, ref=ref),))


def finalizer_goes(_: Seen) -> Verdict:
    return Act("Leaving", "all is gone", (decision.EditFinalizer(why="all is gone", present=False),))


def owner() -> GadgetKind:
    return GadgetKind((finalizer_is_set, child_exists), farewell=(child_is_gone, finalizer_goes))


def waiting(reason: str = "Waiting", **more: Any) -> decision.Step[Seen]:
    def step(_: Seen) -> Verdict:
        return Wait(reason, "for something", on="nothing", **{"within": 60.0, **more})

    return step


# --- a whole life ------------------------------------------------------------------------------------------------


async def test_create_change_delete_take_one_write_each_and_steady_state_none(api: FakeApi) -> None:
    await api.put("gadgets", "one", {"spec": {"size": 1}})
    async with bench(api, owner()) as it:
        await it.turn()
        verbs = [(w.method, w.at.plural, w.at.sub) for w in api.writes()]
        assert verbs == [("PATCH", "gadgets", ""), ("PATCH", "configmaps", ""), ("PATCH", "gadgets", "status")]
        assert it.conditions["Ready"] == ("True", "Ready")
        assert it.status["observedGeneration"] == 1

        for _ in range(3):
            it.keys.add(it.kinds[0].key("ns", "one"))
            assert await it.turn() == 1
        assert len(api.writes()) == 3

        await api.put("gadgets", "one", {"spec": {"size": 2}})
        await until(lambda: len(it.keys))
        await it.turn()
        assert [w.at.plural for w in api.writes()[3:]] == ["configmaps", "gadgets"]
        assert it.status["observedGeneration"] == 2

        await api.mark_deleted("gadgets", "one")
        await until(lambda: len(it.keys))
        await it.turn()
        assert [w.method for w in api.writes()[5:]] == ["DELETE", "PATCH"]
        assert not api.objects.keys() & {p for p in api.objects if p.plural != "events"}
        assert it.kinds[0].forgotten == ["one"], "the deletion's echo is none, so the pass itself has to forget"


async def test_the_echo_of_an_own_write_brings_nobody_back(api: FakeApi) -> None:
    await api.put("gadgets", "one")
    async with bench(api, owner()) as it:
        await it.turn()
        passes = it.passes
        await api.put("gadgets", "other")  # its event comes after all echoes
        await until(lambda: len(it.keys))
        it.keys.take()
        assert (len(it.keys), passes) == (0, 3)


async def test_anothers_edit_that_an_own_answer_brings_along_is_not_lost(api: FakeApi) -> None:
    await api.put("gadgets", "one", {"spec": {"size": 1}})

    async def edit_first(asked: Asked) -> None:
        if asked.at.sub == "status":
            api.before = None
            await api.put("gadgets", "one", {"spec": {"size": 2}})

    async with bench(api, owner()) as it:
        api.before = edit_first
        await it.turn()
        assert it.status["observedGeneration"] == 2
        assert api.one("configmaps", "one-child")["data"]["size"] == "2"


async def test_another_kind_learns_of_a_write_that_its_author_does_not(api: FakeApi) -> None:
    await api.put("gadgets", "one")
    async with bench(api, owner()) as it:
        told: list[Any] = []
        it.kinds[0].children.subscribe(told.append)
        await it.turn()
        assert [change.by for change in told] == [("Gadget", "ns", "one")]


# --- status on every way out -------------------------------------------------------------------------------------


async def test_a_wait_for_what_nobody_has_looked_at_leaves_status_alone_for_a_while(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    await api.put("gadgets", "one")
    async with bench(api, GadgetKind()) as it:
        await it.turn()
        before = it.status
        it.kinds[0].steps = (waiting(unseen=True),)  # the same process knows nothing yet, as after a restart
        it.keys.add(it.kinds[0].key("ns", "one"))
        await it.turn()
        assert it.status == before
        assert it.keys.delayed
        monkeypatch.setattr(schedule, "UNSEEN", 0.0)
        it.keys.add(it.kinds[0].key("ns", "one"))
        await it.turn()
        assert it.conditions["Ready"] == ("False", "Waiting")


async def test_paused_does_nothing_and_stays_honest(api: FakeApi) -> None:
    await api.put("gadgets", "one", {"metadata": {"annotations": {"moorage.dev/paused": "true"}}})
    kind_ = GadgetKind((finalizer_is_set, child_exists), facts=(lambda _: Fact("Available", False, "NoChild"),))
    async with bench(api, kind_) as it:
        await it.turn()
        assert [w.at.sub for w in api.writes()] == ["status"]
        said = it.conditions
        assert said["Ready"] == ("False", "Paused")
        assert (said["Reconciling"][0], said["Stalled"][0], said["Available"][0]) == ("False", "False", "False")
        await api.put("gadgets", "one", {"metadata": {"annotations": {}}})
        await until(lambda: len(it.keys))
        await it.turn()
        assert it.conditions["Ready"] == ("True", "Ready") or it.conditions["Available"] == ("False", "NoChild")
        assert it.conditions["Paused"] == ("False", "Active")


async def test_a_defect_is_contained_and_told_without_its_words(api: FakeApi) -> None:
    def broken(_: Seen) -> Verdict:
        raise KeyError("hunter2")

    await api.put("gadgets", "one")
    async with bench(api, GadgetKind((broken,))) as it:
        await it.turn()
        assert it.conditions["Ready"] == ("Unknown", "InternalError")
        assert it.conditions["Reconciling"][0] == "True"
        assert "hunter2" not in str(it.status) + str(it.notes)
        assert it.keys.delayed == 1
        writes = len(api.writes())
        it.keys.wake(it.kinds[0].key("ns", "one"))
        await it.turn()
        assert len(api.writes()) == writes, "said once"
        it.kinds[0].steps = ()
        it.keys.wake(it.kinds[0].key("ns", "one"))
        await it.turn()
        assert it.conditions["Ready"] == ("True", "Ready")


@pytest.mark.parametrize("where", ["lane", "forget"])
async def test_a_defect_anywhere_frees_worker_and_lane(api: FakeApi, where: str) -> None:
    def broken(*_: Any) -> str:
        raise RuntimeError("no")

    kind_ = GadgetKind()
    setattr(kind_, where, broken)
    await api.put("gadgets", "one")
    async with bench(api, kind_) as it:
        if where == "forget":
            await api.drop("gadgets", "one")
            await until(lambda: it.kinds[0].find("ns", "one") is None)
        await it.turn()
        assert it.keys.delayed == 1


@pytest.mark.parametrize("code", [404, 409, 429, 500])
async def test_a_refused_status_write_is_tried_again_and_is_no_defect(api: FakeApi, code: int) -> None:
    async def refuse(asked: Asked) -> None:
        if asked.at.sub == "status":
            raise Refusal(code, {404: "NotFound", 409: "Conflict"}.get(code, ""))

    await api.put("gadgets", "one")
    async with bench(api, GadgetKind()) as it:
        api.before = refuse
        await it.turn()
        assert (it.keys.delayed, it.status) == (1, {})
        api.before = None
        it.keys.add(it.kinds[0].key("ns", "one"))
        await it.turn()
        assert it.conditions["Ready"] == ("True", "Ready")


async def test_a_lost_answer_shows_as_unknown_and_is_looked_at_again(api: FakeApi) -> None:
    async def lose(asked: Asked) -> None:
        if asked.at.plural == "configmaps" and asked.method != "GET":
            api.after = None
            raise errors.TransportError("the connection broke", sent=True)

    await api.put("gadgets", "one")
    async with bench(api, GadgetKind((child_exists,))) as it:
        api.after = lose
        while it.conditions.get("Ready") != ("True", "Ready"):
            await it.turn()
            await until(lambda: len(it.keys) or it.conditions["Ready"] == ("True", "Ready"))
        reasons = [w.body["status"]["progress"].get("reason") for w in api.writes() if w.at.sub == "status"]
        assert reasons == ["OutcomeUnknown", None]
        assert len(api.writes("configmaps")) == 1, "its own watch tells that it was applied"


async def test_a_conflict_is_quiet_until_it_stays(api: FakeApi) -> None:
    def taken(_: Seen) -> Verdict:
        create = decision.Create(why="a claim", resource=kinds.CONFIG_MAP, body=child("claim", "other"))
        return Act("Claiming", "the name is claimed", (create,))

    await api.put("configmaps", "claim", child("claim", "other"))
    await api.put("gadgets", "one")
    async with bench(api, GadgetKind((taken,))) as it:
        for _ in range(schedule.SAME_ACT_LIMIT):
            it.keys.wake(it.kinds[0].key("ns", "one"))
            await it.turn()
        assert it.status == {}
        it.keys.wake(it.kinds[0].key("ns", "one"))
        await it.turn()
        assert it.conditions["Ready"] == ("False", "Claiming")
        assert "AlreadyExists" in str(it.status)


# --- never hot ---------------------------------------------------------------------------------------------------


async def test_an_act_without_effect_rests_and_says_so(api: FakeApi) -> None:
    def vain(_: Seen) -> Verdict:
        call = decision.Call(why="in vain", operation="nothing")
        return Act("Trying", "it is tried", (call,))

    async def nothing(*_: Any) -> decision.Outcome:
        return decision.Ok()

    await api.put("gadgets", "one")
    async with bench(api, GadgetKind((vain,), operations={"nothing": nothing})) as it:
        assert await it.turn() == schedule.SAME_ACT_LIMIT + 1
        assert it.conditions["Reconciling"] == ("True", "Trying")
        it.keys.add(it.kinds[0].key("ns", "one"))
        assert await it.turn() == 0, "news does not end its rest"


async def test_a_fight_with_another_controller_slows_down(api: FakeApi) -> None:
    await api.put("gadgets", "one")
    async with bench(api, GadgetKind((child_exists,))) as it:
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
