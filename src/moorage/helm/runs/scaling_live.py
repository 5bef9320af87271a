"""What was scaled of a release's objects, read live, and carried through helm's runs. I/O.

An upgrade takes it through the post-renderer (see `post_renderer`). A rollback applies an old record as it is, so that
record says what is live while helm reads it, and what it said before when helm has ended: it alone is written here. A
death in between leaves an old revision with today's number of replicas.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import msgspec

from moorage.api import builtin, meta
from moorage.helm import release_sources
from moorage.helm.parsing import aside, helm_yaml, jobs
from moorage.helm.release import records
from moorage.kube import client as kube_client
from moorage.kube import discovery, errors
from moorage.runtime import gate as runtime_gate

from . import scaling

__all__ = ["look", "recorded"]


async def look(
    client: kube_client.Client, served: discovery.Discovery, objects: Mapping[meta.ObjectRef, dict[str, Any]]
) -> tuple[scaling.Scaled, ...]:
    """What was scaled of a record's objects."""
    found: list[scaling.Scaled] = []
    for ref, body in objects.items():
        if scaling.can_be_scaled(body):
            with contextlib.suppress(errors.NotFound):  # the object, or its kind
                resource = await served.resource(ref.api_version, ref.kind)
                found.extend(scaling.found(await client.get(resource, ref.namespace, ref.name)))
    return tuple(found)


@contextlib.asynccontextmanager
async def recorded(
    client: kube_client.Client,
    gate: runtime_gate.Gate,
    work: aside.Aside,
    revision: records.Revision,
    scaled: tuple[scaling.Scaled, ...],
) -> AsyncIterator[None]:
    """While it is entered the record of that revision carries what was scaled; without any, or a record, as it is."""
    before = ""

    async def carry(data: str) -> str:
        nonlocal before
        changed = await work.run(revision.namespace, jobs.carrying, data, scaled)
        before, data = changed or ("", data)
        return data

    async def put_back(data: str) -> str:
        return await work.run(revision.namespace, jobs.with_manifest, data, before)

    if scaled:
        await _rewrite(client, gate, revision, carry)
    try:
        yield
    finally:
        if before:
            # helm may have pruned it, or changed its status, meanwhile
            with contextlib.suppress(errors.ApiError, errors.TransportError, runtime_gate.NotLeading):
                await _rewrite(client, gate, revision, put_back)


async def _rewrite(
    client: kube_client.Client,
    gate: runtime_gate.Gate,
    revision: records.Revision,
    change: Callable[[str], Awaitable[str]],
) -> None:
    """Write the record as it is to be, if that is another. Of what is no record helm says so itself."""
    try:
        live = await client.get(
            builtin.SECRET, revision.namespace, revision.secret_name, as_=release_sources.SecretView
        )
        before = live.data.get("release", "")
        data = await change(before)
    except (errors.NotFound, records.RecordError, helm_yaml.TooLarge, aside.AsideError):
        return
    if data == before:
        return
    ops = [
        {"op": "test", "path": "/metadata/uid", "value": live.metadata.uid},
        {"op": "test", "path": "/metadata/resourceVersion", "value": live.metadata.resource_version},
        {"op": "replace", "path": "/data/release", "value": data},
    ]
    await client.patch_json(
        builtin.SECRET,
        revision.namespace,
        revision.secret_name,
        ops,
        field_manager="moorage",
        as_=msgspec.Raw,
        timeout=gate.timeout(15.0),
    )
