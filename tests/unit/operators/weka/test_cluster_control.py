"""What is decided for a WekaCluster: each step, verdict and reason, by tables."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from moorage.api import conditions
from moorage.children import apply
from moorage.operators.weka import allocation, answers, names
from moorage.operators.weka.cluster import build, control, deletion, facts, kind, observation, rolling, types
from moorage.operators.weka.cluster.observation import LoginSeen
from moorage.operators.weka.cluster.reasons import ClusterReason as Reason
from moorage.operators.weka.container import types as container_types
from moorage.runtime import decision, freshness
from moorage.runtime.decision import DONE, Act, Blocked, Wait
from moorage.runtime.freshness import Failed, Fresh, Stale

from . import states
from .states import (
    CLUSTER_META,
    IMAGE,
    NEWER,
    NOW,
    all_members,
    cluster,
    cluster_objects,
    cluster_seen,
    cluster_spec,
    cluster_status,
    container,
    containers,
    drives,
)

replace = msgspec.structs.replace
GIB = 2**30


def decided(it: observation.Seen) -> decision.Decision:
    steps = deletion.DELETION_STEPS if it.meta.deleting else control.STEPS
    return decision.decide(it, steps=steps, facts=facts.FACTS, report=facts.report)


def verdict(it: observation.Seen) -> Any:
    """Where the steps stop."""
    standing = decided(it).standing
    assert standing is not None, "all steps are done"
    return standing.verdict


def test_what_is_whole_needs_nothing() -> None:
    """All steps are done, and every condition is true."""
    found = decided(cluster_seen())

    assert found.standing is None
    assert () == found.acts
    assert all(each.status for each in found.facts)
    assert ("Ready", "6/6/6", "5/5/5", "6/6/6") == (
        found.report["status"],
        *(found.report["printer"][it] for it in ("driveContainers", "computeContainers", "drives")),
    )


def some(count: int, role: str = "drive", **status: Any) -> Fresh[observation.Objects]:
    """All containers, of which the first so many of a role stand otherwise."""
    changed = [
        container(it.role, it.number, status=status) if it.role == role and it.number < count else it
        for it in containers()
    ]
    return cluster_objects(changed)


def outdated(*, but: tuple[str, ...] = (), **first: Any) -> list[observation.ContainerSeen]:
    """All containers still to be replaced by another image, `but` those; the first drive container stands otherwise."""
    wanted = container("drive", 0, cluster_spec(image=NEWER)).revision
    found = []
    for it in containers():
        new = container(it.role, it.number, cluster_spec(image=NEWER))
        found.append(new if it.name in but else replace(it, wanted=new.revision))
    assert wanted
    return [replace(found[0], **first), *found[1:]]


UNFORMED: dict[str, Any] = {
    "status": cluster_status(formed="", clusterID="", timestamps={}, status="", lastAppliedImage=""),
    "cluster": Fresh(cluster(guid="")),
}
ALONE = {"clusterID": "", "containerID": None}
FIRST = cluster_objects([container(it.role, it.number, status=ALONE) for it in containers()])
NONE = cluster_objects([])
BEGINS = {"status": cluster_status(timestamps={}, status="Init")}
IDLE = {"io": "", "members": all_members()}
ROLL: dict[str, Any] = {"spec": cluster_spec(image=NEWER)}
IN_PHASE = Fresh(cluster(members=all_members(), phase="DrivePhase"))
DRIVES = tuple(names.container("demo", "drive", it) for it in range(6))
PAUSED = {"overrides": {"upgradePaused": True}}
BETWEEN = {"overrides": {"upgradePausePreCompute": True}}
AT_ONCE = {"overrides": {"upgradeAllAtOnce": True}}
SMALLER = {"spec": cluster_spec(dynamicTemplate={"driveContainers": 5, "computeContainers": 5})}
RAFT = cluster_spec(bucketRaftSize=9)
STEPS: list[tuple[dict[str, Any], type[Any], Reason, str]] = [
    ({"allowed": False}, Blocked, Reason.NAMESPACE_NOT_ALLOWED, "namespace ns is not opened for pods"),
    ({"images": ("other/",)}, Blocked, Reason.IMAGE_NOT_ALLOWED, "is none of those that may be root"),
    ({"spec": cluster_spec(expandEndpoints=["10.0.0.9"])}, Blocked, Reason.NOT_SERVED, "formed elsewhere"),
    (
        {"spec": cluster_spec(overrides={"postFormClusterScript": "true"})},
        Blocked,
        Reason.NOT_SERVED,
        "is to be run once",
    ),
    (
        {"spec": cluster_spec(stripeWidth=5)},
        Blocked,
        Reason.STRIPE_NEEDS_THEM,
        "the template has 6 drive containers, and a stripe of this cluster needs 7",
    ),
    ({"spec": cluster_spec(**AT_ONCE)}, Blocked, Reason.OVERRIDE_UNCONFIRMED, "upgradeAllAtOnce is set, and"),
    ({"metadata": {"finalizers": ()}}, Act, Reason.TAKING_CARE, "the finalizer is set"),
    ({"binding": Fresh(None)}, Act, Reason.BINDING, "rights in ns are bound"),
    ({"objects": freshness.not_yet("objects")}, Wait, Reason.OBJECTS_UNKNOWN, "objects not looked at yet"),
    (
        {**UNFORMED, "objects": cluster_objects([], login=LoginSeen())},
        Act,
        Reason.MAKING_LOGIN,
        "the Secrets with the logins are made",
    ),
    ({"objects": cluster_objects(login=LoginSeen("s-1"))}, Act, Reason.MAKING_LOGIN, "are made"),
    (
        {"objects": cluster_objects(login=LoginSeen())},
        Blocked,
        Reason.LOGIN_MISSING,
        "Secret weka-operator-u-demo is gone, with which the cluster was formed",
    ),
    (
        {
            **UNFORMED,
            "status": cluster_status(formed="demo-compute-0", clusterID=""),
            "objects": cluster_objects([], login=LoginSeen()),
        },
        Blocked,
        Reason.LOGIN_MISSING,
        "Secret weka-operator-u-demo is gone, with which the cluster was formed",
    ),
    (
        {"objects": cluster_objects(login=LoginSeen()), "spec": cluster_spec(operatorSecretRef="mine")},
        Blocked,
        Reason.LOGIN_MISSING,
        "there is no Secret mine",
    ),
    ({"status": cluster_status(ports=None)}, Act, Reason.CHOOSING_PORTS, "ports from 35000 on are the cluster's"),
    (
        {
            "status": cluster_status(ports=None),
            "spec": cluster_spec(ports={"basePort": 40_000}),
            "objects": cluster_objects(ranges=(allocation.Span(40_400, 500),)),
        },
        Blocked,
        Reason.PORTS_LACKING,
        "no range of 500 ports is free from 40000 on",
    ),
    ({**UNFORMED, "objects": NONE}, Act, Reason.MAKING_CONTAINERS, "containers are made: 6 drive, 5 compute"),
    (
        {"objects": cluster_objects([replace(containers()[0], deleting=True), *containers()[1:]])},
        Act,
        Reason.MAKING_CONTAINERS,
        "containers are made: 1 drive",
    ),
    (
        {"objects": cluster_objects([replace(containers()[0], child=apply.Child("u", differs=("spec.a",)))])},
        Act,
        Reason.MAKING_CONTAINERS,
        "5 drive, 5 compute",
    ),
    (
        {
            "objects": cluster_objects(
                [replace(containers()[0], child=apply.Child("u", differs=("spec.a",))), *containers()[1:]]
            )
        },
        Act,
        Reason.CHANGING_CONTAINERS,
        "put right: demo-drive-0",
    ),
    (
        {
            **UNFORMED,
            "objects": cluster_objects(
                [
                    container(it.role, it.number, status={**ALONE, **({"status": "Starting"} if it.number else {})})
                    for it in containers()
                ]
            ),
        },
        Wait,
        Reason.CONTAINERS_NOT_READY,
        "1 of 6 drive containers run: demo-drive-1 .Starting.",
    ),
    (
        {
            **UNFORMED,
            "spec": cluster_spec(dynamicTemplate={"driveContainers": 3, "computeContainers": 5}, stripeWidth=None),
            "objects": cluster_objects(
                [container(it.role, it.number, status=ALONE) for it in containers(drive=3)],
            ),
        },
        Wait,
        Reason.CONTAINERS_NOT_READY,
        "^3 of 5 drive containers run$",
    ),
    ({**UNFORMED, "objects": FIRST}, Act, Reason.FORMING, "11 containers are formed into a cluster, by demo-compute-0"),
    (
        {**UNFORMED, "objects": FIRST, "cluster": Stale(cluster(guid=""), 0.0, "it was told")},
        Wait,
        Reason.CLUSTER_UNKNOWN,
        "asked anew: it was told",
    ),
    ({"cluster": Failed("Unavailable", "nobody answers")}, Wait, Reason.CLUSTER_UNKNOWN, "nobody answers"),
    ({"cluster": Fresh(cluster(guid=""))}, Wait, Reason.CLUSTER_UNKNOWN, "who was asked belongs to no cluster"),
    (
        {**BEGINS, "cluster": Fresh(cluster(**IDLE, data=4))},
        Act,
        Reason.SETTING,
        "the cluster is told: data 3",
    ),
    (
        {"spec": cluster_spec(hotSpare=1)},
        Act,
        Reason.SETTING,
        "the cluster is told: hot spare 1",
    ),
    ({"status": cluster_status(told={})}, Act, Reason.SETTING, "the cluster is told: name demo"),
    ({"status": cluster_status(told={"name": "old"})}, Act, Reason.SETTING, "the cluster is told: name demo"),
    (
        {"status": cluster_status(timestamps={}, status="Init"), "spec": RAFT, "cluster": Fresh(cluster(**IDLE))},
        Act,
        Reason.SETTING,
        "the cluster is told: raft 9",
    ),
    (
        {**BEGINS, "cluster": Fresh(cluster(io="", members=all_members(5)))},
        Wait,
        Reason.CONTAINERS_JOIN,
        "not in the cluster yet: demo-drive-5",
    ),
    (
        {**BEGINS, "cluster": Fresh(cluster(**IDLE, drives=drives(2)))},
        Wait,
        Reason.WAITING_FOR_DRIVES,
        "2 of 6 drives are added",
    ),
    ({**BEGINS, "cluster": Fresh(cluster(**IDLE))}, Act, Reason.STARTING_IO, "the cluster is told to begin"),
    (
        {**BEGINS, "cluster": Fresh(cluster(io="STARTING", members=all_members()))},
        Wait,
        Reason.STARTING_IO,
        "the cluster begins",
    ),
    (
        {"cluster": Fresh(cluster(members=all_members(), users=("admin",)))},
        Act,
        Reason.ADDING_USER,
        "user weka-cluster-demo is made",
    ),
    ({"cluster": Fresh(cluster(members=all_members(), groups=()))}, Act, Reason.ADDING_FILESYSTEM, "group default"),
    (
        {"cluster": Fresh(cluster(members=all_members(), filesystems=(".config_fs",)))},
        Act,
        Reason.ADDING_FILESYSTEM,
        "file system default is made",
    ),
    # --- the roll ---
    ({**ROLL, "objects": cluster_objects(outdated())}, Act, Reason.UPGRADING, "that drive containers are upgraded"),
    (
        {**ROLL, "objects": cluster_objects(outdated()), "cluster": IN_PHASE},
        Act,
        Reason.UPGRADING,
        "demo-drive-0 is changed to registry.example/weka:4.4.2; 10 more are to follow",
    ),
    (
        {
            "spec": cluster_spec(image=NEWER, **PAUSED),
            "objects": cluster_objects(outdated()),
        },
        Wait,
        Reason.UPGRADE_PAUSED,
        "upgradePaused is set; demo-drive-0, demo-drive-1",
    ),
    (
        {"spec": cluster_spec(image=NEWER, **BETWEEN), "objects": cluster_objects(outdated(but=DRIVES))},
        Wait,
        Reason.UPGRADE_PAUSED,
        "upgradePausePreCompute is set; demo-compute-0",
    ),
    (
        {**ROLL, "objects": cluster_objects(outdated()), "cluster": Fresh(replace(IN_PHASE.value, unprotected=9))},
        Wait,
        Reason.UPGRADE_GATED,
        "demo-drive-0 stays meanwhile: 9 MiB are without their full protection",
    ),
    (
        {
            **ROLL,
            "objects": cluster_objects(outdated()),
            "cluster": Fresh(cluster(members=all_members(), unprotected=9)),
        },
        Wait,
        Reason.UPGRADE_GATED,
        "demo-drive-0 stays meanwhile: 9 MiB are without their full protection",
    ),
    (
        {
            **ROLL,
            "objects": cluster_objects([*outdated(), *(container("drive", it, deleting=True) for it in (6, 7))]),
            "cluster": IN_PHASE,
        },
        Wait,
        Reason.UPGRADE_GATED,
        "demo-drive-0 stays meanwhile: demo-drive-6, demo-drive-7 is leaving",
    ),
    (
        {
            **ROLL,
            "objects": cluster_objects([*outdated(), container("drive", 6, deleting=True)]),
            "cluster": IN_PHASE,
        },
        Act,
        Reason.UPGRADING,
        "demo-drive-0 is changed to",
    ),
    (
        {**ROLL, "objects": cluster_objects(outdated()), "cluster": Fresh(replace(IN_PHASE.value, status="DEGRADED"))},
        Wait,
        Reason.UPGRADE_GATED,
        "the cluster says that it is DEGRADED",
    ),
    (
        {
            **ROLL,
            "objects": cluster_objects(outdated()),
            "cluster": Fresh(replace(IN_PHASE.value, members=all_members(5))),
        },
        Wait,
        Reason.UPGRADE_GATED,
        "5 of 6 drive containers are up",
    ),
    (
        {
            **ROLL,
            "objects": cluster_objects(
                [
                    replace(it, status=replace(it.status, status="Starting"), since=NOW - 60.0)
                    if it.name == DRIVES[0]
                    else it
                    for it in outdated(but=DRIVES[:1])
                ]
            ),
            "cluster": IN_PHASE,
        },
        Wait,
        Reason.UPGRADING,
        "demo-drive-0 is to come back .Starting.; then demo-drive-1 is replaced",
    ),
    (
        {
            **ROLL,
            "objects": cluster_objects(
                [
                    replace(it, status=replace(it.status, status="Starting"), since=NOW - 2000.0)
                    if it.name == DRIVES[0]
                    else it
                    for it in outdated(but=DRIVES[:1])
                ]
            ),
            "cluster": IN_PHASE,
        },
        Blocked,
        Reason.UPGRADE_STUCK,
        "demo-drive-0 did not come back within 30 minutes; demo-drive-1, demo-drive-2",
    ),
    (
        {
            **ROLL,
            "objects": cluster_objects(
                [
                    replace(it, status=replace(it.status, status="Starting")) if it.name == DRIVES[0] else it
                    for it in outdated(but=DRIVES[:1])
                ]
            ),
            "cluster": IN_PHASE,
        },
        Wait,
        Reason.UPGRADING,
        "demo-drive-0 is to come back .Starting.; then demo-drive-1 is replaced",
    ),
    (
        {"spec": cluster_spec(image=NEWER, **BETWEEN), "objects": cluster_objects(outdated(but=DRIVES[:5]))},
        Act,
        Reason.UPGRADING,
        "that drive containers are upgraded",
    ),
    (
        {
            **ROLL,
            "objects": cluster_objects(
                outdated(status=replace(container("drive", 0).status, status="Error", container_id=99))
            ),
        },
        Act,
        Reason.UPGRADING,
        "demo-drive-0 does not run, and is changed at once",
    ),
    (
        {
            **ROLL,
            "objects": cluster_objects([replace(it, status=replace(it.status, status="Error")) for it in outdated()]),
            "cluster": freshness.Failed("NoContainer", "no container of demo runs"),
        },
        Act,
        Reason.UPGRADING,
        "demo-compute-4 does not run, and is changed at once",
    ),
    (
        {**ROLL, "objects": cluster_objects(outdated()), "cluster": freshness.Failed("Unavailable", "it is silent")},
        Wait,
        Reason.CLUSTER_UNKNOWN,
        "it is silent",
    ),
    (
        {
            **ROLL,
            "spec": cluster_spec(image=NEWER, **AT_ONCE),
            "metadata": {"annotations": {names.CONFIRM: "upgradeAllAtOnce"}},
            "objects": cluster_objects(outdated()),
        },
        Act,
        Reason.UPGRADING,
        "are changed at once, as spec.overrides.upgradeAllAtOnce asks",
    ),
    (
        {"cluster": IN_PHASE, "status": cluster_status(lastAppliedImage="old:1")},
        Act,
        Reason.UPGRADING,
        "the upgrade is over",
    ),
    # --- fewer ---
    (SMALLER, Act, Reason.SHRINKING, "demo-drive-5 is to leave: 6 drive containers are more than asked for"),
    (
        {**SMALLER, "cluster": Fresh(cluster(members=all_members(), data=4))},
        Blocked,
        Reason.STRIPE_NEEDS_THEM,
        "6 drive containers are there, and a stripe needs 6",
    ),
    (
        {**SMALLER, "cluster": Fresh(cluster(members=all_members(), unprotected=3))},
        Wait,
        Reason.SHRINK_GATED,
        "demo-drive-5 stays meanwhile: 3 MiB",
    ),
    (
        {**SMALLER, "cluster": Stale(cluster(members=all_members()), 0.0, "it was told")},
        Wait,
        Reason.CLUSTER_UNKNOWN,
        "the cluster is asked anew; then demo-drive-5 is replaced",
    ),
    (
        {"objects": cluster_objects([*containers(), container("drive", 6, deleting=True)])},
        Wait,
        Reason.SHRINKING,
        "^demo-drive-6 is leaving$",
    ),
    (
        {
            "spec": cluster_spec(dynamicTemplate={"driveContainers": 5, "computeContainers": 4}),
            "objects": cluster_objects([*containers()[:-1], replace(containers()[-1], deleting=True)]),
        },
        Wait,
        Reason.SHRINKING,
        "demo-compute-4 is leaving; then 1 more of drive",
    ),
    (
        {"objects": some(1, status="Unhealthy")},
        Wait,
        Reason.NOT_ALL_UP,
        "not as they should be: demo-drive-0 .Unhealthy.",
    ),
    (
        {"cluster": Fresh(cluster(members=all_members(status="DOWN")))},
        Wait,
        Reason.NOT_ALL_UP,
        "demo-drive-0 .Running, not up.",
    ),
]


@pytest.mark.parametrize(("changed", "kind", "reason", "said"), STEPS)
def test_each_step_says_what_stands_in_the_way(
    changed: dict[str, Any], kind: type[Any], reason: Reason, said: str
) -> None:
    found = verdict(cluster_seen(**changed))

    assert (kind, reason) == (type(found), found.reason), found.message
    assert re.search(said, found.message), found.message


HOUR = 3600.0
AT = conditions.timestamp(NOW - HOUR)
GOING: dict[str, Any] = {"deletion_timestamp": AT}
OVER = {"spec": cluster_spec(gracefulDestroyDuration="0")}
BACK = {"spec": cluster_spec(overrides={"cancelDeletion": True})}
UNTOLD = cluster_objects([replace(it, child=apply.Child(it.uid, differs=("spec.state",))) for it in containers()])
ENDING = cluster_objects([replace(it, deleting=True) for it in containers()])
ENDS: list[tuple[dict[str, Any], type[Any], Reason, str]] = [
    ({"binding": Fresh(None), "allowed": False}, Act, Reason.LEAVING, "nothing was made"),
    ({"binding": freshness.not_yet("binding")}, Wait, Reason.BINDING, "binding not looked at yet"),
    ({"binding": Fresh(None), "namespace_ending": True}, Act, Reason.LEAVING, "the namespace is being deleted"),
    ({"objects": freshness.not_yet("objects")}, Wait, Reason.OBJECTS_UNKNOWN, "objects not looked at yet"),
    (BACK, Wait, Reason.DELETION_CANCELLED, "the deletion is called off for 23.0 hours more"),
    ({**BACK, "objects": UNTOLD}, Act, Reason.CHANGING_CONTAINERS, "put right: demo-drive-0"),
    ({"objects": UNTOLD}, Act, Reason.CHANGING_CONTAINERS, "put right: demo-drive-0"),
    ({}, Wait, Reason.GRACE_PERIOD, "not paused yet: demo-drive-0"),
    (
        {
            "objects": cluster_objects(
                [container(it.role, it.number, status={"status": "Paused"}) for it in containers()]
            )
        },
        Wait,
        Reason.GRACE_PERIOD,
        "all data is kept for 23.0 hours more",
    ),
    ({"spec": cluster_spec(gracefulDestroyDuration="1h1s")}, Wait, Reason.GRACE_PERIOD, "not paused yet"),
    ({"spec": cluster_spec(gracefulDestroyDuration="1h")}, Act, Reason.DESTROYING, "11 containers are deleted"),
    ({**OVER, "objects": UNTOLD}, Act, Reason.DESTROYING, "11 containers are told that they go"),
    (OVER, Act, Reason.DESTROYING, "11 containers are deleted"),
    ({**BACK, "namespace_ending": True}, Act, Reason.DESTROYING, "11 containers are deleted"),
    ({**OVER, "objects": ENDING}, Wait, Reason.DESTROYING, "ending: demo-drive-0, demo-drive-1"),
    ({**OVER, "objects": NONE}, Act, Reason.LEAVING, "nothing is left of demo"),
    (
        {"spec": cluster_spec(gracefulDestroyDuration="30m", overrides={"cancelDeletion": True})},
        Act,
        Reason.DESTROYING,
        "11 containers are deleted",
    ),
]


@pytest.mark.parametrize(("changed", "kind", "reason", "said"), ENDS)
def test_each_step_of_its_end(changed: dict[str, Any], kind: type[Any], reason: Reason, said: str) -> None:
    found = verdict(cluster_seen(metadata=GOING, **changed))

    assert (kind, reason) == (type(found), found.reason), found.message
    assert re.search(said, found.message), found.message


PATIENCE: dict[Reason, set[tuple[float, float]]] = {
    # seconds within which it should come, and after which it is looked at again
    Reason.OBJECTS_UNKNOWN: {(120, 0)},
    Reason.BINDING: {(120, 0)},
    Reason.CONTAINERS_NOT_READY: {(1800, 0)},
    Reason.CONTAINERS_JOIN: {(1800, 0)},
    Reason.WAITING_FOR_DRIVES: {(1800, 0)},
    Reason.STARTING_IO: {(1800, 0)},
    Reason.NOT_ALL_UP: {(1800, 0)},
    Reason.CLUSTER_UNKNOWN: {(300, 0), (300, 5)},
    Reason.UPGRADING: {(1800, 15)},
    Reason.UPGRADE_PAUSED: {(0, 0)},
    Reason.UPGRADE_GATED: {(3600, 15)},
    Reason.SHRINK_GATED: {(3600, 15)},
    Reason.SHRINKING: {(86_400, 0)},
    Reason.GRACE_PERIOD: {(1800, 0), (0, 3601)},
    Reason.DELETION_CANCELLED: {(0, 3601)},
    Reason.DESTROYING: {(3600, 0)},
}


def test_a_wait_has_an_end_and_a_pace() -> None:
    found: dict[Reason, set[tuple[float, float]]] = {}
    for rows, metadata in ((STEPS, {}), (ENDS, GOING)):
        for changed, kind_, reason, _ in rows:
            if kind_ is Wait:
                waits = verdict(cluster_seen(**{"metadata": metadata, **changed}))
                found.setdefault(reason, set()).add((waits.within, waits.again))

    assert PATIENCE == found


def test_the_end_of_a_grace_is_told_and_looked_for() -> None:
    """To the tenth of an hour, however long it is; a second after it is over the next look is due."""
    paused = cluster_objects([container(it.role, it.number, status={"status": "Paused"}) for it in containers()])
    ways: list[tuple[dict[str, Any], dict[str, Any], str]] = [
        ({}, {"objects": paused}, "all data is kept"),
        ({"overrides": {"cancelDeletion": True}}, {}, "is called off"),
    ]
    for given, changed, said in ways:
        long, short = (
            verdict(cluster_seen(metadata=GOING, spec=cluster_spec(gracefulDestroyDuration=grace, **given), **changed))
            for grace in ("2001h", "1h1m")
        )

        assert f"{said} for 2000.0 hours more" in long.message
        assert (3601, 61) == (long.again, short.again)


COMPUTE_PHASE = Fresh(cluster(members=all_members(), phase="ComputeRollingPhase"))
SETTINGS_ALONE = {"filesystems": ("default",), "members": all_members()}
ORDERS: list[tuple[dict[str, Any], str, dict[str, Any]]] = [
    ({"objects": cluster_objects(login=LoginSeen("s-1"))}, "login.make", {"named": ""}),
    (
        {"objects": cluster_objects(login=LoginSeen("s-1")), "spec": cluster_spec(operatorSecretRef="mine")},
        "login.make",
        {"named": "mine"},
    ),
    ({"spec": cluster_spec(hotSpare=1)}, "cluster.set", {"hot_spare": 1}),
    ({**BEGINS, "cluster": Fresh(cluster(**IDLE, parity=4))}, "cluster.set", {"parity": 2}),
    ({**BEGINS, "cluster": Fresh(cluster(**IDLE))}, "cluster.start_io", {"started": states.SPOKEN.words.io_started}),
    ({"cluster": Fresh(cluster(users=()))}, "user.add", {"user": "weka-cluster-demo"}),
    ({"cluster": Fresh(cluster(groups=()))}, "group.add", {"name": "default"}),
    (
        {"cluster": Fresh(cluster(filesystems=(".config_fs",)))},
        "filesystem.add",
        {"name": "default", "group": "default", "total": 2**40, "most": 2**40 // 10, "least": 2**40 // 100},
    ),
    (
        {"cluster": Fresh(cluster(**SETTINGS_ALONE))},
        "filesystem.add",
        {"name": ".config_fs", "group": "default", "total": 100 * GIB, "most": 100 * GIB, "least": 10 * GIB},
    ),
    (
        {"cluster": Fresh(cluster(**SETTINGS_ALONE, capacity=0))},
        "filesystem.add",
        {"name": ".config_fs", "group": "default", "total": 100 * GIB, "most": 100 * GIB, "least": 10 * GIB},
    ),
    (
        {"cluster": Fresh(cluster(**SETTINGS_ALONE, capacity=500 * GIB))},
        "filesystem.add",
        {"name": ".config_fs", "group": "default", "total": 50 * GIB, "most": 50 * GIB, "least": 5 * GIB},
    ),
    (
        {"cluster": Fresh(cluster(**SETTINGS_ALONE, capacity=50))},
        "filesystem.add",
        {"name": ".config_fs", "group": "default", "total": 5, "most": 5, "least": 1},
    ),
    (
        {"cluster": Fresh(cluster(filesystems=(".config_fs",), capacity=5))},
        "filesystem.add",
        {"name": "default", "group": "default", "total": 5, "most": 1, "least": 1},
    ),
    (
        {**ROLL, "objects": cluster_objects(outdated())},
        "upgrade.phase",
        {"phase": "DrivePhase", "version": "4.4.2"},
    ),
    (
        {**ROLL, "objects": cluster_objects(outdated(but=DRIVES)), "cluster": IN_PHASE},
        "upgrade.phase",
        {"phase": "ComputeRollingPhase", "version": "4.4.2"},
    ),
    ({"cluster": IN_PHASE, "status": cluster_status(lastAppliedImage="old:1")}, "upgrade.finish", {}),
]


@pytest.mark.parametrize(
    ("changed", "operation", "args"), ORDERS, ids=[f"{n}-{row[1]}" for n, row in enumerate(ORDERS)]
)
def test_what_is_ordered_is_one_thing_in_the_clusters_own_units(
    changed: dict[str, Any], operation: str, args: dict[str, Any]
) -> None:
    """Bytes, of which none is more than the cluster has."""
    calls = [it for it in verdict(cluster_seen(**changed)).actions if isinstance(it, decision.Call)]

    assert [(operation, args)] == [(it.operation, it.args) for it in calls]


@pytest.mark.parametrize(
    ("asked", "role", "forced"),
    [
        (None, "drive", False),
        ("upgradeForceReplace", "drive", True),
        ("upgradeForceReplace", "compute", True),
        ("upgradeForceReplaceDrives", "drive", True),
        ("upgradeForceReplaceDrives", "compute", False),
    ],
)
def test_who_is_replaced_by_force_is_named_by_role(asked: str | None, role: str, forced: bool) -> None:
    """Else what a container holds in memory is moved on before it stops."""
    drives_first = role == "drive"
    found = verdict(
        cluster_seen(
            spec=cluster_spec(image=NEWER, **({"overrides": {asked: True}} if asked else {})),
            metadata={"annotations": {names.CONFIRM: asked or ""}},
            objects=cluster_objects(outdated(but=() if drives_first else DRIVES)),
            cluster=IN_PHASE if drives_first else COMPUTE_PHASE,
        )
    )
    (change,) = found.actions

    assert f"demo-{role}-0" == change.body["metadata"]["name"]
    assert ({"upgradeForceReplace": True} if forced else None) == change.body["spec"].get("overrides")


def test_every_reason_is_come_to() -> None:
    """None is left that nothing leads to; three are of facts, one of orders, two have a table of their own."""
    told = {reason for _, _, reason, _ in (*STEPS, *ENDS)} | {Reason.REPLACING, Reason.REPLACE_GATED}

    assert {*Reason} - {Reason.WELL, Reason.HEEDED, Reason.UNHEEDED, Reason.ORDER_REFUSED} == told


def test_numbers_are_written_down_before_containers_are_made_and_none_is_used_twice() -> None:
    """The one that leaves keeps its number, which the cluster knows it by."""
    gone = [replace(containers()[5], deleting=True)]
    found = verdict(cluster_seen(objects=cluster_objects([*containers()[:5], *containers()[6:], *gone])))
    note, create = found.actions

    assert {"made": {"drive": 7, "compute": 5}, "making": {"drive": [6]}} == note.fields
    assert "demo-drive-6" == create.body["metadata"]["name"]
    assert found.actions.index(note) < found.actions.index(create)


def test_a_number_that_was_written_down_is_taken_up_by_whoever_comes_next() -> None:
    """One was killed between the note and the containers: of three numbers one has its container."""
    status = cluster_status(made={"drive": 7, "compute": 5}, making={"drive": (4, 5, 6)})
    found = decided(cluster_seen(status=status, objects=cluster_objects(containers(5))))
    pending = msgspec.structs.replace(status, making={"drive": (5, 6)})
    waiting = decided(cluster_seen(status=pending, objects=cluster_objects(containers(5))))
    larger = cluster_spec(dynamicTemplate={"driveContainers": 8, "computeContainers": 5})
    more = verdict(cluster_seen(status=status, spec=larger, objects=cluster_objects(containers(5))))

    first, then = found.acts
    assert [{"making": {"drive": [5, 6]}}] == [it.fields for it in first.actions]  # type: ignore[union-attr]
    assert ["demo-drive-5"] == [it.body["metadata"]["name"] for it in then.actions]  # type: ignore[union-attr]
    assert [then] == list(waiting.acts), "what is noted as it is is not noted anew"
    assert {"made": {"drive": 8, "compute": 5}, "making": {"drive": [5, 6, 7]}} == more.actions[0].fields
    assert [f"demo-drive-{it}" for it in (5, 6, 7)] == [it.body["metadata"]["name"] for it in more.actions[1:]]


def test_the_first_numbers_begin_at_nought() -> None:
    found = verdict(
        cluster_seen(**UNFORMED | {"status": cluster_status(made={}, clusterID="", formed="")}, objects=NONE)
    )

    assert {"made": {"drive": 6, "compute": 5}, "making": {"drive": [*range(6)], "compute": [*range(5)]}} == (
        found.actions[0].fields
    )


def test_one_that_leaves_was_made_and_is_not_made_once_more() -> None:
    """Its number was written down, and it is seen on its way out."""
    leaves = [*containers()[:5], replace(containers()[5], deleting=True), *containers()[6:]]
    found = decided(cluster_seen(status=cluster_status(making={"drive": (5,)}), objects=cluster_objects(leaves)))

    assert [{"making": {}}] == [it.fields for it in found.acts[0].actions]  # type: ignore[union-attr]
    assert ["demo-drive-6"] == [it.body["metadata"]["name"] for it in found.acts[1].actions[1:]]  # type: ignore[union-attr]


def test_whose_container_was_seen_is_not_made_once_more() -> None:
    """Also of a role that there is none of."""
    status = cluster_status(making={"drive": (5,), "s3": (1,)})
    found = decided(cluster_seen(status=status))

    assert [{"making": {}}] == [it.fields for it in found.acts[0].actions]  # type: ignore[union-attr]
    assert found.standing is None


def test_a_status_that_was_lost_leads_to_no_number_twice() -> None:
    """As of a cluster that was restored from a backup: the highest that is there is seen."""
    status = cluster_status(made={}, clusterID="")
    found = verdict(cluster_seen(status=status, objects=cluster_objects(containers()[1:])))

    assert "demo-drive-6" == found.actions[1].body["metadata"]["name"]


def test_a_number_is_not_used_twice_though_who_has_it_leaves_and_the_status_was_lost() -> None:
    """The cluster still knows it."""
    there = [*containers()[:5], replace(containers()[5], deleting=True), *containers()[6:]]
    found = verdict(cluster_seen(status=cluster_status(made={}), objects=cluster_objects(there)))

    assert ["demo-drive-6"] == [it.body["metadata"]["name"] for it in found.actions[1:]]


def test_until_it_is_formed_few_containers_are_made() -> None:
    spec = cluster_spec(dynamicTemplate={"driveContainers": 40, "computeContainers": 40})
    first = verdict(cluster_seen(**{**UNFORMED, "spec": spec, "objects": NONE}))
    later = verdict(cluster_seen(spec=spec))

    assert "containers are made: 10 drive, 10 compute" == first.message
    assert "containers are made: 32 drive, 32 compute" == later.message


def test_the_order_to_form_is_written_down_first_and_goes_to_the_same_one_again() -> None:
    """A kill between the two repeats it to the one that may have heard it."""
    unformed = {**UNFORMED, "objects": FIRST}
    again = {**unformed, "status": cluster_status(formed="demo-drive-3", clusterID="")}
    note, form = verdict(cluster_seen(**unformed)).actions

    assert ({"formed": "demo-compute-0"}, "demo-compute-0") == (note.fields, form.args["pod"])
    assert 11 == len(form.args["members"])
    assert "demo-drive-3" == verdict(cluster_seen(**again)).actions[1].args["pod"]


def test_secrets_are_in_no_decision() -> None:
    """What an order needs is read in the pod."""
    form = verdict(cluster_seen(**{**UNFORMED, "objects": FIRST})).actions[1]

    assert {"pod", "members", "leadership"} == form.args.keys()
    more = cluster_seen(**{**UNFORMED, "objects": FIRST, "spec": cluster_spec(leadershipRaftSize=9)})
    assert (0, 9) == (form.args["leadership"], verdict(more).actions[1].args["leadership"])


def test_a_container_that_is_made_later_is_told_where_the_cluster_is() -> None:
    first = verdict(cluster_seen(**{**UNFORMED, "objects": NONE})).actions[1]
    later = verdict(cluster_seen(objects=cluster_objects(containers()[1:]))).actions[1]

    assert "joinIpPorts" not in first.body["spec"]
    assert "10.0.1.1:35000" == later.body["spec"]["joinIpPorts"][0]
    unasked = replace(containers()[6], status=replace(containers()[6].status, allocations=None))
    less = verdict(cluster_seen(objects=cluster_objects([*containers()[1:6], unasked, *containers()[7:]]))).actions[1]
    assert [f"10.0.1.{it}:35000" for it in (2, 3, 4, 5)] == less.body["spec"]["joinIpPorts"]


def joined(known: freshness.Observed[Any], told_before: bool = False) -> list[str]:
    """Where the first drive container is told that its cluster is, while it does not say itself that it is a member."""
    have = containers()
    outside = [replace(have[0].status, cluster_id="" if not told_before else have[0].status.cluster_id), have[1].status]
    live = [
        container_types.WekaContainer(replace(CLUSTER_META, name=it.name, uid=it.uid), it.spec, status)
        for it, status in zip(have, outside, strict=False)
    ]
    found = kind.wanted(cluster_seen(cluster=known), live[0], live)
    assert found is not None
    return list(found.body["spec"].get("joinIpPorts", ()))


def test_who_is_outside_is_told_where_the_cluster_is_and_nobody_else() -> None:
    """By the cluster's own word: one that was formed with it says so a little later."""
    name = container("drive", 0).spec.name
    there = (answers.Member(0, name, "", "UP", "ACTIVE"), *all_members()[1:])
    down = (answers.Member(0, name, "", "DOWN", "ACTIVE"), *all_members()[1:])

    assert ["10.0.0.2:35000"] == joined(Fresh(cluster(members=all_members()[1:])))
    assert ["10.0.0.2:35000"] == joined(Fresh(cluster(members=down)))
    assert [] == joined(Fresh(cluster(members=there)))
    assert [] == joined(Fresh(answers.Cluster()))
    assert [] == joined(Failed("NoContainer", "nobody runs"))
    assert [] == joined(Fresh(cluster(members=all_members()[1:])), told_before=True)


