"""What is decided for a RuntimeVersion: each step, verdict and reason, by tables."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from moorage.api import builtin, common_status, conditions, meta
from moorage.children import apply, parts
from moorage.children.reasons import ObjectReason, PodReason
from moorage.operators import accounts
from moorage.operators.kre import config, kinds, names
from moorage.operators.kre.reasons import VersionReason as Reason
from moorage.operators.kre.version import build, control, facts, streams, types
from moorage.operators.kre.version.inputs import Inputs
from moorage.operators.kre.version.observation import ActiveSeen, NatsSeen, NodeSeen, ObjectsSeen, RuntimeSeen, Seen
from moorage.operators.kre.version.streams import ConsumerSeen, StreamSeen
from moorage.operators.kre.version.wanted import Wanted
from moorage.runtime import decision, freshness
from moorage.runtime.decision import Act, Blocked, Wait
from moorage.runtime.freshness import Failed, Fresh, Stale
from tests.unit import verdicts

from . import versions
from .versions import STREAM

RIGHTS = accounts.Rights("kre", "moorage-system", "moorage-accounts", "moorage-kre-namespace")
BOUND = accounts.BindingSeen("b", "1", role=True, subject=True)
META = meta.ObjectMeta(name="one", namespace="ns", uid="u-one", finalizers=(kinds.VERSION_FINALIZER,))
SPEC = versions.spec()
OF = names.Names("demo", "v1")
WANTED = streams.wanted(OF, SPEC.graph, "one", 1, 60.0)
ACK = 60_000_000_000
NATS = NatsSeen(
    {each.name: StreamSeen({k: v for k, v in each.config.items() if k != "metadata"}, "one") for each in WANTED},
    {STREAM: {name: ConsumerSeen("one", ACK) for name in WANTED[0].consumers}},
)
MADE = Wanted(META, SPEC, "demo", config.Images(), "i")
CHILDREN = tuple((each, apply.Child(f"u-{each.name}")) for each in build.children(MADE))
RUNTIME = RuntimeSeen("demo", "u-demo")
ACTIVE = build.active(MADE, kinds.RUNTIME.ref("ns", "demo", "u-demo"))
DOWN = Failed("Unreachable", "nats does not answer")
LED = ActiveSeen("a", "7", "one", ACTIVE, apply.Child("a"))


def node(workflow: str, name: str, **changed: Any) -> NodeSeen:
    ref = kinds.DEPLOYMENT.ref("ns", OF.deployment(workflow, name) if workflow else OF.entrypoint, "d")
    return msgspec.structs.replace(NodeSeen(workflow, name, ref, 1, 1), **changed)


NODES = (node("greet", "first"), node("greet", "last"), node("", "entrypoint"))


def weak(**changed: Any) -> dict[str, Any]:
    """The first node is not ready."""
    return {"objects": there(nodes=(node("greet", "first", ready=False, pods_ready=0, **changed), *NODES[1:]))}


NOTHING = Fresh(ObjectsSeen())
NO_STREAMS = Fresh(NatsSeen())


def owned(children: Any = CHILDREN) -> tuple[parts.SurplusSeen, ...]:
    return tuple(parts.SurplusSeen(it.resource, it.name, child.uid) for it, child in children if child.uid)


def there(**changed: Any) -> Fresh[ObjectsSeen]:
    """All objects as they should be, but for what is changed."""
    found = ObjectsSeen(owned(), CHILDREN, NODES, ActiveSeen(wanted=ACTIVE))
    return Fresh(msgspec.structs.replace(found, **changed))


OLD = parts.SurplusSeen(kinds.DEPLOYMENT, "old", "o")


def leaving(*nodes: NodeSeen, **changed: Any) -> dict[str, Any]:
    """A node is no longer in the version."""
    return {"objects": there(there=(*owned(), msgspec.structs.replace(OLD, **changed)), nodes=nodes or NODES)}


def child(at: int, **changed: Any) -> dict[str, Any]:
    rows = list(CHILDREN)
    rows[at] = (rows[at][0], msgspec.structs.replace(rows[at][1], **changed))
    return {"objects": there(children=tuple(rows))}


def nats(**changed: Any) -> dict[str, Any]:
    return {"nats": Fresh(msgspec.structs.replace(NATS, **changed))}


def stream(name: str = STREAM, **changed: Any) -> dict[str, Any]:
    """One stream is otherwise; or not there, without a word."""
    others = {each: seen for each, seen in NATS.streams.items() if each != name}
    if not changed:
        return nats(streams=others)
    mark = changed.pop("mark", "one")
    return nats(streams=others | {name: StreamSeen({**NATS.streams[name].config, **changed}, mark)})


def given(**changed: Any) -> dict[str, Any]:
    return {"inputs": Fresh(Inputs(**changed))}


def runtimes(*found: RuntimeSeen, **changed: Any) -> dict[str, Any]:
    return {"runtimes": Fresh(found or (msgspec.structs.replace(RUNTIME, **changed),))}


def seen(**changed: Any) -> Seen:
    """A version that runs and needs nothing, but for what is changed."""
    of = META
    if "annotations" in changed:
        of = msgspec.structs.replace(of, annotations=changed.pop("annotations"))
    if "finalizers" in changed:
        of = msgspec.structs.replace(of, finalizers=changed.pop("finalizers"))
    if changed.pop("deleting", False):
        of = msgspec.structs.replace(of, deletion_timestamp="2026-01-01T00:00:00Z")
    base: dict[str, Any] = {
        "meta": of,
        "spec": SPEC,
        "status": types.RuntimeVersionStatus(made=True, runtime="demo"),
        "rights": RIGHTS,
        "binding": Fresh(BOUND),
        "neighbours": 1,
        "runtimes": Fresh((RUNTIME,)),
        "inputs": Fresh(Inputs()),
        "nats": Fresh(NATS),
        "objects": there(),
    }
    return Seen(**base | changed)


def decided(it: Seen) -> decision.Decision:
    steps = control.DELETION_STEPS if it.meta.deleting else control.STEPS
    return decision.decide(it, steps=steps, facts=facts.FACTS, report=facts.report)


def verdict(it: Seen) -> Any:
    """Where the steps stop."""
    standing = decided(it).standing
    assert standing is not None, "all steps are done"
    return standing.verdict


def does(found: Any) -> list[str]:
    """Its actions in few words."""
    return [verdicts.short(action) for action in found.actions]


def test_what_runs_as_it_should_needs_nothing() -> None:
    """All steps are done, all facts are true but that it is published."""
    found = decided(seen())

    assert found.standing is None
    assert {"Started": True, "Published": False, "ConfigComplete": True} == {f.type: f.status for f in found.facts}
    assert ("STARTED", 3, 3) == tuple(found.report[field] for field in ("phase", "ready", "nodeCount"))
    assert (STREAM,) == found.report["streams"]
    assert ("demo_v1_greet_models",) == found.report["objectStores"]
    assert 4 == len(found.report["keyValueStores"])
    status = msgspec.to_builtins({"observedGeneration": 1, **found.report})
    assert found.report["nodes"] == msgspec.convert(status, types.RuntimeVersionStatus).nodes


FIRST = f"{STREAM}-entrypoint-first"
WITH_STORE = versions.spec(files={"object": {"key": "v1.krt", "digest": f"sha256:{'0' * 64}"}})
NOT_THERE = apply.Child()

RUNNING: list[tuple[dict[str, Any], type[Any], str, str]] = [
    ({"allowed": False}, Blocked, Reason.NAMESPACE_NOT_ALLOWED, "namespace ns may hold no Runtime"),
    ({"finalizers": ()}, Act, Reason.TAKING_CARE, "the finalizer is set"),
    ({"annotations": {common_status.RECONCILE_AT: "1"}}, Act, Reason.RETRYING, "looked at afresh"),
    ({"runtimes": freshness.not_yet("runtimes")}, Wait, Reason.RUNTIME_NOT_FOUND, "not looked at yet"),
    (
        {"runtimes": Fresh(()), "others": ("demi",), "spec": versions.spec(runtimeRef={"name": "demo"})},
        Wait,
        Reason.RUNTIME_NOT_FOUND,
        "no Runtime demo .*, but demi",
    ),
    ({"runtimes": Fresh(())}, Wait, Reason.RUNTIME_NOT_FOUND, "no Runtime in this"),
    (runtimes(RuntimeSeen("a"), RuntimeSeen("b")), Blocked, Reason.AMBIGUOUS_RUNTIME, "several .*: a, b"),
    (runtimes(name="other"), Blocked, Reason.MADE_ELSEWHERE, "made in Runtime demo, and now"),
    ({"older": "old"}, Blocked, Reason.VERSION_TAKEN, "RuntimeVersion old, which is older, is version v1 too"),
    ({"binding": freshness.not_yet("binding")}, Wait, Reason.BINDING, "not looked at yet"),
    ({"binding": Fresh(None)}, Act, Reason.BINDING, "rights in ns are bound"),
    ({"objects": freshness.not_yet("objects")}, Wait, Reason.OBJECTS_UNKNOWN, "objects not looked at yet"),
    (
        runtimes(ready=False) | {"status": types.RuntimeVersionStatus(), "nats": NO_STREAMS, "objects": NOTHING},
        Wait,
        Reason.RUNTIME_NOT_READY,
        "Runtime demo is not Ready",
    ),
    ({"status": types.RuntimeVersionStatus()}, Act, Reason.NOTING, "what there is of it is noted"),
    (
        {"status": types.RuntimeVersionStatus(), "nats": NO_STREAMS},
        Act,
        Reason.NOTING,
        "what there is of it is noted",
    ),
    (runtimes(deleting=True), Wait, Reason.RUNTIME_NOT_READY, "is being deleted"),
    ({"inputs": freshness.not_yet("inputs")}, Wait, Reason.CONFIG_UNKNOWN, "inputs not looked at yet"),
    (given(missing={"A": "", "B": "no Secret s"}), Blocked, Reason.CONFIG_MISSING, "A has no value, .*B .*: no Secret"),
    (given(files="there is no ConfigMap f"), Blocked, Reason.FILES_WRONG, "^there is no ConfigMap f$"),
    (given(proto="there is no ConfigMap p"), Blocked, Reason.FILES_WRONG, "^there is no ConfigMap p$"),
    ({"spec": WITH_STORE, "fetcher": False}, Blocked, Reason.FILES_WRONG, "has no image that brings it"),
    (given(secret="there is no Secret k"), Wait, Reason.CREDENTIALS_WRONG, "there is no Secret k"),
    ({"nats": DOWN}, Wait, Reason.NATS_UNREACHABLE, "nats does not answer"),
    (stream(mark="two"), Blocked, Reason.FOREIGN_STREAM, f"NATS has stream {STREAM}, which moorage did not make"),
    (stream("OBJ_demo_v1_greet_models", mark=""), Blocked, Reason.FOREIGN_STREAM, "object store demo_v1_greet_models"),
    (stream("KV_key-store_demo_v1", mark=""), Blocked, Reason.FOREIGN_STREAM, "key-value bucket key-store_demo_v1,"),
    (stream(), Act, Reason.MAKING_STREAMS, f"stream {STREAM}"),
    (stream("KV_key-store_demo_v1"), Act, Reason.MAKING_STREAMS, "key-value bucket key-store_demo_v1$"),
    (stream(subjects=WANTED[0].config["subjects"][1:]), Act, Reason.MAKING_STREAMS, STREAM),
    (stream(retention="limits"), Act, Reason.MAKING_STREAMS, STREAM),
    (nats(consumers={STREAM: {FIRST: ConsumerSeen("one", ACK)}}), Act, Reason.MAKING_STREAMS, STREAM),
    (
        nats(consumers={STREAM: {**NATS.consumers[STREAM], FIRST: ConsumerSeen("one", 1)}}),
        Act,
        Reason.MAKING_STREAMS,
        STREAM,
    ),
    (
        {"nats": Stale(NatsSeen(), 0.0, "it was changed")},
        Wait,
        Reason.NATS_UNREACHABLE,
        "what NATS has is asked anew: it was changed",
    ),
    ({"objects": there(children=None)}, Wait, Reason.OBJECTS_UNKNOWN, "not known yet"),
    (child(0, uid=""), Act, Reason.APPLYING, r"ConfigMap/demo-v1-krt-conf \(missing\)"),
    (child(3, differs=("spec.replicas",)), Act, Reason.APPLYING, r"Deployment/demo-v1-greet-first \(changed at"),
    (child(3, deleting=True), Wait, Reason.APPLYING, "Deployment/demo-v1-greet-first is being deleted"),
    (weak(reason="PodsNotReady", message="0 of 1 replicas are ready"), Wait, ObjectReason.PODS_NOT_READY, "0 of 1"),
    (weak(reason="ImagePull", message="no image a/b:1"), Wait, PodReason.IMAGE_PULL, "greet-first: no image a/b:1"),
    (weak(reason="RolloutPaused", message="paused"), Blocked, ObjectReason.ROLLOUT_PAUSED, "greet-first: paused"),
    (
        leaving(*NODES[:2], node("", "entrypoint", former=1)),
        Wait,
        Reason.NODE_LEAVING,
        "Deployment/old: needed by pods of before, of the entrypoint",
    ),
    (leaving(node("greet", "first", former=1), deleting=True), Wait, Reason.NODE_LEAVING, "is there still"),
    (leaving(), Act, Reason.NODE_LEAVING, "removed: Deployment/old"),
    (leaving(deleting=True), Wait, Reason.NODE_LEAVING, "Deployment/old"),
    (
        nats(consumers={STREAM: {**NATS.consumers[STREAM], "old": ConsumerSeen("one", ACK, 3)}}),
        Act,
        Reason.NODE_LEAVING,
        "no longer asked for in NATS: consumer old",
    ),
    (
        stream(subjects=[*WANTED[0].config["subjects"], f"{STREAM}.old"]),
        Act,
        Reason.NODE_LEAVING,
        f"subjects of stream {STREAM}",
    ),
    (
        nats(streams=NATS.streams | {"demo_v1_Old": StreamSeen({}, "one")}),
        Act,
        Reason.NODE_LEAVING,
        "stream demo_v1_Old",
    ),
    (
        {
            "nats": Stale(
                msgspec.structs.replace(NATS, streams=NATS.streams | {"x": StreamSeen({}, "one")}), 0.0, "lost"
            )
        },
        Wait,
        Reason.NATS_UNREACHABLE,
        "asked anew: lost",
    ),
    (runtimes(published="v1"), Act, Reason.PUBLISHING, r"Service/demo-active-entrypoint \(missing\)"),
    (
        runtimes(published="v1")
        | {"objects": there(active=msgspec.structs.replace(LED, child=apply.Child("a", deleting=True)))},
        Wait,
        Reason.SERVICE_ENDING,
        "is being deleted",
    ),
    ({"objects": there(active=LED)}, Act, Reason.UNPUBLISHING, "demo-active-entrypoint no longer leads here"),
]


@pytest.mark.parametrize(
    ("changed", "kind", "reason", "message"), RUNNING, ids=[f"{r}-{n}" for n, (_, _, r, _) in enumerate(RUNNING)]
)
def test_where_a_version_that_is_to_run_stands(
    changed: dict[str, Any], kind: type[Any], reason: str, message: str
) -> None:
    """One thing is amiss, and just that is told."""
    found = verdict(seen(**changed))

    assert isinstance(found, kind)
    assert reason == found.reason
    assert re.search(message, found.message), found.message
    assert decision.next_of(found.reason)


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(runtimes(ready=False), id="the Runtime is not ready, and it runs already"),
        pytest.param({"nats": Stale(NATS, 0.0, "lost")}, id="nothing is to be done in NATS"),
        pytest.param(
            nats(streams=NATS.streams | {"KV_old": StreamSeen({}, "one"), "OBJ_old": StreamSeen({}, "one")}),
            id="a store without a node keeps what is in it",
        ),
        pytest.param(nats(streams=NATS.streams | {"x": StreamSeen({}, "two")}), id="another version's stream"),
        pytest.param(
            nats(consumers={STREAM: {**NATS.consumers[STREAM], "e": ConsumerSeen("", 0, 3)}}),
            id="somebody else's consumer",
        ),
        pytest.param(stream(num_replicas=3), id="more copies than needed"),
        pytest.param(
            nats(consumers={STREAM: {**NATS.consumers[STREAM], FIRST: ConsumerSeen("", 1)}}),
            id="a consumer that a node has made itself",
        ),
        pytest.param({"objects": there(active=msgspec.structs.replace(LED, version="two"))}, id="another is led to"),
        pytest.param(runtimes(published="v2") | {"objects": there(active=LED)}, id="the next has not started"),
        pytest.param(runtimes(published="v1") | {"objects": there(active=LED)}, id="published"),
    ],
)
def test_nothing_is_to_be_done(changed: dict[str, Any]) -> None:
    """Whoever else has something there, or however it came to be."""
    assert decided(seen(**changed)).standing is None


def test_what_is_lost_in_nats_is_made_as_it_should_be() -> None:
    """A stream with its consumers; and what is in it is written down first, once."""
    lost = stream()
    lost["nats"] = Fresh(msgspec.structs.replace(lost["nats"].value, consumers={}))
    found = verdict(seen(**lost))
    first = verdict(seen(status=types.RuntimeVersionStatus(), nats=NO_STREAMS, objects=NOTHING)).actions[0]

    assert {"made": True, "runtime": "demo"} == first.fields
    assert ["nats.put_stream", "nats.put_consumer", "nats.put_consumer"] == [it.operation for it in found.actions]
    assert {"name": STREAM, "subjects": WANTED[0].config["subjects"]} == found.actions[0].args
    assert [{"stream": STREAM, "name": name} for name in WANTED[0].consumers] == [it.args for it in found.actions[1:]]


@pytest.mark.parametrize("how", [{}, {"spec": versions.spec(running=False), "objects": there(there=(), nodes=())}])
def test_what_was_only_not_read_again_yet_is_no_news(how: dict[str, Any]) -> None:
    """After each change NATS is asked anew, which takes a moment: the status keeps what it says."""
    assert verdict(seen(nats=Stale(NatsSeen(), 0.0, "it was changed"), **how)).unseen


def test_a_stream_is_widened_before_it_is_narrowed() -> None:
    """Who publishes to what is to go may still run; once all is rolled out it goes."""
    own = WANTED[0].config["subjects"]
    wide = verdict(seen(**stream(subjects=[*own[1:], f"{STREAM}.old"])))
    narrow = verdict(seen(**stream(subjects=[*own, f"{STREAM}.old"])))

    assert [*own, f"{STREAM}.old"] == wide.actions[0].args["subjects"]
    assert own == narrow.actions[0].args["subjects"]


def test_a_node_that_leaves_is_there_until_its_pods_are_gone() -> None:
    """They still answer for what they took, so that only then nobody reads by its consumer any more."""
    found = verdict(seen(**leaving()))

    assert ["Foreground"] == [each.propagation for each in found.actions if isinstance(each, decision.Delete)]


def test_a_pod_from_before_that_does_not_end_is_somebody_s_business() -> None:
    former = verdict(seen(**leaving(node("greet", "first", former=1), *NODES[1:])))

    assert (180.0, "see why these pods do not end") == (former.within, former.fix)


@pytest.mark.parametrize(
    ("changed", "counting"),
    [
        ({}, ""),
        ({"deleting": True}, "while calls come in"),
        ({"spec": versions.spec(running=False)}, "while calls come in"),
        ({"spec": versions.spec(running=False), "objects": Fresh(ObjectsSeen(there=(OLD,)))}, "after the last call"),
    ],
)
def test_a_count_from_before_the_entrance_was_closed_is_none_of_after(changed: dict[str, Any], counting: str) -> None:
    """It is read by another name, and so anew."""
    assert counting == seen(**changed).counting


def test_the_entrance_is_applied_last() -> None:
    """What comes in before its readers are there would be lost; and no name of others is taken."""
    made = tuple((each, NOT_THERE) for each, _ in CHILDREN)
    found = verdict(seen(objects=there(children=made, nodes=(), there=())))

    assert [
        *("ConfigMap/demo-v1-krt-conf", "ConfigMap/demo-v1-conf-files", "Secret/demo-v1-mongo"),
        *("Deployment/demo-v1-greet-first", "Deployment/demo-v1-greet-last"),
        *("Deployment/demo-v1-entrypoint", "Service/demo-v1-entrypoint"),
    ] == [f"{it.body['kind']}/{it.body['metadata']['name']}" for it in found.actions]
    assert {"name_is_free"} == {guard.check for it in found.actions for guard in it.require}
    assert ["mongo"] == [it.fill for it in found.actions if it.body["kind"] == "Secret"]


def test_a_start_that_takes_too_long_is_a_person_s_business() -> None:
    """By the pod's own reason, and what runs stays for a look."""
    it = seen(**weak(reason="ImagePull", message="no such image"))
    found = verdict(it)

    assert control.START_WITHIN == found.within
    assert "spec.running=false stops it" in found.fix
    assert "ERROR" == decided(it).report["phase"]


