"""Every leaf of the schemas is acted on, or told not to be: by what follows from another value, never by its mention.

A leaf is acted on if another value of it leads to another decision, container, pod, or order in a pod, in one of a few
situations. What is handed on to a WekaContainer counts only where something follows from it there; of the environment
of a pod what the scripts in it read, by a run of theirs that is watched.
"""

from __future__ import annotations

import collections
import copy
import functools
import json
import types as python_types
from collections.abc import Callable, Iterable, Iterator, Set
from typing import Any

import msgspec
import pytest

from moorage.api import meta
from moorage.children import apply
from moorage.operators.weka import heeding, names, shared
from moorage.operators.weka.announced import kind as announced
from moorage.operators.weka.announced import types as announced_types
from moorage.operators.weka.cluster import build as cluster_build
from moorage.operators.weka.cluster import control as cluster_control
from moorage.operators.weka.cluster import deletion as cluster_deletion
from moorage.operators.weka.cluster import facts as cluster_facts
from moorage.operators.weka.cluster import types as cluster_types
from moorage.operators.weka.container import build, control, deletion, facts, observation, types
from moorage.operators.weka.container import kind as container_kind
from moorage.operators.weka.container.reasons import ContainerReason
from moorage.operators.weka.operation import build as operation_build
from moorage.operators.weka.operation import control as operation_control
from moorage.operators.weka.operation import types as operation_types
from moorage.runtime import decision
from moorage.runtime.decision import Blocked
from moorage.runtime.freshness import Fresh
from tests.api.faults.transitions import leaves, schemas

from . import states, test_operation

Spec = dict[str, Any]
Outcome = Any
GOING = "2026-01-01T00:00:00Z"
CONFIRMED = {names.CONFIRM: ",".join((*cluster_control.DESTRUCTIVE, "skipDeactivate"))}


# --- what a leaf can be set to ----------------------------------------------------------------------------------------

TEXTS = ("x", "1Mi", "7", "7s", "10.0.0.0/8", "10.0.0.9:14000", "registry.example/weka:9.9.9", "/dev/x", "0x1")


def made(schema: dict[str, Any]) -> Iterator[Any]:
    """Values that are as the schema wants them."""
    if "enum" in schema:
        yield from schema["enum"]
        return
    match schema.get("type"):
        case "boolean":
            yield from (True, False)
        case "integer":
            least = schema.get("minimum", 0)
            yield from (least, least + 1, least + 2, least + 6)
        case "string":
            yield from TEXTS
        case "array":
            for item in made(schema["items"]):
                yield [item]
        case "object":
            inside = schema.get("properties")
            if inside:
                right = {
                    name: [value for value in made(it) if not schemas.faults(it, value)] for name, it in inside.items()
                }
                yield {name: values[-1] for name, values in right.items() if values}
                return
            for item in made(schema["additionalProperties"]) if "additionalProperties" in schema else ("x",):
                yield {"example": item}


def candidates(leaf: leaves.Leaf) -> Iterator[Any]:
    """Right values of a leaf, the more telling ones first."""
    for value in (*OTHERS.get(leaf.last, ()), *made(leaf.schema), *leaves.sorts(leaf, leaves.ABSENT).values()):
        if value is not leaves.ABSENT and not schemas.faults(leaf.schema, value):
            yield value


OTHERS: dict[str, tuple[Any, ...]] = {
    "roleAffinity": ({"drive": {"podAffinity": {}}},),
    "roleTopologySpreadConstraints": ({"drive": [{"maxSkew": 1}]},),
    "tolerations": ([{"key": "x", "operator": "Exists"}],),
    "failureDomain": ({"label": "zone"},),
    "imagePullSecret": ("pull",),
    "devicePaths": (["/dev/x"],),
    "nodeSelector": ({"weka": "other"},),
    "serialIDs": (["s9"],),
    "deviceSerials": (["s9"],),
    "physicalUUIDs": (["u9"],),
}
"""By the leaf's own name: what no schema tells."""


def changed(base: Spec, path: tuple[str, ...], value: Any) -> Spec:
    spec = copy.deepcopy(base)
    at = spec
    for name in path[:-1]:
        at = at.setdefault(name, {})
    at[path[-1]] = value
    return spec


