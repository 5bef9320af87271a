"""The Secrets with a Runtime's credentials: read by the clock. What is in them never leaves this module.

But for mongo's administrator, as whom it is asked, and for NATS' own account, as which servers are removed. There are
those that are wanted, which are the user's, or are made once; and those that are in use, which moorage alone writes:
servers and versions are given these. So another password that is wanted changes nothing before its server takes it,
and volumes that were kept can be read with what they were made with.
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

KEYS = ("mongoUser", "mongoPassword", "minioAccessKey", "minioSecretKey")
READER_KEY = "mongoReaderPassword"
ADMINISTRATOR = "admin"
PASSWORD_KEY, OTHER_KEY, SALT_KEY = "mongoPassword", "mongoPasswordOther", "salt"
"""In use: a password that mongo's administrator may have as well; and what makes digests of the rest say nothing."""

NATS_USER, LOGIN_KEY = "moorage", "login.conf"
_LOGIN = re.compile(rf'user: "{NATS_USER}", password: "([-\w]{{16,128}})"', re.ASCII)
LEAST = {"minioAccessKey": 3, "minioSecretKey": 8}
"""Characters that MinIO wants of them."""

BYTES = 24
"""Of randomness in each password that is made."""

OF_SERVERS = {"minio": ("minioAccessKey", "minioSecretKey"), "mongoExpress": (READER_KEY,)}
"""Who reads which as it starts, and so is restarted for another one. Of mongo's administrator mongo itself is told."""

Place = tuple[str, str]
"""(namespace, name) of a Runtime."""