def graph(**nodes: list[str]) -> types.RuntimeVersionSpec:
    rows = [{"name": name, "image": "a/b:1", "src": "a.py", "subscriptions": own} for name, own in nodes.items()]
    flow = {"name": "greet", "entrypoint": "Greet", "exitpoint": "last", "nodes": rows}
    return versions.spec(workflows=[flow])


@pytest.mark.parametrize(
    ("spec", "message", "fix"),
    [
        (
            graph(first=["entrypoint"], last=["frist"]),
            r"^spec.workflows\[0\].nodes\[1\].subscriptions\[0\]: node 'last' subscribes to 'frist', which is no node",
            "did you mean first",
        ),
        (graph(first=["nobody"], last=["nowhere"]), "; and 1 more$", "there are: entrypoint, first, last"),
        (
            graph(first=["entrypoint"], last=["last"]),
            "no way leads from the entrypoint to the exitpoint",
            "subscribe to",
        ),
        (graph(first=["last"], last=["first"]), "no way leads", "have the first node subscribe to entrypoint"),
        (graph(last=["entrypoint", "entrypoint"]), "subscribes to 'entrypoint' twice", "take one out"),
        (graph(last=["entrypoint.topic"]), "the entrypoint publishes no topics", "write entrypoint"),
        (graph(first=["entrypoint"], last=["first.a.b"]), "'a.b' is no topic", "one word"),
        (
            graph(a=["entrypoint"], **{"a-b": ["entrypoint"], "c": ["a-b"], "b-c": ["a"]}, last=["c", "b-c"]),
            "node 'b-c' with 'a' and node 'c' with 'a-b' would read by one consumer",
            "rename one of the nodes",
        ),
    ],
)
def test_a_broken_graph_is_told_by_its_field_before_anything_is_made(
    spec: types.RuntimeVersionSpec, message: str, fix: str
) -> None:
    """With what to do, and how many more there are."""
    found = verdict(seen(spec=spec, **stream()))

    assert (Blocked, Reason.GRAPH_BROKEN) == (type(found), found.reason)
    assert re.search(message, found.message), found.message
    assert fix in found.fix


