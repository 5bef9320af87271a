"""What is done for a WekaManualOperation: each step's verdict, what a pod is told, and what a node is told after it."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import msgspec
import pytest

from moorage.api import conditions, meta
from moorage.children import apply, parts
from moorage.operators.weka import dialect, names, shared
from moorage.operators.weka.container import build as container_build
from moorage.operators.weka.operation import build, control, kind, observation, screen, types
from moorage.operators.weka.operation.reasons import OperationReason as Reason
from moorage.runtime import decision, freshness
from moorage.runtime.decision import Act, Blocked, Wait
from moorage.runtime.freshness import Fresh

from . import states

SIGN = {"signDrivesPayload": {"type": "all-not-root", "nodeSelector": {"weka": "yes"}}}
RESIGN = {"forceResignDrivesPayload": {"nodeName": "n1", "deviceSerials": ["s1"]}}
BLOCK = {"blockDrivesPayload": {"node": "n1", "serialIDs": ["s1"]}}
RUNNING = {"status": "Running", "nodes": {"n1": {"status": "Running"}}}
NAME = names.operation_pod("sign", "n1")


def spec(action: str = "sign-drives", payload: Any = SIGN, **changed: Any) -> types.WekaManualOperationSpec:
    given = {"action": action, "image": states.IMAGE, "payload": payload, **changed}
    return msgspec.convert(given, types.WekaManualOperationSpec)


def node(name: str = "n1", **changed: Any) -> observation.NodeSeen:
    return msgspec.structs.replace(observation.NodeSeen(name, boot="b-1"), **changed)


def pod(told: Any = None, on: str = "n1", **changed: Any) -> observation.PodSeen:
    """One that has ended with that last word, or one that runs."""
    seen = parts.PodSeen(names.operation_pod("sign", on), -1, f"p-{on}", **changed)
    text = told if isinstance(told, str) else json.dumps(told)
    return observation.PodSeen(seen, on, ended=told is not None, told="" if told is None else text)


def seen(
    of: types.WekaManualOperationSpec | None = None,
    status: Any = None,
    nodes: Any = None,
    pods: tuple[observation.PodSeen, ...] = (),
    confirmed: str = "",
    **changed: Any,
) -> observation.Seen:
    scripts = (container_build.scripts("ns", states.SPOKEN), apply.Child("c"))
    there = {it.name: it for it in (nodes if nodes is not None else (node(),))}
    objects = observation.Objects(there, {it.seen.name: it for it in pods}, scripts)
    metadata = meta.ObjectMeta(
        name="sign",
        namespace="ns",
        uid="u-op",
        finalizers=(names.OPERATION_FINALIZER,),
        annotations={names.CONFIRM: confirmed} if confirmed else {},
    )
    base: dict[str, Any] = {
        "meta": metadata,
        "spec": of or spec(),
        "status": msgspec.convert(status or {}, types.WekaManualOperationStatus),
        "now": states.NOW,
        "rights": states.RIGHTS,
        "allowed": True,
        "images": ("registry.example/",),
        "scripts": False,
        "dialect": states.SPOKEN,
        "binding": Fresh(states.BOUND),
        "objects": Fresh(objects),
    }
    return observation.Seen(**base | changed)


def stands(it: observation.Seen, steps: Any = control.STEPS) -> decision.StepTaken:
    found = decision.decide(it, steps=steps).standing
    assert found is not None
    return found


def told(**found: Any) -> dict[str, Any]:
    return {"drives": [], "signed": [], "fault": "", **found}


def ago(seconds: float) -> str:
    return conditions.timestamp(states.NOW - seconds)


DONE = {"status": "Done", "nodes": {"n1": {"status": "Done", "signed": ["s1"]}}}
ROWS: list[tuple[str, dict[str, Any], type[Any], str, Reason, str]] = [
    ("a closed namespace", {"allowed": False}, Blocked, "namespace_is_allowed", Reason.NAMESPACE_NOT_ALLOWED, "ns"),
    (
        "an action of the next release",
        {"of": spec("ensure-nics", {"ensureNICsPayload": {"type": "aws"}})},
        Blocked,
        "action_is_served",
        Reason.ACTION_NOT_SERVED,
        "action ensure-nics is not looked after yet; these are: sign-drives,",
    ),
    (
        "an image of nobody",
        {"of": spec(image="other.example/x:1.2.3")},
        Blocked,
        "image_is_allowed",
        Reason.IMAGE_NOT_ALLOWED,
        "other.example/x:1.2.3",
    ),
    (
        "signing anew that nobody confirmed",
        {"of": spec("force-resign-drives", RESIGN)},
        Blocked,
        "destruction_is_confirmed",
        Reason.UNCONFIRMED,
        "force-resign-drives destroys what drives hold",
    ),
    (
        "options of which one is not confirmed",
        {
            "of": spec(
                payload={
                    "signDrivesPayload": {
                        "type": "aws-all",
                        "options": {"allowEraseWekaPartitions": True, "allowNonEmptyDevice": True},
                    }
                }
            ),
            "confirmed": "allowNonEmptyDevice",
        },
        Blocked,
        "destruction_is_confirmed",
        Reason.UNCONFIRMED,
        "allowEraseWekaPartitions destroys what drives hold",
    ),
    ("no rights yet", {"binding": Fresh(None)}, Act, "rights_are_bound", Reason.BINDING, "ns"),
    (
        "nothing watched",
        {"objects": freshness.not_yet("objects")},
        Wait,
        "objects_are_known",
        Reason.OBJECTS_UNKNOWN,
        "",
    ),
    ("no such nodes", {"nodes": ()}, Blocked, "nodes_are_chosen", Reason.NO_NODES, "no node has the labels weka=yes"),
    (
        "no node of that name",
        {"of": spec("block-drives", BLOCK), "nodes": ()},
        Blocked,
        "nodes_are_chosen",
        Reason.NO_NODES,
        "there is no node n1",
    ),
    (
        "too many nodes",
        {"nodes": tuple(node(f"n{it}") for it in range(control.MOST_NODES + 1))},
        Blocked,
        "nodes_are_chosen",
        Reason.TOO_MANY_NODES,
        "257 nodes",
    ),
    (
        "a drive that a container has",
        {
            "of": spec("force-resign-drives", RESIGN),
            "confirmed": "force-resign-drives",
            "nodes": (node(taken={"s1": "WekaContainer ns/a-drive-0"}),),
        },
        Blocked,
        "nodes_are_chosen",
        Reason.DRIVE_TAKEN,
        "drive s1 of node n1 is WekaContainer ns/a-drive-0's",
    ),
    ("the beginning", {}, Act, "nodes_are_chosen", Reason.BEGINNING, "sign-drives on n1"),
    (
        "as many nodes as may be",
        {"nodes": tuple(node(f"n{it:03}") for it in range(256))},
        Act,
        "nodes_are_chosen",
        Reason.BEGINNING,
        "sign-drives on n000, n001, n002, n003, n004, n005, n006, n007 and 248 more",
    ),
    (
        "a drive that a container has, and that is not to be signed anew",
        {"of": spec(payload={**SIGN, **RESIGN}), "nodes": (node(taken={"s1": "WekaContainer ns/a-drive-0"}),)},
        Act,
        "nodes_are_chosen",
        Reason.BEGINNING,
        "sign-drives on n1",
    ),
    (
        "drives to be blocked",
        {"of": spec("block-drives", BLOCK), "status": RUNNING},
        Act,
        "nodes_are_told",
        Reason.NOTING,
        "node n1: its annotations say so",
    ),
    (
        "drives to be blocked on a node that went meanwhile",
        {"of": spec("block-drives", BLOCK), "status": RUNNING, "nodes": ()},
        Act,
        "nodes_are_told",
        Reason.NOTING,
        "node n1: node n1 is gone",
    ),
    ("a pod is made", {"status": RUNNING}, Act, "pods_look", Reason.LOOKING, "n1"),
    (
        "a node that does not report",
        {"status": RUNNING, "nodes": (node(ready=False),)},
        Wait,
        "pods_look",
        Reason.NODE_NOT_READY,
        "n1 does not report",
    ),
    ("a pod looks", {"status": RUNNING, "pods": (pod(),)}, Wait, "pods_look", Reason.LOOKING, "looking at n1"),
    (
        "a pod looks while another node does not report",
        {
            "status": {"status": "Running", "nodes": {"n1": {"status": "Running"}, "n2": {"status": "Running"}}},
            "nodes": (node(), node("n2", ready=False)),
            "pods": (pod(),),
        },
        Wait,
        "pods_look",
        Reason.LOOKING,
        "looking at n1",
    ),
    (
        "a pod that can't run",
        {"status": RUNNING, "pods": (pod(trouble="image can't be pulled", fix="give it"),)},
        Wait,
        "pods_look",
        Reason.LOOKING,
        "looking at n1: image can't be pulled",
    ),
    (
        "a pod has told",
        {"status": RUNNING, "pods": (pod(told(drives=["s1", "s2"], signed=["s2"])),)},
        Act,
        "nodes_are_told",
        Reason.NOTING,
        "node n1: 2 drives are signed there, 1 of them now",
    ),
    (
        "a node that went meanwhile",
        {"status": RUNNING, "nodes": ()},
        Act,
        "nodes_are_told",
        Reason.NOTING,
        "node n1 is gone",
    ),
    (
        "an annotation that can't be read",
        {"status": RUNNING, "nodes": (node(fault="it is no JSON"),), "pods": (pod(told(drives=["s1"])),)},
        Blocked,
        "nodes_are_told",
        Reason.NODE_UNREADABLE,
        "node n1: it is no JSON",
    ),
    (
        "more drives than a node's annotation holds",
        {"status": RUNNING, "pods": (pod(told(drives=[f"{it:0128}" for it in range(512)])),)},
        Act,
        "nodes_are_told",
        Reason.NOTING,
        "node n1 would have too many drives",
    ),
    (
        "a pod on another node",
        {"status": RUNNING, "pods": (msgspec.structs.replace(pod(told(drives=["s1"])), node="n2"),)},
        Act,
        "nodes_are_told",
        Reason.NOTING,
        "did not run on node n1",
    ),
    (
        "all are done",
        {"status": {"status": "Running", "nodes": {"n1": {"status": "Done"}}}},
        Act,
        "result_is_noted",
        Reason.ENDING,
        "sign-drives is done",
    ),
    (
        "done a minute ago",
        {"status": {**DONE, "completedAt": ago(60)}},
        Wait,
        "it_is_not_over",
        Reason.DONE,
        "1 drives",
    ),
    ("done long ago", {"status": {**DONE, "completedAt": ago(301)}}, Act, "it_is_not_over", Reason.DONE, "is deleted"),
    (
        "failed",
        {"status": {"status": "Failed", "nodes": {"n1": {"status": "Failed", "message": "no tool"}}}},
        Blocked,
        "it_is_not_over",
        Reason.FAILED,
        "n1: no tool",
    ),
]


@pytest.mark.parametrize(
    ("given", "verdict", "step", "reason", "said"), [it[1:] for it in ROWS], ids=[it[0] for it in ROWS]
)
def test_where_it_stands(given: dict[str, Any], verdict: type[Any], step: str, reason: Reason, said: str) -> None:
    found = stands(seen(**given))

    assert (step, verdict, reason) == (found.name, type(found.verdict), found.verdict.reason)  # type: ignore[union-attr]
    assert said in found.verdict.message  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("given", "within", "again"),
    [
        ({"status": {**DONE, "completedAt": ago(60)}}, 0, 240.5),
        ({"status": {**DONE, "completedAt": ago(60)}, "of": spec(deletionDelay="2h")}, 0, 3600.5),
        ({"status": RUNNING, "nodes": (node(ready=False),)}, 600, 0),
        ({"status": RUNNING, "pods": (pod(),)}, 900, 0),
        ({"objects": freshness.not_yet("objects")}, 120, 0),
    ],
    ids=["done", "done, and kept for long", "a node that does not report", "a pod looks", "nothing watched"],
)
def test_a_wait_has_an_end_and_a_pace(given: dict[str, Any], within: float, again: float) -> None:
    found = stands(seen(**given)).verdict

    assert isinstance(found, Wait)
    assert (within, again) == (found.within, found.again)


def test_pods_that_end_are_named_and_waited_for() -> None:
    found = stands(seen(pods=(pod(deleting=True),)), control.DELETION_STEPS).verdict

    assert isinstance(found, Wait)
    assert (Reason.LEAVING, f"ending: {NAME}", 300) == (found.reason, found.message, found.within)


def test_why_a_pod_can_t_run_is_told_with_what_to_do() -> None:
    bad = stands(seen(status=RUNNING, pods=(pod(trouble="no such image", cause="ImagePull", fix="give it"),))).verdict
    well = stands(seen(status=RUNNING, pods=(pod(),))).verdict

    assert isinstance(bad, Wait)
    assert isinstance(well, Wait)
    assert ("ImagePull", "give it") == (bad.cause, bad.fix)
    assert ("looking at n1", "", "") == (well.message, well.cause, well.fix)


def test_what_needs_no_pod_needs_no_scripts() -> None:
    lacking = (container_build.scripts("ns", states.SPOKEN), apply.Child())
    without = Fresh(observation.Objects({"n1": node()}, {}, lacking))
    over = {"status": "Running", "nodes": {"n1": {"status": "Done"}}}

    assert "nodes_are_told" == stands(seen(spec("block-drives", BLOCK), status=RUNNING, objects=without)).name
    assert "result_is_noted" == stands(seen(status=over, objects=without)).name


@pytest.mark.parametrize(("deleting", "goes"), [(False, ["p-n1"]), (True, [])])
def test_a_pod_that_has_told_is_deleted_once(deleting: bool, goes: list[str]) -> None:
    found = stands(seen(status=RUNNING, pods=(pod(told(drives=["s1"]), deleting=deleting),))).verdict

    assert isinstance(found, Act)
    assert goes == [it.ref.uid for it in found.actions if isinstance(it, decision.Delete)]


def test_each_reason_is_told_by_a_row() -> None:
    others = {Reason.TAKING_CARE, Reason.WRITING_SCRIPTS, Reason.LEAVING}  # each in a test of its own
    others |= {Reason.HEEDED, Reason.UNHEEDED}  # of facts

    assert {*Reason} == {it[4] for it in ROWS} | others


def test_what_is_to_be_confirmed_is_said_as_it_is_to_be_typed() -> None:
    found = stands(seen(spec("force-resign-drives", RESIGN))).verdict

    assert isinstance(found, Blocked)
    assert "kubectl annotate wekamanualoperation sign -n ns weka.io/confirm=force-resign-drives" == found.fix


def test_the_finalizer_and_the_scripts_come_first() -> None:
    bare = seen()
    bare = msgspec.structs.replace(bare, meta=msgspec.structs.replace(bare.meta, finalizers=()))
    lacking = (container_build.scripts("ns", states.SPOKEN), apply.Child())
    without = Fresh(observation.Objects({"n1": node()}, {}, lacking))

    assert "finalizer_is_set" == stands(bare).name
    assert "scripts_are_there" == stands(seen(status=RUNNING, objects=without)).name


def test_what_was_confirmed_is_remembered_with_the_nodes() -> None:
    found = stands(seen(spec("force-resign-drives", RESIGN), confirmed="force-resign-drives")).verdict

    assert isinstance(found, Act)
    assert isinstance(note := found.actions[0], decision.Remember)
    assert {"force-resign-drives": conditions.timestamp(states.NOW)} == note.fields["overridesUsed"]
    assert {"n1": {"status": "Running"}} == note.fields["nodes"]


def test_few_pods_run_at_the_same_time() -> None:
    many = [f"n{it}" for it in range(40)]
    status = {"status": "Running", "nodes": {it: {"status": "Running"} for it in many}}
    pods = tuple(pod(on=it) for it in many[:10])
    found = stands(seen(status=status, nodes=tuple(map(node, many)), pods=pods)).verdict

    assert isinstance(found, Act)
    assert 6 == len(found.actions)
    for running in (16, 17):
        full = stands(
            seen(status=status, nodes=tuple(map(node, many)), pods=tuple(pod(on=it) for it in many[:running]))
        )
        assert Wait is type(full.verdict)


def noted(**given: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """(what is written at the node, what of it in the status)."""
    found = stands(seen(status=RUNNING, **given)).verdict
    assert isinstance(found, Act)
    call = [it.args for it in found.actions if isinstance(it, decision.Call)]
    (note,) = [it.fields for it in found.actions if isinstance(it, decision.Remember)]
    return (call[0] if call else {}), note["nodes"]["n1"]


HASH = hashlib.sha256(b"b-1").hexdigest()
OLD = {names.DRIVES: '["s0"]', names.SIGN_HASH: "x"}


@pytest.mark.parametrize(
    ("action", "payload", "had", "said", "wanted"),
    [
        ("sign-drives", SIGN, OLD, told(drives=["s1"]), {names.DRIVES: '["s0", "s1"]', names.SIGN_HASH: HASH}),
        ("sign-drives", SIGN, {}, told(drives=["s1"], fault="one failed"), {names.DRIVES: '["s1"]'}),
        ("discover-drives", {}, OLD, told(drives=["s1"]), {names.DRIVES: '["s1"]'}),
        ("discover-drives", None, OLD, told(), {names.DRIVES: None}),
        ("discover-drives", {}, OLD, {"fault": "no tool"}, {}),
        ("force-resign-drives", RESIGN, OLD, told(drives=["s1"]), {names.DRIVES: '["s0", "s1"]'}),
        ("block-drives", BLOCK, OLD, None, {names.BLOCKED_DRIVES: '["s1"]', names.SIGN_HASH: None}),
        ("block-drives", BLOCK, {names.BLOCKED_DRIVES: '["s1"]'}, None, {}),
        (
            "block-drives",
            {"blockDrivesPayload": {"node": "n1", "physicalUUIDs": ["u1"]}},
            {},
            None,
            {names.BLOCKED_UUIDS: '["u1"]'},
        ),
        ("unblock-drives", BLOCK, {names.BLOCKED_DRIVES: '["s1","s2"]'}, None, {names.BLOCKED_DRIVES: '["s2"]'}),
        ("unblock-drives", BLOCK, {names.BLOCKED_DRIVES: '["s1"]'}, None, {names.BLOCKED_DRIVES: None}),
    ],
)
def test_what_a_node_is_told(action: str, payload: Any, had: Any, said: Any, wanted: dict[str, Any]) -> None:
    """Only what differs, and each beside what it was when that was decided."""
    live = shared.Node(
        meta.ObjectMeta(name="n1", annotations=had), status=shared.NodeStatus(node_info=shared.NodeInfo("b-1"))
    )
    pods = (pod(said),) if said is not None else ()
    call, _ = noted(
        of=spec(action, payload),
        nodes=(kind.node_seen(live, {}),),
        pods=pods,
        confirmed="force-resign-drives",
    )

    assert wanted == call.get("wanted", {})
    assert {key: had.get(key) for key in wanted} == call.get("before", {})


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("", "left no word"),
        ("Traceback\n oops", "left what can't be read: Traceback  oops"),
        ("[]", "left what can't be read"),
        ('{"drives":["a b"]}', "left what can't be read"),
        (json.dumps({"drives": [f"s{it}" for it in range(600)]}), "left what can't be read"),
        ("{}", "did not say which drives there are"),
        ({"fault": "/weka-sign-drive: not found"}, "/weka-sign-drive: not found"),
        (
            told(drives=["s1"], fault="drive /dev/x is left as it is: the node itself uses it"),
            "the node itself uses it",
        ),
    ],
)
def test_whatever_a_pod_leaves_is_bounded_and_told(said: Any, message: str) -> None:
    call, entry = noted(pods=(pod(said),))

    assert "Failed" == entry["status"]
    assert message in entry["message"]
    assert names.SIGN_HASH not in call.get("wanted", {})


def test_one_that_failed_on_a_node_is_failed() -> None:
    status = {
        "status": "Running",
        "nodes": {"n1": {"status": "Done"}, "n2": {"status": "Failed", "message": "no tool"}},
    }
    found = stands(seen(status=status)).verdict

    assert isinstance(found, Act)
    assert isinstance(note := found.actions[0], decision.Remember)
    assert "Failed" == note.fields["status"]
    assert {"n1": {}, "n2": {"message": "no tool"}} == json.loads(note.fields["result"])


def test_a_result_is_bounded() -> None:
    many = {
        f"n{it}": types.NodeResult("Done", "", 64, tuple(f"{it}-{each:020}" for each in range(64))) for it in range(256)
    }

    assert len(build.result(many)) <= 65_536
    assert 64 == json.loads(build.result(many))["n7"]["drives"]


ARGUMENTS: list[tuple[Any, str, dict[str, Any]]] = [
    ({"type": "all-not-root"}, "sign-drives", {"all": True}),
    ({"type": "device-paths", "devicePaths": ["/dev/a"]}, "sign-drives", {"paths": ["/dev/a"]}),
    ({"type": "aws-all", "devicePaths": ["/dev/a"]}, "sign-drives", {"pci": [["0x1d0f", "0xcd01"]]}),
    ({"type": "gcp-all"}, "sign-drives", {"pci": [["0x1ae0", "0x001f"]]}),
    (
        {"type": "device-identifiers", "pciDevices": {"vendorId": "0x8086", "deviceId": "1"}},
        "sign-drives",
        {"pci": [["0x8086", "1"]]},
    ),
    (
        {"type": "all-not-root", "options": {"allowEraseWekaPartitions": True, "skipTrimFormat": True}},
        "sign-drives",
        {"all": True, "anew": True, "flags": ["--allow-erase-weka-partitions", "--skip-trim-format"]},
    ),
    ({"type": "all-not-root"}, "discover-drives", {}),
]


@pytest.mark.parametrize(("sign", "action", "differs"), ARGUMENTS)
def test_what_a_pod_is_told(sign: Any, action: str, differs: dict[str, Any]) -> None:
    nothing = {"paths": [], "serials": [], "pci": [], "all": False, "flags": [], "anew": False, "taken": {"s9": "x"}}
    found = build.arguments(spec(action, {"signDrivesPayload": sign}), {"s9": "x"}, dialect.Dialect())

    assert nothing | differs == found


def test_a_drive_is_signed_anew_by_its_serial() -> None:
    found = build.arguments(spec("force-resign-drives", RESIGN), {}, dialect.Dialect())

    assert (["s1"], True, ["--allow-erase-weka-partitions"]) == (found["serials"], found["anew"], found["flags"])


def test_the_pod_is_on_its_node_alone_and_ends() -> None:
    body = build.pod(seen(spec(imagePullSecret="pull")), node()).body
    content, metadata = body["spec"], body["metadata"]
    terms = content["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]

    assert [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}] == terms
    assert ("Never", 600, False) == (
        content["restartPolicy"],
        content["activeDeadlineSeconds"],
        content["automountServiceAccountToken"],
    )
    assert NAME == metadata["name"]
    assert [("WekaManualOperation", "sign", "u-op", True)] == [
        (it["kind"], it["name"], it["uid"], it["controller"]) for it in metadata["ownerReferences"]
    ]
    assert [{"name": "pull"}] == content["imagePullSecrets"]


def test_a_node_that_takes_no_other_pods_takes_this_one() -> None:
    """Drives are exchanged, and signed, while a node is out of use."""
    tolerated = build.pod(seen(spec()), node()).body["spec"]["tolerations"]

    assert {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"} in tolerated


def test_deleted_its_pods_go_first() -> None:
    running, ending = seen(pods=(pod(),)), seen(pods=(pod(deleting=True),))

    steps = control.DELETION_STEPS
    assert ("pods_are_gone", Act) == ((found := stands(running, steps)).name, type(found.verdict))
    assert ("pods_are_gone", Wait) == ((found := stands(ending, steps)).name, type(found.verdict))
    assert ("it_may_go", Act) == ((found := stands(seen(), steps)).name, type(found.verdict))
    unbound = seen(binding=Fresh(None), allowed=False)
    assert "nothing_was_made" == stands(unbound, steps).name


def test_people_see_each_node() -> None:
    rows = list(
        screen.rows({"status": "Failed", "nodes": {"a": {"status": "Done", "drives": 2}, "b": {"message": "no"}}})
    )

    assert ["Status", "Nodes"] == [it.label for it in rows]
    assert "1 of 2 done" == rows[1].text
