"""What is decided for a WekaContainer: each step, verdict and reason, by tables."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from moorage.api import conditions
from moorage.children import apply
from moorage.operators.weka import allocation, names, place
from moorage.operators.weka.container import build, control, deletion, facts, observation
from moorage.operators.weka.container.reasons import ContainerReason as Reason
from moorage.runtime import decision, freshness
from moorage.runtime.decision import Act, Blocked, Wait
from moorage.runtime.freshness import Fresh, Stale

from . import states
from .states import (
    ALLOCATIONS,
    OWNER,
    cluster,
    device,
    drives,
    local,
    members,
    objects,
    pod,
    seen,
    spec,
    status,
    told,
)

replace = msgspec.structs.replace


def decided(it: observation.Seen) -> decision.Decision:
    steps = deletion.DELETION_STEPS if it.meta.deleting else control.STEPS
    return decision.decide(it, steps=steps, facts=facts.FACTS, report=facts.report)


def verdict(it: observation.Seen) -> Any:
    """Where the steps stop."""
    standing = decided(it).standing
    assert standing is not None, "all steps are done"
    return standing.verdict


def test_what_is_whole_needs_nothing() -> None:
    """All steps are done, and what readiness needs is true."""
    found = decided(seen())

    assert found.standing is None
    assert () == found.acts
    assert all(each.status for each in found.facts)
    assert ("Running", states.IMAGE, "1/1") == (
        found.report["status"],
        found.report["lastAppliedImage"],
        found.report["printer"]["drives"],
    )
    assert (states.GUID, 0) == (found.report["clusterID"], found.report["containerID"])


UNMADE = {"objects": objects(pod=None)}
ENDING = {"objects": objects(pod=pod(deleting=True))}
OTHER = pod(spec(image=states.NEWER))
DOWN_NODE = observation.NodeSeen("n1", ready=False)
CORDONED = observation.NodeSeen("n1", cordoned=True)
FRESH = status(allocations=None)
SCRIPTS = (build.scripts("ns", states.SPOKEN), apply.Child())
HELD = allocation.Taken("other", frozenset({"s1", "s2"}), (allocation.Span(35_000, 100), allocation.Span(35_300, 1)))
FULL = allocation.Taken("other", frozenset(), (allocation.Span(35_000, 500),))
LONELY: dict[str, Any] = {"local": told(cluster="", host=None), "spec": spec(joinIpPorts=["10.0.0.1:35000"])}
JUST_NOW, LONG_AGO, TO_COME = (conditions.timestamp(states.NOW - it) for it in (60.0, 180.0, -60.0))
TWO_AWAY = {"objects": objects(pod=pod(deleting=True), owner=replace(OWNER, away=frozenset({4, 5})))}
TWO_DOWN = tuple(replace(it, status="DOWN") if it.host in (2, 5) else it for it in members())
STEPS: list[tuple[dict[str, Any], type[Any], Reason, str]] = [
    ({"allowed": False}, Blocked, Reason.NAMESPACE_NOT_ALLOWED, "namespace ns is not opened for pods"),
    ({"spec": spec(mode="s3", numDrives=0)}, Blocked, Reason.MODE_NOT_SERVED, "mode s3 are not looked after yet"),
    ({"images": ()}, Blocked, Reason.IMAGE_NOT_ALLOWED, "image registry.example/weka:4.4.1 is none of those"),
    (
        {"spec": spec(overrides={"preRunScript": "true"})},
        Blocked,
        Reason.SCRIPTS_NOT_ALLOWED,
        "preRunScript would be run as root",
    ),
    ({"metadata": {"finalizers": ()}}, Act, Reason.TAKING_CARE, "the finalizer is set"),
    ({"binding": Fresh(None)}, Act, Reason.BINDING, "rights in ns are bound"),
    ({"objects": freshness.not_yet("objects")}, Wait, Reason.OBJECTS_UNKNOWN, "objects not looked at yet"),
    ({"spec": spec(state="deleting")}, Act, Reason.FOLLOWING_STATE, "is deleted, as spec.state is deleting"),
    ({"spec": spec(state="destroying")}, Act, Reason.FOLLOWING_STATE, "is deleted, as spec.state is destroying"),
    ({"spec": spec(state="paused")}, Act, Reason.PAUSING, "demo-drive-0 is stopped, as it is paused"),
    ({"spec": spec(state="paused"), **ENDING}, Act, Reason.PAUSING, "demo-drive-0 may stop at once"),
    ({"spec": spec(state="paused"), **UNMADE}, Wait, Reason.PAUSED, "demo-drive-0 is paused"),
    ({"objects": objects(scripts=SCRIPTS)}, Act, Reason.WRITING_SCRIPTS, "ConfigMap/weka-boot-scripts .missing."),
    ({"objects": objects(node=None, node_gone=True)}, Blocked, Reason.NODE_GONE, "node n1 is gone"),
    ({"objects": objects(node=DOWN_NODE)}, Wait, Reason.NODE_NOT_READY, "node n1 does not report"),
    (ENDING, Act, Reason.ENDING_POD, "demo-drive-0 may stop in its own time"),
    ({**UNMADE, "namespace_ending": True}, Wait, Reason.ENDING_POD, "namespace ns is being deleted"),
    (TWO_AWAY, Wait, Reason.STOP_GATED, "serves on, as 2 others with drives are away, and redundancy covers 2"),
    ({**ENDING, "cluster": Fresh(cluster(members=TWO_DOWN))}, Wait, Reason.STOP_GATED, "2 others with drives are away"),
    (
        {**TWO_AWAY, "cluster": Stale(cluster(), 0.0, "it was told")},
        Wait,
        Reason.CLUSTER_UNKNOWN,
        "asked anew: it was told",
    ),
    (
        {**ENDING, "local": told(allow_stop=True)},
        Wait,
        Reason.ENDING_POD,
        "demo-drive-0 is stopping",
    ),
    (
        {**ENDING, "local": freshness.Failed("Unavailable", "no answer")},
        Wait,
        Reason.ENDING_POD,
        "was not reached: no answer",
    ),
    (
        {**ENDING, "local": Stale(local(pod="p-9"), 0.0, "it was told")},
        Wait,
        Reason.ENDING_POD,
        "was not reached: it was told",
    ),
    (
        {"objects": objects(pod=pod(deleting=True, running=False)), "local": told(pod="p-9")},
        Wait,
        Reason.ENDING_POD,
        "demo-drive-0 is ending",
    ),
    (
        {**ENDING, "local": told(allow_stop=True), "spec": spec(overrides={"podDeleteForceReplace": True})},
        Act,
        Reason.ENDING_POD,
        "demo-drive-0 may stop at once",
    ),
    (
        {"objects": objects(pod=replace(pod(running=False), ended=True))},
        Act,
        Reason.REPLACING_POD,
        "pod demo-drive-0 has ended, and is made anew",
    ),
    (UNMADE, Act, Reason.MAKING_POD, "pod demo-drive-0 is made"),
    ({"objects": objects(pod=None, node=CORDONED)}, Wait, Reason.NODE_CORDONED, "node n1 takes no new pods"),
    ({"objects": objects(pod=OTHER)}, Act, Reason.REPLACING_POD, "demo-drive-0 is stopped, as its size or settings"),
    (
        {"objects": objects(pod=replace(OTHER, seen=replace(OTHER.seen, image="old:1")))},
        Act,
        Reason.REPLACING_POD,
        "as it runs old:1, and is to run registry.example/weka:4.4.1",
    ),
    (
        {"objects": objects(pod=pod(running=False, trouble="no such image", cause="ImagePull"))},
        Wait,
        Reason.POD_NOT_RUNNING,
        "does not run yet: no such image",
    ),
    ({"status": status(nodeAffinity="")}, Act, Reason.PINNING, "demo-drive-0 belongs to node n1"),
    ({"local": freshness.not_yet("container")}, Wait, Reason.AGENT_UNKNOWN, "container not looked at yet"),
    ({"local": Stale(local(), 0.0, "it was told")}, Wait, Reason.AGENT_UNKNOWN, "is asked anew: it was told"),
    ({"local": told(persistent=False)}, Wait, Reason.AGENT_UNKNOWN, "has not begun to keep its state"),
    ({"local": told(pod="p-9")}, Wait, Reason.AGENT_UNKNOWN, "demo-drive-0 is asked anew"),
    ({"objects": objects(node=None)}, Wait, Reason.OBJECTS_UNKNOWN, "the node of demo-drive-0 is not seen yet"),
    (
        {"status": FRESH, "objects": objects(owner=replace(OWNER, ports=None))},
        Wait,
        Reason.CLUSTER_HAS_NO_PORTS,
        "WekaCluster demo has no range of ports yet",
    ),
    ({"status": FRESH, "objects": objects(taken=(FULL,))}, Blocked, Reason.PORTS_LACKING, "no ports are left"),
    ({"status": FRESH}, Act, Reason.ALLOCATING, "gets ports from 35000 on, and 1 drives of node n1"),
    (
        {"status": FRESH, "spec": spec(numDrives=2), "objects": objects(taken=(HELD,))},
        Act,
        Reason.ALLOCATING,
        "gets ports from 35100 on, and 1 drives",
    ),
    (
        {"spec": spec(numDrives=4), "status": status(allocations={**ALLOCATIONS, "drives": ["s1", "s2", "s3"]})},
        Blocked,
        Reason.DRIVES_LACKING,
        "is to have 4 drives and 3 of node n1 are free for it: 3 are signed, 0 of them blocked",
    ),
    (
        {"status": FRESH, "objects": objects(node=observation.NodeSeen("n1", fault="its list can't be read"))},
        Blocked,
        Reason.DRIVES_LACKING,
        "is to have 1 drives and 0 of node n1 are free for it: its list can't be read",
    ),
    (
        {"status": FRESH, "spec": spec(mode="compute")},
        Act,
        Reason.ALLOCATING,
        "gets ports from 35000 on, and 0 drives of node n1",
    ),
    (
        {"status": FRESH, "objects": objects(owner=None), "spec": spec(portRange={"basePort": 50_000})},
        Act,
        Reason.ALLOCATING,
        "gets ports from 50000 on",
    ),
    ({"status": FRESH, "objects": objects(owner=None)}, Act, Reason.ALLOCATING, "gets ports from 45000 on"),
    (
        {"status": FRESH, "spec": spec(port=14_000, agentPort=14_500)},
        Act,
        Reason.ALLOCATING,
        "gets ports from 14000 on",
    ),
    (
        {"status": status(allocations={**ALLOCATIONS, "agentPort": 0}), "objects": objects(taken=(HELD,))},
        Act,
        Reason.ALLOCATING,
        "gets ports from 35100 on",
    ),
    ({"objects": objects(owner=replace(OWNER, single_node=True))}, Act, Reason.ALLOCATING, "gets ports from 35000"),
    ({"local": told(resources="other")}, Act, Reason.WRITING_RESOURCES, "demo-drive-0 is told its ports and drives"),
    (
        {"local": told(run_status="Stopped", last_failure="no pages")},
        Wait,
        Reason.STARTING,
        "demo-drive-0 starts: Stopped, no pages",
    ),
    (
        {"local": told(cluster="", host=None), "status": status(clusterID="", containerID=None)},
        Wait,
        Reason.NOT_FORMED,
        "is ready for a cluster",
    ),
    (
        LONELY,
        Act,
        Reason.JOINING,
        "demo-drive-0 is told where its cluster is",
    ),
    (
        {**LONELY, "status": status(timestamps={"joining": JUST_NOW})},
        Wait,
        Reason.JOINING,
        "demo-drive-0 was told where its cluster is, and is on its way there",
    ),
    ({**LONELY, "status": status(timestamps={"joining": LONG_AGO})}, Act, Reason.JOINING, "is told where"),
    ({**LONELY, "status": status(timestamps={"joining": TO_COME})}, Act, Reason.JOINING, "is told where"),
    (
        {"local": told(cluster="g-2")},
        Blocked,
        Reason.FOREIGN_CLUSTER,
        "says that it belongs to cluster g-2, and not to g-1",
    ),
    ({"cluster": freshness.Failed("Unavailable", "nobody answers")}, Wait, Reason.CLUSTER_UNKNOWN, "nobody answers"),
    (
        {"cluster": Stale(cluster(drives=()), 0.0, "a drive was added")},
        Wait,
        Reason.CLUSTER_UNKNOWN,
        "anew: a drive was added",
    ),
    ({"cluster": Fresh(cluster(drives=()))}, Act, Reason.ADDING_DRIVE, "drive s1 of demo-drive-0 is added"),
    ({"cluster": Fresh(cluster(drives=drives()[1:]))}, Act, Reason.ADDING_DRIVE, "drive s1 of demo-drive-0 is added"),
    (
        {"cluster": Fresh(cluster(drives=())), "local": told(devices=())},
        Wait,
        Reason.DRIVE_MISSING,
        "node n1 does not show drive s1",
    ),
    (
        {"cluster": Fresh(cluster(drives=())), "local": told(devices=(device(mounted=True),))},
        Blocked,
        Reason.DRIVE_NOT_FREE,
        "drive s1 of demo-drive-0 is mounted",
    ),
    (
        {"cluster": Fresh(cluster(drives=())), "local": told(devices=(device(guid="g-2"),))},
        Blocked,
        Reason.DRIVE_NOT_FREE,
        "was signed for cluster g-2",
    ),
    ({"cluster": Fresh(cluster(members=()))}, Wait, Reason.NOT_UP, "the cluster does not list it"),
    (
        {"cluster": Fresh(cluster(drives=drives(host=3)))},
        Blocked,
        Reason.DRIVE_NOT_FREE,
        "the cluster lists drive s1 as that of its container 3, and not of demo-drive-0",
    ),
    (
        {"local": told(cluster="", host=None)},
        Wait,
        Reason.CLUSTER_FORGOTTEN,
        "demo-drive-0 was container 0 of cluster g-1, and knows nothing of it any more",
    ),
    ({"cluster": Fresh(cluster(members=members(status="DOWN")))}, Wait, Reason.NOT_UP, "lists demo-drive-0 as DOWN"),
]


@pytest.mark.parametrize(("changed", "kind", "reason", "said"), STEPS)
def test_each_step_says_what_stands_in_the_way(
    changed: dict[str, Any], kind: type[Any], reason: Reason, said: str
) -> None:
    found = verdict(seen(**changed))

    assert (kind, reason) == (type(found), found.reason)
    assert re.search(said, found.message), found.message


GOING: dict[str, Any] = {"deletion_timestamp": "2026-01-01T00:00:00Z"}
GONE = {"objects": objects(pod=None)}
OUT = {"cluster": Fresh(cluster(members=members(state="INACTIVE", status="DOWN"), drives=drives()[1:]))}
SKIPS = spec(overrides={"skipDeactivate": True})
MEANT = {**GOING, "annotations": {names.CONFIRM: "skipDeactivate"}}
MOVING = {"moving": True}
LOST = objects(pod=None, node=None, node_gone=True)
ENDS: list[tuple[dict[str, Any], type[Any], Reason, str]] = [
    ({"binding": Fresh(None), "allowed": False}, Act, Reason.LEAVING, "nothing was made"),
    ({"binding": freshness.not_yet("binding")}, Wait, Reason.BINDING, "binding not looked at yet"),
    ({"binding": Fresh(None), "namespace_ending": True}, Act, Reason.LEAVING, "the namespace is being deleted"),
    ({"binding": Fresh(None)}, Act, Reason.BINDING, "rights in ns are bound"),
    ({"objects": freshness.not_yet("objects")}, Wait, Reason.OBJECTS_UNKNOWN, "objects not looked at yet"),
    ({"spec": SKIPS}, Blocked, Reason.OVERRIDE_UNCONFIRMED, "skipDeactivate of demo-drive-0 loses"),
    ({"objects": objects(node=DOWN_NODE)}, Wait, Reason.NODE_NOT_READY, "node n1 does not report"),
    (ENDING, Act, Reason.ENDING_POD, "may stop in its own time"),
    (GONE, Act, Reason.MAKING_POD, "pod demo-drive-0 is made"),
    ({"objects": objects(pod=pod(running=False))}, Wait, Reason.POD_NOT_RUNNING, "does not run yet"),
    ({"cluster": freshness.Failed("Unavailable", "nobody answers")}, Wait, Reason.CLUSTER_UNKNOWN, "nobody answers"),
    ({"cluster": Fresh(cluster(**MOVING))}, Wait, Reason.NOT_PROTECTED, "is to leave, and the cluster is moving"),
    ({"cluster": Fresh(cluster(unprotected=7))}, Wait, Reason.NOT_PROTECTED, "7 MiB are without"),
    (
        {"objects": LOST, "cluster": Fresh(cluster(members=members(status="DOWN"), unprotected=7))},
        Wait,
        Reason.NOT_PROTECTED,
        "7 MiB are without",
    ),
    (
        {"objects": LOST, "cluster": Fresh(cluster(members=members(status="DOWN"), **MOVING))},
        Act,
        Reason.DEACTIVATING,
        "demo-drive-0 is told to leave its cluster",
    ),
    (
        {"cluster": Fresh(cluster(members=members(5), drives=drives(5)))},
        Blocked,
        Reason.STRIPE_NEEDS_IT,
        "5 containers have drives, and a stripe needs 5",
    ),
    ({}, Act, Reason.DEACTIVATING, "demo-drive-0 is told to leave its cluster"),
    (
        {"cluster": Fresh(cluster(members=members(state="DEACTIVATING"), **MOVING))},
        Wait,
        Reason.DEACTIVATING,
        "data of demo-drive-0 is moved",
    ),
    (
        {"cluster": Fresh(cluster(members=members(state="INACTIVE")))},
        Act,
        Reason.REMOVING_DRIVES,
        "drive s1 of demo-drive-0 is deactivated",
    ),
    (
        {"cluster": Fresh(cluster(members=members(state="INACTIVE"), drives=drives(status="PHASING_OUT")))},
        Wait,
        Reason.REMOVING_DRIVES,
        "drive s1 of demo-drive-0 is PHASING_OUT",
    ),
    (
        {"cluster": Fresh(cluster(members=members(state="INACTIVE"), drives=drives(status="INACTIVE")))},
        Act,
        Reason.REMOVING_DRIVES,
        "drive s1 of demo-drive-0 is removed",
    ),
    (OUT, Act, Reason.ENDING_POD, "is stopped, as demo-drive-0 is deleted"),
    ({**OUT, **ENDING}, Act, Reason.ENDING_POD, "demo-drive-0 may stop at once"),
    ({**OUT, **GONE}, Act, Reason.REMOVING_MEMBER, "the cluster forgets demo-drive-0"),
    (
        {**GONE, "cluster": Stale(OUT["cluster"].value, 0.0, "it was told")},
        Wait,
        Reason.CLUSTER_UNKNOWN,
        "the cluster is asked anew: it was told",
    ),
    (
        {**GONE, "cluster": Fresh(cluster(members=members()[1:], drives=drives()[1:]))},
        Act,
        Reason.LEAVING,
        "nothing is left of demo-drive-0",
    ),
    ({**GONE, "spec": spec(state="destroying")}, Act, Reason.LEAVING, "nothing is left"),
    ({**GONE, "objects": objects(pod=None, owner=replace(OWNER, deleting=True))}, Act, Reason.LEAVING, "nothing is"),
    (
        {**GONE, "status": status(clusterID="", containerID=None), "local": freshness.not_yet("container")},
        Act,
        Reason.LEAVING,
        "nothing is left",
    ),
]


@pytest.mark.parametrize(("changed", "kind", "reason", "said"), ENDS)
def test_each_step_of_its_end(changed: dict[str, Any], kind: type[Any], reason: Reason, said: str) -> None:
    found = verdict(seen(metadata=GOING, **changed))

    assert (kind, reason) == (type(found), found.reason)
    assert re.search(said, found.message), found.message


PATIENCE: dict[Reason, set[tuple[float, float]]] = {
    # seconds within which it should come, and after which it is looked at again
    Reason.OBJECTS_UNKNOWN: {(120, 0), (60, 0)},
    Reason.BINDING: {(120, 0)},
    Reason.PAUSED: {(0, 0)},
    Reason.NODE_NOT_READY: {(600, 0)},
    Reason.NODE_CORDONED: {(600, 0)},
    Reason.ENDING_POD: {(1800, 0), (1800, 5)},
    Reason.POD_NOT_RUNNING: {(600, 0)},
    Reason.AGENT_UNKNOWN: {(600, 0)},
    Reason.CLUSTER_HAS_NO_PORTS: {(300, 0)},
    Reason.STARTING: {(600, 0)},
    Reason.NOT_FORMED: {(1800, 0)},
    Reason.JOINING: {(600, 60)},
    Reason.CLUSTER_FORGOTTEN: {(600, 0)},
    Reason.CLUSTER_UNKNOWN: {(300, 0), (300, 5)},
    Reason.DRIVE_MISSING: {(120, 0)},
    Reason.NOT_UP: {(600, 0)},
    Reason.NOT_PROTECTED: {(86_400, 0)},
    Reason.DEACTIVATING: {(86_400, 0)},
    Reason.REMOVING_DRIVES: {(86_400, 0)},
    Reason.STOP_GATED: {(1800, 5)},
}


def test_a_wait_has_an_end_and_a_pace() -> None:
    found: dict[Reason, set[tuple[float, float]]] = {}
    for rows, metadata in ((STEPS, {}), (ENDS, GOING)):
        for changed, kind, reason, _ in rows:
            if kind is Wait:
                waits = verdict(seen(**{"metadata": metadata, **changed}))
                found.setdefault(reason, set()).add((waits.within, waits.again))

    assert PATIENCE == found


IDLE_DRIVE = {"cluster": Fresh(cluster(members=members(state="INACTIVE"), drives=drives(status="INACTIVE")))}
ORDERS: list[tuple[dict[str, Any], str, dict[str, Any]]] = [
    (ENDING, "container.allow_stop", {"pod": "p-0", "force": False}),
    (
        {**ENDING, "spec": spec(overrides={"podDeleteForceReplace": True})},
        "container.allow_stop",
        {"pod": "p-0", "force": True},
    ),
    (
        {"local": told(resources="other")},
        "container.write_resources",
        {"pod": "p-0", "text": build.resources_text(seen().resources)},
    ),
    (LONELY, "container.join", {"pod": "p-0", "to": ["10.0.0.1:35000"]}),
    (
        {"cluster": Fresh(cluster(drives=()))},
        "drive.add",
        {"pod": "p-0", "host": 0, "serial": "s1", "path": "/dev/s1"},
    ),
    ({"metadata": GOING}, "member.deactivate", {"host": 0}),
    (
        {"metadata": GOING, "cluster": Fresh(cluster(members=members(state="INACTIVE")))},
        "drive.deactivate",
        {"uuid": "d-0"},
    ),
    ({"metadata": GOING, **IDLE_DRIVE}, "drive.remove", {"uuid": "d-0"}),
    ({"metadata": GOING, **OUT, **GONE}, "member.remove", {"host": 0}),
]


@pytest.mark.parametrize(
    ("changed", "operation", "args"), ORDERS, ids=[f"{n}-{row[1]}" for n, row in enumerate(ORDERS)]
)
def test_what_is_ordered_is_one_thing_and_names_whom_it_is_about(
    changed: dict[str, Any], operation: str, args: dict[str, Any]
) -> None:
    """A drive that holds data is deactivated, and only one that holds none is removed."""
    calls = [it for it in verdict(seen(**changed)).actions if isinstance(it, decision.Call)]

    assert [(operation, args)] == [(it.operation, it.args) for it in calls]


@pytest.mark.parametrize("known", [{"clusterID": "", "containerID": 0}, {"containerID": None}])
def test_one_that_is_no_member_holds_nothing_that_an_override_could_lose(known: dict[str, Any]) -> None:
    """Of a cluster without a number in it, or of a number without a cluster, nobody could take anything over."""
    base = {**GONE, "local": freshness.not_yet("container"), "status": status(**known)}
    found = decided(seen(metadata=GOING, spec=SKIPS, **base))

    assert ["it_may_go"] == [it.name for it in found.steps if it.verdict is not decision.DONE]


def test_every_reason_is_come_to() -> None:
    """None is left that nothing leads to; one is of facts, and one of orders."""
    told_ = {reason for _, _, reason, _ in (*STEPS, *ENDS)}

    assert {*Reason} - {Reason.RUNNING, Reason.ORDER_REFUSED, Reason.HEEDED, Reason.UNHEEDED} == told_


def test_what_it_gets_is_written_down_whole_and_guarded() -> None:
    """Ports, drives, and what of its node it is told; of a single node a name that no other container has."""
    node = replace(states.NODE, failure_domain="rack-1")
    (note,) = verdict(seen(status=FRESH, objects=objects(node=node))).actions
    (alone,) = verdict(seen(status=FRESH, objects=objects(owner=replace(OWNER, single_node=True)))).actions
    got = {"drives": ["s1"], "wekaPort": 35_000, "agentPort": 35_300}

    assert {**got, "failureDomain": "rack-1", "machineIdentifier": ""} == note.fields["allocations"]
    assert (decision.Guard("allocation_is_free", {"node": "n1", **got}),) == note.require
    assert "u-0" == alone.fields["allocations"]["machineIdentifier"]


def test_why_its_pod_does_not_run_is_told_with_what_to_do() -> None:
    """In the words of whoever keeps it from running."""
    found = verdict(
        seen(objects=objects(pod=pod(running=False, trouble="no such image", cause="ImagePull", fix="correct it")))
    )

    assert ("ImagePull", "correct it") == (found.cause, found.fix)


def test_one_that_was_told_where_its_cluster_is_is_left_to_it() -> None:
    """For two minutes, from that moment on."""

    def told_at(seconds: float) -> Any:
        at = conditions.timestamp(states.NOW - seconds)
        return verdict(seen(**{**LONELY, "status": status(timestamps={"joining": at})}))

    assert (Wait, 120) == (type(told_at(0)), told_at(0).again)
    assert (Wait, 1) == (type(told_at(119)), told_at(119).again)
    assert Act is type(told_at(120))


SILENT = {"local": freshness.Failed("Unavailable", "no"), "cluster": freshness.Failed("Unavailable", "no")}


@pytest.mark.parametrize(
    "step",
    [control.resources_are_written, control.it_is_a_member, control.drives_are_added, deletion.drives_are_removed],
)
def test_a_step_has_no_order_for_one_that_nobody_has_heard(step: Any) -> None:
    """That it is silent is told by a step of its own."""
    assert decision.DONE == step(seen(metadata=GOING, **SILENT))


def test_an_override_that_loses_data_is_heeded_once_confirmed_and_stays_to_be_seen() -> None:
    found = decided(seen(metadata=MEANT, spec=SKIPS))
    (note, stop) = found.acts

    assert {"overridesUsed": {"skipDeactivate": GOING["deletion_timestamp"]}} == note.actions[0].fields  # type: ignore[union-attr]
    assert Reason.ENDING_POD == stop.reason


def test_it_is_never_forced_out_of_the_node() -> None:
    """Whatever is done to a pod is a deletion with its own grace; no other ends one."""
    for changed in ({"spec": spec(state="paused")}, {"objects": objects(pod=OTHER)}):
        (action,) = verdict(seen(**changed)).actions

        assert isinstance(action, decision.Delete)
        assert ("demo-drive-0", "p-0") == (action.ref.name, action.ref.uid)


def test_flags_alone_end_nothing() -> None:
    """A container that may stop and is not being deleted goes on."""
    found = decided(seen(local=told(allow_stop=True, allow_force_stop=True)))

    assert found.standing is None


@pytest.mark.parametrize(
    ("image", "listed", "may"),
    [
        ("registry.example/weka:4.4.1", ("registry.example/",), True),
        ("registry.example/weka:4.4.1", ("registry.example",), True),
        ("registry.example.evil/weka:4.4.1", ("registry.example",), False),
        ("registry.example/weka-evil:4.4.1", ("registry.example/weka",), False),
        ("registry.example/weka:4.4.1", ("registry.example/weka",), True),
        ("registry.example/weka", ("registry.example/weka",), True),
        ("a:1", (), False),
    ],
)
def test_an_image_is_listed_by_whole_parts_of_its_name(image: str, listed: tuple[str, ...], may: bool) -> None:
    assert may == place.image_may_run(image, listed)


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({}, "Running"),
        ({"binding": Fresh(None)}, "Init"),
        (UNMADE, "PodNotRunning"),
        (ENDING, "PodTerminating"),
        ({"local": told(run_status="Stopped")}, "Starting"),
        ({"cluster": Fresh(cluster(drives=()))}, "DrivesAdding"),
        ({"cluster": Fresh(cluster(members=()))}, "Degraded"),
        ({"spec": spec(state="paused"), **UNMADE}, "Paused"),
        ({"allowed": False}, "Error"),
        ({"metadata": GOING}, "Deleting"),
        ({"metadata": GOING, "spec": spec(state="destroying")}, "Destroying"),
    ],
)
def test_status_is_in_the_originals_words(changed: dict[str, Any], word: str) -> None:
    assert word == decided(seen(**changed)).report["status"]


def test_what_was_not_asked_yet_stands_as_it_stood() -> None:
    """As after a restart of moorage: a container is not called anything else for that."""
    stood = [{"type": it.type, "status": "True", "reason": "Running"} for it in decided(seen()).facts]
    nothing = freshness.not_yet("it")
    found = decided(seen(local=nothing, cluster=nothing, status=status(status="Running", conditions=stood)))

    assert all(each.status for each in found.facts)
    assert "status" not in found.report


@pytest.mark.parametrize(
    ("addresses", "column"),
    [
        ((), ""),
        (("10.0.0.1",), "10.0.0.1"),
        (("10.0.0.1", "b"), "10.0.0.1 (+1)"),
        (("10.0.0.1", "b", "c"), "10.0.0.1 (+2)"),
    ],
)
def test_where_it_is_managed_is_told_by_the_first_address_and_how_many_more(
    addresses: tuple[str, ...], column: str
) -> None:
    found = decided(seen(local=told(addresses=addresses))).report

    assert (list(addresses), column) == (found["managementIPs"], found["printer"]["managementIPs"])
    assert (addresses[0] if addresses else "") == found["managementIP"]


def test_its_drives_are_told_while_its_cluster_lists_it() -> None:
    """Of another cluster, or of one that is no drive container, nothing is told of them."""
    listed = decided(seen()).report
    foreign = decided(seen(cluster=Fresh(cluster(guid="g-9")))).report
    compute = decided(seen(spec=spec(mode="compute"))).report

    assert [("d-0", "s1", "ACTIVE")] == [
        (it["uuid"], it["serial_number"], it["status"]) for it in listed["addedDrives"]
    ]
    assert "1/1" == listed["printer"]["drives"]
    assert "addedDrives" not in foreign
    assert "drives" not in compute["printer"]


def test_which_image_it_runs_is_noted_once_all_is_well() -> None:
    """By that the cluster knows that it is back."""
    assert states.IMAGE == decided(seen()).report["lastAppliedImage"]
    for changed in (UNMADE, {"objects": objects(pod=OTHER)}, {"cluster": Fresh(cluster(members=()))}):
        assert "lastAppliedImage" not in decided(seen(**changed)).report


def test_what_a_container_says_of_itself_is_not_believed_against_its_cluster() -> None:
    found = decided(seen(local=told(cluster="g-2", host=7)))

    assert not {"clusterID", "containerID"} & found.report.keys()


def test_a_member_of_another_name_under_its_number_is_not_it() -> None:
    """Numbers come from an answer, and orders name them."""
    found = seen(cluster=Fresh(cluster(members=members(name="drivexbbx0"))))

    assert found.listed is None


@pytest.mark.parametrize(
    ("changed", "forgets"),
    [
        ({}, True),
        ({"pvc": {"name": "shared"}}, False),
        ({"overrides": {"skipCleanupPersistentDir": True}}, False),
    ],
)
def test_what_it_kept_goes_with_one_that_is_deleted(changed: dict[str, Any], forgets: bool) -> None:
    """Not what is on a volume, which may be others' too, and not where it is to stay; never of one that is paused."""
    gone = verdict(seen(metadata=GOING, spec=spec(state="destroying", **changed), **ENDING))
    paused = verdict(seen(spec=spec(state="paused", **changed), **ENDING))

    assert forgets is gone.actions[0].args.get("forget", False)
    assert "forget" not in paused.actions[0].args
    assert gone.actions[0].args["force"] is paused.actions[0].args["force"] is True


