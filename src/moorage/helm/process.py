"""One child process under supervision. I/O.

The child leads a process group of its own. On cancellation and on the deadline the group gets SIGTERM, and SIGKILL
after a grace period; then the child is reaped. It also dies with its parent (law 7): an unsupervised helm would go on
writing after the lease is lost. For that it must be started from a thread that lives as long as the process, as the
event loop's usually does: the kernel ties the child to the thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
from collections.abc import Callable, Mapping, Sequence

import msgspec

__all__ = ["Ended", "die_with", "run"]

MAX_OUTPUT = 64 << 20  # bytes of stdout kept
MAX_STDERR = 1 << 20
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


async def run(argv: Sequence[str], *, stdin: bytes, env: Mapping[str, str], timeout: float, grace: float) -> Ended:
    """Runs `argv` to its end, for at most `timeout` + `grace` seconds. Raises OSError when it can't be started."""
    child = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=env,
        cwd=env.get("TMPDIR"),
        start_new_session=True,
        preexec_fn=die_with(os.getpid()),
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
