"""Sources: fetched off the workers' path, known by how good they are, dropped when nobody reads them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from moorage.runtime import freshness, source
from tests.unit.runtime.fake_api import until


class Place:
    """Something to fetch from: each fetch waits for its answer."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answers: asyncio.Queue[Any] = asyncio.Queue()
        self.running = 0

    async def fetch(self, key: str) -> Any:
        self.asked.append(key)
        self.running += 1
        try:
            answer = await self.answers.get()
        finally:
            self.running -= 1
        if isinstance(answer, BaseException):
            raise answer
        return answer


@pytest.fixture
def place() -> Place:
    return Place()


@pytest.fixture
def woken() -> list[Any]:
    return []


Make = Callable[..., source.Source[str, Any]]


@pytest.fixture
async def make(place: Place, woken: list[Any]) -> AsyncIterator[Make]:
    made: list[source.Source[str, Any]] = []

    def one(**given: Any) -> source.Source[str, Any]:
        made.append(source.Source("place", place.fetch, woken.append, **{"backoff": (0.01, 0.02), **given}))
        return made[-1]

    yield one
    for each in made:
        await each.stop()


async def test_news_wakes_its_readers_and_sameness_does_not(make: Make, place: Place, woken: list[Any]) -> None:
    it = make(every=0.01)
    assert it.read("k", "r1") == freshness.not_yet("place")
    it.read("k", "r2")
    place.answers.put_nowait(1)
    await until(lambda: sorted(woken) == ["r1", "r2"])
    fact = it.read("k", "r1")
    assert isinstance(fact, freshness.Fresh)
    assert fact.value == 1
    place.answers.put_nowait(1)
    await until(lambda: len(place.asked) == 3)
    assert len(woken) == 2


async def test_a_refresh_during_a_fetch_fetches_once_more(make: Make, place: Place, woken: list[Any]) -> None:
    it = make()
    it.read("k", "r")
    await until(lambda: place.running)
    for _ in range(3):
        it.refresh("k")
    place.answers.put_nowait("old")
    await until(lambda: len(place.asked) == 2)
    place.answers.put_nowait("new")
    await until(lambda: freshness.value_of(it.read("k", "r")) == "new")
    assert (len(place.asked), woken) == (2, ["r", "r"])


async def test_a_refresh_asked_for_by_the_woken_reader_itself_is_not_lost(place: Place) -> None:
    it: source.Source[str, Any] = source.Source("place", place.fetch, lambda _: it.refresh("k"))
    it.read("k", "r")
    place.answers.put_nowait(1)
    await until(lambda: len(place.asked) == 2)
    await it.stop()


async def test_forgotten_while_fetching_ends_the_fetch_and_another_reader_keeps_it(
    make: Make, place: Place, woken: list[Any]
) -> None:
    it = make()
    it.read("k", "r1")
    it.read("k", "r2")
    await until(lambda: place.running)
    it.forget("r1")
    assert place.running == 1
    it.forget("r2")
    await until(lambda: not place.running)
    it.read("k", "r3")
    await until(lambda: place.running)
    place.answers.put_nowait(1)
    await until(lambda: woken == ["r3"])


async def test_a_reader_that_comes_back_at_once_gets_a_fetch_of_its_own(make: Make, place: Place) -> None:
    it = make()
    it.read("k", "r")
    it.forget("r", keep=())
    assert it.read("k", "r") == freshness.not_yet("place")
    await until(lambda: place.running == 1)
    it.forget("r", keep=("k",))
    place.answers.put_nowait(1)
    await until(lambda: freshness.value_of(it.read("k", "r")) == 1)


async def test_who_follows_a_key_needs_no_other_and_others_keep_theirs(
    make: Make, place: Place, woken: list[Any]
) -> None:
    it = make()
    it.follow("old", "r1")
    it.read("shared", "r1")
    it.read("shared", "r2")
    await until(lambda: place.running == 2)
    assert it.follow("new", "r1") == freshness.not_yet("place")
    await until(lambda: place.asked == ["old", "shared", "new"] and place.running == 2)
    place.answers.put_nowait(1)
    place.answers.put_nowait(2)
    await until(lambda: sorted(woken) == ["r1", "r2"])
    assert freshness.value_of(it.follow("new", "r1")) == 2
    assert it.peek("old") == freshness.not_yet("place")
    assert freshness.value_of(it.peek("shared")) == 1
    assert place.asked == ["old", "shared", "new"]


@pytest.mark.parametrize(
    ("error", "reason", "transient"),
    [
        (source.SourceError("Missing", "no such chart", transient=False), "Missing", False),
        (source.SourceError("Down", "registry is down"), "Down", True),
        (ValueError("hunter2"), "Unavailable", True),
        (asyncio.CancelledError(), "Unavailable", True),
    ],
)
async def test_a_failure_is_told_and_tried_again(
    make: Make, place: Place, woken: list[Any], error: BaseException, reason: str, transient: bool
) -> None:
    it = make()
    it.read("k", "r")
    place.answers.put_nowait(error)
    await until(lambda: woken)
    fact = it.read("k", "r")
    assert isinstance(fact, freshness.Failed)
    assert (fact.reason, fact.transient) == (reason, transient)
    assert "hunter2" not in fact.message
    place.answers.put_nowait("good")
    await until(lambda: freshness.value_of(it.read("k", "r")) == "good")