@pytest.mark.parametrize(
    ("overrides", "of", "confirmed", "how"),
    [
        ({}, OTHER, True, "in its own time"),
        ({"upgradeForceReplace": True}, OTHER, True, "at once"),
        ({"upgradeForceReplace": True}, OTHER, False, "in its own time"),
        ({"upgradeForceReplace": True}, pod(), True, "in its own time"),
        ({"podDeleteForceReplace": True}, pod(), False, "at once"),
    ],
    ids=["replaced", "by force", "not confirmed", "not replaced", "whoever deletes it"],
)
def test_a_pod_that_is_replaced_by_force_may_stop_at_once(
    overrides: dict[str, bool], of: observation.PodSeen, confirmed: bool, how: str
) -> None:
    """Once it is deleted, and where its cluster's annotation confirms it; whoever else deletes it forces nothing."""
    ending = replace(of, seen=replace(of.seen, deleting=True))
    there = objects(pod=ending, owner=replace(OWNER, forces=confirmed))
    found = verdict(seen(spec=spec(overrides=overrides), objects=there))

    assert f"demo-drive-0 may stop {how}" == found.message


def test_the_way_out_of_a_node_lost_with_its_power_is_told() -> None:
    """By Kubernetes' own taint, which is for whoever knows that it is off; no pod is forced."""
    stays = control.node_is_there(seen(objects=objects(node=DOWN_NODE)))
    going = control.pod_ends(
        seen(objects=objects(node=DOWN_NODE, pod=pod(deleting=True)), metadata={"deletion_timestamp": "x"}),
        Reason.ENDING_POD,
        "it is deleted",
        force=True,
    )

    assert isinstance(stays, Wait)
    assert "kubectl taint node n1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute" in stays.fix
    assert "after that kubectl delete wekacontainer demo-drive-0 -n ns" in stays.fix
    assert isinstance(going, Wait)
    assert "the deletion goes on" in going.fix


