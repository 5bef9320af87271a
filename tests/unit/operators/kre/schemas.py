"""What a definition says of its kind's fields."""

from __future__ import annotations

from typing import Any


def of(definition: dict[str, Any], part: str = "spec") -> dict[str, Any]:
    """The schema of spec, or of another part."""
    found: dict[str, Any] = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"][part]
    return found


def unknown(value: Any, schema: dict[str, Any], path: str = "spec") -> list[str]:
    """Fields that a strict API server would refuse."""
    if schema.get("x-kubernetes-preserve-unknown-fields") or "additionalProperties" in schema:
        return []
    if isinstance(value, list):
        return [each for item in value for each in unknown(item, schema["items"], f"{path}[]")]
    if not isinstance(value, dict):
        return []
    known = schema.get("properties", {})
    below = [each for key, item in value.items() if key in known for each in unknown(item, known[key], f"{path}.{key}")]
    return [f"{path}.{key}" for key in value if key not in known] + below
