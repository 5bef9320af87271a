"""A user's hands on KRE's resources with running pods, and a look into a Runtime's servers by clients of their own."""

from __future__ import annotations

import base64
import contextlib
import json
import socket
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from typing import IO, Any, ClassVar

import pymongo

from . import tools

WITHIN = 300.0
VALUES = tools.ROOT / "examples" / "kre" / "testbed.yaml"
"""Of moorage's chart: KRE is on, with the images of `images/kre`."""

SMALL = {
    "nats_streaming": {"replicas": 1, "storage": {"size": "100Mi"}},
    "mongo": {"storage": {"size": "100Mi"}},
    "minio": {"storage": {"size": "100Mi"}},
    "influxdb": {"enabled": False},
}
"""A Runtime that takes little."""

LEFT = "statefulsets,deployments,pods,services,configmaps,ingresses,persistentvolumeclaims,secrets,rolebindings"


class Resource:
    """One resource of a namespace, as a user changes it and looks at it."""

    kind: ClassVar[str]

    def __init__(self, cluster: tools.Cluster, namespace: str, name: str) -> None:
        self.cluster, self.namespace, self.name = cluster, namespace, name
        self._called = f"{self.kind.lower()}/{name}"

    def apply(self, **spec: Any) -> None:
        """Create it, or change it to that."""
        metadata = {"name": self.name, "namespace": self.namespace}
        kind = {"apiVersion": "kre.konstellation.io/v1alpha1", "kind": self.kind}
        self.cluster.apply({**kind, "metadata": metadata, "spec": spec})

    def edit(self, **spec: Any) -> None:
        """Merge into its spec."""
        self.kubectl("patch", self._called, "--type=merge", "-p", json.dumps({"spec": spec}))

    def kubectl(self, *args: str) -> str:
        """kubectl in its namespace."""
        return self.cluster.kubectl("-n", self.namespace, *args)

    def object(self) -> dict[str, Any] | None:
        """It, if it is there."""
        found: dict[str, Any] | None = self.cluster.get(self.kind.lower(), self.name, "-n", self.namespace)
        return found

    def ready(self) -> dict[str, Any]:
        """Wait until it is Ready as it is specified now; returns its status."""
        return tools.ready(self.cluster, self.kind.lower(), self.name, self.namespace, within=WITHIN)

    def stopped(self, reason: str) -> str:
        """Wait until it is not Ready for that reason; returns what is said."""

        def message() -> str:
            found = self.object() or {}
            ready = next(each for each in found["status"]["conditions"] if each["type"] == "Ready")
            if ready["reason"] != reason:
                raise tools.Failed(f"Ready {ready['status']} {ready['reason']}: {ready.get('message')}")
            return str(ready["message"])

        return tools.wait(f"{self.namespace}/{self.name} {reason}", message, within=WITHIN)

    def delete(self, *how: str) -> None:
        """Delete it, and wait until it is gone, unless `how` says otherwise."""
        self.kubectl("delete", self._called, "--ignore-not-found", *(how or (tools.HANGS,)))