def test_two_nodes_of_one_name_are_told() -> None:
    """They would publish as one. The schema refuses them, as a list by name; a row of version 1 may have them."""
    nodes = [{"name": "first", "image": "a/b:1", "src": "a.py"}]
    flow = {"name": "greet", "entrypoint": "Greet", "sequential": ["first", "first"]}
    found = verdict(seen(spec=versions.spec(nodes=nodes, workflows=[flow])))

    assert "two nodes of workflow 'greet' are called 'first'" in found.message


def test_circles_are_allowed_and_told() -> None:
    """Without a way out messages go round for ever; with one they are somebody's intent."""
    found = decided(seen(spec=graph(first=["entrypoint", "last"], last=["first"])))

    assert ("spec.workflows[0].nodes[0].subscriptions: messages can go round: first -> last -> first",) == (
        found.report["notes"]
    )
    assert "graph_is_sound" not in [taken.name for taken in found.steps if decision.stops(taken.verdict)]


def test_a_row_is_a_graph_too() -> None:
    """Version 1 of the format, in the spec."""
    nodes = [{"name": name, "image": "a/b:1", "src": "a.py"} for name in ("first", "last")]
    workflows = [{"name": "greet", "entrypoint": "Greet", "sequential": ["first", "last"]}]
    spec = versions.spec(nodes=nodes, workflows=workflows)

    assert "last" == spec.graph[0].exitpoint
    assert [("entrypoint",), ("first",)] == [node.subscriptions for node in spec.graph[0].nodes]
    assert not spec.told.errors


