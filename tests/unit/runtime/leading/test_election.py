"""Who may write, on a clock that a test moves: never two at once, whatever happens to the Lease and to answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.kube import client as kube_client
from moorage.kube import errors
from moorage.runtime import gate
from moorage.runtime.leading import election
from tests.unit.runtime.fake_api import Asked, FakeApi, Object, Refusal

TIMING = election.Timing(duration=15, renew=10, retry=2)


class Clock:
    """Time stands still until all sleep; then the first sleeper wakes."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.now + seconds, woken))
        await woken

    async def run(self, seconds: float, each: Callable[[], Any] = lambda: None) -> None:
        """Let so much time pass, and look at each stop."""
        end = self.now + seconds
        while True:
            for _ in range(30):
                await asyncio.sleep(0)
            each()
            self._sleepers = [(at, woken) for at, woken in self._sleepers if not woken.done()]
            due = min(self._sleepers, key=lambda pair: pair[0], default=None)
            if due is None or due[0] > end:
                self.now = end
                each()
                return
            self.now = max(self.now, due[0])
            due[1].set_result(None)


class Candidate:
    """One process: its own client, gate and election."""

    def __init__(self, api: FakeApi, clock: Clock, name: str) -> None:
        self.name, self.gate = name, gate.Gate(clock)
        self.wire = Wire(api, name)
        self.election = election.Election(
            kube_client.Client(self.wire),  # type: ignore[arg-type]
            self.gate,
            namespace="ns",
            name="lease",
            identity=name,
            timing=TIMING,
            clock=clock,
            sleep=clock.sleep,
        )
        self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        await self.election.acquire()
        await self.election.hold()

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


async def test_who_takes_over_from_one_that_was_lost_knows_that_its_work_may_go_on(api: FakeApi) -> None:
    """For a full duration more; nothing is under way of one that gave its lease back, which is after its drain."""
    clock = Clock()
    first = Candidate(api, clock, "first")
    await api.put("leases", "lease", {"spec": {}})
    await clock.run(3)
    assert (True, 0.0) == (first.gate.is_open, first.gate.settles_in)
    second = Candidate(api, clock, "second")
    await clock.run(1)
    await first.stop()
    await clock.run(20, lambda: second.gate.is_open and second.task.cancel())
    assert 0 < second.gate.settles_in <= TIMING.duration
    await second.stop()
    await second.election.release()
    third = Candidate(api, clock, "third")
    await clock.run(TIMING.duration)
    assert (True, 0.0) == (third.gate.is_open, third.gate.settles_in)
    await third.stop()


class Wire:
    """One candidate's way to the server: it may be cut, or lose answers."""

    def __init__(self, api: FakeApi, name: str) -> None:
        self._api, self._name = api, name
        self.stream = api.stream
        self.fault: Callable[[Asked], Awaitable[str]] | None = None

    async def request(self, method: str, path: str, **given: Any) -> Any:
        verdict = await self.fault(Asked(method, None)) if self.fault else ""  # type: ignore[arg-type]
        if verdict == "not sent":
            raise errors.TransportError("cut", sent=False)
        answer = await self._api.request(method, path, **given)
        if verdict == "lost":
            raise errors.TransportError("lost", sent=True)
        return answer


@pytest.fixture
def clock() -> Clock:
    return Clock()


def lease(api: FakeApi) -> Object:
    return api.one("leases", "lease")


async def taken(api: FakeApi, clock: Clock, name: str = "a") -> Candidate:
    """A leader of a lease that was free."""
    if not any(place.plural == "leases" for place in api.objects):
        await api.put("leases", "lease", {"spec": {}})
    it = Candidate(api, clock, name)
    await clock.run(0)
    assert it.gate.is_open
    return it


async def test_a_free_lease_is_taken_at_once(api: FakeApi, clock: Clock) -> None:
    it = await taken(api, clock)
    assert lease(api)["spec"]["holderIdentity"] == "a"
    assert lease(api)["spec"]["leaseDurationSeconds"] == 15
    await it.stop()


async def test_a_missing_lease_is_made_after_a_whole_duration_as_its_holder_may_still_work(
    api: FakeApi, clock: Clock
) -> None:
    it = Candidate(api, clock, "a")
    await clock.run(TIMING.duration - 0.1)
    assert not it.gate.is_open
    await clock.run(TIMING.retry * 1.2 + 0.2)
    assert it.gate.is_open
    await it.stop()


async def test_the_gate_closes_before_the_lease_ends_for_others(api: FakeApi, clock: Clock) -> None:
    it = await taken(api, clock)
    await clock.run(1)
    assert it.gate.timeout(60) == pytest.approx(TIMING.renew - 1), "counted from before the request"
    await clock.run(60)
    assert it.gate.is_open, "renewed"
    it.wire.fault = _always("not sent")
    renewed = clock.now
    await clock.run(60)
    assert it.task.done()
    assert not it.gate.is_open
    with pytest.raises(gate.NotLeading):
        it.gate.timeout(1)
    assert renewed <= clock.now
    await it.stop()


