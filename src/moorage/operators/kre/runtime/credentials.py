"""The Secret with a Runtime's credentials: read by the clock, and made once. What is in it never leaves this module.

But for mongo's administrator, as whom it is asked, and for NATS' own account, as which servers are removed. A Secret
that is there is taken as it is, whoever made it: volumes that were kept can be read with what they were made with, and
with nothing else.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import re
import secrets
from collections.abc import Callable
from typing import Any

import msgspec

from moorage.api import builtin
from moorage.kube import client as kube_client
from moorage.kube import errors
from moorage.operators import named_data
from moorage.operators.kre import kinds
from moorage.runtime import decision, freshness, kind, source

from . import types
from .observation import CredentialsSeen

EVERY = 30.0
"""Seconds between two looks: the Secret may be the user's own, and so is not watched."""

KEYS = ("mongoUser", "mongoPassword", "minioAccessKey", "minioSecretKey")
READER_KEY = "mongoReaderPassword"
ADMINISTRATOR = "admin"
NATS_USER, LOGIN_KEY = "moorage", "login.conf"
_LOGIN = re.compile(rf'user: "{NATS_USER}", password: "([-\w]{{16,128}})"', re.ASCII)
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


class Credentials:
    """Those of all Runtimes. `within` gives what acts in a namespace and nowhere else."""

    def __init__(self, world: kind.World, within: Callable[[str], kube_client.Client]) -> None:
        self._world, self._within = world, within
        self._known: dict[Place, dict[str, str]] = {}
        self.source: source.Source[Given, CredentialsSeen] = source.Source(
            "credentials", self._look, world.enqueue, every=EVERY, concurrency=32
        )
        self._logins: dict[Place, str] = {}  # of NATS' own account: the Secret's text
        self.operations: dict[str, kind.Operation[types.Runtime]] = {
            "credentials.make": self._make,
            "credentials.make_nats_login": self._make_nats_login,
        }

    def seen(self, asked: Given, reader: kind.Key) -> freshness.Observed[CredentialsSeen]:
        """What there is to be known of them."""
        return self.source.follow(asked, reader)

    def forget(self, place: Place, reader: kind.Key) -> None:
        """The Runtime is gone."""
        self.source.forget(reader)
        self._known.pop(place, None)
        self._logins.pop(place, None)

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

    def nats(self, place: Place) -> tuple[str, str] | None:
        """(user, password) of NATS' own account, once they are known."""
        found = _LOGIN.search(self._logins.get(place, ""))
        return (NATS_USER, found[1]) if found else None

    async def _look(self, asked: Given) -> CredentialsSeen:
        return msgspec.structs.replace(await self._look_at_own(asked), **await self._look_at_login(asked.place))

    async def _look_at_login(self, place: Place) -> dict[str, Any]:
        found = await named_data.read(self._within(place[0]), builtin.SECRET, place[0], kinds.NATS_LOGIN)
        if found is None:
            return {}
        text = named_data.texts(builtin.SECRET, found).get(LOGIN_KEY, "")
        fault = "" if _LOGIN.search(text) else f"its key {LOGIN_KEY} has no password of NATS' own account"
        if not fault:
            self._logins[place] = text
        made = kinds.COMPONENT in (found["metadata"].get("labels") or {})
        return {"system": found["metadata"]["uid"], "system_made": made, "system_fault": fault}

    async def _look_at_own(self, asked: Given) -> CredentialsSeen:
        namespace = asked.place[0]
        found = await named_data.read(self._within(namespace), builtin.SECRET, namespace, asked.secret)
        if found is None:  # what somebody has deleted meanwhile is made as it was
            return CredentialsSeen(known=asked.place in self._known or set(KEYS) <= asked.in_clear.keys())
        texts = named_data.texts(builtin.SECRET, found)
        keys = (*KEYS, READER_KEY) if asked.reader else KEYS
        fault = next(filter(None, (_fault(found, key, texts.get(key, "")) for key in keys)), "")
        if not fault:
            self._known[asked.place] = texts
        clear = {} if asked.named else asked.in_clear
        differs = tuple(sorted(key for key, text in clear.items() if texts.get(key) != text))
        made = kinds.COMPONENT in (found["metadata"].get("labels") or {})
        return CredentialsSeen(found["metadata"]["uid"], made, fault, differs)

    async def _make(self, obj: types.Runtime, _: dict[str, Any]) -> decision.Outcome:
        """By a create, which one of two gets through: what was made once is never written over."""
        asked = given(obj)
        texts = {key: secrets.token_urlsafe(BYTES) for key in (*KEYS, READER_KEY)}
        texts |= {"mongoUser": ADMINISTRATOR, "minioAccessKey": ADMINISTRATOR} | asked.in_clear
        texts |= self._known.get(asked.place, {})
        return await self._create(asked, asked.secret, texts)

    async def _make_nats_login(self, obj: types.Runtime, _: dict[str, Any]) -> decision.Outcome:
        """As it was, where that is known: servers that run know no other."""
        asked = given(obj)
        text = self._logins.get(asked.place) or _login(secrets.token_urlsafe(BYTES))
        return await self._create(asked, kinds.NATS_LOGIN, {LOGIN_KEY: text})

    async def _create(self, asked: Given, name: str, texts: dict[str, str]) -> decision.Outcome:
        namespace = asked.place[0]
        try:
            async with self._world.own_write(builtin.SECRET, namespace, name) as own:
                made = await self._within(namespace).create(
                    builtin.SECRET,
                    namespace,
                    _body(namespace, name, texts),
                    field_manager=decision.FIELD_MANAGER,
                    as_=msgspec.Raw,
                    timeout=self._world.gate.timeout(15.0),
                )
                own.took(made)
        except errors.AlreadyExists:
            return decision.Conflict(f"Secret {name} is there")
        finally:
            self.source.outdate(asked, "it was made")
        return decision.Ok()


def _login(password: str) -> str:
    """What NATS reads, as a part of its configuration: who may do what its own account may."""
    return f'accounts {{ $SYS {{ users: [ {{ user: "{NATS_USER}", password: "{password}" }} ] }} }}\n'


def _body(namespace: str, name: str, texts: dict[str, str]) -> dict[str, Any]:
    """Nobody owns it: it outlives the Runtime with the volumes that can't be read without it."""
    labels = {kinds.COMPONENT: "credentials", "app.kubernetes.io/managed-by": "moorage"}
    return {
        "apiVersion": builtin.SECRET.api_version,
        "kind": builtin.SECRET.kind,
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "data": {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()},
    }


def _fault(found: dict[str, Any], key: str, text: str) -> str:
    if wrong := named_data.fault(builtin.SECRET, found, key):
        return wrong
    if not text:
        return f"its key {key} is empty"
    if text.strip() != text:
        return f"{key} begins or ends with white space, which a server would take for a part of it"
    least = LEAST.get(key, 1)
    return f"{key} has fewer than {least} characters, which MinIO does not take" if len(text) < least else ""
