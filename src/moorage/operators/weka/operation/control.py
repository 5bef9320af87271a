"""What moorage does for a WekaManualOperation, step by step. Pure: read top to bottom.

The nodes are written down first. On each a pod looks at its drives, and signs those that it was told to; what it leaves
as its last word is written into the node's annotations, which is all that is ever written of a node. Blocking needs no
pod. Once each node is done the result is written down, and the operation goes by itself after a while.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from moorage.api import builtin, conditions, quantities
from moorage.children import objects
from moorage.operators import steps
from moorage.operators.weka import heeding, names, place
from moorage.runtime import decision
from moorage.runtime.decision import DONE, Act, Blocked, Verdict, Wait

from . import build, types
from .observation import NodeSeen, PodSeen, Seen
from .reasons import OperationReason as Reason

MINUTE = 60.0
MOST_NODES = 256
"""That one operation may be for, as the result of each is in its status."""

AT_ONCE = 16
"""Pods that run at the same time."""

NAMED = 8
"""Nodes, or pods, that are named; of the others their number."""

DRIVES_ARE_NOBODYS = "drives_are_nobodys"
RUNNING, FINISHED, FAILED = "Running", "Done", "Failed"


def namespace_is_allowed(seen: Seen) -> Verdict:
    """Its pods are root on their nodes, so an administrator opens each namespace for them."""
    return place.namespace_is_allowed(seen, Reason.NAMESPACE_NOT_ALLOWED)


def action_is_served(seen: Seen) -> Verdict:
    """Those on drives are, so far."""
    if seen.spec.action in types.SERVED:
        return DONE
    said = f"action {seen.spec.action} is not looked after yet; these are: {', '.join(types.SERVED)}"
    return Blocked(Reason.ACTION_NOT_SERVED, said, decision.next_of(Reason.ACTION_NOT_SERVED))


def image_is_allowed(seen: Seen) -> Verdict:
    """By the beginning of its name; nothing is listed, nothing is run."""
    if seen.spec.action not in types.IN_PODS:
        return DONE
    return place.image_is_allowed(seen, seen.spec.image, Reason.IMAGE_NOT_ALLOWED)


def destruction_is_confirmed(seen: Seen) -> Verdict:
    """What destroys data is meant: the annotation names it."""
    lacking = [it for it in types.destroys(seen.spec) if not seen.confirmed(it)]
    if not lacking or _is_over(seen):
        return DONE
    named = ",".join(types.destroys(seen.spec))
    said = f"{', '.join(lacking)} destroys what drives hold, and the annotation {names.CONFIRM} does not name it"
    fix = f"kubectl annotate wekamanualoperation {seen.name} -n {seen.meta.namespace} {names.CONFIRM}={named}"
    return Blocked(Reason.UNCONFIRMED, said, fix)


def finalizer_is_set(seen: Seen) -> Verdict:
    """Before the first outside effect."""
    why = "its pods must be gone before it is"
    return steps.finalizer_is_set(seen.meta, names.OPERATION_FINALIZER, Reason.TAKING_CARE, why)


def rights_are_bound(seen: Seen) -> Verdict:
    """The account of the operation's namespace is bound to its one role there."""
    return place.rights_are_bound(seen, Reason.BINDING)


def objects_are_known(seen: Seen) -> Verdict:
    """Nothing is decided on watches that are not filled."""
    return place.objects_are_known(seen.objects, Reason.OBJECTS_UNKNOWN)


def it_is_not_over(seen: Seen) -> Verdict:
    """One that is Done is deleted after a while; one that has Failed stays until somebody has seen it."""
    if seen.status.status == FAILED:
        failed = [f"{name}: {it.message}" for name, it in sorted(seen.status.nodes.items()) if it.status == FAILED]
        return Blocked(Reason.FAILED, steps.some(failed, NAMED), decision.next_of(Reason.FAILED))
    if seen.status.status != FINISHED:
        return DONE
    left = quantities.seconds(seen.spec.deletion_delay) - conditions.age(seen.status.completed_at, seen.now)
    if left > 0:
        return Wait(Reason.DONE, _summary(seen), on="time", within=0.0, again=min(left, 3600.0) + 0.5)
    ref = names.OPERATION.ref(*seen.meta.key, seen.meta.uid)
    why = f"it has been done for {seen.spec.deletion_delay}"
    gone = decision.Delete(why=why, resource=names.OPERATION, ref=ref, as_operator=True)
    return Act(Reason.DONE, f"{seen.name} is deleted, as {why}", (gone,))


