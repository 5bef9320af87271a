"""The scripts in a member's container, run by sh against small tools in place of the product's own."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest

from moorage.operators.xsld.cache import build

SCRIPTS = resources.files(build.__package__) / "scripts"
NAMES = ("entrypoint.sh", "prestop.sh", "probe.sh")
LIMIT = 30.0
"""Seconds after which a script that hangs fails its test."""


class Place:
    """A folder with the scripts, the product's tools as fakes, and what they wrote down."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.home, self.tools = folder, folder / "home", folder / "tools"
        self.home.mkdir()
        self.tools.mkdir()
        for name in NAMES:
            self.tool(folder / name, (SCRIPTS / name).read_text())
        self.tool(self.tools / "sleep", f"#!/bin/sh\nexec {shutil.which('sleep')} 0.01\n")  # what is waited for is near
        self.started: list[subprocess.Popen[str]] = []
        self.env = {
            "PATH": f"{self.tools}:{os.environ['PATH']}",
            "PLACE": str(folder),
            "MEMBER_NAME": "c-1",
            "POD_IP": "10.0.0.9",
            "XSLD_HOME": str(self.home),
            "XSLD_ENTRYPOINT": str(folder / "image.sh"),
            "XSLD_ADDRESS_TRIES": "20",
            "XSLD_STOP_SECONDS": "500",
            "XSLD_SQL_TOOL": str(folder / "ij"),
            "XSLD_SQL_CONNECT": "CONNECT;",
            "XSLD_SQL_READ": "READ;",
            "XSLD_SQL_WRITE": "WRITE;",
            "XSLD_SQL_COUNT": "COUNT;",
        }

    @staticmethod
    def tool(path: Path, text: str) -> None:
        """An executable script."""
        path.write_text(text if text.startswith("#!") else f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def image(self, text: str) -> None:
        """The image's own entrypoint."""
        self.tool(self.folder / "image.sh", text)

    def ij(self, text: str) -> None:
        """The SQL tool: a fake that notes what it is asked."""
        self.tool(self.folder / "ij", f'asked=$(cat)\nprintf "%s\\n" "$asked" | tr "\\n" " " >> "$PLACE/asked"\n{text}')

    def start(self, name: str, *args: str, **env: str) -> subprocess.Popen[str]:
        """Run one of the scripts."""
        self.started.append(
            subprocess.Popen(
                ["sh", str(self.folder / name), *args],
                env={**self.env, **env},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        )
        return self.started[-1]

    def run(self, name: str, *args: str, **env: str) -> tuple[int, str]:
        """Run it to its end, and to that of all that it started: exit code and output."""
        running = self.start(name, *args, **env)
        out, err = running.communicate(timeout=LIMIT)

        assert "" == err
        return running.returncode, out

    def noted(self, name: str) -> str:
        """What a tool wrote down."""
        path = self.folder / name
        return path.read_text() if path.exists() else ""


def places(folder: Path) -> Iterator[Place]:
    """One, and after it nothing of what it started."""
    made = Place(folder)
    yield made
    for each in made.started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(each.pid, signal.SIGKILL)  # what it started may outlive it
        each.communicate(timeout=LIMIT)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    yield from places(tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_shellcheck_has_nothing_to_say(name: str) -> None:
    beside = Path(sys.executable).with_name("shellcheck")
    shellcheck = str(beside) if beside.exists() else shutil.which("shellcheck")
    if shellcheck is None:
        pytest.skip("there is no shellcheck")

    found = subprocess.run(
        [shellcheck, "--shell=sh", "-"], input=(SCRIPTS / name).read_text(), text=True, capture_output=True
    )

    assert (0, "") == (found.returncode, found.stdout)


# --- probe.sh


COUNTED = """ij version 10.8
ij> ij> 1
-----------
{}

1 row selected
ij> """
PROBES = {
    "the first is the group": ("c-0", f"printf '%s' '{COUNTED.format(1)}'", 0),
    "a later one that is alone has not joined": ("c-1", f"printf '%s' '{COUNTED.format(1)}'", 1),
    "a later one among others has": ("c-1", f"printf '%s' '{COUNTED.format('3          ')}'", 0),
    "ten is not the first": ("c-10", f"printf '%s' '{COUNTED.format(1)}'", 1),
    "many": ("c-10", f"printf '%s' '{COUNTED.format(12)}'", 0),
    "the database does not answer": ("c-0", "echo 'ERROR 08001: refused on port 1527'; exit 1", 1),
    "the database says nothing": ("c-0", ":", 1),
    "an error with numbers in it is no count": ("c-1", "echo 'ERROR 42X05: Table 12 does not exist'", 1),
    "an error on stderr": ("c-1", "echo 5 >&2; exit 1", 1),
}


@pytest.mark.parametrize(("member", "answer", "expected"), PROBES.values(), ids=PROBES)
def test_a_member_may_serve_once_it_has_joined(place: Place, member: str, answer: str, expected: int) -> None:
    place.ij(answer)

    assert (expected, "") == place.run("probe.sh", MEMBER_NAME=member)
    assert "CONNECT; COUNT;" in place.noted("asked")


def test_without_the_tool_a_running_member_may_serve(place: Place) -> None:
    assert (0, "") == place.run("probe.sh")


# --- prestop.sh


def stop_of(place: Place, text: str) -> None:
    place.tool(place.home / "stopXSLD.sh", f'echo run $$ >> "$PLACE/stops"\n{text}')


@pytest.mark.parametrize("code", [0, 1])
def test_an_orderly_stop_is_run_once(place: Place, code: int) -> None:
    stop_of(place, f"exit {code}")

    assert (0, "") == place.run("prestop.sh")
    assert 1 == place.noted("stops").count("run")


def test_without_a_stop_script_there_is_nothing_to_do(place: Place) -> None:
    assert (0, "") == place.run("prestop.sh")


def _only(place: Place, pid: int) -> None:
    """A grep that looks at one process, so that a test never ends another's."""
    real = shutil.which("grep")
    place.tool(place.tools / "grep", f'[ "$3" = /proc/{pid}/cmdline ] && exec {real} "$@"\nexit 1')


def _seconds(place: Place, each: int) -> None:
    """Seconds that pass once the stop, of which so many are waited for, has really begun."""
    real = shutil.which("sleep")
    place.tool(
        place.tools / "sleep",
        f"""echo . >> "$PLACE/slept"
begun=$((($(wc -l < "$PLACE/slept") + {each - 1}) / {each}))
until [ "$(cat "$PLACE/stops" 2>/dev/null | wc -l)" -ge "$begun" ]; do {real} 0.01; done""",
    )


def test_a_stop_that_hangs_on_the_catalog_server_is_run_again_after_that_was_killed(place: Place) -> None:
    place.tool(place.folder / "cs-default", "read -r line")
    catalog = subprocess.Popen([str(place.folder / "cs-default")], stdin=subprocess.PIPE)
    try:
        _only(place, catalog.pid)
        _seconds(place, 5)
        stop_of(place, '[ -e "$PLACE/hung" ] && exit 0\n: > "$PLACE/hung"\nexec tail -f /dev/null')

        assert (0, "") == place.run("prestop.sh", XSLD_STOP_SECONDS="5")
        assert -signal.SIGKILL == catalog.wait(LIMIT)
        assert 2 == place.noted("stops").count("run")
    finally:
        catalog.kill()
        catalog.communicate()


def test_a_stop_that_always_hangs_is_given_up(place: Place) -> None:
    _only(place, 0)
    _seconds(place, 3)
    stop_of(place, "exec tail -f /dev/null")

    assert (0, "") == place.run("prestop.sh", XSLD_STOP_SECONDS="3")
    pids = [int(word) for word in place.noted("stops").split() if word.isdecimal()]
    assert 2 == len(pids)
    ends = time.monotonic() + LIMIT
    while any(_alive(pid) for pid in pids):  # what was killed takes a moment to end
        assert time.monotonic() < ends, "none of them is left behind"
        time.sleep(0.01)


def _alive(pid: int) -> bool:
    """A zombie, whose parent has gone, is dead."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


# --- entrypoint.sh


@pytest.mark.parametrize("code", [0, 3])
def test_the_images_own_entrypoint_runs_and_its_code_counts(place: Place, code: int) -> None:
    place.image(f'echo "$@ as $XSLD_CONTAINER_ALIAS"; exit {code}')

    assert (code, "a b as myc1\n") == place.run("entrypoint.sh", "a", "b", MEMBER_NAME="my-c-1")


HEARD = "until grep -q '^SigCgt:.*[4567cdef][0-9a-f][0-9a-f][0-9a-f]$' /proc/$PPID/status; do sleep 1; done\n"
"""Waits until whoever started it listens to SIGTERM."""


def test_a_signal_is_passed_on_and_the_childs_code_counts(place: Place) -> None:
    place.image(f"{HEARD}trap 'echo stopping; exit 7' TERM\necho up\nwhile :; do sleep 1; done")
    running = place.start("entrypoint.sh")

    assert running.stdout is not None
    assert "up\n" == running.stdout.readline()
    running.terminate()
    out, _ = running.communicate(timeout=LIMIT)
    assert (7, "stopping\n") == (running.returncode, out)


def test_a_child_that_outlives_the_first_signal_is_waited_for(place: Place) -> None:
    place.image(
        f"{HEARD}n=0\ntrap 'n=$((n + 1)); echo $n; [ $n -lt 3 ] || exit 9' TERM\necho up\nwhile :; do sleep 1; done"
    )
    running = place.start("entrypoint.sh")

    assert running.stdout is not None
    for expected in ("up\n", "1\n", "2\n"):
        assert expected == running.stdout.readline()
        running.terminate()
    running.communicate(timeout=LIMIT)
    assert 9 == running.returncode


def test_a_child_that_a_signal_ends_is_told_as_such(place: Place) -> None:
    place.image(f"{HEARD}echo up\nexec tail -f /dev/null")
    running = place.start("entrypoint.sh")

    assert running.stdout is not None
    running.stdout.readline()
    running.terminate()
    running.communicate(timeout=LIMIT)
    assert 128 + signal.SIGTERM == running.returncode


READ = """ij version 10.8
ij> ij> IP_ADDRESS
---------------
{}

1 row selected
ij> """
STORED = 'case $asked in *WRITE*) echo "$POD_IP" > "$PLACE/stored" ;; *) cat "$PLACE/stored" ;; esac'


COUNT = 'grep -o CONNECT "$PLACE/asked" 2>/dev/null | grep -c .'


def member_of(place: Place, stored: str) -> None:
    """An image that runs until the address was looked at so many times."""
    (place.folder / "stored").write_text(stored)
    place.ij(STORED)
    place.image(f'while [ "$({COUNT})" -lt "$LOOKS" ]; do sleep 1; done')


ADDRESSES = {
    "the right one is left alone": (READ.format("10.0.0.9"), "1", "", 0),
    "an old one is set right, once": (
        READ.format("10.0.0.3"),
        "3",
        "moorage: the address of c-1 is now 10.0.0.9, it was 10.0.0.3\n",
        1,
    ),
    "no record, on a first start": (READ.format(""), "4", "", 0),
    "the database's own address is none": ("cannot connect to 127.0.0.1 on port 1527", "4", "", 0),
}


@pytest.mark.parametrize(("stored", "looks", "said", "writes"), ADDRESSES.values(), ids=ADDRESSES)
def test_the_address_in_the_members_record(place: Place, stored: str, looks: str, said: str, writes: int) -> None:
    member_of(place, stored)

    assert (0, said) == place.run("entrypoint.sh", LOOKS=looks)
    assert writes == place.noted("asked").count("CONNECT; WRITE;")


def test_an_address_of_the_other_family_is_set_right(place: Place) -> None:
    member_of(place, READ.format("fd00::3"))

    assert (0, "moorage: the address of c-1 is now fd00::9, it was fd00::3\n") == place.run(
        "entrypoint.sh", LOOKS="3", POD_IP="fd00::9"
    )


def test_after_so_many_tries_the_address_is_left_alone(place: Place) -> None:
    member_of(place, READ.format(""))
    place.image('while kill -0 "$PPID" 2>/dev/null && [ ! -e "$PLACE/enough" ]; do sleep 1; done')
    place.ij(f'[ "$({COUNT})" -lt 5 ] || : > "$PLACE/enough"\n{STORED}')

    assert (0, "") == place.run("entrypoint.sh", XSLD_ADDRESS_TRIES="5")
    assert 5 == place.noted("asked").count("CONNECT; READ;")


def test_the_search_for_the_address_ends_with_the_member(place: Place) -> None:
    member_of(place, READ.format(""))

    assert 0 == place.run("entrypoint.sh", LOOKS="2", XSLD_ADDRESS_TRIES="1000000")[0]


def test_without_the_tool_the_member_runs_all_the_same(place: Place) -> None:
    place.image("echo up")

    assert (0, "up\n") == place.run("entrypoint.sh")
    assert "" == place.noted("asked")


def test_a_tool_that_hangs_does_not_keep_the_member_from_starting(place: Place) -> None:
    place.ij(': > "$PLACE/hangs"; exec <&- >&- 2>&-; while [ ! -e "$PLACE/over" ]; do sleep 1; done')
    place.image('while [ ! -e "$PLACE/hangs" ]; do sleep 1; done\n: > "$PLACE/over"\necho up; exit 4')

    assert (4, "up\n") == place.run("entrypoint.sh")
