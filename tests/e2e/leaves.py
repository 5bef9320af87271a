"""Every leaf of a release's rendered objects, and another value for each that a user could give it."""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Iterator
from typing import Any

import yaml

Path = tuple[str | int, ...]
KEYS = ("name", "port", "containerPort", "protocol", "mountPath", "topologyKey", "whenUnsatisfiable")
"""Fields by which elements of lists are told apart: another value makes another element."""

IDENTITY = {("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace")}
"""Not edited: another value of these is another object."""

OTHERS: dict[Any, Any] = {
    "Always": "IfNotPresent",
    "IfNotPresent": "Always",
    "ClientIP": "None",
    "None": "ClientIP",
    "ClusterIP": "NodePort",
    "Forbid": "Allow",
    "OnFailure": "Never",
    "Never": "OnFailure",
    "Prefix": "Exact",
    "TCP": "SCTP",
    "UDP": "SCTP",
    "ALL": "KILL",
    "RuntimeDefault": "Unconfined",
    "http": "other",
    "/": "/other",
    "0 0 1 1 *": "0 0 2 2 *",
    "10.0.0.0/8": "10.0.0.0/12",
    "10.1.0.0/16": "10.2.0.0/16",
    "Ingress": "Egress",
    "RollingUpdate": "OnDelete",
    "ScheduleAnyway": "DoNotSchedule",
    "16Mi": "17Mi",
    "64Mi": "65Mi",
    "spec.nodeName": "metadata.uid",
    "metadata.name": "metadata.uid",
    "metadata.namespace": "metadata.uid",
    "true": "false",
}
"""Values of fields that take no arbitrary text."""


@dataclasses.dataclass(frozen=True)
class Leaf:
    """One field of one rendered object."""

    kind: str
    name: str
    path: Path

    @property
    def is_key(self) -> bool:
        """An edit of it is an element gone and another come."""
        return len(self.path) > 1 and isinstance(self.path[-2], int) and self.path[-1] in KEYS

    def __str__(self) -> str:
        return f"{self.kind}/{self.name} {pointer(self.path)}"


def pointer(path: Path) -> str:
    """As a JSON patch names it."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def objects(manifest: str) -> list[dict[str, Any]]:
    """The objects of `helm get manifest`."""
    return [body for body in yaml.safe_load_all(manifest) if body]


def of(body: dict[str, Any]) -> list[Leaf]:
    """All leaves of an object but its identity. Secrets' stringData is named as the data that it becomes."""
    kind, name = body["kind"], body["metadata"]["name"]
    found = [path for path in _walk(body, ()) if path not in IDENTITY]
    return [Leaf(kind, name, ("data", *path[1:]) if path[0] == "stringData" else path) for path in found]


def value_at(body: Any, path: Path) -> Any:
    """The value there. Raises KeyError or IndexError when there is none."""
    for part in path:
        body = body[part]
    return body


def place(wanted: Any, live: Any, path: Path) -> Path:
    """Where the leaf is in the live object, in which lists may have another order. Raises LookupError if it is not."""
    found: list[str | int] = []
    for part in path:
        if isinstance(part, int) and isinstance(wanted[part], dict):
            near = max(range(len(live)), key=lambda index, part=part: _alike(wanted[part], live[index]))
            found.append(near)
            wanted, live = wanted[part], live[near]
        else:
            found.append(part)
            wanted, live = wanted[part], live[part]
    return tuple(found)


def another(leaf: Leaf, value: Any) -> list[Any]:
    """Values that differ from the leaf's; the first that the API takes will do."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1]
    if leaf.kind == "Secret" and leaf.path[0] == "data":
        return [base64.b64encode(b"edited").decode()]
    if leaf.path[0] == "binaryData":
        return ["AAEE"]
    if value in OTHERS:
        return [OTHERS[value], f"{value}x"]
    if value and value[0].isdigit():
        return ["1" + value, f"{value}x"]
    return [f"{value}x"]


def _alike(wanted: dict[str, Any], live: dict[str, Any]) -> int:
    return sum(str(live.get(name)) == str(value) for name, value in wanted.items())


def _walk(node: Any, path: Path) -> Iterator[Path]:
    if isinstance(node, dict):
        for key, value in node.items():
            yield from _walk(value, (*path, key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _walk(value, (*path, index))
    elif node is not None:
        yield path
