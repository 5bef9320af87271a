"""An installation of OpenCGA with running pods: agent and hook themselves, and a stand-in for the product.

Under the chart's rights, in a namespace of restricted Pod Security. The catalog is in a process of its own, which
counts what was done to it, and who touched it with a version that may not.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import subprocess
import threading
import time
import urllib.parse
from collections.abc import Iterator
from typing import Any

import pytest

from . import conftest, tools

PLACE = "opencga-demo"
WITHIN = 420.0
PASSWORD = "Change-Me-2-day"
SMALL = {"limits": {"memory": "1Gi"}, "requests": {"cpu": "20m", "memory": "64Mi"}}
SAFE = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
QUERY = "/opencga/webservices/rest/v2/studies/search"
DATABASE: list[dict[str, Any]] = [
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "mongo", "namespace": PLACE, "labels": {"app": "mongo"}},
        "spec": {
            "containers": [
                {
                    "name": "database",
                    "image": "opencb/opencga-base:5.0.0",
                    "command": ["/opt/opencga/bin/database"],
                    "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
                    "securityContext": SAFE,
                }
            ],
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        },
    },
    {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "mongo", "namespace": PLACE},
        "spec": {"selector": {"app": "mongo"}, "ports": [{"port": 27017}]},
    },
]


def namespace() -> dict[str, Any]:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PLACE, "labels": labels}}


def secret() -> dict[str, Any]:
    metadata = {"name": "demo-admin-password", "namespace": PLACE}
    data = {"password": base64.b64encode(PASSWORD.encode()).decode()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}


def community(**spec: Any) -> dict[str, Any]:
    whole = {
        "version": "5.0.0",
        "members": 2,
        "database": {"hosts": [f"mongo.{PLACE}:27017"]},
        "resources": SMALL,
        "client": {"resources": SMALL},
        "volumes": {"data": {"size": "100Mi", "reclaimOnDelete": "Delete"}},
        **spec,
    }
    metadata = {"name": "demo", "namespace": PLACE}
    return {"apiVersion": "opencga.zetta.com/v1", "kind": "OpenCGACommunity", "metadata": metadata, "spec": whole}


@contextlib.contextmanager
def forwarded(cluster: tools.Cluster, what: str, port: int) -> Iterator[str]:
    """A port inside the cluster, as HOST:PORT of this machine."""
    environment = os.environ | {"KUBECONFIG": str(cluster.kubeconfig), "PATH": f"{tools.BIN}:{os.environ['PATH']}"}
    command = ["kubectl", "-n", PLACE, "port-forward", what, f":{port}"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()  # Forwarding from 127.0.0.1:41234 -> 27017
        yield f"127.0.0.1:{line.split()[2].rpartition(':')[2]}"
    finally:
        process.terminate()
        process.communicate()


def asked(address: str, path: str, method: str = "GET") -> tuple[int, bytes]:
    line = http.client.HTTPConnection(urllib.parse.urlsplit(f"//{address}").netloc, timeout=10)
    try:
        line.request(method, path)
        answer = line.getresponse()
        return answer.status, answer.read()
    finally:
        line.close()


class Demo:
    """A user's hands on the installation, and a look into the database."""

    def __init__(self, cluster: tools.Cluster) -> None:
        self.cluster = cluster

    def change(self, **spec: Any) -> None:
        body = json.dumps({"spec": spec})
        self.cluster.kubectl("-n", PLACE, "patch", "opencgacommunity/demo", "--type=merge", "-p", body)

    def status(self) -> dict[str, Any]:
        """Its status, when it speaks of the latest spec; else nothing."""
        found = self.cluster.get("opencgacommunity", "demo", "-n", PLACE)
        said: dict[str, Any] = (found or {}).get("status") or {}
        return said if found and said.get("observedGeneration") == found["metadata"]["generation"] else {}

    def stands(self, type_: str, status: str = "True") -> dict[str, Any]:
        """The status once that condition is so; else nothing."""
        said = self.status()
        right = any((it["type"], it["status"]) == (type_, status) for it in said.get("conditions") or ())
        return said if right else {}

    def ready(self) -> dict[str, Any]:
        return tools.wait("demo Ready", lambda: self.stands("Ready"), within=WITHIN)

    def pods(self) -> dict[str, Any]:
        label = "opencga.zetta.com/community=demo"
        return {it["metadata"]["name"]: it for it in self.cluster.items("pods", "-n", PLACE, "-l", label)}

    def restarts(self) -> int:
        told = (c for pod in self.pods().values() for c in pod["status"].get("containerStatuses") or ())
        return sum(int(c["restartCount"]) for c in told)

    def catalog(self) -> dict[str, Any]:
        """What is in the database, and what was done to it."""
        with forwarded(self.cluster, "pod/mongo", 27017) as address:
            return dict(json.loads(asked(address, "/look?prefix=opencga", "POST")[1]))

    def database(self, how: str) -> None:
        with forwarded(self.cluster, "pod/mongo", 27017) as address:
            asked(address, f"/{how}", "POST")