def test_overrides_that_were_heeded_stay_to_be_seen() -> None:
    metadata = {"annotations": {names.CONFIRM: "upgradeAllAtOnce, upgradeForceReplace"}}
    found = decided(cluster_seen(metadata=metadata, spec=cluster_spec(**AT_ONCE)))

    assert {"upgradeAllAtOnce": conditions.timestamp(NOW)} == found.acts[0].actions[0].fields["overridesUsed"]  # type: ignore[union-attr]
    assert found.standing is None


LARGER = cluster_spec(dynamicTemplate={"driveContainers": 6, "computeContainers": 5, "computeCores": 2}, **BETWEEN)
NOTED = {"lastAppliedImage": "old:1"}


def test_another_size_begins_no_phase_and_is_held_at_the_pause_point_too() -> None:
    """Of the same image there is no upgrade, but containers restart all the same."""
    wanted = container("compute", 0, LARGER).revision
    have = [replace(it, wanted=wanted) if it.role == "compute" else it for it in containers()]
    held = verdict(cluster_seen(spec=LARGER, objects=cluster_objects(have)))
    free = replace(LARGER, overrides=None)
    found = verdict(cluster_seen(spec=free, objects=cluster_objects(have)))

    assert (Wait, Reason.UPGRADE_PAUSED) == (type(held), held.reason)
    assert ["demo-compute-0"] == [it.body["metadata"]["name"] for it in found.actions]
    assert 2 == found.actions[0].body["spec"]["numCores"]


