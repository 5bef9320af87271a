"""A user's hands on one WekaCluster with running pods, and a look into it by the product's own command line.

Its drives are files in a folder of the testbed, which is one for all of its nodes; each file says which node has it.
"""

from __future__ import annotations

import base64
import contextlib
import json
import shutil
from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from . import nodes, tools

NAMESPACE = "storage"
WITHIN = 300.0
VALUES = tools.ROOT / "examples" / "weka" / "testbed.yaml"
"""Of moorage's chart: Weka is on, with the image of `images/weka`."""

IMAGE, NEWER = "moorage.dev/weka-standin:4.4.1", "moorage.dev/weka-standin:4.4.2"
DRIVES = 7
"""Of each node: one to be blocked, and as many as there are drive containers, wherever the scheduler puts them."""

SIGNED, BLOCKED = "weka.io/weka-drives", "weka.io/blocked-drives"
HOME = tools.STATE.resolve() / "weka"
LEFT = "wekacontainers,pods,configmaps,secrets,rolebindings"


def section() -> dict[str, Any]:
    """Of moorage's values: the example's, with all that is on nodes in a folder of this testbed."""
    given: dict[str, Any] = yaml.safe_load(VALUES.read_text())["systems"]["weka"]
    given["dialect"]["files"] = {"devices": str(HOME / "devices"), "persistence": str(HOME / "kept")}
    return given | {"poll": {"busySeconds": 2, "idleSeconds": 5}}


def plain(text: str) -> str:
    """A value of a Secret."""
    return base64.b64decode(text).decode()


def serials(node: str) -> list[str]:
    """Of the drives of that node."""
    return [f"{node}-s{it}" for it in range(DRIVES)]


@contextlib.contextmanager
def unsigned(cluster: tools.Cluster, at: Sequence[str] = nodes.SPARE) -> Iterator[None]:
    """Each of these nodes has new drives, and one of another cluster; what is kept there goes with them in the end."""
    shutil.rmtree(HOME, ignore_errors=True)
    exchange(at)
    try:
        yield
    finally:
        cluster.kubectl("annotate", "node", *at, f"{SIGNED}-", f"{BLOCKED}-", "weka.io/sign-drives-hash-")
        shutil.rmtree(HOME)


def exchange(at: Sequence[str]) -> None:
    """New drives in place of those of these nodes."""
    devices = HOME / "devices"
    shutil.rmtree(devices, ignore_errors=True)
    devices.mkdir(parents=True)
    (devices / ".moorage-devices").touch()
    for node in at:
        for serial in serials(node):
            (devices / serial).write_text(json.dumps({"serial_id": serial, "node": node}) + "\n")
        theirs = {"serial_id": f"{node}-theirs", "node": node, "weka_guid": "somebody's"}
        (devices / f"{node}-theirs").write_text(json.dumps(theirs) + "\n")


