"""A storage cluster with running pods on several nodes: formed, hurt, grown, rolled and removed, with data in it.

Its image is the stand-in of `images/weka`, which loses data where an order of operations would lose it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from . import conftest, nodes, storages, tools

BLOCKED = storages.serials(nodes.SPARE[0])[0]
BLOCKS = {f"k{it}": f"text {it}" for it in range(6)}


@pytest.fixture(scope="module")
def weka(moorage: tools.Cluster, registry: str) -> Iterator[tools.Cluster]:
    """moorage with Weka switched on, and nodes with drives that nobody has signed."""
    nodes.spare(moorage)
    with storages.unsigned(moorage), conftest.switched_on(moorage, registry, "weka", storages.section()):
        yield moorage


@pytest.fixture(scope="module")
def hello(weka: tools.Cluster) -> Iterator[storages.Storage]:
    """Drives signed, one blocked, and the cluster applied; the tests of this module go on from one another's end."""
    one = storages.Storage(weka)
    try:
        assert "Done" == one.sign()["status"]
        given = {"node": nodes.SPARE[0], "serialIDs": [BLOCKED]}
        assert "Done" == one.operate("block", "block-drives", blockDrivesPayload=given)["status"]
        one.apply()
        yield one
    finally:
        print(weka.kubectl("get", "wekaclusters,wekacontainers,pods,events", "-n", storages.NAMESPACE, "-o", "wide"))
        print(weka.kubectl("get", "wekaclusters,wekacontainers", "-n", storages.NAMESPACE, "-o", "yaml"))
        one.delete()
        weka.kubectl("delete", "namespace", storages.NAMESPACE, tools.HANGS)


def is_whole(hello: storages.Storage, drives: int = 5, computes: int = 1) -> None:
    """What the product itself says of its members and drives, and that each has one drive of its own node."""
    members = hello.told("cluster", "container")
    listed = hello.told("cluster", "drive")
    given = {
        serial: it["status"]["nodeAffinity"]
        for it in hello.containers().values()
        for serial in it["status"]["allocations"].get("drives", ())
    }

    assert {("UP", "ACTIVE")} == {(it["status"], it["state"]) for it in members}
    assert drives + computes == len(members) == len(hello.containers())
    assert ({"ACTIVE"}, drives) == ({it["status"] for it in listed}, len(listed))
    assert given.keys() == {it["serial_number"] for it in listed}
    assert all(serial.startswith(f"{node}-s") for serial, node in given.items())
    assert BLOCKED not in given


def test_it_is_formed_and_begins(hello: storages.Storage) -> None:
    """Ready is what the product itself says: formed, its stripe set, drives added, IO started, people have a login."""
    said = hello.ready()
    told = hello.told("status")

    assert (told["guid"], "Ready") == (said["clusterID"], said["status"])
    assert ("OK", "STARTED", "hello") == (told["status"], told["io_status"], told["name"])
    assert (3, 2) == (told["stripe_data_drives"], told["stripe_protection_drives"])
    assert {"admin", "weka-cluster-hello"} == {it["username"] for it in hello.told("user")}
    assert {".config_fs", "default"} == {it["name"] for it in hello.told("fs")}
    uid = hello.cluster.get("wekacluster", "hello", "-n", storages.NAMESPACE)["metadata"]["uid"]
    words = ("get", "pods,wekacontainers", "-l", f"weka.io/cluster-id={uid}", "-o", "name")
    pods, containers = ({*it} for it in (hello.pods(), hello.containers()))
    assert {"hello-compute-0", *(f"hello-drive-{it}" for it in range(5))} == pods == containers
    assert 12 == len(hello.kubectl(*words).split())
    is_whole(hello)


def test_what_another_spec_would_lead_to_is_told_and_the_product_is_asked_by_a_command(hello: storages.Storage) -> None:
    """The API server and moorage's own rules are asked, with a person's rights; nothing becomes of it."""
    moorage = sys.executable, "-m", "moorage"
    where = ("wekacluster/hello", "-n", storages.NAMESPACE)

    def asked(change: str) -> str:
        return hello.cluster.run(*moorage, "explain", *where, "--if", change, check=False)

    before = hello.cluster.get("wekacluster", "hello", "-n", storages.NAMESPACE)["spec"]
    fewer = asked("spec.dynamicTemplate.driveContainers=4")
    assert "✗ the API server refuses it: " in fewer, fewer
    assert "must be at least stripeWidth + redundancyLevel" in fewer, fewer
    more = asked("spec.dynamicTemplate.driveContainers=6")
    assert "✓ 1 drive container is made, where there are nodes for it" in more, more
    assert "✓ 6 drive containers then: a stripe is on 5 or more, 2 of which may be lost; 1 beyond them" in more, more
    rolled = asked("spec.image=weka.example/weka:9.9.9")
    assert "5 drive containers (hello-drive-0, " in rolled, rolled
    assert before == hello.cluster.get("wekacluster", "hello", "-n", storages.NAMESPACE)["spec"]
    status = json.loads(hello.cluster.run(*moorage, "shell", *where, "--", *hello.logged_in("status", "--json")))
    assert hello.told("status")["guid"] == status["guid"]