@contextlib.contextmanager
def switched_on(cluster: tools.Cluster, registry: str) -> Iterator[tools.Cluster]:
    """moorage with OpenCGA, as its administrator does that."""
    given = conftest.values(registry)
    given["systems"]["opencga"] = {"enabled": True, "poll": {"busySeconds": 2, "idleSeconds": 5}}
    conftest.install(cluster, given)
    try:
        yield cluster
    finally:
        conftest.install(cluster, conftest.values(registry))


@pytest.fixture(scope="module")
def opencga(moorage: tools.Cluster, registry: str) -> Iterator[tools.Cluster]:
    """See `switched_on`."""
    with switched_on(moorage, registry) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def demo(opencga: tools.Cluster) -> Iterator[Demo]:
    """The installation, Ready; the tests of this module go on from one another's end."""
    moorage = opencga
    moorage.apply(namespace())
    moorage.apply(*DATABASE, secret(), community())
    made = Demo(moorage)
    try:
        made.ready()
        yield made
    finally:
        print(moorage.kubectl("-n", PLACE, "get", "opencgacommunity,pod,pvc", "-o", "wide", check=False))
        print(moorage.kubectl("-n", PLACE, "get", "ocbc/demo", "-o", "jsonpath={.status}", check=False))
        for pod in made.pods():
            print(moorage.kubectl("-n", PLACE, "logs", pod, "--all-containers", "--tail=15", check=False))
        moorage.kubectl("-n", PLACE, "delete", "ocbc/demo", "--ignore-not-found", "--timeout=180s", check=False)
        moorage.kubectl("delete", "namespace", PLACE, "--wait=false")


def test_it_is_there_as_the_seed_says(demo: Demo) -> None:
    """A pod for each member and one for the MASTER, each with a volume of its own; a query is answered."""
    pods = demo.pods()
    status = demo.status()

    assert {"demo-0", "demo-1", "demo-client-0"} == set(pods)
    for pod in pods.values():
        assert 1 == len(pod["spec"]["initContainers"])
        assert 2 == len(pod["spec"]["containers"])
    claims = demo.cluster.items("pvc", "-n", PLACE)
    assert {f"data-volume-{name}" for name in pods} == {it["metadata"]["name"] for it in claims}
    assert ("Running", "5.0.0", "5.0.0") == (status["phase"], status["version"], status["catalogVersion"])
    assert {"5.0.0"} == {it["version"] for it in status["memberStatuses"]}
    with forwarded(demo.cluster, "service/demo-rest", 9090) as address:
        assert 200 == asked(address, QUERY)[0]
    catalog = demo.catalog()
    assert (1, ["5.0.0"], 0) == (catalog["installs"], catalog["migrated"], catalog["forbidden"])


def test_a_database_that_is_gone_restarts_nobody(demo: Demo) -> None:
    """It is told by what the servers say, and heals by itself."""
    before = demo.restarts()
    demo.database("down")
    said = tools.wait("it is told", lambda: demo.stands("Healthy", "False"), within=WITHIN)

    assert "CatalogMongoDB" in said["message"]
    demo.database("up")
    demo.ready()
    assert before == demo.restarts()


