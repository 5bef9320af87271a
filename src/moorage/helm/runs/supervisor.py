"""Runs one command, and ends it before a deadline that must be put off again and again. Stands alone.

    python -I -S supervisor.py FD DEADLINE GRACE COMMAND ...

Whoever starts a helm can be held up, by its own event loop or the kernel, and then it renews no lease and stops no
child; so a process that does nothing else holds the deadline. It reads later ones from FD, as doubles on the monotonic
clock. At the deadline the process group, which it must lead, gets SIGTERM, and GRACE seconds later what is left of it
is killed. At the end of FD, which is that of its starter, all is killed at once; and with it the command dies too.

It ends as the command does: with its code, or by the same signal. Started for each helm that writes, so it imports
next to nothing.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import struct
import sys
import time

_PR_SET_PDEATHSIG = 1
_NOT_STARTED = 127  # as shells say it


def main(argv: list[str]) -> None:
    """See above."""
    deadlines, deadline, grace, command = int(argv[1]), float(argv[2]), float(argv[3]), argv[4:]
    os.set_inheritable(deadlines, False)
    child = _start(command)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # meant for the group
    for number in range(3):
        os.close(number)  # the command's alone, so that its readers see the end of them
    ended = os.pidfd_open(child)
    if not _lasts_until(deadline, deadlines, ended):
        os.killpg(0, signal.SIGTERM)
        if not select.select([ended], [], [], grace)[0]:
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.killpg(0, signal.SIGKILL)  # whatever it had started
    _end_as(os.waitpid(child, 0)[1])


def _start(command: list[str]) -> int:
    parent = os.getpid()
    if child := os.fork():
        return child
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == parent:  # else it died before the line above
        try:
            os.execv(command[0], command)  # noqa: S606 - that is what it is for
        except OSError as error:
            os.write(2, f"{command[0]} can't be run: {error.strerror}\n".encode())
    os._exit(_NOT_STARTED)


def _lasts_until(deadline: float, deadlines: int, ended: int) -> bool:
    """True when the command has ended, False when the latest deadline has passed."""
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        ready, _, _ = select.select([deadlines, ended], [], [], None if left == float("inf") else left)
        if ended in ready:
            return True
        if ready:
            told = os.read(deadlines, 4096)
            if not told:
                os.killpg(0, signal.SIGKILL)
            (deadline,) = struct.unpack("d", told[-8:])


def _end_as(status: int) -> None:
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        os._exit(code)
    if -code != signal.SIGKILL:
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)


if __name__ == "__main__":
    main(sys.argv)
