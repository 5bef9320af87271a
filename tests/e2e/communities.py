"""A user's hands on an installation of OpenCGA with running pods, and a look into the database that stands beside it.

Agent and hook are themselves; the product is a stand-in, whose catalog is in a process of its own. That counts what was
done to it, and who touched it with a version that may not.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import itertools
import json
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

from . import conftest, tools

PLACE = "opencga-demo"
WITHIN = 300.0
PASSWORD = "Change-Me-2-day"
LABEL = "opencga.zetta.com/community=demo"
PROBED = {"name": "opencga-agent", "readinessProbe": {"initialDelaySeconds": 1, "periodSeconds": 2}}
"""What is laid over the agent's container: a server is restarted the sooner, the sooner its pod is not ready."""

SMALL = {"limits": {"memory": "1Gi"}, "requests": {"cpu": "20m", "memory": "64Mi"}}
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
                    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
                }
            ],
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "terminationGracePeriodSeconds": 1,
        },
    },
    {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "mongo", "namespace": PLACE},
        "spec": {"selector": {"app": "mongo"}, "ports": [{"port": 27017}]},
    },
]


@contextlib.contextmanager
def switched_on(cluster: tools.Cluster, registry: str) -> Iterator[tools.Cluster]:
    """moorage with OpenCGA, as its administrator does that, and a namespace of restricted Pod Security for it."""
    given = conftest.values(registry)
    given["systems"]["opencga"] = {"enabled": True, "poll": {"busySeconds": 2, "idleSeconds": 5}}
    # other tests may have left its definition on this testbed, which is nobody's
    conftest.install(cluster, given, "--take-ownership", "--force-conflicts")
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    try:
        cluster.kubectl("delete", "namespace", PLACE, "--ignore-not-found", tools.HANGS)
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PLACE, "labels": labels}})
        # without it no pod is admitted, and the database's is made by nobody who tries again
        tools.wait("an account in it", lambda: cluster.get("serviceaccount", "default", "-n", PLACE))
        yield cluster
        cluster.kubectl("delete", "namespace", PLACE, tools.HANGS)
    finally:
        conftest.install(cluster, conftest.values(registry))


def community(**spec: Any) -> dict[str, Any]:
    """The installation, with what differs from the usual."""
    whole = {
        "version": "5.0.0",
        "members": 2,
        "database": {"hosts": [f"mongo.{PLACE}:27017"]},
        "resources": SMALL,
        "client": {"resources": SMALL},
        "statefulSet": {"spec": {"template": {"spec": {"containers": [PROBED]}}}},
        "volumes": {"data": {"size": "100Mi", "reclaimOnDelete": "Delete"}},
        **spec,
    }
    metadata = {"name": "demo", "namespace": PLACE}
    return {"apiVersion": "opencga.zetta.com/v1", "kind": "OpenCGACommunity", "metadata": metadata, "spec": whole}


