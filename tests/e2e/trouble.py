"""What the tests of bad input share: pods that misbehave, tenants made beforehand, and looks that change nothing."""

from __future__ import annotations

import datetime
import itertools
import json
import os
import time
from typing import Any

from . import tools

SLEEP = "import signal; signal.pause()"
NEVER_READY = "/never"
_looks = itertools.count(1)


def own(name: str) -> str:
    """A tenant's reference that no other run of the tests uses."""
    return f"{name}{os.getpid()}"


def pod(args: str = SLEEP, **more: Any) -> dict[str, Any]:
    """Values of the chart `tricky` that make a Deployment which runs this Python."""
    return {"pod": {"args": args, **more}}


def tenant(cluster: tools.Cluster, name: str, *, admits: str = "default", objects: tuple[Any, ...] = ()) -> str:
    """A tenant's namespace as an administrator makes it, with these objects in it; returns the tenant's reference."""
    annotations = {"moorage.dev/collectors-from": admits} if admits else {}
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    metadata = {"name": name.lower(), "annotations": annotations, "labels": labels}
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    for each in objects:
        each["metadata"]["namespace"] = name.lower()
        cluster.apply(each)
        if each["kind"] == "ResourceQuota":
            _wait_counted(cluster, each["metadata"]["name"], name.lower())
    return name


def _wait_counted(cluster: tools.Cluster, name: str, namespace: str) -> None:
    """Until then a quota refuses with other words: that it does not know yet what is used."""

    def counted() -> bool:
        found = cluster.get("quota", name, "-n", namespace)
        return bool(found) and found.get("status", {}).get("hard") == found["spec"]["hard"]

    tools.wait(f"quota {name} is counted", counted)


def quota(name: str, **hard: str) -> dict[str, Any]:
    """A ResourceQuota; underscores in keys stand for slashes."""
    limits = {key.replace("_", "/"): value for key, value in hard.items()}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}, "spec": {"hard": limits}}


def config_map(name: str, data: dict[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    """A ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": data or {}}


def passes(one: tools.Collector) -> list[float]:
    """When the running operator began its passes over this Collector, in epoch seconds, by its canonical log lines."""
    log = one.cluster.kubectl("logs", "-n", tools.NAMESPACE, "deploy/moorage", "--tail=-1")
    lines = [json.loads(line) for line in log.splitlines() if '"event":"reconciled"' in line]
    own = [line for line in lines if (line["namespace"], line["name"]) == (one.namespace, one.name)]
    return [datetime.datetime.fromisoformat(it["timestamp"]).timestamp() - it["ms"] / 1000 for it in own]


def looked_at_again(one: tools.Collector, times: int = 2) -> None:
    """The operator looks at it so many times more, for a reason that changes nothing."""
    for _ in range(times):
        begun = time.time()  # not the number of passes: what an operator has said before its restart is not shown
        note = f"note=look-{next(_looks)}"
        one.cluster.kubectl("annotate", "--overwrite", "collector", one.name, "-n", one.namespace, note)
        tools.wait(f"another look at {one.name}", lambda begun=begun: max(passes(one), default=0) > begun)


def restart(cluster: tools.Cluster) -> None:
    """A new operator process, with nothing in its memory or scratch folder."""
    cluster.kubectl("rollout", "restart", "deploy/moorage", "-n", tools.NAMESPACE)
    tools.rolled_out(cluster)
    selector = ["-n", tools.NAMESPACE, "-l", "app.kubernetes.io/name=moorage"]
    tools.wait("the old process is gone", lambda: len(cluster.items("pods", *selector)) == 1)


def untouched(one: tools.Collector, revisions: int) -> None:
    """The release still has these revisions, and what it runs is available."""
    assert len(one.history()) == revisions
    assert one.condition("Available")["status"] == "True"


def nothing_was_made(one: tools.Collector) -> None:
    """No release, and of it no object but the claim on its name."""
    assert one.history() == []
    assert [each for each in one.leftovers() if each not in (f"ConfigMap/release.{one.release}", _BINDING)] == []


_BINDING = "RoleBinding/moorage-collector"
