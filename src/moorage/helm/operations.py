"""What a helm engine may do: the operations that Run and Call actions name, and the guards they ask.

It alone runs helm against a release, sets a dead record to failed, and repairs objects in helm's name.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from moorage.api import builtin, comparison, managed_fields, meta
from moorage.kube import client as kube_client
from moorage.kube import discovery, errors
from moorage.runtime import decision, kind, reasons

from . import observation, release_sources
from .parsing import aside, helm_yaml, jobs
from .reasons import Reason
from .release import claim, drift, field_ownership, records
from .runs import binary, failure_causes, failures, preparing, redaction, scaling_live

Body = dict[str, Any]
INTERRUPTED = "interrupted: no helm is at work that would end it"
TRY_AGAIN = 300.0  # seconds after which a refused repair is tried again though nothing has changed


class Job(msgspec.Struct, frozen=True):
    """Everything a run needs that is not in the decision, as it may hold secrets."""

    target: observation.Target
    policy: observation.Policy
    owner: meta.ObjectRef
    values: Mapping[str, Any] | None
    archive: Path | None
    record: release_sources.Loaded | None
    hooks: tuple[observation.HookSeen, ...] = ()


class NotAtHand(Exception):  # noqa: N818 - what happened
    """The chart that was decided on has gone from the cache since."""


class GivenUp(msgspec.Struct, frozen=True):
    """A repair that the server refused for what it is, and the states of object and record that this holds for."""

    version: str
    record: str
    words: str
    until: float  # on the monotonic clock


class Operations:
    """Operations and guards over one helm binary. `job` gives what is known of an object now."""

    def __init__(
        self,
        world: kind.World,
        served: discovery.Discovery,
        helm: binary.Helm,
        job: Callable[[Any], Job],
        user: Callable[[str], str],
        work: aside.Aside,
    ) -> None:
        self._world, self._helm, self._job, self._user = world, helm, job, user
        self._aside = work
        self._discovery = served
        self.settled: dict[meta.ObjectRef, frozenset[str]] = {}
        """Field paths that a repair did not change: a webhook has the last word there."""
        self.given_up: dict[meta.ObjectRef, GivenUp] = {}
        self.operations: dict[str, kind.Operation[Any]] = {
            "release.install": self.install,
            "release.upgrade": self.upgrade,
            "release.rollback": self.rollback,
            "release.uninstall": self.uninstall,
            "release.unlock": self.unlock,
            "release.leave_whole": self.leave_whole,
            "release.restore": self.restore,
        }
        self.guards: dict[str, kind.Check[Any]] = {
            "claim_is_mine": self.claim_is_mine,
            "claim_is_not_mine": self.claim_is_not_mine,
            "release_is_gone": self.release_is_gone,
        }

    def _within(self, namespace: str) -> kube_client.Client:
        """What acts in a release's namespace and nowhere else."""
        return self._world.client.as_(self._user(namespace))

    def forget(self, ref: meta.ObjectRef) -> None:
        """The object is no longer of a release."""
        self.settled.pop(ref, None)
        self.given_up.pop(ref, None)

    def _place(self, target: observation.Target) -> preparing.Place:
        return preparing.Place(self._within(target.namespace), target, self._world.gate.timeout, self._aside)

    # --- long runs -------------------------------------------------------------------------------

    async def install(self, obj: Any, args: dict[str, Any]) -> decision.Outcome:
        """Install, also where all revisions so far have failed, to the digest that was decided on."""
        job = self._job(obj)

        async def run(place: preparing.Place) -> binary.Done:
            archive, values = _given(job)
            await preparing.bound_history(place, job.policy.history_limit)
            await preparing.clear_hooks(place, "install")
            return await self._helm.install(
                job.target.release,
                job.target.namespace,
                archive,
                values,
                **_marks(args),
                **_limits(job),
                take_ownership=bool(args.get("adopt")),
                as_user=place.client.user,
                scaled=await scaling_live.look(place.client, self._discovery, _objects(job)),
            )

        return await self._helm_run(obj, args, run)

    async def upgrade(self, obj: Any, args: dict[str, Any]) -> decision.Outcome:
        """Upgrade to the digest that was decided on."""
        job = self._job(obj)

        async def run(place: preparing.Place) -> binary.Done:
            archive, values = _given(job)
            await preparing.mend_records(place, self._discovery)
            await preparing.clear_hooks(place, "upgrade")
            return await self._helm.upgrade_install(
                job.target.release,
                job.target.namespace,
                archive,
                values,
                **_marks(args),
                **_limits(job),
                history_max=job.policy.history_limit,
                take_ownership=bool(args.get("adopt")),
                as_user=place.client.user,
                scaled=await scaling_live.look(place.client, self._discovery, _objects(job)),
            )

        return await self._helm_run(obj, args, run)

    async def rollback(self, obj: Any, args: dict[str, Any]) -> decision.Outcome:
        """Back to an earlier revision."""
        job = self._job(obj)
        release, namespace, revision = job.target.release, job.target.namespace, int(args["to"])

        async def run(place: preparing.Place) -> binary.Done:
            await preparing.mend_records(place, self._discovery)
            await preparing.clear_hooks(place, "rollback")
            found = await scaling_live.look(place.client, self._discovery, _objects(job))
            record = records.Revision(namespace, release, revision, "")
            async with scaling_live.recorded(place.client, self._world.gate, self._aside, record, found):
                return await self._helm.rollback(
                    release,
                    namespace,
                    revision,
                    **_limits(job),
                    history_max=job.policy.history_limit,
                    as_user=place.client.user,
                )

        return await self._helm_run(obj, args, run, works_with=revision)

    async def uninstall(self, obj: Any, args: dict[str, Any]) -> decision.Outcome:
        """Remove what the record names, and the record."""
        job = self._job(obj)

        async def run(place: preparing.Place) -> binary.Done:
            await preparing.mend_records(place, self._discovery)
            if job.policy.delete_hooks:
                await preparing.clear_hooks(place, "delete")
            return await self._helm.uninstall(
                job.target.release,
                job.target.namespace,
                **_limits(job),
                hooks=job.policy.delete_hooks,
                as_user=place.client.user,
            )

        return await self._helm_run(obj, args, run)

    async def _helm_run(
        self,
        obj: Any,
        args: dict[str, Any],
        run: Callable[[preparing.Place], Awaitable[binary.Done]],
        *,
        works_with: int = 0,
    ) -> decision.Outcome:
        """One run. Its words may quote the record before it, the one that it `works_with`, and the one that it made."""
        job = self._job(obj)
        place = self._place(job.target)
        earlier = await self._secrets(job.target, works_with) if works_with else {}
        try:
            done = await run(place)
        except NotAtHand:
            return decision.Refused(reasons.Reason.MOVED, "the chart is no longer at hand; looked at again")
        except aside.AsideError as error:
            return decision.Refused(failures.FailureKind.NO_SPACE, str(error))
        except errors.KubeError as error:
            said = await _told(str(error), job, earlier)
            return decision.Refused(_kind(error, job.target.namespace), failures.shorten(said))
        except binary.HelmFailed as error:
            failed = failure_causes.Failed(str(args["attempt"]), error, job.values, job.archive, self._job(obj).hooks)
            found = await failure_causes.explain(place, self._discovery, failed, job.record)
            if found.gone:
                await preparing.mend_records(place, self._discovery, found.gone)
            made = await self._secrets(job.target, job.record.seen.revision + 1 if job.record else 1)
            return decision.Refused(found.kind, failures.shorten(await _told(found.message, job, earlier, made)))
        return decision.Ok(done.revision)

    async def _secrets(self, target: observation.Target, revision: int) -> redaction.Secrets:
        """What may be secret in that revision's record, if there is one that can be read."""
        name = f"sh.helm.release.v1.{target.release}.v{revision}"
        try:
            found = await self._within(target.namespace).get(
                builtin.SECRET, target.namespace, name, as_=release_sources.SecretView
            )
            kept = await self._aside.run(target.namespace, jobs.record, found.data.get("release", ""))
        except (errors.KubeError, aside.AsideError, ValueError):
            return {}
        return kept.secrets

    # --- short operations ------------------------------------------------------------------------

    async def unlock(self, obj: Any, args: dict[str, Any]) -> decision.Outcome:
        """Set a record that is left pending to failed, or to `status`, exactly in the state in which it was seen."""
        namespace = self._job(obj).target.namespace
        name, version = str(args["secret"]), str(args["resourceVersion"])
        client = self._within(namespace)
        live = await client.get(builtin.SECRET, namespace, name, as_=release_sources.SecretView)
        if live.metadata.uid != args["uid"] or live.metadata.resource_version != version:
            return decision.Conflict(f"record {name} moved")
        status, description = str(args.get("status", "failed")), str(args.get("description", INTERRUPTED))
        try:
            data, labels = await self._aside.run(
                namespace, jobs.with_status, live.data.get("release", ""), status, description
            )
        except aside.AsideError as error:
            return decision.Unknown(str(error))
        except (records.RecordError, helm_yaml.TooLarge) as error:
            return decision.Refused(Reason.RECORD_BROKEN, f"record {name} can't be set to {status}: {error}")
        ops: list[dict[str, Any]] = [
            {"op": "test", "path": "/metadata/uid", "value": args["uid"]},
            {"op": "test", "path": "/metadata/resourceVersion", "value": version},
            {"op": "replace", "path": "/data/release", "value": data},
        ]
        ops += [{"op": "add", "path": f"/metadata/labels/{k}", "value": v} for k, v in labels.items()]
        await client.patch_json(
            builtin.SECRET, namespace, name, ops, field_manager="moorage", timeout=self._world.gate.timeout(15.0)
        )
        return decision.Ok()

    async def leave_whole(self, obj: Any, _: dict[str, Any]) -> decision.Outcome:
        """Take away what hooks of an uninstall left that was given up, as it is nobody's from now on."""
        place = self._place(self._job(obj).target)
        with contextlib.suppress(errors.Forbidden):  # whoever leaves can't be kept by rights that were taken away
            await preparing.clear_hooks(place, "delete", all_policies=True)
        return decision.Ok()

    async def restore(self, obj: Any, args: dict[str, Any]) -> decision.Outcome:
        """Apply one recorded object again, in helm's name, so that the next upgrade goes on from it."""
        job = self._job(obj)
        ref = msgspec.convert(args["ref"], meta.ObjectRef)
        ref = msgspec.structs.replace(ref, uid="")
        if job.record is None or job.record.seen.revision != args["revision"] or ref not in job.record.objects:
            return decision.Conflict("the release moved")
        body = job.record.objects[ref]
        client = self._within(job.target.namespace)
        resource = await self._discovery.resource(ref.api_version, ref.kind)
        try:
            live = await client.get(resource, ref.namespace, ref.name)
        except errors.NotFound:
            live = None
        wanted = drift.desired(body, job.target.release, job.target.namespace)
        if not await self._differing(ref, wanted, live, self.settled.get(ref, frozenset())):
            return decision.Ok()  # put right meanwhile
        again = drift.restore_body(body, job.target.release, job.target.namespace, live=live)
        if live is not None and (edited := comparison.renamed(wanted, live, manager=drift.MANAGER)):
            live = await self._take_over(client, resource, ref, live, edited) or live
        try:
            made = await self._apply(client, resource, ref, again)
        except errors.Invalid as refusal:
            # what somebody has put beside it can't be there with it
            taken = await self._take_over(client, resource, ref, live, (field_ownership.SPEC,)) if live else None
            if taken is None:
                return self._given_up(ref, live, job.record, await _told(str(refusal), job))
            try:
                made = await self._apply(client, resource, ref, again)
            except errors.Invalid as still:
                return self._given_up(ref, taken, job.record, await _told(str(still), job))
        self.given_up.pop(ref, None)
        self.settled[ref] = await self._differing(ref, wanted, made) - {comparison.THE_OBJECT}
        return decision.Ok()

    async def _differing(
        self, ref: meta.ObjectRef, wanted: Body, live: Body | None, settled: frozenset[str] = frozenset()
    ) -> frozenset[str]:
        """The field paths that differ; THE_OBJECT where it is gone, or is too large to tell."""
        try:
            found = await self._aside.run(ref.namespace, jobs.differing, wanted, live, tuple(settled))
        except (helm_yaml.TooLarge, aside.AsideError):
            return frozenset({comparison.THE_OBJECT})
        return frozenset(found)

    def _given_up(
        self, ref: meta.ObjectRef, live: dict[str, Any] | None, record: release_sources.Loaded, words: str
    ) -> decision.Outcome:
        """Refused for what it is: not tried again before something changed, so that all else goes on."""
        version = str((live or {}).get("metadata", {}).get("resourceVersion", ""))
        self.given_up[ref] = GivenUp(version, record.seen.resource_version, words, time.monotonic() + TRY_AGAIN)
        return decision.Refused(reasons.Reason.INVALID, words)

    async def _take_over(
        self,
        client: kube_client.Client,
        resource: meta.Resource,
        ref: meta.ObjectRef,
        live: dict[str, Any],
        places: tuple[managed_fields.Path, ...],
    ) -> dict[str, Any] | None:
        """Make it helm's what others have set there, so that the next apply takes it away; None if there is none."""
        taking = field_ownership.ops(live, drift.MANAGER, places)
        if not taking:
            return None
        ops = [{"op": "test", "path": "/metadata/uid", "value": live["metadata"]["uid"]}, *taking]
        write = functools.partial(client.patch_json, resource, ref.namespace, ref.name, ops)
        return await self._write(resource, ref, write)

    async def _apply(
        self, client: kube_client.Client, resource: meta.Resource, ref: meta.ObjectRef, body: dict[str, Any]
    ) -> dict[str, Any]:
        write = functools.partial(client.apply, resource, ref.namespace, ref.name, body)
        return await self._write(resource, ref, write)

    async def _write(
        self, resource: meta.Resource, ref: meta.ObjectRef, write: Callable[..., Awaitable[msgspec.Raw]]
    ) -> dict[str, Any]:
        """One write in helm's name; returns the object as the server now has it."""
        async with self._world.own_write(resource, ref.namespace, ref.name) as own:
            made = await write(field_manager=drift.MANAGER, as_=msgspec.Raw, timeout=self._world.gate.timeout(15.0))
            own.took(made)
        decoded: dict[str, Any] = msgspec.json.decode(made)
        return decoded

    # --- guards: live reads right before a destructive act ---------------------------------------

    async def claim_is_mine(self, obj: Any, args: dict[str, Any]) -> str:
        """The claim, read live, names this owner."""
        held = await self._live_claim(self._job(obj).target)
        if held is None:
            return "the claim is gone"
        return "" if held.owner.uid == args["uid"] else f"the claim is {held.owner}'s"

    async def claim_is_not_mine(self, obj: Any, args: dict[str, Any]) -> str:
        """No claim, read live, names this owner."""
        held = await self._live_claim(self._job(obj).target)
        return "the claim is there" if held is not None and held.owner.uid == args["uid"] else ""

    async def release_is_gone(self, obj: Any, args: dict[str, Any]) -> str:
        """The claim is this owner's, and no record of the release is left, both read live."""
        if refusal := await self.claim_is_mine(obj, args):
            return refusal
        target = self._job(obj).target
        left = await self._within(target.namespace).list(
            builtin.SECRET,
            target.namespace,
            labels=f"{records.SELECTOR},name={target.release}",
            as_=meta.Partial,
            metadata_only=True,
        )
        return f"{len(left.items)} release records are left" if left.items else ""

    async def _live_claim(self, target: observation.Target) -> observation.ClaimSeen | None:
        try:
            found = await self._within(target.namespace).get(
                builtin.CONFIG_MAP, target.namespace, claim.name(target.release), as_=claim.ClaimObject
            )
        except errors.NotFound:
            return None
        return claim.read(found)