# --- what follows -----------------------------------------------------------------------------------------------------


class Watched(collections.UserDict[str, str]):
    """An environment that knows what was read of it."""

    def __init__(self, given: dict[str, str], read: set[str]) -> None:
        super().__init__(given)
        self.read = read

    def __getitem__(self, key: str) -> str:
        self.read.add(key)
        return super().__getitem__(key)


def run_in_pod(environ: dict[str, str]) -> set[str]:
    """What of that environment both scripts of a pod read: as it starts, waits, ends, and is asked how it stands."""
    read: set[str] = set()
    scripts = {name: python_types.ModuleType(name) for name in (build.RUNTIME, build.TOOL)}
    for name, made_ in scripts.items():
        made_.__file__ = f"/opt/{name}"
        exec(compile(build.texts()[name], name, "exec"), made_.__dict__)
    settings = {of: msgspec.structs.asdict(getattr(states.SPOKEN, of)) for of in ("files", "commands")}
    pod = scripts[build.RUNTIME].Runtime(settings, Watched(environ, read))
    pod.weka, pod.write = lambda *_, **__: "[]", lambda *_: None
    pod.pre_run()
    pod.start({"wekaPort": 35_000})
    pod.debug_sleep()
    tools = scripts[build.TOOL].Tools(settings, {}, 0.0)
    tools.read, tools.call = lambda *_: {}, lambda *_: "[]"
    for ask in (scripts[build.TOOL].local, scripts[build.TOOL].cluster):
        ask(tools, Watched(environ, read))
    return read


def pruned(found: Any, read: Set[str]) -> Any:
    """Without what only names a content, and what nobody reads where it is handed on to."""
    if isinstance(found, dict):
        kept = {key: pruned(it, read) for key, it in found.items() if key not in (apply.STAMP, build.REVISION)}
        if found.get("kind") == names.CONTAINER.kind and "spec" in found:
            kept["spec"] = without(kept["spec"], types.UNHEEDED)
        if {"name", "env"} <= found.keys():
            kept["env"] = [it for it in kept["env"] if it["name"] in read]
        return kept
    return [pruned(it, read) for it in found] if isinstance(found, list | tuple) else found


def without(spec: Spec, paths: Iterable[str]) -> Spec:
    spec = copy.deepcopy(spec)
    for path in paths:
        *before, last = path.split(".")
        at: Any = spec
        for name in before:
            at = at.get(name) if isinstance(at, dict) else None
        if isinstance(at, dict):
            at.pop(last, None)
    return {key: it for key, it in spec.items() if it != {}}


def decided(seen: Any, steps: Any, told: Any = (), report: Any = None) -> Outcome:
    found = decision.decide(seen, steps=steps, facts=told, report=report)
    kept = [it for it in found.facts if it.type != "SpecHeeded"]
    return msgspec.to_builtins([found.steps, kept, found.report], str_keys=True)


@pytest.fixture(scope="module")
def read() -> set[str]:
    body = build.pod(
        build.of(container_of({**CONTAINER, "overrides": {"preRunScript": "true"}}), "c", states.SPOKEN)
    ).body
    environ = {it["name"]: it.get("value", "") for it in body["spec"]["containers"][0]["env"]}
    found = run_in_pod(environ)
    assert {"NAME", "MODE", "CORES", "JOIN_IPS", "NETWORK_DEVICE", "CORE_IDS"} <= found
    assert not {"NET_GATEWAY", "SUBNETS", "IS_IPV6"} & found
    return found


CLUSTER: Spec = {
    "image": states.IMAGE,
    "dynamicTemplate": {"driveContainers": 6, "computeContainers": 5},
    "gracefulDestroyDuration": "0",
}
CONTAINER: Spec = {"image": states.IMAGE, "name": "drivexaax0", "mode": "drive", "numCores": 1, "numDrives": 1}
OPERATION: Spec = {
    "action": "sign-drives",
    "image": states.IMAGE,
    "payload": {"signDrivesPayload": {"type": "all-not-root", "nodeSelector": {"weka": "yes"}}},
}


