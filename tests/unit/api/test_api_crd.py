"""Structs to schemas and definitions: what each kind of field becomes."""

from __future__ import annotations

import datetime
import enum
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import pytest
from msgspec import Meta

from moorage.api import common_status, crd, schema


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Inner(msgspec.Struct, frozen=True, rename="camel"):
    """What is inside."""

    class_name: Annotated[str, Meta(max_length=63)] | None = None
    count: int = 3

    __cel__: ClassVar = crd.immutable("className")


class Bare(msgspec.Struct, frozen=True):
    note: str = ""


class Everything(msgspec.Struct, rename="camel", frozen=True):
    needed: Annotated[int, Meta(ge=1, le=9, description="How many.")]
    open_range: Annotated[float, Meta(gt=0, lt=1)] = 0.5
    flag: bool = False
    text: Annotated[str, Meta(min_length=1, max_length=5, pattern="^a")] = "abc"
    empty: str = ""
    choice: Literal["x", "y"] = "y"
    number: Literal[1, 2] = 1
    colour: Colour = Colour.BLUE
    quantity: Annotated[int | str, Meta(extra_json_schema={"pattern": "^[0-9]+$"})] = "1Gi"
    maybe: int | None = None
    unset: int | msgspec.UnsetType = msgspec.UNSET
    names: Annotated[list[Annotated[str, Meta(max_length=9)]], Meta(max_length=4)] = []
    pair: tuple[int, ...] = (1, 2)
    unique: set[str] = set()
    labels: Annotated[dict[str, str], Meta(max_length=8)] = {}
    limits: dict[str, int | str] = {}
    template: dict[str, Any] = {}
    anything: Any = None
    when: datetime.datetime | None = None
    blob: bytes = b""
    inner: Inner = Inner()
    special: Inner = Inner(count=7)
    bare: Bare = Bare()
    inners: tuple[Inner, ...] = ()
    made: list[int] = msgspec.field(default_factory=lambda: [1])


EXPECTED: dict[str, dict[str, Any]] = {
    "needed": {"type": "integer", "format": "int64", "minimum": 1, "maximum": 9, "description": "How many."},
    "openRange": {
        "type": "number",
        "minimum": 0,
        "exclusiveMinimum": True,
        "maximum": 1,
        "exclusiveMaximum": True,
        "default": 0.5,
    },
    "flag": {"type": "boolean", "default": False},
    "text": {"type": "string", "minLength": 1, "maxLength": 5, "pattern": "^a", "default": "abc"},
    "empty": {"type": "string"},
    "choice": {"type": "string", "enum": ["x", "y"], "default": "y"},
    "number": {"type": "integer", "enum": [1, 2], "default": 1},
    "colour": {"type": "string", "enum": ["red", "blue"], "default": "blue"},
    "quantity": {"x-kubernetes-int-or-string": True, "pattern": "^[0-9]+$", "default": "1Gi"},
    "maybe": {"type": "integer", "format": "int64"},
    "unset": {"type": "integer", "format": "int64"},
    "names": {"type": "array", "items": {"type": "string", "maxLength": 9}, "maxItems": 4},
    "pair": {"type": "array", "items": {"type": "integer", "format": "int64"}, "default": [1, 2]},
    "unique": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
    "labels": {"type": "object", "maxProperties": 8, "additionalProperties": {"type": "string"}},
    "limits": {"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": True}},
    "template": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "anything": {"x-kubernetes-preserve-unknown-fields": True},
    "when": {"type": "string", "format": "date-time"},
    "blob": {"type": "string", "format": "byte"},
    "made": {"type": "array", "items": {"type": "integer", "format": "int64"}, "default": [1]},
}


@pytest.mark.parametrize("field", EXPECTED)
def test_fields(field: str) -> None:
    assert schema.of(Everything)["properties"][field] == EXPECTED[field]


def test_nested_structs() -> None:
    made = schema.of(Everything)
    inner = made["properties"]["inner"]
    assert inner["description"] == "What is inside."
    assert inner["default"] == {}
    assert inner["properties"]["count"]["default"] == 3
    assert made["properties"]["special"]["default"] == {"count": 7}
    assert "default" not in made["properties"]["bare"]
    assert made["properties"]["inners"]["items"] == {key: value for key, value in inner.items() if key != "default"}
    assert made["required"] == ["needed"]


class Outer(msgspec.Struct, frozen=True):
    plain: Inner = Inner()
    special: Inner = Inner(count=7)
    bare: Bare = Bare()


