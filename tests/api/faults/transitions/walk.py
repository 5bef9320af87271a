"""Makes the trips of one object: changes it, waits for what must come of it, and looks at what that has cost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import msgspec

from moorage.api import conditions
from moorage.kube import client as kube_client
from moorage.kube import errors
from tests.api.faults import faulty, observer, run, waiting

from . import declared, schemas, trips

REST = 0.4
"""Seconds in which nothing may be written once it is settled."""

_COUNTED = "deployment.kubernetes.io/revision"
"""An annotation in which a controller counts how often pods were replaced."""

PASSES, REQUESTS = 10, 40
"""How many per second are no hot loop while something is under way, beside what a step may cost in any case."""


class Cost(msgspec.Struct):
    """What some steps have come to."""

    steps: int = 0
    ready: int = 0
    refused: int = 0
    still: int = 0
    same: int = 0
    passes: int = 0
    """The most of one step."""

    requests: int = 0

    def add(self, other: Cost) -> None:
        """Both together."""
        for name in ("steps", "ready", "refused", "still", "same"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.passes, self.requests = max(self.passes, other.passes), max(self.requests, other.requests)


class _Mark(msgspec.Struct, frozen=True):
    """Where everything stood before a step."""

    at: float
    passes: int
    requests: int
    faults: int
    writes: int
    helm: int


class Walk:
    """One object of a form, in a run of its own."""

    def __init__(
        self,
        it: run.Run,
        client: kube_client.Client,
        system: declared.System,
        form: declared.Form,
        schema: schemas.Schema,
    ) -> None:
        self._run, self._client, self._system, self._form, self._schema = it, client, system, form, schema
        self._resource = it.scenario.resource(form.kind)
        self._name = form.object["metadata"]["name"]
        self.cost = Cost()

    async def begin(self) -> None:
        """Make what is given, and the object; wait until all is settled."""
        for body in (*self._form.given, self._form.object):
            resource = self._run.scenario.resource(body["kind"])
            await self._client.create(resource, self._run.namespace, body, field_manager="user")
        await self._settled(declared.Verdict("ready"))
        self._home = await self._children()

    async def make(self, trip: trips.Trip) -> None:
        """Forward, and back. Raises run.Deviation."""
        *first, last = trip.moves
        if trip.how == "under way":
            await self._step(self._form.stir, declared.Verdict("ready"), wait=False)
        if trip.how == "one by one":
            for move in first:
                await self._step(move.merge, declared.verdict(self._form, self._schema, (move,)))
            first = []
        patch: Any = {}
        for move in (*first, last):
            patch = schemas.together(patch, move.merge)
        await self._step(patch, trip.verdict, wait=trip.how != "at once", cheap=trip.how == "settled")
        if trip.verdict.ends != "refused" or trip.how in ("under way", "one by one"):
            await self._back(trip.verdict)

    async def _step(self, patch: Any, due: declared.Verdict, *, wait: bool = True, cheap: bool = False) -> None:
        """One change of the spec; `cheap` means that another spelling of the same costs no write."""
        mark, before = self._mark(), await self._look()
        said = await self._try({"spec": patch})
        self.cost.steps += 1
        if said or due.ends == "refused":
            self.cost.refused += 1
            self._judge_refusal(said, due)
            if (await self._look())["metadata"]["generation"] != before["metadata"]["generation"]:
                raise run.Deviation("it was refused, and changed all the same")
            return
        if wait:
            await self._settled(due)
            setattr(self.cost, due.ends, getattr(self.cost, due.ends) + 1)
        else:
            await self._begun(mark)
        self._judge(mark)
        if due.same and cheap:
            self.cost.same += 1
            if wrote := list(self._wrote(mark)):
                raise run.Deviation(f"it is the same in other words, and cost {', '.join(wrote)}")

    async def _back(self, verdict: declared.Verdict) -> None:
        """To the spec of the beginning, by which all heals, without a hand."""
        mark = self._mark()
        ops = [{"op": "replace", "path": "/spec", "value": self._form.spec}]
        self.cost.steps += 1
        try:
            await self._client.patch_json(self._resource, self._run.namespace, self._name, ops, field_manager="user")
        except errors.ApiError as error:
            if not verdict.stays:
                raise run.Deviation(f"it can't be taken back: {error.status.message}") from None
            self._judge_refusal(error.status.message, declared.Verdict("refused", verdict.stays))
            return
        if verdict.stays:
            raise run.Deviation(f"it was taken back, although {verdict.stays} can't be")
        await self._settled(declared.Verdict("ready"), "back")
        self._judge(mark)
        if left := observer.differences(self._home, await self._children()):
            raise run.Deviation(f"taken back, it is not as before: {'; '.join(left)}")

    # --- what is done, and seen --------------------------------------------------------------------------------------

    async def _try(self, body: Any) -> str:
        """Change it; the words of the refusal, or nothing."""
        try:
            await self._client.patch_merge(self._resource, self._run.namespace, self._name, body, field_manager="user")
        except (errors.Invalid, errors.BadRequest) as error:
            return error.status.message or "refused without a word"
        return ""

    async def _look(self) -> dict[str, Any]:
        return await self._client.get(self._resource, self._run.namespace, self._name)

    async def _begun(self, mark: _Mark) -> None:
        """The operator has seen the change."""
        await waiting.until(lambda: self._run.actor.passes > mark.passes, within=self._system.patience)

    async def _settled(self, due: declared.Verdict, what: str = "") -> None:
        """It is as it must be, and stays so for a while without a write."""

        if due.ends == "ready" and self._form.rests:
            due = declared.Verdict("still", (self._form.rests,))

        async def is_settled() -> bool:
            if not holds(await self._look(), due):
                return False
            mark = self._mark()
            await asyncio.sleep(REST)  # that nothing is written can only be seen by looking for a while
            busy = due.ends == "ready" and not self._run.actor.idle
            return not busy and not list(self._wrote(mark, mine=True)) and holds(await self._look(), due)

        mark = self._mark()
        try:
            await waiting.until(is_settled, within=self._system.patience)
        except TimeoutError:
            last = list(self._wrote(mark, mine=True))[-5:]
            wanted = "Ready" if due.ends == "ready" else f"standing still, and naming one of {', '.join(due.words)}"
            stands = f"{_told(await self._look())}; last written: {', '.join(last) or 'nothing'}"
            raise run.Deviation(f"{what} not {wanted}, but {stands}".strip()) from None

    async def _children(self) -> observer.State:
        """What there is beside the kinds of the operator: what it holds, not how it came about."""
        told = self._run.scenario
        looked = [told.resource(each) for each in told.look if each not in told.own]
        found = await observer.state(self._client, looked, told.namespaces, ignore=told.ignore, masked=told.mask)
        return {key: _wanted(body) for key, body in found.items()}

    # --- what it has cost --------------------------------------------------------------------------------------------

    def _mark(self) -> _Mark:
        actor = self._run.actor
        return _Mark(
            at=time.monotonic(),
            passes=actor.passes,
            requests=len(actor.wire.sent),
            faults=actor.ends("InternalError") + actor.ends("DeadlineExceeded"),
            writes=len(actor.wire.writes),
            helm=len(actor.helm.exchanges),
        )

    def _wrote(self, mark: _Mark, *, mine: bool = False) -> Iterator[str]:
        """What was carried out since, of the operator and its helm; with `mine` the object's own status too."""
        actor = self._run.actor
        status = f"/{self._resource.plural}/{self._name}/status"
        for write in actor.wire.writes[mark.writes :]:
            if write.applied and (mine or not write.path.endswith(status)):
                yield write.what
        for it in actor.helm.exchanges[mark.helm :]:
            if it.method != "GET":
                yield f"helm: {faulty.Write(it.method, it.path.partition('?')[0], None, 0, 0.0).what}"

    def _judge(self, mark: _Mark) -> None:
        now = self._mark()
        seconds = now.at - mark.at
        passes, requests = now.passes - mark.passes, now.requests - mark.requests
        self.cost.passes = max(self.cost.passes, passes)
        self.cost.requests = max(self.cost.requests, requests)
        if now.faults > mark.faults:
            raise run.Deviation(f"{now.faults - mark.faults} passes broke off")
        if passes > self._system.passes + PASSES * seconds or requests > self._system.requests + REQUESTS * seconds:
            raise run.Deviation(f"a hot loop: {passes} passes and {requests} requests in {seconds:.1f} s")

    def _judge_refusal(self, said: str, due: declared.Verdict) -> None:
        if not said:
            raise run.Deviation("it was taken, although it is wrong")
        if due.ends != "refused":
            raise run.Deviation(f"it was refused, although it is right: {said}")
        if not any(word in said for word in due.words):
            raise run.Deviation(f"the refusal names none of {', '.join(due.words)}: {said}")


