"""The definition of a RuntimeVersion beside a .krt file, and what is read of a spec."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from moorage.operators.kre.krt import model, reading
from moorage.operators.kre.version import graph_check, types

from . import schemas, texts, versions

ROOT = Path(__file__).resolve().parents[4]


def test_limits_are_those_of_a_krt_file() -> None:
    """What `moorage krt check` takes, a RuntimeVersion takes too."""
    spec = schemas.of(types.definition())["properties"]
    flow = spec["workflows"]["items"]["properties"]

    assert reading.MAX_WORKFLOWS == spec["workflows"]["maxItems"]
    assert (reading.MAX_NODES, reading.MAX_NODES) == (flow["nodes"]["maxItems"], spec["nodes"]["maxItems"])
    assert reading.MAX_CONFIG == spec["config"]["maxItems"]
    assert (19, 63) == (spec["version"]["maxLength"], flow["entrypoint"]["maxLength"])


def test_lists_are_by_name_so_that_two_authors_can_share_them() -> None:
    """And no two entries have one name."""
    spec = schemas.of(types.definition())["properties"]
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

    assert [] == schemas.unknown(example["spec"], schemas.of(types.definition()))
    assert graph_check.Told() == spec.told
    assert spec.entrypoint.proto.inline == (ROOT / "examples/kre/greeter/public_input.proto").read_text()
