"""A container that stays down is replaced by another one: within its budget, and never while more is amiss."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.api import conditions
from moorage.operators.weka import config
from moorage.operators.weka.cluster import facts, observation, replacing
from moorage.operators.weka.cluster.reasons import ClusterReason as Reason
from moorage.runtime import decision
from moorage.runtime.decision import DONE, Act, Blocked, Wait
from moorage.runtime.freshness import Failed, Stale

from . import states

LONG = 1801.0


def down(number: int = 0, reason: str = "NotUp", **changed: Any) -> observation.ContainerSeen:
    status = {"status": "Degraded", "progress": {"step": "it_is_up", "reason": reason}}
    return states.container("drive", number, status=status, **{"down": True, **changed})


def seen(
    *these: observation.ContainerSeen, up: tuple[int, ...] = (), since: float = LONG, **changed: Any
) -> observation.Seen:
    """These, in place of those of the same number, and not up but for `up`; the first has been down for `since`."""
    names = {it.name: it for it in these}
    have = [names.get(it.name, it) for it in states.containers()]
    hosts = {it.number for it in these} - {*up}
    members = tuple(
        msgspec.structs.replace(it, status="DOWN") if it.host in hosts else it for it in states.all_members()
    )
    stood = {"down": {these[0].name: ago(since)}} if since else {}
    base = {
        "objects": states.cluster_objects(have),
        "cluster": states.Fresh(states.cluster(members=members)),
        "status": states.cluster_status(**stood, **changed.pop("status", {})),
    }
    return states.cluster_seen(**base | changed)


def ago(seconds: float) -> str:
    return conditions.timestamp(states.NOW - seconds)


def test_one_that_stays_down_is_deleted_once_that_is_written_down() -> None:
    found = replacing.down_are_replaced(seen(down()))

    assert isinstance(found, Act)
    note, gone = found.actions
    assert isinstance(note, decision.Remember)
    assert isinstance(gone, decision.Delete)
    assert {"replaced": {"demo-drive-0": conditions.timestamp(states.NOW)}} == note.fields
    assert ("demo-drive-0", "u-drive-0") == (gone.ref.name, gone.ref.uid)
    assert "has been down for 30 minutes" in found.message


def test_after_a_day_it_counts_no_more() -> None:
    status = {"replaced": {"a": ago(86_401), "b": ago(3600)}}
    found = replacing.down_are_replaced(seen(down(), status=status))

    assert isinstance(found, Act)
    assert isinstance(note := found.actions[0], decision.Remember)
    assert {"b", "demo-drive-0"} == note.fields["replaced"].keys()


ROWS: list[tuple[str, observation.Seen, Any, str]] = [
    ("not for long yet", seen(down(), since=1799.0), DONE, ""),
    (
        "for days",
        seen(down(), since=360_000.0),
        Reason.REPLACING,
        "demo-drive-0 has been down for 6000 minutes",
    ),
    ("ready, or never looked at", seen(down(down=False)), DONE, ""),
    ("one whose time was not written down yet", seen(down(), since=0.0), DONE, ""),
    ("up by its cluster's word", seen(down(), up=(0,)), DONE, ""),
    ("on a node that does not report", seen(down(reason="NodeNotReady")), DONE, ""),
    ("on a node that takes no pods", seen(down(reason="NodeCordoned")), DONE, ""),
    ("without drives", seen(down(reason="DrivesLacking")), DONE, ""),
    ("on a node that was made anew", seen(down(reason="ClusterForgotten")), Reason.REPLACING, "demo-drive-0"),
    ("on a node that is gone", seen(down(reason="NodeGone")), Reason.REPLACING, "demo-drive-0"),
    ("never to be replaced", seen(down(), replace=config.Replace(after_seconds=0)), DONE, ""),
    ("before IO began", seen(down(), status={"timestamps": {}}), DONE, ""),
    ("while another image comes", seen(down(wanted="another")), DONE, ""),
    ("one is leaving", seen(down(), down(1, deleting=True)), DONE, ""),
    ("the cluster is not heard", seen(down(), cluster=Failed("Unavailable", "none")), DONE, ""),
    (
        "the cluster was told something since",
        seen(down(), cluster=Stale(states.cluster(members=states.all_members(status="DOWN")), 0.0, "told")),
        Reason.CLUSTER_UNKNOWN,
        "asked anew",
    ),
    (
        "another is down too",
        seen(down(), down(1)),
        Reason.REPLACE_GATED,
        "others are not up either: demo-drive-1",
    ),
    (
        "another is down for longer",
        seen(
            down(),
            down(1),
            since=0.0,
            status={"down": {"demo-drive-0": ago(LONG), "demo-drive-1": ago(LONG + 600)}},
        ),
        Reason.REPLACE_GATED,
        "demo-drive-1 has been down for 40 minutes, and is left, as others are not up either: demo-drive-0",
    ),
    (
        "of those of today one is a day old now",
        seen(down(), status={"replaced": {"a": ago(86_400), "b": ago(3600)}}),
        Reason.REPLACING,
        "demo-drive-0",
    ),
    (
        "of those of today one is almost a day old",
        seen(down(), status={"replaced": {"a": ago(86_399), "b": ago(3600)}}),
        Reason.REPLACE_GATED,
        "2 containers were replaced within a day: a, b",
    ),
    (
        "no more today",
        seen(down(), status={"replaced": {"a": ago(60), "b": ago(3600)}}),
        Reason.REPLACE_GATED,
        "2 containers were replaced within a day: a, b",
    ),
]


@pytest.mark.parametrize(("given", "reason", "said"), [it[1:] for it in ROWS], ids=[it[0] for it in ROWS])
def test_when_it_is_and_when_it_is_not(given: observation.Seen, reason: Any, said: str) -> None:
    found = replacing.down_are_replaced(given)

    if reason is DONE:
        assert DONE == found
        return
    assert isinstance(found, Act | Blocked | Wait)
    assert reason == found.reason
    assert said in found.message
    assert not isinstance(found, Wait) or found.within == 300


@pytest.mark.parametrize(
    ("given", "since"),
    [
        (seen(down(), since=0.0), 0.0),
        (seen(down()), LONG),
        (seen(down(reason="MakingPod")), LONG),
        (seen(down(reason="MakingPod"), since=0.0), None),
        (seen(down(down=False)), None),
        (seen(down(), up=(0,)), None),
        (seen(down(reason="NodeCordoned")), None),
        (seen(down(reason="NodeNotReady")), None),
        (seen(down(reason="DrivesLacking")), None),
        (seen(down(reason="EndingPod")), None),
    ],
)
def test_since_when_it_is_down_is_written_down(given: observation.Seen, since: float | None) -> None:
    told = facts.report(given, None)["down"]

    assert ({} if since is None else {"demo-drive-0": ago(since)}) == told


def test_nobody_is_down_by_the_word_of_a_cluster_that_says_nothing() -> None:
    assert "down" not in facts.report(seen(down(), cluster=Failed("Unavailable", "none")), None)


@pytest.mark.parametrize("away", ["NodeCordoned", "NodeNotReady"])
def test_one_whose_node_was_away_for_long_is_given_its_time_once_it_is_back(away: str) -> None:
    """All that it has is there still, and it starts; nothing is moved away from it meanwhile."""
    kept: dict[str, str] = {}
    told: list[Any] = []
    for minute, reason in enumerate(["NotUp"] + [away] * 60 + ["MakingPod", "PodNotRunning"] + ["Starting"] * 40):
        now = states.NOW + minute * 60
        at = seen(down(reason=reason), since=0.0, status={"down": kept}, now=now)
        kept = facts.report(at, None)["down"]
        told.append((minute, replacing.down_are_replaced(at)))

    acted = [minute for minute, it in told if it is not DONE]
    assert 62 + 31 == acted[0], "half an hour after it was made anew"
