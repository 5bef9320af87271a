"""Why a run of helm failed, in words that help, looked up after it: helm tells only a part. I/O; writes nothing.

What can't be found out leaves helm's own words as they are.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from moorage.api import builtin, meta
from moorage.helm import observation, release_sources
from moorage.helm.charts import values
from moorage.helm.parsing import aside, jobs
from moorage.helm.release import records
from moorage.kube import discovery, errors

from . import binary, failures, preparing

_NO_KIND = re.compile(r'no matches for kind "([^"]+)" in version "([^"]+)"')
_REFUSED = re.compile(r'(?P<kind>\w+)(?:\.[\w.-]+)? "(?P<name>[^"]+)" is invalid')
_K = failures.FailureKind


class Failed(msgspec.Struct, frozen=True):
    """What is known of a run that failed: its attempt, and what it was given."""

    attempt: str
    error: binary.HelmFailed
    values: Mapping[str, Any] | None = None
    archive: Path | None = None
    hooks: tuple[observation.HookSeen, ...] = ()


class Found(msgspec.Struct, frozen=True):
    """The failure as it is told. `gone`: objects in the way of an uninstall that a live look found absent."""

    kind: failures.FailureKind
    message: str
    gone: tuple[meta.Identity, ...] = ()


async def explain(
    place: preparing.Place, served: discovery.Discovery, failed: Failed, record: release_sources.Loaded | None
) -> Found:
    """The failure with what helm does not say."""
    said = str(failed.error)
    kind = failed.error.kind
    if kind is _K.FORBIDDEN:
        kind = failures.classify(said, place.target.namespace)
    found = Found(kind, said)
    with contextlib.suppress(errors.KubeError, aside.AsideError, *jobs.ERRORS.values()):
        match kind:
            case _K.FORBIDDEN if (refusal := failures.refusal(said)) is not None:
                found = Found(kind, f"{said}; the account has no rights by {refusal.rule}")
            case _K.IMMUTABLE:
                found = Found(kind, said + await _changed(place, failed))
            case _K.RECORD_TOO_LARGE:
                found = Found(kind, f"{_sizes(failed)}; helm said: {said}")
            case _K.UNKNOWN_KIND:
                found = Found(kind, said + await _other_versions(served, said))
            case _K.NOT_REMOVED if record is not None:
                found = await _not_removed(place, served, record, said)
            case _K.HOOK_FAILED | _K.TIMED_OUT if failed.hooks:
                found = Found(kind, f"{said}; {'; '.join(str(hook) for hook in failed.hooks[:3])}")
    return found


async def _changed(place: preparing.Place, failed: Failed) -> str:
    """What the failed revision changes in the object that was refused, against the deployed one, as paths."""
    refused, history = _REFUSED.search(failed.error.message), await preparing.history(place)
    deployed = [each for each in history if each.metadata.labels.get("status") == "deployed"]
    if refused is None or not deployed or history[-1].metadata.labels.get(observation.ATTEMPT_LABEL) != failed.attempt:
        return ""
    before, after = [await _data(place, each.metadata.name) for each in (deployed[-1], history[-1])]
    kind, name = refused["kind"], refused["name"]
    paths = await place.aside.run(place.target.namespace, jobs.changed, before, after, kind, name)
    return f"; changed is {', '.join(paths[:10])}" if paths else ""


async def _data(place: preparing.Place, record: str) -> str:
    found = await place.client.get(builtin.SECRET, place.target.namespace, record, as_=release_sources.SecretView)
    return found.data.get("release", "")


def _sizes(failed: Failed) -> str:
    chart = failed.archive.stat().st_size if failed.archive is not None and failed.archive.exists() else 0
    given = len(values.encode(failed.values or {}))
    return (
        f"chart ({chart} bytes, packed) and values ({given} bytes) are too big together: helm keeps them in a Secret, "
        f"which holds {records.MAX_SECRET} bytes"
    )


async def _other_versions(served: discovery.Discovery, said: str) -> str:
    found = _NO_KIND.search(said)
    if found is None:
        return ""
    kind, api_version = found.groups()
    served.invalidate(api_version.rpartition("/")[0])
    try:
        resource = await served.served(api_version, kind)
    except errors.NotFound:
        return f"; no version of {kind} is served"
    return f"; {kind} is served in {resource.api_version}"


async def _not_removed(
    place: preparing.Place, served: discovery.Discovery, record: release_sources.Loaded, said: str
) -> Found:
    """Which object helm could not delete: each is asked for, and its deletion tried without being carried out."""
    gone: list[meta.Identity] = []
    refusals: list[errors.ApiError] = []
    for item in record.seen.inventory:
        if item.hook or item.keep:
            continue
        try:
            resource = await served.served(item.ref.api_version, item.ref.kind)
            live = await place.client.get(
                resource, place.target.namespace, item.ref.name, as_=meta.Partial, metadata_only=True
            )
            await place.client.delete(
                resource,
                place.target.namespace,
                item.ref.name,
                uid=live.metadata.uid,
                propagation="Background",
                dry_run=True,
            )
        except errors.NotFound:
            gone.append(item.ref.identity)
        except errors.ApiError as refusal:
            refusals.append(refusal)
    if not refusals:
        return Found(_K.NOT_REMOVED, said, tuple(gone))
    words = "; ".join(refusal.status.message for refusal in refusals[:5])
    kind = failures.classify(words, place.target.namespace)
    refused = failures.refusal(words)
    rule = f"; the account has no rights by {refused.rule}" if refused is not None else ""
    return Found(kind, f"{said}: {words}{rule}", tuple(gone))