@functools.cache
def cluster_situations() -> tuple[dict[str, Any], ...]:
    """From nothing on: logins and ports, formation, its settings, the beginning of IO, and then rolls of two sorts."""
    alone = {"clusterID": "", "containerID": None}
    new = [states.container(it.role, it.number, status=alone) for it in states.containers()]
    unformed = {"formed": "", "clusterID": "", "timestamps": {}}
    before = states.cluster_status(timestamps={}, status="Init")
    old = [msgspec.structs.replace(it, wanted="another") for it in states.containers()]
    half = [it if it.role == "drive" else msgspec.structs.replace(it, wanted="another") for it in states.containers()]
    idle = states.cluster(io="", members=states.all_members())
    nobody = Fresh(states.cluster(guid=""))
    no_login = states.cluster_objects(login=states.cluster_observation.LoginSeen())
    whole = states.cluster_objects()
    return (
        {"objects": whole},
        {"objects": whole, "status": states.cluster_status(ports=None)},
        {"status": states.cluster_status(**unformed, ports=None), "cluster": nobody, "objects": no_login},
        {"status": states.cluster_status(**unformed), "cluster": nobody, "objects": states.cluster_objects(new)},
        {"objects": whole, "status": before, "cluster": Fresh(msgspec.structs.replace(idle, parity=0, data=0))},
        {"objects": whole, "status": before, "cluster": Fresh(msgspec.structs.replace(idle, drives=states.drives(5)))},
        {"objects": whole, "status": before, "cluster": Fresh(idle)},
        {"objects": states.cluster_objects(old)},
        {"objects": states.cluster_objects(half)},
    )


@functools.cache
def cluster_as_it_was() -> Any:
    return states.cluster_seen(metadata={"annotations": CONFIRMED})


def of_cluster(given: Spec) -> Iterator[Outcome]:
    spec = msgspec.convert(given, cluster_types.WekaClusterSpec)
    yield msgspec.to_builtins(cluster_types.template(spec))
    for role in names.BACKEND:
        yield cluster_build.container(states.CLUSTER_META, spec, role, 0, login="l").body
    for situation in cluster_situations():
        seen = msgspec.structs.replace(cluster_as_it_was(), spec=spec, **situation)
        yield decided(seen, cluster_control.STEPS, cluster_facts.FACTS, cluster_facts.report)
    for at in (GOING, "2027-01-15T07:00:00Z"):  # long ago, and an hour before NOW
        of = msgspec.structs.replace(states.CLUSTER_META, deletion_timestamp=at)
        seen = msgspec.structs.replace(cluster_as_it_was(), spec=spec, meta=of)
        yield decided(seen, cluster_deletion.DELETION_STEPS, (), cluster_facts.report)


def container_of(given: Spec, **status: Any) -> types.WekaContainer:
    metadata = meta.ObjectMeta(name="demo-drive-0", namespace="ns", uid="u-0")
    spec = msgspec.convert(given, types.WekaContainerSpec)
    return types.WekaContainer(metadata, spec, msgspec.convert(status, types.WekaContainerStatus))


@functools.cache
def container_as_it_was() -> Any:
    return states.seen()


@functools.cache
def scripts() -> Any:
    return build.scripts("ns", states.SPOKEN), apply.Child("c")


def of_container(given: Spec) -> Iterator[Outcome]:
    spec = msgspec.convert(given, types.WekaContainerSpec)
    for node in ("", "n1"):
        yield build.pod(build.of(container_of(given, nodeAffinity=node), "c", states.SPOKEN)).body
    live = shared.Node(meta.ObjectMeta(name="n1", labels={"zone": "z1", "x": "z2", "example": "z3"}))
    yield shared.node_seen(live, container_kind.domain(container_of(given))).failure_domain
    fresh, told = states.status(allocations=None), container_as_it_was().local
    lonely = Fresh(msgspec.structs.replace(told.value, cluster="", host=None))
    forces = msgspec.structs.replace(states.OWNER, forces=True)
    mine, old = states.pod(spec), states.pod(states.spec(image=states.NEWER))
    away = {"cluster": Fresh(states.cluster(members=states.members(state="INACTIVE"), drives=states.drives()[1:]))}

    def there(pod: observation.PodSeen | None, owner: Any = states.OWNER, *, ending: bool = False) -> dict[str, Any]:
        if pod is not None and ending:
            pod = msgspec.structs.replace(pod, seen=msgspec.structs.replace(pod.seen, deleting=True))
        return {"objects": Fresh(observation.Objects(pod, scripts(), states.NODE, owner=owner))}

    as_it_was = msgspec.structs.replace(container_as_it_was(), spec=spec, revision=build.revision(spec))
    for situation in (
        there(mine),
        {**there(mine), "status": fresh},
        {**there(mine, None), "status": fresh},
        {**there(mine), "local": lonely},
        there(mine, ending=True),
        there(old, forces, ending=True),
        there(None),
    ):
        seen = msgspec.structs.replace(as_it_was, **situation)
        yield decided(seen, control.STEPS, facts.FACTS, facts.report)
    going = msgspec.structs.replace(as_it_was.meta, deletion_timestamp=GOING, annotations=CONFIRMED)
    for situation in (there(mine), {**there(mine, ending=True), **away}):
        yield decided(msgspec.structs.replace(as_it_was, meta=going, **situation), deletion.DELETION_STEPS)