class Outermost(msgspec.Struct, frozen=True):
    same: Outer = Outer()
    other: Outer = Outer(plain=Inner(class_name="fast"), bare=Bare("x"))


def test_a_default_says_what_differs_however_deep() -> None:
    """A field without a value is left out: for the API server null is a value, and of the wrong type."""
    fields = schema.of(Outermost)["properties"]

    assert {} == fields["same"]["default"]
    assert {"plain": {"className": "fast"}, "bare": {"note": "x"}} == fields["other"]["default"]
    assert {"count": 7} == fields["same"]["properties"]["special"]["default"]


def test_immutable_catches_setting_and_removing() -> None:
    (rule,) = schema.of(Inner)["x-kubernetes-validations"]
    assert rule["rule"].startswith("has(self.className) == has(oldSelf.className) && ")
    assert rule["fieldPath"] == ".className"
    (reserved,) = crd.immutable("namespace", message="no")
    assert "self.__namespace__ == oldSelf.__namespace__" in reserved.rule
    assert reserved.message == "no"
    (escaped,) = crd.immutable("a-b.c/d__e")
    assert "self.a__dash__b__dot__c__slash__d__underscores__e" in escaped.rule


class Loop(msgspec.Struct):
    again: list[Loop] = []


class Odd(msgspec.Struct):
    inner: dict[str, list[str | bool]] = {}


class Never(msgspec.Struct):
    fraction: complex = 0j


@pytest.mark.parametrize(
    ("struct", "path"), [(Loop, r"Loop\.again\[\]"), (Odd, r"Odd\.inner\.\*\[\]"), (Never, r"Never\.fraction")]
)
def test_what_can_not_be_said_names_its_path(struct: type[msgspec.Struct], path: str) -> None:
    with pytest.raises(TypeError, match=path):
        schema.of(struct)


class Seen(common_status.Status, frozen=True, kw_only=True):
    members: int = 0
    name: str


def test_the_definition() -> None:
    made = crd.crd(
        group="x.io",
        version="v1",
        kind="Thing",
        plural="things",
        short_names=("th",),
        spec=Everything,
        status=Seen,
        columns=(crd.Column("Ready", ".status.members", "integer"), crd.Column("Age", ".x", "date", "d", 1)),
        rules=(crd.Rule("self.metadata.name.size() < 9", "name", reason="FieldValueForbidden"),),
        scale=crd.Scale(".spec.needed", ".status.members", ".status.selector"),
        description="A thing.",
    )
    assert made["metadata"] == {"name": "things.x.io"}
    spec = made["spec"]
    assert spec["names"] == {
        "kind": "Thing",
        "listKind": "ThingList",
        "plural": "things",
        "singular": "thing",
        "shortNames": ["th"],
        "categories": ["moorage"],
    }
    assert spec["scope"] == "Namespaced"
    (version,) = spec["versions"]
    assert version["subresources"]["status"] == {}
    assert version["subresources"]["scale"]["labelSelectorPath"] == ".status.selector"
    assert version["additionalPrinterColumns"] == [
        {"name": "Ready", "type": "integer", "jsonPath": ".status.members"},
        {"name": "Age", "type": "date", "jsonPath": ".x", "description": "d", "priority": 1},
    ]
    root = version["schema"]["openAPIV3Schema"]
    assert root["description"] == "A thing."
    assert root["required"] == ["spec"]
    assert root["x-kubernetes-validations"][0]["reason"] == "FieldValueForbidden"
    observed = root["properties"]["status"]
    assert observed["default"] == {"observedGeneration": -1}
    assert "required" not in observed
    defaults = [name for name, field in observed["properties"].items() if "default" in field]
    assert defaults == ["observedGeneration"]
    assert observed["properties"]["conditions"]["x-kubernetes-list-map-keys"] == ["type"]


def test_a_spec_without_required_fields_may_be_left_out() -> None:
    made = crd.crd(group="x.io", version="v1", kind="Thing", plural="things", spec=Inner, namespaced=False)
    (version,) = made["spec"]["versions"]
    root = version["schema"]["openAPIV3Schema"]
    assert "required" not in root
    assert root["properties"]["spec"]["default"] == {}
    assert "status" not in root["properties"]
    assert "subresources" not in version
    assert made["spec"]["scope"] == "Cluster"


def test_order_is_stable() -> None:
    first, second = (msgspec.json.encode(schema.of(Everything)) for _ in range(2))
    assert first == second
