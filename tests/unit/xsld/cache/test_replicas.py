"""How many pods the StatefulSet has: never so few that a member loses its pod, never past a leftover volume."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.operators.xsld.cache import observation
from moorage.operators.xsld.group import answers
from moorage.runtime import freshness
from tests.unit.xsld import states


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A situation by ordinals, and the number that follows."""

    expected: int
    size: int
    live: int | None
    group: tuple[int, ...] | None = None
    busy: tuple[int, ...] = ()
    remembered: tuple[int, ...] = ()
    leftover: tuple[int, ...] = ()

    @property
    def found(self) -> int:
        """What `replicas` says."""
        return observation.replicas(
            "c",
            self.size,
            live=self.live,
            group=group_of(self.group),
            busy=pods(self.busy),
            remembered=pods(self.remembered),
            leftover=frozenset(self.leftover),
        )


def pods(ordinals: tuple[int, ...] | frozenset[int]) -> frozenset[str]:
    return frozenset(states.pod_name(ordinal) for ordinal in ordinals)


def group_of(ordinals: tuple[int, ...] | frozenset[int] | None) -> answers.Group | None:
    if ordinals is None:
        return None
    members = (answers.Member(states.pod_name(n), "", "Online", online=True) for n in sorted(ordinals))
    return answers.Group("c-0", tuple(members))


