"""Carries out decided actions in order, and stops at the first that did not happen.

Before each write it asks the gate (law 7) and the action's guards. What it writes is put into the caches from the
server's own answer, so that no later pass reads behind it (law 6). Whatever an action does, its outcome is one of four;
nothing is raised. It decides nothing.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Generic

import msgspec

from moorage.api import builtin, conditions, meta
from moorage.kube import client as kube_client
from moorage.kube import errors
from moorage.runtime import decision, error_text, gate, kind
from moorage.runtime.leading import installations
from moorage.runtime.reasons import Reason

from . import status

ACTION_LIMIT = 30.0
"""Seconds that one action with its guards may take; one request of it 15 s."""

PASS_LIMIT = 60.0
"""Seconds after which a pass begins no more actions, so that no object keeps a worker."""


_OPERATOR = f"/metadata/annotations/{installations.OPERATOR.replace('/', '~1')}"


class Executor(Generic[kind.O]):
    """The writing half of one pass over one object."""

    def __init__(self, of: kind.Kind[kind.O, Any], world: kind.World, obj: kind.O) -> None:
        self._kind, self._world, self._obj = of, world, obj
        self._other = world.client.as_(user) if (user := of.user(obj)) else world.client
        self._version = obj.metadata.resource_version
        """What the decision is based on: as observed, or as this pass itself has written it since."""

    async def carry_out(self, made: decision.Decision) -> tuple[status.Performed, ...]:
        """All actions of the decision in order; the first outcome that is not Ok is the last entry."""
        performed: list[status.Performed] = []
        ends = time.monotonic() + PASS_LIMIT
        act = self._try if self._world.traces is None else self._traced
        for step, action in _planned(made):
            late = time.monotonic() > ends
            outcome = decision.Conflict("the pass took too long; it goes on anew") if late else await act(step, action)
            performed.append(status.Performed(step, action, outcome))
            if not isinstance(outcome, decision.Ok):
                break
        return tuple(performed)

    async def write_status(self, fields: dict[str, Any], *, exact: bool = False) -> bool:
        """Merge `fields` (names as on the wire) into status; False when they hold already and nothing was written.

        `exact` refuses when the object is not as it was decided on. Raises what the client raises, and NotLeading.
        """
        fresh = self._current()
        patch = status.difference(msgspec.to_builtins(fresh.status), msgspec.to_builtins(fields))
        if not patch:
            return False
        precondition = {"uid": fresh.metadata.uid}
        if exact:
            precondition["resourceVersion"] = self._version
        body = {"metadata": precondition, "status": patch}
        resource, (namespace, name) = self._kind.resource, fresh.metadata.key
        async with self._world.own_write(resource, namespace, name) as own:
            written = await self._world.client.patch_merge(
                resource,
                namespace,
                name,
                body,
                subresource="status",
                field_manager=decision.FIELD_MANAGER,
                as_=msgspec.Raw,
                timeout=self._world.gate.timeout(15.0),
            )
            self._took_self(own, written)
        self._world.pressure.eased()
        return True

    # --- from an action to its outcome ---------------------------------------------------------------------------

    async def _traced(self, step: str, action: decision.Action) -> decision.Outcome:
        assert self._world.traces is not None  # noqa: S101 - for the type checker
        return await self._world.traces.acting(step, action, self._try(step, action))

    async def _try(self, _: str, action: decision.Action) -> decision.Outcome:
        try:
            async with asyncio.timeout(self._world.gate.timeout(ACTION_LIMIT)):
                for guard in action.require:
                    if refusal := await self._kind.guards[guard.check](self._obj, guard.args):
                        return decision.Refused(Reason.GUARDED, f"{action.why}: not done, as {refusal}")
                self._world.gate.timeout(1.0)
                outcome = await self._do(action)
        except Exception as error:
            return self._outcome_of(error, action)
        if isinstance(action, decision.Create | decision.Apply | decision.Patch):
            self._world.pressure.eased()
        return outcome

    def _outcome_of(self, error: Exception, action: decision.Action) -> decision.Outcome:
        match error:
            case errors.Conflict() | errors.AlreadyExists() | errors.NotFound():
                return decision.Conflict(str(error))
            case errors.TooManyRequests():  # of an eviction by a disruption budget, which says nothing of the server
                after = error.retry_after if isinstance(action, decision.Evict) else self._world.pressure.told(error)
                return decision.Refused(Reason.THROTTLED, str(error), after)
            case errors.KubeError() if error.maybe_applied:
                return decision.Unknown(str(error), self._world.pressure.told(error))
            case errors.Invalid() | errors.BadRequest():  # why it was written names what is in it, where that differs
                return decision.Refused(error.status.reason or type(error).__name__, f"{action.why}: {error}")
            case errors.ApiError():
                return decision.Refused(error.status.reason or type(error).__name__, str(error))
            case errors.TransportError():
                return decision.Refused(Reason.NOT_SENT, str(error))
            case errors.KubeError():
                return decision.Refused(type(error).__name__, str(error))
            case gate.NotLeading():
                return decision.Refused(Reason.NOT_LEADING, str(error))
            case TimeoutError():
                return decision.Unknown(f"{action.why}: no answer within {ACTION_LIMIT:g} s")
        error_text.tell("action failed", error, action=type(action).__name__, why=action.why)
        return decision.Unknown(f"{action.why}: {error_text.words(error)}")

    def _though_done(self, error: Exception, action: decision.Action) -> decision.Unknown:
        """What failed came after the act, which has happened: it must not count as refused."""
        after = self._world.pressure.told(error) if isinstance(error, errors.KubeError) else 0.0
        return decision.Unknown(f"{action.why}: done, but what came of it is not known: {error}", after)

    async def _do(self, action: decision.Action) -> decision.Outcome:
        match action:
            case decision.Remember():
                await self.write_status(action.fields, exact=True)
                return decision.Ok()
            case decision.EditFinalizer():
                return await self._edit_finalizer(present=action.present)
            case decision.Create():
                return await self._create(action)
            case decision.Apply():
                return await self._apply(action)
            case decision.Patch():
                return await self._patch(action)
            case decision.Delete():
                return await self._delete(action)
            case decision.Evict():
                return await self._evict(action)
            case decision.SetPodCondition():
                return await self._set_pod_condition(action)
            case decision.Call():
                return await self._call(action)
            case decision.Run():
                return self._run(action)
        raise TypeError(f"no way to carry out {type(action).__name__}")

    # --- the reconciled object itself ----------------------------------------------------------------------------

    async def take_over(self, other: str) -> None:
        """Have the object bear our name in place of another's, or of none. Raises Conflict when that is not so."""
        there = self._obj.metadata.annotations
        ops: list[dict[str, Any]] = [{"op": "test", "path": "/metadata/uid", "value": self._obj.metadata.uid}]
        if there:
            ops.append({"op": "test", "path": _OPERATOR, "value": other or None})
        await self._patch_self([*ops, *_named(there, self._world.others.mine)])

    async def _edit_finalizer(self, *, present: bool) -> decision.Outcome:
        fresh = self._current()
        have, mine = list(fresh.metadata.finalizers), self._kind.finalizer
        if (mine in have) == present:
            return decision.Ok()
        wanted = [*have, mine] if present else [f for f in have if f != mine]
        where = "/metadata/finalizers"
        ops: list[dict[str, Any]] = [
            {"op": "test", "path": "/metadata/uid", "value": fresh.metadata.uid},
            {"op": "test", "path": where, "value": have or None},  # null: there are none
            {"op": "add", "path": where, "value": wanted} if wanted else {"op": "remove", "path": where},
        ]
        if present and self._world.others.mine:
            ops += _named(fresh.metadata.annotations, self._world.others.mine)
        await self._patch_self(ops)
        return decision.Ok()

    async def _patch_self(self, ops: list[dict[str, Any]]) -> None:
        resource, (namespace, name) = self._kind.resource, self._obj.metadata.key
        async with self._world.own_write(resource, namespace, name) as own:
            written = await self._world.client.patch_json(
                resource,
                namespace,
                name,
                ops,
                field_manager=decision.FIELD_MANAGER,
                as_=msgspec.Raw,
                timeout=self._world.gate.timeout(15.0),
            )
            self._took_self(own, written)

    def _took_self(self, own: kind.OwnWrite, written: msgspec.Raw) -> None:
        left = msgspec.json.decode(written, type=meta.Partial).metadata
        self._version = left.resource_version
        if left.deleting and not left.finalizers:
            own.gone()  # the server has removed it together with the last finalizer
        else:
            own.took(written)

    def _current(self) -> kind.O:
        """The object as the cache has it now, which includes this pass's own writes; same incarnation only."""
        fresh = self._kind.find(*self._obj.metadata.key)
        return fresh if fresh is not None and fresh.metadata.uid == self._obj.metadata.uid else self._obj

    # --- other objects -------------------------------------------------------------------------------------------

    def _client(self, action: decision.Action) -> kube_client.Client:
        """With whose rights the action is carried out."""
        return self._world.client if action.as_operator else self._other

    async def _create(self, action: decision.Create) -> decision.Outcome:
        namespace, name = _where(action.body)
        async with self._world.own_write(action.resource, namespace, name) as own:
            made = await self._client(action).create(
                action.resource,
                namespace,
                action.body,
                field_manager=decision.FIELD_MANAGER,
                as_=msgspec.Raw,
                timeout=self._world.gate.timeout(15.0),
            )
            own.took(made)
        return decision.Ok()

    async def _apply(self, action: decision.Apply) -> decision.Outcome:
        body = await self._kind.fillers[action.fill](self._obj, action.body) if action.fill else action.body
        await self._server_side_apply(action, action.resource, body, decision.FIELD_MANAGER)
        return decision.Ok()

    async def _server_side_apply(
        self,
        action: decision.Action,
        resource: meta.Resource,
        body: dict[str, Any],
        manager: str,
        subresource: str = "",
    ) -> None:
        namespace, name = _where(body)
        async with self._world.own_write(resource, namespace, name) as own:
            made = await self._client(action).apply(
                resource,
                namespace,
                name,
                body,
                field_manager=manager,
                subresource=subresource,
                as_=msgspec.Raw,
                timeout=self._world.gate.timeout(15.0),
            )
            self._world.verified.took(body, made)
            own.took(made)

    async def _patch(self, action: decision.Patch) -> decision.Outcome:
        ref = action.ref
        tests: list[dict[str, Any]] = [{"op": "test", "path": "/metadata/uid", "value": ref.uid}] if ref.uid else []
        async with self._world.own_write(action.resource, ref.namespace, ref.name) as own:
            made = await self._client(action).patch_json(
                action.resource,
                ref.namespace,
                ref.name,
                [*tests, *action.ops],
                field_manager=decision.FIELD_MANAGER,
                as_=msgspec.Raw,
                timeout=self._world.gate.timeout(15.0),
            )
            own.took(made)
        return decision.Ok()

    async def _delete(self, action: decision.Delete) -> decision.Outcome:
        ref = action.ref
        if not ref.uid:
            raise ValueError(f"a deletion must name the incarnation it saw: {ref}")
        async with self._world.own_write(action.resource, ref.namespace, ref.name) as own:
            deletion = await self._client(action).delete(
                action.resource,
                ref.namespace,
                ref.name,
                uid=ref.uid,
                resource_version=action.resource_version,
                propagation=action.propagation,
                timeout=self._world.gate.timeout(15.0),
            )
            own.deleted(deletion)
        self._world.verified.forget(ref.uid)
        return decision.Ok()

    async def _evict(self, action: decision.Evict) -> decision.Outcome:
        """The answer to an eviction shows no pod, so it is read: the next look must not take it for untouched."""
        ref, client = action.ref, self._client(action)
        async with self._world.own_write(builtin.POD, ref.namespace, ref.name) as own:
            await client.evict(ref.namespace, ref.name, uid=ref.uid, timeout=self._world.gate.timeout(15.0))
            try:
                own.took(await client.get(builtin.POD, ref.namespace, ref.name, as_=msgspec.Raw))
            except errors.NotFound:
                own.gone()
            except errors.KubeError as error:
                return self._though_done(error, action)
        return decision.Ok()

    async def _set_pod_condition(self, action: decision.SetPodCondition) -> decision.Outcome:
        """Each type by a field manager of its own: what one manager leaves out of an apply is taken away."""
        condition = {
            "type": action.type,
            "status": str(action.status),
            "message": action.message,
            "lastTransitionTime": conditions.timestamp(time.time()),
        }
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": action.ref.name, "namespace": action.ref.namespace, "uid": action.ref.uid},
            "status": {"conditions": [condition]},
        }
        manager = f"{decision.FIELD_MANAGER}-{action.type}"[:128]
        await self._server_side_apply(action, builtin.POD, body, manager, "status")
        return decision.Ok()

    # --- the system's own operations -----------------------------------------------------------------------------

    async def _call(self, action: decision.Call) -> decision.Outcome:
        outcome = await self._kind.operations[action.operation](self._obj, action.args)
        if action.keep and isinstance(outcome, decision.Ok):
            try:
                await self.write_status(outcome.value)
            except (errors.KubeError, gate.NotLeading) as error:
                return self._though_done(error, action)
        return outcome

    def _run(self, action: decision.Run) -> decision.Outcome:
        operation, obj = self._kind.operations[action.task], self._obj
        return self._world.tasks.start(
            action.lane,
            action.task,
            str(action.args.get("attempt", "")),
            lambda: operation(obj, action.args),
            key=self._kind.key(*obj.metadata.key),
            deadline=action.deadline,
            through=self._world.gate,
        )


def _named(there: dict[str, str], operator: str) -> list[dict[str, Any]]:
    """The operations by which an object bears the name of who looks after it."""
    where = "/metadata/annotations"
    if there:
        return [{"op": "add", "path": _OPERATOR, "value": operator}]
    return [
        {"op": "test", "path": where, "value": None},
        {"op": "add", "path": where, "value": {installations.OPERATOR: operator}},
    ]


def _planned(made: decision.Decision) -> list[tuple[str, decision.AnyAction]]:
    if made.paused:
        return []
    acts = ((taken.name, taken.verdict) for taken in made.steps if isinstance(taken.verdict, decision.Act))
    return [(step, action) for step, act in acts for action in act.actions]


def _where(body: dict[str, Any]) -> tuple[str, str]:
    metadata = body["metadata"]
    return metadata.get("namespace", ""), metadata["name"]
