"""Where the operators run: an API server of the benchmark's own, an account for each, and how each is started."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import yaml

from benchmarks import bare, measure
from benchmarks.operators import moorage_widget, names
from benchmarks.results import COLUMNS

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "benchmarks"
MEMBERS = ("member-1", "member-2", "member-3", "member-4")
"""Accounts of processes that run beside each other."""

ACCOUNTS = "benchmark-accounts"
WORKERS = 16


class Place(msgspec.Struct, frozen=True):
    """The API server as the harness sees it."""

    state: Path
    """The testbed's folder."""

    def pid(self) -> int:
        """The API server's process."""
        return int(json.loads((self.state / "run/processes/apiserver.json").read_text())["pid"])

    @property
    def kubeconfig(self) -> str:
        """Of the admin, who the harness is."""
        return str(self.state / "kubeconfig")

    def audit(self) -> measure.AuditLog:
        """Its audit log, from now on."""
        return measure.AuditLog(self.state / "audit.log")

    def access(self, runtime: str) -> str:
        """A kubeconfig for this runtime alone."""
        return str(self.state / f"{runtime}.kubeconfig")

    def grow(self) -> None:
        """Have controllers and a scheduler run beside the API server from now on."""
        _testbed(self.state, "up", "--level", "control")

    def give_access(self, runtime: str, token: str) -> None:
        """Write that kubeconfig."""
        config = yaml.safe_load(Path(self.kubeconfig).read_text())
        config["users"][0]["user"] = {"token": token}
        Path(self.access(runtime)).write_text(yaml.safe_dump(config))


def user(runtime: str) -> str:
    """Whose requests those of a runtime are."""
    return f"system:serviceaccount:{ACCOUNTS}:{runtime}"


# --- the API server --------------------------------------------------------------------------------------------------


def up(index: str) -> Place:
    """A testbed with an API server alone, in $BENCH_STATE or below build/."""
    state = Path(os.environ.get("BENCH_STATE") or BUILD / "testbed")
    _testbed(state, "--index", index, "up", "--level", "api")
    return Place(state)


def down(place: Place) -> None:
    """Take it away."""
    _testbed(place.state, "down")
    shutil.rmtree(place.state, ignore_errors=True)


def binary(name: str) -> Path:
    """One of the testbed's tools, such as helm."""
    return Path(os.environ.get("TESTBED_BIN") or ROOT / ".testbed" / "bin") / name


def _testbed(state: Path, *words: str) -> None:
    known = {"TESTBED_BIN": str(ROOT / ".testbed" / "bin"), **os.environ}
    command = [str(ROOT / "testbed" / "testbed"), "--state", str(state), *words]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=known)


async def prepare(place: Place, admin: bare.Client) -> None:
    """The Widget kind, and an account with all rights and a kubeconfig for each runtime."""
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    body = moorage_widget.definition()
    await admin.apply(f"{crds}/{body['metadata']['name']}", body, manager="benchmark")
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ACCOUNTS}}
    await admin.apply(f"/api/v1/namespaces/{ACCOUNTS}", space, manager="benchmark")
    for runtime in (*COLUMNS, *MEMBERS):
        await _account(place, admin, runtime)
    while True:  # right after a definition was made, its paths may still be missing
        try:
            await admin.list(names.widgets("default"), msgspec.Raw)
        except bare.RefusedError:
            await asyncio.sleep(0.2)
        else:
            break
    await asyncio.sleep(3.0)  # and watches of it may end early for some seconds


async def _account(place: Place, admin: bare.Client, runtime: str) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": runtime, "namespace": ACCOUNTS}}
    path = f"/api/v1/namespaces/{ACCOUNTS}/serviceaccounts/{runtime}"
    await admin.apply(path, account, manager="benchmark")
    rights = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"benchmark-{runtime}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": runtime, "namespace": ACCOUNTS}],
    }
    bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    await admin.apply(f"{bindings}/benchmark-{runtime}", rights, manager="benchmark")
    await admit(place, admin, runtime, path)


async def admit(place: Place, admin: bare.Client, runtime: str, account: str) -> None:
    """A kubeconfig for this runtime, as the service account of that path."""
    asked = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 86400},
    }
    token = json.loads(await admin.send("POST", f"{account}/token", asked))["status"]["token"]
    place.give_access(runtime, token)


# --- the operators ---------------------------------------------------------------------------------------------------


def build(runtimes: Collection[str]) -> list[str]:
    """The Go and the Rust operator, and environments with pinned requirements for kopf, and for moorage and `limit`.

    Returns the runtimes without those that can't be built here.
    """
    BUILD.mkdir(parents=True, exist_ok=True)
    there = list(runtimes)
    if not {"controller-runtime", "controller-runtime-ryw"}.isdisjoint(runtimes):
        building = f"go build -trimpath -mod=readonly -o {BUILD / 'controller-runtime'} -ldflags".split()
        subprocess.run(
            [*building, "-s -w", "."],
            cwd=ROOT / "benchmarks/operators/controller_runtime",
            env={**os.environ, "CGO_ENABLED": "0"},
            check=True,
        )
    if "kube-rs" in runtimes:
        if tool := cargo():
            _rust(tool, ROOT / "benchmarks/operators/kube_rs")
        else:
            told = "no cargo here, so kube-rs is left out; with Rust 1.89 or later on the PATH it takes part"
            print(told, file=sys.stderr, flush=True)
            there.remove("kube-rs")
    if "kopf" in runtimes:
        _environment("kopf", "benchmarks.txt")
    _environment("moorage", "runtime.txt")  # what the image has, and no tool of development that something might import
    return there


