"""Every action: what it asks of the server, and which of the four outcomes comes of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from moorage.api import builtin
from moorage.kube import errors
from moorage.runtime import decision, gate
from moorage.runtime.reconcile import executor, status
from tests.unit.runtime.fake_api import Asked, FakeApi, Refusal
from tests.unit.runtime.gadgets import FINALIZER, GADGET, Bench, GadgetKind, bench, child


def _made(*actions: decision.AnyAction, paused: bool = False) -> decision.Decision:
    act = decision.Act("Acting", "acts", actions)
    return decision.Decision(steps=(decision.StepTaken("step", act),), paused=paused)


async def _carry_out(it: Bench, *actions: decision.AnyAction, **more: Any) -> list[decision.Outcome]:
    obj = it.kinds[0].find("ns", "one")
    assert obj is not None
    writer: executor.Executor[Any] = executor.Executor(it.kinds[0], it.world, obj)
    return [done.outcome for done in await writer.carry_out(_made(*actions, **more))]


def _create(name: str = "c") -> decision.Create:
    return decision.Create(why="w", resource=builtin.CONFIG_MAP, body=child(name))


async def test_it_stops_at_the_first_that_did_not_happen(api: FakeApi) -> None:
    await api.put("gadgets", "one")
    async with bench(api, GadgetKind()) as it:
        outcomes = await _carry_out(it, _create("a"), _create("a"), _create("b"))
        assert [type(each) for each in outcomes] == [decision.Ok, decision.Conflict]
        assert len(api.writes()) == 2


async def test_objects_beside_it_are_written_as_the_kind_says(api: FakeApi) -> None:
    """What is said to be the operator's own, and the object itself, is written with its own rights."""

    class Confined(GadgetKind):
        def user(self, obj: Any) -> str:
            return f"the account of {obj.metadata.namespace}"

    await api.put("gadgets", "one")
    async with bench(api, Confined()) as it:
        found = await _carry_out(
            it,
            decision.EditFinalizer(why="w", present=True),
            decision.Remember(why="w", fields={"step": "x"}),
            _create("a"),
            decision.Apply(why="w", resource=builtin.CONFIG_MAP, body=child("b")),
            decision.Apply(why="w", resource=builtin.CONFIG_MAP, body=child("c"), as_operator=True),
            decision.Patch(why="w", resource=builtin.CONFIG_MAP, ref=builtin.CONFIG_MAP.ref("ns", "a"), ops=()),
            decision.Delete(why="w", resource=builtin.CONFIG_MAP, ref=builtin.CONFIG_MAP.ref("ns", "a", "uid-a")),
        )
        asked = [(each.at.plural, each.at.name or each.body["metadata"]["name"], each.user) for each in api.writes()]

    account = "the account of ns"
    own = {("gadgets", "one", ""), ("configmaps", "c", "")}
    assert own | {("configmaps", "a", account), ("configmaps", "b", account)} == {*asked}
    assert all(isinstance(outcome, decision.Ok) for outcome in found[:5])


async def test_nothing_is_done_while_paused(api: FakeApi) -> None:
    await api.put("gadgets", "one")
    async with bench(api, GadgetKind()) as it:
        assert await _carry_out(it, _create(), paused=True) == []
        assert api.writes() == []


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        (Refusal(409, "Conflict"), decision.Conflict),
        (Refusal(409, "AlreadyExists"), decision.Conflict),
        (Refusal(404, "NotFound"), decision.Conflict),
        (Refusal(403, "Forbidden"), decision.Refused),
        (Refusal(422, "Invalid"), decision.Refused),
        (Refusal(429), decision.Refused),
        (Refusal(500), decision.Unknown),
        (Refusal(501), decision.Refused),
        (errors.TransportError("no", sent=False), decision.Refused),
        (errors.TransportError("no", sent=True), decision.Unknown),
        (errors.CredentialsError("no"), decision.Refused),
        (errors.MalformedAnswer("no"), decision.Unknown),
        (gate.NotLeading("no"), decision.Refused),
        (TimeoutError(), decision.Unknown),
        (ValueError("hunter2"), decision.Unknown),
    ],
)
async def test_what_can_go_wrong_has_one_of_four_outcomes(api: FakeApi, fault: Exception, outcome: type[Any]) -> None:
    async def fail(_: Asked) -> None:
        raise fault

    await api.put("gadgets", "one")
    async with bench(api, GadgetKind()) as it:
        api.before = fail
        (got,) = await _carry_out(it, _create())
        assert type(got) is outcome
        assert "hunter2" not in str(got)


