"""Sources: fetched off the workers' path, known by how good they are, dropped when nobody reads them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from moorage.runtime import observed, source
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
    assert it.read("k", "r1") == observed.not_yet("place")
    it.read("k", "r2")
    place.answers.put_nowait(1)
    await until(lambda: sorted(woken) == ["r1", "r2"])
    fact = it.read("k", "r1")
    assert isinstance(fact, observed.Fresh)
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
    await until(lambda: observed.value_of(it.read("k", "r")) == "new")
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
    assert it.read("k", "r") == observed.not_yet("place")
    await until(lambda: place.running == 1)
    it.forget("r", keep=("k",))
    place.answers.put_nowait(1)
    await until(lambda: observed.value_of(it.read("k", "r")) == 1)


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
    assert isinstance(fact, observed.Failed)
    assert (fact.reason, fact.transient) == (reason, transient)
    assert "hunter2" not in fact.message
    place.answers.put_nowait("good")
    await until(lambda: observed.value_of(it.read("k", "r")) == "good")


async def test_the_last_good_value_is_kept_as_stale_unless_the_failure_is_final(make: Make, place: Place) -> None:
    it = make(every=0.001)
    it.read("k", "r")
    place.answers.put_nowait(1)
    await until(lambda: observed.value_of(it.read("k", "r")) == 1)
    place.answers.put_nowait(source.SourceError("Down", "registry is down"))
    await until(lambda: isinstance(it.read("k", "r"), observed.Stale))
    stale = it.read("k", "r")
    assert isinstance(stale, observed.Stale)
    assert (stale.value, stale.why) == (1, "registry is down")
    place.answers.put_nowait(source.SourceError("Gone", "deleted", transient=False))
    await until(lambda: isinstance(it.read("k", "r"), observed.Failed))


async def test_a_fetch_that_hangs_times_out_and_gives_its_slot_back(make: Make, place: Place) -> None:
    it = make(deadline=0.01, concurrency=1, backoff=(10.0, 10.0))
    it.read("a", "r")
    it.read("b", "r")
    await until(lambda: place.asked == ["a", "b"])
    await until(lambda: isinstance(fact := it.read("b", "r"), observed.Failed) and fact.reason == "TimedOut")


async def test_stop_ends_everything(make: Make, place: Place) -> None:
    it = make(every=0.001)
    it.read("k", "r")
    await until(lambda: place.running)
    await it.stop()
    assert place.running == 0
