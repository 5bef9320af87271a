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


def test_a_suspended_process_goes_on_when_it_is_resumed_and_can_be_ended_before(tmp_path: Path) -> None:
    child, found = started(tmp_path)
    for again in (False, True):
        process.suspend([found])
        while not process.suspended(found):
            pass
        if not again:
            process.resume([found])
            while process.suspended(found):
                pass
    process.end([found], patience=0)
    assert not found.alive()
    child.returncode = 0


def test_of_several_nodes_the_mark_tells_whose_a_process_is(tmp_path: Path) -> None:
    environment = {**os.environ, process.MARK: str(tmp_path), process.NODE_MARK: "node-1"}
    child = subprocess.Popen(SLEEP, env=environment)
    while not (marked := process.marked(tmp_path, "node-1")):
        pass
    assert [one.pid for one in marked] == [child.pid]
    assert process.marked(tmp_path, "node-2") == []
    child.kill()
    child.wait()
