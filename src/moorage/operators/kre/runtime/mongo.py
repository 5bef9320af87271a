"""Mongo at one address, as its administrator; the only place that knows mongo's commands.

It decides nothing and retries nothing. The library is large, and nobody but the operator needs it: see `servers`.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from moorage.operators import asking

from . import mongo_wire
from .observation import MongoSeen

ALREADY_INITIATED, USER_EXISTS = 23, 51003
"""Mongo's own codes for what is done already."""


class Mongo:
    """Mongo at one address, as its administrator."""

    def __init__(self, address: str, user: str, password: str, port: int) -> None:
        self._address, self._port = address, port
        self._login = user, password

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
                await self.proves()
                return seen
            found = await self._command(reader[0], {"usersInfo": reader[1]})
        except asking.RefusedError as refusal:
            return msgspec.structs.replace(seen, refused=str(refusal))
        return msgspec.structs.replace(seen, reader=bool(found.get("users")))

    async def initiate(self, name: str, host: str) -> None:
        """Make it a replica set of itself, as that host. Done already is done. Raises AskError."""
        config = {"_id": name, "members": [{"_id": 0, "host": f"{host}:{self._port}"}]}
        await self._command("admin", {"replSetInitiate": config}, done=ALREADY_INITIATED)

    async def proves(self) -> None:
        """That it takes the login. Raises AskError; RefusedError, where it does not."""
        await self._command("admin", {"ping": 1})

    async def change_password(self, database: str, user: str, password: str) -> None:
        """Of a user of that database. Raises AskError."""
        await self._command(database, {"updateUser": user, "pwd": password})

    async def make_reader(self, database: str, user: str, password: str) -> None:
        """Make the user that may read that database. Done already is done. Raises AskError."""
        roles = [{"role": "read", "db": database}]
        await self._command(database, {"createUser": user, "pwd": password, "roles": roles}, done=USER_EXISTS)

    async def _command(
        self, database: str, command: dict[str, Any], *, done: int = -1, login: bool = True
    ) -> dict[str, Any]:
        sent = False
        try:
            async with asyncio.timeout(asking.REQUEST_LIMIT), mongo_wire.connected(self._address, self._port) as mongo:
                if login:
                    await mongo.login(*self._login)
                sent = True
                return await mongo.command(database, command)
        except mongo_wire.FailedError as error:
            if sent and error.code == done:
                return {}
            raise asking.RefusedError(asking.why(error)) from error
        except TimeoutError as error:
            raise asking.AskError(f"no answer within {asking.REQUEST_LIMIT:g} s", maybe=sent) from error
        except EOFError as error:
            raise asking.AskError("it closed the connection", maybe=sent) from error
        except (mongo_wire.UnreadableError, OSError) as error:
            raise asking.AskError(asking.why(error), maybe=sent) from error
