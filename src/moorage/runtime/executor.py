"""Carries out decided actions in order, and stops at the first that did not happen.

Before each write it asks the gate (law 7) and the action's guards. What it writes is put into the caches from the
server's own answer, so that no later pass reads behind it (law 6). It decides nothing.
"""

from __future__ import annotations

from typing import Any, Generic

import msgspec
import structlog

from moorage.api import kinds, meta
from moorage.kube import errors

from . import decision, election, kind, status

log = structlog.get_logger(__name__)

FIELD_MANAGER = "moorage"


class Executor(Generic[kind.O]):
    """The writing half of one kind."""

    def __init__(self, of: kind.Kind[kind.O, Any], world: kind.World) -> None:
        self._kind, self._world = of, world

    async def carry_out(self, obj: kind.O, made: decision.Decision) -> tuple[status.Performed, ...]:
        """All actions of the decision in order; the first outcome that is not Ok is the last entry."""
        performed: list[status.Performed] = []
        for taken in made.steps:
            if made.paused or not isinstance(taken.verdict, decision.Act):
                continue
            for action in taken.verdict.actions:
                outcome = await self._try(obj, action)
                performed.append(status.Performed(taken.name, action, outcome))
                if not isinstance(outcome, decision.Ok):
                    return tuple(performed)
        return tuple(performed)

    async def _try(self, obj: kind.O, action: decision.Action) -> decision.Outcome:
        try:
            for guard in action.require:
                if refusal := await self._kind.guards[guard.check](obj, guard.args):
                    return decision.Refused("Guarded", f"{action.why}: not done, as {refusal}")
            self._world.gate.timeout(1.0)
            return await self._do(obj, action)
        except (errors.Conflict, errors.AlreadyExists) as error:
            return decision.Conflict(str(error))
        except errors.NotFound as error:
            return decision.Conflict(str(error))
        except errors.TooManyRequests as error:
            return decision.Refused("Throttled", str(error))
        except errors.ServerError as error:
            return decision.Unknown(str(error))
        except errors.ApiError as error:
            return decision.Refused(error.status.reason or type(error).__name__, str(error))
        except errors.TransportError as error:
            return decision.Unknown(str(error)) if error.sent else decision.Refused("NotSent", str(error))
        except election.NotLeading as error:
            return decision.Refused("NotLeading", str(error))

    async def _do(self, obj: kind.O, action: decision.Action) -> decision.Outcome:
        match action:
            case decision.Remember():
                return await self.write_status(obj, action.fields, exact=True)
            case decision.EditFinalizer():
                return await self._edit_finalizer(obj, present=action.present)
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
                return await self._call(obj, action)
            case decision.Run():
                return self._run(obj, action)
        raise TypeError(f"no way to carry out {type(action).__name__}")

    # --- the reconciled object itself ----------------------------------------------------------------------------

    async def write_status(self, obj: kind.O, fields: dict[str, Any], *, exact: bool = False) -> decision.Outcome:
        """Merge `fields` (names as in the status Struct) into status, when that changes anything.

        `exact` refuses when the object moved since the cache last saw it. Raises what the client raises.
        """
        fresh = self._current(obj)
        patch = status.difference(msgspec.to_builtins(fresh.status), msgspec.to_builtins(fields))
        if not patch:
            return decision.Ok()
        precondition = {"uid": fresh.metadata.uid}
        if exact:
            precondition["resourceVersion"] = fresh.metadata.resource_version
        return await self._write_self(fresh, {"metadata": precondition, "status": patch})

    async def _write_self(self, obj: kind.O, body: dict[str, Any]) -> decision.Outcome:
        resource, (namespace, name) = self._kind.resource, obj.metadata.key
        async with self._world.own_write(resource, namespace, name) as own:
            written = await self._world.client.patch_merge(
                resource,
                namespace,
                name,
                body,
                subresource="status",
                field_manager=FIELD_MANAGER,
                as_=msgspec.Raw,
                timeout=self._world.gate.timeout(15.0),
            )
            own.took(written)
        return decision.Ok()

    async def _edit_finalizer(self, obj: kind.O, *, present: bool) -> decision.Outcome:
        fresh = self._current(obj)
        have, mine = list(fresh.metadata.finalizers), self._kind.finalizer
        if (mine in have) == present:
            return decision.Ok()
        wanted = [*have, mine] if present else [f for f in have if f != mine]
        ops: list[dict[str, Any]] = [{"op": "test", "path": "/metadata/uid", "value": fresh.metadata.uid}]
        if have:
            ops.append({"op": "test", "path": "/metadata/finalizers", "value": have})
        if wanted:
            ops.append({"op": "add", "path": "/metadata/finalizers", "value": wanted})
        else:
            ops.append({"op": "remove", "path": "/metadata/finalizers"})
        resource, (namespace, name) = self._kind.resource, obj.metadata.key
        async with self._world.own_write(resource, namespace, name) as own:
            written = await self._world.client.patch_json(
                resource,
                namespace,
                name,
                ops,
                field_manager=FIELD_MANAGER,
                as_=msgspec.Raw,
                timeout=self._world.gate.timeout(15.0),
            )
            left = msgspec.json.decode(written, type=meta.Partial).metadata
            if left.deleting and not left.finalizers:
                own.gone()
            else:
                own.took(written)
        return decision.Ok()

    def _current(self, obj: kind.O) -> kind.O:
        """The object as the cache has it now, which includes this pass's own writes; same incarnation only."""
        cache = self._world.caches.of(self._kind.resource, obj.metadata.namespace)
        fresh: kind.O | None = cache.get(*obj.metadata.key)
        return fresh if fresh is not None and fresh.metadata.uid == obj.metadata.uid else obj

    # --- other objects -------------------------------------------------------------------------------------------

    async def _create(self, action: decision.Create) -> decision.Outcome:
        namespace, name = _where(action.body)
        async with self._world.own_write(action.resource, namespace, name) as own:
            made = await self._world.client.create(
                action.resource,
                namespace,
                action.body,
                field_manager=FIELD_MANAGER,
                as_=msgspec.Raw,
                timeout=self._world.gate.timeout(15.0),
            )
            own.took(made)
        return decision.Ok()

    async def _apply(self, action: decision.Apply) -> decision.Outcome:
        namespace, name = _where(action.body)
        async with self._world.own_write(action.resource, namespace, name) as own:
            made = await self._world.client.apply(
                action.resource,
                namespace,
                name,
                action.body,
                field_manager=FIELD_MANAGER,
                as_=msgspec.Raw,
                timeout=self._world.gate.timeout(15.0),
            )
            own.took(made)
        return decision.Ok()

    async def _patch(self, action: decision.Patch) -> decision.Outcome:
        ref = action.ref
        tests: list[dict[str, Any]] = [{"op": "test", "path": "/metadata/uid", "value": ref.uid}] if ref.uid else []
        async with self._world.own_write(action.resource, ref.namespace, ref.name) as own:
            made = await self._world.client.patch_json(
                action.resource,
                ref.namespace,
                ref.name,
                [*tests, *action.ops],
                field_manager=FIELD_MANAGER,
                as_=msgspec.Raw,
                timeout=self._world.gate.timeout(15.0),
            )
            own.took(made)
        return decision.Ok()

    async def _delete(self, action: decision.Delete) -> decision.Outcome:
        if not action.ref.uid:
            raise ValueError(f"a deletion must name the incarnation it saw: {action.ref}")
        await self._world.client.delete(
            action.resource,
            action.ref.namespace,
            action.ref.name,
            uid=action.ref.uid,
            resource_version=action.resource_version,
            propagation=action.propagation,
            timeout=self._world.gate.timeout(15.0),
        )
        return decision.Ok()

    async def _evict(self, action: decision.Evict) -> decision.Outcome:
        await self._world.client.evict(
            action.ref.namespace, action.ref.name, uid=action.ref.uid, timeout=self._world.gate.timeout(15.0)
        )
        return decision.Ok()

    async def _set_pod_condition(self, action: decision.SetPodCondition) -> decision.Outcome:
        condition = {"type": action.type, "status": str(action.status), "message": action.message}
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": action.ref.name, "namespace": action.ref.namespace, "uid": action.ref.uid},
            "status": {"conditions": [condition]},
        }
        await self._world.client.apply(
            kinds.POD,
            action.ref.namespace,
            action.ref.name,
            body,
            field_manager=FIELD_MANAGER,
            subresource="status",
            timeout=self._world.gate.timeout(15.0),
        )
        return decision.Ok()

    # --- the system's own operations -----------------------------------------------------------------------------

    async def _call(self, obj: kind.O, action: decision.Call) -> decision.Outcome:
        outcome = await self._kind.operations[action.operation](obj, action.args)
        if action.into and isinstance(outcome, decision.Ok):
            await self.write_status(obj, {action.into: outcome.value})
        return outcome

    def _run(self, obj: kind.O, action: decision.Run) -> decision.Outcome:
        operation = self._kind.operations[action.task]
        return self._world.tasks.start(
            action.lane,
            action.task,
            str(action.args.get("attempt", "")),
            lambda: operation(obj, action.args),
            key=self._kind.key(*obj.metadata.key),
            deadline=action.deadline,
        )


def _where(body: dict[str, Any]) -> tuple[str, str]:
    metadata = body["metadata"]
    return metadata.get("namespace", ""), metadata["name"]
