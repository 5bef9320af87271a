"""What the end-to-end tests drive the cluster with: kubectl, helm and the testbed as a person would, and waiting."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import datetime
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, TypeVar

import yaml

from . import reading

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[2]
STATE = Path(os.environ.get("TESTBED_STATE") or ROOT / ".testbed")
BIN = Path(os.environ.get("TESTBED_BIN") or STATE / "bin")
NAMESPACE = "moorage-system"
PATIENCE = float(os.environ.get("MOORAGE_TEST_PATIENCE", "120"))
"""Seconds after which a condition counts as never coming; generous, as machines are slow at times."""


HANGS = "--timeout=300s"
"""The same for what kubectl waits for itself."""

Failed = reading.Failed


def wait(what: str, condition: Callable[[], T | None], *, within: float = PATIENCE, every: float = 0.25) -> T:
    """The first true value of `condition`. Raises AssertionError that says what never came, and what was seen last."""
    end = time.monotonic() + within
    last: Any = None
    while time.monotonic() < end:
        try:
            last = condition()
        except Failed as error:
            last = error
        else:
            if last:
                return last
        time.sleep(every)  # the pace of polling, not a condition
    raise AssertionError(f"{what} did not come within {within:g} s; last seen: {last}")


def testbed(*args: str) -> str:
    """Run the testbed's tool. Raises Failed."""
    command = [str(ROOT / "testbed" / "testbed"), "--state", str(STATE), *args]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(f"testbed {' '.join(args)} -> {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


@dataclasses.dataclass(frozen=True)
class Cluster:
    """One cluster, by its kubeconfig."""

    kubeconfig: Path
    reader: reading.Reader

    @property
    def _environment(self) -> dict[str, str]:
        """In which commands find it, and the testbed's own tools."""
        return os.environ | {"KUBECONFIG": str(self.kubeconfig), "PATH": f"{BIN}:{os.environ['PATH']}"}

    def run(self, *command: str, stdin: str = "", check: bool = True) -> str:
        """Run kubectl, helm or moorage against it; returns stdout. Raises Failed."""
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, env=self._environment, check=False)
        if check and done.returncode:
            raise Failed(f"{' '.join(command)} -> {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout if not done.returncode else done.stdout + done.stderr

    def kubectl(self, *args: str, stdin: str = "", check: bool = True) -> str:
        """kubectl."""
        return self.run("kubectl", *args, stdin=stdin, check=check)

    def helm(self, *args: str, check: bool = True) -> str:
        """helm."""
        return self.run("helm", *args, check=check)

    def get(self, *args: str) -> Any:
        """`kubectl get ... -o json`, or None when there is no such object. Raises Failed."""
        return self.reader.get(*args)

    def items(self, *args: str) -> list[Any]:
        """The items of a list."""
        found = self.get(*args)
        return found["items"] if found else []

    def apply(self, *objects: dict[str, Any]) -> None:
        """`kubectl apply`."""
        self.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))

    @contextlib.contextmanager
    def forwarded(self, namespace: str, target: str, port: int) -> Iterator[int]:
        """A port of a pod or Service, as one of this host. Raises Failed."""
        command = [str(BIN / "kubectl"), "-n", namespace, "port-forward", target, f":{port}"]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self._environment
        )
        try:
            assert process.stdout is not None
            line = process.stdout.readline()  # Forwarding from 127.0.0.1:41234 -> 9444
            if not line.startswith("Forwarding from "):
                raise Failed(f"port-forward of {namespace} {target}: {line}")
            yield int(line.split()[2].rpartition(":")[2])
        finally:
            process.terminate()
            process.communicate()

    @contextlib.contextmanager
    def talking(self, *command: str, hears: Callable[[IO[str]], None]) -> Iterator[None]:
        """A command that goes on until its input ends, with the block; `hears` reads what it says. Raises Failed."""
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self._environment
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            hearing = threading.Thread(target=hears, args=(process.stdout,), daemon=True)
            hearing.start()
            try:
                yield
            finally:
                process.stdin.close()
                hearing.join(PATIENCE)
                if hearing.is_alive():  # it hangs
                    process.terminate()
        if process.returncode:
            raise Failed(f"{' '.join(command)} -> {process.returncode}")

    def refused(self, *objects: dict[str, Any]) -> str:
        """Apply what must be refused; returns the words of the refusal."""
        try:
            self.apply(*objects)
        except Failed as error:
            return str(error)
        raise AssertionError("it was admitted")