def test_another_configuration_restarts_each_server_once_and_no_pod(demo: Demo) -> None:
    """By their agents, one after another."""
    pods = {name: pod["metadata"]["uid"] for name, pod in demo.pods().items()}
    before = demo.status()["configurationVersion"]
    demo.change(additionalOpenCGAConfig={"logLevel": "debug"})
    tools.wait(
        "it is applied",
        lambda: (said := demo.stands("Ready")) and said["configurationVersion"] > before,
        within=WITHIN,
    )

    assert pods == {name: pod["metadata"]["uid"] for name, pod in demo.pods().items()}
    assert 0 == demo.restarts()
    for name in pods:
        server = "opencga-client" if "client" in name else "opencga-rest"
        log = demo.cluster.kubectl("-n", PLACE, "logs", name, "-c", server)
        assert (2, 1) == (log.count("INFO: up, of version"), log.count("INFO: ends in order")), log


class Queries:
    """Queries one after another, of which it is counted how many failed."""

    def __init__(self, cluster: tools.Cluster) -> None:
        self._ends = threading.Event()
        self.answered = 0
        self.failed: list[str] = []
        self.versions: set[str] = set()
        self._thread = threading.Thread(target=self._run, args=(cluster,))

    def _run(self, cluster: tools.Cluster) -> None:
        while not self._ends.is_set():
            self._one(cluster)
            time.sleep(0.1)  # the pace of queries

    def _one(self, cluster: tools.Cluster) -> None:
        """By the proxy of the API server, which goes to a pod that is ready, as a Service does."""
        path = f"/api/v1/namespaces/{PLACE}/services/http:demo-rest:9090/proxy{QUERY}"
        try:
            told = json.loads(cluster.kubectl("get", "--raw", path))
            self.versions.add(told["responses"][0]["results"][0]["version"])
            self.answered += 1
        except (tools.Failed, ValueError) as error:
            self.failed.append(str(error))

    def __enter__(self) -> Queries:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()


def test_an_upgrade_under_queries(demo: Demo) -> None:
    """The MASTER first, then the catalog, then REST; no server ever touches a catalog that it may not."""
    with Queries(demo.cluster) as queries:
        demo.change(version="5.0.1")
        tools.wait(
            "all are of the new version",
            lambda: (said := demo.stands("Ready")) and said["version"] == "5.0.1",
            within=WITHIN,
        )
    catalog = demo.catalog()

    assert (1, ["5.0.0", "5.0.1"], 0) == (catalog["installs"], catalog["migrated"], catalog["forbidden"])
    images = {c["image"] for pod in demo.pods().values() for c in pod["spec"]["containers"]}
    assert {"opencb/opencga-base:5.0.1", "moorage.dev/opencga-agent:0.1.0"} == images
    assert queries.answered > 10
    print(f"{queries.answered} queries answered, {len(queries.failed)} failed: {queries.failed[:3]}")


def test_one_more_and_one_less(demo: Demo) -> None:
    """A member comes and is ready, and goes again."""
    demo.cluster.kubectl("-n", PLACE, "scale", "opencgacommunity/demo", "--replicas=3")
    tools.wait("three are ready", lambda: demo.stands("Ready") and "demo-2" in demo.pods(), within=WITHIN)
    demo.cluster.kubectl("-n", PLACE, "scale", "opencgacommunity/demo", "--replicas=1")
    tools.wait(
        "one is left", lambda: demo.stands("Ready") and set(demo.pods()) == {"demo-0", "demo-client-0"}, within=WITHIN
    )


def test_no_password_is_where_it_may_not_be(demo: Demo) -> None:
    """Neither in objects but the Secret itself, nor in what containers log."""
    word, coded = PASSWORD, base64.b64encode(PASSWORD.encode()).decode()
    objects = demo.cluster.kubectl("-n", PLACE, "get", "pods,statefulsets,events,ocbc,services", "-o", "json")
    document = demo.cluster.get("secret", "demo-config", "-n", PLACE)["data"]["cluster-config.json"]
    logs = [demo.cluster.kubectl("-n", PLACE, "logs", pod, "--all-containers") for pod in demo.pods()]

    for text in (objects, base64.b64decode(document).decode(), *logs):
        assert word not in text
        assert coded not in text


def test_it_goes_with_all_that_it_had(demo: Demo) -> None:
    """Volumes too, as its spec says."""
    demo.cluster.kubectl("-n", PLACE, "delete", "opencgacommunity/demo", "--timeout=240s")

    assert not demo.pods()
    tools.wait("volumes are gone", lambda: not demo.cluster.items("pvc", "-n", PLACE), within=WITHIN)
    assert demo.cluster.get("rolebinding", "moorage-opencga", "-n", PLACE) is None
