"""The page that says which test shows which case of Weka: each test that it names exists, with the row of its table."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[3]
PAGE = (TESTS / "api/weka/README.md").read_text()
NAMED = re.findall(r"`([\w/]+\.py)::(\w+)(?:\[([^`]+)\])?`", PAGE)


def section(name: str) -> list[list[str]]:
    """The cells of a section's table."""
    text = PAGE.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    rows = [line for line in text.splitlines() if line.startswith("| ")][1:]
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows]


@pytest.mark.parametrize("path", sorted({path for path, _, _ in NAMED}))
def test_every_test_that_shows_a_case_exists(path: str) -> None:
    nodes = list(ast.walk(ast.parse((TESTS / path).read_text())))
    tests = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}

    assert [] == [test for where, test, _ in NAMED if where == path and test not in tests]
    assert [] == [row for where, _, row in NAMED if where == path and row and row not in texts]


def test_every_case_is_shown_or_said_not_to_be() -> None:
    rows = [line.split("|") for line in PAGE.splitlines() if line.startswith("| ")]

    assert [] == [row[1].strip() for row in rows if not row[2].strip() and not row[3].strip()]


def test_bad_input_has_many_rows_each_with_a_test_and_its_words() -> None:
    rows = section("Bad input")

    assert len(rows) >= 25
    assert [] == [row[0] for row in rows if not row[1] or not row[2].strip("| ")]


def test_every_weak_point_has_its_answer() -> None:
    assert [str(it) for it in range(1, 11)] == [row[0].split()[0] for row in section("Weak points of the original")]
