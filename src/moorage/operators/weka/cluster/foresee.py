"""What another spec would lead to, for people who have not written it yet: who leaves, comes, restarts. Pure.

By the same rules as `control` and `rolling`, from what a person may read. What only the cluster's own word tells is
said as a condition: its stripe may be wider than the spec's least one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from moorage.api import conditions
from moorage.operators.weka import names
from moorage.operators.weka.container import types as container_types
from moorage.runtime.reporting import screen_rows
from moorage.runtime.reporting.screen_rows import Item

from . import build, types

MOST_NAMED = 6


def foresee(now: Mapping[str, Any], then: Mapping[str, Any], owned: screen_rows.Owned) -> Iterable[Item]:
    """What would be done if the WekaCluster `now`, whose containers are `owned`, were `then`, and what against it."""
    cluster = msgspec.convert(now, types.WekaCluster)
    after = msgspec.convert(then, types.WekaCluster).spec
    read = [msgspec.convert(it, container_types.WekaContainer) for it in owned.live.values() if it]
    there = [it for it in read if not it.metadata.deletion_timestamp]
    sizes = types.template(after)
    restarts = [it for role in names.BACKEND for it in _restarts(cluster.spec, after, role, _of(role, there))]
    yield from restarts
    yield from _paused(after) if restarts else ()
    for role in names.BACKEND:
        mine = _of(role, there)
        yield from _comes(role, sizes.containers[role] - len(mine))
        yield from _leaves(cluster.metadata.name, after, role, mine, len(mine) - sizes.containers[role])
    yield from _drives(cluster.spec, after, _of("drive", there))
    yield from _unheeded(cluster.spec, after)
    yield from _gates(cluster)


def _restarts(
    before: types.WekaClusterSpec,
    after: types.WekaClusterSpec,
    role: str,
    mine: Sequence[container_types.WekaContainer],
) -> Iterable[Item]:
    was, will = build.restarting(before, role), build.restarting(after, role)
    changed = [key for key in will if was[key] != will[key]]
    if not changed or not mine:
        return
    given = after.overrides
    how = (
        "all at once" if given and given.upgrade_all_at_once else "one after another, each once the one before is back"
    )
    yield Item(f"{_some(role, mine)} {_do(mine, 'restart')} for another {', '.join(changed)}: {how}", good=True)
    if given and given.upgrade_pause_pre_compute and not given.upgrade_paused and role == "compute":
        yield Item(f"{_some(role, mine)} do so once spec.overrides.upgradePausePreCompute is taken out", good=False)


def _paused(after: types.WekaClusterSpec) -> Iterable[Item]:
    if after.overrides and after.overrides.upgrade_paused:
        yield Item("none restarts before spec.overrides.upgradePaused is taken out", good=False)


def _comes(role: str, more: int) -> Iterable[Item]:
    if more > 0:
        yield Item(f"{_number(more, role)} made, where there are nodes for {'it' if more == 1 else 'them'}", good=True)


def _leaves(
    cluster: str,
    after: types.WekaClusterSpec,
    role: str,
    mine: Sequence[container_types.WekaContainer],
    surplus: int,
) -> Iterable[Item]:
    """Those first that do not run, and then the highest numbers."""
    least = types.weakest_stripe(after)
    parity = types.redundancy(after)
    if surplus > 0:
        order = sorted(mine, key=lambda it: (_runs(it), -names.number(cluster, role, it.metadata.name)))
        may = min(surplus, max(len(mine) - least, 0)) if role == "drive" else surplus
        if may:
            drives = sum(len(_given(it)) for it in order[:may])
            moved = f", and what is on their {drives} drives moves to others first" if drives else ""
            yield Item(f"{_some(role, order[:may])} {_do(order[:may], 'leave')}, one after another{moved}", good=True)
        if may < surplus:
            stays = _some(role, order[may:surplus])
            yield Item(f"{stays} can't leave: a stripe needs {least} drive containers (StripeNeedsThem)", good=False)
    if role == "drive" and surplus:
        left = len(mine) - surplus if surplus < 0 else max(len(mine) - surplus, least)
        spare = left - least
        beyond = (
            f"{spare} beyond them can take over what a lost one held"
            if spare > 0
            else "none is beyond them, so that a lost one's data stays without full protection until it is back"
        )
        said = f"{left} drive containers then: a stripe is on {least} or more, {parity} of which may be lost; {beyond}"
        yield Item(said, good=spare >= 0)


def _drives(
    before: types.WekaClusterSpec, after: types.WekaClusterSpec, mine: Sequence[container_types.WekaContainer]
) -> Iterable[Item]:
    was, will = types.template(before).drives, types.template(after).drives
    if was == will or not mine:
        return
    if will > was:
        free = "where their nodes have signed ones that are free"
        said = f"{_some('drive', mine)} {_do(mine, 'get')} {will} drives each in place of {was}, {free}"
    else:
        said = (
            f"{_some('drive', mine)} {_do(mine, 'keep')} the drives that are there: a drive leaves with its container"
        )
    yield Item(said, good=will > was)


def _unheeded(before: types.WekaClusterSpec, after: types.WekaClusterSpec) -> Iterable[Item]:
    for name in types.unheeded(after):
        if name not in types.unheeded(before):
            yield Item(f"nothing follows from spec.{name} yet", good=False)


def _gates(cluster: types.WekaCluster) -> Iterable[Item]:
    """What holds back whatever takes a container away, as the cluster stands now."""
    for kind in ("Available", "Protected"):
        fact = conditions.find(cluster.status.conditions, kind)
        if fact is not None and fact.status == "False":
            said = f"none that is up leaves or restarts while {kind} is False: {fact.message or fact.reason}"
            yield Item(said, good=False)


def _of(role: str, these: Iterable[container_types.WekaContainer]) -> list[container_types.WekaContainer]:
    return sorted((it for it in these if it.spec.mode == role), key=lambda it: it.metadata.name)


def _given(it: container_types.WekaContainer) -> Sequence[object]:
    return it.status.allocations.drives if it.status.allocations else ()


def _runs(it: container_types.WekaContainer) -> bool:
    return it.status.status == "Running"


def _some(role: str, these: Sequence[container_types.WekaContainer]) -> str:
    found = [it.metadata.name for it in these]
    named = ", ".join(found[:MOST_NAMED]) + (f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else "")
    return f"{len(found)} {role} container{'' if len(found) == 1 else 's'} ({named})"


def _do(these: Sequence[object], verb: str) -> str:
    return f"{verb}s" if len(these) == 1 else verb


def _number(count: int, role: str) -> str:
    return f"{count} {role} container{' is' if count == 1 else 's are'}"