def test_nobody_is_dead_while_nobody_says_who_is_up() -> None:
    """A container that moorage does not see running may serve all the same."""
    first = {"status": replace(container("drive", 0).status, status="Error")}
    found = verdict(
        cluster_seen(**ROLL, objects=cluster_objects(outdated(**first)), cluster=Failed("Unavailable", "no"))
    )

    assert (Wait, Reason.CLUSTER_UNKNOWN) == (type(found), found.reason)


def test_an_upgrade_is_over_once_all_have_come_back() -> None:
    """And only by what the cluster says after the last order; without a phase nothing is to be finished."""
    late = verdict(cluster_seen(cluster=IN_PHASE, status=cluster_status(**NOTED), objects=some(1, status="Starting")))
    stale = decided(cluster_seen(cluster=Stale(IN_PHASE.value, 0.0, "told"), status=cluster_status(**NOTED)))
    (plain,) = decided(cluster_seen(status=cluster_status(**NOTED))).acts

    assert Reason.NOT_ALL_UP == late.reason
    assert () == stale.acts
    assert [decision.Remember] == [type(it) for it in plain.actions]
    assert plain.go_on


def test_what_the_cluster_says_nothing_of_is_noted_once_it_was_told() -> None:
    """So that it is told again by whoever comes after one that was killed between forming it and this."""
    idle = Fresh(cluster(**IDLE, data=4))
    found = verdict(cluster_seen(spec=RAFT, cluster=idle, status=cluster_status(timestamps={}, told={})))
    told, note = found.actions
    later = decided(cluster_seen(spec=RAFT, status=cluster_status(told=note.fields["told"])))
    stale = verdict(cluster_seen(cluster=Stale(cluster(), 0.0, "told"), status=cluster_status(told={})))

    assert ("cluster.set", {"data": 3, "name": "demo", "raft": 9}) == (told.operation, told.args)
    assert {"name": "demo", "bucketRaftSize": "9"} == note.fields["told"]
    assert later.standing is None
    assert (Wait, Reason.CLUSTER_UNKNOWN) == (type(stale), stale.reason)
    assert DONE == control.cluster_is_set(cluster_seen(spec=RAFT)), "a bucket's raft is not told once IO runs"


