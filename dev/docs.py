"""Writes docs/reasons.md and docs/api.md from the code: the reasons' enums and the CustomResourceDefinitions."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from moorage import operators
from moorage.children import reasons as object_reasons
from moorage.helm.runs import failures
from moorage.runtime import decision, reasons

from . import stage

Schema = dict[str, Any]
FAILURES = failures.FailureKind
NOTE = "<!-- Written by `make docs` from the code; change it there. -->"


def pages() -> dict[str, str]:
    """The generated pages by file name below docs/."""
    return {"reasons.md": _reasons(), "api.md": _api()}


# --- reasons ----------------------------------------------------------------------------------------------------------


def _reasons() -> str:
    lines = [
        "# Reasons",
        "",
        NOTE,
        "",
        "The reason of a condition, of an event and of a log line is one of these words. They are part of the API: a",
        "word keeps its meaning. What comes next is also in `status.progress.next` of each object, by its names, and",
        "`moorage explain` shows it. Events of the words with ⚠ are Warnings, as a person should look; so are all",
        "of an object that is Stalled, where nothing goes on before a person acts.",
        "",
        "## Every kind",
        "",
        *_table(reasons.Reason),
    ]
    for system in operators.SYSTEMS.values():
        own = [enum for enum in system.reasons if enum.__module__.startswith(f"moorage.operators.{system.name}")]
        for enum in system.reasons:
            title = f"## {system.title}" if enum in own else f"## {system.title}: its release"
            if enum in own and len(own) > 1:
                title += f": {enum.__name__.removesuffix('Reason')}"
            lines += ["", title, "", *_table(enum)]
    for title, text, enum in (
        ("What helm's runs fail with", "Of every kind that is a release; the message has Helm's own words.", FAILURES),
        ("What keeps pods from being ready", "The message names the pod and the container.", object_reasons.PodReason),
        ("What keeps other objects from being ready", "The message names the object.", object_reasons.ObjectReason),
    ):
        lines += ["", f"## {title}", "", text, "", *_table(enum)]
    return "\n".join([*lines, ""])


def _table(enum: type[decision.Reason]) -> list[str]:
    made = ["| reason | what it means | what comes next |", "|---|---|---|"]
    for reason in sorted(enum, key=str):
        mark = " ⚠" if reason.warns else ""
        made.append(f"| `{reason}`{mark} | {_cell(reason.help)} | {_cell(reason.next)} |")
    return made


# --- API --------------------------------------------------------------------------------------------------------------


def _api() -> str:
    lines = [
        "# API",
        "",
        NOTE,
        "",
        "Every field of every kind, as the API server knows it (`kubectl explain` shows the same).",
    ]
    for system in operators.SYSTEMS.values():
        for definition in system.definitions():
            lines += _kind(definition)
    return "\n".join([*lines, ""])


def _kind(definition: Schema) -> list[str]:
    spec = definition["spec"]
    names, version = spec["names"], spec["versions"][0]
    root = version["schema"]["openAPIV3Schema"]
    schema = root["properties"]
    short = ", ".join(f"`{name}`" for name in names.get("shortNames", ()))
    lines = [
        "",
        f"## {names['kind']}",
        "",
        f"`apiVersion: {spec['group']}/{version['name']}`, plural `{names['plural']}`"
        + (f", short {short}" if short else "")
        + (f", in the categories {', '.join(f'`{c}`' for c in names['categories'])}" if names.get("categories") else "")
        + ".",
    ]
    for part in ("spec", "status"):
        if part in schema:
            lines += [
                "",
                f"### {names['kind']} {part}",
                "",
                "| field | type | default | meaning |",
                "|---|---|---|---|",
            ]
            lines += _fields(schema[part], part)
            if rules := list(_rules(schema[part])):
                lines += ["", "Rules that the API server checks:", "", *(f"- {rule}" for rule in rules)]
    whole = {key: part for key, part in root.items() if key != "properties"}
    if rules := list(_rules(whole)):
        lines += ["", f"Rules over the whole {names['kind']}:", "", *(f"- {rule}" for rule in rules)]
    columns = version.get("additionalPrinterColumns", ())
    if columns:
        lines += ["", "Columns of `kubectl get`: " + ", ".join(_column(column) for column in columns) + "."]
    return lines


def _fields(schema: Schema, path: str) -> Iterator[str]:
    required = set(schema.get("required", ()))
    for name, field in schema.get("properties", {}).items():
        here = f"{path}.{name}"
        default = f"`{_default(field['default'])}`" if "default" in field else "required" if name in required else ""
        yield f"| `{here}` | {_type(field)} | {default} | {_cell(_meaning(field))} |"
        yield from _fields(field, here)
        items = field.get("items")
        if isinstance(items, dict):
            yield from _fields(items, f"{here}[]")


def _default(value: Any) -> str:
    if isinstance(value, dict):
        return "{}"
    return f'"{value}"' if isinstance(value, str) else str(value)


def _type(field: Schema) -> str:
    if "enum" in field:
        return " \\| ".join(str(choice) for choice in field["enum"])
    kind = field.get("type", "any")
    if kind == "array":
        return f"list of {field['items'].get('type', 'any')}"
    if kind == "object" and isinstance(field.get("additionalProperties"), dict):
        return f"map of {field['additionalProperties'].get('type', 'any')}"
    return str(kind)


def _meaning(field: Schema) -> str:
    words = [field.get("description", "")]
    low, high = field.get("minimum"), field.get("maximum")
    if low is not None and high is not None:
        words.append(f"From {low} to {high}.")
    if "maxLength" in field:
        words.append(f"At most {field['maxLength']} characters.")
    if "pattern" in field:
        words.append(f"Matches `{field['pattern']}`.")
    return " ".join(word for word in words if word)


def _rules(schema: Schema) -> Iterator[str]:
    for rule in schema.get("x-kubernetes-validations", ()):
        yield f"{rule['message']} (`{rule['rule']}`)"
    for field in schema.get("properties", {}).values():
        yield from _rules(field)


def _column(column: Schema) -> str:
    return f"{column['name']}{' (with `-o wide`)' if column.get('priority') else ''}"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def work() -> None:
    """Write the pages that changed."""
    for name, text in pages().items():
        path = stage.ROOT / "docs" / name
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            print(f"docs/{name}")


if __name__ == "__main__":
    sys.exit(stage.main(["make docs"], work))