BLOCKED = observation.NodeSeen("n1", drives=("s1", "s2"), blocked=frozenset({"s1"}))
BOTH = status(allocations={**ALLOCATIONS, "drives": ["s1", "s2"]})


def test_a_drive_that_is_blocked_is_not_added_again_and_leaves_once_the_cluster_has_forgotten_it() -> None:
    """Whoever took it out of the cluster by hand must not find it there again; another one takes its place."""
    out = Fresh(cluster(drives=drives()[1:]))
    kept = verdict(seen(objects=objects(node=BLOCKED)))
    gone = verdict(seen(objects=objects(node=BLOCKED), status=BOTH, cluster=out))
    unheard = decided(seen(objects=objects(node=BLOCKED), status=BOTH, cluster=freshness.not_yet("cluster")))
    foreign = Fresh(cluster(drives=drives(host=3)))
    held = control.drives_are_added(seen(objects=objects(node=BLOCKED), cluster=foreign))

    assert ["s1", "s2"] == kept.actions[0].fields["allocations"]["drives"]
    assert ["s2"] == gone.actions[0].fields["allocations"]["drives"]
    assert Reason.ALLOCATING not in [it.reason for it in unheard.acts]
    assert decision.DONE == held, "the way out that is told of a drive that is another's"


def test_drives_that_the_cluster_lists_and_that_do_not_work_are_told() -> None:
    def told_of(**changed: Any) -> tuple[bool | None, str]:
        found = facts.drives_added(seen(**changed))
        return found.status, found.message

    assert (True, "not active: s1 (FAILED)") == told_of(cluster=Fresh(cluster(drives=drives(status="FAILED"))))
    assert (False, "not added: s1") == told_of(cluster=Fresh(cluster(drives=drives(host=3))))
    assert (True, "") == told_of()
    out = Fresh(cluster(drives=drives()[1:]))
    assert (True, "") == told_of(cluster=out, objects=objects(node=BLOCKED))


