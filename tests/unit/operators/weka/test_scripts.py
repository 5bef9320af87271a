"""What runs in the pods, beside a `weka` of paper: what is asked and told, and when a container may end."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import stat
import subprocess
import sys
import types as python_types
from pathlib import Path
from typing import Any

import msgspec
import pytest

from moorage.operators.weka import answers, dialect
from moorage.operators.weka.container import build

SCRIPTS = Path(build.__file__).parents[1] / "scripts"
LOGIN = {
    "username": "admin",
    "password": "s3cret-p",
    "org": "Root",
    "join-secret": "s3cret-j",
    "user-password": "s3cret-u",
}
PAPER = """#!{python}
import json, os, sys, time
here = {here!r}
words = sys.argv[1:]
with open(here + "/calls", "a") as file:
    file.write(json.dumps([words, dict((k, v) for k, v in os.environ.items() if k.startswith("WEKA_"))]) + "\\n")
said = json.load(open(here + "/said"))
key = max((it for it in said if " ".join(words).startswith(it)), key=len, default=None)
found = said.get(key, "")
if isinstance(found, dict) and "fails" in found:
    sys.stderr.write(found["fails"])
    sys.exit(1)
if isinstance(found, dict) and "sleeps" in found:
    time.sleep(found["sleeps"])
if isinstance(found, dict) and "stops" in found:
    ps = [dict(name="c0", runStatus="Stopped")]
    said["local ps"] = ps
    json.dump(said, open(here + "/said", "w"))
