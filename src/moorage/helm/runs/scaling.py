"""Replicas that somebody has set by scaling, put into the manifest that helm is about to apply. Pure.

Helm applies by force, so what its manifest says would be until the autoscaler looks again: two in place of twenty, and
an outage. A manifest that says what is live changes nothing. It can't leave the field out instead, as its record is
what a deleted object is made of again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
import yaml

from moorage.api import managed_fields
from moorage.helm.parsing import helm_yaml

__all__ = ["Scaled", "can_be_scaled", "carried", "found"]

_SEPARATOR = re.compile(r"^---[ \t]*(?:#.*)?$", re.MULTILINE)
_SCALABLE = frozenset(
    [("apps", "Deployment"), ("apps", "StatefulSet"), ("apps", "ReplicaSet"), ("", "ReplicationController")]
)
_BETWEEN = re.compile(r"\s*:\s+")


class Scaled(msgspec.Struct, frozen=True):
    """One field of one object that somebody has scaled, and how far."""

    group: str
    kind: str
    name: str
    path: tuple[str, ...]
    value: int


def can_be_scaled(body: Mapping[str, Any]) -> bool:
    """Whether the kind may have a scale subresource: some of Kubernetes' own, and any custom one."""
    group = _group(body)
    return (group, str(body.get("kind"))) in _SCALABLE or ("." in group and not group.endswith(".k8s.io"))


def found(live: Mapping[str, Any]) -> tuple[Scaled, ...]:
    """What was scaled of a live object."""
    values = ((place, _at(live, place)) for place in managed_fields.scaled(live))
    who = (_group(live), str(live.get("kind")), str((live.get("metadata") or {}).get("name")))
    return tuple(Scaled(*who, place, value) for place, value in values if type(value) is int)


def carried(manifest: str, scaled: Iterable[Scaled]) -> str:
    """The manifest with the live values where it has values of its own; all other text stays as it is."""
    wanted = {(each.group, each.kind, each.name): each for each in scaled}
    out: list[str] = []
    begin = 0
    for separator in (*_SEPARATOR.finditer(manifest), None):
        end = separator.start() if separator else len(manifest)
        out.append(_document(manifest[begin:end], wanted))
        if separator:
            out.append(separator.group())
            begin = separator.end()
    return "".join(out)


def _document(text: str, wanted: Mapping[tuple[str, str, str], Scaled]) -> str:
    if not any(kind in text and name in text for _, kind, name in wanted):
        return text
    try:
        helm_yaml.load(text)  # bounds what the composer below may meet
        top = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (helm_yaml.DocumentError, yaml.YAMLError):
        return text  # helm says what is wrong with it
    places = [place for node in _objects(top) if (place := _place(text, node, wanted)) is not None]
    for begin, end, value in sorted(places, reverse=True):
        text = f"{text[:begin]}{value}{text[end:]}"
    return text


def _objects(node: Any) -> Iterator[Any]:
    """The objects of a document: itself, or the items of a List."""
    items = _value(node, "items")
    if isinstance(items, tuple) and isinstance(items[1], yaml.SequenceNode) and _text(node, "kind").endswith("List"):
        for item in items[1].value:
            yield from _objects(item)
    elif isinstance(node, yaml.MappingNode):
        yield node


def _place(text: str, node: Any, wanted: Mapping[tuple[str, str, str], Scaled]) -> tuple[int, int, int] | None:
    """Where in the text the number stands; None if the object is none of the wanted, or has no number of its own."""
    metadata = _value(node, "metadata")
    name = _text(metadata[1], "name") if metadata else ""
    scaled = wanted.get((_text(node, "apiVersion").rpartition("/")[0], _text(node, "kind"), name))
    if scaled is None:
        return None
    found: tuple[Any, Any] | None = (None, node)
    for part in scaled.path:
        found = _value(found[1], part) if found else None
    if found is None or not isinstance(found[1], yaml.ScalarNode):
        return None
    begin, end = found[1].start_mark.index, found[1].end_mark.index
    # an alias stands elsewhere, where it may be of use to others too
    in_place = _BETWEEN.fullmatch(text[found[0].end_mark.index : begin])
    return (begin, end, scaled.value) if in_place else None


def _value(node: Any, name: str) -> tuple[Any, Any] | None:
    """Key and value of a mapping; the last, as helm takes it."""
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    return next(((key, value) for key, value in reversed(pairs) if key.value == name), None)


def _text(node: Any, name: str) -> str:
    pair = _value(node, name)
    return str(pair[1].value) if pair and isinstance(pair[1], yaml.ScalarNode) else ""


def _group(body: Mapping[str, Any]) -> str:
    return str(body.get("apiVersion") or "").rpartition("/")[0]


def _at(body: Any, place: tuple[str, ...]) -> Any:
    for name in place:
        body = body.get(name) if isinstance(body, Mapping) else None
    return body