def test_one_whose_pod_is_lost_while_it_leaves_needs_no_other() -> None:
    """The others make up for it, wherever a new pod could be."""
    down = Fresh(cluster(members=members(status="DOWN")))
    found = verdict(seen(metadata=GOING, **{**GONE, "cluster": down}))

    assert (Act, Reason.DEACTIVATING) == (type(found), found.reason)


LACKS = Fresh(cluster(members=members(status="DOWN"), unprotected=7))


@pytest.mark.parametrize(
    ("changed", "reason", "said"),
    [
        ({**GONE, "cluster": LACKS}, Reason.MAKING_POD, "pod demo-drive-0 is made"),
        ({**ENDING, "cluster": LACKS}, Reason.ENDING_POD, "may stop in its own time"),
        ({"objects": objects(pod=None, node=CORDONED), "cluster": LACKS}, None, "7 MiB"),
        ({"objects": objects(pod=None, node=DOWN_NODE), "cluster": LACKS}, None, "7 MiB"),
        ({"objects": LOST, "cluster": LACKS}, None, "7 MiB"),
    ],
    ids=["its pod is gone", "its pod is ending", "its node takes none", "its node is away", "its node is gone"],
)
def test_one_that_is_lost_while_it_leaves_comes_back_while_the_others_lack_what_it_has(
    changed: dict[str, Any], reason: Reason | None, said: str
) -> None:
    """As its data may be nowhere else; where that can't be, the others are waited for."""
    found = verdict(seen(metadata=GOING, **changed))

    assert (reason or Reason.NOT_PROTECTED) == found.reason
    assert said in found.message