@pytest.mark.parametrize("fault", [Refusal(422, "Invalid"), Refusal(400, "BadRequest")])
async def test_a_refusal_of_what_is_written_says_why_it_was(api: FakeApi, fault: Exception) -> None:
    """The server's words may name none of the fields that are at fault."""

    async def fail(_: Asked) -> None:
        raise fault

    await api.put("gadgets", "one")
    async with bench(api, GadgetKind()) as it:
        api.before = fail
        (got,) = await _carry_out(it, _create())

    assert isinstance(got, decision.Refused)
    assert got.message.startswith(f"{_create().why}: create ConfigMap")


@pytest.mark.parametrize("code", [429, 503])
async def test_the_servers_wish_to_wait_is_in_the_outcome_and_pauses_all(api: FakeApi, code: int) -> None:
    async def fail(_: Asked) -> None:
        raise Refusal(code, after=7)

    await api.put("gadgets", "one")
    async with bench(api, GadgetKind()) as it:
        api.before = fail
        (got,) = await _carry_out(it, _create())
        assert isinstance(got, decision.Refused | decision.Unknown)
        assert 7 == got.after
        assert not it.world.pressure.room(0)


async def test_a_disruption_budget_is_no_sign_of_a_busy_server(api: FakeApi) -> None:
    async def fail(_: Asked) -> None:
        raise Refusal(429, after=7)

    await api.put("gadgets", "one")
    async with bench(api, GadgetKind()) as it:
        api.before = fail
        (got,) = await _carry_out(it, decision.Evict(why="w", ref=builtin.POD.ref("ns", "p", "u")))
        assert isinstance(got, decision.Refused)
        assert 7 == got.after
        assert it.world.pressure.room(100)


async def test_a_write_that_is_taken_ends_the_pressure(api: FakeApi) -> None:
    now = [100.0]
    await api.put("gadgets", "one")
    for again in (_create, None):
        async with bench(api, GadgetKind()) as it:
            it.world.pressure._clock = lambda: now[0]
            it.world.pressure.refused(1)
            now[0] = it.world.pressure.changes_at()
            assert not it.world.pressure.room(1)
            if again:
                await _carry_out(it, again())
            else:
                obj = it.kinds[0].find("ns", "one")
                assert obj is not None
                await executor.Executor(it.kinds[0], it.world, obj).write_status({"intent": "x"})
            assert it.world.pressure.room(1)


async def test_nothing_is_written_when_the_lease_is_lost(api: FakeApi) -> None:
    await api.put("gadgets", "one")
    async with bench(api, GadgetKind()) as it:
        it.gate.open_until(None)
        (got,) = await _carry_out(it, _create())
        assert isinstance(got, decision.Refused)
        assert got.reason == "NotLeading"
        assert api.writes() == []


async def test_the_lease_lost_while_a_guard_looks_stops_the_action(api: FakeApi) -> None:
    async def slow(*_: Any) -> str:
        it.gate.open_until(None)
        return ""

    await api.put("gadgets", "one")
    async with bench(api, GadgetKind(guards={"slow": slow})) as it:
        action = decision.Create(
            why="w", resource=builtin.CONFIG_MAP, body=child("c"), require=(decision.Guard("slow"),)
        )
        (got,) = await _carry_out(it, action)
        assert isinstance(got, decision.Refused)
        assert api.writes() == []


