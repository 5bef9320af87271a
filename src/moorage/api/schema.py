"""msgspec types -> structural OpenAPI v3 schemas, as CustomResourceDefinitions want them. Pure.

Constraints, descriptions and `x-kubernetes-*` keys come from `msgspec.Meta`; its `extra_json_schema` is merged in last
and wins. A Struct may carry rules over its fields in `__cel__: ClassVar[tuple[Rule, ...]]`. A rule is only admitted
when its cost can be bounded, so what it reads needs maxLength and maxItems. What can go wrong: a type that has no
structural form raises TypeError with its path.
"""

from __future__ import annotations

import enum
import inspect
import re
from typing import Any

import msgspec
from msgspec import inspect as types

__all__ = ["Rule", "Schema", "immutable", "of"]

Schema = dict[str, Any]

_RESERVED = re.compile(
    "true|false|null|in|as|break|const|continue|else|for|function|if|import|let|loop|package|namespace|return|var|void|while"
)
_ESCAPES = (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__"))


class Rule(msgspec.Struct, frozen=True):
    """One CEL rule. `self` is the value that carries it, `oldSelf` what it was (then the rule runs on updates only)."""

    rule: str
    message: str
    reason: str = ""  # FieldValueInvalid (the default), FieldValueForbidden, FieldValueRequired, FieldValueDuplicate
    field_path: str = ""  # the field to blame, relative, e.g. ".size"
    message_expression: str = ""

    def schema(self) -> Schema:
        """An entry of x-kubernetes-validations."""
        optional = {"reason": self.reason, "fieldPath": self.field_path, "messageExpression": self.message_expression}
        return {"rule": self.rule, "message": self.message} | {key: text for key, text in optional.items() if text}


def immutable(*fields: str, message: str = "") -> tuple[Rule, ...]:
    """Rules for a Struct whose named fields (as on the wire) can't be changed, set later, or removed."""
    rule = "has(self.{0}) == has(oldSelf.{0}) && (!has(self.{0}) || self.{0} == oldSelf.{0})"
    return _each(fields, rule, message or "{0} can't be changed after creation")


def _each(fields: tuple[str, ...], rule: str, message: str) -> tuple[Rule, ...]:
    """One rule for each field; {0} is its name, in the rule as CEL writes it."""
    return tuple(
        Rule(rule.replace("{0}", _cel_name(field)), message.replace("{0}", field), field_path=f".{field}")
        for field in fields
    )


def _cel_name(field: str) -> str:
    if _RESERVED.fullmatch(field):
        return f"__{field}__"
    for text, escaped in _ESCAPES:
        field = field.replace(text, escaped)
    return field


def of(struct: type[msgspec.Struct], *, defaults: bool = True) -> Schema:
    """The schema of a Struct. `defaults=False` leaves its defaults to the code: right for what is only observed."""
    return _Walk(defaults).schema(types.type_info(struct), struct.__name__)


class _Walk:
    def __init__(self, defaults: bool) -> None:
        self._defaults = defaults
        self._inside: list[type] = []  # structs being walked, as a schema can't refer to itself

    def schema(self, type_: types.Type, path: str) -> Schema:
        match type_:
            case types.Metadata():
                return self.schema(type_.type, path) | (type_.extra_json_schema or {})
            case types.StructType():
                return self._struct(type_, path)
            case types.UnionType():
                return self._union(type_, path)
            case types.DictType():
                return self._map(type_, path)
            case types.ListType() | types.VarTupleType() | types.SetType() | types.FrozenSetType():
                return self._list(type_, path)
            case _:
                return _scalar(type_, path)

    def _struct(self, type_: types.StructType, path: str) -> Schema:
        if type_.cls in self._inside:
            raise TypeError(f"{path}: {type_.cls.__name__} contains itself, which a structural schema can't say")
        self._inside.append(type_.cls)
        properties = {field.encode_name: self._field(field, f"{path}.{field.encode_name}") for field in type_.fields}
        self._inside.pop()
        schema: Schema = {"type": "object"}
        if doc := type_.cls.__dict__.get("__doc__"):
            schema["description"] = inspect.cleandoc(doc)
        if properties:
            schema["properties"] = properties
        if required := [field.encode_name for field in type_.fields if field.required]:
            schema["required"] = required
        if rules := getattr(type_.cls, "__cel__", ()):
            schema["x-kubernetes-validations"] = [rule.schema() for rule in rules]
        return schema

    def _field(self, field: types.Field, path: str) -> Schema:
        schema = self.schema(field.type, path)
        if self._defaults and "default" not in schema:
            value = field.default
            if field.default_factory is not msgspec.NODEFAULT:
                value = field.default_factory()
            if (default := _default(value, schema)) is not None:
                schema["default"] = default
        return schema

    def _union(self, type_: types.UnionType, path: str) -> Schema:
        kinds = [kind for kind in type_.types if not isinstance(kind, types.NoneType)]
        if len(kinds) == 1:
            return self.schema(kinds[0], path)
        if {type(kind) for kind in kinds} == {types.IntType, types.StrType}:
            return {"x-kubernetes-int-or-string": True}
        raise TypeError(f"{path}: only `T | None` and `int | str` are unions that a structural schema can say")

    def _map(self, type_: types.DictType, path: str) -> Schema:
        schema: Schema = {"type": "object"} | _bounds(type_, "minProperties", "maxProperties")
        if isinstance(type_.value_type, types.AnyType):
            return schema | {"x-kubernetes-preserve-unknown-fields": True}
        return schema | {"additionalProperties": self.schema(type_.value_type, f"{path}.*")}

    def _list(
        self, type_: types.ListType | types.VarTupleType | types.SetType | types.FrozenSetType, path: str
    ) -> Schema:
        schema = {"type": "array", "items": self.schema(type_.item_type, f"{path}[]")}
        if isinstance(type_, types.SetType | types.FrozenSetType):
            schema["x-kubernetes-list-type"] = "set"
        return schema | _bounds(type_, "minItems", "maxItems")


def _scalar(type_: types.Type, path: str) -> Schema:
    match type_:
        case types.BoolType():
            return {"type": "boolean"}
        case types.IntType():
            return {"type": "integer", "format": "int64"} | _range(type_)
        case types.FloatType():
            return {"type": "number"} | _range(type_)
        case types.StrType():
            pattern = {"pattern": type_.pattern} if type_.pattern else {}
            return {"type": "string"} | _bounds(type_, "minLength", "maxLength") | pattern
        case types.BytesType():
            return {"type": "string", "format": "byte"}
        case types.DateTimeType():
            return {"type": "string", "format": "date-time"}
        case types.LiteralType():
            return _choice(list(type_.values))
        case types.EnumType():
            return _choice([member.value for member in type_.cls])
        case types.AnyType() | types.RawType():
            return {"x-kubernetes-preserve-unknown-fields": True}
        case _:
            raise TypeError(f"{path}: {type(type_).__name__} has no structural schema")


def _choice(values: list[Any]) -> Schema:
    return {"type": "string" if isinstance(values[0], str) else "integer", "enum": values}


def _bounds(type_: Any, least: str, most: str) -> Schema:
    found = {least: type_.min_length, most: type_.max_length}
    return {key: value for key, value in found.items() if value is not None}


def _range(type_: types.IntType | types.FloatType) -> Schema:
    found = {"multipleOf": type_.multiple_of, "minimum": type_.ge, "maximum": type_.le}
    schema: Schema = {key: value for key, value in found.items() if value is not None}
    if type_.gt is not None:
        schema |= {"minimum": type_.gt, "exclusiveMinimum": True}
    if type_.lt is not None:
        schema |= {"maximum": type_.lt, "exclusiveMaximum": True}
    return schema


def _default(value: Any, schema: Schema) -> Any:
    """The default to declare, or None. Empty texts and collections are left out: they would clutter every object."""
    if value is None or value is msgspec.NODEFAULT or value is msgspec.UNSET:
        return None
    if isinstance(value, msgspec.Struct):
        return _struct_default(value, schema)
    if isinstance(value, enum.Enum):
        value = value.value
    if isinstance(value, str | bytes | dict | list | tuple | set | frozenset) and not value:
        return None
    return msgspec.json.decode(msgspec.json.encode(value))


def _struct_default(value: msgspec.Struct, schema: Schema) -> Any:
    """What differs from the Struct's own defaults; {} when those are to be filled in, None when there are none."""
    properties, differing = schema.get("properties", {}), {}
    for field in msgspec.structs.fields(value):
        inner = properties.get(field.encode_name, {})
        told = _default(getattr(value, field.name), inner)
        if told is not None and told != inner.get("default"):
            differing[field.encode_name] = told
    nested = any("default" in field for field in properties.values())
    return differing if differing or nested else None
