"""Trees of settings that users write freely, as in the product's YAML files: keys nested, or with dots between. Pure.

What can go wrong is a `TreeError`, which names the path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Tree = dict[str, Any]

MOST_DEPTH = 24
OPTIONS = "options"
"""What is in a tree of this name the product looks for by whole names, such as k8s.imageName, and misses if nested."""

SECRET_KEYS = frozenset({"passwd", "pass", "secretkey", "secret", "token", "privatekey"})


class TreeError(Exception):
    """A tree that can't be taken; the message says where and why."""


def expanded(tree: Mapping[str, Any], path: str = "") -> Tree:
    """The same with dotted keys nested, but for names of options. Raises TreeError where two contradict each other."""
    if path.count(".") >= MOST_DEPTH:
        raise TreeError(f"{path[:100]} is nested deeper than {MOST_DEPTH} levels")
    made: Tree = {}
    for key, value in tree.items():
        first, _, rest = str(key).partition(".")
        here = f"{path}.{first}" if path else first
        if not first or str(key).endswith("."):
            raise TreeError(f"{path or 'it'} has the key {str(key)[:100]!r}, in which a name is empty")
        inner = {rest: value} if rest else value
        if isinstance(inner, Mapping) and first != OPTIONS:
            inner = expanded(inner, here)
        else:
            _bounded(inner, here, path.count(".") + 1)
        made[first] = joined(made[first], inner, here) if first in made else inner
    return made


def _bounded(value: Any, path: str, depth: int) -> None:
    """Raises TreeError for what is nested too deep, whatever it is made of."""
    if depth > MOST_DEPTH:
        raise TreeError(f"{path[:100]} is nested deeper than {MOST_DEPTH} levels")
    items = (
        value.items() if isinstance(value, Mapping) else ((path, it) for it in value) if isinstance(value, list) else ()
    )
    for key, inner in items:
        _bounded(inner, f"{path}.{key}" if isinstance(value, Mapping) else path, depth + 1)


def joined(one: Any, other: Any, path: str = "") -> Any:
    """Both together. Raises TreeError where they differ."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        made = dict(one)
        for key, value in other.items():
            here = f"{path}.{key}" if path else str(key)
            made[key] = joined(made[key], value, here) if key in made else value
        return made
    if one != other:
        raise TreeError(f"{path} is said twice, and differently")
    return one


def secret_key(tree: Any, path: str = "") -> str:
    """The path of a key that is called as a password is, and has a value; empty where there is none."""
    items = tree.items() if isinstance(tree, Mapping) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        here = f"{path}.{key}" if path else str(key)
        word = str(key).lower().rpartition(".")[2]
        told = isinstance(value, str | int | float) and not isinstance(value, bool) and value != ""
        if told and (word in SECRET_KEYS or word.endswith("password")):
            return here
        if found := secret_key(value, here):
            return found
    return ""


def leaves(tree: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """(path, value) of everything in it that is no tree of its own."""
    for key, value in tree.items():
        here = f"{path}.{key}" if path else str(key)
        if isinstance(value, Mapping) and value:
            yield from leaves(value, here)
        else:
            yield here, value