@pytest.mark.parametrize("check", ["says_no", "fails", "is_not_there"])
async def test_a_guard_that_does_not_agree_stops_the_action(api: FakeApi, check: str) -> None:
    async def says_no(*_: Any) -> str:
        return "the member is there"

    async def fails(*_: Any) -> str:
        raise errors.TransportError("no", sent=True)

    await api.put("gadgets", "one")
    async with bench(api, GadgetKind(guards={"says_no": says_no, "fails": fails})) as it:
        action = decision.Create(
            why="w", resource=builtin.CONFIG_MAP, body=child("c"), require=(decision.Guard(check),)
        )
        (got,) = await _carry_out(it, action)
        assert not isinstance(got, decision.Ok)
        assert api.writes() == []


async def test_an_operation_that_hangs_gives_its_worker_back(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang(*_: Any) -> decision.Outcome:
        await asyncio.Event().wait()
        return decision.Ok()

    monkeypatch.setattr(executor, "ACTION_LIMIT", 0.01)
    await api.put("gadgets", "one")
    async with bench(api, GadgetKind(operations={"hang": hang})) as it:
        (got,) = await _carry_out(it, decision.Call(why="w", operation="hang"))
        assert isinstance(got, decision.Unknown)


async def test_a_pass_that_takes_too_long_goes_on_in_another(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "PASS_LIMIT", -1.0)
    await api.put("gadgets", "one")
    async with bench(api, GadgetKind()) as it:
        assert isinstance((await _carry_out(it, _create(), _create("b")))[0], decision.Conflict)
        assert api.writes() == []


# --- the object itself -------------------------------------------------------------------------------------------


async def test_remember_refuses_when_the_object_is_not_as_decided_on(api: FakeApi) -> None:
    remember = decision.Remember(why="first", fields={"intent": "x"})
    await api.put("gadgets", "one")
    async with bench(api, GadgetKind()) as it:
        assert await _carry_out(it, remember) == [decision.Ok()]
        assert api.writes()[0].body["metadata"].keys() == {"uid", "resourceVersion"}

        obj = it.kinds[0].find("ns", "one")
        assert obj is not None
        await api.put("gadgets", "one", {"spec": {"size": 5}})
        while it.kinds[0].find("ns", "one") is obj:
            await asyncio.sleep(0)
        writer: executor.Executor[Any] = executor.Executor(it.kinds[0], it.world, obj)  # decided on the old one
        again = decision.Remember(why="first", fields={"intent": "y"})
        (done,) = await writer.carry_out(_made(again))
        assert isinstance(done.outcome, decision.Conflict)
        assert api.one("gadgets", "one")["status"]["intent"] == "x"


async def test_several_remembers_of_one_pass_build_on_each_other(api: FakeApi) -> None:
    await api.put("gadgets", "one")
    async with bench(api, GadgetKind()) as it:
        first = decision.EditFinalizer(why="w", present=True)
        steps = [decision.Remember(why="w", fields={"intent": str(n)}) for n in range(2)]
        assert await _carry_out(it, first, *steps) == [decision.Ok()] * 3
        assert api.one("gadgets", "one")["status"]["intent"] == "1"


async def test_a_status_that_holds_already_is_not_written(api: FakeApi) -> None:
    await api.put("gadgets", "one", {"status": {"intent": "x"}})
    async with bench(api, GadgetKind()) as it:
        remember = decision.Remember(why="w", fields={"intent": "x", "maybe": None, "report": {"a": None}})
        assert await _carry_out(it, remember) == [decision.Ok()]
        assert api.writes() == []


@pytest.mark.parametrize("others", [[], ["somebody.else/a"], ["b/b", "c/c"]])
async def test_finalizers_of_others_survive_both_edits(api: FakeApi, others: list[str]) -> None:
    await api.put("gadgets", "one", {"metadata": {"finalizers": others} if others else {}})
    async with bench(api, GadgetKind()) as it:
        await _carry_out(it, decision.EditFinalizer(why="w", present=True))
        assert api.one("gadgets", "one")["metadata"]["finalizers"] == [*others, FINALIZER]
        await _carry_out(it, decision.EditFinalizer(why="w", present=True))
        assert len(api.writes()) == 1, "there already"
        await _carry_out(it, decision.EditFinalizer(why="w", present=False))
        assert api.one("gadgets", "one")["metadata"].get("finalizers", []) == others


@pytest.mark.parametrize("before", [[], ["somebody.else/a"]])
async def test_a_finalizer_set_by_another_meanwhile_is_not_overwritten(api: FakeApi, before: list[str]) -> None:
    async def another(asked: Asked) -> None:
        if asked.method == "PATCH":
            api.before = None
            await api.put("gadgets", "one", {"metadata": {"finalizers": [*before, "late/comer"]}})

    await api.put("gadgets", "one", {"metadata": {"finalizers": before} if before else {}})
    async with bench(api, GadgetKind()) as it:
        api.before = another
        (got,) = await _carry_out(it, decision.EditFinalizer(why="w", present=True))
        assert isinstance(got, decision.Conflict)
        assert api.one("gadgets", "one")["metadata"]["finalizers"] == [*before, "late/comer"]


# --- other objects -----------------------------------------------------------------------------------------------


async def test_a_deletion_names_the_incarnation_and_is_known_at_once(api: FakeApi) -> None:
    await api.put("gadgets", "one")
    await api.put("configmaps", "c", child("c"))
    await api.put(
        "configmaps", "held", {**child("held"), "metadata": {**child("held")["metadata"], "finalizers": ["x/y"]}}
    )
    async with bench(api, GadgetKind()) as it:
        for name in ("c", "held"):
            uid = api.one("configmaps", name)["metadata"]["uid"]
            ref = builtin.CONFIG_MAP.ref("ns", name, uid)
            assert await _carry_out(it, decision.Delete(why="w", resource=builtin.CONFIG_MAP, ref=ref)) == [
                decision.Ok()
            ]
            assert api.writes()[-1].body["preconditions"] == {"uid": uid}
            assert api.writes()[-1].body["propagationPolicy"] == "Background"
        (left,) = it.kinds[0].children.items()
        assert left["metadata"]["deletionTimestamp"], "no pass may take it for untouched"
        nameless = decision.Delete(why="w", resource=builtin.CONFIG_MAP, ref=builtin.CONFIG_MAP.ref("ns", "held"))
        assert isinstance((await _carry_out(it, nameless))[0], decision.Unknown)
        other = decision.Delete(why="w", resource=builtin.CONFIG_MAP, ref=builtin.CONFIG_MAP.ref("ns", "held", "other"))
        assert isinstance((await _carry_out(it, other))[0], decision.Conflict)


async def test_an_eviction_and_a_pod_condition_are_known_at_once(api: FakeApi) -> None:
    await api.put("gadgets", "one")
    made = await api.put("pods", "p", {"metadata": {"finalizers": ["x/y"]}})
    ref = builtin.POD.ref("ns", "p", made["metadata"]["uid"])
    async with bench(api, GadgetKind()) as it:
        pods = it.informers.watch(builtin.POD, dict)
        await pods.wait_synced(30)
        gates = [decision.SetPodCondition(why="w", ref=ref, type=f"test.moorage.dev/{n}", status=True) for n in "ab"]
        assert await _carry_out(it, *gates) == [decision.Ok()] * 2
        assert pods.items()[0]["status"]["conditions"][0]["status"] == "True"
        managers = {w.query["fieldManager"] for w in api.writes()}
        assert len(managers) == 2, "or the second would take the first away"
        assert await _carry_out(it, decision.Evict(why="w", ref=ref)) == [decision.Ok()]
        assert pods.items()[0]["metadata"]["deletionTimestamp"]


@pytest.mark.parametrize(
    "fault",
    [errors.TransportError("no", sent=False), Refusal(409, "Conflict"), Refusal(403), Refusal(429), Refusal(500)],
)
async def test_what_fails_after_an_act_does_not_make_it_undone(api: FakeApi, fault: Exception) -> None:
    """The task was begun, the pod evicted: neither was refused, though what came of it could not be kept or read."""

    async def fail(asked: Asked) -> None:
        if asked.method == "GET" or asked.at.sub == "status":
            raise fault

    async def begin(*_: Any) -> decision.Outcome:
        return decision.Ok({"intent": "task-7"})

    await api.put("gadgets", "one")
    pod = await api.put("pods", "p", {"metadata": {"finalizers": ["x/y"]}})
    async with bench(api, GadgetKind(operations={"begin": begin})) as it:
        api.before = fail
        call = decision.Call(why="w", operation="begin", keep=True)
        evict = decision.Evict(why="w", ref=builtin.POD.ref("ns", "p", pod["metadata"]["uid"]))
        for act in (call, evict):
            (outcome,) = await _carry_out(it, act)
            assert isinstance(outcome, decision.Unknown)


async def test_a_filler_completes_the_body_outside_the_decision(api: FakeApi) -> None:
    async def secret(_: Any, body: dict[str, Any]) -> dict[str, Any]:
        return {**body, "data": {"password": "hunter2"}}

    await api.put("gadgets", "one")
    async with bench(api, GadgetKind(fillers={"secret": secret})) as it:
        apply = decision.Apply(why="w", resource=builtin.CONFIG_MAP, body=child("c"), fill="secret")
        assert await _carry_out(it, apply) == [decision.Ok()]
        assert api.one("configmaps", "c")["data"] == {"password": "hunter2"}
        assert "hunter2" not in str(apply)


async def test_a_call_puts_its_value_into_status_and_a_patch_tests_the_uid(api: FakeApi) -> None:
    async def begin(_: Any, args: dict[str, Any]) -> decision.Outcome:
        return decision.Ok({"intent": f"task-{args['n']}"})

    await api.put("gadgets", "one")
    made = await api.put("configmaps", "c", child("c", a="1"))
    async with bench(api, GadgetKind(operations={"begin": begin})) as it:
        call = decision.Call(why="w", operation="begin", args={"n": 7}, keep=True)
        assert await _carry_out(it, call) == [decision.Ok({"intent": "task-7"})]
        assert api.one("gadgets", "one")["status"]["intent"] == "task-7"
        ops = ({"op": "replace", "path": "/data/a", "value": "2"},)
        for uid, outcome in (("other", decision.Conflict), (made["metadata"]["uid"], decision.Ok)):
            ref = builtin.CONFIG_MAP.ref("ns", "c", uid)
            patch = decision.Patch(why="w", resource=builtin.CONFIG_MAP, ref=ref, ops=ops)
            assert type((await _carry_out(it, patch))[0]) is outcome


async def test_a_task_starts_once_per_lane(api: FakeApi) -> None:
    async def work(*_: Any) -> decision.Outcome:
        await asyncio.Event().wait()
        return decision.Ok()

    await api.put("gadgets", "one")
    async with bench(api, GadgetKind(operations={"work": work})) as it:
        run = decision.Run(why="w", task="work", lane="l", args={"attempt": "a1"})
        outcomes = await _carry_out(it, run, run)
        assert [type(each) for each in outcomes] == [decision.Ok, decision.Conflict]


def test_an_action_carries_its_kind_through_json() -> None:
    import msgspec

    ref = GADGET.ref("ns", "one", "u")
    actions: tuple[decision.AnyAction, ...] = (
        _create(),
        decision.Delete(why="w", resource=GADGET, ref=ref),
        decision.Remember(why="w", fields={"a": 1}),
        decision.Run(why="w", task="t", lane="l"),
    )
    made = _made(*actions)
    assert msgspec.json.decode(msgspec.json.encode(made), type=decision.Decision) == made
    done = status.Performed("step", actions[0], decision.Conflict("no"))
    assert msgspec.json.decode(msgspec.json.encode(done), type=status.Performed) == done
