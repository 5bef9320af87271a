"""YAML exactly as Helm reads it. Pure.

Helm and the API server read YAML 1.1 in the dialect of their Go library, which differs from PyYAML's default: `1:30`
and `2024-01-01` are strings, `1e3` is a number, `y` and `off` are booleans, and a key that is a number or a boolean
becomes a string. A value that is read differently here than by helm would be drift that is not there, so the resolver
is our own. Of a key given twice helm silently takes the last; so does this, unless `strict`: what a user wrote should
be refused, as it is nearly always a mistake, but a published chart must work as it does with helm.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Hashable, Iterator
from typing import Any

import yaml

__all__ = ["DocumentError", "load", "load_all"]

MAX_DEPTH = 200
MAX_NODES = 500_000  # aliases are counted where they are used: a "billion laughs" text is small until written out
MAX_TEXT = 64 << 20

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_TRUE = frozenset(["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"])
_FALSE = frozenset(["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"])
_INT = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO][0-7]+|[0-9]+)")
_FLOAT = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


class DocumentError(ValueError):
    """A text that is not the YAML that helm would take. Lines and columns count from 1; 0 means unknown."""

    def __init__(self, message: str, line: int = 0, column: int = 0) -> None:
        self.reason, self.line, self.column = message, line, column
        super().__init__(f"line {line}, column {column}: {message}" if line else message)


def load(text: str, *, strict: bool = False) -> Any:
    """The single document of `text`; None for an empty text."""
    documents = list(load_all(text, strict=strict))
    if len(documents) > 1:
        raise DocumentError(f"{len(documents)} documents where one is expected; remove the '---' lines")
    return documents[0] if documents else None


def load_all(text: str, *, strict: bool = False) -> Iterator[Any]:
    """The documents of `text`, in order; empty ones are None."""
    if len(text) > MAX_TEXT:
        raise DocumentError(f"text of {len(text)} characters; at most {MAX_TEXT} are read")
    try:
        _check_depth(text)
        for document in yaml.load_all(text, Loader=_StrictLoader if strict else _Loader):
            _check_size(document)
            yield document
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise DocumentError(_words(error), mark.line + 1 if mark else 0, mark.column + 1 if mark else 0) from None
    except yaml.YAMLError as error:
        raise DocumentError(str(error).split("\n", 1)[0]) from None


def _words(error: yaml.MarkedYAMLError) -> str:
    return " ".join(part for part in (error.problem, f"({error.context})" if error.context else "") if part)


def _check_depth(text: str) -> None:
    """Old libyaml has no limit of its own and overruns the C stack, so the flat event stream is counted first."""
    depth = 0
    for event in yaml.parse(text, Loader=_Base):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                mark: Any = event.start_mark
                raise DocumentError(f"nested deeper than {MAX_DEPTH}", mark.line + 1, mark.column + 1)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _check_size(document: Any) -> None:
    stack, seen = [(document, 0)], 0
    while stack:
        node, depth = stack.pop()
        seen += 1
        if seen > MAX_NODES or depth > MAX_DEPTH:
            raise DocumentError(
                f"more than {MAX_NODES} values or nested deeper than {MAX_DEPTH} once aliases are expanded"
            )
        if isinstance(node, dict):
            stack.extend((value, depth + 1) for value in node.values())
        elif isinstance(node, list):
            stack.extend((value, depth + 1) for value in node)


class _Loader(_Base):  # type: ignore[misc]
    """The safe loader with Go's idea of plain scalars."""

    yaml_implicit_resolvers: dict[Any, Any] = {}

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: tuple[bool, bool]) -> str:
        """The tag of a node without an explicit one. Called by the composer; `implicit` is (plain, quoted)."""
        if kind is yaml.ScalarNode:
            return "tag:yaml.org,2002:" + (_plain_tag(value) if implicit[0] else "str")
        return "tag:yaml.org,2002:" + ("map" if kind is yaml.MappingNode else "seq")

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """A mapping with string keys, as JSON has no others."""
        self.flatten_mapping(node)
        return {_key(self.construct_object(k, True), k): self.construct_object(v, deep) for k, v in node.value}


class _StrictLoader(_Loader):
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        _refuse_duplicates(self, node)
        return super().construct_mapping(node, deep)


def _refuse_duplicates(loader: Any, node: yaml.MappingNode) -> None:
    seen: set[str] = set()
    for key_node, _ in node.value:
        if key_node.tag == "tag:yaml.org,2002:merge":
            continue
        key = _key(loader.construct_object(key_node, True), key_node)
        if key in seen:
            raise yaml.MarkedYAMLError(problem=f"key {key!r} is given twice", problem_mark=key_node.start_mark)
        seen.add(key)


def _key(key: Any, node: yaml.Node) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, int | float):
        return str(key)
    raise yaml.MarkedYAMLError(problem="a key must be a string", problem_mark=node.start_mark)


def _plain_tag(text: str) -> str:
    if text in ("", "~", "null", "Null", "NULL"):
        return "null"
    if text in _TRUE or text in _FALSE:
        return "bool"
    if text == "<<":
        return "merge"
    if text[0] in "+-.0123456789" and _number(text) is not None:
        return "float"
    return "str"


def _number(text: str) -> int | float | None:
    digits = text if text[0] == "." else text.replace("_", "")  # as it is in Go's library
    if _INT.fullmatch(digits):
        sign, bare = (-1 if digits[0] == "-" else 1), digits.lstrip("+-")
        if bare[1:2].isalpha():
            return sign * int(bare, 0)
        if bare[0] != "0" or bare == "0":
            return sign * int(bare)
        if re.fullmatch("[0-7]+", bare):
            return sign * int(bare, 8)
        return sign * float(bare)
    if _NOT_FINITE.fullmatch(text):
        return math.nan
    if _FLOAT.fullmatch(digits):
        return float(digits)
    return None


def _construct_bool(loader: Any, node: yaml.ScalarNode) -> bool:
    return node.value in _TRUE


def _construct_number(loader: Any, node: yaml.ScalarNode) -> int | float:
    value = _number(node.value)
    if value is None or not math.isfinite(value):
        raise yaml.MarkedYAMLError(problem=f"{node.value} is no number that JSON has", problem_mark=node.start_mark)
    return int(value) if value == int(value) else value


def _construct_text(loader: Any, node: yaml.ScalarNode) -> str:
    return str(node.value)


def _construct_binary(loader: Any, node: yaml.ScalarNode) -> str:
    try:
        return base64.b64decode(node.value).decode()
    except ValueError:
        raise yaml.MarkedYAMLError(problem="!!binary that is no UTF-8 text", problem_mark=node.start_mark) from None


_Loader.add_constructor("tag:yaml.org,2002:binary", _construct_binary)
_Loader.add_constructor("tag:yaml.org,2002:bool", _construct_bool)
_Loader.add_constructor("tag:yaml.org,2002:int", _construct_number)
_Loader.add_constructor("tag:yaml.org,2002:float", _construct_number)
_Loader.add_constructor("tag:yaml.org,2002:timestamp", _construct_text)
_Loader.add_constructor("tag:yaml.org,2002:value", _construct_text)
