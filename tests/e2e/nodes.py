"""Nodes of the testbed that may be lost: who lives there, how they are lost and come back, and a look into them."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from moorage.children import pod_trouble

from . import caches, tools

SPARE = ("node-1", "node-2", "node-3")
"""Nodes that only those live on who ask for it, so that a loss meets no other test; `node-0` has all the rest."""

MARK = "moorage.test/spare"
PLACE: dict[str, Any] = {"nodeSelector": {MARK: "yes"}, "tolerations": [{"key": MARK, "operator": "Exists"}]}
"""What a pod says that is to live there."""

STORING = (*SPARE, "node-4", "node-5", "node-6")
"""Nodes for a storage cluster each of whose drive containers is on a node of its own."""

STORES = "moorage.test/stores"
STORE: dict[str, Any] = {"nodeSelector": {STORES: "yes"}, "tolerations": PLACE["tolerations"]}
"""The same as `PLACE`, of these."""

OPPOSITE = {"stop": "start", "partition": "heal", "freeze": "thaw"}
ASK = """
import base64, json, ssl, sys, urllib.request
method, url, login, body = sys.argv[1:]
headers = {"Authorization": "Basic " + base64.b64encode(login.encode()).decode(), "Content-Type": "application/json"}
request = urllib.request.Request(url, body.encode() or None, headers, method=method)
with urllib.request.urlopen(request, context=ssl._create_unverified_context(), timeout=10) as answer:
    print(answer.read().decode())
"""


def spare(cluster: tools.Cluster) -> None:
    """Have these nodes, whole and empty but for who asks for them."""
    tools.testbed("up", "--nodes", str(1 + len(SPARE)))
    reserve(cluster)


def store(cluster: tools.Cluster) -> None:
    """Have the nodes of `STORING`; those beyond the spare ones are for nobody else."""
    tools.testbed("up", "--nodes", str(1 + len(STORING)))
    cluster.kubectl("taint", "node", *STORING, f"{MARK}=yes:NoSchedule", "--overwrite")
    cluster.kubectl("label", "node", *STORING, f"{STORES}=yes", "--overwrite")


def reserve(cluster: tools.Cluster) -> None:
    """Keep those that are there already, as after an earlier run, from whoever does not ask for them."""
    there = [node["metadata"]["name"] for node in cluster.items("nodes") if node["metadata"]["name"] in SPARE]
    if there:
        cluster.kubectl("taint", "node", *there, f"{MARK}=yes:NoSchedule", "--overwrite")
        cluster.kubectl("label", "node", *there, f"{MARK}=yes", "--overwrite")


@contextlib.contextmanager
def lost(cluster: tools.Cluster, name: str, how: str) -> Iterator[None]:
    """That node is lost meanwhile."""
    tools.testbed("node", how, name)
    try:
        yield
    finally:
        tools.testbed("node", OPPOSITE[how], name)
        cluster.kubectl("taint", "node", name, f"{pod_trouble.OUT_OF_SERVICE}-", check=False)


def out_of_service(cluster: tools.Cluster, name: str) -> None:
    """Say that the node is off, as the status asks for it."""
    cluster.kubectl("taint", "node", name, pod_trouble.OUT_OF_SERVICE)


@contextlib.contextmanager
def drained(cluster: tools.Cluster, name: str) -> Iterator[None]:
    """As an administrator does; the node may be used again afterwards, when its pods have found another place."""
    try:
        cluster.kubectl("drain", name, "--ignore-daemonsets", "--delete-emptydir-data", tools.HANGS)
        yield
    finally:
        cluster.kubectl("uncordon", name)


def homes(cluster: tools.Cluster, namespace: str, selector: str) -> dict[str, str]:
    """The node of each pod that is not being deleted; empty for one that has none yet."""
    found = cluster.items("pods", "-n", namespace, "-l", selector)
    alive = [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]
    return {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in alive}


def ask(node: str, url: str, method: str = "GET", value: Any = None) -> Any:
    """The answer as somebody on that node gets it, by its own network. Raises Failed."""
    index = json.loads((tools.STATE / "run" / "settings.json").read_text())["index"]
    network = f"testbed{index}" + ("" if node == "node-0" else f"-{node}")
    words = [method, url, f"xsadmin:{caches.PASSWORD}", "" if value is None else json.dumps(value)]
    command = ["nsenter", f"--net=/run/netns/{network}", sys.executable, "-c", ASK, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise tools.Failed(f"{method} {url} from {node}: {done.stderr}")
    return json.loads(done.stdout) if done.stdout.strip() else None
