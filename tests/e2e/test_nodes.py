"""Nodes that are lost, cut off and drained, with a Collector's pod, a StatefulSet's, and members of an XSLD cache.

What can't be known is not guessed: a pod of a name on a node that is silent may run there still. So whoever has a name
stands still, and says which node it is and what a person can do; what is made elsewhere anyway heals by itself.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from . import caches, conftest, nodes, tools, trouble

ROAM = "xsld.ibm.com/cache=roam"
_numbers = itertools.count(1)
FAILOVER = 30
"""Seconds after which the copy takes over: more than it takes until it is known that a node is lost."""


@pytest.fixture(scope="module")
def cluster_of_nodes(moorage: tools.Cluster) -> Iterator[tools.Cluster]:
    """moorage on a cluster with nodes that may be lost; all are there again in the end."""
    nodes.spare(moorage)
    yield moorage
    tools.testbed("up")


@pytest.fixture(scope="module")
def roam(cluster_of_nodes: tools.Cluster) -> Iterator[caches.Cache]:
    """A cache of two members, never on one node, with a grid of which each entry is on both."""
    cache = caches.Cache(cluster_of_nodes, "roam")
    place = nodes.PLACE | {"antiAffinity": "Required", "terminationGracePeriodSeconds": 30}
    cache.apply(size=2, pod=place, derbyReplication={"failoverSeconds": FAILOVER})
    try:
        cache.ready(2)
        cache.grid("kept", numSyncReplicas=1, numAsyncReplicas=0)
        yield cache
    finally:
        print(json.dumps(cache.status(), indent=1))
        cache.remove("kept")


class Entry:
    """An entry of the grid, written now, by whichever member the Service gives."""

    def __init__(self, cache: caches.Cache) -> None:
        service = cache.cluster.get("service", f"{cache.name}-client", "-n", caches.NAMESPACE)
        path = f"wxsdata/v1/grids/kept/kept.LUT.O/entry-{next(_numbers)}"
        self._url = f"https://{service['spec']['clusterIP']}:9444/{path}"
        tools.wait("an entry is written", self._written)

    def _written(self) -> bool:
        nodes.ask("node-0", self._url, "POST", {"hello": "world"})
        return True

    def wait_there(self) -> None:
        """It can be read; a node's rules for the Service follow what becomes of its pods a moment later."""
        found = tools.wait("the entry is found", lambda: nodes.ask("node-0", self._url))
        assert {"hello": "world"} == found


def homes(cache: caches.Cache) -> dict[str, str]:
    return nodes.homes(cache.cluster, caches.NAMESPACE, ROAM)


def primaries(cache: caches.Cache) -> set[str]:
    """Who is the primary in its own eyes, also where nobody else can ask."""
    found = set()
    for pod in cache.cluster.items("pods", "-n", caches.NAMESPACE, "-l", ROAM):
        try:
            said = nodes.ask(pod["spec"]["nodeName"], f"http://{pod['status']['podIP']}:9446/state")
        except (KeyError, tools.Failed):
            continue  # it does not run
        if said["primary"] == said["member"]:
            found.add(said["member"])
    return found


def one_primary(cache: caches.Cache) -> bool:
    """Whether, as soon as one answers that it is the primary, it is alone with that."""
    return 1 == len(tools.wait("a primary answers", lambda: primaries(cache)))


def stuck(cache: caches.Cache, node: str) -> str | None:
    """The words with which the cache stands still for that node, once it does."""
    conditions = {each["type"]: each for each in cache.status().get("conditions") or ()}
    ready, stalled = conditions.get("Ready", {}), conditions.get("Stalled", {})
    if (ready.get("reason"), stalled.get("status")) != ("NodeDown", "True"):
        return None
    return str(ready["message"]) if node in ready["message"] else None


def says_what_heals(message: str, node: str) -> bool:
    return f"kubectl taint node {node} node.kubernetes.io/out-of-service=nodeshutdown:NoExecute" in message


def test_no_two_members_share_a_node(roam: caches.Cache) -> None:
    """Required anti-affinity, with as many nodes as it takes."""
    placed = homes(roam)

    assert ["roam-0", "roam-1"] == sorted(placed)
    assert 2 == len(set(placed.values()))
    assert set(placed.values()) <= set(nodes.SPARE)


def test_a_primary_that_is_cut_off_stays_the_only_one(roam: caches.Cache) -> None:
    """It runs on and may serve whoever is with it; so nobody takes over, however long it lasts."""
    first = roam.status()["primary"]
    node, seen, begun = homes(roam)[first], set[str](), time.monotonic()

    def still() -> str | None:
        seen.update(primaries(roam))
        return stuck(roam, node)

    with nodes.lost(roam.cluster, node, "partition"):
        message = tools.wait("it stands still", still, within=caches.WITHIN)
        told = time.monotonic() - begun
        long = told + 2 * FAILOVER
        tools.wait("twice the time of a failover", lambda: still() and time.monotonic() > begun + long, within=2 * long)
        assert {first} == seen
    print(f"\nprimary {first} cut off on {node}: told after {told:.0f} s: {message}")
    assert says_what_heals(message, node)
    roam.ready(2)
    assert one_primary(roam)