def test_an_upgrade_that_was_begun_is_ended_also_if_it_was_taken_back_or_told_its_end_by_half() -> None:
    begun = {"name": "demo", "upgrade": "4.4.2"}
    first = verdict(cluster_seen(**ROLL, objects=cluster_objects(outdated())))
    back = verdict(cluster_seen(status=cluster_status(told=begun), cluster=IN_PHASE))
    half = verdict(cluster_seen(status=cluster_status(told=begun, **NOTED)))

    assert begun == first.actions[0].fields["told"]
    assert "upgrade.phase" == first.actions[1].operation
    for found in (back, half):
        finish, note = found.actions
        assert "upgrade.finish" == finish.operation
        assert {"lastAppliedImage": IMAGE, "told": {"name": "demo"}} == note.fields


def test_fields_that_nothing_follows_from_are_told() -> None:
    spec = cluster_spec(dynamicTemplate={"driveContainers": 6, "computeContainers": 5, "s3Containers": 2})
    found = next(it for it in decided(cluster_seen(spec=spec)).facts if it.type == "SpecHeeded")

    assert (False, Reason.UNHEEDED) == (found.status, found.reason)
    assert "spec.dynamicTemplate.s3Containers" in found.message
    assert set(types.UNHEEDED) > {"dynamicTemplate.s3Containers", "encryption", "telemetry"}


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({}, "Ready"),
        ({**UNFORMED, "objects": FIRST}, "Init"),
        ({**BEGINS, "allowed": False}, "Init"),
        ({"objects": Failed("Unavailable", "no")}, "Init"),
        (SMALLER, "Ready"),
        ({"allowed": False, "status": cluster_status(status="Degraded")}, "Degraded"),
        ({"allowed": False, "status": cluster_status(status="")}, "Init"),
        ({**BEGINS, "cluster": Fresh(cluster(**IDLE, drives=()))}, "WaitForDrives"),
        ({**BEGINS, "cluster": Fresh(cluster(**IDLE))}, "StartingIO"),
        ({**ROLL, "objects": cluster_objects(outdated()), "cluster": IN_PHASE}, "Upgrading"),
        ({"objects": some(1, status="Unhealthy")}, "Degraded"),
        ({"metadata": GOING}, "GracePeriod"),
        ({"metadata": GOING, "spec": cluster_spec(gracefulDestroyDuration="1h1s")}, "GracePeriod"),
        ({"metadata": GOING, "spec": cluster_spec(gracefulDestroyDuration="1h")}, "Destroying"),
        ({"metadata": GOING, **OVER}, "Destroying"),
        ({"metadata": GOING, **BACK}, "Ready"),
    ],
)
def test_status_is_in_the_originals_words(changed: dict[str, Any], word: str) -> None:
    assert word == decided(cluster_seen(**changed)).report["status"]


