"""A storage cluster on six nodes, each drive container on one of its own: nodes drained, lost and gone, and its end.

In order, as each test goes on from the one before:

    pytest tests/e2e/test_weka_nodes.py -m campaign
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from concurrent import futures

import pytest

from . import conftest, nodes, storages, tools

pytestmark = pytest.mark.campaign

AFTER = 60
"""Seconds after which who stays down is replaced."""

BLOCKS = {f"k{it}": f"text {it}" for it in range(6)}
DRIVES = [f"hello-drive-{it}" for it in range(5)]
FIVE = [f"storage-{it}" for it in range(5)]
ENDS_WITHIN = 1200.0
"""Kubernetes deletes pods first, and looks at a namespace that ends anew only every five minutes."""

COMPUTE = "hello-compute-0"
SELECTOR = "app=weka"


@pytest.fixture(scope="module")
def weka(moorage: tools.Cluster, registry: str) -> Iterator[tools.Cluster]:
    """moorage with Weka switched on, and six nodes with drives that nobody has signed."""
    nodes.store(moorage)
    section = storages.section() | {"replace": {"afterSeconds": AFTER, "perDay": 2}}
    with storages.unsigned(moorage, nodes.STORING), conftest.switched_on(moorage, registry, "weka", section):
        try:
            yield moorage
        finally:
            nodes.store(moorage)  # they are all there, as the tests found them


@pytest.fixture(scope="module")
def hello(weka: tools.Cluster) -> Iterator[storages.Storage]:
    """Of five drive containers, which are a stripe of 3+2, and of two that compute; with blocks in it."""
    one = storages.Storage(weka, place=nodes.STORE)
    sizes = one.spec["dynamicTemplate"] | {"computeContainers": 2}
    one.spec |= {"overrides": {}, "dynamicTemplate": sizes, "gracefulDestroyDuration": "3h"}
    try:
        assert "Done" == one.sign()["status"]
        one.apply()
        one.ready()
        one.write(BLOCKS)
        yield one
    finally:
        print(weka.kubectl("get", "wekaclusters,wekacontainers,pods,events", "-n", one.namespace, "-o", "wide"))
        print(weka.kubectl("get", "wekaclusters,wekacontainers", "-n", one.namespace, "-o", "yaml"))
        if weka.get("wekacluster", "hello", "-n", one.namespace):
            one.edit(gracefulDestroyDuration="0")
        one.delete()
        weka.kubectl("delete", "namespace", one.namespace, tools.HANGS)


def wait(what: str, condition: Callable[[], object], within: float = storages.WITHIN) -> None:
    tools.wait(what, condition, within=within)


def homes(hello: storages.Storage) -> dict[str, str]:
    """The node of each pod."""
    return nodes.homes(hello.cluster, hello.namespace, SELECTOR)


def up(hello: storages.Storage, via: str = COMPUTE) -> int:
    """Members that are, as that container says."""
    return hello.weka("cluster", "container", "--json", pod=via).count('"UP"')


def is_whole(hello: storages.Storage, *names: str) -> None:
    """These containers and no others, all up, with one drive each of those that have some, and all blocks in place."""
    hello.ready()
    assert {*names, COMPUTE, "hello-compute-1"} == {*hello.containers()} == {*hello.pods()}
    assert 7 == up(hello)
    assert ["ACTIVE"] * 5 == [it["status"] for it in hello.told("cluster", "drive")]
    assert BLOCKS == hello.read(BLOCKS, COMPUTE) == hello.read(BLOCKS, names[0])


def replaced(hello: storages.Storage) -> set[str]:
    return {*(hello.cluster.get("wekacluster", "hello", "-n", hello.namespace)["status"].get("replaced") or ())}


@contextlib.contextmanager
def draining(hello: storages.Storage, *these: str) -> Iterator[dict[str, futures.Future[str]]]:
    """As administrators do who don't wait for one another; all may be used again in the end."""
    words = ("--ignore-daemonsets", "--delete-emptydir-data", "--timeout=900s")
    with futures.ThreadPoolExecutor(len(these)) as pool:
        try:
            yield {it: pool.submit(hello.cluster.kubectl, "drain", it, *words) for it in these}
        finally:
            hello.cluster.kubectl("uncordon", *these)