@pytest.mark.parametrize(
    ("nodes", "subscriptions", "message"),
    [(types.MOST_NODES + 1, 1, "it has 201 nodes"), (11, 50, "it has 550 subscriptions")],
)
def test_what_is_too_large_is_told_before_it_is_read(nodes: int, subscriptions: int, message: str) -> None:
    """It would be read and compared where all others wait."""
    own = [f"n{at}" for at in range(subscriptions)]
    flows = []
    for at in range(0, nodes, 100):
        rows = [
            {"name": f"n{n}", "image": "a", "src": "a", "subscriptions": own} for n in range(at, min(at + 100, nodes))
        ]
        flows.append({"name": f"w{at}", "entrypoint": f"E{at}", "exitpoint": f"n{at}", "nodes": rows})
    it = seen(spec=versions.spec(workflows=flows))

    assert (Reason.GRAPH_BROKEN, "split the version") == (verdict(it).reason, verdict(it).fix)
    assert message in verdict(it).message
    assert () == it.wanted
    assert "notes" not in decided(it).report


# --- publishing -------------------------------------------------------------------------------------------------------


def test_a_version_is_led_to_by_one_write_once_all_is_ready() -> None:
    """Until then the other one leads; what was led to already is put right whatever nodes do."""
    published, other = runtimes(published="v1"), ActiveSeen("a", "7", "two", ACTIVE, apply.Child("a", differs=("x",)))
    nodes = weak(reason="PodsNotReady", message="0 of 1")["objects"].value.nodes

    def stands(**changed: Any) -> Any:
        return verdict(seen(**published, **changed))

    assert ["apply Service/demo-active-entrypoint a"] == does(stands(objects=there(active=other)))
    assert ObjectReason.PODS_NOT_READY == stands(objects=there(active=other, nodes=nodes)).reason
    broken = msgspec.structs.replace(other, version="one")
    assert Reason.PUBLISHING == stands(objects=there(active=broken, nodes=nodes)).reason
    was = types.RuntimeVersionStatus(made=True, runtime="demo", published=True)
    gone = ActiveSeen(wanted=ACTIVE)
    found = stands(objects=there(active=gone, nodes=nodes), status=was)
    guarded = "apply Service/demo-active-entrypoint new if name_is_free Service demo-active-entrypoint"
    assert [guarded] == does(found)


