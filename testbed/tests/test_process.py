"""Processes are known by pid and start time, and only those are ended."""

import os
import subprocess
import sys
from pathlib import Path

from tb import process
from tb.process import Process

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


def started(mark: Path) -> tuple["subprocess.Popen[bytes]", Process]:
    child = subprocess.Popen(SLEEP, env={**os.environ, process.MARK: str(mark)})
    (found,) = process.living([child.pid])
    return child, found


def test_a_process_is_ended(tmp_path: Path) -> None:
    child, found = started(tmp_path)
    assert found.alive()
    process.end([found])
    assert not found.alive()
    # It was reaped by the tool already, which this object cannot know.
    child.returncode = 0


def test_a_pid_that_another_process_has_now_is_not_touched(tmp_path: Path) -> None:
    child, found = started(tmp_path)
    process.end([Process(found.pid, found.born + 1, "")])
    assert found.alive()
    child.kill()
    child.wait()


def test_processes_are_found_by_the_mark_in_their_environment(tmp_path: Path) -> None:
    child, found = started(tmp_path)
    # The mark is in the environment of what was executed, so wait until it was.
    while not (marked := process.marked(tmp_path)):
        pass
    assert [one.pid for one in marked] == [found.pid]
    assert process.marked(tmp_path / "other") == []
    child.kill()
    child.wait()
