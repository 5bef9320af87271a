"""Work on texts that others may make large, done aside: in child processes of our own, never on the event loop. I/O.

A parser holds the interpreter's lock from its first byte to the last, so a thread would not help. What is small is done
in place, within limits that bound one turn of the loop; all else goes to a child, which is limited in memory and
processor time, ends with its parent, and is made anew when it died. Each owner has at most one job in a child at a
time, so that who has large things waits for oneself alone, as long as there are children for others.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import typing
import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

import msgspec

from moorage.helm.runs import process

from . import aside_child, helm_yaml, jobs

__all__ = ["Aside", "AsideError"]

T = TypeVar("T")

CHILDREN = 2
DEADLINE = 45.0  # seconds for one job, once it is its turn
COMMAND = (sys.executable, "-I", "-B", "-m", aside_child.__name__)
"""As the operator itself is started: nothing but its installation decides what is imported."""


class AsideError(Exception):
    """A job was not done for a reason that may pass: no process could be started, or it gave no answer in time."""


class Aside:
    """Runs jobs. One per process is enough; children are started when they are first needed."""

    def __init__(
        self, *, children: int = CHILDREN, here: jobs.Limits = jobs.HERE, command: Sequence[str] = COMMAND
    ) -> None:
        self._here, self._command = here, command
        self._slots = asyncio.Semaphore(children)
        self._owners: weakref.WeakValueDictionary[Hashable, asyncio.Lock] = weakref.WeakValueDictionary()
        self._idle: list[_Child] = []
        self._stopped = False

    async def run(self, owner: Hashable, job: Callable[..., T], *args: Any) -> T:
        """`job` is one of `jobs`. Raises what it raises, TooLarge with the figure, or AsideError."""
        with contextlib.suppress(helm_yaml.TooLarge):
            return job(self._here, *args)
        order = (job.__name__, jobs.ASIDE, args)
        turn = self._owners.get(owner)
        if turn is None:
            turn = self._owners[owner] = asyncio.Lock()
        async with turn, self._slots:
            answer = await self._ask(msgspec.msgpack.encode(order))
        if answer.error:
            raise jobs.ERRORS[answer.error](answer.message)
        if answer.message:
            raise AsideError(f"job {job.__name__} failed: {answer.message}")
        result: T = msgspec.msgpack.decode(answer.result, type=typing.get_type_hints(job)["return"])
        return result

    async def stop(self) -> None:
        """End all children that are idle; those at work end with their jobs, or with their tasks."""
        self._stopped = True
        while self._idle:
            await self._idle.pop().end()

    async def _ask(self, order: bytes) -> aside_child.Answer:
        one = self._idle.pop() if self._idle else await _Child.start(self._command)
        done = False
        try:
            async with asyncio.timeout(DEADLINE):
                answer = await one.ask(order)
            done = not answer.last
        except TimeoutError:
            raise AsideError(f"no answer within {DEADLINE:g} s") from None
        finally:
            if done and not self._stopped:
                self._idle.append(one)
            else:
                await one.end()
        return answer


class _Child:
    """One child process, which does one job at a time."""

    def __init__(self, running: asyncio.subprocess.Process) -> None:
        self._running = running

    @classmethod
    async def start(cls, command: Sequence[str]) -> _Child:
        """Raises AsideError when there is no room for it."""
        try:
            return cls(
                await asyncio.create_subprocess_exec(
                    *command,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    env={"PATH": os.environ.get("PATH", os.defpath)},
                    limit=1 << 20,
                    start_new_session=True,
                    preexec_fn=process.die_with(os.getpid()),
                )
            )
        except OSError as error:
            raise AsideError(f"no child process can be started: {error.strerror}") from None

    async def ask(self, order: bytes) -> aside_child.Answer:
        """Raises TooLarge when the child was killed for what it used up."""
        stdin, stdout = self._running.stdin, self._running.stdout
        if stdin is None or stdout is None:
            raise RuntimeError("the child was started without pipes")
        try:
            stdin.write(aside_child.LENGTH.pack(len(order)) + order)
            await stdin.drain()
            size = aside_child.LENGTH.unpack(await stdout.readexactly(aside_child.LENGTH.size))[0]
            return msgspec.msgpack.decode(await stdout.readexactly(size), type=aside_child.Answer)
        except (BrokenPipeError, ConnectionResetError, asyncio.IncompleteReadError):
            code = await self._running.wait()
        if code == -signal.SIGXCPU:
            raise helm_yaml.TooLarge(f"needs more than {aside_child.CPU} s of processor time")
        raise AsideError(f"the child process ended with code {code}")

    async def end(self) -> None:
        """Kill it and reap it."""
        with contextlib.suppress(ProcessLookupError):
            self._running.kill()
        await self._running.wait()
