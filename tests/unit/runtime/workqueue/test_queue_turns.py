"""Who goes first: news before the backlog, kinds and namespaces by turns, and no kind beyond its limit."""

from __future__ import annotations

import asyncio
import collections
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from moorage.runtime.workqueue import fair_turns, queue
from tests.unit.runtime.workqueue.test_queue import Clock

Key = tuple[str, str, int]
FLOWS = st.sampled_from([(kind, space) for kind in "AB" for space in "xyz"])


def flow(key: Key) -> fair_turns.Flow:
    return key[0], key[1]


def make(**given_: Any) -> queue.WorkQueue[Key]:
    return queue.WorkQueue(flow=flow, **given_)


def drain(keys: queue.WorkQueue[Key], most: int = 1000) -> list[Key]:
    """Take and finish, one after another."""
    out: list[Key] = []
    while len(out) < most and (taken := keys.take()):
        out += taken
        keys.done(taken[0])
    return out


def test_a_flood_of_one_namespace_or_kind_delays_others_by_their_turn() -> None:
    keys = make()
    for n in range(100):
        keys.add(("A", "flood", n))
    for n in range(2):
        keys.add(("A", "calm", n))
    keys.add(("B", "calm", 0))
    first = drain(keys, 6)
    assert first == [("A", "flood", 0), ("B", "calm", 0), ("A", "calm", 0), ("A", "flood", 1), ("A", "calm", 1),
                     ("A", "flood", 2)]  # fmt: skip
    assert [("A", "flood", n) for n in range(3, 100)] == drain(keys)


def test_many_namespaces_of_one_kind_count_as_one_kind() -> None:
    keys = make()
    for n in range(50):
        keys.add(("A", f"ns-{n}", 0))
    for n in range(3):
        keys.add(("B", "one", n))
    assert ["A", "B"] * 3 == [key[0] for key in drain(keys, 6)]


def test_floods_in_the_backlog_are_as_fair() -> None:
    keys = make()
    for n in range(50):
        keys.add(("A", "flood", n), backlog=True)
    keys.add(("B", "calm", 0), backlog=True)
    assert ("B", "calm", 0) in drain(keys, 2)


def test_resyncs_give_way_to_news_and_news_that_is_wished_later_wins_over_a_resync() -> None:
    clock = Clock()
    keys = make(clock=clock)
    for n in range(5):
        keys.add_after(("A", "x", n), 10, backlog=True)
    keys.add_after(("A", "x", 4), 20)  # the earlier time counts, and that it is news
    clock.now += 10
    keys.add(("A", "x", 9))
    assert [9, 4, 0, 1, 2, 3] == [key[2] for key in drain(keys)]


def test_of_a_key_that_moves_up_nothing_is_left_in_the_backlog() -> None:
    keys = make()
    key = ("A", "x", 1)
    keys.add(key, backlog=True)
    keys.add(key)
    keys.add(key, backlog=True)
    assert 1 == len(keys)
    assert [key] == drain(keys)


def test_what_comes_while_it_is_worked_on_keeps_its_urgency() -> None:
    keys = make()
    one, two = ("A", "x", 1), ("A", "x", 2)
    for key, urgencies in ((one, (True,)), (two, (True, False, True))):
        keys.add(key)
        assert (key,) == keys.take()
        for backlog in urgencies:
            keys.add(key, backlog=backlog)
    keys.done(one)
    keys.done(two)
    assert [two, one] == drain(keys)


def test_the_first_retry_keeps_its_place_and_the_following_give_way() -> None:
    clock = Clock()
    keys = make(clock=clock, base=1, rng=random.Random(0))
    for order in ([1, 2], [2, 1], [2, 1]):
        keys.add(("A", "x", 2), backlog=True)
        keys.retry(("A", "x", 1))
        clock.now += 10
        assert order == [key[2] for key in drain(keys)]


def test_the_backlog_gets_each_eighth_turn_of_news_that_does_not_end() -> None:
    keys = make()
    for n in range(3):
        keys.add(("A", "old", n), backlog=True)
    places = []
    for turn in range(1, 8 * 3 + 1):
        keys.add(("A", "new", turn))
        (key,) = keys.take()
        keys.done(key)
        if key[1] == "old":
            places.append(turn)
    assert [8, 16, 24] == places


def test_news_without_a_backlog_earns_it_no_turn() -> None:
    keys = make()
    for n in range(20):
        keys.add(("A", "new", n))
    drain(keys)
    keys.add(("A", "old", 0), backlog=True)
    keys.add(("A", "new", 0))
    assert [("A", "new", 0), ("A", "old", 0)] == drain(keys)


def test_a_kind_at_its_limit_lets_others_pass_and_goes_on_when_there_is_room() -> None:
    keys = make(limits={"A": 2})
    for n in range(4):
        keys.add(("A", "x", n))
    keys.add(("B", "x", 0))
    taken = [key for _ in range(5) for key in keys.take()]
    assert [("A", "x", 0), ("B", "x", 0), ("A", "x", 1)] == taken
    keys.done(("B", "x", 0))
    assert () == keys.take()
    keys.done(("A", "x", 1))
    assert (("A", "x", 2),) == keys.take()
    assert () == keys.take()