def holds(found: dict[str, Any], due: declared.Verdict) -> bool:
    """Whether an object says of its present spec what it must."""
    status = found.get("status") or {}
    if status.get("observedGeneration") != found["metadata"]["generation"]:
        return False
    ready = _ready(found)
    if due.ends == "ready":
        return ready.status == "True"
    return ready.status == "False" and any(word.lower() in ready.message.lower() for word in due.words)


def _ready(found: dict[str, Any]) -> conditions.Condition:
    stated = msgspec.convert((found.get("status") or {}).get("conditions") or [], tuple[conditions.Condition, ...])
    return conditions.find(stated, "Ready") or conditions.Condition(type="Ready", status="Unknown")


def _told(found: dict[str, Any]) -> str:
    ready = _ready(found)
    seen = (found.get("status") or {}).get("observedGeneration")
    late = "" if seen == found["metadata"]["generation"] else ", of an earlier spec"
    return f"Ready={ready.status} {ready.reason}: {ready.message}{late}"


def _wanted(body: dict[str, Any]) -> dict[str, Any]:
    """What somebody wanted of it."""
    kept = ("labels", "annotations", "ownerReferences", "finalizers")
    metadata = {key: body["metadata"][key] for key in kept if key in body["metadata"]}
    if _COUNTED in metadata.get("annotations", {}):
        metadata["annotations"] = {key: text for key, text in metadata["annotations"].items() if key != _COUNTED}
    return {part: body[part] for part in body if part != "status"} | {"metadata": metadata}
