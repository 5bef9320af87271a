"""Several leases, one for each shard, shared evenly among the processes that are there, without anybody counting them.

    a free lease           is taken by whoever sees it first
    one that has fewer     asks, by an annotation on a lease of the one that has the most, if that has two more at least
    one that is asked      lets the shard's passes and tasks end, then hands its lease to who asked; nobody waits for it
    one that leaves        drains, and gives all back
    one that dies          is waited for as with a single lease; whoever is first takes over, and is asked again

Each handover makes the numbers more even, so it ends. Where there are more processes than shards, some stand by.

Who divides the objects otherwise may have any of them. So there is one lease more, the very one of a single process
that has all: those who hold shards hold it together, in the name of their division, and renew it each. Nobody takes or
keeps a shard without it, and nobody gives it back, as others may count on it: it runs out after the last of them.

It alone says which shards are held. The lease of a shard that was lost without being given is not survived, as with one
lease alone: `hold` returns and the process ends. What can go wrong: a handover is lost on the way, then the lease runs
out and is taken by whoever is first; a shard does not get quiet in time, then it stays until it is asked for again.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import math
import random
from collections.abc import AsyncIterator, Awaitable, Callable

import structlog

from moorage.runtime import cancellation

from . import election, shards

log = structlog.get_logger(__name__)

TRIES = 3
"""How often the lease of the division is tried at once, as others may just be renewing it."""


class Balancer:
    """One process's part. `whole` is the lease of the division, held in common.

    `news` is what the elections set when they hear of a lease that is free.
    `taken` and `given` are told of shards that come and go; `tasks_end` waits for a shard's tasks.
    """

    def __init__(
        self,
        among: shards.Shards,
        elections: list[election.Election],
        whole: election.Election,
        *,
        timing: election.Timing,
        drain: float,
        taken: Callable[[shards.Shard], None],
        given: Callable[[shards.Shard], None],
        tasks_end: Callable[[shards.Shard], Awaitable[None]],
        news: asyncio.Event,
        is_stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._shards, self._elections, self._whole = among, elections, whole
        self._timing, self._drain = timing, drain
        self._taken, self._given, self._tasks_end, self._is_stopping = taken, given, tasks_end, is_stopping
        self._holds: dict[int, asyncio.Task[None]] = {}
        self._answered: dict[int, election.Ask | None] = {}
        self._giving: asyncio.Task[None] | None = None
        self._dividing: asyncio.Task[None] | None = None
        self._lost, self._news = asyncio.Event(), news

    async def acquire(self) -> None:
        """Wait until this process holds a shard."""
        async with self._listening():
            while not self._holds:
                await self._round()
                if not self._holds:
                    await self._pause()

    async def hold(self) -> None:
        """Hold what is held, and balance, until a lease is lost. All gates are closed on return."""
        balancing = asyncio.create_task(self._balance(), name="balance")
        lost = asyncio.create_task(self._lost.wait(), name="lost")
        try:
            await asyncio.wait({balancing, lost}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await cancellation.cancel(balancing, lost, within=self._timing.margin)
            await self._let_go()

    async def release(self) -> None:
        """Give all back that is still ours, a request that took one may have been under way. Call after the drain."""
        await self._let_go()
        await asyncio.gather(*(each.release() for each in self._elections))

    async def _let_go(self) -> None:
        ending = [*self._holds.values(), *(task for task in (self._giving, self._dividing) if task)]
        self._holds.clear()  # so that what ends now is not taken for lost
        self._dividing = None
        for shard in self._shards.all:
            shard.gate.open_until(None)
            shard.held = shard.giving = False
        await cancellation.cancel(*ending, within=self._timing.margin)

    async def _balance(self) -> None:
        async with self._listening():
            while True:
                await self._pause()
                if not self._is_stopping():
                    await self._round()

    async def _pause(self) -> None:
        """Until it is time for another round, or a lease is heard to be free."""
        wait = self._timing.retry * random.uniform(0.8, 1.2)  # noqa: S311 - jitter
        others = [self._elections[shard.number].due for shard in self._shards.all if not shard.held]
        others += [] if self._dividing else [self._whole.due]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(wait, *others, math.inf)):
                await self._news.wait()
        self._news.clear()

    @contextlib.asynccontextmanager
    async def _listening(self) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            for each in (*self._elections, self._whole):
                await stack.enter_async_context(each.listening())
            yield

    async def _round(self) -> None:
        """Take what is free, ask for what is fair, give what was asked for."""
        others = [shard for shard in self._shards.all if not shard.held]
        random.shuffle(others)  # so that those who come together don't go for the same
        free = [shard for shard in others if await self._elections[shard.number].look()]
        if free and not await self._are_divided_so():
            return
        for shard in free:
            if await self._elections[shard.number].take():
                self._take(shard)
        await self._ask()
        self._give_what_is_asked_for()

    async def _are_divided_so(self) -> bool:
        """Whether the division is ours; from then on it is held."""
        if self._dividing is not None and not self._dividing.done():
            return True
        for _ in range(TRIES):
            if await self._whole.attempt():
                break
            if self._whole.holder not in ("", self._whole.identity):
                log.warning("nothing taken while others divide the objects otherwise", holder=self._whole.holder)
                return False
        else:
            return False
        self._dividing = asyncio.create_task(self._whole.hold(), name="division")
        self._dividing.add_done_callback(self._divided_otherwise)
        return True

    def _divided_otherwise(self, hold: asyncio.Task[None]) -> None:
        if self._dividing is hold:
            self._lost.set()

    def _take(self, shard: shards.Shard) -> None:
        mine = self._elections[shard.number]
        self._answered[shard.number] = mine.asked  # what was asked of another
        shard.held = True
        hold = self._holds[shard.number] = asyncio.create_task(mine.hold(), name=f"lease-{shard.number}")
        hold.add_done_callback(lambda task: self._ended(shard, task))
        log.info("shard taken", shard=shard.number, held=len(self._holds))
        self._taken(shard)

    def _ended(self, shard: shards.Shard, hold: asyncio.Task[None]) -> None:
        if self._holds.get(shard.number) is hold:
            shard.held = False
            self._lost.set()

    async def _ask(self) -> None:
        """Of the process that has the most one lease, if that has at least two more than this one."""
        held = collections.Counter(each.holder for each in self._elections)
        mine = held.pop(self._elections[0].identity, 0)
        held.pop("", None)
        if not held or max(held.values()) - mine < 2:
            return
        richest = max(held, key=lambda holder: held[holder])
        theirs = [each for each in self._elections if each.holder == richest]
        await random.choice(theirs).ask(mine)  # noqa: S311 - any of them

    def _give_what_is_asked_for(self) -> None:
        if self._giving is not None and not self._giving.done():
            return
        for shard in self._shards.held:
            wish = self._elections[shard.number].asked
            if wish is None or wish == self._answered.get(shard.number):
                continue
            self._answered[shard.number] = wish
            if len(self._holds) - wish.holds >= 2:
                self._giving = asyncio.create_task(self._give(shard, wish.identity), name=f"give-{shard.number}")
                return

    async def _give(self, shard: shards.Shard, to: str) -> None:
        shard.giving = True
        try:
            async with asyncio.timeout(self._drain):
                await shard.idle()
                await self._tasks_end(shard)
        except TimeoutError:
            log.info("shard not given, as it does not get quiet", shard=shard.number, seconds=self._drain)
            shard.giving = False
            self._taken(shard)  # what was asked for meanwhile went by
            return
        await self._hand_over(shard, to)

    async def _hand_over(self, shard: shards.Shard, to: str) -> None:
        """Its gate is closed before the lease goes."""
        hold = self._holds.pop(shard.number)
        await cancellation.cancel(hold, within=self._timing.margin)
        shard.gate.open_until(None)
        shard.held = shard.giving = False
        log.info("shard given", shard=shard.number, to=to, held=len(self._holds))
        self._given(shard)
        await self._elections[shard.number].release(to)