async def test_hold_returns_when_the_gate_closes_not_a_retry_later(api: FakeApi, clock: Clock) -> None:
    it = await taken(api, clock)
    begun = clock.now
    it.wire.fault = _always("not sent")
    closed: list[float] = []
    it.task.add_done_callback(lambda _: closed.append(clock.now))
    await clock.run(30)
    assert closed[0] - begun <= TIMING.renew
    await it.stop()


async def test_anothers_lease_is_taken_only_after_a_whole_duration_was_watched(api: FakeApi, clock: Clock) -> None:
    await api.put("leases", "lease", {"spec": {"holderIdentity": "dead", "leaseDurationSeconds": 30, "renewTime": "x"}})
    it = Candidate(api, clock, "a")
    await clock.run(29.9)
    assert not it.gate.is_open, "the holder's own duration counts"
    await clock.run(TIMING.retry * 1.2 + 0.2)
    assert it.gate.is_open
    assert lease(api)["spec"]["leaseTransitions"] == 1
    await it.stop()


async def test_a_foreign_edit_is_no_renewal_and_no_loss(api: FakeApi, clock: Clock) -> None:
    first = await taken(api, clock)
    await api.put("leases", "lease", {"metadata": {"labels": {"edited": "by hand"}}})
    await clock.run(3)
    assert first.gate.is_open
    assert first.gate.left > TIMING.renew - 2.1, "renewed in the same attempt"
    await first.stop()

    second = Candidate(api, clock, "b")
    for n in range(10):
        await clock.run(2)
        await api.put("leases", "lease", {"metadata": {"labels": {"edited": str(n)}}})
    assert second.gate.is_open, "edits of labels keep nobody waiting"
    await second.stop()


async def test_a_lease_taken_or_emptied_by_hand_is_lost(api: FakeApi, clock: Clock) -> None:
    for holder in ("somebody", ""):
        api.objects.clear()
        it = await taken(api, clock)
        await api.put("leases", "lease", {"spec": {"holderIdentity": holder}})
        await clock.run(TIMING.retry)
        assert it.task.done()
        assert not it.gate.is_open
        assert lease(api)["spec"]["holderIdentity"] == holder, "not written over"
        await it.stop()


async def test_a_deleted_lease_is_lost_and_nobody_takes_over_at_once(api: FakeApi, clock: Clock) -> None:
    first = await taken(api, clock)
    second = Candidate(api, clock, "b")
    await clock.run(5)
    await api.drop("leases", "lease")
    led: list[tuple[bool, bool]] = []
    await clock.run(60, lambda: led.append((first.gate.is_open, second.gate.is_open)))
    assert (True, True) not in led
    assert first.task.done()
    assert second.gate.is_open
    await first.stop()
    await second.stop()


async def test_of_one_that_came_and_lost_its_lease_unseen_nobody_takes_over_at_once(api: FakeApi, clock: Clock) -> None:
    """Between two looks of a candidate that finds no lease, another may have led, and lead still for a while."""
    it = Candidate(api, clock, "a")
    await clock.run(TIMING.duration - 1)
    await it.stop()
    await api.put(
        "leases", "lease", {"spec": {"holderIdentity": "unseen", "leaseDurationSeconds": 15, "renewTime": "x"}}
    )
    await api.drop("leases", "lease")
    clock.now += 2
    assert not await it.election.attempt()
    clock.now += TIMING.duration - 1
    assert not await it.election.attempt(), "it may have been renewed until the moment of the deletion"
    clock.now += 1.1
    assert await it.election.attempt()


async def test_a_lost_answer_to_the_taking_write_is_recognised(api: FakeApi, clock: Clock) -> None:
    await api.put("leases", "lease", {"spec": {}})
    it = Candidate(api, clock, "a")
    it.wire.fault = _once("lost", method="PATCH")
    await clock.run(TIMING.retry * 1.3)
    assert it.gate.is_open, "no waiting for its own lease to run out"
    await it.stop()


async def test_a_lost_answer_to_a_renewal_costs_nothing(api: FakeApi, clock: Clock) -> None:
    it = await taken(api, clock)
    it.wire.fault = _once("lost", method="PATCH")
    await clock.run(2 * TIMING.retry + 0.1)
    assert it.gate.left > TIMING.renew - 1
    await it.stop()


async def test_released_is_taken_by_the_next_at_once_and_only_by_its_holder(api: FakeApi, clock: Clock) -> None:
    first, second = await taken(api, clock), Candidate(api, clock, "b")
    await clock.run(5)
    first.task.cancel()
    await first.election.release()
    assert not first.gate.is_open
    await clock.run(TIMING.retry * 1.2)
    assert second.gate.is_open
    await first.election.release()
    assert lease(api)["spec"]["holderIdentity"] == "b"
    await second.stop()


async def test_a_release_is_heard_and_taken_without_waiting_for_the_next_look(api: FakeApi, clock: Clock) -> None:
    first, second = await taken(api, clock), Candidate(api, clock, "b")
    await clock.run(5)
    first.task.cancel()
    await first.election.release()
    await clock.run(0)
    assert second.gate.is_open
    await second.stop()