def test_nothing_is_published_by_one_delete_of_what_was_seen() -> None:
    """By its very version: another may have been led there since."""
    found = verdict(seen(objects=there(active=LED)))

    assert ["delete Service/demo-active-entrypoint a"] == does(found)
    assert "7" == found.actions[0].resource_version


STANDING_IN = runtimes(published="v2", previous="v1") | {"published_fails": True}
"""Version v2 is published, and broken; v1 was published before."""
YIELDING = runtimes(published="v1", previous="v0") | {"published_fails": True, "previous_is_whole": True}
OTHER = ActiveSeen("a", "7", "two", ACTIVE, apply.Child("a", differs=("x",)))


def test_the_version_before_stands_in_for_one_that_is_broken() -> None:
    """By the same one write, once it is whole, and as long as the other is broken; who may stay as it is does so."""
    led = ["apply Service/demo-active-entrypoint a"]
    whole = seen(**STANDING_IN, objects=there(active=OTHER))
    weaker = weak(reason="PodsNotReady")["objects"].value
    serving = seen(**STANDING_IN, objects=there(active=LED))

    assert led == does(verdict(whole))
    assert Reason.PUBLISHING != verdict(seen(**STANDING_IN, objects=there(active=OTHER, nodes=weaker.nodes))).reason
    assert None is decided(seen(**STANDING_IN | {"published_fails": False}, objects=there(active=OTHER))).standing
    assert None is decided(seen(**STANDING_IN | runtimes(published="v2"), objects=there(active=OTHER))).standing
    assert (None, "PUBLISHED", True) == (
        decided(serving).standing,
        *(decided(serving).report[field] for field in ("phase", "published")),
    )
    told = next(each for each in decided(serving).facts if each.type == "Published")
    assert (True, Reason.STANDS_IN, "in place of version v2") == (told.status, told.reason, told.message)


def test_a_broken_version_yields_until_it_is_whole() -> None:
    """To one that is whole; else it is led to still. Whole again it takes its place."""
    nodes = weak(reason="PodsNotReady", message="0 of 1")["objects"].value.nodes
    was = types.RuntimeVersionStatus(made=True, runtime="demo", published=True)
    broken = {"objects": there(active=OTHER, nodes=nodes), "status": was}

    assert Reason.PUBLISHING != verdict(seen(**YIELDING, **broken)).reason
    assert Reason.PUBLISHING == verdict(seen(**YIELDING | {"previous_is_whole": False}, **broken)).reason
    assert Reason.PUBLISHING == verdict(seen(**YIELDING, objects=there(active=OTHER))).reason
    told = next(each for each in decided(seen(**YIELDING, **broken)).facts if each.type == "Published")
    assert told.message.endswith("; version v0 stands in until then")


# --- stopping ---------------------------------------------------------------------------------------------------------

STOPPED = versions.spec(running=False)
CLOSED = there(there=owned()[:5], children=None, nodes=NODES[:2])
STAYING = f"{STREAM}-first-last"
WAITING = nats(consumers={STREAM: {FIRST: ConsumerSeen("one", ACK), STAYING: ConsumerSeen("one", ACK, 7)}})
ENDING = there(
    there=tuple(msgspec.structs.replace(each, deleting=each.name.endswith("entrypoint")) for each in owned())
)

STOPPING: list[tuple[dict[str, Any], type[Any], Reason, str]] = [
    ({"objects": DOWN}, Wait, Reason.OBJECTS_UNKNOWN, "does not answer"),
    (runtimes(published="v1"), Blocked, Reason.PUBLISHED, "version v1 is published by Runtime demo, so it can't be"),
    ({"objects": there(active=LED)}, Act, Reason.UNPUBLISHING, "no longer leads here"),
    (
        runtimes(published="v2") | {"objects": there(active=LED)},
        Wait,
        Reason.STILL_SERVING,
        "calls are led here until version v2 has started, which Runtime demo publishes",
    ),
    ({"status": types.RuntimeVersionStatus()}, Act, Reason.NOTING, "what there is of it is noted"),
    ({}, Act, Reason.CLOSING, "removed: Deployment/demo-v1-entrypoint, Service/demo-v1-entrypoint"),
    ({"objects": ENDING}, Wait, Reason.CLOSING, "is there still: Deployment/demo-v1-entrypoint"),
    ({"objects": CLOSED, "nats": DOWN}, Wait, Reason.NATS_UNREACHABLE, "nats does not answer"),
    ({"objects": CLOSED, "nats": Stale(NATS, 0.0, "no leader")}, Wait, Reason.NATS_UNREACHABLE, "anew: no leader"),
    ({"objects": CLOSED, **WAITING}, Wait, Reason.DRAINING, f"not taken: {STAYING} 7$"),
    ({"objects": CLOSED, **WAITING, "annotations": {kinds.DISCARD: "true"}}, Act, Reason.STOPPING, "ConfigMap"),
    ({"objects": CLOSED}, Act, Reason.STOPPING, "removed: ConfigMap/demo-v1-krt-conf, .*Deployment/demo-v1-greet-last"),
    ({"objects": NOTHING}, Act, Reason.STOPPING, "removed in NATS: .*object store demo_v1_greet_models"),
]