def test_what_was_not_asked_yet_stands_as_it_stood() -> None:
    """As after a restart of moorage."""
    stood = [{"type": it.type, "status": "True", "reason": "Well"} for it in decided(cluster_seen()).facts]
    status = cluster_status(conditions=stood)
    found = decided(cluster_seen(cluster=freshness.not_yet("cluster"), status=status))

    assert all(each.status for each in found.facts)
    assert "status" not in found.report


def test_a_restart_is_for_what_is_listed_and_nothing_else() -> None:
    """The fields that wait for their turn are those of which a container's revision is made."""
    spec = cluster_spec()

    assert {*build.RESTARTS} == build.restarting(spec, "drive").keys()
    assert not {*build.RESTARTS} & build.steady(spec, "drive").keys()


def test_states_of_containers_follow_the_clusters_end() -> None:
    spec, over = cluster_spec(), cluster_spec(gracefulDestroyDuration="0")

    assert "active" == deletion.state(None, spec, NOW, "active")
    assert "paused" == deletion.state(AT, spec, NOW, "active")
    assert "active" == deletion.state(AT, cluster_spec(overrides={"cancelDeletion": True}), NOW, "paused")
    assert "destroying" == deletion.state(AT, over, NOW, "paused")
    assert "deleting" == deletion.state(AT, over, NOW, "deleting")
    assert "destroying" == deletion.state(AT, cluster_spec(gracefulDestroyDuration="1h"), NOW, "paused")
    assert "paused" == deletion.state(AT, cluster_spec(gracefulDestroyDuration="1h1s"), NOW, "active")
    assert "destroying" == deletion.state(AT, spec, NOW, "active", ends=True)
    assert "active" == deletion.state(None, spec, NOW, "active", ends=True)


