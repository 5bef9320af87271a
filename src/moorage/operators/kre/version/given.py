"""The ConfigMaps and Secrets that versions are given: read by the clock, as they are the users' own, and not watched.

No value leaves this module but in the body of the Secret that a version's containers read mongo's address from.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import urllib.parse
from collections.abc import Callable
from typing import Any

import msgspec

from moorage.api import builtin, meta
from moorage.kube import client as kube_client
from moorage.kube import errors
from moorage.operators.kre import kinds
from moorage.runtime import kind, source

from . import inputs, pods

EVERY = 30.0
"""Seconds between two looks."""

_RESOURCES = {inputs.CONFIG_MAP: builtin.CONFIG_MAP, inputs.SECRET: builtin.SECRET}


class _Held(msgspec.Struct, frozen=True, rename="camel"):
    metadata: meta.ObjectMeta
    data: dict[str, str] | None = None
    binary_data: dict[str, str] | None = None


class Given:
    """Those of all versions. `within` gives what acts in a namespace and nowhere else."""

    def __init__(self, world: kind.World, within: Callable[[str], kube_client.Client]) -> None:
        self._within = within
        self.source: source.Source[inputs.Asked, inputs.Read] = source.Source(
            "inputs",
            self._look,
            world.enqueue,
            every=EVERY,
            concurrency=4,
            together=32,
            group=lambda asked: asked.namespace,
        )

    async def stop(self) -> None:
        """End all looking."""
        await self.source.stop()

    async def _look(self, asked: inputs.Asked) -> inputs.Read:
        return {ref: await self._found(asked.namespace, *ref) for ref in asked.refs}

    async def _found(self, namespace: str, kind_: str, name: str) -> inputs.Found | None:
        try:
            found = await self._within(namespace).get(_RESOURCES[kind_], namespace, name, as_=_Held)
        except errors.NotFound:
            return None
        data, binary = found.data or {}, found.binary_data or {}
        if kind_ == inputs.SECRET:
            return inputs.Found(frozenset(data), f"{found.metadata.uid} {found.metadata.resource_version}")
        text = msgspec.json.encode((data, binary), order="deterministic")
        return inputs.Found(frozenset((*data, *binary)), hashlib.blake2b(text, digest_size=16).hexdigest())

    async def address(self, namespace: str, secret: str, body: dict[str, Any]) -> dict[str, Any]:
        """The body of the Secret with mongo's address, from the Runtime's credentials as they are now."""
        found = await self._within(namespace).get(builtin.SECRET, namespace, secret, as_=_Held)
        user, password = (_text(found, key) for key in inputs.MONGO_KEYS)
        uri = f"mongodb://{user}:{password}@{kinds.workload('mongo')}:27017/?authSource=admin"
        return {**body, "data": {pods.URI: base64.b64encode(uri.encode()).decode()}}


def _text(found: _Held, key: str) -> str:
    """As it may stand in an address."""
    try:
        return urllib.parse.quote(base64.b64decode((found.data or {}).get(key, "")).decode(), safe="")
    except (binascii.Error, UnicodeDecodeError):
        return ""
