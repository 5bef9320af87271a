"""A group of stand-in members without an operator or a cluster, clients of a grid in it, and what slows a machine.

Clients write over the entries they have, so that one which falls back to an earlier value counts as lost like one that
is gone. A write counts once it is acknowledged; of one without an answer nothing is known but that it came later.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import signal
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import aiohttp

from tests.api.faults import waiting

from . import bench, kubelet

ENTRIES = 200
"""Of each client."""

PACE = 0.02
FOUND_WITHIN = 120.0
SLOW = 3 * bench.WITHIN  # what a group needs on a machine that does much else
TROUBLES = (OSError, TimeoutError, AssertionError, KeyError, aiohttp.ClientError)
"""What a client meets while members fail: refused, silent, an answer other than 2xx, a pod that is not there."""

BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    sum(range(100_000))"


def complete(placement: dict[str, Any]) -> bool:
    """Whether each partition has a primary, and another that holds all it has."""
    parts = [it for laid in placement["grids"].values() for it in laid["partitions"]]
    return all(it["primary"] and it["replicas"] and all(copy["current"] for copy in it["replicas"]) for it in parts)


class Door(Protocol):
    """Where clients get in."""

    async def put(self, member: str, grid: str, key: str, value: str) -> None:
        """Write one entry. Raises one of TROUBLES."""

    async def entry(self, member: str, grid: str, key: str) -> str:
        """One entry, or a status and a text. Raises one of TROUBLES."""


class Clients:
    """One at each of some members, until `lost` is asked."""

    def __init__(self, door: Door, grid: str, members: Sequence[str]) -> None:
        self._door, self._grid, self._members = door, grid, members
        self.acknowledged: dict[str, int] = {}
        """The last acknowledged value of each entry."""

        self.count, self.failed = 0, 0
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Clients:
        self._tasks = [asyncio.create_task(self._write(member)) for member in self._members]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _write(self, member: str) -> None:
        for number in itertools.count(1):
            key = f"{member}-{number % ENTRIES}"
            try:
                await self._door.put(member, self._grid, key, str(number))
            except TROUBLES:
                self.failed += 1
            else:
                self.acknowledged[key] = number
                self.count += 1
            await asyncio.sleep(PACE)

    async def served(self, writes: int = 10) -> None:
        """Return when so many more writes have been acknowledged."""
        wanted = self.count + writes
        await waiting.until(lambda: self.count >= wanted, within=FOUND_WITHIN)

    async def lost(self) -> list[str]:
        """End all clients; what was acknowledged and is not there any more, or older than that."""
        await self.__aexit__()
        said = []
        for key, number in self.acknowledged.items():
            found = await self._read(key)
            if not found.isdecimal() or int(found) < number:
                said.append(f"{key} was {number}, is {found}")
        return said

    async def _read(self, key: str) -> str:
        """What any member finds, as soon as one knows whether it is there."""
        found = ""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FOUND_WITHIN):
                for member in itertools.cycle(self._members):
                    with contextlib.suppress(*TROUBLES):
                        found = await self._door.entry(member, self._grid, key)
                        if found.isdecimal() or found.startswith("404 "):
                            break
                    await asyncio.sleep(PACE)
        return found


class Group:
    """Members by name, each a process of its own."""

    def __init__(self, binary: Path, folder: Path, **environment: str) -> None:
        self._binary, self._folder, self._environment = binary, folder, environment
        self._network = kubelet.Network()
        self._addresses: dict[str, str] = {}
        self._processes: dict[str, asyncio.subprocess.Process] = {}
        self._found: dict[str, Any] = {}
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self._http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=context, force_close=True),
            headers={"Authorization": aiohttp.encode_basic_auth("xsadmin", bench.PASSWORD)},
            timeout=aiohttp.ClientTimeout(total=10),
        )

    @property
    def names(self) -> list[str]:
        """Of all members."""
        return list(self._addresses)

    async def add(self, name: str) -> None:
        """Start a member, and have it join if it is not the first."""
        folder = self._folder / name
        folder.mkdir()
        self._addresses[name] = address = self._network.address()
        environment = {
            **bench.ENVIRONMENT,
            "LICENSE": "accept",
            "SECRET_KEY": bench.SECRET,
            "XSADMIN_PWD": bench.PASSWORD,
            "MEMBER_NAME": name,
            "XSLD_ADDRESS": address,
            "XSLD_VOL": str(folder),
            **self._environment,
        }
        with (self._folder / f"{name}.log").open("a") as log:
            self._processes[name] = await asyncio.create_subprocess_exec(
                str(self._binary), "member", env=environment, stdout=log, stderr=log
            )
        await waiting.until(lambda: self._serves(name), within=SLOW)
        if len(self._addresses) > 1:
            given = {
                "secretKey": bench.SECRET,
                "memberName": name,
                "cacheMemberGroupHost": next(iter(self._addresses.values())),
                "isCatalog": "true",
            }
            order = {"command": "NewMemberJoinTaskCommand", "description": "", "parameters": given}
            await self._succeeds(name, await self._ask(name, "POST", "/task", order))

    async def grid(self, name: str, **fields: str) -> None:
        """Make one at the first member."""
        first = self.names[0]
        await self._succeeds(first, await self._ask(first, "POST", f"/grid/{name}", fields))

    async def whole(self) -> None:
        """Return when all members see all others online, and all copies are complete.

        Raises AssertionError with what was found last.
        """
        try:
            await waiting.until(self._is_whole, within=SLOW)
        except TimeoutError:
            raise AssertionError(f"not whole after {SLOW:g} s: {self._found}") from None

    async def _is_whole(self) -> bool:
        self._found = {}
        try:
            for name in self._addresses:
                told = await self._ask(name, "GET", "/cacheMemberGroup")
                seen = {it["memberName"]: it["status"] for it in told["members"]}
                self._found[name] = (seen, await self._control(name, "placement"))
        except TROUBLES as trouble:
            self._found[name] = trouble
            return False
        return all(
            set(self._addresses) == set(seen) and {"Online"} == set(seen.values()) and complete(placed)
            for seen, placed in self._found.values()
        )

    def signal(self, name: str, number: signal.Signals) -> None:
        """To a member's process."""
        self._processes[name].send_signal(number)

    async def close(self) -> None:
        """End everything."""
        for process in self._processes.values():
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        await self._http.close()
        self._network.close()

    async def put(self, member: str, grid: str, key: str, value: str) -> None:
        """See Door."""
        async with self._http.post(self._entry(member, grid, key), data=value.encode()) as answer:
            assert answer.status < 300, await answer.text()

    async def entry(self, member: str, grid: str, key: str) -> str:
        """See Door."""
        async with self._http.get(self._entry(member, grid, key)) as answer:
            return await answer.text() if answer.status == 200 else f"{answer.status} {await answer.text()}"

    def _entry(self, member: str, grid: str, key: str) -> str:
        return f"https://{self._addresses[member]}:9444/wxsdata/v1/grids/{grid}/{grid}/{key}"

    async def _serves(self, name: str) -> bool:
        try:
            return bool((await self._control(name, "state"))["state"] == "Online")
        except TROUBLES:
            return False

    async def _control(self, name: str, what: str) -> Any:
        async with self._http.get(f"http://{self._addresses[name]}:9446/{what}") as answer:
            return await answer.json(content_type=None)

    async def _ask(self, name: str, method: str, path: str, body: Any = None) -> Any:
        url = f"https://{self._addresses[name]}:9445/wxsadmin/v1{path}"
        async with self._http.request(method, url, json=body) as answer:
            assert answer.status < 300, f"{method} {path}: {answer.status} {await answer.text()}"
            return await answer.json(content_type=None)

    async def _succeeds(self, name: str, reply: dict[str, int]) -> None:
        (task,) = reply.values()

        async def over() -> dict[str, Any] | None:
            said: dict[str, Any] = await self._ask(name, "GET", f"/task/{task}/status")
            return said if said["status"] not in ("Pending", "Running") else None

        said = await waiting.until(over, within=SLOW)
        assert "Success" == said["status"], said


@contextlib.asynccontextmanager
async def group(binary: Path, folder: Path, size: int, **environment: str) -> AsyncIterator[Group]:
    """Members m0, m1, ..."""
    made = Group(binary, folder, **environment)
    try:
        for number in range(size):
            await made.add(f"m{number}")
        yield made
    finally:
        await made.close()


@contextlib.contextmanager
def busy(processes: int) -> Iterator[None]:
    """That many processes compute all the time; none outlives the test."""
    started = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(processes)]
    try:
        yield
    finally:
        for each in started:
            each.kill()
        for each in started:
            each.wait()