def of_operation(given: Spec) -> Iterator[Outcome]:
    spec = msgspec.convert(given, operation_types.WekaManualOperationSpec)
    seen, node = test_operation.seen(spec, confirmed="force-resign-drives"), test_operation.node(blocked=("s1",))
    if spec.action in operation_types.IN_PODS:
        yield operation_build.pod(seen, node).body
    yield operation_build.node_annotations(spec, node, operation_build.Told(("s1",)))
    yield operation_types.node(spec), operation_types.selector(spec)
    done = {"status": "Done", "nodes": {"n1": {"status": "Done"}}, "completedAt": test_operation.ago(200)}
    for status in (None, done):
        yield decided(test_operation.seen(spec, status), operation_control.STEPS, operation_control.FACTS)


class Kind(msgspec.Struct, frozen=True):
    """One kind: its schema, what its objects are here, and what follows from them."""

    definition: dict[str, Any]
    model: type[Any]
    bases: tuple[Spec, ...]
    outcome: Callable[[Spec], Iterator[Outcome]]
    told: Callable[[Any], tuple[str, ...]]
    paths: tuple[str, ...]


KINDS = {
    "WekaCluster": Kind(
        cluster_types.definition(),
        cluster_types.WekaClusterSpec,
        (
            CLUSTER,
            {**CLUSTER, "gracefulDestroyDuration": "24h"},
            {**CLUSTER, "cpuPolicy": "manual", "roleCoreIds": {"drive": [1], "compute": [1]}},
            {**CLUSTER, "failureDomain": {"label": "zone"}},
            {"image": states.IMAGE},
            {**CLUSTER, "globalPVC": {"name": "claim"}, "encryption": {"vault": {"address": "https://x"}}},
        ),
        of_cluster,
        cluster_types.unheeded,
        cluster_types.UNHEEDED,
    ),
    "WekaContainer": Kind(
        types.definition(),
        types.WekaContainerSpec,
        (
            CONTAINER,
            {**CONTAINER, "pvc": {"name": "claim"}, "failureDomain": {"label": "zone"}},
            {**CONTAINER, "agentPort": 45_300},
            {**CONTAINER, "port": 45_000},
            {**CONTAINER, "instructions": {"type": "x"}},
        ),
        of_container,
        lambda spec: types.unheeded(spec, of_cluster=False),
        types.UNHEEDED,
    ),
    "WekaManualOperation": Kind(
        operation_types.definition(),
        operation_types.WekaManualOperationSpec,
        (
            OPERATION,
            {**OPERATION, "payload": {"signDrivesPayload": {"type": "device-paths", "devicePaths": ["/dev/y"]}}},
            {
                **OPERATION,
                "payload": {
                    "signDrivesPayload": {
                        "type": "device-identifiers",
                        "pciDevices": {"vendorId": "0x2", "deviceId": "0x2"},
                    }
                },
            },
            {**OPERATION, "action": "discover-drives", "payload": {"discoverDrivesPayload": {}}},
            {**OPERATION, "action": "block-drives", "payload": test_operation.BLOCK},
            {**OPERATION, "action": "force-resign-drives", "payload": test_operation.RESIGN},
            {**OPERATION, "action": "ensure-nics", "payload": {"ensureNICsPayload": {"type": "aws"}}},
        ),
        of_operation,
        lambda spec: heeding.unheeded(spec, operation_types.UNHEEDED),
        operation_types.UNHEEDED,
    ),
}
LEAVES = [(kind, leaf) for kind, it in KINDS.items() for leaf in leaves.of(schemas.spec_of(it.definition))]
BOTH = {"WekaCluster": {"dynamicTemplate.containerCapacity"}}
"""What is told not to be heeded as it is meant, though something follows: no drive is asked for beside a capacity."""