@pytest.mark.parametrize(("grace", "cancelled"), [("1h1s", True), ("1h", False), ("30m", False)])
def test_a_deletion_can_be_called_off_until_its_grace_is_over(grace: str, cancelled: bool) -> None:
    """And not while it is no deletion, or nobody asks."""
    asked = cluster_spec(gracefulDestroyDuration=grace, overrides={"cancelDeletion": True})

    assert cancelled is deletion.is_cancelled(AT, asked, NOW)
    assert not deletion.is_cancelled(AT, cluster_spec(gracefulDestroyDuration=grace), NOW)
    assert not deletion.is_cancelled(None, asked, NOW)


SILENT = {"cluster": Failed("Unavailable", "nobody answers")}
FACTS: list[tuple[dict[str, Any], str, bool | None, Reason, str]] = [
    ({"objects": cluster_objects(login=LoginSeen("s-1"))}, "ClusterSecretsCreated", False, Reason.MAKING_LOGIN, ""),
    ({"objects": cluster_objects(login=LoginSeen("", "u"))}, "ClusterSecretsCreated", False, Reason.MAKING_LOGIN, ""),
    ({"objects": cluster_objects(containers()[1:])}, "PodsCreated", False, Reason.MAKING_CONTAINERS, "drive"),
    ({"objects": NONE}, "PodsCreated", False, Reason.MAKING_CONTAINERS, "drive, compute"),
    (
        {"objects": some(2, status="Starting")},
        "PodsReady",
        False,
        Reason.CONTAINERS_NOT_READY,
        "not running: demo-drive-0, demo-drive-1",
    ),
    ({**UNFORMED, "objects": FIRST}, "ClusterCreated", False, Reason.FORMING, ""),
    ({}, "ClusterCreated", True, Reason.WELL, "g-1"),
    (
        {"objects": some(2, clusterID="")},
        "JoinedCluster",
        False,
        Reason.CONTAINERS_JOIN,
        "in no cluster: demo-drive-0, demo-drive-1",
    ),
    ({}, "DrivesAdded", True, Reason.WELL, "6 drives"),
    (
        {**BEGINS, "cluster": Fresh(cluster(**IDLE, drives=drives(2)))},
        "DrivesAdded",
        False,
        Reason.WAITING_FOR_DRIVES,
        "2 drives",
    ),
    ({"objects": freshness.not_yet("objects")}, "DrivesAdded", True, Reason.WELL, "6 drives"),
    (SILENT, "DrivesAdded", None, Reason.CLUSTER_UNKNOWN, ""),
    ({"cluster": Fresh(cluster(**IDLE))}, "IoStarted", False, Reason.STARTING_IO, ""),
    (SILENT, "IoStarted", None, Reason.CLUSTER_UNKNOWN, ""),
    (
        {"cluster": Fresh(cluster(filesystems=("default",)))},
        "CondDefaultFsCreated",
        False,
        Reason.ADDING_FILESYSTEM,
        "",
    ),
    (SILENT, "CondDefaultFsCreated", None, Reason.CLUSTER_UNKNOWN, ""),
    ({"cluster": Fresh(cluster(users=("admin",)))}, "ClusterSecretsApplied", False, Reason.ADDING_USER, ""),
    (SILENT, "ClusterSecretsApplied", None, Reason.CLUSTER_UNKNOWN, ""),
    (
        {"cluster": Fresh(cluster(unprotected=1))},
        "Protected",
        False,
        Reason.SHRINK_GATED,
        "1 MiB are without their full protection",
    ),
    ({}, "Protected", True, Reason.WELL, ""),
    (SILENT, "Protected", None, Reason.CLUSTER_UNKNOWN, ""),
    ({}, "Available", True, Reason.WELL, "OK STARTED"),
    ({"cluster": Fresh(cluster(status="DEGRADED"))}, "Available", False, Reason.STARTING_IO, "DEGRADED STARTED"),
    ({"cluster": Fresh(cluster(io=""))}, "Available", False, Reason.STARTING_IO, "OK"),
    (SILENT, "Available", None, Reason.CLUSTER_UNKNOWN, ""),
]


