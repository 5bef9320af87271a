"""The benchmarks' tables, and where they are put."""

from __future__ import annotations

import pytest

from benchmarks import many, page, profiles, table

FIGURES = {
    "cold": {
        "moorage": {"objects/s": [500.0, 520.0, 510.0], "writes/object": [2.0, 2.0, 2.0]},
        "controller-runtime": {"objects/s": [400.0, 400.0, 400.0]},
        "limit": {"objects/s": [550.0, 560.0]},
    },
    "change": {"moorage": {"p99 ms": [10.0, 10.0, 20.0]}},
    "backlog": {"moorage": {"p99 ms": [20.0, 30.0, 40.0]}},
}


def _target(says):
    return next(target for target in table.TARGETS if target.says == says)


def test_a_target_about_a_peer_is_judged_by_the_ratio_of_each_round():
    """Moorage's to the peer's."""
    assert [1.25, 1.3, 1.275] == table.values(FIGURES, _target("cold start, objects/s to CR"))


def test_a_target_about_moorage_alone_is_judged_by_its_own_figures():
    """Or by two of its own."""
    assert [2.0, 2.0, 2.0] == table.values(FIGURES, _target("cold start, writes per object"))
    assert [2.0, 3.0, 2.0] == table.values(FIGURES, _target("change behind a backlog, p99 to its own idle p99"))


def test_a_peer_that_takes_only_the_first_rounds_is_compared_in_those():
    """Each with moorage's of the same round; the later ones of moorage have nothing beside them."""
    ran = {"cold": {"moorage": {"objects/s": [500.0, 520.0, 90.0]}, "limit": {"objects/s": [1000.0, 500.0]}}}

    assert [0.5, 1.04] == table.values(ran, _target("cold start, objects/s to the limit"))
    assert "| cold | objects/s | 500 | 750 (0.770x, 0.500 - 1.04) |" in table.medians(ran)


def test_cases_with_different_numbers_of_rounds_are_not_compared():
    """They may be of two runs; the table says that it was not measured."""
    says = "change behind a backlog, p99 to its own idle p99"
    ran = {**FIGURES, "backlog": {"moorage": {"p99 ms": [20.0, 30.0]}}}

    assert [] == table.values(ran, _target(says))
    assert f"| {says} | <= 3 | not measured | | | |" in table.targets(ran)


def test_without_a_peer_there_is_nothing_to_compare_with():
    """The table says that it was not measured."""
    says = "cold start, objects/s to CR-RYW"

    assert [] == table.values(FIGURES, _target(says))
    assert f"| {says} | >= 1 (aim) | not measured | | | |" in table.targets(FIGURES)


def test_the_table_tells_what_is_reached_and_what_is_not():
    """With the interval beside it."""
    missed = {**FIGURES, "burst": {"moorage": {"writes/object": [4.0, 4.0, 4.0]}}}
    text = table.targets(missed)

    assert "| cold start, objects/s to CR | >= 1.2 | 1.27 | 1.25 - 1.30 | 1.25 - 1.30 | yes |" in text
    assert "| burst, writes per object | <= 2 | 4 | 4 - 4 | 4 - 4 | **no** |" in text
    assert "targets not reached: burst, writes per object" == table.unreached(missed)


def test_medians_stand_side_by_side_with_moorages_ratio():
    """One row for each figure, one column for each runtime that took part."""
    text = table.medians(FIGURES)

    assert text.startswith("| case | figure | moorage | controller-runtime | limit |\n")
    assert "| cold | objects/s | 510 | 400 (1.27x, 1.25 - 1.30) | 555 (0.919x, 0.909 - 0.929) |\n" in text
    assert "| cold | writes/object | 2 |  |  |\n" in text


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, "0"), (2.0, "2"), (0.01234, "0.0123"), (1.275, "1.27"), (12.34, "12.3"), (1234.5, "1,234"), (1e400, "∞")],
)
def test_numbers_have_three_digits_that_count(value, expected):
    """Neither more precise than measured nor rounded to nothing."""
    assert expected == table.number(value)


def test_every_target_has_exactly_one_bound_and_at_most_one_comparison():
    """Or it could not be judged."""
    for target in table.TARGETS:
        assert (target.at_least is None) is not (target.at_most is None), target.says
        assert not (target.peer and target.own[0]), target.says


def test_the_tables_replace_what_an_earlier_run_has_left():
    """The words around them stay."""
    text = f"before\n\n{page.BEGIN}\n\nold\n\n{page.END}\n\nafter\n"

    assert f"before\n\n{page.BEGIN}\n\nnew\n\n{page.END}\n\nafter\n" == page.put("new", text)


def test_a_page_without_a_place_for_the_tables_is_an_error():
    """Rather than a run of 40 minutes that is written nowhere."""
    with pytest.raises(ValueError, match="no place"):
        page.put("new", "before and after")


def test_a_run_can_be_rendered_whole():
    """Targets, medians and machine."""
    text = page.tables(FIGURES, [("CPU", "2 x something")])

    assert ["### Targets", "### Medians", "### Machine"] == [line for line in text.splitlines() if line[:3] == "###"]
    assert "| CPU | 2 x something |" in text


@pytest.mark.parametrize(
    ("file", "name", "expected"),
    [
        ("/x/src/moorage/kube/client.py", "apply", "moorage.kube"),
        ("/x/src/moorage/kube/http/http1.py", "buffer_updated", "HTTP"),
        ("~", "<method 'feed_data' of 'httptools.parser.parser.HttpParser' objects>", "HTTP"),
        ("~", "<method 'write' of '_ssl._SSLSocket' objects>", "event loop, TLS and sockets"),
        ("~", "<method 'decode' of 'msgspec.json.Decoder' objects>", "msgspec"),
        ("/x/benchmarks/operators/moorage_widget.py", "observe", "the operator itself"),
        ("/usr/lib/python3.11/enum.py", "__call__", "the rest of Python"),
    ],
)
def test_a_function_belongs_to_one_area_of_the_profile(file, name, expected):
    """By its file, or by its name when it is native."""
    assert expected == profiles.area(file, name)


def test_the_figures_of_reading_get_the_names_that_targets_know():
    """Every figure of the case `pods` that a target speaks of is taken over."""
    named = {(runtime, name) for runtime, _, _, name in many.TAKEN}
    wanted = {("moorage", each.figure) for each in table.TARGETS if each.case == "pods"}
    read = many.Read({case: {figure: [1.0]} for _, case, figure, _ in many.TAKEN})
    for _, case, figure, _ in many.TAKEN:
        read.cases[case][figure] = [1.0]

    assert wanted <= named
    assert named == {(runtime, name) for runtime, of in many.taken(read).items() for name in of}
