"""One run of a scenario: a user's acts, and one operator after another, each taking the place of one that was killed.

The operator's own requests pass its `faulty.Wire`; those of the helm that it starts pass a `proxy` that ends with it,
as a helm of a killed operator must not go on. `Points` numbers the writes of both, and ends a life at one of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from pathlib import Path
from typing import Any

import msgspec

from moorage.api import builtin, conditions, meta
from moorage.helm.runs import binary
from moorage.kube import client as kube_client
from moorage.kube import credentials, errors
from moorage.operators import system
from moorage.runtime import kind
from tests.api.runtime import operate

from . import faulty, observer, proxy, report, scenario, surroundings, waiting


class Deviation(AssertionError):
    """A disturbed run did not come out as the undisturbed one."""


class Points:
    """Numbers what all lives write, from 1 on, and says at which number one of them ends."""

    def __init__(self, kill: tuple[int, str] | None = None) -> None:
        self._kill = kill
        self.done: list[str] = []
        self.killed = ""
        """What was being written when it was killed."""

    def reached(self, what: str) -> str:
        """Count it, and say whether it is the end: "before", "after" or "" for no."""
        self.done.append(what)
        if self._kill is None or self.killed or len(self.done) != self._kill[0]:
            return ""
        self.killed = what
        return self._kill[1]


class Ending(msgspec.Struct):
    """What a run came to."""

    scenes: list[observer.State] = []
    """The state after each act that had settled."""

    made: Counter[str] = Counter()
    removed: Counter[str] = Counter()


class Stage:
    """What all runs share: a client that is never harmed, a folder, helm, and the kinds' definitions."""

    def __init__(self, client: kube_client.Client, admin: credentials.Credentials, folder: Path, helm: str) -> None:
        self.client, self.admin, self.folder, self.helm = client, admin, folder, helm
        self.certificate = proxy.Certificate(folder)

    async def define(self, of: scenario.Scenario) -> None:
        """Have the kinds of a scenario served."""
        for body in scenario.definitions(of):
            await self.client.apply(
                builtin.CRD, "", str(body["metadata"]["name"]), body, field_manager="test", force=True
            )

        async def served() -> bool:
            try:
                for each in of.own:
                    await self.client.list(of.resource(each), "default")
            except errors.ApiError:
                return False
            return True

        await waiting.until(served)


class Actor(operate.Operator):
    """One life of an operator."""

    def __init__(self, stage: Stage, played: scenario.Scenario, helm: proxy.Proxy, folder: Path, **more: Any) -> None:
        access = binary.KubeAccess(kubeconfig=str(helm.kubeconfig(folder / "kubeconfig")))
        namespace = played.namespaces[0]
        self._around = system.Environment("moorage-system", folder, Path(stage.helm), access, grace=1.0)
        self._played, self.helm = played, helm
        super().__init__(stage.client, namespace, pace=operate.QUICK, **more)

    def make(self, namespace: str, **more: Any) -> list[kind.Kind[Any, Any]]:
        """See `operate.Operator`."""
        return scenario.kinds(self._played, namespace, self._around)

    @property
    def sent(self) -> list[float]:
        """When each request was made, its helm's too."""
        return sorted([*self.wire.sent, *(it.at for it in self.helm.exchanges)])

    @property
    def ended(self) -> list[str]:
        """Of what it died, if nobody killed it."""
        died = self.task.done() and not self.task.cancelled() and self.task.exception()
        return [f"the operator has ended: {died!r}"] if died else []

    async def kill(self) -> None:
        """As SIGKILL: not one request more, by its helm neither."""
        await self.helm.close()
        await super().kill()