def nodes_are_chosen(seen: Seen) -> Verdict:
    """Once, and written down: whoever goes on with it does so with the same."""
    if seen.status.nodes:
        return DONE
    found = sorted(seen.there.nodes)
    if not found:
        one, by = types.node(seen.spec), types.selector(seen.spec)
        said = f"there is no node {one}" if one else f"no node has the labels {_labels(by)}"
        return Blocked(Reason.NO_NODES, said, decision.next_of(Reason.NO_NODES))
    if len(found) > MOST_NODES:
        said = f"{len(found)} nodes are as the payload says, and one operation is for {MOST_NODES} at most"
        return Blocked(Reason.TOO_MANY_NODES, said, decision.next_of(Reason.TOO_MANY_NODES))
    if (taken := _taken(seen)) is not None:
        return taken
    used = {it: conditions.timestamp(seen.now) for it in types.destroys(seen.spec)}
    fields: dict[str, Any] = {"status": RUNNING, "nodes": {name: {"status": RUNNING} for name in found}}
    note = decision.Remember(
        why="they are written down before anything is done", fields=fields | ({"overridesUsed": used} if used else {})
    )
    return Act(Reason.BEGINNING, f"{seen.spec.action} on {steps.some(found, NAMED)}", (note,))


def _taken(seen: Seen) -> Verdict | None:
    """Drives that are named to be signed anew, and that a container has."""
    given = seen.spec.payload.force_resign_drives_payload if seen.spec.payload else None
    node = seen.there.nodes.get(types.node(seen.spec))
    if seen.spec.action != "force-resign-drives" or given is None or node is None:
        return None
    for serial in given.device_serials:
        if serial in node.taken:
            said = f"drive {serial} of node {node.name} is {node.taken[serial]}'s"
            return Blocked(Reason.DRIVE_TAKEN, said, decision.next_of(Reason.DRIVE_TAKEN))
    return None


def scripts_are_there(seen: Seen) -> Verdict:
    """What runs in the pods, before the pods."""
    found = seen.there.scripts
    if seen.spec.action not in types.IN_PODS or found is None or not running(seen):
        return DONE
    return objects.are_right((found,), Reason.WRITING_SCRIPTS)


def nodes_are_told(seen: Seen) -> Verdict:
    """One after another: what its pod has left, or what is to be blocked, is written at the node, then in status."""
    for name in running(seen):
        node = seen.there.nodes.get(name)
        if node is None:
            return _noted(seen, name, types.NodeResult(FAILED, f"node {name} is gone"))
        found: build.Told | None = None
        if seen.spec.action in types.IN_PODS:
            pod = _pod(seen, name)
            if pod is None or not pod.ended:
                continue
            if pod.node != name:
                fault = f"pod {pod.seen.name} did not run on node {name}"
                return _noted(seen, name, types.NodeResult(FAILED, fault), pod)
            found = build.told(pod)
        if node.fault:
            said = f"node {name}: {node.fault}"
            fix = decision.next_of(Reason.NODE_UNREADABLE).replace("NODE", name)
            return Blocked(Reason.NODE_UNREADABLE, said, fix)
        drives = len(found.drives or ()) if found else len(node.drives)
        signed, fault = (found.signed, found.fault) if found else ((), "")
        came = types.NodeResult(FAILED if fault else FINISHED, fault, drives, signed)
        wanted = build.node_annotations(seen.spec, node, found)
        if any(value is not None and len(value) > 65_536 for value in wanted.values()):
            return _noted(
                seen, name, types.NodeResult(FAILED, f"node {name} would have too many drives"), _pod(seen, name)
            )
        return _noted(seen, name, came, _pod(seen, name), wanted)
    return DONE


def _noted(
    seen: Seen,
    name: str,
    came: types.NodeResult,
    pod: PodSeen | None = None,
    wanted: dict[str, str | None] | None = None,
) -> Act:
    """The node first, as what is in the status is not done again; then the pod goes, whose word is needed no more."""
    actions: list[decision.AnyAction] = []
    if wanted:
        before = {key: seen.there.nodes[name].annotations.get(key) for key in wanted}
        args = {"node": name, "wanted": wanted, "before": before}
        actions.append(decision.Call(why="it is what was found", operation="node.annotate", args=args))
    nodes = msgspec.to_builtins({**seen.status.nodes, name: came})
    actions.append(decision.Remember(why="it is done there", fields={"nodes": nodes}))
    if pod is not None and not pod.seen.deleting:
        ref = builtin.POD.ref(seen.meta.namespace, pod.seen.name, pod.seen.uid)
        actions.append(decision.Delete(why="it has told all it knew", resource=builtin.POD, ref=ref))
    how = came.message or f"{came.drives} drives are signed there, {len(came.signed)} of them now"
    if seen.spec.action not in types.IN_PODS and not came.message:
        how = "its annotations say so"
    return Act(Reason.NOTING, f"node {name}: {how}", tuple(actions))


