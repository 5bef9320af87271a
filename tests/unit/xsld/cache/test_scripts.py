"""The scripts in a member's container, run by sh against small tools in place of the product's own."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest

from moorage.operators.xsld.cache import build

SCRIPTS = resources.files(build.__package__) / "scripts"
NAMES = ("alive.sh", "entrypoint.sh", "prestop.sh", "probe.sh", "within.sh")
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
        self.admin: socket.socket | None = None
        self.env = {
            "PATH": f"{self.tools}:{os.environ['PATH']}",
            "PLACE": str(folder),
            "TMPDIR": str(folder),
            "MEMBER_NAME": "c-1",
            "POD_IP": "10.0.0.9",
            "XSLD_HOME": str(self.home),
            "XSLD_ENTRYPOINT": str(folder / "image.sh"),
            "XSLD_ADDRESS_TRIES": "20",
            "XSLD_STOP_SECONDS": "500",
            "XSLD_ANSWER_SECONDS": "20",
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
    if made.admin is not None:
        made.admin.close()


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
    # id: (the member, who is named as the whole group, what the database says, the code)
    "one that is alone is the group, where moorage says so": ("c-0", "c-0", COUNTED.format(1), 0),
    "whatever its number": ("c-1", "c-1", COUNTED.format(1), 0),
    "the first is no exception: it may have come back blank": ("c-0", "", COUNTED.format(1), 1),
    "nor while another is the group": ("c-0", "c-1", COUNTED.format(1), 1),
    "nobody has said anything": ("c-0", None, COUNTED.format(1), 1),
    "one among others": ("c-1", "", COUNTED.format("3          "), 0),
    "one among others, whoever was alone before": ("c-0", "c-1", COUNTED.format(2), 0),
    "ten is not one": ("c-10", "c-1", COUNTED.format(1), 1),
    "many": ("c-10", "", COUNTED.format(12), 0),
    "no member at all": ("c-0", "c-0", COUNTED.format(0), 1),
}


@pytest.mark.parametrize(("member", "alone", "answer", "expected"), PROBES.values(), ids=PROBES)
def test_a_member_serves_among_others_or_where_it_is_the_group(
    place: Place, member: str, alone: str | None, answer: str, expected: int
) -> None:
    place.ij(f"printf '%s' '{answer}'")
    if alone is not None:
        (place.folder / "alone").write_text(alone)

    assert (expected, "") == place.run("probe.sh", MEMBER_NAME=member)
    assert "CONNECT; COUNT;" in place.noted("asked")


SILENT = {
    "the database does not answer": "echo 'ERROR 08001: refused on port 1527'; exit 1",
    "the database says nothing": ":",
    "an error with numbers in it is no count": "echo 'ERROR 42X05: Table 12 does not exist'",
    "an error on stderr": "echo 5 >&2; exit 1",
}


@pytest.mark.parametrize("answer", SILENT.values(), ids=SILENT)
def test_a_member_whose_database_does_not_tell_serves_nobody(place: Place, answer: str) -> None:
    place.ij(answer)
    (place.folder / "alone").write_text("c-0")

    assert (1, "") == place.run("probe.sh", MEMBER_NAME="c-0")


def test_without_the_tool_a_running_member_may_serve(place: Place) -> None:
    assert (0, "") == place.run("probe.sh")


HANGS = 'echo $$ >> "$PLACE/asking"\nexec tail -f /dev/null'


def hanging(place: Place) -> None:
    """A server that was stopped: it is connected to, and never answers."""
    place.ij(HANGS)


def tools(place: Place, *, without: str) -> str:
    """A PATH with all tools but one, of which sleeping takes its time."""
    folder = place.folder / "some"
    folder.mkdir()
    for name in ("cat", "grep", "sh", "sleep", "tail", "timeout", "tr"):
        if name != without and (found := shutil.which(name)):
            (folder / name).symlink_to(found)
    return f"{folder}:{place.tools}"


def left_behind(place: Place) -> list[int]:
    """Processes of the tool that still are there."""
    return [int(pid) for pid in place.noted("asking").split() if _alive(int(pid))]


def until_none_is_left(place: Place) -> None:
    ends = time.monotonic() + LIMIT
    while left_behind(place):
        assert time.monotonic() < ends, "none of them is left behind"
        time.sleep(0.01)


@pytest.mark.parametrize("name", ["probe.sh", "alive.sh"])
@pytest.mark.parametrize("without", ["", "timeout"])
def test_a_server_that_hangs_is_told_in_time_and_nothing_piles_up(place: Place, name: str, without: str) -> None:
    hanging(place)
    env = {"PATH": tools(place, without=without), "XSLD_ANSWER_SECONDS": "2", **listening(place)}

    for _ in range(2):
        assert (1, "") == place.run(name, **env)
    assert 2 == len(place.noted("asking").split())
    until_none_is_left(place)


def test_a_probe_that_is_cut_off_leaves_nothing_behind(place: Place) -> None:
    """The kubelet ends the script alone, when that takes too long."""
    hanging(place)
    cut = place.start("probe.sh", XSLD_ANSWER_SECONDS="1")
    ends = time.monotonic() + LIMIT
    while not place.noted("asking"):
        assert time.monotonic() < ends
        time.sleep(0.01)
    cut.kill()

    until_none_is_left(place)


# --- within.sh


@pytest.mark.parametrize("without", ["", "timeout"])
@pytest.mark.parametrize("code", [0, 3])
def test_what_ends_in_time_is_as_if_alone(place: Place, code: int, without: str) -> None:
    place.tool(place.folder / "it", f'echo "$1 $(cat)"; exit {code}')
    path = tools(place, without=without)
    ran = subprocess.run(
        ["sh", str(place.folder / "within.sh"), "20", str(place.folder / "it"), "given"],
        input="asked",
        env={**place.env, "PATH": path},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )

    assert (code, "given asked\n", "") == (ran.returncode, ran.stdout, ran.stderr)


# --- alive.sh


def listening(place: Place) -> dict[str, str]:
    """An admin port that is open."""
    place.admin = socket.create_server(("127.0.0.1", 0))
    return {"XSLD_ADMIN_PORT": str(place.admin.getsockname()[1])}


ALIVE = {
    "it answers": f"printf '%s' '{COUNTED.format(1)}'",
    "it answers with an error": "echo 'ERROR 08004: in slave mode'; exit 1",
    "it refuses": "echo 'ERROR 08001: refused on port 1527'; exit 1",
}


@pytest.mark.parametrize("answer", ALIVE.values(), ids=ALIVE)
def test_whatever_the_database_says_the_server_is_alive(place: Place, answer: str) -> None:
    place.ij(answer)

    assert (0, "") == place.run("alive.sh", **listening(place))
    assert "CONNECT;" in place.noted("asked")


def test_without_the_tool_an_open_port_must_do(place: Place) -> None:
    assert (0, "") == place.run("alive.sh", **listening(place))


def test_a_server_whose_admin_port_is_closed_is_not_alive(place: Place) -> None:
    place.ij(ALIVE["it answers"])
    port = listening(place)
    assert place.admin is not None
    place.admin.close()

    assert (1, "") == place.run("alive.sh", **port)


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


def test_a_stop_that_hangs_on_the_catalog_server_is_run_again_after_that_was_killed(place: Place) -> None:
    place.tool(place.folder / "cs-default", "read -r line")
    catalog = subprocess.Popen([str(place.folder / "cs-default")], stdin=subprocess.PIPE)
    try:
        _only(place, catalog.pid)
        stop_of(place, '[ -e "$PLACE/hung" ] && exit 0\n: > "$PLACE/hung"\nexec tail -f /dev/null')

        assert (0, "") == place.run("prestop.sh", XSLD_STOP_SECONDS="1")
        assert -signal.SIGKILL == catalog.wait(LIMIT)
        assert 2 == place.noted("stops").count("run")
    finally:
        catalog.kill()
        catalog.communicate()


def test_a_stop_that_always_hangs_is_given_up(place: Place) -> None:
    _only(place, 0)
    stop_of(place, "exec tail -f /dev/null")

    assert (0, "") == place.run("prestop.sh", XSLD_STOP_SECONDS="1")
    pids = [int(word) for word in place.noted("stops").split() if word.isdecimal()]
    assert 2 == len(pids)
    ends = time.monotonic() + LIMIT
    while any(_alive(pid) for pid in pids):  # what was killed takes a moment to end
        assert time.monotonic() < ends, "none of them is left behind"
        time.sleep(0.01)


def test_the_container_does_not_end_before_the_hook_that_stops_it(place: Place) -> None:
    """Else the runtime cuts the hook off with the container, and every orderly stop is told as one that failed."""
    place.image('while [ ! -e "$PLACE/stopped" ]; do sleep 1; done')
    stop_of(place, ': > "$PLACE/stopped"; while [ ! -e "$PLACE/enough" ]; do sleep 1; done')
    container = place.start("entrypoint.sh")
    hook = place.start("prestop.sh")
    ends = time.monotonic() + LIMIT
    while not place.noted("stops"):
        assert time.monotonic() < ends
        time.sleep(0.01)
    with pytest.raises(subprocess.TimeoutExpired):
        container.wait(0.5)
    (place.folder / "enough").touch()

    assert 0 == hook.wait(LIMIT)
    assert 0 == container.wait(LIMIT)


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