def cargo() -> Path | None:
    """On the PATH, or where it is installed for one user."""
    home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    found = shutil.which("cargo", path=os.pathsep.join([os.environ.get("PATH", ""), str(home / "bin")]))
    return Path(found) if found else None


def _rust(tool: Path, crate: Path) -> None:
    found = {**os.environ, "PATH": os.pathsep.join([str(tool.parent), os.environ.get("PATH", "")])}
    building = [str(tool), "build", "--release", "--quiet", "--target-dir", str(BUILD / "cargo")]
    subprocess.run(building, cwd=crate, env=found, check=True)


def _environment(name: str, requirements: str) -> None:
    pinned, stamp = ROOT / "requirements" / requirements, BUILD / name / ".stamp"
    made_of = f"{_interpreter()}\n{pinned.read_text()}"
    if stamp.exists() and stamp.read_text() == made_of:
        return
    subprocess.run([_interpreter(), "-m", "venv", "--clear", "--without-pip", str(BUILD / name)], check=True)
    pip = [sys.executable, "-m", "pip", "--python", python(name), "install", "--quiet", "--require-hashes"]
    subprocess.run([*pip, "-r", str(pinned)], check=True)
    stamp.write_text(made_of)


def install(name: str, folder: Path) -> None:
    """Have an environment find what is in that folder, also in processes that heed no PYTHONPATH, as moorage's own."""
    (found,) = (BUILD / name / "lib").glob("python3*/site-packages")
    (found / "installed.pth").write_text(f"{folder}\n")


def _interpreter() -> str:
    """The distribution's, as in the image, where it is of this version: others are often built without optimisation."""
    usual = Path(f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}")
    return str(usual) if usual.exists() else sys.executable


def python(name: str) -> str:
    """The interpreter of an environment."""
    return str(BUILD / name / "bin/python")


def environment() -> dict[str, str]:
    """Of Python processes that are measured."""
    found = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    found.pop("PYTHONDONTWRITEBYTECODE", None)  # or each start would compile everything anew
    return found


def command(runtime: str) -> list[str]:
    """How the operator of this runtime is started, its options aside."""
    match runtime:
        case "controller-runtime":
            return [str(BUILD / "controller-runtime")]
        case "controller-runtime-ryw":
            return [str(BUILD / "controller-runtime"), "--read-your-writes"]
        case "kube-rs":
            return [str(BUILD / "cargo/release/kube-rs")]
        case "kopf":
            return [python("kopf"), "-m", "benchmarks.operators.kopf_widget"]
        case "limit":
            return [python("moorage"), "-m", "benchmarks.operators.limit"]
        case "moorage":
            return [python("moorage"), "-m", "benchmarks.operators.moorage_widget"]
    raise ValueError(f"no runtime {runtime}")


def has_port(runtime: str) -> bool:
    """Whether it is told a port for its metrics."""
    return not runtime.startswith(("controller-runtime", "kube-rs"))


class Operator:
    """One running operator process."""

    def __init__(self, running: subprocess.Popen[bytes], port: int) -> None:
        self.pid, self.port = running.pid, port
        self._running = running

    def check(self) -> None:
        """Raise RuntimeError when it has ended by itself."""
        if self._running.poll() is not None:
            raise RuntimeError(f"the operator ended with code {self._running.returncode}")

    async def is_ready(self) -> bool:
        """Whether it says so at its port."""
        return await asyncio.to_thread(self._says_ready)

    def _says_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=10) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False

    def wait(self) -> int:
        """Its exit code, once it has ended."""
        return self._running.wait()


@asynccontextmanager
async def operator(
    place: Place,
    runtime: str,
    namespace: str,
    *,
    resync: float = 36000.0,
    wide: bool = False,
    profile: str = "",
    account: str = "",
    more: Sequence[str] = (),
) -> AsyncIterator[Operator]:
    """The operator of a runtime over one namespace; `profile` names a file for what cProfile finds.

    `account` is another than the runtime's own, `more` what is said on its command line besides.
    """
    port = free_port()
    words = ["--kubeconfig", place.access(account or runtime), "--namespace", namespace, "--resync", f"{resync:g}"]
    words += ["--workers", str(WORKERS)]
    words += ["--wide"] if wide else []
    words += ["--port", str(port)] if has_port(runtime) else []
    words += more
    start = command(runtime)
    if profile:
        start = [start[0], "-m", "benchmarks.operators.profiled", profile, start[-1]]
    async with running(runtime, [*start, *words], environment(), port) as process:
        yield process


@asynccontextmanager
async def running(name: str, words: Sequence[str], env: Mapping[str, str], port: int) -> AsyncIterator[Operator]:
    """That command, until the end of the block; what it says is in a log by that name."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(  # noqa: ASYNC220 - begins at once, and its time counts from here
            words, env=env, cwd=ROOT, stdout=log, stderr=log
        )
    try:
        yield Operator(process, port)
    finally:
        await _end(process)


async def _end(running: subprocess.Popen[bytes], patience: float = 15.0) -> None:
    running.send_signal(signal.SIGTERM)
    try:
        await asyncio.to_thread(running.wait, patience)
    except subprocess.TimeoutExpired:
        running.kill()
        running.wait()


def free_port() -> int:
    """One that nobody listens on."""
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        return int(it.getsockname()[1])


def order(runtimes: Sequence[str], number: int) -> list[str]:
    """The runtimes in the order of round `number`, a Williams design: each comes first equally often, and after each
    of the others too, as it may find the API server and the machine as that one has left them.
    """
    count = len(runtimes)
    zigzag = [(position + 1) // 2 if position % 2 else count - position // 2 for position in range(count)]
    if count % 2 and number % 2:
        zigzag.reverse()  # an odd number of them is balanced after twice as many rounds only
    return [runtimes[(place + number) % count] for place in zigzag]
