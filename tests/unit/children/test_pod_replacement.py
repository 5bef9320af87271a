"""Pods are replaced: dead ones at once, the rest one after another, each as the system's gate lets it go."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.children import parts, pod_replacement
from moorage.runtime import decision
from moorage.runtime.decision import DONE, Blocked, Verdict, Wait
from tests.unit import verdicts
from tests.unit.children import depots
from tests.unit.children.depots import NOW, live, pod
from tests.unit.verdicts import SETTLED, Acts, Blocks, Waits, acts

R = depots.Reason
DEAD: dict[str, Any] = {"revision": "old", "came_up": False, "running": False}
PACE, LATE, SETTLE = 10.0, 900.0, 30.0


@pytest.mark.parametrize(
    ("workload", "expected"),
    [
        pytest.param(live(), [1], id="those of another template"),
        pytest.param(live(1), [], id="not those that are to go anyway"),
        pytest.param(live(revision=""), [], id="none, while the current one is not known"),
        pytest.param(None, [], id="none, without a workload"),
    ],
)
def test_which_pods_are_of_an_old_template(workload: parts.WorkloadSeen | None, expected: list[int]) -> None:
    old = pod_replacement.outdated([pod(0), pod(1, revision="old"), pod(3, revision="old")], workload)

    assert expected == [each.ordinal for each in old]


@pytest.mark.parametrize(
    ("pods", "workload", "expected"),
    [
        pytest.param([pod(0), pod(1)], live(), True, id="all are"),
        pytest.param([], live(), True, id="there is none"),
        pytest.param([pod(0), pod(7, revision="old")], live(), False, id="one is not, though it is to go"),
        pytest.param([], None, False, id="without a workload nobody knows"),
    ],
)
def test_whether_all_are_of_the_current_one(
    pods: list[parts.PodSeen], workload: parts.WorkloadSeen | None, expected: bool
) -> None:
    assert expected is pod_replacement.all_are_current(pods, workload)


# --- dead ones ----------------------------------------------------------------------------------------------------


def revives(*ordinals: int) -> Acts:
    return acts("Reviving", *(f"delete Pod/d-{n} uid-{n} if pod_is_expendable d-{n} uid-{n}" for n in ordinals))


DEAD_ONES: dict[str, tuple[parts.PodSeen, str, verdicts.Shape]] = {
    # id: (the pod, the current template, what becomes of it)
    "it never came up": (pod(1, **DEAD), "new", revives(1)),
    "it can't be kept running": (pod(1, revision="old", held=True), "new", revives(1)),
    "it works": (pod(1, revision="old"), "new", SETTLED),
    "it is of the current template": (pod(1, came_up=False), "new", SETTLED),
    "nobody knows of which it is": (pod(1, came_up=False, revision=""), "new", SETTLED),
    "nobody knows the current one": (pod(1, **DEAD), "", SETTLED),
    "it is being deleted": (pod(1, deleting=True, **DEAD), "new", SETTLED),
    "it may hold something": (pod(0, **DEAD), "new", SETTLED),
}


@pytest.mark.parametrize(("it", "revision", "shape"), DEAD_ONES.values(), ids=DEAD_ONES)
def test_a_dead_pod_of_an_old_template_is_made_anew(it: parts.PodSeen, revision: str, shape: verdicts.Shape) -> None:
    verdict = pod_replacement.dead_are_replaced([it], revision, "ns", R.REVIVING, spared=lambda each: each.ordinal == 0)

    verdicts.same(verdict, shape)


def test_all_dead_ones_at_once() -> None:
    pods = [pod(0, **DEAD), pod(1, **DEAD), pod(2, **DEAD)]
    verdict = pod_replacement.dead_are_replaced(pods, "new", "ns", R.REVIVING, spared=lambda each: each.ordinal == 0)

    verdicts.same(verdict, revives(1, 2), "d-1, d-2 does not come up and is made anew from the current template")


# --- one after another --------------------------------------------------------------------------------------------


def rolled(*old: parts.PodSeen, held: Verdict = DONE) -> Verdict:
    return pod_replacement.next_is_replaced(
        old,
        "ns",
        R.ROLLING,
        gate=lambda _: held,
        guard=depots.guard,
        within=LATE,
        again=PACE,
        describe=depots.described,
    )


def test_the_first_goes_and_nobody_else() -> None:
    verdicts.same(rolled(), SETTLED)
    verdicts.same(
        rolled(pod(2), pod(1)),
        acts("Rolling", "evict d-2 uid-2 if is_unused 2"),
        "d-2 is replaced by one of the current template",
    )


def test_who_is_going_is_awaited_whatever_the_gate_says() -> None:
    verdicts.same(
        rolled(pod(2, deleting=True), pod(1), held=Blocked(R.STALLED, "no", "yes")),
        Waits("Rolling", "pod", LATE, again=PACE),
        "d-2 (its words) is being replaced",
    )


def test_the_gate_has_the_last_word() -> None:
    """A wait, or an act that comes first, such as that another takes over."""
    wait = Wait(R.HELD, "d-0 is off", on="pod", within=1.0)
    first = decision.Act(R.ROLLING, "d-1 takes over", (decision.Call(why="w", operation="take_over"),))

    assert wait == rolled(pod(2), held=wait)
    assert first == rolled(pod(2), held=first)


def test_the_gate_is_asked_of_the_pod_that_would_go() -> None:
    asked: list[str] = []

    def gate(it: parts.PodSeen) -> Verdict:
        asked.append(it.name)
        return DONE

    pod_replacement.next_is_replaced(
        [pod(2), pod(1)],
        "ns",
        R.ROLLING,
        gate=gate,
        guard=depots.guard,
        within=LATE,
        again=PACE,
        describe=depots.described,
    )

    assert ["d-2"] == asked


# --- those that were replaced are back ----------------------------------------------------------------------------


def back(
    *new: parts.PodSeen,
    old: tuple[parts.PodSeen, ...] = (pod(1), pod(0)),
    instead: Verdict = DONE,
    blocked: decision.Reason | None = R.STALLED,
    words: str = "",
) -> Verdict:
    return pod_replacement.replaced_are_back(
        new,
        old,
        R.ROLLING,
        is_back=lambda it: it.ready,
        why=lambda _: words,
        now=NOW,
        on="pod",
        within=LATE,
        pace=PACE,
        instead=lambda _, __: instead,
        blocked=blocked,
    )


AWAY = pod(2, ready=False, since=NOW - 100.0)
LONG = pod(2, ready=False, since=NOW - LATE - 1.0)
BACK: dict[str, tuple[Verdict, verdicts.Shape, str]] = {
    # id: (what is decided, in short, its words)
    "it is back": (back(pod(2)), SETTLED, ""),
    "nobody else is to be replaced": (back(LONG, old=()), SETTLED, ""),
    "it is away": (
        back(AWAY),
        Waits("Rolling", "pod", LATE, again=PACE),
        "d-2 is to come back; then d-1, d-0 is replaced",
    ),
    "it is told why": (
        back(AWAY, words="no image"),
        Waits("Rolling", "pod", LATE, again=PACE),
        "d-2 is to come back: no image; then",
    ),
    "its time is nearly over": (
        back(pod(2, ready=False, since=NOW - LATE + 5.0)),
        Waits("Rolling", "pod", LATE, again=6.0),
        "",
    ),
    "it has half a second": (
        back(pod(2, ready=False, since=NOW - LATE + 0.5)),
        Waits("Rolling", "pod", LATE, again=1.5),
        "",
    ),
    "its time is over right now": (
        back(pod(2, ready=False, since=NOW - LATE)),
        Waits("Rolling", "pod", LATE, again=PACE),
        "",
    ),
    "it did not come back": (
        back(LONG, words="no image"),
        Blocks("Stalled"),
        "d-2 did not come back within 900 s: no image; d-1, d-0 is left as it is",
    ),
    "it did not, and nobody is to stop for it": (
        back(LONG, blocked=None),
        Waits("Rolling", "pod", LATE, again=PACE),
        "d-2 is to come back; then",
    ),
    "the first that is away counts": (back(pod(4), AWAY, LONG), Waits("Rolling", "pod", LATE, again=PACE), "d-2 is"),
}


@pytest.mark.parametrize(("verdict", "shape", "says"), BACK.values(), ids=BACK)
def test_who_was_replaced_is_awaited(verdict: Verdict, shape: verdicts.Shape, says: str) -> None:
    verdicts.same(verdict, shape, says)


def test_for_one_that_did_not_come_back_the_system_may_do_something() -> None:
    """And not for one that has time left. It is told in words what has happened."""
    other = decision.Act(R.ROLLING, "the old one again", (decision.Remember(why="w", fields={"failed": "new"}),))
    told: list[str] = []

    def instead(_: parts.PodSeen, late: str) -> Verdict:
        told.append(late)
        return DONE

    assert other == back(LONG, instead=other)
    verdicts.same(back(AWAY, instead=other), Waits("Rolling", "pod", LATE, again=PACE))
    pod_replacement.replaced_are_back(
        [LONG],
        [pod(1)],
        R.ROLLING,
        is_back=lambda _: False,
        why=lambda _: "no image",
        now=NOW,
        on="pod",
        within=LATE,
        pace=PACE,
        instead=instead,
        blocked=None,
    )
    assert ["d-2 did not come back within 900 s: no image"] == told


# --- what a gate may ask ------------------------------------------------------------------------------------------


def settled(*others: parts.PodSeen) -> Verdict:
    return pod_replacement.have_settled(
        pod(0),
        others,
        R.ROLLING,
        back_since=lambda it: it.since,
        now=NOW,
        settle=SETTLE,
        said="30s",
        on="pod",
    )


def test_who_came_back_a_moment_ago_gets_time() -> None:
    verdicts.same(settled(), SETTLED)
    verdicts.same(settled(pod(1), pod(2, since=NOW - SETTLE)), SETTLED)
    verdicts.same(
        settled(pod(1, since=NOW - 20.0), pod(2, since=NOW - 5.0), pod(3)),
        Waits("Rolling", "pod", 1800.0, again=25.0),
        "d-1, d-2 came back less than 30s ago; then d-0 is replaced",
    )


def test_the_budget_is_asked_where_there_is_one() -> None:
    for lets in (None, 1):
        verdicts.same(pod_replacement.budget_allows(pod(0), lets, R.HELD, again=PACE), SETTLED)
    verdicts.same(
        pod_replacement.budget_allows(pod(0), 0, R.HELD, again=PACE),
        Waits("Held", "budget", 1800.0, again=PACE),
        "lets nobody go at the moment; d-0 is not replaced meanwhile",
    )
