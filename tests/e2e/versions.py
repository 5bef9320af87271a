"""A user's hands on versions of a KRE Runtime, and callers of what they serve, in the cluster as clients are."""

from __future__ import annotations

import contextlib
import datetime
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import msgspec
import yaml

from . import runtimes, tools

EXAMPLE = tools.ROOT / "examples" / "kre" / "runtimeversion.yaml"
SOURCES = tools.ROOT / "examples" / "kre" / "greeter" / "src"
ENTRYPOINT, RUNNER = "moorage.dev/kre/entrypoint:1", "moorage.dev/kre/runner:1"
METHOD = "greeter.Greeter/Greet"
OF_VERSION = "kre.konstellation.io/runtime-version"
LOCKED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "runAsUser": 10001,
    "seccompProfile": {"type": "RuntimeDefault"},
}


class Version(runtimes.Resource):
    """One version of the Runtime `demo`: the example, with the images of `images/kre`."""

    kind = "RuntimeVersion"

    def __init__(self, runtime: runtimes.Runtime, name: str, version: str) -> None:
        super().__init__(runtime.cluster, runtime.namespace, name)
        self.runtime, self.version = runtime, version

    def make(self, greeting: str, **changed: Any) -> None:
        """Apply it, greeting so; `changed` are fields of the spec."""
        spec: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text())["spec"]
        own = {"version": self.version, "config": [{"name": "GREETING", "value": greeting}], "workflows": workflows()}
        spec |= own | changed
        spec["entrypoint"]["image"] = ENTRYPOINT
        self.apply(**spec)

    @property
    def service(self) -> str:
        """Where it is called, published or not."""
        return f"demo-{self.version}-entrypoint:9000"

    def mongo_uri(self) -> str:
        """Where its containers find mongo."""
        return self.runtime.secret(f"demo-{self.version}-mongo")["uri"]

    def phase(self, wanted: str) -> dict[str, Any]:
        """Wait until the product would call its state so; returns its status."""

        def told() -> dict[str, Any] | None:
            said: dict[str, Any] = (self.object() or {}).get("status") or {}
            if said.get("phase") == wanted:
                return said
            raise tools.Failed(f"{said.get('phase')}: {said.get('conditions')}")

        return tools.wait(f"{self.namespace}/{self.name} {wanted}", told, within=runtimes.WITHIN)

    def objects(self) -> list[str]:
        """All that is made for it in Kubernetes."""
        found = self.cluster.items(runtimes.LEFT, "-n", self.namespace, "-l", f"{OF_VERSION}={self.name}")
        return sorted(f"{each['kind']}/{each['metadata']['name']}" for each in found)

    def consumers(self) -> list[str]:
        """The durable consumers of its one stream that are made for it."""
        found = self.runtime.jetstream(f"CONSUMER.LIST.demo_{self.version}_Greet").get("consumers") or ()
        return sorted(each["name"] for each in found if of(each["config"]) == self.name)

    def streams(self) -> list[str]:
        """All that is made for it in NATS: streams, object stores and key-value buckets, by the streams' names."""
        found = self.runtime.jetstream("STREAM.LIST").get("streams") or ()
        return sorted(each["config"]["name"] for each in found if of(each["config"]) == self.name)


def workflows() -> list[dict[str, Any]]:
    """Those of the example, with the runner of `images/kre`."""
    found: list[dict[str, Any]] = yaml.safe_load(EXAMPLE.read_text())["spec"]["workflows"]
    for workflow in found:
        for node in workflow["nodes"]:
            node["image"] = RUNNER
    return found


def packed(folder: Path, version: str) -> Path:
    """The example's `.krt` file under another name, with the images of `images/kre`."""
    unpacked = shutil.copytree(SOURCES.parent, folder / "unpacked", ignore=shutil.ignore_patterns("__pycache__"))
    text = (unpacked / "krt.yml").read_text().replace("version: greeter-v1", f"version: {version}")
    text = text.replace("konstellation/kre-entrypoint:latest", ENTRYPOINT).replace(
        "konstellation/kre-py:latest", RUNNER
    )
    (unpacked / "krt.yml").write_text(text)
    return Path(shutil.make_archive(str(folder / version), "gztar", unpacked))


def of(config: dict[str, Any]) -> str | None:
    """Whose version's it is, by its mark."""
    mark: str | None = (config.get("metadata") or {}).get(OF_VERSION)
    return mark


class Call(msgspec.Struct, frozen=True):
    """What came of one call."""

    at: datetime.datetime
    seconds: float
    version: str = ""
    answer: dict[str, str] = {}
    error: str = ""

    @property
    def begun(self) -> float:
        """In epoch seconds."""
        return self.at.timestamp()

    @property
    def said(self) -> str:
        """The answer in words."""
        return self.answer.get("message", "")


class Caller:
    """A pod that calls by gRPC when it is told to."""

    def __init__(self, runtime: runtimes.Runtime) -> None:
        self._runtime = runtime
        container = {
            "name": "caller",
            "image": ENTRYPOINT,
            "imagePullPolicy": "IfNotPresent",
            "args": ["idle"],
            "securityContext": LOCKED,
        }
        spec = {"containers": [container], "automountServiceAccountToken": False, "enableServiceLinks": False}
        metadata = {"name": "caller", "namespace": runtime.namespace}
        runtime.cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        runtime.kubectl("wait", "pod/caller", "--for=condition=Ready", tools.HANGS)

    def call(self, service: str) -> Call:
        """One call by a connection of its own, asked again while nobody answers there."""

        def once() -> Call:
            line = self._runtime.kubectl("exec", "caller", "--", *_command(service, "-within", "10s"))
            made = msgspec.json.decode(line, type=Call)
            if made.error:
                raise tools.Failed(made.error)
            return made

        return tools.wait(f"an answer of {service}", once, within=runtimes.WITHIN)

    @contextlib.contextmanager
    def calling(self, service: str, *how: str, rate: int = 50) -> Iterator[list[Call]]:
        """So many calls a second, by one client, until the block is left, which waits for the answers.

        Each call is in the list as soon as it has ended. Raises Failed when the client ends before.
        """
        words = _command(service, *how, "-rate", str(rate), "-within", "30s")
        made: list[Call] = []

        def collect(lines: IO[str]) -> None:
            for line in lines:
                made.append(msgspec.json.decode(line, type=Call))  # noqa: PERF401 - each is to be seen at once

        where = ("-n", self._runtime.namespace, "caller", "--")
        with self._runtime.cluster.talking("kubectl", "exec", "-i", *where, *words, hears=collect):
            yield made


def _command(service: str, *how: str) -> tuple[str, ...]:
    return ("/entrypoint", "call", *how, service, METHOD, json.dumps({"name": "you"}))
