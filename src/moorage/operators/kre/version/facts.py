"""The conditions of a RuntimeVersion, and what its status tells. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moorage.children import reasons as object_reasons
from moorage.operators import steps
from moorage.operators.kre.reasons import VersionReason as Reason
from moorage.runtime import decision, freshness
from moorage.runtime.decision import Blocked, Fact, Wait

from . import streams, types
from .observation import NodeSeen, ObjectsSeen, Seen

MOST_WORDS = 500
"""Characters that a status keeps of what a node's pods say: there may be many nodes."""


def _nodes(seen: Seen) -> tuple[NodeSeen, ...]:
    return (freshness.value_of(seen.objects) or ObjectsSeen()).nodes


def started(seen: Seen) -> Fact:
    """Started: all nodes and the entrypoint are ready."""
    if isinstance(seen.objects, freshness.Failed):
        found = Fact("Started", None, Reason.OBJECTS_UNKNOWN, seen.objects.message)
        return decision.as_it_stood(found, seen.status.conditions) if freshness.is_unseen(seen.objects) else found
    nodes = _nodes(seen)
    if not nodes:
        return Fact("Started", False, Reason.STARTING if seen.spec.running else Reason.STOPPED, "nothing of it runs")
    weak = [str(each) for each in nodes if not each.ready]
    if weak:
        return Fact("Started", False, Reason.STARTING, f"not ready: {steps.some(weak)}")
    if not seen.whole:
        return Fact("Started", False, Reason.STARTING, "not all of its nodes are there")
    return Fact("Started", True, Reason.STARTED)


def published(seen: Seen) -> Fact:
    """Published: calls to what its Runtime publishes are led here. One that has broken tells so."""
    if isinstance(seen.objects, freshness.Failed):
        found = Fact("Published", None, Reason.OBJECTS_UNKNOWN, seen.objects.message)
        return decision.as_it_stood(found, seen.status.conditions) if freshness.is_unseen(seen.objects) else found
    if not seen.serving:
        waits = "its Runtime publishes it once all its nodes are ready" if seen.published else ""
        if seen.yields and seen.runtime is not None:
            waits += f"; version {seen.runtime.previous} stands in until then"
        return Fact("Published", False, Reason.NOT_PUBLISHED, waits)
    weak = [str(each) for each in _nodes(seen) if not each.ready]
    if seen.stands_in and seen.runtime is not None:
        return Fact("Published", True, Reason.STANDS_IN, f"in place of version {seen.runtime.published}")
    return Fact("Published", True, Reason.PUBLISHED, f"published, and not ready: {steps.some(weak)}" if weak else "")


def configured(seen: Seen) -> Fact:
    """ConfigComplete: each config key has a value."""
    if isinstance(seen.inputs, freshness.Failed):
        found = Fact("ConfigComplete", None, Reason.CONFIG_UNKNOWN, seen.inputs.message)
        return decision.as_it_stood(found, seen.status.conditions) if freshness.is_unseen(seen.inputs) else found
    missing = seen.inputs.value.missing
    if missing:
        return Fact("ConfigComplete", False, Reason.CONFIG_MISSING, f"without a value: {steps.some(missing)}")
    return Fact("ConfigComplete", True, Reason.COMPLETE)


FACTS: tuple[Callable[[Seen], Fact], ...] = (started, published, configured)


def report(seen: Seen, standing: decision.StepTaken | None) -> dict[str, Any]:
    """The fields of the status that say how it stands; what is not known stays as it was."""
    said: dict[str, Any] = {}
    if seen.runtime is not None and not seen.status.made:
        said["runtime"] = seen.runtime.name
    if not isinstance(seen.inputs, freshness.Failed):
        said["missingConfig"] = tuple(seen.inputs.value.missing)
    if not isinstance(seen.nats, freshness.Failed):
        said |= _in_nats(seen)
    if not seen.spec.too_large:
        said["notes"] = seen.spec.told.notes
    if not isinstance(seen.objects, freshness.Failed):
        led = (seen.published or seen.stands_in) and seen.serving
        said |= {"phase": _phase(seen, standing), "published": led}
        said["nodes"] = tuple(_status(each) for each in _nodes(seen))
        said |= {"ready": sum(each.ready for each in _nodes(seen)), "nodeCount": len(_nodes(seen))}
    return said


def _in_nats(seen: Seen) -> dict[str, Any]:
    """Of what it has there the names that are wanted too, as it is somebody else's server that tells them."""
    fields = {streams.STREAM: "streams", streams.OBJECTS: "objectStores", streams.KEY_VALUES: "keyValueStores"}
    found: dict[str, list[str]] = {field: [] for field in fields.values()}
    for each in seen.wanted if seen.runtime is not None else ():
        if each.name in seen.mine:
            found[fields[each.kind]].append(each.called)
    return {field: tuple(sorted(names)) for field, names in found.items()}


def _status(node: NodeSeen) -> types.NodeStatus:
    return types.NodeStatus(
        node.workflow, node.name, _state(node), node.pods_ready, node.wanted, node.restarts, node.message[:MOST_WORDS]
    )


def _state(node: NodeSeen) -> str:
    """In the product's words."""
    if node.ready:
        return "STARTED"
    return "ERROR" if _is_broken(node) else "STARTING"


def _is_broken(node: NodeSeen) -> bool:
    """It does not come by itself, by the word of its pods."""
    return not node.ready and (bool(node.fix) or decision.warns(object_reasons.of_object(node.reason)))


def _phase(seen: Seen, standing: decision.StepTaken | None) -> str:
    """In the product's words."""
    found, blocked = freshness.value_of(seen.objects) or ObjectsSeen(), False
    if standing is not None:
        blocked = isinstance(standing.verdict, Blocked)
    if seen.meta.deleting or not seen.spec.running:
        if blocked and seen.serving:
            return "PUBLISHED"
        left = found.there or any(streams.kind_of(name)[0] != streams.KEY_VALUES for name in seen.mine)
        return "STOPPING" if left else "STOPPED" if seen.status.made else "CREATED"
    late = standing is not None and _is_late(seen, standing)
    if any(_is_broken(each) for each in found.nodes) or ((blocked or late) and seen.status.made):
        return "ERROR"
    if (seen.published or seen.stands_in) and seen.serving and seen.whole:
        return "PUBLISHED"  # also while a change is on its way that who calls does not notice
    if seen.whole and (standing is None or standing.name not in _UNMADE):
        return "STARTED"
    return "STARTING" if seen.status.made else "CREATED"


def _is_late(seen: Seen, standing: decision.StepTaken) -> bool:
    """What was awaited has not come, so that a person must see to it."""
    verdict = standing.verdict
    return isinstance(verdict, Wait) and bool(verdict.fix) and seen.waited_at(standing.name) > verdict.within


_UNMADE = ("nats_has_all", "objects_are_right")
"""Where the steps stand while something is missing that its nodes need."""
