"""The table of what is taken for granted: the code's, the page's and the chart's are one."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from msgspec import inspect

from moorage.operators.weka import dialect

ROOT = Path(__file__).resolve().parents[4]
PAGE = (ROOT / "docs/weka.md").read_text()
SOURCE = (ROOT / "src/moorage/operators/weka/dialect.py").read_text()
SECTIONS: dict[str, type[msgspec.Struct]] = {
    field.encode_name: field.type.cls  # type: ignore[attr-defined]
    for field in inspect.type_info(dialect.Dialect).fields  # type: ignore[attr-defined]
}
FIELDS = [
    (section, field.encode_name, field.name, field.default)
    for section, of in SECTIONS.items()
    for field in inspect.type_info(of).fields  # type: ignore[attr-defined]
]


def test_the_page_has_every_row_with_its_default() -> None:
    rows = re.findall(r"^\| `((?:sizes|ports|files|commands|words)\.\w+)` \| (.*?) \|", PAGE, re.MULTILINE)

    assert [
        (f"{section}.{name}", f"`{default}`" if default != "" else "empty") for section, name, _, default in FIELDS
    ] == rows


def test_what_the_code_calls_a_guess_the_page_does_too() -> None:
    guessed = set(re.findall(r"^    (\w+): .*# (?:noqa: \w+ - )?guess", SOURCE, re.MULTILINE))
    named = {name for _, name in re.findall(r"^\| `(\w+)\.(\w+)` \|.*\| guess", PAGE, re.MULTILINE)}

    assert {name for _, name, field, _ in FIELDS if field in guessed} == named
    assert len(named) > 8


@pytest.mark.parametrize(
    ("words", "said", "has"),
    [("OK REDISTRIBUTING", "Redistributing", True), ("OK", "OK_NOT", False), ("UP", "", False), ("", "UP", False)],
)
def test_a_word_is_one_of_several_whole_ones(words: str, said: str, has: bool) -> None:
    assert has == dialect.Words().has(words, said)
