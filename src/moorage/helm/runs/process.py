"""One child process under supervision. I/O.

The child leads a process group of its own. On cancellation and on the deadline the group gets SIGTERM, and SIGKILL
after a grace period; then the child is reaped. It also dies with its parent (law 7). For that it must be started from a
thread that lives as long as the process, as the event loop's usually does: the kernel ties the child to the thread.

One that writes is given the gate that its writes go through, and ends when that closes, whatever this process does
meanwhile: an event loop that stands still loses its lease, and could stop nobody. So a `supervisor` stands between.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import errno
import math
import os
import signal
import struct
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from moorage.runtime import gate

from . import supervisor

__all__ = ["Ended", "die_with", "run"]

MAX_OUTPUT = 64 << 20  # bytes of stdout kept
MAX_STDERR = 1 << 20
PUT_OFF_EVERY = 0.5
"""Seconds between looks whether the gate stays open longer than the supervisor was told."""

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)


class Ended(msgspec.Struct, frozen=True):
    """A child that is gone. `code` is negative when a signal ended it."""

    code: int
    stdout: bytes
    stderr: bytes
    timed_out: bool = False

    @property
    def text(self) -> str:
        """What it wrote to stderr."""
        return self.stderr.decode(errors="replace")

    @property
    def cut_off(self) -> bool:
        """Whether it wrote more than is kept."""
        return len(self.stdout) > MAX_OUTPUT


async def run(
    argv: Sequence[str],
    *,
    stdin: bytes,
    env: Mapping[str, str],
    timeout: float,
    grace: float,
    through: gate.Gate | None = None,
) -> Ended:
    """Runs `argv` to its end, for at most `timeout` + `grace` seconds. Raises OSError when it can't be started.

    `through` is the gate that it writes through: at most `grace` seconds after that has closed it is gone.
    """
    if through is None:
        return await _run(argv, stdin, env, timeout, grace, pass_fds=(), preexec_fn=die_with(os.getpid()))
    if not os.access(argv[0], os.X_OK):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), argv[0])
    async with _deadline(through) as reading:
        supervised = [sys.executable, "-I", "-S", str(_SUPERVISOR)]
        supervised += [str(reading), repr(through.closes_at), repr(grace), *argv]
        return await _run(supervised, stdin, env, timeout, grace, pass_fds=(reading,))


_SUPERVISOR = Path(supervisor.__file__)


@contextlib.asynccontextmanager
async def _deadline(through: gate.Gate) -> AsyncIterator[int]:
    """A pipe on which the supervisor is told of each later deadline; yields the end to read from."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    telling = asyncio.create_task(_put_off(writing, through), name="helm's deadline")
    try:
        yield reading
    finally:
        telling.cancel()
        os.close(reading)
        os.close(writing)


async def _put_off(writing: int, through: gate.Gate) -> None:
    told = math.nan
    while True:
        if (closes_at := through.closes_at) != told:
            told = closes_at
            with contextlib.suppress(BrokenPipeError):  # it has just ended
                os.write(writing, struct.pack("d", told))
        await asyncio.sleep(PUT_OFF_EVERY)


async def _run(
    argv: Sequence[str], stdin: bytes, env: Mapping[str, str], timeout: float, grace: float, **start: Any
) -> Ended:
    child = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=env,
        cwd=env.get("TMPDIR"),
        start_new_session=True,
        **start,
    )
    talk = asyncio.ensure_future(_talk(child, stdin))
    try:
        stdout, stderr = await asyncio.wait_for(asyncio.shield(talk), timeout)
        return Ended(await child.wait(), stdout, stderr)
    except TimeoutError:
        stdout, stderr = await asyncio.shield(_stop(child, talk, grace))
        return Ended(child.returncode or 0, stdout, stderr, timed_out=True)
    except asyncio.CancelledError:
        await _to_the_end(asyncio.ensure_future(_stop(child, talk, grace)))
        raise


async def _to_the_end(stopping: asyncio.Future[tuple[bytes, bytes]]) -> None:
    """Waits even if cancelled again: nobody may believe that a live child is gone."""
    while not stopping.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(stopping)


async def _stop(
    child: asyncio.subprocess.Process, talk: asyncio.Future[tuple[bytes, bytes]], grace: float
) -> tuple[bytes, bytes]:
    _signal(child, signal.SIGTERM)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(child.wait(), grace)
    _signal(child, signal.SIGKILL)  # the child if it still runs, and whatever it had started
    await child.wait()
    return await talk


def _signal(child: asyncio.subprocess.Process, signum: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signum)


def die_with(parent: int) -> Callable[[], None]:
    """Runs in the child between fork and exec: SIGKILL when the parent's thread ends, however it ends."""

    def prepare() -> None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the line above
            os._exit(1)

    return prepare


async def _talk(child: asyncio.subprocess.Process, stdin: bytes) -> tuple[bytes, bytes]:
    """Feeds stdin and drains both outputs to their end, keeping little more than the limits."""
    writer, out, err = child.stdin, child.stdout, child.stderr
    if writer is None or out is None or err is None:
        raise RuntimeError("the child was started without pipes")
    _, stdout, stderr = await asyncio.gather(_feed(writer, stdin), _drain(out, MAX_OUTPUT), _drain(err, MAX_STDERR))
    return stdout, stderr


async def _feed(writer: asyncio.StreamWriter, stdin: bytes) -> None:
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        if not writer.is_closing():  # the child may have ended already, and uvloop refuses to write to a closed pipe
            writer.write(stdin)
            await writer.drain()
    writer.close()


async def _drain(stream: asyncio.StreamReader, limit: int) -> bytes:
    kept = bytearray()
    while chunk := await stream.read(1 << 16):
        if len(kept) <= limit:
            kept += chunk
    return bytes(kept)
