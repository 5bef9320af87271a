"""Where the references of a values schema lead. Pure.

Helm opens what a `$ref` or `$schema` names: by the network, or from the disk of whoever runs it. So a schema may only
point into itself, and at the meta-schemas that helm brings along. Which `$id` the validator takes up depends on the
draft and on where it stands; one that it may not take up doesn't count here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urldefrag, urljoin

__all__ = ["outward"]

_BROUGHT_ALONG = re.compile(
    r"https?://json-schema\.org/(schema|draft-0[467]/schema|draft/(2019-09|2020-12)/(schema|meta/[a-z-]+))(#.*)?"
)
_OLDEST, _OLD = (
    re.compile(r"https?://json-schema\.org/draft-04/"),
    re.compile(r"https?://json-schema\.org/draft-0[67]/"),
)
_REFERRING = ("$ref", "$dynamicRef", "$recursiveRef", "$schema")


def outward(schema: Any) -> tuple[str, ...]:
    """The references that lead out of the schema, sorted. What is only data, such as an example, counts as well."""
    if not isinstance(schema, dict):
        return ()
    root = _text(schema.get("$id"))
    inside = {urldefrag(each).url for each in _bundled(schema, root)} | {urldefrag(root).url}
    found = set()
    for base, ref in _references(schema, root):
        if ref.startswith(("#", "urn:")) or not ref or _BROUGHT_ALONG.fullmatch(ref):
            continue
        if urldefrag(urljoin(base, ref)).url not in inside or not urldefrag(urljoin(base, ref)).url:
            found.add(ref)
    return tuple(sorted(found))


def _bundled(schema: dict[str, Any], root: str) -> dict[str, Any]:
    """Schemas with an id of their own, by that, where the validator is sure to know them; none beside odd ids."""
    draft = _text(schema.get("$schema"))
    if _OLDEST.match(draft) or (_OLD.match(draft) and "$ref" in schema):
        return {}  # another word for the id; all beside a reference is ignored
    place = "definitions" if _OLD.match(draft) else "$defs"
    parts = schema.get(place)
    named = {
        urljoin(root, part["$id"]): part
        for part in (parts.values() if isinstance(parts, dict) else ())
        if isinstance(part, dict) and _text(part.get("$id")) and "$ref" not in part
    }
    named = {name: part for name, part in named.items() if _text(part.get("$schema")) in ("", draft)}
    known = {id(schema), *(id(part) for part in named.values())}
    odd = any(_is_id(each.get("$id")) and id(each) not in known for each in _mappings(schema))
    return {} if odd else named


def _references(schema: dict[str, Any], root: str) -> Iterator[tuple[str, str]]:
    """(base, reference) of each."""
    named = {id(part): name for name, part in _bundled(schema, root).items()}
    stack: list[tuple[Any, str]] = [(schema, root)]
    while stack:
        node, base = stack.pop()
        if isinstance(node, dict):
            base = named.get(id(node), base)
            yield from ((base, node[word]) for word in _REFERRING if isinstance(node.get(word), str))
            stack.extend((value, base) for value in node.values())
        elif isinstance(node, list):
            stack.extend((value, base) for value in node)


def _mappings(schema: Any) -> Iterator[dict[str, Any]]:
    stack = [schema]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            yield node
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)


def _is_id(value: Any) -> bool:
    return isinstance(value, str) and not value.startswith("#")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
