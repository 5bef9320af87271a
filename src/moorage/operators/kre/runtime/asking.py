"""One question to one server of a Runtime: HTTP without credentials, and mongo's own protocol with them.

The only place that knows HTTP and mongo's protocol to them. It decides nothing and retries nothing. Who answers is
whatever image the namespace's users run, so that an answer is believed for that namespace alone, and is bounded.
"""

from __future__ import annotations

from typing import Any

import aiohttp
import msgspec
import pymongo
from pymongo import errors as mongo_errors

from .control import MongoSeen

REQUEST_LIMIT = 5.0
"""Seconds that one question may take."""

ANSWER_LIMIT = 2**20
"""Bytes of one answer."""

MONGO_PORT = 27017
ALREADY_INITIATED, NOT_AUTHENTICATED, NOT_ALLOWED, USER_EXISTS = 23, 18, 13, 51003


class AskError(Exception):
    """No answer, or none that can be read; the message says which. `maybe`: what was asked may have been done."""

    def __init__(self, words: str, *, maybe: bool = False) -> None:
        super().__init__(words)
        self.maybe = maybe


class RefusedError(AskError):
    """The server answered, and refused; by its own words."""


class Http:
    """Questions by HTTP, without credentials."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def get(self, address: str, port: int, path: str) -> tuple[int, bytes]:
        """(status, answer). Raises AskError."""
        where = f"[{address}]" if ":" in address else address
        try:
            async with self._open().get(f"http://{where}:{port}{path}", allow_redirects=False) as answer:
                text = bytearray()
                async for part in answer.content.iter_any():
                    text += part
                    if len(text) > ANSWER_LIMIT:
                        raise AskError(f"an answer of more than {ANSWER_LIMIT >> 20} MiB")
                return answer.status, bytes(text)
        except TimeoutError as error:
            raise AskError(f"no answer within {REQUEST_LIMIT:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise AskError(_why(error)) from error

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, force_close=True),  # an address may be another pod's next time
                headers={"Accept-Encoding": "identity"},
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
                timeout=aiohttp.ClientTimeout(total=REQUEST_LIMIT),
            )
        return self._session

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()


class Mongo:
    """Mongo at one address, as its administrator."""

    def __init__(self, address: str, user: str, password: str, port: int = MONGO_PORT) -> None:
        self._address, self._port = address, port
        self._login: dict[str, Any] = {"username": user, "password": password, "authSource": "admin"}

    async def glance(self) -> MongoSeen:
        """How it stands, without a login: that costs both sides 10 ms each time. Raises AskError."""
        hello = await self._command("admin", {"hello": 1}, login=False)
        return MongoSeen(bool(hello.get("setName")), bool(hello.get("isWritablePrimary")))

    async def look(self, reader: tuple[str, str] | None) -> MongoSeen:
        """How it stands, and whether it takes the credentials; `reader` is (database, user) where one is to read.

        Raises AskError.
        """
        seen = await self.glance()
        try:
            if reader is None or not seen.primary:
                await self._command("admin", {"ping": 1})
                return seen
            found = await self._command(reader[0], {"usersInfo": reader[1]})
        except RefusedError as refusal:
            return msgspec.structs.replace(seen, refused=str(refusal))
        return msgspec.structs.replace(seen, reader=bool(found.get("users")))

    async def initiate(self, name: str, host: str) -> None:
        """Make it a replica set of itself, as that host. Done already is done. Raises AskError."""
        config = {"_id": name, "members": [{"_id": 0, "host": f"{host}:{self._port}"}]}
        await self._command("admin", {"replSetInitiate": config}, done=ALREADY_INITIATED)

    async def make_reader(self, database: str, user: str, password: str) -> None:
        """Make the user that may read that database. Done already is done. Raises AskError."""
        roles = [{"role": "read", "db": database}]
        await self._command(database, {"createUser": user, "pwd": password, "roles": roles}, done=USER_EXISTS)

    async def _command(
        self, database: str, command: dict[str, Any], *, done: int = -1, login: bool = True
    ) -> dict[str, Any]:
        limit = int(REQUEST_LIMIT * 1000)
        mongo: pymongo.AsyncMongoClient[dict[str, Any]] = pymongo.AsyncMongoClient(
            self._address,
            self._port,
            directConnection=True,  # it may be no replica set yet, and its members' names are for inside the cluster
            serverSelectionTimeoutMS=limit,
            connectTimeoutMS=limit,
            socketTimeoutMS=limit,
            maxPoolSize=1,
            retryWrites=False,
            **(self._login if login else {}),
        )
        try:
            async with mongo:
                answer: dict[str, Any] = await mongo[database].command(command)
                return answer
        except mongo_errors.OperationFailure as error:
            if error.code == done:
                return {}
            raise RefusedError(_why(error)) from error
        except mongo_errors.ServerSelectionTimeoutError as error:
            raise AskError(f"no answer within {REQUEST_LIMIT:g} s") from error
        except (mongo_errors.PyMongoError, OSError) as error:
            raise AskError(_why(error), maybe=True) from error


class NatsMember(msgspec.Struct, frozen=True):
    """Another server of the cluster, as one of them sees it."""

    name: str = ""
    offline: bool = False


class NatsCluster(msgspec.Struct, frozen=True):
    """The group that keeps what streams there are."""

    leader: str = ""
    replicas: tuple[NatsMember, ...] = ()


class NatsAnswer(msgspec.Struct, frozen=True):
    """What a server tells of JetStream at its monitoring port."""

    disabled: bool = False
    meta_cluster: NatsCluster | None = None


def nats_answer(status: int, text: bytes) -> NatsAnswer:
    """What one server told. Raises AskError."""
    if status != 200:
        raise AskError(f"HTTP {status}")
    try:
        return msgspec.json.decode(text, type=NatsAnswer)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise AskError(f"an answer that can't be read: {_why(error)}") from error


def _why(error: Exception) -> str:
    return str(error).splitlines()[0][:300] if str(error) else type(error).__name__
