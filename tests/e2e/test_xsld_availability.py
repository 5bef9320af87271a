"""What clients notice of scaling, rolling and failing over: requests that fail, the longest gap, and writes lost."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from . import caches, tools

CLIENT = "availability-client"
GRIDS = {
    "synced": {"numSyncReplicas": 1, "numAsyncReplicas": 0},
    "behind": {"numSyncReplicas": 0, "numAsyncReplicas": 1},
}
FAILOVER = 5
AWAY = 90
"""Seconds for which the primary stays away, so that the copy takes over."""


@pytest.fixture(scope="module")
def busy(moorage: tools.Cluster) -> Iterator[caches.Cache]:
    """A cache of three members with one grid of each sort."""
    cache = caches.Cache(moorage, "busy")
    cache.apply(size=3, derbyReplication={"failoverSeconds": FAILOVER})
    try:
        cache.ready(3)
        for name, spec in GRIDS.items():
            cache.grid(name, **spec)
        source = Path(__file__).with_name("availability.py").read_text()
        moorage.apply(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": CLIENT, "namespace": caches.NAMESPACE},
                "data": {"availability.py": source},
            }
        )
        yield cache
    finally:
        print(json.dumps(cache.status(), indent=1))
        cache.remove(*GRIDS)
        moorage.kubectl("delete", f"configmap/{CLIENT}", "-n", caches.NAMESPACE, "--ignore-not-found")


def scale_up(cache: caches.Cache) -> None:
    cache.change(size=4)
    cache.ready(4)


def scale_down(cache: caches.Cache) -> None:
    cache.change(size=3)
    cache.ready(3)


def image_update(cache: caches.Cache) -> None:
    cache.change(image="ibmcom/xsld:8614")
    cache.ready(3, image="ibmcom/xsld:8614")


def failover(cache: caches.Cache) -> None:
    """The primary's container is gone at once, and slow to come back."""
    first = cache.status()["primary"]
    address = cache.cluster.get("pod", first, "-n", caches.NAMESPACE)["status"]["podIP"]
    fault = json.dumps({"slowStart": AWAY, "sticky": True})
    url = f"http://{address}:9446/faults"
    put = f"import urllib.request as r; r.urlopen(r.Request('{url}', {fault!r}.encode(), method='PUT'))"
    cache.cluster.kubectl("exec", CLIENT, "-n", caches.NAMESPACE, "--", "python3", "-c", put)
    caches.kill(cache.cluster.get("pod", first, "-n", caches.NAMESPACE))

    def another() -> str:
        primary = str(cache.status().get("primary") or first)
        return primary if primary != first else ""

    tools.wait("another primary", another, within=caches.WITHIN)
    cache.ready(3)


@pytest.mark.campaign
@pytest.mark.parametrize("change", [scale_up, scale_down, image_update, failover])
def test_no_acknowledged_write_is_lost(busy: caches.Cache, change: Callable[[caches.Cache], None]) -> None:
    """With one synchronous replica; what asynchronous ones lose is printed beside it."""
    client(busy)
    change(busy)
    told = outcome(busy)
    for each in told.values():
        print(f"{change.__name__}: {json.dumps(each)}")
    assert 0 == told["synced"]["lost"]
    assert told["synced"]["acknowledged"] > 100


def client(cache: caches.Cache) -> None:
    """Start the client, in a pod of the operator's own image, and wait until it works."""
    image = cache.cluster.get("deploy", "moorage", "-n", tools.NAMESPACE)["spec"]["template"]["spec"]["containers"][0]
    url = f"https://{cache.name}-client.{caches.NAMESPACE}.svc:9444"
    cache.cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": CLIENT, "namespace": caches.NAMESPACE},
            "spec": {
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 0,
                "containers": [
                    {
                        "name": "client",
                        "image": image["image"],
                        "command": [
                            "python3",
                            "-u",
                            "/client/availability.py",
                            url,
                            f"xsadmin:{caches.PASSWORD}",
                            *GRIDS,
                        ],
                        "volumeMounts": [
                            {"name": "client", "mountPath": "/client"},
                            {"name": "tmp", "mountPath": "/tmp"},
                        ],
                    }
                ],
                "volumes": [{"name": "client", "configMap": {"name": CLIENT}}, {"name": "tmp", "emptyDir": {}}],
            },
        }
    )
    tools.wait("the client works", lambda: "started" in logs(cache))


def logs(cache: caches.Cache) -> str:
    return cache.cluster.kubectl("logs", CLIENT, "-n", caches.NAMESPACE, check=False)


def outcome(cache: caches.Cache) -> dict[str, dict[str, Any]]:
    """Stop the client; returns what it met, by grid."""
    stop = "open('/tmp/stop', 'w')"
    cache.cluster.kubectl("exec", CLIENT, "-n", caches.NAMESPACE, "--", "python3", "-c", stop)
    words = ["pod", CLIENT, "-n", caches.NAMESPACE]
    tools.wait(
        "the client's end", lambda: cache.cluster.get(*words)["status"]["phase"] == "Succeeded", within=caches.WITHIN
    )
    told = [json.loads(line) for line in logs(cache).splitlines() if line.startswith("{")]
    cache.cluster.kubectl("delete", *words, tools.HANGS)
    return {each["grid"]: each for each in told}