class Community:
    """The installation `demo`, with its database and the administrator's password beside it."""

    def __init__(self, cluster: tools.Cluster) -> None:
        self.cluster = cluster
        metadata = {"name": "demo-admin-password", "namespace": PLACE}
        data = {"password": base64.b64encode(PASSWORD.encode()).decode()}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}
        cluster.apply(*DATABASE, secret)
        self.kubectl("wait", "pod/mongo", "--for=condition=Ready", tools.HANGS)

    def apply(self, **spec: Any) -> None:
        """Create it."""
        self.cluster.apply(community(**spec))

    def kubectl(self, *args: str, check: bool = True) -> str:
        """kubectl in its namespace."""
        return self.cluster.kubectl("-n", PLACE, *args, check=check)

    def change(self, **spec: Any) -> None:
        """Merge into its spec."""
        self.kubectl("patch", "opencgacommunity/demo", "--type=merge", "-p", json.dumps({"spec": spec}))

    def delete(self) -> None:
        """Delete it, and wait until it is gone."""
        self.kubectl("delete", "opencgacommunity/demo", "--ignore-not-found", tools.HANGS)

    # --- how it stands --------------------------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """Its status. Raises Failed when it does not speak of the latest spec."""
        found = self.cluster.get("opencgacommunity", "demo", "-n", PLACE)
        said: dict[str, Any] = found.get("status") or {}
        if said.get("observedGeneration") != found["metadata"]["generation"]:
            raise tools.Failed(f"its status speaks of another generation: {said}")
        return said

    def until(
        self, what: str, right: Callable[[dict[str, Any]], bool] = lambda _: True, condition: str = "Ready=True"
    ) -> dict[str, Any]:
        """Wait until that condition is so, and the status is right; returns the status."""
        type_, _, wanted = condition.partition("=")
        looks = _Looks(self)

        def holds() -> dict[str, Any] | None:
            looks.again()
            said = self.status()
            known = {each["type"]: each for each in said["conditions"]}
            if known[type_]["status"] != wanted:
                ready = known["Ready"]
                raise tools.Failed(f"Ready {ready['status']} {ready['reason']}: {ready.get('message')}")
            return said if right(said) else None

        return tools.wait(what, holds, within=WITHIN)

    def ready(self) -> dict[str, Any]:
        """Wait until it is Ready as it is specified now; returns its status."""
        return self.until("demo Ready")

    def pods(self) -> dict[str, Any]:
        """Its pods, by name."""
        return {it["metadata"]["name"]: it for it in self.cluster.items("pods", "-n", PLACE, "-l", LABEL)}

    def endpoints(self) -> set[str]:
        """To which pods Services lead who sends a query."""
        label = "kubernetes.io/service-name=demo-rest"
        slices = self.cluster.items("endpointslices", "-n", PLACE, "-l", label)
        every = [each for it in slices for each in it.get("endpoints") or ()]
        return {each["targetRef"]["name"] for each in every if each["conditions"]["ready"]}

    def restarts(self) -> int:
        """Of all containers."""
        told = (each for pod in self.pods().values() for each in pod["status"].get("containerStatuses") or ())
        return sum(int(each["restartCount"]) for each in told)

    def report(self) -> None:
        """Print what the next reader needs."""
        print(self.kubectl("get", "opencgacommunity,pods,pvc", "-o", "wide", check=False))
        print(self.kubectl("get", "opencgacommunity/demo", "-o", "jsonpath={.status}", check=False))
        for pod in self.pods():
            print(self.kubectl("logs", pod, "--all-containers", "--tail=15", check=False))

    # --- its servers ----------------------------------------------------------------------------------------------

    def query(self) -> str:
        """The version of the server that answers a query.

        By the proxy of the API server, which goes to a pod that is ready, as a Service does. Raises Failed.
        """
        proxy = f"/api/v1/namespaces/{PLACE}/services/http:demo-rest:9090/proxy"
        try:
            told = json.loads(self.cluster.reader.raw(proxy + QUERY))
            return str(told["responses"][0]["results"][0]["version"])
        except (OSError, http.client.HTTPException, ValueError, LookupError) as error:
            raise tools.Failed(f"a query is not answered: {error!r}") from error

    def catalog(self) -> dict[str, Any]:
        """What is in the database, and what was done to it."""
        return dict(json.loads(self.database("look?prefix=opencga")))

    def set(self, **words: str) -> None:
        """Of the next migration: `offline`, it forbids the old version; `fails`, its last words."""
        self.database("set?prefix=opencga", json.dumps(words).encode())

    def database(self, how: str, words: bytes = b"") -> bytes:
        """Ask the database, or switch it `down` and `up`."""
        with self.cluster.forwarded(PLACE, "pod/mongo", 27017) as port:
            asked = urllib.request.Request(f"http://127.0.0.1:{port}/{how}", data=words, method="POST")
            with urllib.request.urlopen(asked, timeout=30) as answer:
                told: bytes = answer.read()
        return told


class _Looks:
    """Has the kubelet look at the configuration by turns: in its own time it does so once a minute.

    It looks whenever somebody changes a pod, and so whenever an annotation of one has changed.
    """

    EVERY = 2.0

    def __init__(self, community: Community) -> None:
        self._community, self._last = community, time.monotonic()

    def again(self) -> None:
        """If it is time."""
        if time.monotonic() > self._last + self.EVERY:
            self._last = time.monotonic()
            note = f"test/looked={self._last}"
            self._community.kubectl("annotate", "pods", "-l", LABEL, "--overwrite", note, check=False)


class Queries:
    """Queries one after another, of which it is told how many failed."""

    def __init__(self, community: Community) -> None:
        self._community, self._ends = community, threading.Event()
        self.answered: list[str] = []
        """By which version."""
        self.failed: list[str] = []
        self.told: list[str] = []
        """The version that answered each, in order; empty for one that failed."""
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._ends.is_set():
            try:
                self.told.append(self._community.query())
                self.answered.append(self.told[-1])
            except tools.Failed as error:
                self.told.append("")
                self.failed.append(str(error))
            time.sleep(0.1)  # the pace of queries

    def until_answered_by(self, version: str) -> None:
        """Return once a server of that version has answered."""
        tools.wait(f"an answer by {version}", lambda: version in self.answered, within=WITHIN)

    def failed_outside_one_window(self) -> bool:
        """Whether any failed but between the last answer of the old version and the first of the new one."""
        runs = [version for version, _ in itertools.groupby(self.told)]
        return runs not in (["5.0.0", "", "5.0.1"], ["5.0.0", "5.0.1"])

    def __enter__(self) -> Queries:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()
        print(f"{len(self.answered)} queries answered, {len(self.failed)} failed: {self.failed[:3]}")