class Run:
    """A scenario in a namespace of its own. `plan` gives the faults of each life, by its number from 0 on.

    `patience` is a factor to the scenario's own. With `stale` what the scenario calls so is allowed. Of its acts the
    last `but` so many are not played.
    """

    def __init__(
        self,
        stage: Stage,
        path: Path,
        *,
        points: Points | None = None,
        plan: Callable[[int], faulty.Plan | None] = lambda _: None,
        patience: float = 1.0,
        stale: bool = False,
        but: int = 0,
    ) -> None:
        self.namespace = f"run-{uuid.uuid4().hex[:10]}"
        self.scenario = scenario.load(path, self.namespace, but=but)
        self.points = points or Points()
        allowed = self.scenario.stale if stale else ()
        self._once_more = {each for each in allowed if "." not in each}
        self._spared = [each for each in allowed if "." in each]
        self._patience = patience * self.scenario.patience
        self._stage, self._plan, self._client = stage, plan, stage.client
        self.lives: list[Actor] = []
        self._replacing = asyncio.Lock()
        self._around = surroundings.Around()
        self.seen: observer.Observer

    @property
    def actor(self) -> Actor:
        """Who acts now."""
        return self.lives[-1]

    @property
    def requests(self) -> int:
        """Of all lives, with their helm's."""
        return sum(len(life.sent) for life in self.lives)

    @property
    def busiest(self) -> int:
        """The most requests of one life in any one second."""
        return max(faulty.busiest(life.sent) for life in self.lives)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[Run]:
        """A namespace, somebody who watches, and an operator that is started again whenever it dies."""
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        await self._client.create(builtin.NAMESPACE, "", body, field_manager="user")
        counted = [self.scenario.resource(each) for each in self.scenario.count]
        self.seen = observer.Observer(self._client, self.scenario.namespaces, counted)
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(self._leave)
            stack.push_async_callback(self.seen.stop)
            await self.seen.start()
            around = surroundings.around(self.scenario.surroundings, self._client, self.namespace)
            self._around = await stack.enter_async_context(around)
            stack.push_async_callback(self._end)
            await self.start()
            self._keeper = asyncio.create_task(self._keep())
            yield self

    async def _end(self) -> None:
        self._keeper.cancel()
        await asyncio.gather(self._keeper, return_exceptions=True)
        for life in self.lives:
            await life.kill()

    async def start(self) -> None:
        """The next life."""
        helm = proxy.Proxy(self._stage.admin, self._stage.certificate)
        helm.judge = self._judge
        await helm.start()
        folder = self._stage.folder / f"{self.namespace}-{len(self.lives)}"
        folder.mkdir()
        plan = self._plan(len(self.lives))
        it = Actor(self._stage, self.scenario, helm, folder, plan=plan)
        it.wire.execs = self._around.execs
        harm = it.wire.fault
        it.wire.fault = lambda write: f"kill {when}" if (when := self.points.reached(write.what)) else harm(write)
        self.lives.append(it)

    def _judge(self, it: proxy.Exchange) -> str:
        """What becomes of a request of helm's."""
        if it.method == "GET":
            return ""
        what = faulty.Write(it.method, it.path.partition("?")[0], None, 0, 0.0).what
        when = self.points.reached(f"helm: {what}")
        if when:
            self.actor.wire.dead.set()
        return {"before": "stall", "after": "stall after", "": ""}[when]

    async def _keep(self) -> None:
        while True:
            if self.actor.wire.dead.is_set():
                await self.replace(self.actor)
            await asyncio.sleep(0.01)

    async def replace(self, who: Actor) -> None:
        """Kill who acts, and start the next, if nobody else has."""
        async with self._replacing:
            if who is self.actor:
                await who.kill()
                await self.start()

    # --- the story -----------------------------------------------------------------------------------------------

    async def play(
        self,
        wanted: list[observer.State] | None = None,
        *,
        after: Callable[[int], Awaitable[None]] | None = None,
    ) -> Ending:
        """All acts in order. With `wanted`, the state after each must become that of the undisturbed run.

        Raises Deviation. `after` is called when an act, by its number, has settled.
        """
        ending = Ending()
        for number, act in enumerate(self.scenario.story):
            await self._do(act)
            if act.settle:
                ending.scenes.append(await self._settled(act, wanted[len(ending.scenes)] if wanted else None))
            if after is not None:
                await after(number)
        await self.seen.caught_up()
        ending.made, ending.removed = self.seen.made.copy(), self.seen.removed.copy()
        return ending

    async def outcome(
        self,
        wanted: Ending,
        *,
        after: Callable[[int], Awaitable[None]] | None = None,
        again: Callable[[], int] = lambda: 1,
    ) -> str:
        """`report.GOOD` when the story, played here, ends as an undisturbed one; else how it deviates.

        `after` as in `play`; `again` as in `deviations`, asked when the story is over.
        """
        try:
            scenes = [observer.without(scene, self._spared) for scene in wanted.scenes]
            found = await self.play(scenes, after=after)
        except Deviation as error:
            return str(error)
        said = deviations(self.scenario, wanted, found, again=again(), once_more=self._once_more)
        return "; ".join(said) or report.GOOD

    async def _do(self, act: scenario.Act) -> None:
        if body := act.create:
            where = self._where(body["kind"], body["metadata"].get("namespace", ""))
            await self._client.create(*where, body, field_manager="user")
        if change := act.change:
            where = self._where(change.kind, change.namespace)
            await self._client.patch_merge(*where, change.name, change.merge, field_manager="user")
        if gone := act.delete:
            await self._client.delete(*self._where(gone.kind, gone.namespace), gone.name, propagation="Background")

    def _where(self, of: str, namespace: str) -> tuple[meta.Resource, str]:
        resource = self.scenario.resource(of)
        return resource, (namespace or self.namespace) if resource.namespaced else ""

    async def _settled(self, act: scenario.Act, wanted: observer.State | None) -> observer.State:
        try:
            if wanted is None:
                (found,) = await waiting.until(lambda: self._at_rest(act), within=self._patience)
            else:
                await waiting.until(lambda: self._equal(wanted), within=self._patience)
                found = wanted
        except TimeoutError:
            found = await self.state()
            why = observer.differences(wanted, found) if wanted else [f"not settled: {found}"]
            why = [*self.actor.ended, *why] or ["it never held still"]
            raise Deviation(f"after {_told(act)}: " + "; ".join(why)) from None
        return found

    async def state(self) -> observer.State:
        """All that is looked at, masked."""
        told = self.scenario
        looked = [told.resource(each) for each in told.look]
        ignore = (*told.ignore, *self._spared)
        found = await observer.state(self._client, looked, told.namespaces, ignore=ignore, masked=told.mask)
        beside: observer.State = observer.mask(self._around.state(), told.namespaces, told.mask)
        return found | beside

    async def _equal(self, wanted: observer.State) -> bool:
        return wanted == await self.state()

    async def _at_rest(self, act: scenario.Act) -> tuple[observer.State] | None:
        """The state once it is as it should be, and two looks with nothing written between them say the same."""
        written = len(self.actor.wire.writes)
        found = await self.state()
        if any("deletionTimestamp" in body.get("metadata", {}) for body in found.values()):
            return None  # what is going is no state to be compared with
        if not (all(map(_is_settled, self._own(found))) and self._expected(act, found) and self.actor.idle):
            return None
        await asyncio.sleep(0.3)  # the distance of the two looks
        await self.seen.caught_up()
        if self.seen.has_orphans:
            return None
        same = found == await self.state()
        return (found,) if same and self.actor.idle and written == len(self.actor.wire.writes) else None

    def _own(self, found: observer.State) -> list[dict[str, Any]]:
        return [body for key, body in found.items() if key.split()[0] in self.scenario.own]

    def _expected(self, act: scenario.Act, found: observer.State) -> bool:
        gone = act.delete and f"{act.delete.kind} {act.delete.name}" in found
        masked = [observer.mask(part, self.scenario.namespaces) for part in act.expect]
        return not gone and all(any(observer.holds(part, body) for body in found.values()) for part in masked)

    async def _leave(self) -> None:
        """Leave nothing behind that would keep the namespaces."""
        for each in self.scenario.own:
            resource = self.scenario.resource(each)
            for left in (await self._client.list(resource, self.namespace, as_=meta.Partial)).items:
                with contextlib.suppress(errors.NotFound):
                    free = {"metadata": {"finalizers": None}}
                    where = (resource, self.namespace, left.metadata.name)
                    await self._client.patch_merge(*where, free, field_manager="user")
        for namespace in self.scenario.namespaces:
            await self._client.delete(builtin.NAMESPACE, "", namespace, propagation="Background")