@pytest.mark.parametrize("role", ["primary", pytest.param("member", marks=pytest.mark.campaign)])
def test_a_node_that_is_off_is_healed_by_saying_so(roam: caches.Cache, role: str) -> None:
    """Its pod keeps the name until then; after it, the member is made elsewhere with its volume."""
    primary = roam.status()["primary"]
    gone = primary if role == "primary" else next(name for name in homes(roam) if name != primary)
    node, entry, begun = homes(roam)[gone], Entry(roam), time.monotonic()

    with nodes.lost(roam.cluster, node, "stop"):
        message = tools.wait("it stands still", lambda: stuck(roam, node), within=caches.WITHIN)
        told = time.monotonic() - begun
        assert says_what_heals(message, node)
        assert "Degraded" == roam.status()["phase"]
        nodes.out_of_service(roam.cluster, node)
        roam.ready(2)
        healed = time.monotonic() - begun
        assert node not in homes(roam).values()
        entry.wait_there()
        assert one_primary(roam)
    print(f"\n{role} {gone} lost with {node}: told after {told:.0f} s, healed after {healed:.0f} s: {message}")


@pytest.mark.parametrize("role", ["primary", "member"])
def test_a_drained_member_moves(roam: caches.Cache, role: str) -> None:
    """The budget lets it go, and the other holds all there is meanwhile."""
    primary = roam.status()["primary"]
    going = primary if role == "primary" else next(name for name in homes(roam) if name != primary)
    node, entry = homes(roam)[going], Entry(roam)

    with nodes.drained(roam.cluster, node):
        roam.ready(2)
        assert node not in homes(roam).values()
    entry.wait_there()


@pytest.mark.parametrize("how", ["stop", pytest.param("partition", marks=pytest.mark.campaign)])
def test_a_collector_moves_from_a_lost_node(
    cluster_of_nodes: tools.Cluster, collector: conftest.Make, how: str
) -> None:
    """Its Deployment makes another pod; helm has nothing to do with it, and nothing is rolled back."""
    one = collector(nodes.PLACE)
    one.wait_ready()
    selector = f"app.kubernetes.io/instance={one.release}"
    (node,) = nodes.homes(cluster_of_nodes, one.tenant, selector).values()
    begun = time.monotonic()

    with nodes.lost(cluster_of_nodes, node, how):
        message = one.wait_reason("NodeDown")
        told = time.monotonic() - begun
        one.wait_ready()
        moved = time.monotonic() - begun
        assert node not in nodes.homes(cluster_of_nodes, one.tenant, selector).values()
    print(f"\nCollector's pod lost ({how}) with {node}: told after {told:.0f} s, moved after {moved:.0f} s: {message}")
    assert f"node {node} does not answer" in message
    assert ["deployed"] == [each["status"] for each in one.history()]


def test_a_release_with_a_pod_that_has_a_name_is_stalled_with_the_cure(
    cluster_of_nodes: tools.Cluster, collector: conftest.Make
) -> None:
    """A StatefulSet of a chart is as a cache's: only somebody who knows can say that its pod has ended."""
    one = collector({"objects": [named()]}, chart="tricky", cluster="registry")
    one.wait_ready()
    (node,) = nodes.homes(cluster_of_nodes, one.tenant, "app=named").values()

    with nodes.lost(cluster_of_nodes, node, "stop"):
        message = tools.wait("it is stalled", lambda: stalled(one))
        assert f"node {node} does not answer" in message
        assert says_what_heals(message, node)
        nodes.out_of_service(cluster_of_nodes, node)
        one.wait_ready()
        assert node not in nodes.homes(cluster_of_nodes, one.tenant, "app=named").values()
    assert ["deployed"] == [each["status"] for each in one.history()]


def test_a_drained_collector_moves(cluster_of_nodes: tools.Cluster, collector: conftest.Make) -> None:
    one = collector(nodes.PLACE)
    one.wait_ready()
    selector = f"app.kubernetes.io/instance={one.release}"
    (node,) = nodes.homes(cluster_of_nodes, one.tenant, selector).values()

    def homes_now() -> set[str]:
        return set(nodes.homes(cluster_of_nodes, one.tenant, selector).values())

    with nodes.drained(cluster_of_nodes, node):
        tools.wait("its pod has a node again", lambda: homes_now() and "" not in homes_now())
        one.wait_ready()
        assert node not in homes_now()
    assert ["deployed"] == [each["status"] for each in one.history()]


def stalled(one: tools.Collector) -> str | None:
    """The words with which it stands still for a node, once it does; by one look, as both may change between two."""
    conditions = {each["type"]: each for each in one.object()["status"]["conditions"]}
    ready, held = conditions["Ready"], conditions["Stalled"]
    return str(ready["message"]) if (ready["reason"], held["status"]) == ("NodeDown", "True") else None


def named() -> dict[str, Any]:
    """A StatefulSet of one pod that does nothing, on a node that may be lost."""
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "named"},
        "spec": {
            "serviceName": "named",
            "replicas": 1,
            "selector": {"matchLabels": {"app": "named"}},
            "template": {
                "metadata": {"labels": {"app": "named"}},
                "spec": nodes.PLACE
                | {
                    "terminationGracePeriodSeconds": 1,
                    "automountServiceAccountToken": False,
                    "securityContext": {
                        "runAsNonRoot": True,
                        "runAsUser": 65532,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [
                        {
                            "name": "main",
                            "image": "moorage.dev/moorage:0.1.0",
                            "imagePullPolicy": "IfNotPresent",
                            "command": ["/usr/bin/python3", "-c", trouble.SLEEP],
                            "securityContext": {
                                "allowPrivilegeEscalation": False,
                                "readOnlyRootFilesystem": True,
                                "capabilities": {"drop": ["ALL"]},
                            },
                        }
                    ],
                },
            },
        },
    }