def test_of_what_is_well_no_more_is_said_than_what_it_is() -> None:
    messages = {"ClusterCreated": "g-1", "DrivesAdded": "6 drives", "Available": "OK STARTED"}
    found = decided(cluster_seen()).facts

    assert {Reason.WELL, Reason.HEEDED} == {it.reason for it in found}
    assert messages == {it.type: it.message for it in found if it.message}


def test_who_falls_silent_does_not_stand_as_it_stood() -> None:
    """That is for one that was not asked yet."""
    stood = [{"type": it.type, "status": "True", "reason": "Well"} for it in decided(cluster_seen()).facts]
    found = decided(cluster_seen(**SILENT, status=cluster_status(conditions=stood))).facts

    assert {"DrivesAdded", "IoStarted", "CondDefaultFsCreated", "ClusterSecretsApplied", "Protected", "Available"} == {
        it.type for it in found if it.status is None
    }


@pytest.mark.parametrize(("changed", "type_", "status", "reason", "message"), FACTS)
def test_facts(changed: dict[str, Any], type_: str, status: bool | None, reason: Reason, message: str) -> None:
    """Each by the word of whoever knows it, and nobody's where that is silent."""
    found = next(it for it in decided(cluster_seen(**changed)).facts if it.type == type_)

    assert (status, reason, message) == (found.status, found.reason, found.message)