Texts = dict[str, str]
Login = tuple[str, str]
"""(user, password)."""


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
    """Those of all Runtimes. `within` gives what acts in a namespace and nowhere else; `changed` is told of one.

    They are looked at each so many seconds: a Secret may be the user's own, and so is not watched.
    """

    def __init__(
        self,
        world: kind.World,
        within: Callable[[str], kube_client.Client],
        changed: Callable[[str], None],
        every: float,
    ) -> None:
        self._world, self._within, self._changed = world, within, changed
        self._wanted: dict[Place, Texts] = {}
        self._in_use: dict[Place, Texts] = {}
        self.source: source.Source[Given, CredentialsSeen] = source.Source(
            "credentials", self._look, world.enqueue, every=every, concurrency=32
        )
        self._logins: dict[Place, str] = {}  # of NATS' own account: the Secret's text
        self.operations: dict[str, kind.Operation[types.Runtime]] = {
            "credentials.make": self._make,
            "credentials.take": self._take,
            "credentials.make_nats_login": self._make_nats_login,
        }

    def seen(self, asked: Given, reader: kind.Key) -> freshness.Observed[CredentialsSeen]:
        """What there is to be known of them."""
        return self.source.follow(asked, reader)

    def forget(self, place: Place, reader: kind.Key) -> None:
        """The Runtime is gone."""
        self.source.forget(reader)
        self._wanted.pop(place, None)
        self._in_use.pop(place, None)
        self._logins.pop(place, None)

    async def stop(self) -> None:
        """End all looking."""
        await self.source.stop()

    def mongo(self, place: Place) -> Login | None:
        """Mongo's administrator, once it is known."""
        used = self._in_use.get(place, {})
        return (used["mongoUser"], used[PASSWORD_KEY]) if used.keys() >= {"mongoUser", PASSWORD_KEY} else None

    def mongo_logins(self, place: Place) -> tuple[Login, ...]:
        """All that mongo may take, first the one that it is to take from now on."""
        wanted, used = self._wanted.get(place, {}), self._in_use.get(place, {})
        pairs = [(texts.get("mongoUser"), texts.get(PASSWORD_KEY)) for texts in (wanted, used)]
        pairs.append((used.get("mongoUser"), used.get(OTHER_KEY)))
        return tuple(dict.fromkeys((user, password) for user, password in pairs if user and password))

    def reader(self, place: Place) -> str:
        """The password of the user that only reads; empty where there is none."""
        return self._in_use.get(place, {}).get(READER_KEY, "")

    def wanted_reader(self, obj: types.Runtime) -> str:
        """The password that it is to have; empty where that is the one that it has, or nobody is to read."""
        place = obj.metadata.key
        wanted = self._wanted.get(place, {}).get(READER_KEY, "") if given(obj).reader else ""
        return "" if wanted == self.reader(place) else wanted

    def digests(self, place: Place) -> dict[str, str] | None:
        """Of what each server reads as it starts: another text is another digest, which tells nobody what it is of.

        None while that is not known.
        """
        used = self._in_use.get(place)
        if used is None:
            return None
        salt = used.get(SALT_KEY, "").encode()[:64]
        texts = {server: "\n".join(used.get(key, "") for key in keys) for server, keys in OF_SERVERS.items()}
        return {
            server: hashlib.blake2b(text.encode(), key=salt, digest_size=8).hexdigest()
            for server, text in texts.items()
        }

    def nats(self, place: Place) -> tuple[str, str] | None:
        """(user, password) of NATS' own account, once they are known."""
        found = _LOGIN.search(self._logins.get(place, ""))
        return (NATS_USER, found[1]) if found else None

    async def _look(self, asked: Given) -> CredentialsSeen:
        seen = await self._look_at_wanted(asked)
        return msgspec.structs.replace(
            seen,
            **await self._look_at_used(asked),
            **await self._look_at_login(asked.place),
            known=not seen.uid and self._knows(asked),
        )

    async def _look_at_used(self, asked: Given) -> dict[str, Any]:
        found = await named_data.read(self._within(asked.place[0]), builtin.SECRET, asked.place[0], kinds.IN_USE)
        if found is not None:
            self._in_use[asked.place] = named_data.texts(builtin.SECRET, found)
        used, wanted = self._in_use.get(asked.place, {}), self._wanted.get(asked.place, {})
        behind = tuple(key for key in _keys(asked) if key in wanted and wanted[key] != used.get(key))
        return {
            "used": found["metadata"]["uid"] if found is not None else "",
            "used_made": found is not None and _is_made(found),
            "behind": behind,
            "absent": tuple(key for key in behind if not used.get(key)),
            "in_doubt": used.get(OTHER_KEY, used.get(PASSWORD_KEY)) != used.get(PASSWORD_KEY),
        }

    def _knows(self, asked: Given) -> bool:
        """Whether a Secret that is wanted and gone can be made as it was."""
        used, clear = self._in_use.get(asked.place, {}), asked.in_clear
        return asked.place in self._wanted or any(set(KEYS) <= texts.keys() for texts in (used, clear))

    async def _look_at_login(self, place: Place) -> dict[str, Any]:
        found = await named_data.read(self._within(place[0]), builtin.SECRET, place[0], kinds.NATS_LOGIN)
        if found is None:
            return {}
        text = named_data.texts(builtin.SECRET, found).get(LOGIN_KEY, "")
        fault = "" if _LOGIN.search(text) else f"its key {LOGIN_KEY} has no password of NATS' own account"
        if not fault:
            self._logins[place] = text
        return {"system": found["metadata"]["uid"], "system_made": _is_made(found), "system_fault": fault}

    async def _look_at_wanted(self, asked: Given) -> CredentialsSeen:
        namespace = asked.place[0]
        found = await named_data.read(self._within(namespace), builtin.SECRET, namespace, asked.secret)
        if found is None:
            return CredentialsSeen()
        texts, keys = named_data.texts(builtin.SECRET, found), _keys(asked)
        fault = next(filter(None, (_fault(found, key, texts.get(key, "")) for key in keys)), "")
        if not fault:
            self._wanted[asked.place] = texts
        clear = {} if asked.named else asked.in_clear
        differs = tuple(sorted(key for key, text in clear.items() if texts.get(key) != text))
        former = await self._former(namespace) if asked.named else ""
        return CredentialsSeen(found["metadata"]["uid"], _is_made(found), fault, differs, former=former)

    async def _former(self, namespace: str) -> str:
        found = await named_data.read(self._within(namespace), builtin.SECRET, namespace, kinds.CREDENTIALS)
        return found["metadata"]["uid"] if found is not None and _is_made(found) else ""

    async def _make(self, obj: types.Runtime, _: dict[str, Any]) -> decision.Outcome:
        """By a create, which one of two gets through: what was made once is never written over."""
        asked = given(obj)
        texts = {key: secrets.token_urlsafe(BYTES) for key in (*KEYS, READER_KEY)}
        texts |= {"mongoUser": ADMINISTRATOR, "minioAccessKey": ADMINISTRATOR} | asked.in_clear
        used = self._in_use.get(asked.place, {})
        texts |= {key: used[key] for key in texts if used.get(key)} | self._wanted.get(asked.place, {})
        return await self._create(asked, asked.secret, texts)

    async def _take(self, obj: types.Runtime, args: dict[str, Any]) -> decision.Outcome:
        """Have those keys in use as they are wanted, all at once.

        The administrator's password that was in use is kept: mongo may have been made with it a moment ago.
        """
        wanted, used = (known.get(obj.metadata.key, {}) for known in (self._wanted, self._in_use))
        texts: dict[str, str | None] = {key: wanted[key] for key in args["keys"] if key in wanted}
        if PASSWORD_KEY in texts and used.get(PASSWORD_KEY):
            texts[OTHER_KEY] = used[PASSWORD_KEY]
        return await self._change(given(obj), texts)

    async def expect(self, obj: types.Runtime, works: Login, password: str) -> decision.Outcome:
        """Mongo, which takes `works`, may have that password from now on: both are kept until it is known which."""
        return await self._change(given(obj), {"mongoUser": works[0], PASSWORD_KEY: works[1], OTHER_KEY: password})

    async def prove(self, obj: types.Runtime, login: Login, reader: str) -> decision.Outcome:
        """Mongo takes that login, and so no other; and that password of who reads, where one is told."""
        texts: dict[str, str | None] = {"mongoUser": login[0], PASSWORD_KEY: login[1], OTHER_KEY: None}
        return await self._change(given(obj), {**texts, READER_KEY: reader} if reader else texts)

    async def _make_nats_login(self, obj: types.Runtime, _: dict[str, Any]) -> decision.Outcome:
        """As it was, where that is known: servers that run know no other."""
        asked = given(obj)
        text = self._logins.get(asked.place) or _login(secrets.token_urlsafe(BYTES))
        return await self._create(asked, kinds.NATS_LOGIN, {LOGIN_KEY: text})

    async def _change(self, asked: Given, texts: dict[str, str | None]) -> decision.Outcome:
        """Of the Secret in use, which is made, as it was, where it is not there; a text that is None is taken out."""
        namespace, used = asked.place[0], self._in_use.get(asked.place, {})
        if not used.get(SALT_KEY):
            texts = {SALT_KEY: secrets.token_urlsafe(BYTES), **texts}
        try:
            async with self._world.own_write(builtin.SECRET, namespace, kinds.IN_USE) as own:
                made = await self._within(namespace).patch_merge(
                    builtin.SECRET,
                    namespace,
                    kinds.IN_USE,
                    {"data": {key: None if text is None else _encoded(text) for key, text in texts.items()}},
                    field_manager=decision.FIELD_MANAGER,
                    as_=msgspec.Raw,
                    timeout=self._world.gate.timeout(15.0),
                )
                own.took(made)
            self._in_use[asked.place] = named_data.texts(builtin.SECRET, msgspec.json.decode(made))
            self._changed(namespace)
        except errors.NotFound:
            whole = {**used, **texts}
            return await self._create(asked, kinds.IN_USE, {key: text for key, text in whole.items() if text})
        finally:
            self.source.outdate(asked, "it was changed")
        return decision.Ok()

    async def _create(self, asked: Given, name: str, texts: Texts) -> decision.Outcome:
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


def _keys(asked: Given) -> tuple[str, ...]:
    """Those that are needed."""
    return (*KEYS, READER_KEY) if asked.reader else KEYS


def _is_made(found: dict[str, Any]) -> bool:
    return kinds.COMPONENT in (found["metadata"].get("labels") or {})


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _body(namespace: str, name: str, texts: Texts) -> dict[str, Any]:
    """Nobody owns it: it outlives the Runtime with the volumes that can't be read without it."""
    labels = {kinds.COMPONENT: "credentials", "app.kubernetes.io/managed-by": "moorage"}
    return {
        "apiVersion": builtin.SECRET.api_version,
        "kind": builtin.SECRET.kind,
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "data": {key: _encoded(text) for key, text in texts.items()},
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
