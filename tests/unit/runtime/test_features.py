"""The pages that say which test shows what name tests and files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TEST = re.compile(r"`((?:unit|api|e2e)/[\w/]+\.py)::(\w+)`")
LINK = re.compile(r"\]\((?!https:)([^)#]+)\)")


def test_every_feature_has_a_test_or_a_reason() -> None:
    """25 rows; none is empty, and each test that is named exists."""
    rows = re.findall(r"^\| (\d+) \|(.*)\|$", (ROOT / "docs" / "runtime-features.md").read_text(), re.MULTILINE)
    assert [str(number) for number in range(1, 26)] == [number for number, _ in rows]
    for number, row in rows:
        shown = TEST.findall(row)
        cells = [cell.strip() for cell in row.split("|")]
        assert shown or cells[2], f"row {number} says nothing"
        for path, name in shown:
            assert f"def {name}(" in (ROOT / "tests" / path).read_text(), f"row {number}: {path} has no {name}"


def test_every_case_of_kre_is_shown_or_said_not_to_be() -> None:
    """By tests that exist."""
    text = (ROOT / "tests/api/kre/README.md").read_text()
    cases = [line.split("|")[1:-1] for line in text.splitlines() if line.startswith("| ") and "shown by" not in line]

    assert len(cases) > 30
    assert [] == [case[0] for case in cases if not TEST.search(case[1])]
    for path, name in TEST.findall(text):
        assert f"def {name}(" in (ROOT / "tests" / path).read_text(), f"{path} has no {name}"


def test_bad_input_of_kre_has_many_rows_each_with_a_test_that_says_its_words() -> None:
    """What a person reads is what the test looks for."""
    text = (ROOT / "tests/api/kre/README.md").read_text().partition("\n## Bad input\n")[2]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")][1:]

    assert len(rows) >= 15
    for what, shown, message in rows:
        ((path, _),) = TEST.findall(shown)
        assert message in (ROOT / "tests" / path).read_text(), f"{what}: {path} does not look for {message!r}"


@pytest.mark.parametrize("page", ["reliability.md", "runtime-features.md"])
def test_every_link_leads_somewhere(page: str) -> None:
    """Files that the page links to are there."""
    for target in LINK.findall((ROOT / "docs" / page).read_text()):
        assert (ROOT / "docs" / target).exists(), target
