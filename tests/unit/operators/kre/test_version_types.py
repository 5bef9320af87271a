"""The definition of a RuntimeVersion: its rules read what there is, and what they cost is bounded."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from moorage.operators.kre.krt import model, reading
from moorage.operators.kre.version import graph_check, types

from . import texts, versions

ROOT = Path(__file__).resolve().parents[4]


def schema(definition: dict[str, Any], part: str = "spec") -> dict[str, Any]:
    found: dict[str, Any] = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"][part]
    return found


def rules(of: dict[str, Any]) -> list[tuple[dict[str, Any], str]]:
    own = [(of, each["rule"]) for each in of.get("x-kubernetes-validations", ())]
    below = [*of.get("properties", {}).values(), *([of["items"]] if "items" in of else [])]
    return own + [each for one in below for each in rules(one)]


def reaches(of: dict[str, Any], path: list[str]) -> bool:
    for name in path:
        if name not in of.get("properties", {}):
            return False
        of = of["properties"][name]
    return True


def test_each_rule_reads_fields_that_there_are() -> None:
    """A rule over a field that is not in the schema keeps the whole definition from being accepted."""
    found = rules(schema(types.definition()))

    assert len(found) > 10
    for at, rule in found:
        for path in re.findall(r"\b(?:self|oldSelf)((?:\.[a-zA-Z_]+)+)(?![\w(])", rule):
            assert reaches(at, path.strip(".").split(".")), f"{path} of {rule}"


def test_lists_and_texts_have_bounds_for_the_cost_of_rules() -> None:
    """An unbounded one under a rule is refused at admission of the definition."""

    def unbounded(of: dict[str, Any], path: str) -> list[str]:
        own = [path] if of.get("type") == "array" and "maxItems" not in of else []
        own += [path] if of.get("type") == "string" and not ({"maxLength", "enum"} & of.keys()) else []
        below = {**of.get("properties", {}), **({"[]": of["items"]} if "items" in of else {})}
        return own + [each for name, one in below.items() for each in unbounded(one, f"{path}.{name}")]

    assert [] == unbounded(schema(types.definition()), "spec")


def test_limits_are_those_of_a_krt_file() -> None:
    """What `moorage krt check` takes, a RuntimeVersion takes too."""
    spec = schema(types.definition())["properties"]
    flow = spec["workflows"]["items"]["properties"]

    assert reading.MAX_WORKFLOWS == spec["workflows"]["maxItems"]
    assert (reading.MAX_NODES, reading.MAX_NODES) == (flow["nodes"]["maxItems"], spec["nodes"]["maxItems"])
    assert reading.MAX_CONFIG == spec["config"]["maxItems"]
    assert (19, 63) == (spec["version"]["maxLength"], flow["entrypoint"]["maxLength"])


def test_lists_are_by_name_so_that_two_authors_can_share_them() -> None:
    """And no two entries have one name."""
    spec = schema(types.definition())["properties"]
    lists = (spec["workflows"], spec["config"], spec["nodes"], spec["workflows"]["items"]["properties"]["nodes"])

    assert [("map", ["name"])] * 4 == [
        (each["x-kubernetes-list-type"], each["x-kubernetes-list-map-keys"]) for each in lists
    ]


@pytest.mark.parametrize("text", [texts.V2, texts.V1], ids=["v2", "v1"])
def test_a_krt_file_and_a_spec_of_the_same_are_one_graph(text: str) -> None:
    """In the one form that all the rest reads."""
    krt = reading.read(text.encode()).krt
    assert krt is not None
    flows = [
        {
            "name": each.name,
            "entrypoint": each.entrypoint,
            "exitpoint": each.exitpoint,
            "nodes": [_as_spec(node) for node in each.nodes],
        }
        for each in krt.workflows
    ]

    assert krt.workflows == versions.spec(workflows=flows).graph


def _as_spec(node: model.Node) -> dict[str, Any]:
    fields = {"image": node.image, "src": node.src, "gpu": node.gpu, "replicas": node.replicas}
    return {"name": node.name, **fields, "subscriptions": list(node.subscriptions)}


def test_the_example_is_whole() -> None:
    """It has no field that the definition lacks, and its graph is sound."""
    example = yaml.safe_load((ROOT / "examples/kre/runtimeversion.yaml").read_text())
    spec = msgspec.convert(example["spec"], types.RuntimeVersionSpec)

    assert [] == unknown(example["spec"], schema(types.definition()))
    assert graph_check.Told() == spec.told
    assert spec.entrypoint.proto.inline == (ROOT / "examples/kre/greeter/public_input.proto").read_text()


def unknown(value: Any, of: dict[str, Any], path: str = "spec") -> list[str]:
    """Fields that a strict API server would refuse."""
    if isinstance(value, list):
        return [each for item in value for each in unknown(item, of["items"], f"{path}[]")]
    if not isinstance(value, dict):
        return []
    known = of.get("properties", {})
    below = [each for key, item in value.items() if key in known for each in unknown(item, known[key], f"{path}.{key}")]
    return [f"{path}.{key}" for key in value if key not in known] + below