async def test_the_last_good_value_is_kept_as_stale_unless_the_failure_is_final(make: Make, place: Place) -> None:
    it = make(every=0.001)
    it.read("k", "r")
    place.answers.put_nowait(1)
    await until(lambda: freshness.value_of(it.read("k", "r")) == 1)
    place.answers.put_nowait(source.SourceError("Down", "registry is down"))
    await until(lambda: isinstance(it.read("k", "r"), freshness.Stale))
    stale = it.read("k", "r")
    assert isinstance(stale, freshness.Stale)
    assert (stale.value, stale.why) == (1, "registry is down")
    place.answers.put_nowait(source.SourceError("Gone", "deleted", transient=False))
    await until(lambda: isinstance(it.read("k", "r"), freshness.Failed))


async def test_a_fetch_that_hangs_times_out_and_gives_its_slot_back(make: Make, place: Place) -> None:
    it = make(deadline=0.01, concurrency=1, backoff=(10.0, 10.0))
    it.read("a", "r")
    it.read("b", "r")
    await until(lambda: place.asked == ["a", "b"])
    await until(lambda: isinstance(fact := it.read("b", "r"), freshness.Failed) and fact.reason == "TimedOut")


async def test_stop_ends_everything(make: Make, place: Place) -> None:
    it = make(every=0.001)
    it.read("k", "r")
    await until(lambda: place.running)
    await it.stop()
    assert place.running == 0


# --- what is outdated by one's own doing


async def test_what_is_outdated_is_stale_at_once_and_fresh_when_read_anew(
    make: Make, place: Place, woken: list[Any]
) -> None:
    it = make()
    it.read("k", "r")
    place.answers.put_nowait(1)
    await until(lambda: isinstance(it.read("k", "r"), freshness.Fresh))
    known = it.read("k", "r")
    assert isinstance(known, freshness.Fresh)

    it.outdate("k", "a member joins")

    assert freshness.Stale(1, known.at, "a member joins") == it.read("k", "r")
    await until(lambda: place.running)
    place.answers.put_nowait(1)
    await until(lambda: isinstance(it.read("k", "r"), freshness.Fresh))
    assert ["r", "r"] == woken, "that the same is known for sure again is news"


async def test_a_fetch_that_ran_meanwhile_may_have_read_before_and_is_repeated(
    make: Make, place: Place, woken: list[Any]
) -> None:
    it = make()
    it.read("k", "r")
    await until(lambda: place.running)

    it.outdate("k", "first")
    it.outdate("k", "second")
    place.answers.put_nowait("old")
    await until(lambda: len(place.asked) == 2)

    stale = it.read("k", "r")
    assert isinstance(stale, freshness.Stale)
    assert ("old", "second") == (stale.value, stale.why)
    place.answers.put_nowait("old")
    await until(lambda: isinstance(it.read("k", "r"), freshness.Fresh))
    assert (2, ["r", "r"]) == (len(place.asked), woken)


async def test_a_fetch_that_waits_for_its_turn_reads_after_it_and_is_not_repeated(make: Make, place: Place) -> None:
    it = make(concurrency=1)
    it.read("a", "r")
    it.read("b", "r")
    await until(lambda: place.running)

    it.outdate("b", "before it was read")
    place.answers.put_nowait(1)
    place.answers.put_nowait(2)
    await until(lambda: isinstance(it.read("b", "r"), freshness.Fresh))

    assert (["a", "b"], 0) == (place.asked, place.running)


async def test_what_failed_stays_failed_when_outdated_and_is_read_anew_without_back_off(
    make: Make, place: Place, woken: list[Any]
) -> None:
    it = make(backoff=(1000.0, 1000.0))
    it.read("k", "r")
    place.answers.put_nowait(source.SourceError("Down", "it is down"))
    await until(lambda: woken)

    it.outdate("k", "a write")

    assert freshness.Failed("Down", "it is down") == it.read("k", "r")
    place.answers.put_nowait(1)
    await until(lambda: isinstance(it.read("k", "r"), freshness.Fresh))


async def test_a_fetch_that_fails_after_that_leaves_it_stale(make: Make, place: Place) -> None:
    it = make(backoff=(1000.0, 1000.0))
    it.read("k", "r")
    place.answers.put_nowait(1)
    await until(lambda: isinstance(it.read("k", "r"), freshness.Fresh))

    it.outdate("k", "a write")
    place.answers.put_nowait(source.SourceError("Down", "it is down"))
    await until(lambda: isinstance(fact := it.read("k", "r"), freshness.Stale) and fact.why == "it is down")

    assert 1 == freshness.value_of(it.read("k", "r"))


async def test_what_nobody_reads_is_not_outdated(make: Make, place: Place) -> None:
    it = make()

    it.outdate("k", "a write")

    assert freshness.not_yet("place") == it.read("k", "r")
    await until(lambda: place.running)
    assert ["k"] == place.asked