def _is_settled(body: dict[str, Any]) -> bool:
    status = body.get("status") or {}
    if "deletionTimestamp" in body["metadata"] or status.get("observedGeneration") != body["metadata"]["generation"]:
        return False
    stated = msgspec.convert(status.get("conditions") or [], tuple[conditions.Condition, ...])
    ready = conditions.find(stated, "Ready")
    return ready is not None and ready.status == "True"


def _told(act: scenario.Act) -> str:
    if act.create:
        return f"create {act.create['kind']} {act.create['metadata']['name']}"
    if act.change:
        return f"change {act.change.kind} {act.change.name}"
    return f"delete {act.delete.kind} {act.delete.name}" if act.delete else "nothing"


_UNDISTURBED: dict[tuple[Path, int], tuple[Ending, list[str]]] = {}


async def undisturbed(stage: Stage, path: Path, *, but: int = 0) -> tuple[Ending, list[str]]:
    """What a scenario comes to when nothing is harmed, and what is written in it; played once per process.

    Once more, rather: what differs by itself must be known before a fault is blamed for it.
    """
    if (path, but) not in _UNDISTURBED:
        await stage.define(scenario.load(path, "none"))
        async with Run(stage, path, but=but).running() as first:
            wanted = await first.play()
        async with Run(stage, path, but=but).running() as second:
            differs = deviations(second.scenario, wanted, await second.play(wanted.scenes))
            assert [] == differs, differs
        # what is said on the way is written more or less often, so the last writes of one are not reached by another
        _UNDISTURBED[path, but] = wanted, min(first.points.done, second.points.done, key=len)
    return _UNDISTURBED[path, but]


def deviations(
    played: scenario.Scenario, wanted: Ending, found: Ending, *, again: int = 1, once_more: Collection[str] = ()
) -> list[str]:
    """How a disturbed run's counts differ from the undisturbed one's.

    `again` is how often what the scenario names so may have been made and removed once more: by each fault once.
    One of each kind of `once_more` may have been made besides, and left or removed.
    """
    said = []
    for key in sorted(wanted.made.keys() | found.made.keys() | wanted.removed.keys() | found.removed.keys()):
        made, removed = found.made[key] - wanted.made[key], found.removed[key] - wanted.removed[key]
        kind = key.split()[0]
        allowed = (0 < made == removed <= again and kind in played.again) or (
            0 <= removed <= made <= 1 and kind in once_more
        )
        if (made or removed) and not allowed:
            said.append(f"{key}: made {made:+} and removed {removed:+} times against an undisturbed run")
    return said