class Runtime(Resource):
    """The Runtime `demo` of a namespace of its own, which takes none but restricted pods."""

    kind = "Runtime"

    def __init__(self, cluster: tools.Cluster, namespace: str) -> None:
        super().__init__(cluster, namespace, "demo")
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}})

    def pods(self) -> dict[str, str]:
        """The uid of each pod that is ready, by its name."""
        found = self.cluster.items("pods", "-n", self.namespace)
        return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in found if _is_ready(pod)}

    def credentials(self) -> dict[str, str]:
        """What is in the Secret that was made."""
        return self.secret("kre-credentials")

    def in_use(self) -> dict[str, str]:
        """What servers and versions are given."""
        return self.secret("kre-credentials-in-use")

    def secret(self, name: str) -> dict[str, str]:
        """What is in a Secret of its namespace."""
        data = self.cluster.get("secret", name, "-n", self.namespace)["data"]
        return {key: base64.b64decode(value).decode() for key, value in data.items()}

    def left(self) -> list[str]:
        """All that there is in the namespace beside what every namespace has."""
        found = self.cluster.items(LEFT, "-n", self.namespace)
        names = {f"{each['kind']}/{each['metadata']['name']}" for each in found}
        return sorted(names - {"ConfigMap/kube-root-ca.crt"})

    def nothing_is_left(self) -> None:
        """All went with the Runtime; pods of Deployments go after it, by the garbage collector."""
        assert [] == [name for name in self.left() if not name.startswith("Pod/")]

        def ended() -> bool:
            if pods := self.left():
                raise tools.Failed(", ".join(pods))
            return True

        tools.wait(f"no pod is left in {self.namespace}", ended, within=WITHIN)

    # --- its servers, as a version in it would use them -----------------------------------------------------------

    @contextlib.contextmanager
    def mongo(self, known: dict[str, str] | None = None) -> Iterator[pymongo.MongoClient[dict[str, Any]]]:
        """Mongo, as its administrator; by the credentials that are in the Secret, or by those."""
        known = known or self.credentials()
        login = {"username": known["mongoUser"], "password": known["mongoPassword"]}
        with (
            self.cluster.forwarded(self.namespace, "pod/kre-mongo-0", 27017) as port,
            pymongo.MongoClient("127.0.0.1", port, directConnection=True, timeoutMS=20_000, **login) as client,
        ):
            yield client

    def jetstream(self, what: str, **body: Any) -> dict[str, Any]:
        """One request to JetStream, by the servers' Service; asked again while nobody leads who would answer it."""

        def answer() -> dict[str, Any]:
            with self.nats() as ask:
                return ask(f"$JS.API.{what}", json.dumps(body).encode())

        return tools.wait(f"an answer of JetStream to {what}", answer, within=WITHIN)

    @contextlib.contextmanager
    def nats(self) -> Iterator[Callable[[str, bytes], dict[str, Any]]]:
        """What asks NATS, by one of its servers: a subject and what is sent there give the answer. Raises Failed."""
        with self.cluster.forwarded(self.namespace, "service/kre-nats", 4222) as port, _talking(port) as talk:
            yield lambda subject, body: _answer(talk, subject, body)

    def http(self, target: str, port: int, path: str) -> bytes:
        """What a server answers."""
        with (
            self.cluster.forwarded(self.namespace, target, port) as local,
            urllib.request.urlopen(f"http://127.0.0.1:{local}{path}", timeout=20) as answer,
        ):
            told: bytes = answer.read()
            return told


def _is_ready(pod: dict[str, Any]) -> bool:
    known = {each["type"]: each["status"] for each in pod["status"].get("conditions") or ()}
    return known.get("Ready") == "True" and "deletionTimestamp" not in pod["metadata"]


@contextlib.contextmanager
def _talking(port: int) -> Iterator[IO[bytes]]:
    """A connection to NATS."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as raw, raw.makefile("rwb") as talk:
            talk.readline()  # INFO
            talk.write(b'CONNECT {"verbose": false}\r\n')
            yield talk
    except OSError as error:
        raise tools.Failed(f"NATS does not answer: {error}") from error


def _answer(talk: IO[bytes], subject: str, body: bytes) -> dict[str, Any]:
    """NATS' protocol is lines: who asks says where the answer goes to, which is to nobody else."""
    to = f"answer.{uuid.uuid4().hex}"
    talk.write(f"SUB {to} 1\r\nUNSUB 1 1\r\nPUB {subject} {to} {len(body)}\r\n".encode() + body + b"\r\n")
    talk.flush()
    while line := talk.readline():
        words = line.split()
        if words[0] == b"PING":
            talk.write(b"PONG\r\n")
            talk.flush()
        elif words[0] == b"MSG":
            answer: dict[str, Any] = json.loads(talk.read(int(words[-1]) + 2))
            if "error" in answer:
                raise tools.Failed(str(answer["error"]))
            return answer
        elif words[0] != b"INFO":  # who else is in the cluster is news
            raise tools.Failed(f"NATS says {line!r}")
    raise tools.Failed("NATS closed the connection")
