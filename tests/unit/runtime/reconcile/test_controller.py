"""What one object goes through: passes, echoes, failures, and what its status says on every way out."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api import builtin
from moorage.kube import errors
from moorage.runtime import decision
from moorage.runtime.decision import DONE, Act, Fact, Verdict, Wait
from moorage.runtime.reconcile import schedule
from tests.unit.runtime.fake_api import Asked, FakeApi, Refusal, until
from tests.unit.runtime.gadgets import FINALIZER, KEY, GadgetKind, Seen, bench, child


def finalizer_is_set(seen: Seen) -> Verdict:
    if FINALIZER in seen.gadget.metadata.finalizers:
        return DONE
    action = decision.EditFinalizer(why="nothing is left behind", present=True)
    return Act("TakingCare", "the finalizer is set", (action,))


def child_exists(seen: Seen) -> Verdict:
    if any(c["data"]["size"] == str(seen.gadget.spec.size) for c in seen.children):
        return DONE
    body = child("one-child", size=str(seen.gadget.spec.size))
    apply = decision.Apply(why="it is wanted", resource=builtin.CONFIG_MAP, body=body)
    return Act("Applying", f"the child gets size {seen.gadget.spec.size}", (apply,))


def child_is_gone(seen: Seen) -> Verdict:
    if not seen.children:
        return DONE
    ref = builtin.CONFIG_MAP.ref("ns", "one-child", seen.children[0]["metadata"]["uid"])
    return Act("Leaving", "the child goes", (decision.Delete(why="it leaves", resource=builtin.CONFIG_MAP, ref=ref),))


def finalizer_goes(_: Seen) -> Verdict:
    return Act("Leaving", "all is gone", (decision.EditFinalizer(why="all is gone", present=False),))


def owner() -> GadgetKind:
    return GadgetKind((finalizer_is_set, child_exists), deletion_steps=(child_is_gone, finalizer_goes))


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
        create = decision.Create(why="a claim", resource=builtin.CONFIG_MAP, body=child("claim", "other"))
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


async def test_a_status_that_the_server_has_no_time_for_waits_as_long_as_it_asks(api: FakeApi) -> None:
    async def fail(asked: Asked) -> None:
        if asked.at.sub == "status":
            raise Refusal(429, after=30)

    await api.put("gadgets", "one")
    async with bench(api, GadgetKind()) as it:
        api.before = fail
        begun = it.keys._clock()
        await it.turn()
        assert it.keys._wishes[KEY].at >= begun + 30
        assert not it.world.pressure.room(0)


async def test_a_resync_is_of_the_backlog_and_an_act_is_followed_up_at_once(api: FakeApi) -> None:
    await api.put("gadgets", "one")
    async with bench(api, owner()) as it:
        (key,) = it.keys.take()
        await it.controllers[0].reconcile(key)
        it.keys.done(key)
        assert {key: False} == it.keys._queued, "the finalizer is set: on with it"
        await it.turn()
        assert it.keys._wishes[key].backlog


async def test_a_server_that_sheds_load_for_long_is_told_of(api: FakeApi) -> None:
    async def fail(asked: Asked) -> None:
        if asked.at.plural == "configmaps" and asked.method != "GET":
            raise Refusal(429, after=1)

    await api.put("gadgets", "one", {"metadata": {"finalizers": [FINALIZER]}})
    async with bench(api, owner()) as it:
        api.before = fail
        told = []
        for _ in range(schedule.PATIENT + 1):
            await it.controllers[0].reconcile(KEY)
            told.append(it.conditions.get("Ready"))
        assert [None] * schedule.PATIENT + [("False", "Throttled")] == told


async def test_children_that_were_there_already_are_no_news_and_a_changed_one_is(api: FakeApi) -> None:
    await api.put("gadgets", "one")
    await api.put("configmaps", "one-child", child("one-child", size="0"))
    async with bench(api, owner()) as it:
        assert {KEY: True} == it.keys._queued
        await api.put("configmaps", "one-child", {"data": {"size": "9"}})
        await until(lambda: it.keys._queued == {KEY: False})