def test_a_full_kind_in_the_backlog_does_not_stop_news() -> None:
    keys = make(limits={"A": 1})
    for n in range(2):
        keys.add(("A", "old", n), backlog=True)
    assert (("A", "old", 0),) == keys.take()
    for n in range(20):
        keys.add(("B", "new", n))
    assert [("B", "new", n) for n in range(20)] == drain(keys)


def test_the_backlog_leaves_workers_to_news() -> None:
    keys = make(backlog_limit=2)
    for n in range(4):
        keys.add(("A", "old", n), backlog=True)
    taken = [key for _ in range(4) for key in keys.take()]
    assert [("A", "old", 0), ("A", "old", 1)] == taken
    keys.add(("A", "new", 0))
    assert (("A", "new", 0),) == keys.take()
    assert () == keys.take()
    keys.done(("A", "new", 0))
    assert () == keys.take()
    keys.done(("A", "old", 1))
    assert (("A", "old", 2),) == keys.take()


def test_amid_news_the_backlog_gets_a_quarter_of_its_limit() -> None:
    clock = [0.0]
    keys: queue.WorkQueue[int] = queue.WorkQueue(backlog_limit=12, clock=lambda: clock[0])
    for number in range(20):
        keys.add(number, backlog=True)
    keys.add(100)
    assert [100, 0, 1, 2] == [key for _ in range(20) for key in keys.take()]
    clock[0] = queue.ATTENTION - 0.001
    assert () == keys.take()
    clock[0] = queue.ATTENTION
    assert list(range(3, 12)) == [key for _ in range(20) for key in keys.take()]
    keys.add(101)
    assert (101,) == keys.take()
    for done in range(9):
        keys.done(done)
        assert () == keys.take(), "three are left, and are a quarter"
    keys.done(9)
    assert (12,) == keys.take()


@pytest.mark.parametrize(("limit", "share"), [(1, 1), (2, 2), (4, 2), (8, 2), (12, 3)])
def test_amid_news_one_of_the_backlog_that_takes_long_is_passed_by(limit: int, share: int) -> None:
    keys: queue.WorkQueue[int] = queue.WorkQueue(backlog_limit=limit, clock=lambda: 0.0)
    for number in range(20):
        keys.add(number, backlog=True)
    keys.add(100)
    assert [100, *range(share)] == [key for _ in range(20) for key in keys.take()]


def test_the_news_that_meets_no_backlog_does_not_hold_up_one_that_comes_later() -> None:
    keys: queue.WorkQueue[str] = queue.WorkQueue(backlog_limit=4, clock=lambda: 0.0)
    keys.add("news")
    assert ("news",) == keys.take()
    for name in "abcdef":
        keys.add(name, backlog=True)
    assert ["a", "b", "c", "d"] == [key for _ in range(9) for key in keys.take()]


async def test_workers_go_on_with_the_backlog_when_no_more_news_has_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "ATTENTION", 60.0)
    keys: queue.WorkQueue[str] = queue.WorkQueue(backlog_limit=4)
    for name in "abcdef":
        keys.add(name, backlog=True)
    keys.add("news")
    assert ["news", "a", "b"] == [key for _ in range(9) for key in keys.take()]
    monkeypatch.setattr(queue, "ATTENTION", 0.05)
    async with asyncio.timeout(30):
        assert ["c", "d"] == await asyncio.gather(keys.get(), keys.get()), "though nobody has finished"


def test_what_is_begun_of_the_backlog_is_the_next_of_it_and_still_counts_as_such() -> None:
    keys = make(backlog_limit=1)
    for n in range(3):
        keys.add(("A", "old", n), backlog=True)
    for key in keys.take():
        keys.again(key)
        keys.done(key)
    assert (("A", "old", 0),) == keys.take()
    assert () == keys.take()
    keys.add(("A", "old", 0))
    keys.done(("A", "old", 0))
    assert [("A", "old", 0), ("A", "old", 1)] == [key for _ in range(3) for key in keys.take()], (
        "as news, then the next"
    )


def test_a_worker_keeps_what_would_be_its_next() -> None:
    """Of the backlog while there is no news, and of news when nothing waits at all."""
    clock = [0.0]
    keys: queue.WorkQueue[str] = queue.WorkQueue(clock=lambda: clock[0])
    for key in ("a", "b"):
        keys.add(key, backlog=True)
    assert keys.take() == ("a",)
    assert not keys.keep("a"), "nothing brings it back"

    keys.again("a")
    clock[0] = 3.0
    assert keys.keep("a")
    assert keys.asked_at("a") == 3.0
    assert not keys.keep("a"), "it has been looked at"

    keys.again("a")
    keys.add("news")
    assert not keys.keep("a")
    keys.done("a")
    assert keys.take() == ("news",)
    assert keys.take() == ("a",), "which is still the first of the backlog"

    keys.again("news")
    assert not keys.keep("news"), "it may be the turn of the backlog"
    assert keys.take() == ("b",)
    assert keys.keep("news")


