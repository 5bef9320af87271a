"""The Secret with a Runtime's credentials: read by the clock, and made once. What is in it never leaves this module.

But for mongo's administrator, as whom it is asked. A Secret that is there is taken as it is, whoever made it: volumes
that were kept can be read with what they were made with, and with nothing else.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import hashlib
import secrets
from collections.abc import Callable
from typing import Any

import msgspec

from moorage.api import builtin, meta
from moorage.kube import client as kube_client
from moorage.kube import errors
from moorage.operators.kre import kinds
from moorage.runtime import decision, freshness, kind, source

from . import types
from .control import CredentialsSeen

EVERY = 30.0
"""Seconds between two looks: the Secret may be the user's own, and so is not watched."""

KEYS = ("mongoUser", "mongoPassword", "minioAccessKey", "minioSecretKey")
READER_KEY = "mongoReaderPassword"
ADMINISTRATOR = "admin"
LEAST = {"minioAccessKey": 3, "minioSecretKey": 8}
"""Characters that MinIO wants of them."""

BYTES = 24
"""Of randomness in each password that is made."""

Place = tuple[str, str]
"""(namespace, name) of a Runtime."""


@dataclasses.dataclass(frozen=True)
class Given:
    """Where a spec says that the credentials are. Another spec is another: nothing that was read for it holds here."""

    place: Place
    secret: str
    named: bool
    reader: bool
    print: str  # of what stands in the spec itself
    in_clear: dict[str, str] = dataclasses.field(compare=False, repr=False)


def given(obj: types.Runtime) -> Given:
    """What `Credentials` are asked by."""
    wanted, clear = types.settings(obj.spec, obj.metadata.name), types.in_clear(obj.spec)
    digest = hashlib.blake2b(msgspec.json.encode(clear, order="sorted"), digest_size=16).hexdigest()
    return Given(obj.metadata.key, wanted.secret, wanted.named, wanted.reader, digest, clear)


class _Secret(msgspec.Struct, frozen=True):
    metadata: meta.ObjectMeta
    data: dict[str, str] = {}


class Credentials:
    """Those of all Runtimes. `within` gives what acts in a namespace and nowhere else."""

    def __init__(self, world: kind.World, within: Callable[[str], kube_client.Client]) -> None:
        self._world, self._within = world, within
        self._known: dict[Place, dict[str, str]] = {}
        self.source: source.Source[Given, CredentialsSeen] = source.Source(
            "credentials", self._look, world.enqueue, every=EVERY, concurrency=32
        )
        self.operations: dict[str, kind.Operation[types.Runtime]] = {"credentials.make": self._make}

    def seen(self, asked: Given, reader: kind.Key) -> freshness.Observed[CredentialsSeen]:
        """What there is to be known of them."""
        return self.source.follow(asked, reader)

    def forget(self, place: Place, reader: kind.Key) -> None:
        """The Runtime is gone."""
        self.source.forget(reader)
        self._known.pop(place, None)

    async def stop(self) -> None:
        """End all looking."""
        await self.source.stop()

    def mongo(self, place: Place) -> tuple[str, str] | None:
        """(user, password) of mongo's administrator, once they are known."""
        known = self._known.get(place)
        return (known["mongoUser"], known["mongoPassword"]) if known else None

    def reader(self, place: Place) -> str:
        """The password of the user that only reads; empty where there is none."""
        return self._known.get(place, {}).get(READER_KEY, "")

    async def _look(self, asked: Given) -> CredentialsSeen:
        namespace = asked.place[0]
        try:
            found = await self._within(namespace).get(builtin.SECRET, namespace, asked.secret, as_=_Secret)
        except errors.NotFound:  # what somebody has deleted meanwhile is made as it was
            return CredentialsSeen(known=asked.place in self._known or set(KEYS) <= asked.in_clear.keys())
        texts = _texts(found)
        keys = (*KEYS, READER_KEY) if asked.reader else KEYS
        fault = next(filter(None, (_fault(key, texts.get(key)) for key in keys)), "")
        if not fault:
            self._known[asked.place] = texts
        clear = {} if asked.named else asked.in_clear
        differs = tuple(sorted(key for key, text in clear.items() if texts.get(key) != text))
        made = kinds.COMPONENT in found.metadata.labels
        return CredentialsSeen(found.metadata.uid, made, fault, differs)

    async def _make(self, obj: types.Runtime, _: dict[str, Any]) -> decision.Outcome:
        """By a create, which one of two gets through: what was made once is never written over."""
        asked, namespace = given(obj), obj.metadata.namespace
        texts = {key: secrets.token_urlsafe(BYTES) for key in (*KEYS, READER_KEY)}
        texts |= {"mongoUser": ADMINISTRATOR, "minioAccessKey": ADMINISTRATOR} | asked.in_clear
        texts |= self._known.get(asked.place, {})
        try:
            async with self._world.own_write(builtin.SECRET, namespace, asked.secret) as own:
                made = await self._within(namespace).create(
                    builtin.SECRET,
                    namespace,
                    _body(namespace, asked.secret, texts),
                    field_manager=decision.FIELD_MANAGER,
                    as_=msgspec.Raw,
                    timeout=self._world.gate.timeout(15.0),
                )
                own.took(made)
        except errors.AlreadyExists:
            return decision.Conflict(f"Secret {asked.secret} is there")
        finally:
            self.source.outdate(asked, "it was made")
        return decision.Ok()


def _body(namespace: str, name: str, texts: dict[str, str]) -> dict[str, Any]:
    """Nobody owns it: it outlives the Runtime with the volumes that can't be read without it."""
    labels = {kinds.COMPONENT: "credentials", "app.kubernetes.io/managed-by": "moorage"}
    return {
        "apiVersion": builtin.SECRET.api_version,
        "kind": builtin.SECRET.kind,
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "data": {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()},
    }


def _texts(found: _Secret) -> dict[str, str]:
    try:
        return {key: base64.b64decode(value).decode() for key, value in found.data.items()}
    except (binascii.Error, UnicodeDecodeError):
        return {}


def _fault(key: str, text: str | None) -> str:
    if not text:
        return f"it has no key {key}"
    if text.strip() != text:
        return f"{key} begins or ends with white space, which a server would take for a part of it"
    least = LEAST.get(key, 1)
    return f"{key} has fewer than {least} characters, which MinIO does not take" if len(text) < least else ""
