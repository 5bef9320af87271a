"""The layer knows no system and no helm, and leaves every word that a user sees to whoever uses it."""

from __future__ import annotations

import ast
import inspect
import pkgutil
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from moorage import children
from moorage.children import objects, pod_replacement, removal, stateful_set, volumes

MODULES = [__import__(it.name, fromlist=["_"]) for it in pkgutil.walk_packages(children.__path__, "moorage.children.")]
STEPS = (objects, removal, pod_replacement, volumes, stateful_set)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_it_names_no_system(module: ModuleType) -> None:
    """Not in its words either: a StatefulSet's pods are no cache's members."""
    text = inspect.getsource(module).lower()

    assert [] == [word for word in ("xsld", "opencga", "weka", "datagrid", "xsldcache") if word in text]


def test_all_but_what_asks_the_api_server_is_held_to_be_pure() -> None:
    """By the import contract, which names each module."""
    contracts = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["tool"]["importlinter"]
    (pure,) = [it["source_modules"] for it in contracts["contracts"] if it["name"].startswith("decisions, builders")]
    flat = {it.__name__ for it in MODULES if not it.__name__.startswith("moorage.children.live")}

    assert flat == {name for name in pure if name.startswith("moorage.children")}


@pytest.mark.parametrize("module", STEPS, ids=lambda module: module.__name__)
def test_every_verdict_is_under_a_reason_that_is_handed_in(module: ModuleType) -> None:
    """Reasons are API, and their words are about a system."""
    given = [
        node.args[0]
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("Act", "Wait", "Blocked")
    ]
    said = {ast.unparse(each) for each in given}

    assert said
    assert said <= {"reason", "blocked", "reasons.creating", "reasons.resizing", "reasons.replacing", "reasons.ending"}