def pods_look(seen: Seen) -> Verdict:
    """A few at a time. One that can't be made where its node does not report is waited for."""
    left = running(seen)
    if not left:
        return DONE
    there = [name for name in left if _pod(seen, name) is not None]
    new = [seen.there.nodes[name] for name in left if name not in there and seen.there.nodes[name].ready]
    new = new[: max(0, AT_ONCE - len(there))]
    if new:
        makes = tuple(_create(seen, node) for node in new)
        return Act(Reason.LOOKING, f"pods look at {steps.some([it.name for it in new], NAMED)}", makes)
    late = [name for name in left if not seen.there.nodes[name].ready]
    if late and not [name for name in there if name not in late]:
        said = f"{steps.some(late, NAMED)} does not report"
        fix = decision.next_of(Reason.NODE_NOT_READY)
        return Wait(Reason.NODE_NOT_READY, said, on="node", within=10 * MINUTE, fix=fix)
    pods = [pod.seen for name in there if (pod := _pod(seen, name)) is not None]
    trouble = next((it for it in pods if it.trouble), None)
    said = f"looking at {steps.some(there, NAMED)}" + (f": {trouble.trouble}" if trouble else "")
    cause, fix = (trouble.cause, trouble.fix) if trouble else ("", "")
    return Wait(Reason.LOOKING, said, on="pod", within=15 * MINUTE, cause=cause, fix=fix)


def _create(seen: Seen, node: NodeSeen) -> decision.Create:
    body = build.pod(seen, node)
    free = objects.name_is_free(builtin.POD, body.name)
    nobodys = decision.Guard(DRIVES_ARE_NOBODYS, {"node": node.name, "taken": sorted(node.taken)})
    return decision.Create(
        why="there is none on that node", resource=builtin.POD, body=body.body, require=(free, nobodys)
    )


def result_is_noted(seen: Seen) -> Verdict:
    """Done if it succeeded on each node."""
    failed = any(it.status == FAILED for it in seen.status.nodes.values())
    fields = {
        "status": FAILED if failed else FINISHED,
        "result": build.result(seen.status.nodes),
        "completedAt": conditions.timestamp(seen.now),
    }
    note = decision.Remember(why="all nodes are done", fields=fields)
    return Act(Reason.ENDING, f"{seen.spec.action} is {'over, and failed in part' if failed else 'done'}", (note,))


def running(seen: Seen) -> list[str]:
    """Nodes that are not done."""
    return sorted(name for name, it in seen.status.nodes.items() if it.status == RUNNING)


def _pod(seen: Seen, node: str) -> PodSeen | None:
    return seen.there.pods.get(names.operation_pod(seen.name, node))


def _is_over(seen: Seen) -> bool:
    return seen.status.status in (FINISHED, FAILED)


def _summary(seen: Seen) -> str:
    nodes = seen.status.nodes.values()
    signed = sum(len(it.signed) for it in nodes)
    return f"done on {len(seen.status.nodes)} nodes" + (f": {signed} drives were signed" if signed else "")


def _labels(by: dict[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(by.items())) or "that were asked for"


STEPS: tuple[Callable[[Seen], Verdict], ...] = (
    namespace_is_allowed,
    action_is_served,
    image_is_allowed,
    destruction_is_confirmed,
    finalizer_is_set,
    rights_are_bound,
    objects_are_known,
    it_is_not_over,
    nodes_are_chosen,
    scripts_are_there,
    nodes_are_told,
    pods_look,
    result_is_noted,
)


def spec_heeded(seen: Seen) -> decision.Fact:
    """Added: SpecHeeded: which fields nothing follows from yet."""
    return heeding.told(heeding.unheeded(seen.spec, types.UNHEEDED), Reason.UNHEEDED, Reason.HEEDED)


FACTS: tuple[Callable[[Seen], decision.Fact], ...] = (spec_heeded,)


# --- its end ----------------------------------------------------------------------------------------------------------


def nothing_was_made(seen: Seen) -> Verdict:
    """Where no rights were ever bound there is nothing to remove."""
    return steps.nothing_was_made(seen.binding, seen.allowed, Reason.BINDING, Reason.LEAVING)


def namespace_ends(seen: Seen) -> Verdict:
    """With the namespace its pods go, which wait for nobody."""
    return place.namespace_ends(seen, Reason.LEAVING)


def pods_are_gone(seen: Seen) -> Verdict:
    """They end by themselves; one that is signing a drive is waited for."""
    left = [it.seen for it in seen.there.pods.values()]
    staying = [it for it in left if not it.deleting]
    why = "the operation is deleted"
    if staying:
        gone = tuple(
            decision.Delete(why=why, resource=builtin.POD, ref=builtin.POD.ref(seen.meta.namespace, it.name, it.uid))
            for it in staying
        )
        return Act(Reason.LEAVING, f"{len(staying)} pods are deleted", gone)
    if left:
        return Wait(
            Reason.LEAVING, f"ending: {steps.some([it.name for it in left], NAMED)}", on="pod", within=5 * MINUTE
        )
    return DONE


def it_may_go(seen: Seen) -> Verdict:
    """The last of its namespace also takes away what runs in pods, and gives the operator's rights back."""
    scripts = seen.there.scripts
    return place.it_may_go(seen, scripts[1].uid if scripts else "", Reason.LEAVING)


DELETION_STEPS: tuple[Callable[[Seen], Verdict], ...] = (
    nothing_was_made,
    namespace_ends,
    rights_are_bound,
    objects_are_known,
    pods_are_gone,
    it_may_go,
)