def text(kind: Kind, spec: Spec, read: Set[str]) -> str:
    return json.dumps(pruned(list(kind.outcome(spec)), read), sort_keys=True)


@functools.cache
def before(name: str, number: int, read: frozenset[str]) -> str:
    return text(KINDS[name], KINDS[name].bases[number], read)


def told_by(kind: Kind, name: str) -> bool:
    return any(name == path or name.startswith(f"{path}.") for path in kind.paths)


@pytest.mark.parametrize(("name", "leaf"), LEAVES, ids=[f"{kind}.{leaf.name}" for kind, leaf in LEAVES])
def test_something_follows_from_a_leaf_or_it_is_told_that_nothing_does(
    name: str, leaf: leaves.Leaf, read: set[str]
) -> None:
    kind = KINDS[name]
    follows, said, tried = False, False, 0
    for number, base in enumerate(kind.bases):
        stands = before(name, number, frozenset(read))
        for value in candidates(leaf):
            spec = changed(base, leaf.path, value)
            try:
                read_ = msgspec.convert(spec, kind.model)
            except msgspec.ValidationError:
                continue
            tried += 1
            said = said or any(leaf.name == it or leaf.name.startswith(f"{it}.") for it in kind.told(read_))
            follows = follows or stands != text(kind, spec, read)
            if follows or said:
                break
    assert tried, "no value of it is right"
    if leaf.name in BOTH.get(name, ()):
        assert said
        return
    assert told_by(kind, leaf.name) == said, "UNHEEDED has it, and no value of it is told"
    assert follows != said, "nothing follows from it, and nobody is told" if not follows else "it is told, and heeded"


@pytest.mark.parametrize("name", KINDS)
def test_only_fields_that_there_are_are_told(name: str) -> None:
    fields = [leaf.name for of, leaf in LEAVES if of == name]
    paths = KINDS[name].paths

    assert [] == [path for path in paths if not any(it == path or it.startswith(f"{path}.") for it in fields)]
    assert len(paths) == len({*paths})


@pytest.mark.parametrize("name", KINDS)
def test_what_is_heeded_is_no_reason_to_speak(name: str) -> None:
    assert () == KINDS[name].told(msgspec.convert(KINDS[name].bases[0], KINDS[name].model))


def test_of_a_clusters_container_only_what_its_cluster_does_not_tell_is_told() -> None:
    given = {**CONTAINER, "network": {"gateway": "10.0.0.1"}, "driversDistService": "x", "group": "g"}
    spec = msgspec.convert(given, types.WekaContainerSpec)
    owner = meta.OwnerReference("weka.weka.io/v1alpha1", "WekaCluster", "demo", "u-demo", controller=True)

    def said(**metadata: Any) -> tuple[bool | None, Any, str]:
        found = facts.spec_heeded(states.seen(spec=spec, metadata=metadata))
        return found.status, found.reason, found.message

    assert (False, ContainerReason.UNHEEDED, "nothing follows yet from spec.group") == said(owner_references=(owner,))
    alone = "nothing follows yet from spec.network.gateway, spec.driversDistService, spec.group"
    assert (False, ContainerReason.UNHEEDED, alone) == said()


@pytest.mark.parametrize("kind", ["WekaClient", "WekaPolicy"])
def test_of_kinds_that_are_only_announced_all_is_told_at_once(kind: str) -> None:
    """Nothing of their specs is even seen."""
    known = {it["spec"]["names"]["kind"] for it in announced_types.definitions()}  # type: ignore[index]
    [standing] = decision.decide(announced.Seen(kind, "x"), steps=announced.STEPS).steps

    assert {"WekaClient", "WekaPolicy"} == known
    assert {"kind", "name"} == {*announced.Seen.__struct_fields__}
    assert isinstance(standing.verdict, Blocked)
    assert decision.warns(standing.verdict.reason)