@dataclasses.dataclass(frozen=True)
class Collector:
    """One Collector under test, and what is read of it."""

    cluster: Cluster
    name: str
    namespace: str
    release: str
    tenant: str

    def object(self) -> Any:
        """The object, or None."""
        return self.cluster.get("collector", self.name, "-n", self.namespace)

    def condition(self, kind: str) -> dict[str, Any]:
        """One condition, empty when it is not there."""
        return _condition(self.object(), kind)

    def wait_ready(self, within: float = PATIENCE) -> Any:
        """Ready=True for the latest generation; returns the object."""

        def ready() -> Any:
            found = self.object()
            if not found or found["status"].get("observedGeneration") != found["metadata"]["generation"]:
                return None
            return found if _condition(found, "Ready").get("status") == "True" else None

        return wait(f"Ready=True of {self.name}", lambda: ready() or self._not_yet(), within=within)

    def wait_reason(self, reason: str, within: float = PATIENCE) -> str:
        """Ready has this reason; returns the message."""

        def message() -> str | None:
            ready = self.condition("Ready")
            return ready["message"] if ready.get("reason") == reason else self._not_yet()

        return wait(f"reason {reason} of {self.name}", message, within=within)

    def _not_yet(self) -> None:
        ready = self.condition("Ready")
        raise Failed(f"{ready.get('status')} {ready.get('reason')}: {ready.get('message')}")

    def edit(self, **patch: Any) -> None:
        """Merge into spec."""
        body = json.dumps({"spec": patch})
        self.cluster.kubectl("patch", "collector", self.name, "-n", self.namespace, "--type=merge", "-p", body)

    def annotate(self, **annotations: str | None) -> None:
        """Set moorage.dev/KEY annotations (underscores become dashes); None removes one."""
        words = [
            f"moorage.dev/{key.replace('_', '-')}" + ("-" if value is None else f"={value}")
            for key, value in annotations.items()
        ]
        self.cluster.kubectl("annotate", "--overwrite", "collector", self.name, "-n", self.namespace, *words)

    def delete(self) -> None:
        """Delete it and wait until it is gone."""
        self.cluster.kubectl("delete", "collector", self.name, "-n", self.namespace, HANGS)

    def history(self) -> list[Any]:
        """`helm history`, oldest first; empty when there is no release."""
        out = self.cluster.helm("history", self.release, "-n", self.tenant, "-o", "json", check=False)
        return json.loads(out) if out.startswith("[") else []

    def leftovers(self) -> list[str]:
        """Everything in the tenant's namespace that a release could have left."""
        kinds = "deployments,services,secrets,configmaps,serviceaccounts,jobs,poddisruptionbudgets,networkpolicies"
        found = self.cluster.items(f"{kinds},rolebindings", "-n", self.tenant)
        names = [f"{each['kind']}/{each['metadata']['name']}" for each in found]
        return [name for name in names if name not in ("ConfigMap/kube-root-ca.crt", "ServiceAccount/default")]


def ready(cluster: Cluster, kind: str, name: str, namespace: str, *, within: float) -> dict[str, Any]:
    """Wait until an object is Ready as it is specified now; returns its status."""

    def holds() -> dict[str, Any] | None:
        found = cluster.get(kind, name, "-n", namespace)
        said: dict[str, Any] = found.get("status") or {}
        condition = _condition(found, "Ready")
        if said.get("observedGeneration") != found["metadata"]["generation"] or not condition:
            return None
        if condition["status"] == "True":
            return said
        raise Failed(f"Ready {condition['status']} {condition['reason']}: {condition.get('message')}")

    return wait(f"{namespace}/{name} Ready", holds, within=within)


def _condition(found: Any, kind: str) -> dict[str, Any]:
    status = (found or {}).get("status", {})
    return next((each for each in status.get("conditions", []) if each["type"] == kind), {})


def configuration(values: dict[str, Any] | str) -> str:
    """A spec.collector.configuration."""
    text = values if isinstance(values, str) else yaml.safe_dump(values)
    return base64.b64encode(text.encode()).decode()


def audit(after: int = 0) -> list[dict[str, Any]]:
    """The audit log's entries from byte `after` on."""
    with (STATE / "audit.log").open("rb") as file:
        if after:
            file.seek(after - 1)
            file.readline()  # a line that was being written then belongs to what was before
        return [json.loads(line) for line in file if line.endswith(b"\n")]