@pytest.mark.parametrize("deleting", [False, True], ids=["stopped", "deleted"])
@pytest.mark.parametrize(
    ("changed", "kind", "reason", "message"), STOPPING, ids=[f"{r}-{n}" for n, (_, _, r, _) in enumerate(STOPPING)]
)
def test_where_a_version_that_is_to_stand_still_stands(
    changed: dict[str, Any], kind: type[Any], reason: Reason, message: str, deleting: bool
) -> None:
    """The same, whether it is stopped or deleted."""
    how: dict[str, Any] = {"deleting": True} if deleting else {"spec": STOPPED}
    found = verdict(seen(**how | changed))

    assert isinstance(found, kind)
    assert reason == found.reason
    assert re.search(message, found.message), found.message
    assert decision.next_of(found.reason)
    if reason is Reason.PUBLISHED:
        assert f"can't be {'deleted' if deleting else 'stopped'}" in found.message


def test_a_stop_that_does_not_drain_is_a_person_s_business() -> None:
    """With the counts, and what to do."""
    found = verdict(seen(spec=STOPPED, objects=CLOSED, **WAITING))

    assert (600.0, 5.0) == (found.within, found.again)
    assert f"annotate this with {kinds.DISCARD}=true" in found.fix


def test_only_what_its_own_nodes_have_not_taken_is_waited_for() -> None:
    """The entrypoint's own consumer, and another version's stream, hold nobody up."""
    others = {
        STREAM: {"e": ConsumerSeen("", 0, 9)},
        "demo_v2_Greet": {"x": ConsumerSeen("one", ACK, 9)},
    }
    found = verdict(seen(spec=STOPPED, objects=CLOSED, **nats(consumers=others)))

    assert Reason.STOPPING == found.reason


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(runtimes(deleting=True), id="its Runtime goes"),
        pytest.param({"inputs": DOWN}, id="nothing is known of its config"),
        pytest.param(given(missing={"A": ""}), id="a value is missing"),
        pytest.param(given(files="x"), id="files are missing"),
        pytest.param(given(secret="x"), id="credentials are missing"),
        pytest.param(nats(streams={STREAM: StreamSeen({}, "two")}), id="a stream is somebody else's"),
        pytest.param({"objects": Fresh(ObjectsSeen(nodes=weak(reason="x")["objects"].value.nodes))}, id="a node fails"),
        pytest.param({"objects": Fresh(ObjectsSeen(children=CHILDREN))}, id="nothing is there"),
        pytest.param(nats(streams={}, consumers={STREAM: {"old": ConsumerSeen("one", 0)}}), id="a consumer is left"),
    ],
)
def test_what_stands_still_needs_nothing_that_a_start_does(changed: dict[str, Any]) -> None:
    """It is settled, whatever is amiss."""
    gone = {"spec": STOPPED, "objects": NOTHING, "nats": Fresh(NatsSeen())}
    found = decided(seen(**gone | changed))

    assert found.standing is None


def test_a_stopped_version_keeps_its_memory() -> None:
    """Key-value buckets stay until it is deleted."""
    buckets = {name: each for name, each in NATS.streams.items() if name.startswith("KV_")}
    left = nats(streams=buckets, consumers={})
    found = decided(seen(spec=STOPPED, objects=NOTHING, **left))

    assert (None, "STOPPED") == (found.standing, found.report["phase"])
    gone = verdict(seen(deleting=True, objects=NOTHING, **left))
    assert [("nats.drop_stream", {"name": name}) for name in sorted(buckets)] == [
        (action.operation, action.args) for action in gone.actions
    ]


def test_what_is_not_this_version_s_is_not_removed() -> None:
    """Of whatever name."""
    foreign = {STREAM: StreamSeen({}, "two"), "KV_key-store_demo_v1": StreamSeen({}, "")}
    found = verdict(seen(deleting=True, objects=NOTHING, **nats(streams=foreign)))

    assert Reason.LEAVING == found.reason


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"objects": NOTHING, "nats": Fresh(NatsSeen())}, "nothing is left of version v1"),
        ({"annotations": {common_status.ON_DELETE: "Orphan"}}, "all of version v1 stays where it is"),
        ({"runtimes": Fresh(()), "objects": NOTHING, "nats": DOWN}, "its Runtime is gone, and all that it had there"),
        ({"status": types.RuntimeVersionStatus(), "objects": NOTHING, "nats": DOWN}, "nothing is left of version v1"),
        ({"namespace_ending": True, "binding": DOWN}, "the namespace is being deleted with everything in it"),
        ({"binding": Fresh(None), "status": types.RuntimeVersionStatus()}, "nothing was made"),
        ({"binding": Fresh(None), "allowed": False}, "nothing was made"),
    ],
)
def test_when_a_deleted_version_goes(changed: dict[str, Any], message: str) -> None:
    """By what was seen, never by silence."""
    found = verdict(seen(deleting=True, **changed))

    assert (Reason.LEAVING, message) == (found.reason, found.message)
    assert "finalizer off" == does(found)[-1].partition(" if ")[0]


def test_what_is_left_where_it_is_is_let_go_of() -> None:
    """Else it would go with its owner."""
    found = verdict(seen(deleting=True, annotations={common_status.ON_DELETE: "Orphan"}))

    assert [f"patch {it.resource.kind}/{it.name} {it.uid} /metadata/ownerReferences=[]" for it in owned()] == (
        does(found)[:-1]
    )


