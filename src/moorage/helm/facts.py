"""The conditions and status fields that every helm-backed kind has: functions of the observation alone. Pure."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

from moorage.children import readiness
from moorage.children import reasons as object_reasons
from moorage.runtime import decision, freshness
from moorage.runtime.decision import Fact

from . import release_status
from .observation import HasRelease, ReleaseSeen
from .reasons import Reason


def released(it: HasRelease) -> Fact:
    """Released: the deployed revision is what the spec says."""
    r = it.release
    record = freshness.value_of(r.record)
    if record is None:
        unknown = isinstance(r.record, freshness.Failed)
        return Fact("Released", None if unknown else False, Reason.NOT_RELEASED, "there is no release yet")
    what = f"revision {record.revision} is {record.status}"
    if record.status == "deployed" and record.digest == r.desired:
        return Fact("Released", True, Reason.RELEASED, what)
    return Fact("Released", False, Reason.NOT_RELEASED, what)


def drifted(it: HasRelease) -> Fact:
    """Drifted: objects, or the release itself, were changed by hand and are not yet put right."""
    r = it.release
    record, children = freshness.value_of(r.record), freshness.value_of(r.children) or ()
    if record is not None and record.status != "deployed":
        said = f"revision {record.revision} is {record.status}; objects are compared with a deployed one"
        return Fact("Drifted", False, Reason.NOT_RELEASED, said)
    changed = [f"{c.ref}: {c.refusal}" if c.refusal else str(c.ref) for c in children if c.drift]
    if record is not None and not r.is_ours:
        changed.insert(0, f"revision {record.revision} was made by hand")
    left = ", ".join(f"{c.ref} ({', '.join(c.yielded[:3])})" for c in children if c.yielded)
    told = f"left to another writer, such as a webhook: {left}" if left else ""
    if changed:
        return Fact("Drifted", True, Reason.DRIFTED, "; ".join(filter(None, (", ".join(changed[:10]), told))))
    return Fact("Drifted", False, Reason.IN_SYNC, told)


def available(it: HasRelease) -> Fact:
    """Available: all recorded objects are ready, whether or not they are what the spec says by now."""
    children = it.release.children
    if isinstance(children, freshness.Failed):
        return Fact("Available", None, Reason.LOOKING, children.message)
    weak = readiness.weakest(children.value)
    if weak is not None:
        return Fact("Available", False, object_reasons.of_object(weak.reason), readiness.words(weak))
    record = freshness.value_of(it.release.record)
    if not children.value and (record is None or record.status != "deployed"):
        return Fact("Available", False, Reason.NOT_RELEASED, "there are no objects yet")
    return Fact("Available", True, Reason.READY, f"{len(children.value)} objects are ready")


def chart_available(it: HasRelease) -> Fact:
    """ChartAvailable: the chart in use can be had, so that a change of the spec could be carried out."""
    chart = it.release.chart
    match chart:
        case freshness.Failed(reason=reason, message=message):
            return Fact("ChartAvailable", None if reason == freshness.NOT_YET else False, reason, message)
        case freshness.Stale(why=why):
            return Fact("ChartAvailable", False, Reason.CHART_UNREACHABLE, why)
    return Fact("ChartAvailable", True, Reason.CHART_CHOSEN, f"{chart.value.name} {chart.value.version}")


def report(r: ReleaseSeen) -> dict[str, object]:
    """The status fields that tell about the release."""
    record, held, children = freshness.value_of(r.record), freshness.value_of(r.claim), freshness.value_of(r.children)
    fields: dict[str, object] = {}
    if held is not None and held.pin is not None and held.is_of(r.owner):
        pin = held.pin
        fields["chart"] = release_status.ChartStatus(
            pin.chart.name, pin.chart.version, pin.chart.digest, pin.wanted.constraint, pin.wanted.source
        )
    if not isinstance(r.record, freshness.Failed):
        fields["release"] = (
            release_status.ReleaseStatus(
                r.target.release, r.target.namespace, record.revision, record.status, record.digest
            )
            if record
            else release_status.ReleaseStatus(r.target.release, r.target.namespace)
        )
    if children is not None:
        counted: dict[str, int] = {}
        for child in children:
            counted[child.ref.kind] = counted.get(child.ref.kind, 0) + 1
        ready = sum(child.ready for child in children)
        fields["inventory"] = release_status.InventoryStatus(len(children), ready, dict(sorted(counted.items())))
        is_good = record is not None and record.status == "deployed" and r.is_ours and ready == len(children)
        if is_good and record is not None:
            fields["good"] = release_status.Good(record.revision, record.digest)
            if record.digest == r.desired:
                fields |= {"lastError": "", "failed": release_status.FailedDigest()}
    return fields


FactOf: TypeAlias = Callable[[HasRelease], Fact]


def _as_it_was(fact: FactOf, of: Callable[[ReleaseSeen], freshness.Observed[Any]]) -> FactOf:
    """The same, but that what has not been looked at yet, such as a record that has just changed, stands as it stood.

    Else each look costs two writes of status while helm is at work: that nothing is known, and then what is.
    """

    @functools.wraps(fact)
    def told(it: HasRelease) -> Fact:
        found = fact(it)
        if not freshness.is_unseen(of(it.release)):
            return found
        last = decision.as_it_stood(found, it.release.status.conditions)
        of_an_earlier_spec = last.type == "Released" and last.status and not it.release.released_before
        return found if of_an_earlier_spec else last

    return told


FACTS: tuple[FactOf, ...] = (
    _as_it_was(released, lambda r: r.record),
    _as_it_was(drifted, lambda r: r.record),
    _as_it_was(available, lambda r: r.children),
    chart_available,
)
