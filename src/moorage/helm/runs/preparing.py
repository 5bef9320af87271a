"""What is put in order right before helm runs, as helm would only fail on it, each time anew. I/O.

Rewrites release records that name what is no longer served, deletes hooks of earlier runs that are in the way of the
same hooks now, and old records of a release that never came to be. Each look is a live one.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import structlog

from moorage.api import builtin, meta
from moorage.helm import observation, release_sources
from moorage.helm.parsing import aside, helm_yaml, jobs
from moorage.helm.release import claim, manifest, records
from moorage.kube import client as kube_client
from moorage.kube import discovery, errors

GONE_WITHIN = 20.0  # seconds that a deleted hook may take to be gone
_ENDING_KINDS = {("batch", "Job"): meta.Resource("batch", "v1", "Job", "jobs"), ("", "Pod"): builtin.POD}
log = structlog.get_logger(__name__)


class Place(msgspec.Struct, frozen=True):
    """Where is put in order, with whose rights, and how long a write may take: while the lease is held."""

    client: kube_client.Client
    target: observation.Target
    write_within: Callable[[float], float]
    aside: aside.Aside


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""


class _EndingStatus(msgspec.Struct, frozen=True):
    phase: str = ""
    conditions: tuple[_Condition, ...] = ()

    @property
    def ended_well(self) -> bool:
        return self.phase == "Succeeded" or any((c.type, c.status) == ("Complete", "True") for c in self.conditions)


class _Ending(msgspec.Struct, frozen=True):
    """A Job or a Pod, as far as it must be known how it ended."""

    metadata: meta.ObjectMeta
    status: _EndingStatus = _EndingStatus()


async def history(place: Place) -> list[meta.Partial]:
    """The records of the release by their metadata, oldest first."""
    found = await place.client.list(
        builtin.SECRET,
        place.target.namespace,
        labels=f"{records.SELECTOR},name={place.target.release}",
        as_=meta.Partial,
        metadata_only=True,
    )
    numbered: list[tuple[int, meta.Partial]] = []
    for each in found.items:
        with contextlib.suppress(records.RecordError):
            numbered.append((records.Revision.from_metadata(each.metadata).number, each))
    return [each for _, each in sorted(numbered, key=lambda pair: pair[0])]


async def mend_records(place: Place, served: discovery.Discovery, gone: Iterable[meta.Identity] = ()) -> None:
    """The records that helm begins from name only what is there, in versions that are served.

    Helm asks for each object by the version in the record, and fails on one that the cluster no longer serves: neither
    an upgrade nor an uninstall is possible then. Such objects are named by a version that is served now, and those of
    which no version is served have gone with their definition. `gone`: objects that a live look found absent.
    """
    found = await history(place)
    absent = tuple(gone)
    for each in found:
        if each is found[-1] or each.metadata.labels.get("status") == "deployed":
            await _mend_record(place, served, each.metadata.name, absent)


async def _mend_record(place: Place, served: discovery.Discovery, name: str, absent: tuple[meta.Identity, ...]) -> None:
    namespace = place.target.namespace
    secret = await place.client.get(builtin.SECRET, namespace, name, as_=release_sources.SecretView)
    before = secret.data.get("release", "")
    try:
        versions = await _versions(served, await place.aside.run(namespace, jobs.kinds_of, before))
        if not absent and all(api_version == version for api_version, _, version in versions):
            return
        data = await place.aside.run(namespace, jobs.naming, before, versions, absent, namespace)
    except (records.RecordError, manifest.ManifestError, helm_yaml.TooLarge):
        return  # helm has its own words for it
    if data is None:
        return
    log.info("record names what is served", namespace=namespace, record=name)
    ops: list[dict[str, Any]] = [
        {"op": "test", "path": "/metadata/uid", "value": secret.metadata.uid},
        {"op": "test", "path": "/metadata/resourceVersion", "value": secret.metadata.resource_version},
        {"op": "replace", "path": "/data/release", "value": data},
    ]
    timeout = place.write_within(15.0)
    await place.client.patch_json(builtin.SECRET, namespace, name, ops, field_manager="moorage", timeout=timeout)


async def _versions(
    served: discovery.Discovery, wanted: tuple[tuple[str, str], ...]
) -> tuple[tuple[str, str, str], ...]:
    """Of each (apiVersion, kind) the version by which it can be reached now; empty where there is none."""
    for group in {api_version.rpartition("/")[0] for api_version, _ in wanted}:
        served.invalidate(group)
    found: list[tuple[str, str, str]] = []
    for api_version, kind in wanted:
        try:
            found.append((api_version, kind, (await served.served(api_version, kind)).api_version))
        except errors.NotFound:
            found.append((api_version, kind, ""))
    return tuple(found)


async def clear_hooks(place: Place, moment: str, *, all_policies: bool = False) -> None:
    """Jobs and Pods that hooks of this moment (install, upgrade, rollback, delete) left behind don't stop the next try.

    Helm itself deletes a hook's object of before only if the hook's policy says so; of any other one it takes what is
    there for the hook, failed as it may be. What ended well stays. `all_policies` takes away all there is.
    """
    try:
        found = await place.client.get(
            builtin.CONFIG_MAP, place.target.namespace, claim.name(place.target.release), as_=claim.ClaimObject
        )
        held = claim.read(found)
    except (errors.NotFound, manifest.ManifestError):  # a step tells of it
        return
    for item in held.inventory:
        resource = _ENDING_KINDS.get((item.ref.group, item.ref.kind))
        if item.hook and resource is not None:
            since = found.metadata.creation_timestamp
            await _clear_hook(place, resource, item.ref, moment, since, all_policies=all_policies)


async def _clear_hook(
    place: Place, resource: meta.Resource, ref: meta.ObjectRef, moment: str, since: str, *, all_policies: bool
) -> None:
    try:
        live = await place.client.get(resource, place.target.namespace, ref.name, as_=_Ending)
    except errors.NotFound:
        return
    if live.status.ended_well and not all_policies:  # helm goes on from it, which is what its policy says
        return
    events = manifest.words(live.metadata.annotations.get(manifest.HOOK))
    policies = manifest.words(live.metadata.annotations.get(manifest.HOOK_DELETE_POLICY))
    is_hook_of_ours = live.metadata.creation_timestamp >= since and {f"pre-{moment}", f"post-{moment}"} & set(events)
    stays_with_helm = bool(policies) and "before-hook-creation" not in policies
    if not is_hook_of_ours or not (stays_with_helm or all_policies):
        return
    log.info("hook of an earlier run is deleted", namespace=place.target.namespace, hook=str(ref))
    await place.client.delete(
        resource,
        place.target.namespace,
        ref.name,
        uid=live.metadata.uid,
        propagation="Background",
        timeout=place.write_within(15.0),
    )
    await _until_gone(place, resource, ref.name, live.metadata.uid)


async def _until_gone(place: Place, resource: meta.Resource, name: str, uid: str) -> None:
    """Helm makes a new one at once; one that stays, as a finalizer keeps it, is for helm to tell of."""
    loop = asyncio.get_running_loop()
    end = loop.time() + GONE_WITHIN
    while loop.time() < end:
        try:
            live = await place.client.get(resource, place.target.namespace, name, as_=meta.Partial, metadata_only=True)
        except errors.NotFound:
            return
        if live.metadata.uid != uid:
            return
        await asyncio.sleep(0.2)


async def bound_history(place: Place, limit: int) -> None:
    """Records of failed installs before the last ones go: helm bounds the history of upgrades alone."""
    found = await history(place)
    for each in found[: max(0, len(found) - limit + 1)]:
        if each.metadata.labels.get("status") == "failed":
            await place.client.delete(
                builtin.SECRET,
                place.target.namespace,
                each.metadata.name,
                uid=each.metadata.uid,
                propagation="Background",
                timeout=place.write_within(15.0),
            )