async def _told(said: str, job: Job, *more: redaction.Secrets) -> str:
    """The words without what may be secret in the record that is known, or in `more`."""
    target, record = job.target, job.record
    known = {text: name for secrets in (record.secrets if record else {}, *more) for text, name in secrets.items()}
    keep = {target.release, target.namespace, *(record.names if record else ())}
    return await asyncio.to_thread(redaction.redact, said, known, keep)


def _kind(error: errors.KubeError, namespace: str) -> failures.FailureKind:
    """Of what the API server said, or did not, before helm was begun."""
    match error:
        case errors.Conflict():
            return failures.FailureKind.CONFLICT
        case errors.ServerError() | errors.TooManyRequests() | errors.TransportError():
            return failures.FailureKind.NOT_REACHABLE
    found = failures.classify(str(error), namespace)
    if found is failures.FailureKind.NOT_FOUND:  # no chart or version was asked for yet: a record went meanwhile
        return failures.FailureKind.CONFLICT
    return found


def _given(job: Job) -> tuple[Path, Mapping[str, Any]]:
    """Chart and values. Raises NotAtHand."""
    if job.values is None or job.archive is None:
        raise NotAtHand
    return job.archive, job.values


def _objects(job: Job) -> dict[meta.ObjectRef, dict[str, Any]]:
    return job.record.objects if job.record else {}


def _marks(args: dict[str, Any]) -> dict[str, Any]:
    """By which the revision is known again."""
    attempt = str(args["attempt"])
    labels = {observation.ATTEMPT_LABEL: attempt, observation.DIGEST_LABEL: str(args["digest"])}
    return {"digest_labels": labels, "description": observation.marker(attempt)}


def _limits(job: Job) -> dict[str, Any]:
    """How long hooks and the whole run may take."""
    return {"timeout": job.policy.hook_timeout, "limit": job.policy.run_limit}