@pytest.mark.parametrize(
    "changed",
    [
        {"objects": objects(pod=pod(deleting=True), owner=replace(OWNER, away=frozenset({5})))},
        {"objects": objects(pod=pod(deleting=True), owner=replace(OWNER, away=frozenset({4, 105})))},
        {"objects": objects(pod=pod(deleting=True), owner=replace(OWNER, away=frozenset({4, 5}), single_node=True))},
        {"objects": objects(pod=replace(OTHER, seen=replace(OTHER.seen, deleting=True)))},
        {"spec": spec(overrides={"podDeleteForceReplace": True})},
        {"spec": spec(mode="compute", numDrives=0)},
        {"cluster": Fresh(cluster(members=members(status="DOWN")))},
        {"cluster": Fresh(cluster(drives=drives()[1:]))},
        {"cluster": freshness.Failed("Unavailable", "none")},
        {"namespace_ending": True},
    ],
    ids=[
        *("one is away", "one of them has no drives", "redundancy is disregarded", "another image", "forced"),
        *("it has no data", "it is down", "its drives are out", "the cluster is not heard"),
        "the namespace ends",
    ],
)
def test_a_pod_that_somebody_deletes_may_stop(changed: dict[str, Any]) -> None:
    """As few others are away, or as nothing is kept by it."""
    found = verdict(seen(**{**TWO_AWAY, **changed}))

    assert Reason.ENDING_POD == found.reason


