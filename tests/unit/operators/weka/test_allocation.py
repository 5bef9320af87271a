"""Who gets which ports and drives: nobody what another has, and each again what was its own."""

from __future__ import annotations

import itertools
import json

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
    assert Span(65_036, 500) == allocation.cluster_range([], RULES, wanted=65_036)
    assert allocation.cluster_range([], RULES, wanted=65_037) is None


def test_one_that_has_no_ports_is_in_nobodys_way() -> None:
    assert Span(35_000, 500) == allocation.cluster_range([Span(35_100, 0)], RULES)
    assert Span(35_000, 500) == allocation.cluster_range([Span(35_100, 0)], RULES, wanted=35_000)


def test_the_last_range_ends_with_the_last_port() -> None:
    last = RULES.last - RULES.cluster + 1

    assert Span(last, 500) == allocation.cluster_range([Span(RULES.first, last - RULES.first)], RULES)
    assert allocation.cluster_range([Span(RULES.first, last + 1 - RULES.first)], RULES) is None


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


def test_who_can_t_have_both_ports_gets_none() -> None:
    within = Span(35_000, 500)

    assert (35_000, 35_499) == allocation.container_ports(within, [Span(35_300, 199)], RULES)
    assert allocation.container_ports(within, [Span(35_300, 200)], RULES) is None
    assert allocation.container_ports(within, [Span(35_000, 300)], RULES) is None


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


@pytest.mark.parametrize(
    ("text", "serials"),
    [
        ("", ()),
        ("[]", ()),
        ('["s1", "s2", "s1"]', ("s1", "s2")),
        ('[{"serial_id": "s1"}, {"serial": "s2"}, "s3"]', ("s1", "s2", "s3")),
        ('[{"serial_id": "s1", "serial": "s9"}]', ("s1",)),
        (json.dumps([f"s{it}" for it in range(512)]), tuple(f"s{it}" for it in range(512))),
    ],
    ids=["none", "an empty list", "texts", "objects", "both names", "as many as may be"],
)
def test_serials_of_a_node(text: str, serials: tuple[str, ...]) -> None:
    """As the original writes them, in either of its forms; each once."""
    assert serials == allocation.serials(text)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[", "it is no JSON: "),
        ("[" * 5000, "it is no JSON: "),
        ('{"a": 1}', "it is no list of at most 512 drives"),
        (json.dumps([f"s{it}" for it in range(513)]), "it is no list of at most 512 drives"),
        ("[1]", "an entry has no serial"),
        ("[{}]", "an entry has no serial"),
        ('["s1", ""]', "an entry has no serial"),
        ('["s1; reboot"]', "an entry has no serial"),
        (json.dumps(["s" * 129]), "an entry has no serial"),
    ],
)
def test_a_list_that_can_t_be_read_is_none(text: str, fault: str) -> None:
    """Whoever may write to nodes may write anything; what is no serial reaches no command."""
    with pytest.raises(ValueError, match=fault):
        allocation.serials(text)


@pytest.mark.parametrize(
    ("values", "domain"),
    [
        ((), ""),
        (("rack-1",), "rack-1"),
        (("room", "", "a/b"), "room-a-b"),
        (("0123456789abcdef",), "0123456789abcdef"),
        (("0123456789abcdefg",), "8378b19d693ee89e"),
    ],
)
def test_a_failure_domain_is_short_enough_for_the_product(values: tuple[str, ...], domain: str) -> None:
    """Sixteen characters; of what is longer a digest."""
    assert domain == allocation.failure_domain(values)
