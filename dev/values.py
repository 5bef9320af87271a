"""Writes into the schema of the chart's values what the code says of them: the dialects of systems."""

from __future__ import annotations

import json
import sys
from typing import Any

import msgspec

from moorage import operators

from . import stage

SCHEMA = stage.ROOT / "charts/moorage/values.schema.json"
WIDTH = 120
"""Columns; what fits stands in one line."""

Schema = dict[str, Any]


def written() -> str:
    """The schema with the definitions of all dialects as the code has them; all else is written by hand."""
    schema: Schema = json.loads(SCHEMA.read_text())
    ours = {name: part for name, part in schema["definitions"].items() if not name.endswith(SUFFIX)}
    return _text({**schema, "definitions": {**ours, **_dialects()}}) + "\n"


SUFFIX = "Dialect"


def _dialects() -> Schema:
    found: Schema = {}
    for system in operators.SYSTEMS.values():
        for field in msgspec.structs.fields(system.config):
            if field.name == "dialect":
                found[f"{system.name}{SUFFIX}"] = _of(field.type)
    return found


def _of(dialect: type[Any]) -> Schema:
    """A dialect with its sections in place, and without what is no rule: titles, defaults and the code's own words."""
    (whole,), parts = msgspec.json.schema_components([dialect])

    def plain(part: Any) -> Any:
        if not isinstance(part, dict):
            return part
        if "$ref" in part:
            return plain(parts[part["$ref"].rpartition("/")[2]])
        made = {key: plain(value) for key, value in part.items() if key not in ("title", "default", "description")}
        if "properties" in part:
            made |= {"properties": {name: plain(each) for name, each in part["properties"].items()}}
            made.pop("required")
        return made

    return {"description": f"The names are those of {dialect.__module__}", **plain(whole)}


def _text(value: Any, indent: int = 0, room: int = 0) -> str:
    """JSON, of which each part that fits stands in one line; `room` is taken in its line by what comes before."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + indent + room < WIDTH or not isinstance(value, dict | list) or not value:
        return line
    inner, outer = " " * (indent + 2), " " * indent
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {_text(each, indent + 2, len(key) + 4)}" for key, each in value.items()]
        return "{\n" + ",\n".join(inner + part for part in parts) + f"\n{outer}}}"
    return "[\n" + ",\n".join(inner + _text(each, indent + 2) for each in value) + f"\n{outer}]"


def work() -> int:
    """Write it."""
    SCHEMA.write_text(written())
    return 0


if __name__ == "__main__":
    sys.exit(stage.main(["make crds"], work))