def test_drives_are_signed_by_an_operation_and_told_at_their_nodes(hello: storages.Storage) -> None:
    """Each node's own, in a name of its own; that of another cluster is left as it is, as nobody has asked for more."""
    for name in nodes.SPARE:
        text = hello.cluster.kubectl("get", "node", name, "-o", "json", "--show-managed-fields")
        found = json.loads(text)["metadata"]
        theirs = json.loads((storages.HOME / "devices" / f"{name}-theirs").read_text())
        assert storages.serials(name) == json.loads(found["annotations"][storages.SIGNED])
        assert "moorage-weka-drives" in {it["manager"] for it in found["managedFields"]}
        assert ("somebody's", False) == (theirs["weka_guid"], theirs.get("is_signed", False))
    left = [name for name in hello.pods() if not name.startswith("hello-")]
    assert [] == left, "pods of operations go once they have told what they found"


def test_moorage_is_not_uninstalled_while_there_are_containers(hello: storages.Storage) -> None:
    """Nothing is removed then, helm shows why, and by the way that is told its release is as it was."""
    before = hello.cluster.get("deployment", "moorage", "-n", tools.NAMESPACE)["metadata"]["uid"]
    with pytest.raises(tools.Failed, match=r"6 WekaContainer objects exist: storage/hello-compute-0") as refused:
        hello.cluster.helm("uninstall", "moorage", "-n", tools.NAMESPACE)

    assert "kubectl get wekacontainers -A" in str(refused.value)
    assert "helm rollback RELEASE REVISION" in str(refused.value)
    where = ("moorage", "-n", tools.NAMESPACE)
    last = json.loads(hello.cluster.helm("history", *where, "-o", "json"))[-1]["revision"]
    hello.cluster.helm("rollback", "moorage", str(last), "-n", tools.NAMESPACE)
    assert before == hello.cluster.get("deployment", "moorage", "-n", tools.NAMESPACE)["metadata"]["uid"]
    assert "deployed" == json.loads(hello.cluster.helm("status", *where, "-o", "json"))["info"]["status"]
    hello.cluster.kubectl("delete", "job", "moorage-before-uninstall", "-n", tools.NAMESPACE, "--ignore-not-found")


def test_people_see_it(hello: storages.Storage) -> None:
    hello.ready()
    command = (sys.executable, "-m", "moorage", "status", "wekacluster/hello", "-n", storages.NAMESPACE)
    shown = hello.cluster.run(*command)

    assert "Ready" in shown
    assert all(name in shown for name in hello.containers())


def test_no_device_of_the_machine_is_in_reach(hello: storages.Storage) -> None:
    """Pods are root on their nodes, and on a testbed these are all this very machine."""
    hello.ready()
    machines = {path.name for path in Path("/sys/block").iterdir()}
    seen = {*hello.kubectl("exec", "hello-drive-0", "--", "busybox", "ls", "/dev").split()}

    assert {"null", "zero"} <= seen
    assert set() == machines & seen


def test_at_rest_nothing_is_written(hello: storages.Storage, account: str) -> None:
    hello.ready()
    mark = tools.quiet(account, for_seconds=20.0)

    assert [] == tools.told(tools.writes(tools.audit(mark), account))


def test_a_pod_that_is_deleted_comes_back_with_its_drive(hello: storages.Storage) -> None:
    """It is told that it may stop, never forced, and comes back under its name, on its node."""
    hello.ready()
    hello.write(BLOCKS)
    before, kept = hello.pods()["hello-drive-1"], hello.containers()["hello-drive-1"]["status"]
    hello.kubectl("delete", "pod", "hello-drive-1", tools.HANGS)

    tools.wait("another pod", lambda: hello.pods().get("hello-drive-1", before) != before, within=storages.WITHIN)
    hello.ready()
    now = hello.containers()["hello-drive-1"]["status"]
    assert (kept["allocations"], kept["nodeAffinity"]) == (now["allocations"], now["nodeAffinity"])
    assert BLOCKS == hello.read(BLOCKS, "hello-drive-1")
    is_whole(hello)


