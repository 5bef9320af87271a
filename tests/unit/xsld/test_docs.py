"""docs/xsld-reference.md says what the code says; the table of cases names tests that exist."""

from __future__ import annotations

import ast
import inspect
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from moorage.operators.xsld import names, reasons
from moorage.operators.xsld.cache import facts as cache_facts
from moorage.operators.xsld.cache import types as cache_types
from moorage.operators.xsld.grid import control as grid_control
from moorage.operators.xsld.grid import types as grid_types
from moorage.operators.xsld.group import dialect
from moorage.operators.xsld.template import control as template_control
from moorage.operators.xsld.template import types as template_types
from tests.unit.xsld import states
from tests.unit.xsld.grid import test_grid_control
from tests.unit.xsld.template import test_template_control

TESTS = Path(__file__).resolve().parents[2]
PAGE = (TESTS.parent / "docs/xsld-reference.md").read_text()
KINDS: dict[str, tuple[Any, Any, Any]] = {
    "XsldCache": (cache_types.definition(), cache_facts.FACTS, states.cache().seen),
    "DataGrid": (grid_types.definition(), grid_control.FACTS, test_grid_control.It().seen),
    "GridTemplate": (template_types.definition(), template_control.FACTS, test_template_control.It().seen),
}
REASONS = {str(reason) for reason in reasons.Reason}


def section(title: str, level: str = "##", within: str = PAGE) -> str:
    """The text below the heading that begins so, up to the next one of its level or above."""
    found = re.search(rf"^{level} {title}.*?$(.*?)(?=^#{{2,{len(level)}}} |\Z)", within, re.MULTILINE | re.DOTALL)
    assert found, f"{level} {title}"
    return found[1]


def rows(text: str) -> dict[str, list[str]]:
    """Of every table in it, the cells of each row, by what the first one names."""
    lines = (line for line in text.splitlines() if line.startswith("| `"))
    cells = ([cell.strip() for cell in line[1:-1].split("|")] for line in lines)
    return {row[0].strip("`"): row[1:] for row in cells}


def version(kind: str) -> dict[str, Any]:
    """The one version of its definition."""
    found: dict[str, Any] = KINDS[kind][0]["spec"]["versions"][0]
    return found


def fields(schema: dict[str, Any], path: str = "") -> dict[str, str]:
    """Every field below, with the default as the page writes it."""
    found = {}
    for name, field in schema.get("properties", {}).items():
        here = f"{path}{name}"
        given = field.get("default")
        text = "" if given is None else given if isinstance(given, str) else json.dumps(given).replace('"', "")
        text = "{}" if isinstance(given, dict) else text
        found[here] = "required" if name in schema.get("required", ()) else f"`{text}`" if text else ""
        found |= fields(field, f"{here}.")
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_of_the_spec_stands_there_with_its_default(kind: str) -> None:
    schema = version(kind)["schema"]["openAPIV3Schema"]["properties"]["spec"]

    written = {name: row[0] for name, row in rows(section("Spec", "###", section(kind))).items()}

    assert fields(schema) == written


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_of_the_status_stands_there(kind: str) -> None:
    schema = version(kind)["schema"]["openAPIV3Schema"]["properties"]["status"]
    leaves = set(schema["properties"])
    for name, field in schema["properties"].items():
        inner = field.get("items", field).get("properties", {})
        leaves |= set(inner) if name not in ("conditions", "progress") else set()

    written = set(re.findall(r"`(\w+)`", section("Status", "###", section(kind))))

    assert leaves <= written


@pytest.mark.parametrize("kind", KINDS)
def test_columns_and_short_names(kind: str) -> None:
    names_ = KINDS[kind][0]["spec"]["names"]
    shown = [
        f"{each['name']} (with `-o wide`)" if each.get("priority") else each["name"]
        for each in version(kind)["additionalPrinterColumns"]
    ]

    text = " ".join(section(kind).split())

    assert f"Columns: {', '.join(shown)}." in text
    assert f"`kubectl get {names_['plural']}`" in text
    assert all(f"short `{short}`" in text for short in names_.get("shortNames", ()))


@pytest.mark.parametrize("kind", KINDS)
def test_every_condition_stands_there_with_its_reasons(kind: str) -> None:
    _, facts, seen = KINDS[kind]
    written = rows(section("Conditions", "###", section(kind)))
    assert {fact(seen).type for fact in facts} == written.keys()
    for fact in facts:
        own = {str(reasons.Reason[word]) for word in re.findall(r"Reason\.([A-Z_]+)", inspect.getsource(fact))}

        told = set(re.findall(r"[A-Z]\w+", " ".join(written[fact(seen).type])))

        assert own <= told
        assert told <= REASONS | {"Degraded"}  # "those of Degraded"


def test_every_reason_stands_there() -> None:
    assert set() == REASONS - set(re.findall(r"\b[A-Z]\w+", PAGE))


def test_the_whole_dialect_stands_there() -> None:
    wanted: dict[str, Any] = {}
    for name, value in msgspec.to_builtins(dialect.Dialect()).items():
        inner = value.items() if isinstance(value, dict) else ()
        wanted |= {f"{name}.{key}": each for key, each in inner} if inner else {name: value}

    written = {key: row[0] for key, row in rows(section("Dialect")).items()}

    assert {key: "" if value == "" else f"`{value}`" for key, value in wanted.items()} == written


def test_finalizers_and_annotations_stand_there() -> None:
    for word in (names.CACHE_FINALIZER, names.GRID_FINALIZER, names.TEMPLATE_FINALIZER, names.ALLOW_RECREATE):
        assert f"`{word}" in section("Annotations")


CASES = (TESTS / "api/xsld/README.md").read_text()
NAMED = re.findall(r"`([\w/]+\.py)::(\w+)(?:\[([^`]+)\])?`", CASES)


@pytest.mark.parametrize("path", sorted({path for path, _, _ in NAMED}))
def test_every_test_that_shows_a_case_exists(path: str) -> None:
    """With the row of its table, if one is named."""
    nodes = list(ast.walk(ast.parse((TESTS / path).read_text())))
    tests = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    texts = {node.value for node in nodes if isinstance(node, ast.Constant)}

    assert [] == [test for where, test, _ in NAMED if where == path and test not in tests]
    assert [] == [row for where, _, row in NAMED if where == path and row and row not in texts]


def test_every_case_says_what_shows_it() -> None:
    """A test, or in words what is missing."""
    shown = [line.split("|") for line in CASES.splitlines() if line.startswith("| ")]

    assert [] == [cells[1].strip() for cells in shown if not cells[2].strip() and not cells[3].strip()]