def test_a_worker_keeps_nothing_that_news_of_this_moment_would_overtake() -> None:
    """Nor when the queue is closed: what is done then is done."""
    clock = [0.0]
    keys: queue.WorkQueue[str] = queue.WorkQueue(clock=lambda: clock[0])
    keys.add("a", backlog=True)
    keys.add_after("due", 5.0)
    keys.take()
    keys.again("a")
    clock[0] = 5.0
    assert not keys.keep("a")

    keys.close()
    assert not keys.keep("a")


async def test_workers_are_held_by_no_kind_at_its_limit_and_woken_when_there_is_room() -> None:
    keys = make(limits={"A": 1})
    most: collections.Counter[str] = collections.Counter()
    inside: collections.Counter[str] = collections.Counter()
    done: list[Key] = []

    async def worker() -> None:
        while True:
            key = await keys.get()
            inside[key[0]] += 1
            most[key[0]] = max(most[key[0]], inside[key[0]])
            for _ in range(3):
                await asyncio.sleep(0)
            inside[key[0]] -= 1
            done.append(key)
            keys.done(key)

    workers = [asyncio.create_task(worker()) for _ in range(4)]
    await asyncio.sleep(0)
    for n in range(30):
        keys.add(("A", "x", n))
    for n in range(30):
        keys.add(("B", "x", n))
    async with asyncio.timeout(30):
        while len(done) < 60:
            await asyncio.sleep(0)
    keys.close()
    await asyncio.gather(*workers, return_exceptions=True)
    assert 1 == most["A"]
    assert most["B"] >= 3, "no worker is held"


def test_how_long_it_had_waited_counts_from_when_it_was_asked_for_or_due() -> None:
    clock = Clock()
    keys = make(clock=clock)
    one, two = ("A", "x", 1), ("A", "x", 2)
    keys.add(one, backlog=True)
    keys.add_after(two, 7)
    clock.now += 3
    keys.add(one)
    assert (one,) == keys.take()
    assert 100 == keys.asked_at(one)
    clock.now += 5
    assert (two,) == keys.take()
    assert 107 <= keys.asked_at(two) <= 108


class Reference(RuleBasedStateMachine):
    """Turns against plain lists: nothing lost, nothing twice, oldest first within a flow, and fair between flows."""

    def __init__(self) -> None:
        super().__init__()
        self.turns: fair_turns.Turns[Key] = fair_turns.Turns(flow)
        self.flows: dict[fair_turns.Flow, list[Key]] = {}
        self.serial = 0
        self.passed: dict[fair_turns.Flow, int] = {}
        """How many keys of other flows of its kind came since the last of this one."""

    @rule(at=FLOWS)
    def push(self, at: tuple[str, str]) -> None:
        self.serial += 1
        key = (*at, self.serial)
        self.turns.push(key)
        self.flows.setdefault(at, []).append(key)
        self.passed.setdefault(at, 0)

    @rule(at=FLOWS, n=st.integers(0, 5))
    def push_again(self, at: tuple[str, str], n: int) -> None:
        for key in self.flows.get(at, [])[n : n + 1]:
            self.turns.push(key)

    @rule(at=FLOWS, n=st.integers(0, 5))
    def drop(self, at: tuple[str, str], n: int) -> None:
        for key in self.flows.get(at, [])[n : n + 1]:
            self.turns.drop(key)
            self._gone(key)

    @rule(full=st.sets(st.sampled_from("AB")))
    def pop(self, full: set[str]) -> None:
        got = self.turns.pop(full.__contains__)
        if not got:
            assert all(kind in full for kind, _ in self.flows)
            return
        (key,) = got
        assert key[0] not in full
        assert key == self.flows[flow(key)][0], "the oldest of its flow"
        for at in self.flows:
            if at[0] == key[0] and at != flow(key):
                self.passed[at] += 1
                assert self.passed[at] <= 2, "each other flow of the kind at most once before"
        self.passed[flow(key)] = 0
        self._gone(key)

    def _gone(self, key: Key) -> None:
        self.flows[flow(key)].remove(key)
        if not self.flows[flow(key)]:
            del self.flows[flow(key)]
            self.passed.pop(flow(key), None)

    @invariant()
    def emptiness_agrees(self) -> None:
        assert bool(self.turns) is bool(self.flows)


TestTurns = Reference.TestCase
TestTurns.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


@given(st.lists(st.tuples(FLOWS, st.integers(0, 3)), max_size=60))
def test_all_that_was_put_in_comes_out_once(put: list[tuple[tuple[str, str], int]]) -> None:
    keys = make(limits={"A": 1})
    for at, n in put:
        keys.add((*at, n), backlog=n % 2 == 0)
    assert {(*at, n) for at, n in put} == set(came := drain(keys))
    assert len(came) == len(set(came))