def test_each_drive_container_is_on_a_node_of_its_own(hello: storages.Storage) -> None:
    is_whole(hello, *DRIVES)
    assert 5 == len({at for name, at in homes(hello).items() if name in DRIVES})
    assert 2 == len({at for name, at in homes(hello).items() if name not in DRIVES})


def test_one_that_computes_is_killed_again_and_again_and_nothing_is_lost(hello: storages.Storage) -> None:
    for number in range(5):
        name = f"hello-compute-{number % 2}"
        pod = hello.cluster.get("pod", name, "-n", hello.namespace)
        before = pod["status"]["containerStatuses"][0]["restartCount"]
        tools.kill(pod)

        def again(name: str = name, before: int = before) -> bool:
            found = hello.cluster.get("pod", name, "-n", hello.namespace)["status"]["containerStatuses"][0]
            return bool(found["restartCount"] > before and "running" in found["state"])

        assert BLOCKS == hello.read(BLOCKS, "hello-drive-0")
        wait(f"{name} was started again", again)
        wait("all are up", lambda: 7 == up(hello, "hello-drive-0"))
    is_whole(hello, *DRIVES)


def test_two_that_are_stopped_in_their_pods_are_borne_a_third_is_not_and_all_come_back(
    hello: storages.Storage,
) -> None:
    """By the product's own command line: moorage neither ends nor replaces a pod for it, as too much is amiss."""
    pods, containers = hello.pods(), hello.containers()

    def local(verb: str, name: str, *how: str) -> None:
        hello.kubectl("exec", name, "--", "weka", "local", verb, *how, containers[name]["spec"]["name"])

    for name in DRIVES[:2]:
        local("stop", name, "--force")
    wait("two are down", lambda: 5 == up(hello))
    assert BLOCKS == hello.read(BLOCKS, COMPUTE)
    local("stop", DRIVES[2], "--force")

    def serves() -> bool:
        with contextlib.suppress(tools.Failed):
            return BLOCKS == hello.read(BLOCKS, COMPUTE)
        return False

    wait("it does not serve any more", lambda: not serves())
    for name in DRIVES[:3]:
        local("start", name)
    wait("it serves again", serves)
    is_whole(hello, *DRIVES)
    assert pods == hello.pods()


def test_of_three_nodes_that_are_drained_at_once_the_third_serves_until_another_is_back(
    hello: storages.Storage,
) -> None:
    """Longer than one that stays down is left alone, which counts for nothing here: it is a person's decision.

    Those that compute stay: with two drive containers and one of them away hardly more than half could decide.
    """
    is_whole(hello, *DRIVES)
    at = homes(hello)
    computing = {node for name, node in at.items() if name not in DRIVES}
    away = {at[name]: name for name in [it for it in DRIVES if at[it] not in computing][:3]}
    stays = next(name for name in DRIVES if name not in away.values())
    begun = time.monotonic()
    with draining(hello, *away) as drains:
        wait("two are drained", lambda: 2 == sum(it.done() for it in drains.values()))
        [(node, held)] = [(node, name) for node, name in away.items() if not drains[node].done()]
        wait("the third is held", lambda: "StopGated" == hello.reason(held))
        while time.monotonic() - begun < AFTER + 30:
            assert BLOCKS == hello.read(BLOCKS, stays)
            assert not drains[node].done()
        first, second = (it for it in away if it != node)
        hello.cluster.kubectl("uncordon", first)
        wait("the third is drained once another is back", drains[node].done)
        hello.cluster.kubectl("uncordon", second, node)

    is_whole(hello, *DRIVES)
    assert at == homes(hello)
    assert set() == replaced(hello)