print(found if isinstance(found, str) else json.dumps(found))
"""
IDENTITY = {"has_value": True, "value": {"cluster_guid": "g-1", "host_id": "HostId<7>"}}
MEMBER = {"host_id": "HostId<7>", "container_name": "c0", "host_ip": "10.0.0.7", "status": "UP", "state": "ACTIVE"}
DRIVE = {"uuid": "d-1", "serial_number": "s1", "status": "ACTIVE", "host_id": 7, "device_path": "/dev/x"}
RUNS = [{"name": "c0", "runStatus": "Running", "internalStatus": {"state": "READY"}}]


class Pod:
    """A folder with all that a pod would have."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files = dialect.Files(
            data=str(root / "data"),
            runtime=str(root / "runtime"),
            login=str(root / "login"),
            allow_stop=str(root / "allow-stop"),
            allow_force_stop=str(root / "allow-force-stop"),
            cancel_debug_sleep=str(root / "cancel"),
        )
        (root / "login").mkdir()
        for key, text in LOGIN.items():
            (root / "login" / key).write_text(text)
        for name, text in build.texts().items():
            (root / name).write_text(text)
        weka = root / "weka"
        weka.write_text(PAPER.format(python=sys.executable, here=str(root)))
        weka.chmod(weka.stat().st_mode | stat.S_IXUSR)
        self.commands = dialect.Commands(weka=str(weka), sign=str(weka), seconds=5.0)
        self.said: dict[str, Any] = {}

    def say(self, **more: Any) -> None:
        """What the paper answers, by how its words begin; `a_b` stands for `a b`."""
        self.said |= {name.replace("_", " "): it for name, it in more.items()}
        (self.root / "said").write_text(json.dumps(self.said))
        settings = {"files": msgspec.structs.asdict(self.files), "commands": msgspec.structs.asdict(self.commands)}
        (self.root / "settings.json").write_text(json.dumps(settings))

    @property
    def environ(self) -> dict[str, str]:
        return {**os.environ, "NAME": "c0", "MODE": "drive", "POD_ID": "p-0", "CORES": "1", "MANAGEMENT_IP": "10.0.0.7"}

    def ask(self, what: str, as_: Any = answers.Done, **args: Any) -> Any:
        command = [sys.executable, str(self.root / build.TOOL), what, json.dumps(args)]
        done = subprocess.run(command, env=self.environ, capture_output=True, check=True, timeout=60)
        return answers.read(done.stdout.decode(), as_)

    @property
    def calls(self) -> list[list[str]]:
        return [words for words, _ in self.told]

    @property
    def told(self) -> list[tuple[list[str], dict[str, str]]]:
        """Each call, and what it was told by its environment."""
        path = self.root / "calls"
        return [tuple(json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []  # type: ignore[misc]


@pytest.fixture
def pod(tmp_path: Path) -> Pod:
    made = Pod(tmp_path)
    made.say(
        local_ps=RUNS,
        local_run=IDENTITY,
        list=[{"serial_id": "s1", "block_device": "/dev/x", "is_signed": True, "weka_guid": ""}],
        status={"name": "hello", "status": "OK", "io_status": "STARTED", "stripe_data_drives": 3, "hot_spare": 1},
        cluster_container=[MEMBER],
        cluster_drive=[],
        user=[{"username": "admin"}],
        fs=[],
    )
    Path(made.files.runtime).mkdir()
    return made


# --- questions --------------------------------------------------------------------------------------------------------


def test_a_container_tells_of_itself(pod: Pod) -> None:
    text = '{"wekaPort":35000}'
    (Path(pod.files.runtime) / "resources.json").write_text(text)
    (Path(pod.files.runtime) / "management_ips").write_text("10.0.0.7\n10.1.0.7\n")
    (Path(pod.files.runtime) / "persistency-configured").touch()

    assert answers.Local(
        pod="p-0",
        persistent=True,
        resources=hashlib.sha256(text.encode()).hexdigest(),
        run_status="Running",
        internal="READY",
        cluster="g-1",
        host=7,
        addresses=("10.0.0.7", "10.1.0.7"),
        devices=(answers.Device("s1", "/dev/x", signed=True),),
    ) == pod.ask("local", answers.Local)


def test_an_agent_that_does_not_answer_is_told_of(pod: Pod) -> None:
    pod.say(local_ps={"fails": "no agent"})
    found = pod.ask("local", answers.Local)

    assert "no agent" in found.agent
    assert ("", None) == (found.cluster, found.host)


def test_a_cluster_tells_of_itself(pod: Pod) -> None:
    pod.say(
        cluster_drive=[DRIVE],
        status={
            "name": "hello",
            "status": "REBUILDING",
            "io_status": "STARTED",
            "stripe_data_drives": 3,
            "stripe_protection_drives": 2,
            "hot_spare": 1,
            "capacity": {"total_bytes": 2**40},
            "rebuild": {
                "movingData": True,
                "protectionState": [{"MiB": 5, "numFailures": 1}, {"MiB": 9, "numFailures": 0}],
            },
        },
        fs=[{"name": "default"}],
        fs_group=[{"name": "default"}],
    )
    found = pod.ask("cluster", answers.Cluster)

    assert ("g-1", "REBUILDING", 3, 2, 1, 5, True, 2**40) == (
        found.guid,
        found.status,
        found.data,
        found.parity,
        found.hot_spare,
        found.unprotected,
        found.moving,
        found.capacity,
    )
    assert (answers.Member(7, "c0", "10.0.0.7", "UP", "ACTIVE"),) == found.members
    assert (answers.Drive("d-1", "s1", "ACTIVE", 7, "/dev/x"),) == found.drives
    assert (("admin",), ("default",), ("default",)) == (found.users, found.groups, found.filesystems)


def test_one_that_belongs_to_no_cluster_tells_of_none(pod: Pod) -> None:
    pod.say(local_run={"has_value": False})

    assert answers.Cluster() == pod.ask("cluster", answers.Cluster)


def test_an_answer_that_is_no_json_is_nothing_known(pod: Pod) -> None:
    pod.say(status="oh no")

    assert "Unknown" == pod.ask("cluster").fault


# --- orders -----------------------------------------------------------------------------------------------------------

MADE: list[tuple[str, dict[str, Any], list[str]]] = [
    (
        "cluster.set",
        {"parity": 2, "data": 3},
        ["cluster", "update", "--parity-drives", "2", "--data-drives", "3"],
    ),
    (
        "cluster.set",
        {"name": "hello", "raft": 9},
        ["cluster", "update", "--cluster-name", "hello", "--bucket-raft-size", "9"],
    ),
    ("cluster.set", {"hot_spare": 0}, ["cluster", "hot-spare", "0"]),
    ("cluster.start_io", {"started": "STARTED"}, ["cluster", "start-io"]),
    ("group.add", {"name": "default"}, ["fs", "group", "create", "default"]),
    (
        "drive.add",
        {"pod": "p-0", "host": 7, "serial": "s1", "path": "/dev/x"},
        ["cluster", "drive", "add", "7", "/dev/x"],
    ),
    ("member.deactivate", {"host": 7}, ["cluster", "container", "deactivate", "7"]),
    ("member.remove", {"host": 7}, ["cluster", "container", "remove", "7", "--no-unimprint"]),
    (
        "filesystem.add",
        {"name": "default", "group": "default", "total": 9, "most": 3, "least": 1},
        ["fs", "create", "default", "default", "9", "--thin-provision-max-ssd", "3", "--thin-provision-min-ssd", "1"],
    ),
    (
        "upgrade.phase",
        {"phase": "DrivePhase", "version": "4.4.2"},
        ["debug", "jrpc", "upgrade_phase_start", "target_phase_type=DrivePhase", "target_version_name=4.4.2"],
    ),
]


@pytest.mark.parametrize(("order", "args", "words"), MADE)
def test_an_order_becomes_a_call(pod: Pod, order: str, args: dict[str, Any], words: list[str]) -> None:
    pod.say(status={})

    assert answers.Done() == pod.ask(order, **args)
    assert words == pod.calls[-1]


def test_an_upgrade_that_has_a_phase_is_brought_to_its_end(pod: Pod) -> None:
    pod.say(status={"upgrade_phase": "ComputeRollingPhase"})

    assert answers.Done() == pod.ask("upgrade.finish")
    assert ["upgrade_phase_finish", "unprepare_leader_for_upgrade"] == [it[2] for it in pod.calls if it[0] == "debug"]


def test_an_order_that_ended_halfway_is_brought_to_its_end_by_the_next(pod: Pod) -> None:
    """An upgrade whose phase is over may have left the leader prepared; if it is not, that is as it should be."""
    pod.say(status={"upgrade_phase": ""})
    found = pod.ask("upgrade.finish"), [it[2] for it in pod.calls if it[0] == "debug"]
    pod.said["debug jrpc unprepare"] = {"fails": "no leader is prepared"}
    pod.say()

    assert (answers.Done(), ["unprepare_leader_for_upgrade"]) == found
    assert answers.Done() == pod.ask("upgrade.finish")
    pod.say(status={"upgrade_phase": "DrivePhase"})
    assert "Refused" == pod.ask("upgrade.finish").fault


REPEATED: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("cluster.form", {"members": []}, {}, "cluster create"),
    ("container.join", {"to": ["10.0.0.1:35000"]}, {}, "local resources"),
    ("cluster.start_io", {"started": "STARTED"}, {"status": {"io_status": "STARTED"}}, "cluster start-io"),
    ("cluster.start_io", {"started": "UP"}, {"status": {"io_status": "starting"}}, "cluster start-io"),
    ("upgrade.phase", {"phase": "DrivePhase"}, {"status": {"upgrade_phase": "DrivePhase"}}, "debug"),
    ("upgrade.finish", {}, {"status": {"upgrade_phase": ""}}, "debug jrpc upgrade_phase_finish"),
    ("user.add", {"user": "admin"}, {}, "user add"),
    ("group.add", {"name": "g"}, {"fs_group": [{"name": "g"}]}, "fs group create"),
    ("filesystem.add", {"name": "f"}, {"fs": [{"name": "f"}]}, "fs create"),
    ("drive.add", {"serial": "s1"}, {"cluster_drive": [DRIVE]}, "cluster drive add"),
    ("drive.remove", {"uuid": "d-9"}, {}, "cluster drive remove"),
    ("drive.deactivate", {"uuid": "d-9"}, {}, "cluster drive deactivate"),
    ("member.remove", {"host": 9}, {}, "cluster container remove"),
    (
        "member.deactivate",
        {"host": 7},
        {"cluster_container": [{**MEMBER, "state": "INACTIVE"}]},
        "cluster container deactivate",
    ),
]


@pytest.mark.parametrize(("order", "args", "said", "never"), REPEATED)
def test_an_order_that_is_carried_out_already_is_none(
    pod: Pod, order: str, args: dict[str, Any], said: dict[str, Any], never: str
) -> None:
    """So that each can be repeated after an answer that was lost."""
    pod.say(**said)

    assert answers.Done() == pod.ask(order, **args)
    assert not [it for it in pod.calls if " ".join(it).startswith(never)]


def test_a_serial_that_two_drives_bear_is_added_once(pod: Pod) -> None:
    """As of machines that were cloned: the cluster has that of another container already."""
    pod.say(cluster_drive=[{**DRIVE, "host_id": "HostId<3>"}])
    found = pod.ask("drive.add", pod="p-0", host=7, serial="s1", path="/dev/x")

    assert "Refused" == found.fault
    assert "the cluster lists drive s1 as that of another container" in found.message


@pytest.mark.parametrize(
    ("device", "why"),
    [
        ({"serial_id": "s1", "block_device": "/dev/y"}, "is not here as it was seen"),
        ({"serial_id": "s1", "block_device": "/dev/x", "mounted": True}, "may hold somebody's data"),
        ({"serial_id": "s1", "block_device": "/dev/x", "weka_guid": "g-2"}, "may hold somebody's data"),
    ],
)
def test_a_drive_that_may_be_somebodys_is_never_added(pod: Pod, device: dict[str, Any], why: str) -> None:
    """Right before the act, whatever was seen before."""
    pod.say(list=[device])
    found = pod.ask("drive.add", pod="p-0", host=7, serial="s1", path="/dev/x")

    assert "Refused" == found.fault
    assert why in found.message
    assert ["cluster", "drive", "add", "7", "/dev/x"] not in pod.calls


FORM = {"members": [["10.0.0.7", 35_000], ["10.0.0.8", 35_000]], "leadership": 5}


def test_secrets_go_by_the_environment(pod: Pod) -> None:
    """None is an argument, which a list of processes shows."""
    pod.say(local_run={"has_value": False})
    pod.ask("cluster.form", **FORM)
    pod.say(local_run=IDENTITY)
    pod.ask("user.add", user="weka-cluster-hello")
    create = next(given for words, given in pod.told if words[:2] == ["cluster", "create"])
    add = next(given for words, given in pod.told if words[:2] == ["user", "add"])

    assert ("s3cret-j", "s3cret-p") == (create["WEKA_JOIN_SECRET"], create["WEKA_ADMIN_PASSWORD"])
    assert ("admin", "s3cret-p", "s3cret-u") == (add["WEKA_USERNAME"], add["WEKA_PASSWORD"], add["WEKA_NEW_PASSWORD"])
    assert "s3cret" not in json.dumps(pod.calls)
    words = ["10.0.0.7", "10.0.0.8", "--host-ips", "10.0.0.7:35000,10.0.0.8:35000", "--leadership-size", "5"]
    assert ["cluster", "create", *words] in pod.calls


def test_secrets_go_by_arguments_where_the_table_says_so(pod: Pod) -> None:
    pod.commands = msgspec.structs.replace(pod.commands, secrets_by="Arguments")
    pod.say(local_run={"has_value": False})
    pod.ask("cluster.form", **FORM)

    assert "--join-secret=s3cret-j" in next(it for it in pod.calls if it[:2] == ["cluster", "create"])


def test_what_the_product_refuses_is_told_in_its_words(pod: Pod) -> None:
    pod.say(status={}, **{"cluster_start-io": {"fails": "not enough drives"}})
    found = pod.ask("cluster.start_io", started="STARTED")

    assert ("Refused", True) == (found.fault, "not enough drives" in found.message)


def test_what_gave_no_answer_may_have_happened(pod: Pod) -> None:
    pod.commands = msgspec.structs.replace(pod.commands, seconds=0.2)
    pod.say(status={}, **{"cluster_start-io": {"sleeps": 30}})

    assert "Unknown" == pod.ask("cluster.start_io", started="STARTED").fault


@pytest.mark.parametrize("order", ["container.allow_stop", "container.write_resources"])
def test_another_pod_that_has_taken_its_place_is_told_nothing(pod: Pod, order: str) -> None:
    assert "Refused" == pod.ask(order, pod="p-9", force=False, text="{}").fault
    assert not (pod.root / "allow-stop").exists()
    assert not list(Path(pod.files.runtime).iterdir())


def test_resources_are_written_as_they_are_reckoned(pod: Pod) -> None:
    """The operator compares digests of its own text with those of the file."""
    resources = {"wekaPort": 35_000, "drives": ["s1"]}
    pod.ask("container.write_resources", pod="p-0", text=build.resources_text(resources))

    assert build.resources_digest(resources) == pod.ask("local", answers.Local).resources


# --- the first process ------------------------------------------------------------------------------------------------


def module(name: str) -> python_types.ModuleType:
    made = python_types.ModuleType(name)
    made.__file__ = str(SCRIPTS / f"{name}.py")
    exec(compile((SCRIPTS / f"{name}.py").read_text(), made.__file__, "exec"), made.__dict__)
    return made


RUNTIME = module("weka_runtime")


@pytest.mark.parametrize(
    ("mode", "stop", "force", "ends", "forced"),
    [
        ("drive", False, False, False, False),
        ("drive", True, False, True, False),
        ("drive", False, True, True, True),
        ("compute", True, True, True, True),
        ("s3", False, False, False, False),
        ("client", False, False, False, True),
        ("client", True, False, True, True),
        ("envoy", False, False, True, True),
        ("data-services", False, False, True, False),
    ],
)
def test_when_it_may_end_and_how(mode: str, stop: bool, force: bool, ends: bool, forced: bool) -> None:
    told = RUNTIME.Instructions(stop, force)

    assert (ends, forced) == (RUNTIME.may_end(mode, told), RUNTIME.is_forced(mode, told))


@pytest.mark.parametrize(
    ("text", "good"), [('{"wekaPort": 1}', True), ("", False), ('{"wekaPort"', False), ("[]", False), ("{}", False)]
)
def test_resources_that_are_cut_are_none(text: str, good: bool) -> None:
    assert good == (RUNTIME.read_resources(text) is not None)


def test_an_agent_that_lists_nobody_has_nobody_to_stop() -> None:
    assert RUNTIME.is_stopped([], "c0")
    assert RUNTIME.is_stopped([{"name": "c0", "runStatus": "Stopped"}, {"name": "c1", "runStatus": "Running"}], "c0")
    assert not RUNTIME.is_stopped(RUNS, "c0")


class Running:
    """The first process of a pod, at work."""

    def __init__(self, pod: Pod) -> None:
        self.pod = pod

    async def __aenter__(self) -> Running:
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, str(self.pod.root / build.RUNTIME), env=self.pod.environ
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()

    async def until(self, condition: Any, within: float = 30.0) -> None:
        async with asyncio.timeout(within):
            while not condition():
                await asyncio.sleep(0.02)

    def has_called(self, *words: str) -> bool:
        return any(it[: len(words)] == [*words] for it in self.pod.calls)

    async def start(self) -> None:
        """Until the container runs."""
        await self.until((Path(self.pod.files.runtime) / "persistency-configured").exists)
        self.pod.ask("container.write_resources", pod="p-0", text='{"wekaPort":35000,"failureDomain":"r1"}')
        await self.until(lambda: self.has_called("local", "start", "c0"))


async def test_it_starts_with_what_it_gets_and_ends_when_it_may(pod: Pod) -> None:
    """Asked to end, it waits for leave; then it stops gracefully, and ends."""
    pod.say(local_ps=[], local_stop={"stops": True})
    async with Running(pod) as it:
        await it.start()
        words = ["--name", "c0", "--cores", "1", "--base-port", "35000", "--drive-only", "--failure-domain", "r1"]
        assert ["local", "setup", "container", *words] in pod.calls
        pod.say(local_ps=RUNS)

        it.process.send_signal(signal.SIGTERM)
        seen = len(pod.calls)
        pod.ask("local", answers.Local)
        assert not it.has_called("local", "stop")
        assert len(pod.calls) > seen
        pod.ask("container.allow_stop", pod="p-0", force=False)
        await it.until(lambda: it.process.returncode is not None)

    assert 0 == it.process.returncode
    assert it.has_called("local", "stop", "-g", "c0")
    assert not it.has_called("local", "stop", "--force", "c0")


async def test_leave_alone_ends_nothing(pod: Pod) -> None:
    """A file that says that it may stop is none that says that it should."""
    async with Running(pod) as it:
        await it.start()
        pod.ask("container.allow_stop", pod="p-0", force=True)
        found = await asyncio.gather(asyncio.wait_for(it.process.wait(), 3.0), return_exceptions=True)

        assert isinstance(found[0], TimeoutError)
        assert not it.has_called("local", "stop")


async def test_leave_to_force_is_heeded_while_it_stops(pod: Pod) -> None:
    """A graceful stop that hangs is given up for it."""
    pod.say(**{"local_stop_-g": {"sleeps": 60}, "local_stop_--force": {"stops": True}})
    async with Running(pod) as it:
        await it.start()
        it.process.send_signal(signal.SIGTERM)
        pod.ask("container.allow_stop", pod="p-0", force=False)
        await it.until(lambda: it.has_called("local", "stop", "-g", "c0"))
        pod.ask("container.allow_stop", pod="p-0", force=True)
        await it.until(lambda: it.process.returncode is not None)

    assert it.has_called("local", "stop", "--force", "c0")


async def test_one_that_never_began_ends_when_it_may(pod: Pod) -> None:
    async with Running(pod) as it:
        await it.until((Path(pod.files.runtime) / "persistency-configured").exists)
        it.process.send_signal(signal.SIGTERM)
        pod.ask("container.allow_stop", pod="p-0", force=False)
        await it.until(lambda: it.process.returncode is not None)

    assert 0 == it.process.returncode
    assert not it.has_called("local", "start")


def names_in(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


@pytest.mark.parametrize("forget", [True, False])
async def test_what_it_kept_goes_only_where_nobody_comes_back_to_it(pod: Pod, forget: bool) -> None:
    """With a stop at once alone it stays: a paused container finds it again."""
    kept, outside = Path(pod.files.data), pod.root / "outside"
    (kept / "traces").mkdir(parents=True)
    outside.mkdir()
    for file in (kept / "state", kept / "traces" / "one", outside / "other"):
        file.write_text("text")
    (kept / "link").symlink_to(outside)
    pod.say(**{"local_ps": [], "local_stop_--force": {"stops": True}})
    async with Running(pod) as it:
        await it.start()
        pod.say(local_ps=RUNS)
        it.process.send_signal(signal.SIGTERM)
        pod.ask("container.allow_stop", pod="p-0", force=True, **({"forget": True} if forget else {}))
        await it.until(lambda: it.process.returncode is not None)

    assert 0 == it.process.returncode
    assert ([] if forget else ["link", "state", "traces"]) == names_in(kept)
    assert (outside / "other").exists()