def audit_end() -> int:
    """Where the audit log ends now, in bytes."""
    return (STATE / "audit.log").stat().st_size


def when(entry: dict[str, Any], key: str = "requestReceivedTimestamp") -> float:
    """A time of an audit entry, in epoch seconds."""
    return datetime.datetime.fromisoformat(entry[key]).timestamp()


def writes(entries: list[dict[str, Any]], user: str, *, leases: bool = False) -> list[dict[str, Any]]:
    """The mutating requests of one user; Leases only when asked for, review requests never."""
    verbs = {"create", "update", "patch", "delete", "deletecollection"}
    return [
        entry
        for entry in entries
        if entry["user"]["username"] == user
        and entry["verb"] in verbs
        and "review" not in entry.get("objectRef", {}).get("resource", "")
        and (leases or entry.get("objectRef", {}).get("resource") != "leases")
    ]


def told(entries: list[dict[str, Any]]) -> list[str]:
    """Requests as people read them: `patch deployments/scale NAMESPACE/NAME`."""
    lines = []
    for entry in entries:
        it = entry.get("objectRef") or {}
        what = "/".join(part for part in (it.get("resource"), it.get("subresource")) if part)
        lines.append(f"{entry['verb']} {what} {it.get('namespace', '')}/{it.get('name', '')}")
    return lines


def outside(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that do not go to Collectors or events: what is done to the rest of the cluster."""
    return [entry for entry in entries if entry["objectRef"]["resource"] not in ("collectors", "events")]


def quiet(user: str, *, for_seconds: float = 2.0) -> int:
    """Wait until the user has written nothing for a while; returns where the audit log ends then."""
    state = {"mark": audit_end(), "since": time.monotonic()}

    def still() -> int | None:
        end = audit_end()
        if writes(audit(int(state["mark"])), user):
            state["since"] = time.monotonic()
        state["mark"] = end
        return end if time.monotonic() - state["since"] >= for_seconds else None

    return wait(f"no write by {user} for {for_seconds:g} s", still)


def operators(cluster: Cluster) -> list[Any]:
    """The operator's pods that are not being deleted, oldest first."""
    found = cluster.items("pods", "-n", NAMESPACE, "-l", "app.kubernetes.io/name=moorage")
    alive = [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]
    return sorted(alive, key=lambda pod: pod["metadata"]["creationTimestamp"])


def metrics(cluster: Cluster, pod: str) -> dict[str, float]:
    """What one pod of the operator says at /metrics, by NAME{LABELS}."""
    out = cluster.reader.raw(f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}:8080/proxy/metrics")
    lines = [line.rpartition(" ") for line in out.splitlines() if line and not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}


def total(measured: dict[str, float], name: str) -> float:
    """The sum of a metric over all its labels."""
    return sum(value for each, value in measured.items() if each.partition("{")[0] == name)


def rolled_out(cluster: Cluster) -> None:
    """Wait until the operator is rolled out."""
    cluster.kubectl("rollout", "status", "deploy/moorage", "-n", NAMESPACE, HANGS)


def stop_operator(cluster: Cluster) -> None:
    """Scale the operator to nothing, and wait until no pod of it is left."""
    cluster.kubectl("scale", "deploy/moorage", "-n", NAMESPACE, "--replicas=0")
    words = ["-n", NAMESPACE, "-l", "app.kubernetes.io/name=moorage", "-o", "name"]
    wait("the operator's end", lambda: not cluster.kubectl("get", "pods", *words).strip())


def start_operator(cluster: Cluster, replicas: int = 1) -> None:
    """Scale the operator up again, and wait until it is rolled out."""
    cluster.kubectl("scale", "deploy/moorage", "-n", NAMESPACE, f"--replicas={replicas}")
    rolled_out(cluster)


def kill(pod: dict[str, Any]) -> None:
    """End every process of that pod at once, as the kernel does when memory is out."""
    uid = pod["metadata"]["uid"].replace("-", "_")
    for entry in Path("/proc").glob("[0-9]*/cgroup"):
        try:
            if f"pod{uid}" in entry.read_text().replace("-", "_"):
                os.kill(int(entry.parent.name), signal.SIGKILL)
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended meanwhile
