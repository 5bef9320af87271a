"""The ConfigMaps and Secrets that versions are given: read by the clock, as they are the users' own, and not watched.

No value leaves this module but in the body of the Secret that a version's containers read mongo's address from.
"""

from __future__ import annotations

import base64
import hashlib
import urllib.parse
from collections.abc import Callable
from typing import Any

import msgspec

from moorage.api import builtin
from moorage.kube import client as kube_client
from moorage.operators import named_data
from moorage.operators.kre import kinds
from moorage.runtime import kind, source

from . import inputs, pods

_RESOURCES = {inputs.CONFIG_MAP: builtin.CONFIG_MAP, inputs.SECRET: builtin.SECRET}


class Given:
    """Those of all versions. `within` gives what acts in a namespace and nowhere else; `every` is in seconds."""

    def __init__(self, world: kind.World, within: Callable[[str], kube_client.Client], every: float) -> None:
        self._within = within
        self.source: source.Source[inputs.Asked, inputs.Read] = source.Source(
            "inputs",
            self._look,
            world.enqueue,
            every=every,
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
        found = await named_data.read(self._within(namespace), _RESOURCES[kind_], namespace, name)
        if found is None:
            return None
        data, binary = found.get("data") or {}, found.get("binaryData") or {}
        if kind_ == inputs.SECRET:
            metadata = found["metadata"]
            return inputs.Found(frozenset(data), f"{metadata['uid']} {metadata['resourceVersion']}")
        text = msgspec.json.encode((data, binary), order="deterministic")
        return inputs.Found(frozenset((*data, *binary)), hashlib.blake2b(text, digest_size=16).hexdigest())

    async def address(self, namespace: str, body: dict[str, Any]) -> dict[str, Any]:
        """The body of the Secret with mongo's address, from the Runtime's credentials as its servers take them now."""
        found = await self._within(namespace).get(builtin.SECRET, namespace, kinds.IN_USE)
        texts = named_data.texts(builtin.SECRET, found)
        user, password = (urllib.parse.quote(texts.get(key, ""), safe="") for key in inputs.MONGO_KEYS)
        uri = f"mongodb://{user}:{password}@{kinds.workload('mongo')}:27017/?authSource=admin"
        return {**body, "data": {pods.URI: base64.b64encode(uri.encode()).decode()}}