@pytest.mark.parametrize(
    ("neighbours", "actions"),
    [
        (1, ["finalizer off if others_stay"]),
        (0, ["delete RoleBinding/moorage-kre b", "finalizer off"]),
    ],
)
def test_the_last_of_a_namespace_gives_the_rights_back(neighbours: int, actions: list[str]) -> None:
    """Runtimes and versions count alike, as they have the same rights."""
    gone = seen(deleting=True, objects=NOTHING, nats=Fresh(NatsSeen()), neighbours=neighbours)

    assert actions == does(verdict(gone))


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"runtimes": DOWN}, Reason.RUNTIME_NOT_FOUND),
        ({"runtimes": Fresh(()), "objects": DOWN}, Reason.OBJECTS_UNKNOWN),
        ({"runtimes": Fresh(()), "objects": CLOSED}, Reason.STOPPING),
        ({"binding": DOWN}, Reason.BINDING),
    ],
)
def test_objects_outlive_the_runtime_and_are_removed(changed: dict[str, Any], reason: Reason) -> None:
    """NATS is not asked where it is gone."""
    assert reason == verdict(seen(deleting=True, nats=DOWN, **changed)).reason


def test_with_a_runtime_that_goes_what_is_published_may_go_too() -> None:
    """Else the two would wait for each other."""
    found = verdict(seen(deleting=True, **runtimes(published="v1", deleting=True)))

    assert Reason.CLOSING == found.reason


def test_the_younger_of_two_of_one_name_goes_whatever_is_published() -> None:
    """It is the older one that is."""
    gone = {"objects": NOTHING, "nats": Fresh(NatsSeen()), "older": "old"}
    found = verdict(seen(deleting=True, **runtimes(published="v1"), **gone))

    assert Reason.LEAVING == found.reason


def test_what_a_node_s_own_consumer_has_not_taken_is_waited_for_too() -> None:
    """One that it has made itself bears no mark, and is by its name a node's."""
    found = verdict(seen(spec=STOPPED, objects=CLOSED, **nats(consumers={STREAM: {STAYING: ConsumerSeen("", 0, 2)}})))

    assert (Reason.DRAINING, f"messages that nodes have not taken: {STAYING} 2") == (found.reason, found.message)


def test_deletes_bear_the_uid_that_was_seen() -> None:
    """And a Deployment is there until its pods are gone."""
    found = verdict(seen(spec=STOPPED, objects=CLOSED))

    assert [
        f"delete {it.resource.kind}/{it.name} {it.uid}" + (" foreground" if it.resource == kinds.DEPLOYMENT else "")
        for it in owned()[:5]
    ] == does(found)
    assert {"ns"} == {each.ref.namespace for each in found.actions}


# --- what is told -----------------------------------------------------------------------------------------------------

UNMADE = types.RuntimeVersionStatus()


@pytest.mark.parametrize(
    ("changed", "phase"),
    [
        ({"status": UNMADE, "objects": NOTHING, **given(missing={"A": ""})}, "CREATED"),
        ({"objects": there(nodes=(), children=tuple((it, NOT_THERE) for it, _ in CHILDREN))}, "STARTING"),
        (weak(reason="PodsNotReady"), "STARTING"),
        ({}, "STARTED"),
        (runtimes(published="v1"), "STARTED"),
        (runtimes(published="v1") | {"objects": there(active=LED)}, "PUBLISHED"),
        (
            runtimes(published="v1")
            | {"objects": there(active=LED, children=child(0, uid="")["objects"].value.children)},
            "PUBLISHED",
        ),
        (weak(reason="CrashLoop"), "ERROR"),
        (weak(reason="PodsNotReady", fix="do it"), "ERROR"),
        (given(missing={"A": ""}), "ERROR"),
        ({"spec": STOPPED}, "STOPPING"),
        ({"spec": STOPPED, "objects": NOTHING}, "STOPPING"),
        ({"deleting": True}, "STOPPING"),
        (runtimes(published="v1") | {"spec": STOPPED, "objects": there(active=LED)}, "PUBLISHED"),
        ({"spec": STOPPED, "objects": NOTHING, "nats": Fresh(NatsSeen())}, "STOPPED"),
        ({"spec": STOPPED, "objects": NOTHING, "nats": Fresh(NatsSeen()), "status": UNMADE}, "CREATED"),
    ],
)
def test_phases_are_the_product_s(changed: dict[str, Any], phase: str) -> None:
    """In its words."""
    assert phase == decided(seen(**changed)).report["phase"]


@pytest.mark.parametrize(
    ("step", "seconds", "phase"),
    [("nodes_are_ready", 600, "STARTING"), ("nodes_are_ready", 601, "ERROR"), ("nats_has_all", 601, "STARTING")],
)
def test_a_start_that_takes_too_long_is_an_error(step: str, seconds: int, phase: str) -> None:
    """Also where nobody says what is wrong."""
    progress = common_status.Progress(step=step, since="2026-01-01T00:00:00Z")
    status = types.RuntimeVersionStatus(made=True, runtime="demo", progress=progress)
    now = conditions.epoch("2026-01-01T00:00:00Z") + seconds
    it = seen(status=status, now=now, **weak(reason="PodsNotReady", message="0 of 1"))

    assert phase == decided(it).report["phase"]


def told(it: Seen) -> dict[str, tuple[bool | None, str, str]]:
    return {fact.type: (fact.status, fact.reason, fact.message) for fact in decided(it).facts}


@pytest.mark.parametrize(
    ("changed", "type_", "status", "reason", "message"),
    [
        ({}, "Started", True, Reason.STARTED, ""),
        (weak(reason="x"), "Started", False, Reason.STARTING, "not ready: node first of workflow greet"),
        ({"objects": NOTHING}, "Started", False, Reason.STARTING, "nothing of it runs"),
        ({"objects": there(nodes=NODES[:2])}, "Started", False, Reason.STARTING, "not all of its nodes are there"),
        ({"objects": NOTHING, "spec": STOPPED}, "Started", False, Reason.STOPPED, "nothing of it runs"),
        ({"objects": DOWN}, "Started", None, Reason.OBJECTS_UNKNOWN, DOWN.message),
        ({"objects": DOWN}, "Published", None, Reason.OBJECTS_UNKNOWN, DOWN.message),
        ({}, "Published", False, Reason.NOT_PUBLISHED, ""),
        (
            runtimes(published="v1"),
            "Published",
            False,
            Reason.NOT_PUBLISHED,
            "its Runtime publishes it once all its nodes are ready",
        ),
        ({"objects": there(active=LED)}, "Published", True, Reason.PUBLISHED, ""),
        (
            {"objects": there(active=LED, nodes=(*NODES[:2], node("", "entrypoint", ready=False)))},
            "Published",
            True,
            Reason.PUBLISHED,
            "published, and not ready: the entrypoint",
        ),
        ({}, "ConfigComplete", True, Reason.COMPLETE, ""),
        (given(missing={"A": ""}), "ConfigComplete", False, Reason.CONFIG_MISSING, "without a value: A"),
        ({"inputs": DOWN}, "ConfigComplete", None, Reason.CONFIG_UNKNOWN, DOWN.message),
    ],
)
def test_facts(changed: dict[str, Any], type_: str, status: bool | None, reason: Reason, message: str) -> None:
    """Each with its words."""
    found = told(seen(**changed))[type_]

    assert (status, reason, message) == found