def test_a_container_whose_processes_are_killed_comes_back(hello: storages.Storage) -> None:
    """As when memory is out: nobody asked it to end, and it knows what it was."""
    hello.ready()
    pod = hello.cluster.get("pod", "hello-drive-2", "-n", storages.NAMESPACE)
    tools.kill(pod)

    def restarted() -> bool:
        found = hello.cluster.get("pod", "hello-drive-2", "-n", storages.NAMESPACE)
        return any(it["restartCount"] and "running" in it["state"] for it in found["status"]["containerStatuses"])

    tools.wait("it was started again", restarted, within=storages.WITHIN)
    tools.wait("all are up", lambda: "DOWN" not in hello.weka("cluster", "container", "--json"), within=storages.WITHIN)
    hello.ready()
    assert pod["metadata"]["uid"] == hello.pods()["hello-drive-2"]
    assert BLOCKS == hello.read(BLOCKS, "hello-drive-2")
    is_whole(hello)


def test_containers_of_a_drained_node_stop_wait_for_it_and_come_back(hello: storages.Storage) -> None:
    """What they hold is nowhere else; the others have all there is meanwhile."""
    hello.ready()
    homes = nodes.homes(hello.cluster, storages.NAMESPACE, "app=weka")
    node = min({*homes.values()}, key=[*homes.values()].count)
    there = {name for name, at in homes.items() if at == node}
    with nodes.drained(hello.cluster, node):
        assert BLOCKS == hello.read(BLOCKS, min(homes.keys() - there))
        tools.wait(
            "they wait for the node",
            lambda: {"NodeCordoned"} == {hello.reason(name) for name in there},
            within=storages.WITHIN,
        )
        assert not there & hello.pods().keys()

    hello.ready()
    assert homes == nodes.homes(hello.cluster, storages.NAMESPACE, "app=weka")
    is_whole(hello)


def test_a_container_that_is_deleted_hands_over_and_is_made_up_for(hello: storages.Storage) -> None:
    """Another one comes first, as a stripe needs five; then its data is moved, and the cluster forgets it."""
    hello.ready()
    hello.kubectl("delete", "wekacontainer", "hello-drive-0", tools.HANGS)

    hello.ready()
    assert {"hello-compute-0", *(f"hello-drive-{it}" for it in (1, 2, 3, 4, 5))} == hello.containers().keys()
    assert BLOCKS == hello.read(BLOCKS, "hello-drive-5")
    is_whole(hello)


def test_it_grows_and_shrinks(hello: storages.Storage) -> None:
    hello.ready()
    hello.edit(dynamicTemplate={"driveContainers": 6, "computeContainers": 2})
    hello.ready()
    is_whole(hello, 6, 2)

    hello.edit(dynamicTemplate={"driveContainers": 5, "computeContainers": 1})
    hello.ready()
    assert BLOCKS == hello.read(BLOCKS, "hello-compute-0")
    is_whole(hello)


def test_another_image_reaches_one_after_another(hello: storages.Storage) -> None:
    """Every pod is another one in the end, and the data is where it was."""
    hello.ready()
    before = hello.pods()
    hello.edit(image=storages.NEWER)
    said = hello.ready()

    assert storages.NEWER == said["lastAppliedImage"]
    assert not {*before.values()} & {*hello.pods().values()}
    assert "4.4.2" == hello.told("status")["release"]
    assert BLOCKS == hello.read(BLOCKS, "hello-drive-1")
    is_whole(hello)


def test_no_login_is_in_a_list_of_processes_or_a_log(hello: storages.Storage) -> None:
    """Nor in what is told of objects: they stand in Secrets alone."""
    hello.ready()
    secrets = hello.cluster.items("secrets", "-n", storages.NAMESPACE)
    values = {
        storages.plain(text)
        for it in secrets
        for key, text in it["data"].items()
        if key in ("password", "join-secret", "user-password")
    }
    kinds = "wekaclusters,wekacontainers,pods,configmaps,events"
    told = hello.kubectl("get", kinds, "-o", "yaml")
    told += hello.cluster.kubectl("logs", "-n", tools.NAMESPACE, "deploy/moorage", "--tail=-1")
    for pod in hello.pods():
        told += hello.kubectl("logs", pod) + hello.kubectl("exec", pod, "--", "busybox", "ps", "w")

    assert 3 == len(values)
    assert [] == [it for it in values if it in told]


def test_deleted_nothing_of_it_is_left(hello: storages.Storage) -> None:
    hello.delete()

    tools.wait("nothing is left", lambda: not hello.left(), within=storages.WITHIN)