async def test_a_key_without_a_pace_is_looked_at_once(make: Make, place: Place) -> None:
    pace: dict[str, float | None] = {"passing": 0.001, "lasting": None}
    it = make(every=lambda key: pace[key])
    for key in pace:
        it.read(key, "r")
    for answer in range(1000):
        place.answers.put_nowait(answer)
    await until(lambda: place.asked.count("passing") >= 5)

    assert 1 == place.asked.count("lasting")


async def test_each_key_has_its_own_pace_asked_for_anew_each_time(make: Make, place: Place) -> None:
    pace = {"busy": 0.001, "idle": 1000.0}
    it = make(every=lambda key: pace[key])
    for key in pace:
        it.read(key, "r")
    for answer in range(1000):
        place.answers.put_nowait(answer)
    await until(lambda: place.asked.count("busy") >= 5)
    assert 1 == place.asked.count("idle")

    pace["busy"], pace["idle"] = 1000.0, 0.001
    before = place.asked.count("busy")
    it.refresh("idle")
    await until(lambda: place.asked.count("idle") >= 5)
    assert place.asked.count("busy") <= before + 1, "what was under way, and no more"


async def test_who_is_to_be_asked_more_often_is_asked_at_once(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not who is to be asked as often as before, or less; nor at the first word, as who is read is asked anyway."""
    paces, asked = source.Paces[str](1000.0), list[str]()
    both = make(every=paces.of), make(every=paces.of)
    for each in both:
        monkeypatch.setattr(each, "refresh", asked.append)
    assert 1000.0 == paces.of("k")

    for seconds in (500.0, 500.0, 900.0):
        paces.set("k", seconds, *both)
        assert seconds == paces.of("k")
    assert [] == asked
    paces.set("k", 800.0, *both)
    assert ["k", "k"] == asked
    assert 1000.0 == paces.of("other")
    paces.forget("k")
    assert 1000.0 == paces.of("k")


async def test_what_was_outdated_behind_busy_slots_is_news_when_it_is_known_again(
    make: Make, place: Place, woken: list[Any]
) -> None:
    it = make(concurrency=1)
    it.read("k", "r")
    place.answers.put_nowait(1)
    await until(lambda: isinstance(it.read("k", "r"), freshness.Fresh))
    it.read("other", "r2")
    await until(lambda: place.running)

    it.refresh("k")
    await asyncio.sleep(0)
    it.outdate("k", "a write")
    assert isinstance(it.read("k", "r"), freshness.Stale)
    place.answers.put_nowait("other's")
    place.answers.put_nowait(1)
    await until(lambda: isinstance(it.peek("k"), freshness.Fresh))

    assert ["r", "r2", "r"] == woken, "who read that it was outdated hears that it no longer is"


# --- groups, and fetches that take long


async def test_a_group_that_hangs_takes_no_slot_of_another(make: Make, place: Place) -> None:
    it = make(concurrency=1, group=lambda key: key[0])
    for key in ("a1", "a2", "b1"):
        it.read(key, "r")
    await until(lambda: place.running == 2)

    assert ["a1", "b1"] == place.asked
    place.answers.put_nowait(1)
    place.answers.put_nowait(1)
    await until(lambda: place.asked == ["a1", "b1", "a2"])


async def test_all_groups_together_have_a_bound_too(make: Make, place: Place) -> None:
    it = make(concurrency=1, group=lambda key: key[0], together=2)
    for key in ("a", "b", "c"):
        it.read(key, "r")
    await until(lambda: place.running == 2)
    await asyncio.sleep(0)

    assert ["a", "b"] == place.asked
    place.answers.put_nowait(1)
    await until(lambda: place.asked == ["a", "b", "c"])
    assert [1] == list(it.known())


async def test_a_first_answer_that_takes_long_is_told_once_with_who_is_asked(
    make: Make, place: Place, woken: list[Any]
) -> None:
    it = make(patience=0.01, concurrency=1, deadline=30, place=lambda key: f"registry {key[0]}")
    it.read("a1", "r1")
    it.read("a2", "r2")
    await until(lambda: sorted(woken) == ["r1", "r2"])

    asked, waiting = it.read("a1", "r1"), it.read("a2", "r2")
    assert isinstance(asked, freshness.Failed)
    assert isinstance(waiting, freshness.Failed)
    assert (source.NO_ANSWER, True) == (asked.reason, asked.transient)
    assert asked.message.startswith("registry a has given no answer since 2")
    assert asked.message.endswith("; it gets 30 s")
    assert waiting.message.endswith("; requests before this one are not answered")
    place.answers.put_nowait(1)
    await until(lambda: freshness.value_of(it.read("a1", "r1")) == 1)
    assert 3 == len(woken)


async def test_what_is_known_stays_known_while_it_is_fetched_again(make: Make, place: Place, woken: list[Any]) -> None:
    it = make(patience=0.01, every=0.0)
    it.read("k", "r")
    place.answers.put_nowait(1)
    await until(lambda: len(place.asked) == 2)
    await asyncio.sleep(0.03)

    assert (1, ["r"]) == (freshness.value_of(it.read("k", "r")), woken)