def test_what_is_not_known_is_said_so() -> None:
    """The status keeps what it had, and who was only not looked at yet is no news."""
    found = decided(seen(objects=DOWN, inputs=DOWN, nats=DOWN))
    assert not {"phase", "nodes", "streams", "missingConfig"} & found.report.keys()

    before = tuple(
        conditions.Condition(type=name, status="True", reason="Was")
        for name in ("Started", "Published", "ConfigComplete")
    )
    status = types.RuntimeVersionStatus(made=True, conditions=before)
    not_yet = freshness.not_yet("x")
    found = decided(seen(objects=not_yet, inputs=not_yet, status=status))
    assert {("True", "Was")} == {(str(fact.status), fact.reason) for fact in found.facts}
    silent = decided(seen(objects=DOWN, inputs=DOWN, status=status))
    assert {(None, DOWN.message)} == {(fact.status, fact.message) for fact in silent.facts}


@pytest.mark.parametrize(
    ("changed", "fields"),
    [
        ({}, {"missingConfig": (), "streams": (STREAM,), "runtime": None}),
        (given(missing={"A": "", "B": "no Secret s"}), {"missingConfig": ("A", "B")}),
        (stream(), {"streams": (), "objectStores": ("demo_v1_greet_models",)}),
        (runtimes(name="other") | {"status": UNMADE}, {"runtime": "other"}),
        ({"runtimes": Fresh(()), "status": UNMADE}, {"runtime": None, "streams": (), "objectStores": ()}),
        ({"objects": there(active=LED)}, {"published": False}),
        (runtimes(published="v1"), {"published": False}),
        (runtimes(published="v1") | {"objects": there(active=LED)}, {"published": True}),
        (weak(reason="x"), {"ready": 2, "nodeCount": 3}),
    ],
)
def test_the_status_has_what_is_so_now(changed: dict[str, Any], fields: dict[str, Any]) -> None:
    """Of what is in NATS what is there and wanted; its Runtime is told until something is made there."""
    found = decided(seen(**changed)).report

    assert fields == {name: found.get(name) for name in fields}


def test_a_node_is_told_in_the_product_s_words() -> None:
    """With how many pods are ready, how often they ended, and why."""
    it = seen(**weak(reason="CrashLoop", message="it ends" * 100, restarts=4, wanted=2))
    rows = {each.name: each for each in decided(it).report["nodes"]}

    assert types.NodeStatus("greet", "first", "ERROR", 0, 2, 4, ("it ends" * 100)[:500]) == rows["first"]
    assert types.NodeStatus("", "entrypoint", "STARTED", 1, 1) == rows["entrypoint"]


def test_of_nats_nothing_is_told_but_what_is_wanted() -> None:
    """Somebody else's server tells it: a status has no room for all that it may say."""
    many = {f"x{at}": StreamSeen({}, "one") for at in range(1000)}
    found = decided(seen(**nats(streams=NATS.streams | many))).report

    assert (STREAM,) == found["streams"]


PATIENCE: dict[str, set[tuple[float, float, bool]]] = {
    # seconds within which it should come, and after which it is looked at again; whether that is no news
    Reason.RUNTIME_NOT_FOUND: {(60, 0, False), (120, 0, True)},
    Reason.RUNTIME_NOT_READY: {(1800, 0, False)},
    Reason.BINDING: {(120, 0, True)},
    Reason.OBJECTS_UNKNOWN: {(120, 0, False), (120, 0, True), (120, 5, False)},
    Reason.CONFIG_UNKNOWN: {(120, 0, True)},
    Reason.CREDENTIALS_WRONG: {(300, 0, False)},
    Reason.NATS_UNREACHABLE: {(120, 0, True), (120, 5, False)},
    Reason.APPLYING: {(600, 0, False)},
    ObjectReason.PODS_NOT_READY: {(600, 0, False)},
    PodReason.IMAGE_PULL: {(600, 0, False)},
    Reason.NODE_LEAVING: {(180, 0, False), (600, 0, False)},
    Reason.SERVICE_ENDING: {(600, 0, False)},
    Reason.STILL_SERVING: {(600, 0, False)},
    Reason.CLOSING: {(600, 0, False)},
    Reason.DRAINING: {(600, 5, False)},
}


def test_a_wait_has_an_end_and_a_pace() -> None:
    hows: list[tuple[Any, dict[str, Any]]] = [
        (RUNNING, {}),
        (STOPPING, {"deleting": True}),
        (STOPPING, {"spec": STOPPED}),
    ]
    found: dict[str, set[tuple[float, float, bool]]] = {}
    for rows, how in hows:
        for changed, kind, reason, _ in rows:
            if kind is Wait:
                waits = verdict(seen(**how | changed))
                found.setdefault(reason, set()).add((waits.within, waits.again, waits.unseen))

    assert PATIENCE == found


def test_every_reason_is_reached_and_told() -> None:
    """None is there for nothing; each says what comes next."""
    tables = {row[2] for row in (*RUNNING, *STOPPING)}
    elsewhere = {
        *(Reason.STARTED, Reason.STOPPED, Reason.STARTING, Reason.NOT_PUBLISHED, Reason.COMPLETE, Reason.LEAVING),
        *(Reason.GRAPH_BROKEN, Reason.NATS_REFUSES, Reason.STANDS_IN),
    }

    assert set(Reason) == {reason for reason in tables if isinstance(reason, Reason)} | elsewhere
    assert all(reason.help and reason.next for reason in Reason)


def test_builtin_services_are_closed_with_the_deployment() -> None:
    """The Service and the Deployment of the entrypoint are the way in; nothing else is."""
    found = [it for it in owned() if build.is_entrance(it.resource, it.name, OF)]

    assert [(kinds.DEPLOYMENT, OF.entrypoint), (builtin.SERVICE, OF.entrypoint)] == [
        (it.resource, it.name) for it in found
    ]