class Storage:
    """The WekaCluster `hello` of a namespace that is opened for it, on the nodes that others leave alone."""

    def __init__(self, cluster: tools.Cluster, namespace: str = NAMESPACE, place: dict[str, Any] = nodes.PLACE) -> None:
        self.cluster, self.namespace, self._place = cluster, namespace, place
        self.spec: dict[str, Any] = {
            "image": IMAGE,
            "dynamicTemplate": {"driveContainers": 5, "computeContainers": 1, "numDrives": 1},
            "redundancyLevel": 2,
            "stripeWidth": 3,
            "gracefulDestroyDuration": "0",
            "nodeSelector": place["nodeSelector"],
            "rawTolerations": place["tolerations"],
            "overrides": {"disregardRedundancy": True},  # five drive containers, and three nodes
        }
        metadata = {"name": namespace, "labels": {"moorage.dev/weka": "privileged"}}
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})

    def apply(self) -> None:
        """Create it."""
        metadata = {"name": "hello", "namespace": self.namespace}
        kind = {"apiVersion": "weka.weka.io/v1alpha1", "kind": "WekaCluster"}
        self.cluster.apply({**kind, "metadata": metadata, "spec": self.spec})

    def operate(self, name: str, action: str, **payload: Any) -> dict[str, Any]:
        """Have that done on drives, once; returns its status when it is over."""
        spec = {"action": action, "image": IMAGE, "tolerations": self._place["tolerations"], "payload": payload}
        kind = {"apiVersion": "weka.weka.io/v1alpha1", "kind": "WekaManualOperation"}
        self.cluster.apply({**kind, "metadata": {"name": name, "namespace": self.namespace}, "spec": spec})

        def status() -> dict[str, Any]:
            found: dict[str, Any] = (
                self.cluster.get("wekamanualoperation", name, "-n", self.namespace).get("status") or {}
            )
            return found

        tools.wait(f"{name} is over", lambda: status().get("status") in ("Done", "Failed"), within=WITHIN)
        return status()

    def sign(self) -> dict[str, Any]:
        """Sign the drives of the nodes that others leave alone."""
        chosen = {"type": "all-not-root", "nodeSelector": self._place["nodeSelector"]}
        return self.operate("sign", "sign-drives", signDrivesPayload=chosen)

    def edit(self, **spec: Any) -> None:
        """Merge into its spec."""
        self.kubectl("patch", "wekacluster/hello", "--type=merge", "-p", json.dumps({"spec": spec}))

    def kubectl(self, *args: str, stdin: str = "") -> str:
        """kubectl in its namespace."""
        return self.cluster.kubectl("-n", self.namespace, *args, stdin=stdin)

    def ready(self) -> dict[str, Any]:
        """Wait until it is Ready as it is specified now; returns its status."""
        return tools.ready(self.cluster, "wekacluster", "hello", self.namespace, within=WITHIN)

    def containers(self) -> dict[str, dict[str, Any]]:
        """Its WekaContainers by name."""
        found = self.cluster.items("wekacontainers", "-n", self.namespace)
        return {it["metadata"]["name"]: it for it in found}

    def reason(self, name: str) -> str:
        """Why that WekaContainer is Ready, or is not."""
        said = self.containers()[name]["status"].get("conditions") or ()
        return next((str(it["reason"]) for it in said if it["type"] == "Ready"), "")

    def pods(self) -> dict[str, str]:
        """The uid of each pod, by its name."""
        found = self.cluster.items("pods", "-n", self.namespace)
        return {it["metadata"]["name"]: it["metadata"]["uid"] for it in found}

    def left(self) -> list[str]:
        """All that there is in the namespace beside what every namespace has."""
        found = self.cluster.items(LEFT, "-n", self.namespace)
        names = {f"{it['kind']}/{it['metadata']['name']}" for it in found}
        return sorted(names - {"ConfigMap/kube-root-ca.crt"})

    def delete(self) -> None:
        """Delete it, and wait until it is gone."""
        self.kubectl("delete", "wekacluster/hello", "--ignore-not-found", tools.HANGS)
        self.kubectl("delete", "wekamanualoperations", "--all", tools.HANGS)

    # --- the product's own word ----------------------------------------------------------------------------------

    def weka(self, *words: str, pod: str = "hello-compute-0", stdin: str = "") -> str:
        """What its command line says in that pod, to people, by their own login."""
        return self.kubectl("exec", "-i", pod, "--", *self.logged_in(*words), stdin=stdin)

    def logged_in(self, *words: str) -> list[str]:
        """A command of its command line, by the people's login, as it is run in a pod."""
        data = self.cluster.get("secret", "weka-cluster-hello", "-n", self.namespace)["data"]
        login = [f"WEKA_USERNAME={plain(data['username'])}", f"WEKA_PASSWORD={plain(data['password'])}"]
        return ["busybox", "env", *login, "weka", *words]

    def told(self, *words: str) -> Any:
        """The same, of what is told in JSON."""
        return json.loads(self.weka(*words, "--json"))

    def write(self, blocks: dict[str, str]) -> None:
        """Have it keep these."""
        for key, text in blocks.items():
            self.weka("standin", "put", key, stdin=text)

    def read(self, blocks: dict[str, str], pod: str) -> dict[str, str]:
        """What it has under these keys, as that container gets it."""
        return {key: self.weka("standin", "get", key, pod=pod) for key in blocks}