def test_one_that_runs_is_left_alone_on_a_node_that_takes_no_new_pods() -> None:
    assert decided(seen(objects=objects(node=replace(CORDONED, drives=states.NODE.drives)))).standing is None


@pytest.mark.parametrize(("forces", "how"), [(True, "at once"), (False, "in its own time")])
def test_an_upgrade_that_is_forced_does_not_wait_for_a_graceful_stop(forces: bool, how: str) -> None:
    """The override is heeded by whoever tells the pod that it may stop, once it is being deleted."""
    old = replace(OTHER, seen=replace(OTHER.seen, deleting=True))
    of = spec(overrides={"upgradeForceReplace": True})
    found = verdict(seen(spec=of, objects=objects(pod=old, owner=replace(OWNER, forces=forces)), local=told()))

    assert (Act, Reason.ENDING_POD, f"demo-drive-0 may stop {how}") == (type(found), found.reason, found.message)
    assert forces == found.actions[0].args["force"]


FACTS: list[tuple[dict[str, Any], str, bool | None, Reason, str]] = [
    ({}, "ContainerAffinitySet", True, Reason.RUNNING, "n1"),
    ({"status": status(nodeAffinity="")}, "ContainerAffinitySet", False, Reason.PINNING, ""),
    ({}, "ContainerResourcesAllocated", True, Reason.RUNNING, "ports from 35000 on"),
    ({"status": FRESH}, "ContainerResourcesAllocated", False, Reason.ALLOCATING, ""),
    ({}, "ContainerResourcesWritten", True, Reason.RUNNING, ""),
    ({"local": told(resources="other")}, "ContainerResourcesWritten", False, Reason.WRITING_RESOURCES, ""),
    ({"local": told(pod="p-9")}, "ContainerResourcesWritten", None, Reason.AGENT_UNKNOWN, ""),
    ({"objects": freshness.not_yet("objects")}, "ContainerResourcesWritten", None, Reason.AGENT_UNKNOWN, ""),
    ({}, "JoinedCluster", True, Reason.RUNNING, ""),
    ({"local": told(cluster="", host=None)}, "JoinedCluster", False, Reason.NOT_FORMED, ""),
    (SILENT, "JoinedCluster", None, Reason.AGENT_UNKNOWN, ""),
    ({"status": FRESH}, "EnsuredDrives", True, Reason.RUNNING, "it is to have none"),
    ({"cluster": Fresh(cluster(drives=()))}, "EnsuredDrives", False, Reason.ADDING_DRIVE, "not added: s1"),
    (SILENT, "EnsuredDrives", None, Reason.CLUSTER_UNKNOWN, ""),
    ({}, "Available", True, Reason.RUNNING, ""),
    ({"cluster": Fresh(cluster(members=members(status="DOWN")))}, "Available", False, Reason.NOT_UP, ""),
    ({"cluster": Fresh(cluster(members=()))}, "Available", False, Reason.NOT_UP, ""),
    (SILENT, "Available", None, Reason.CLUSTER_UNKNOWN, ""),
]


@pytest.mark.parametrize(("changed", "type_", "status_", "reason", "message"), FACTS)
def test_facts(changed: dict[str, Any], type_: str, status_: bool | None, reason: Reason, message: str) -> None:
    """Each by the word of whoever knows it, and nobody's where that is silent."""
    found = next(it for it in decided(seen(**changed)).facts if it.type == type_)

    assert (status_, reason, message) == (found.status, found.reason, found.message)
