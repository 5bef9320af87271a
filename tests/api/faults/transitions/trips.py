"""Which changes are tried, in which order and in which way: all singles, then pairs, drawn from a seed. Pure.

A trip starts where the object is settled, and ends there: forward, and back. So each can be repeated alone.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from . import declared, leaves, schemas

How = Literal["settled", "under way", "at once", "one by one"]
"""`settled`: nothing else is under way. `under way`: the form's `stir` has just begun. `at once`: it goes back before
the operator is done. `one by one`: of a pair the first settles before the second comes."""


class Trip(msgspec.Struct, frozen=True):
    """One of them."""

    form: str
    number: int
    how: How
    moves: tuple[declared.Move, ...]
    verdict: declared.Verdict

    @property
    def id(self) -> str:
        """By which it is repeated."""
        return f"{self.form}-{self.number}"

    @property
    def told(self) -> str:
        """For a line of a report."""
        return f"{self.id} {self.how}: {', then '.join(move.told for move in self.moves)}"

    @property
    def steps(self) -> int:
        """How often the object is changed, or tried to be."""
        forward = len(self.moves) if self.how == "one by one" else 1
        stirred = self.how == "under way"
        return forward + stirred + (self.verdict.ends != "refused" or stirred or self.how == "one by one")


def all_of(form: declared.Form, schema: schemas.Schema, *, seed: int, steps: int = 0) -> list[Trip]:
    """Singles on a settled object, then those that are taken on one that is under way, then pairs up to so many steps.

    The same seed draws the same trips.
    """
    singles = declared.moves(form, schema)
    found = [Trip(form.name, 0, "settled", (it,), declared.verdict(form, schema, (it,))) for it in singles]
    if form.stir:
        stirred = [it for it in found if not _touches(it.moves[0], form.stir)]
        found += [msgspec.structs.replace(it, how="under way") for it in stirred if it.verdict.ends != "refused"]
    enough = max(0, steps - sum(it.steps for it in found))
    for pair, how in _pairs(form, schema, singles, random.Random(f"{seed} {form.name}")):
        if enough <= 0:
            break
        trip = Trip(form.name, 0, how, pair, declared.verdict(form, schema, pair))
        found.append(trip)
        enough -= trip.steps
    return [msgspec.structs.replace(it, number=number + 1) for number, it in enumerate(found)]


def some_of(trips: Sequence[Trip], count: int, *, seed: int) -> list[Trip]:
    """So many of them, half of which are taken by the API server, in their order."""
    draw = random.Random(seed)
    refused = [it for it in trips if it.verdict.ends == "refused"]
    taken = [it for it in trips if it.verdict.ends != "refused"]
    few = min(len(refused), count // 2)
    chosen = draw.sample(refused, few) + draw.sample(taken, min(len(taken), count - few))
    return sorted(chosen, key=lambda it: it.number)


def exercised(trips: Sequence[Trip], schema: schemas.Schema) -> set[str]:
    """Leaves that at least one trip sets; those within a change at odds count too."""
    names = {leaf.name for leaf in leaves.of(schema)}
    return {name for trip in trips for move in trip.moves for name in _places(move.merge) if name in names}


def _places(merge: object, path: str = "") -> Iterator[str]:
    yield path
    if isinstance(merge, dict):
        for name, inside in merge.items():
            yield from _places(inside, f"{path}.{name}".strip("."))


def _touches(move: declared.Move, stir: object) -> bool:
    """Whether it changes what the stirring changes."""
    mine, others = set(_places(move.merge)), set(_places(stir))
    return bool((mine & others) - {""})


def _taken(verdict: declared.Verdict) -> bool:
    return verdict.ends != "refused" and not verdict.same and not verdict.stays


def _pairs(
    form: declared.Form, schema: schemas.Schema, singles: Sequence[declared.Move], draw: random.Random
) -> Iterator[tuple[tuple[declared.Move, declared.Move], How]]:
    """Of different leaves that may be paired, each of which is taken by itself: deep enough to mean something."""
    free = [it for it in singles if it.leaf and not it.same and it.leaf not in form.alone]
    usable = [it for it in free if _taken(declared.verdict(form, schema, (it,)))]
    together = [
        pair
        for pair in itertools.permutations(usable, 2)
        if pair[0].leaf != pair[1].leaf and not any({it.leaf for it in pair} <= set(group) for group in form.apart)
    ]
    hows: tuple[How, ...] = ("settled", "at once", "one by one")
    while together:
        yield draw.choice(together), draw.choice(hows)
