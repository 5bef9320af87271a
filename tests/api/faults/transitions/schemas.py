"""What an API server does with a spec by its schema: fill in, merge, refuse. Pure.

Only what the definitions of moorage use, without their rules in CEL: what these refuse is declared. It is a second
opinion beside the API server's: where the two differ, the campaign says so.
"""

from __future__ import annotations

import copy
import re
from typing import Any

Schema = dict[str, Any]
_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "object": dict,
    "array": list,
}
_FORMATS = {"int32": 31, "int64": 63}


def spec_of(definition: Schema) -> Schema:
    """The schema of the spec of a CustomResourceDefinition."""
    found: Schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return found


def rules(schema: Schema) -> list[Schema]:
    """All rules in CEL, at any depth."""
    found = list(schema.get("x-kubernetes-validations", ()))
    for inside in schema.get("properties", {}).values():
        found += rules(inside)
    return found


def merged(base: Any, change: Any) -> Any:
    """As a merge patch does it (RFC 7396)."""
    if not isinstance(change, dict):
        return change
    made = dict(base) if isinstance(base, dict) else {}
    for key, value in change.items():
        if value is None:
            made.pop(key, None)
        else:
            made[key] = merged(made.get(key), value)
    return made


def together(first: Any, second: Any) -> Any:
    """One merge patch that does what both do, in this order."""
    if not (isinstance(first, dict) and isinstance(second, dict)):
        return second
    return {**first, **{key: together(first.get(key), value) for key, value in second.items()}}


def filled(schema: Schema, value: Any) -> Any:
    """With the defaults of what is absent."""
    if isinstance(value, list):
        return [filled(schema.get("items", {}), item) for item in value]
    if not isinstance(value, dict):
        return value
    made = dict(value)
    for name, inside in schema.get("properties", {}).items():
        if name not in made and "default" in inside:
            made[name] = copy.deepcopy(inside["default"])
        if name in made:
            made[name] = filled(inside, made[name])
    return made


def fits(pattern: str, text: str) -> bool:
    """Whether the API server's expressions, which know no line break before `$`, find the pattern in a text."""
    return re.search(re.sub(r"\$$", r"\\Z", pattern), text) is not None


def faults(schema: Schema, value: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Where a value is not as the schema wants it."""
    kind = schema.get("type")
    if kind and (not isinstance(value, _TYPES[kind]) or (isinstance(value, bool) and kind != "boolean")):
        return [path]
    found = [] if _fits_limits(schema, value) else [path]
    if isinstance(value, dict):
        found += [(*path, name) for name in schema.get("required", ()) if name not in value]
        properties, other = schema.get("properties", {}), schema.get("additionalProperties", {})
        for name, item in value.items():
            found += faults(properties.get(name, other), item, (*path, name))
    if isinstance(value, list):
        for item in value:
            found += faults(schema.get("items", {}), item, path)
    return found


def _fits_limits(schema: Schema, value: Any) -> bool:
    if "enum" in schema and value not in schema["enum"]:
        return False
    if isinstance(value, str):
        right = _between(len(value), schema, "minLength", "maxLength")
        return right and ("pattern" not in schema or fits(schema["pattern"], value))
    if isinstance(value, dict):
        return _between(len(value), schema, "minProperties", "maxProperties")
    if isinstance(value, list):
        return _between(len(value), schema, "minItems", "maxItems")
    if isinstance(value, int) and not isinstance(value, bool):
        most = 2 ** _FORMATS[schema.get("format", "int64")]
        return -most <= value < most and _between(value, schema, "minimum", "maximum")
    return True


def _between(value: int, schema: Schema, least: str, most: str) -> bool:
    floor: int = schema.get(least, value)
    ceiling: int = schema.get(most, value)
    return floor <= value <= ceiling