def test_one_that_stays_down_is_replaced_with_its_data(hello: storages.Storage) -> None:
    """It was stopped in its pod, and nobody starts it: its pod runs, and it does not."""
    is_whole(hello, *DRIVES)
    within = hello.containers()[DRIVES[4]]["spec"]["name"]
    hello.kubectl("exec", DRIVES[4], "--", "weka", "local", "stop", "--force", within)

    wait("it is replaced", lambda: DRIVES[4] not in hello.containers())
    is_whole(hello, *DRIVES[:4], "hello-drive-5")
    assert {DRIVES[4]} == replaced(hello)


def test_one_whose_node_loses_its_power_is_left_to_a_person_and_goes_by_the_way_that_is_told(
    hello: storages.Storage,
) -> None:
    """It may run there still, as far as anybody knows, so that it is left alone for longer than others."""
    is_whole(hello, *DRIVES[:4], "hello-drive-5")
    at = homes(hello)
    node = at[DRIVES[3]]
    gone = {name for name, where in at.items() if where == node}
    with nodes.lost(hello.cluster, node, "stop"):
        wait("it is told", lambda: "NodeNotReady" == hello.reason(DRIVES[3]))
        begun = time.monotonic()
        via = next(name for name in at if name not in gone)
        while time.monotonic() - begun < AFTER + 30:
            assert BLOCKS == hello.read(BLOCKS, via)
        assert gone <= hello.pods().keys()
        assert {DRIVES[4]} == replaced(hello)

        nodes.out_of_service(hello.cluster, node)
        wait("Kubernetes lets go of its pods", lambda: not gone & hello.pods().keys())
        hello.kubectl("delete", "wekacontainer", *gone, tools.HANGS)
        hello.ready()
        assert BLOCKS == hello.read(BLOCKS, "hello-drive-0")
    names = {*hello.containers()}
    assert not gone & names
    is_whole_of(hello, names)


def is_whole_of(hello: storages.Storage, names: set[str]) -> None:
    """The same as `is_whole`, of whoever is there."""
    hello.ready()
    assert names == {*hello.pods()}
    assert 7 == len(names) == up(hello, min(names))
    drives = [it for it in names if "drive" in it]
    assert BLOCKS == hello.read(BLOCKS, drives[0])


def test_one_whose_node_is_no_node_any_more_is_replaced(hello: storages.Storage) -> None:
    """Within its budget: two a day."""
    at = homes(hello)
    name = min(it for it in at if "drive" in it and list(at.values()).count(at[it]) == 1)
    node = at[name]
    with nodes.lost(hello.cluster, node, "stop"):
        hello.cluster.kubectl("delete", "node", node)
        wait("it is told", lambda: name not in hello.containers() or "NodeGone" == hello.reason(name))
        wait("it is replaced", lambda: name not in hello.containers())
        hello.ready()
    assert name in replaced(hello)
    is_whole_of(hello, {*hello.containers()})
    nodes.store(hello.cluster)


def test_an_upgrade_waits_between_drive_and_compute_containers_where_that_is_asked_for(
    hello: storages.Storage,
) -> None:
    hello.edit(image=storages.NEWER, overrides={"upgradePausePreCompute": True})

    def images(role: str) -> set[str]:
        pods = hello.cluster.items("pods", "-n", hello.namespace, "-l", f"weka.io/mode={role}")
        return {it["spec"]["containers"][0]["image"] for it in pods}

    def reason() -> str:
        said = hello.cluster.get("wekacluster", "hello", "-n", hello.namespace)["status"]["conditions"]
        return str(next(it["reason"] for it in said if it["type"] == "Ready"))

    wait("it is paused", lambda: "UpgradePaused" == reason())
    via = min(hello.pods())
    assert ({storages.NEWER}, {storages.IMAGE}) == (images("drive"), images("compute"))
    begun = time.monotonic()
    while time.monotonic() - begun < AFTER:
        assert ({storages.IMAGE}, "UpgradePaused") == (images("compute"), reason())
        assert BLOCKS == hello.read(BLOCKS, via)
    assert "DrivePhase" in hello.weka("status", "--json", pod=via)

    hello.edit(overrides={"upgradePausePreCompute": None})
    assert storages.NEWER == hello.ready()["lastAppliedImage"]
    assert {storages.NEWER} == images("compute")
    is_whole_of(hello, {*hello.containers()})