CASES = {
    "nothing is there yet": Case(expected=3, size=3, live=None),
    "as it should be": Case(expected=3, size=3, live=3, group=(0, 1, 2)),
    "up, at once": Case(expected=5, size=5, live=2, group=(0, 1)),
    "down waits for the highest member": Case(expected=5, size=2, live=5, group=(0, 1, 2, 3, 4)),
    "down by one, once it has left": Case(expected=4, size=2, live=5, group=(0, 1, 2, 3)),
    "down to the size, and no further": Case(expected=2, size=2, live=5, group=(0, 1)),
    "down to the size, though fewer are members": Case(expected=2, size=2, live=5, group=(0,)),
    "members are not counted: there are gaps": Case(expected=5, size=2, live=5, group=(0, 4)),
    "a gap below the size": Case(expected=3, size=3, live=3, group=(0, 2)),
    "unknown group: not below live": Case(expected=5, size=2, live=5),
    "unknown group: up is allowed": Case(expected=7, size=7, live=5),
    "unknown group, who is remembered above live may have left": Case(expected=3, size=2, live=3, remembered=(0, 4)),
    "one that joins keeps its pod": Case(expected=4, size=2, live=4, group=(0, 1), busy=(3,)),
    "one that has left and still has a task": Case(expected=5, size=2, live=5, group=(0, 1), busy=(4,)),
    "a member above live gets its pod back": Case(expected=4, size=2, live=2, group=(0, 1, 3)),
    "a known group counts, not what is remembered": Case(expected=2, size=2, live=4, group=(0, 1), remembered=(3,)),
    "the StatefulSet is gone: as many as are remembered": Case(expected=5, size=3, live=None, remembered=(0, 4)),
    "the StatefulSet is gone: volumes are the group's own": Case(
        expected=5, size=3, live=None, remembered=(0, 1, 2, 3, 4), leftover=(0, 1, 2, 3, 4)
    ),
    "a leftover volume in the way": Case(expected=3, size=5, live=2, group=(0, 1), leftover=(3,)),
    "a leftover volume at once in the way": Case(expected=2, size=5, live=2, group=(0, 1), leftover=(2, 4)),
    "a leftover volume beyond the way": Case(expected=4, size=4, live=2, group=(0, 1), leftover=(4, 7)),
    "volumes of pods that live are no leftovers": Case(expected=4, size=4, live=2, group=(0, 1), leftover=(0, 1)),
    "going down heeds no leftovers": Case(expected=2, size=2, live=4, group=(0, 1), leftover=(2, 3)),
    "members that no cache can have count for nothing": Case(
        expected=2, size=2, live=2, group=(0, 1, 100, 2**31 - 2), busy=(10**9,), remembered=(500,)
    ),
    "pods of strangers count for nothing": Case(expected=1, size=1, live=1, group=(0,)),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_table(case: Case) -> None:
    assert case.expected == case.found


def test_a_member_of_a_strange_name_needs_no_pod_of_ours() -> None:
    group = answers.Group("c-0", (answers.Member("other-7", "", "Online", online=True),))

    found = observation.replicas(
        "c", 1, live=1, group=group, busy=frozenset({"c-x"}), remembered=frozenset(), leftover=frozenset()
    )

    assert 1 == found


ORDINALS = st.frozensets(st.integers(0, 12), max_size=6)


@given(
    size=st.integers(1, 12),
    live=st.none() | st.integers(0, 12),
    members=st.none() | ORDINALS,
    busy=ORDINALS,
    remembered=ORDINALS,
    leftover=ORDINALS,
)
def test_whatever_is_seen_nobody_loses_a_pod(
    size: int,
    live: int | None,
    members: frozenset[int] | None,
    busy: frozenset[int],
    remembered: frozenset[int],
    leftover: frozenset[int],
) -> None:
    found = observation.replicas(
        "c",
        size,
        live=live,
        group=group_of(members),
        busy=pods(busy),
        remembered=pods(remembered),
        leftover=leftover,
    )

    needed = 1 + max((members if members is not None else remembered) | busy, default=0)
    if live is None:
        assert max(size, needed) == found, "without a StatefulSet every member gets its pod back"
        return
    if members is None:
        assert found >= live, "not below live while the group is unknown"
    assert found >= min(live, needed), "no member, and none with a task, loses its pod"
    assert found <= max(size, live, 0 if members is None else needed), "no pod that nobody asked for"
    theirs = (members if members is not None else remembered) | busy
    old = leftover - theirs  # a member's own volume is no leftover, whoever took its pod away
    assert not any(live <= ordinal < found for ordinal in old), "no new pod finds an old volume"
    if not old:
        assert max(size, live if members is None else needed) == found


UNKNOWN = freshness.Failed("Down", "down")
SHRINKING = states.cache(5).left(3, 4).wants(size=2)
OBSERVED = {
    "what was just seen counts": (SHRINKING, 3),
    "what was seen before something was done does not": (
        SHRINKING.fact(polled=freshness.Stale(SHRINKING.polled, 0.0, "POST /task")),
        5,
    ),
    "nobody could be asked": (SHRINKING.fact(polled=UNKNOWN), 5),
    "one that has left and still has a task": (SHRINKING.runs(4, states.task()), 5),
    "one that has left, and its tasks have ended": (SHRINKING.runs(4, states.task(phase=states.DONE)), 3),
    "one that a task of ours is about": (SHRINKING.asked("Leave", 3, 0), 4),
    "one that a forged task is about": (SHRINKING.asked("Leave", 99, 0), 3),
    "one that a task is about, whose pod was taken away": (SHRINKING.set_of(replicas=3).asked("Leave", 3, 0), 4),
    "the objects are not known": (states.cache(4).wants(size=2).fact(objects=UNKNOWN), 4),
    "nothing is known": (states.cache(4).wants(size=2).fact(objects=UNKNOWN, polled=UNKNOWN), 4),
    "there is no StatefulSet": (states.cache(4).wants(size=2).but(workload=None), 4),
    "a leftover volume": (states.cache(2).wants(size=5).volume(3), 3),
}


@pytest.mark.parametrize(("it", "expected"), OBSERVED.values(), ids=OBSERVED)
def test_of_an_observation(it: states.It, expected: int) -> None:
    assert expected == it.seen.replicas


@pytest.mark.parametrize(
    ("it", "expected"),
    [
        pytest.param(states.cache(), 0.0, id="nowhere"),
        pytest.param(states.cache().stands("step", age=7), 7.0, id="for a while"),
        pytest.param(states.cache().stands("step", age=-7), 0.0, id="by a clock that runs ahead"),
        pytest.param(states.cache().stands("step"), 0.0, id="just now"),
    ],
)
def test_how_long_the_steps_have_stood(it: states.It, expected: float) -> None:
    assert expected == it.seen.waited_at("step")
    assert 0.0 == it.seen.waited_at("another step")
