"""Which keys the product's files may have, by what its own classes know. Pure.

product_keys.json is written by `python -m dev.opencga`, for the versions whose classes are published; of others nothing
is known. In it names lead to what is below them, `*` stands for any name, `true` for whatever there may be, and `false`
for what is taken and not kept. Lists are as what is in them.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

Known: TypeAlias = Mapping[str, Any] | bool

TABLE = Path(__file__).with_name("product_keys.json")
ANY = "*"
MOST = 3
"""Keys that are told of; what each is like is looked for, which takes a while."""


class Odd(msgspec.Struct, frozen=True):
    """A key that comes to nothing, by its path: unknown, where it knows those `beside` it, or taken and not used."""

    path: str
    beside: tuple[str, ...] = ()
    unused: bool = False


@functools.cache
def versions() -> dict[str, dict[str, Known]]:
    """By version and file."""
    found: dict[str, dict[str, Known]] = msgspec.json.decode(TABLE.read_bytes())
    return found


def odd(version: str, file: str, tree: Mapping[str, Any]) -> Iterator[Odd]:
    """Keys of an expanded tree that come to nothing in this version; none where nothing is known of it."""
    return _odd(versions().get(version, {}).get(file, True), tree, "")


def _odd(known: Known, value: Any, path: str) -> Iterator[Odd]:
    if isinstance(known, bool):
        return
    for each in value if isinstance(value, list) else ():
        yield from _odd(known, each, path)
    for key, inner in value.items() if isinstance(value, Mapping) else ():
        here = f"{path}.{key}" if path else str(key)
        below = known.get(key, known.get(ANY))
        if below is None:
            yield Odd(here, tuple(sorted(known)))
        elif below is False:
            yield Odd(here, unused=True)
        else:
            yield from _odd(below, inner, here)


def nearest(version: str, file: str, found: Odd) -> str:
    """The path of a key that it knows and that may be meant; empty where there is none.

    One of its place that is spelt alike, else one of its name elsewhere, else one of its place that is rather alike.
    """
    outer, _, name = found.path.rpartition(".")
    elsewhere = [path for path in _paths(versions()[version][file], "") if path.rpartition(".")[2] == name]
    if moved := _alike(found.path, elsewhere, 0.0):
        close = _alike(name, found.beside, 0.8)
        return f"{outer}.{close}".lstrip(".") if close else moved
    close = _alike(name, found.beside, 0.5)
    return f"{outer}.{close}".lstrip(".") if close else ""


def _alike(word: str, words: Iterable[str], cutoff: float) -> str:
    by_lower = {each.lower(): each for each in words}
    found = difflib.get_close_matches(word.lower(), by_lower, 1, cutoff)
    return by_lower[found[0]] if found else ""


def _paths(known: Known, path: str) -> Iterator[str]:
    for key, below in known.items() if isinstance(known, Mapping) else ():
        here = f"{path}.{key}" if path else key
        if below is not False:
            yield here
        yield from _paths(below, here)


def told(version: str, file: str, found: Sequence[Odd]) -> str:
    """These, each with the nearest key that may be meant, in words; empty where there is none."""
    words = []
    for each in found[:MOST]:
        near = nearest(version, file, each)
        words.append(f"{each.path} (the nearest is {near})" if near else each.path)
    return ", ".join([*words, f"{len(found) - MOST} more"] if len(found) > MOST else words)
