"""The definition: the original's names, columns and fields; how durations and versions are read."""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.operators.opencga import types

ORIGINAL = "members type version"
SAMPLES = "automationConfig security statefulSet additionalOpenCGAConfig prometheus"


def schema() -> dict[str, Any]:
    made: Any = types.definition()
    (version,) = made["spec"]["versions"]
    return dict(version)


def test_it_is_called_as_the_original() -> None:
    """Plural and singular are one word, and it has a short name."""
    made: Any = types.definition()

    assert "opencgacommunity.opencga.zetta.com" == made["metadata"]["name"]
    assert {
        "kind": "OpenCGACommunity",
        "listKind": "OpenCGACommunityList",
        "plural": "opencgacommunity",
        "singular": "opencgacommunity",
        "shortNames": ["ocbc"],
    }.items() <= made["spec"]["names"].items()
    assert ("v1", "Namespaced") == (schema()["name"], made["spec"]["scope"])


def test_it_has_the_originals_columns_first() -> None:
    """At the same paths."""
    columns = [(it["name"], it["jsonPath"], it["type"]) for it in schema()["additionalPrinterColumns"]]

    assert [
        ("RestURI", ".status.opencgarestUri", "string"),
        ("Phase", ".status.phase", "string"),
        ("Version", ".status.version", "string"),
    ] == columns[:3]


def test_it_has_all_fields_of_the_original_and_of_its_samples() -> None:
    """Of the status too, by the same names."""
    whole = schema()["schema"]["openAPIV3Schema"]["properties"]
    status = "opencgarestUri phase version currentStatefulSetReplicas currentOpenCGARESTMembers message"

    assert set(f"{ORIGINAL} {SAMPLES}".split()) <= set(whole["spec"]["properties"])
    assert set(status.split()) <= set(whole["status"]["properties"])
    assert ["version"] == whole["spec"]["required"]
    assert {"enum": ["ReplicaSet"], "default": "ReplicaSet"}.items() <= whole["spec"]["properties"]["type"].items()
    assert 3 == whole["spec"]["properties"]["members"]["default"]


def test_it_scales() -> None:
    """By the members of the spec."""
    assert {
        "specReplicasPath": ".spec.members",
        "statusReplicasPath": ".status.currentStatefulSetReplicas",
        "labelSelectorPath": ".status.selector",
    } == schema()["subresources"]["scale"]


def test_defaults_of_the_code_are_those_of_the_definition() -> None:
    """What the API server fills in changes nothing."""

    def filled(fields: dict[str, Any]) -> dict[str, Any]:
        made = {key: it["default"] for key, it in fields.items() if "default" in it}
        return {
            key: value | filled(fields[key].get("properties", {})) if isinstance(value, dict) else value
            for key, value in made.items()
        }

    spec = schema()["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    told = {"version": "5.0.0", **filled(spec)}

    assert msgspec.convert({"version": "5.0.0"}, types.CommunitySpec) == msgspec.convert(told, types.CommunitySpec)


def test_versions_have_an_order() -> None:
    """By numbers; what is none is below all."""
    given = ["5.0.10", "5.0.9", "10.0.0", "", "5.0", "4.99.99"]

    assert ["", "5.0", "4.99.99", "5.0.9", "5.0.10", "10.0.0"] == sorted(given, key=types.number)
