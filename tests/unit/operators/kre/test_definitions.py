"""The definitions of both kinds: their rules read what there is, and what they cost is bounded."""

from __future__ import annotations

import re
from typing import Any

import pytest

from moorage.operators import kre

from . import schemas

DEFINITIONS = [pytest.param(each, id=each["spec"]["names"]["kind"]) for each in kre.SYSTEM.definitions()]


def rules(of: dict[str, Any]) -> list[tuple[dict[str, Any], str]]:
    """Each rule of a schema, with the part that it stands at."""
    own = [(of, each["rule"]) for each in of.get("x-kubernetes-validations", ())]
    below = [*of.get("properties", {}).values(), *([of["items"]] if "items" in of else [])]
    return own + [each for one in below for each in rules(one)]


def reaches(of: dict[str, Any], path: list[str]) -> bool:
    """Whether there is a field at that path."""
    for name in path:
        if name not in of.get("properties", {}):
            return False
        of = of["properties"][name]
    return True


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_each_rule_reads_fields_that_there_are(definition: dict[str, Any]) -> None:
    """A rule over a field that is not in the schema keeps the whole definition from being accepted."""
    found = rules(schemas.of(definition))

    assert len(found) > 10
    for at, rule in found:
        for path in re.findall(r"\b(?:self|oldSelf)((?:\.[a-zA-Z_]+)+)(?![\w(])", rule):
            assert reaches(at, path.strip(".").split(".")), f"{path} of {rule}"


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_lists_and_texts_have_bounds_for_the_cost_of_rules(definition: dict[str, Any]) -> None:
    """An unbounded one under a rule is refused at admission of the definition."""

    def unbounded(of: dict[str, Any], path: str) -> list[str]:
        own = [path] if of.get("type") == "array" and "maxItems" not in of else []
        own += [path] if of.get("type") == "string" and not ({"maxLength", "enum"} & of.keys()) else []
        below = {**of.get("properties", {}), **({"[]": of["items"]} if "items" in of else {})}
        return own + [each for name, one in below.items() for each in unbounded(one, f"{path}.{name}")]

    assert [] == unbounded(schemas.of(definition), "spec")
