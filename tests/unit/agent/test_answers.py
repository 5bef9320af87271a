"""What the product's commands print: read for sure, or not at all."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moorage.agent import answers, plan


@pytest.mark.parametrize(
    ("code", "output", "expected"),
    [
        (0, "[]", ()),
        (0, 'log\n[{"id": "a"}]\n', (plan.Migration("a"),)),
        (0, '[{"id": "a", "offline": false}]', (plan.Migration("a", stops=False),)),
        (0, '[{"id": "a", "offline": null, "manual": true}]', (plan.Migration("a", manual=True),)),
        (0, '[{"id": "a", "status": "ERROR"}, {"id": "b", "status": "ON_HOLD"}]', (plan.Migration("a"),)),
        (1, "[]", None),
        (0, "", None),
        (0, '[{"id": 1}]', None),
        (0, "] [", None),
    ],
)
def test_what_the_product_says_of_its_migrations(
    code: int, output: str, expected: tuple[plan.Migration, ...] | None
) -> None:
    """One that does not say otherwise forbids the old version; what can't be read is asked again."""
    assert expected == answers.migrations(code, output)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ('log {"demo": {"migrationsToBeApplied": 0}, "opencga": {"migrationsToBeApplied": 0}}', ()),
        (
            '{"demo": {"migrationsToBeApplied": 2}, "opencga": {"migrationsToBeApplied": 1}}',
            (plan.Migration("3 that migration search lists"),),
        ),
        ('{"migrationsToBeApplied": 1, "statusCount": {}}', (plan.Migration("1 that migration search lists"),)),
        ("{}", ()),
        ('{"demo": {}}', None),
        ('{"demo": {"migrationsToBeApplied": "x"}}', None),
        ("[1]", None),
        ("", None),
    ],
)
def test_migrations_whose_list_can_not_be_read_are_counted(
    output: str, expected: tuple[plan.Migration, ...] | None
) -> None:
    """By the product's summary; nobody knows what any of them forbids."""
    assert expected == answers.by_number(output)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ('{"mongodbStatus": true, "installed": true}', plan.Catalog(True, True)),
        ('log {"mongodbStatus": true, "installed": false}\nend', plan.Catalog(True, False)),
        ('{"mongodbStatus": "yes", "installed": 1}', plan.Catalog(False, False)),
        ("", plan.Catalog(False)),
        ("} {", plan.Catalog(False)),
        ("{{}", plan.Catalog(False)),
    ],
)
def test_what_the_product_says_of_its_catalog(output: str, expected: plan.Catalog) -> None:
    """With whatever is logged around it; of what is none it is not reachable."""
    assert expected == answers.catalog(output)


COLUMNS = ("ID", "Description", "Domain", "Version", "Language", "Manual", "Patch", "Status", "RunPatch", "Exception")


def row(name: str, manual: str = "false", status: str = "PENDING", **more: str) -> dict[str, str]:
    known = {"ID": name, "Description": "Indexes | are #12 [made]", "Domain": "CATALOG", "Version": "5.0.1"}
    return {**known, "Language": "JAVA", "Manual": manual, "Patch": "1", "Status": status, "RunPatch": "0", **more}


def table(*rows: dict[str, str], columns: tuple[str, ...] = COLUMNS, bars: bool = False, most: int = 50) -> str:
    """As the product lays one out: each column as wide as its widest cell, which is cut."""
    cells = [list(columns), *([each.get(name, "") for name in columns] for each in rows)]
    wide = [min(most, max(5, *(len(line[n]) for line in cells))) for n in range(len(columns))]

    def laid(line: list[str], separator: str) -> str:
        cut = [text if len(text) <= w else text[: w - 3] + "..." for text, w in zip(line, wide, strict=True)]
        return separator.join(text.ljust(w) for text, w in zip(cut, wide, strict=True))

    if bars:
        rule = "|" + "|".join("-" * (w + 2) for w in wide) + "|"
        lines = [f"| {laid(line, ' | ')} |" for line in cells]
        return "\n".join(["-" * len(rule), lines[0], rule, *lines[1:], "-" * len(rule)]) + "\n"
    lines = [f"\x1b[m{laid(line, ' ')} \x1b[m" for line in cells]
    return "\n".join([f"\x1b[1;30;107m{lines[0]}", *lines[1:]]) + "\n"


ROWS = (row("a"), row("b", status="DONE"), row("c", "true", "ERROR"), row("d", status="ON_HOLD"), row("e" * 60))
TOLD = (plan.Migration("a"), plan.Migration("c", manual=True), plan.Migration("e" * 47 + "..."))


@pytest.mark.parametrize("bars", [False, True])
@pytest.mark.parametrize("before", ["", "12:00 [main] INFO args=[] ID Status\n"])
def test_a_table_for_people_is_read_by_its_header(before: str, bars: bool) -> None:
    """In colours or between bars, with what a launcher logs before it; that of the product does not tell `offline`."""
    assert TOLD == answers.migrations(0, before + table(*ROWS, bars=bars))
    assert () == answers.migrations(0, before + table(bars=bars))


def test_a_table_that_says_which_are_offline_is_believed() -> None:
    """By a column of that name, and by its words alone."""
    columns = (*COLUMNS[:5], "Offline", *COLUMNS[5:])
    rows = [row("a", Offline="false"), row("b", Offline="true"), row("c", Offline="")]

    expected = (plan.Migration("a", stops=False), plan.Migration("b"), plan.Migration("c"))
    assert expected == answers.migrations(0, table(*rows, columns=columns))


@pytest.mark.parametrize(
    "output",
    [
        table(*ROWS) + "12:00 [main] ERROR connection lost\n",
        table(row("a", Exception="first line\nsecond line")),
        table(row("a", status="SOON")),
        table(row("a", manual="maybe")),
        table(row("")),
        table(row("a"), columns=("ID", "Status", "Patch")),
        "12:00 [main] INFO migrations=[]\n",
        "12:00 [main] INFO asked\n[] is what was asked\n",
    ],
)
def test_a_table_with_one_line_that_is_no_row_is_none(output: str) -> None:
    """What is cut, mixed with a log, or of a version that nobody knows, is not guessed: the summary is asked."""
    assert answers.migrations(0, output) is None


def annotated(name: str, run: Any, said: str = "manual=false") -> str:
    said = f'@org.opencb.opencga.catalog.migration.Migration({said}, description="a \\"b\\", id=\\"c", id="{name}")'
    return json.dumps({said: run}, indent=2)


def test_objects_under_the_text_of_an_annotation_are_read() -> None:
    """As the product prints them where JSON is asked for: one after another, with no list around."""
    output = "\n".join(
        [
            "12:00 [main] INFO {}",
            annotated("a", {"status": "PENDING", "jobs": [{"id": "{"}]}),
            annotated("b", None, "offline=false, manual=false"),
            annotated("c", {"status": "DONE"}),
            annotated("d", {"status": "OUTDATED"}, "manual=true, offline=true"),
        ]
    )

    expected = (plan.Migration("a"), plan.Migration("b", stops=False), plan.Migration("d", manual=True))
    assert expected == answers.migrations(0, output)


@pytest.mark.parametrize(
    "output",
    [
        annotated("a", {"status": "SOON"}),
        annotated("a", [1]),
        annotated("a", {}, "rank=1"),
        annotated("", {}),
        annotated("a", {}) + "\n{",
        '{"a": {}}',
        '{"Migration(": {}, "b": {}}',
        "{",
    ],
)
def test_objects_that_are_not_all_migrations_are_none(output: str) -> None:
    """One of them is enough."""
    assert answers.migrations(0, output) is None
