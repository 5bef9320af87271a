"""Who gets which ports and drives: nobody what another has, and each again what was its own."""

from __future__ import annotations

import itertools

import pytest

from moorage.operators.weka import allocation, dialect
from moorage.operators.weka.allocation import Span

RULES = dialect.Ports()


def test_five_clusters_at_once_share_no_port() -> None:
    taken: list[Span] = []
    for _ in range(5):
        found = allocation.cluster_range(taken, RULES)
        assert found is not None
        taken.append(found)

    assert not [pair for pair in itertools.combinations(taken, 2) if pair[0].meets(pair[1])]
    assert [35_000, 35_500, 36_000, 36_500, 37_000] == [it.first for it in taken]


def test_a_gap_is_used_and_one_that_is_too_small_is_not() -> None:
    assert Span(35_500, 500) == allocation.cluster_range([Span(35_000, 500), Span(36_000, 500)], RULES)
    assert Span(36_400, 500) == allocation.cluster_range([Span(35_000, 500), Span(35_900, 500)], RULES)


def test_a_range_that_is_asked_for_is_given_or_none_is() -> None:
    assert Span(40_000, 500) == allocation.cluster_range([Span(35_000, 500)], RULES, wanted=40_000)
    assert allocation.cluster_range([Span(39_800, 500)], RULES, wanted=40_000) is None
    assert allocation.cluster_range([], RULES, wanted=65_400) is None


def test_what_is_full_is_full() -> None:
    full = [Span(RULES.first, RULES.last - RULES.first)]

    assert allocation.cluster_range(full, RULES) is None


def test_containers_of_a_node_share_no_port() -> None:
    within, taken, given = Span(35_000, 500), [], []
    while (found := allocation.container_ports(within, taken, RULES)) is not None:
        given.append(found)
        taken += [Span(found[0], RULES.container), Span(found[1], 1)]

    assert [35_000, 35_100, 35_200] == [it[0] for it in given]
    assert not [pair for pair in itertools.combinations(taken, 2) if pair[0].meets(pair[1])]
    assert all(within.first <= it.first and it.first + it.count <= within.first + within.count for it in taken)


@pytest.mark.parametrize(
    ("signed", "blocked", "taken", "wanted", "have", "given"),
    [
        (["b", "a", "c"], [], [], 2, [], ("a", "b")),
        (["a", "b", "c"], ["a"], ["b"], 2, [], ("c",)),
        (["a", "b", "c"], [], [], 1, ["c"], ("c",)),
        (["a", "b"], [], [], 2, ["b"], ("b", "a")),
        (["a", "b"], ["a"], [], 1, ["a"], ("a", "b")),
        (["a", "b"], [], [], 1, ["a", "b"], ("a", "b")),
        ([], [], [], 1, ["a"], ("a",)),
    ],
    ids=[
        "lowest first",
        "neither blocked nor another's",
        "what it has stays",
        "and more is added",
        "a blocked one is replaced, and not forgotten",
        "fewer takes none away",
        "one that is not shown is still its own",
    ],
)
def test_drives(
    signed: list[str], blocked: list[str], taken: list[str], wanted: int, have: list[str], given: tuple[str, ...]
) -> None:
    assert given == allocation.drives(signed, blocked, taken, wanted, have)