async def test_a_handover_to_one_candidate_wakes_that_one(api: FakeApi, clock: Clock) -> None:
    first, second, third = await taken(api, clock), Candidate(api, clock, "b"), Candidate(api, clock, "c")
    await clock.run(5)
    first.task.cancel()
    await first.election.release(to="c")
    await clock.run(0)
    assert (False, True) == (second.gate.is_open, third.gate.is_open)
    await second.stop()
    await third.stop()


async def test_a_crashed_leader_is_followed_a_duration_after_its_last_renewal_not_a_look_later(
    api: FakeApi, clock: Clock
) -> None:
    first, second = await taken(api, clock), Candidate(api, clock, "b")
    await clock.run(5)
    renewed = clock.now + first.gate.left - TIMING.renew
    first.gate.open_until(None)
    await first.stop()
    await clock.run(renewed + TIMING.duration - clock.now - 0.01)
    assert not second.gate.is_open
    await clock.run(0.02)
    assert second.gate.is_open
    await second.stop()


@pytest.mark.parametrize("status", [403, 404, 500])
async def test_who_may_not_watch_finds_a_release_at_the_next_look(api: FakeApi, clock: Clock, status: int) -> None:
    first, second = await taken(api, clock), Candidate(api, clock, "b")

    async def refuse(asked: Asked) -> None:
        if asked.query.get("fieldSelector"):
            raise Refusal(status)

    await second.stop()
    api.before = refuse
    second = Candidate(api, clock, "b")
    await clock.run(5)
    assert second.election.is_deaf, "which the metrics tell"
    first.task.cancel()
    await first.election.release()
    await clock.run(TIMING.retry * 1.2)
    assert second.gate.is_open
    await second.stop()
    assert not second.election.is_deaf


async def test_a_lease_that_cannot_be_read_by_the_watch_wakes_nobody(api: FakeApi, clock: Clock) -> None:
    """What does not fit the model is left to the looks, which say so."""
    first, second = await taken(api, clock), Candidate(api, clock, "b")
    await clock.run(5)
    await api.put("leases", "lease", {"spec": {"holderIdentity": 7}})
    await clock.run(0)
    assert not second.gate.is_open
    await first.stop()
    await second.stop()


async def test_a_pause_of_the_process_closes_the_gate_without_anybody_running(api: FakeApi, clock: Clock) -> None:
    it = await taken(api, clock)
    clock.now += TIMING.renew
    assert not it.gate.is_open
    await it.stop()


def test_timing_must_leave_room() -> None:
    for wrong in ((10, 10, 2), (15, 2, 2), (15, 10, 0)):
        with pytest.raises(ValueError, match="duration > renew > retry"):
            election.Timing(*wrong)


class Chance:
    """Faults drawn by hypothesis: one candidate's requests fail by a script."""

    def __init__(self, script: list[str]) -> None:
        self._script = script

    async def __call__(self, _: Asked) -> str:
        return self._script.pop(0) if self._script else ""


@settings(max_examples=40, deadline=None)
@given(
    scripts=st.lists(st.lists(st.sampled_from(["", "", "", "lost", "not sent"]), max_size=40), min_size=2, max_size=3),
    events=st.lists(st.sampled_from(["delete", "label", "wait", "restart"]), max_size=6),
)
async def test_never_two_leaders(scripts: list[list[str]], events: list[str]) -> None:
    api, clock = FakeApi(), Clock()
    everyone = [Candidate(api, clock, f"c{n}") for n in range(len(scripts))]
    for one, script in zip(everyone, scripts, strict=True):
        one.wire.fault = Chance(script)

    def look() -> None:
        leaders = [one.name for one in everyone if one.gate.is_open]
        assert len(leaders) <= 1, leaders

    for number, event in enumerate(events):
        await clock.run(11, look)
        if event == "label" and api.objects:
            await api.put("leases", "lease", {"metadata": {"labels": {"n": str(number)}}})
        elif event == "delete" and api.objects:
            await api.drop("leases", "lease")
        elif event == "restart":
            everyone[0].gate.open_until(None)  # killed
            await everyone[0].stop()
            everyone[0] = Candidate(api, clock, f"r{number}")
    await clock.run(120, look)
    alive = [one for one in everyone if not one.task.done()]
    assert not alive or any(one.gate.is_open for one in alive), "somebody leads in the end"
    for one in everyone:
        await one.stop()


def _always(verdict: str) -> Callable[[Asked], Awaitable[str]]:
    async def fault(_: Asked) -> str:
        return verdict

    return fault


def _once(verdict: str, *, method: str) -> Callable[[Asked], Awaitable[str]]:
    left = [verdict]

    async def fault(asked: Asked) -> str:
        return left.pop() if left and asked.method == method else ""

    return fault


async def test_server_errors_are_no_loss_until_the_time_is_up(api: FakeApi, clock: Clock) -> None:
    it = await taken(api, clock)

    async def fail(_: Asked) -> None:
        raise Refusal(500)

    api.before = fail
    await clock.run(TIMING.renew - 1)
    api.before = None
    await clock.run(TIMING.retry + 1)
    assert it.gate.is_open or it.task.done()
    await it.stop()
