"""The layer knows no system and no helm, and leaves every word that a user sees to whoever uses it."""

from __future__ import annotations

import ast
import inspect
import pkgutil
from types import ModuleType

import pytest

from moorage import children
from moorage.children import objects, removal, replacement, volumes, workload

MODULES = [__import__(it.name, fromlist=["_"]) for it in pkgutil.iter_modules(children.__path__, "moorage.children.")]
STEPS = (objects, removal, replacement, volumes, workload)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_it_names_no_system(module: ModuleType) -> None:
    """Not in its words either: a StatefulSet's pods are no cache's members."""
    text = inspect.getsource(module).lower()

    assert [] == [word for word in ("xsld", "collector", "opencga", "weka", "kre.") if word in text]


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