@pytest.mark.parametrize(
    ("changed", "columns"),
    [
        (
            {"cluster": Fresh(cluster(members=all_members(status="DOWN"), drives=drives(5, status="FAILED")))},
            {"driveContainers": "5/6/6", "computeContainers": "5/5/5", "drives": "4/5/6"},
        ),
        (
            {"objects": cluster_objects(containers()[1:])},
            {"driveContainers": "5/5/6", "computeContainers": "5/5/5", "drives": "6/6/5"},
        ),
        (
            {**SILENT, "status": cluster_status(printer={"driveContainers": "2/3/4", "drives": "1/1/1"})},
            {"driveContainers": "2/3/4", "computeContainers": "0/5/5", "drives": "1/1/1"},
        ),
    ],
    ids=["one is down", "one is not made", "nobody answers"],
)
def test_columns_have_who_is_up_who_is_there_and_who_is_asked_for(
    changed: dict[str, Any], columns: dict[str, str]
) -> None:
    """While nobody says who is up, they stay as they were."""
    assert columns == decided(cluster_seen(**changed)).report["printer"]


def test_when_io_began_is_noted_once() -> None:
    before = cluster_status(timestamps={}, status="Init")

    assert {"ioStarted": conditions.timestamp(NOW)} == decided(cluster_seen(status=before)).report["timestamps"]
    assert "timestamps" not in decided(cluster_seen()).report
    assert "timestamps" not in decided(cluster_seen(status=before, cluster=Fresh(cluster(**IDLE)))).report


@pytest.mark.parametrize(
    "step",
    [
        control.cluster_is_set,
        control.containers_have_joined,
        control.drives_are_enough,
        control.io_runs,
        control.users_are_there,
        control.filesystems_are_there,
        rolling.phase_is_begun,
        rolling.upgrade_is_noted,
    ],
)
def test_a_step_has_no_order_for_a_cluster_that_nobody_has_heard(step: Any) -> None:
    """Whatever is to be changed in it: that it is silent is told by a step of its own."""
    given: dict[str, Any] = {**ROLL, "objects": cluster_objects(outdated()), "status": cluster_status(timestamps={})}

    assert DONE == step(cluster_seen(**given | SILENT))
    assert DONE == step(cluster_seen(**given, cluster=Fresh(cluster(guid=""))))


def test_what_the_cluster_says_itself_is_told_and_not_noted() -> None:
    (order,) = verdict(cluster_seen(spec=cluster_spec(hotSpare=1))).actions

    assert isinstance(order, decision.Call)
