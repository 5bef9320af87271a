"""The guide says what the code does: every guess, every condition, every reason that stands on a page of its own."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from moorage.operators.opencga import control, dialect, facts, names, types
from moorage.runtime import decision
from tests.unit.opencga import states, test_control

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/opencga.md").read_text()


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def rows(title: str) -> dict[str, list[str]]:
    """The rows of the tables of a section by their first cell."""
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in section(title).splitlines() if "|" in line
    ]
    return {row[0].strip("`"): row[1:] for row in cells}


def test_the_whole_dialect_stands_there() -> None:
    """With its defaults, and where each is from."""
    wanted = {}
    for name, value in msgspec.to_builtins(dialect.Dialect()).items():
        inner = value if isinstance(value, dict) else {}
        wanted |= {f"{name}.{key}": f"`{each}`" for key, each in inner.items()} or {name: f"`{value}`"}
    written = {key: row for key, row in rows("Dialect").items() if row[0].startswith("`")}

    assert wanted == {key: row[0] for key, row in written.items()}
    assert all(row[2] for row in written.values())


def test_a_guess_of_the_code_is_one_of_the_page() -> None:
    """Field by field, as the code marks them."""
    text = (ROOT / "src/moorage/operators/opencga/dialect.py").read_text()
    marked = set(re.findall(r"^    (\w+): .*# guess", text, flags=re.MULTILINE))
    fields = {
        re.sub(r"([A-Z])", lambda m: f"_{m[1].lower()}", key.rpartition(".")[2])
        for key, row in rows("Dialect").items()
        if row[2:] == ["guess"]
    }

    assert marked == fields


def test_each_failure_is_told_as_the_page_has_it() -> None:
    """By the row of the same name in the tables of the steps."""
    told = {case: row for case, row in rows("When something fails").items() if row[0].startswith("`")}

    assert len(told) > 10
    for case, (reason, message) in told.items():
        standing = decision.decide(test_control.ROWS[case].seen, steps=control.STEPS).standing
        assert standing is not None, case
        assert reason.strip("`") == str(getattr(standing.verdict, "reason", "")), case
        assert message in getattr(standing.verdict, "message", ""), case


def test_every_condition_stands_there() -> None:
    """And those that readiness needs."""
    seen = states.demo().seen

    assert {fact(seen).type for fact in facts.FACTS} | {"Ready"} == set(rows("What it tells")) - {"condition", "---"}
    assert facts.READY_FACTS < {fact(seen).type for fact in facts.FACTS}


def test_every_field_of_the_spec_stands_there() -> None:
    """Under the original's, or under ours."""
    wire = {field.encode_name for field in msgspec.structs.fields(types.CommunitySpec)}
    told = {name.partition(".")[0].partition("[")[0] for name in re.findall(r"`([\w.\[\]]+)`", section("The spec"))}

    assert set() == wire - told
    assert names.configuration("NAME") in PAGE
    assert names.admin_password("NAME") in PAGE