def test_deleted_it_stands_still_for_its_grace_is_had_back_and_goes_once_that_is_over(
    hello: storages.Storage,
) -> None:
    names = {*hello.containers()}
    hello.kubectl("delete", "wekacluster/hello", "--wait=false")

    def status(of: str) -> set[str]:
        return {it["status"]["status"] for it in hello.cluster.items(of, "-n", hello.namespace)}

    wait("all are paused", lambda: {"Paused"} == status("wekacontainers") and not hello.pods())
    assert (names, {"GracePeriod"}) == ({*hello.containers()}, status("wekaclusters"))

    hello.edit(overrides={"cancelDeletion": True})
    wait("all are back", lambda: {"Running"} == status("wekacontainers") and names == {*hello.pods()})
    wait("all are up", lambda: 7 == up(hello, min(names)))
    assert BLOCKS == hello.read(BLOCKS, min(names))

    hello.edit(overrides={"cancelDeletion": None})
    wait("all are paused again", lambda: {"Paused"} == status("wekacontainers"))
    hello.edit(gracefulDestroyDuration="0")
    hello.kubectl("delete", "wekamanualoperations", "--all", tools.HANGS)
    wait("nothing is left", lambda: not hello.left())


@pytest.fixture
def five(weka: tools.Cluster) -> Iterator[list[storages.Storage]]:
    """Clusters that are applied at once, each in a namespace of its own, on drives that nobody had before."""

    def gone() -> bool:
        return not [it for it in FIVE if weka.get("namespace", it)]

    wait("they are gone", gone, ENDS_WITHIN)
    storages.exchange(nodes.STORING)
    made = [storages.Storage(weka, it, nodes.STORE) for it in FIVE]
    try:
        yield made
    finally:
        print(weka.kubectl("get", "wekaclusters,wekacontainers,pods", "-A", "-o", "wide"))
        weka.kubectl("delete", "namespace", *FIVE, "--wait=false", "--ignore-not-found")
        wait("they are gone", gone, ENDS_WITHIN)


def test_five_at_once_share_nothing_and_go_with_their_namespaces(five: list[storages.Storage]) -> None:
    """All are served by the same nodes; each namespace is deleted with all that is in it, at once, and ends."""
    assert "Done" == five[0].sign()["status"]
    for it in five:
        it.spec |= {"overrides": {}, "leadershipRaftSize": 5, "gracefulDestroyDuration": "24h"}
        it.apply()
    given: list[str] = []
    ports: list[range] = []
    for it in five:
        said = it.ready()["ports"]
        ports.append(range(said["basePort"], said["basePort"] + said["portRange"]))
        got = it.told("cluster", "drive")
        assert ["ACTIVE"] * 5 == [drive["status"] for drive in got]
        given += [drive["serial_number"] for drive in got]
        it.write({"k": it.namespace})

    assert 25 == len({*given}) == len(given)
    assert not [it for it in ports for other in ports if it is not other and {*it} & {*other}]
    assert FIVE == [it.read({"k": ""}, COMPUTE)["k"] for it in five]

    cluster = five[0].cluster
    cluster.kubectl("delete", "namespace", *FIVE, "--wait=false")
    wait("they are gone", lambda: not [it for it in FIVE if cluster.get("namespace", it)], ENDS_WITHIN)
    assert [] == [it for it in cluster.items("wekacontainers,pods", "-A") if it["metadata"]["namespace"] in FIVE]
