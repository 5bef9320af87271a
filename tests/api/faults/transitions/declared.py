"""What the file of a system declares of its leaves, and what therefore must come of a change. Pure.

Whether a value is right is never learnt from what became of it: the schema says it, and this file, for what the schema
can't say. The fields are described here; docs/reliability.md tells how to write such a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import yaml

from . import leaves, schemas

FOLDER = Path(__file__).parent
READY, REFUSED, STILL = "ready", "refused", "still"
Ends = Literal["ready", "refused", "still"]
"""Ready; refused at admission; or taken, and standing still with a message that names the field."""


class Value(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A value that the schema alone would not lead to."""

    to: Any
    ends: Ends = "ready"
    words: str = ""
    """What must be said if it does not end Ready, alternatives with ` | ` between them; empty: the leaf's last name."""

    same: bool = False
    """It is another spelling of what the object has, and costs no write."""

    stays: str = ""
    """What is said to whoever tries to take it back; empty: it can be."""


class Leaf(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the schema does not say of a leaf."""

    values: tuple[Value, ...] = ()
    ends: dict[str, Ends] = {}
    """Of values that are right by the schema, by their sort (`other`, `greatest`); `*` for all that are not named."""

    words: str = ""
    without: dict[str, str] = {}
    """Sorts that are left out, each with the reason; `*` leaves only the declared values."""


class Odds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change at odds with what other fields say, or one that is right only as a whole."""

    merge: dict[str, Any]
    ends: Ends = "refused"
    words: str = ""


class Form(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One object whose leaves are changed; a kind has several where its fields exclude each other."""

    name: str
    object: dict[str, Any]
    given: tuple[dict[str, Any], ...] = ()
    """Objects that are there before it."""

    rests: str = ""
    """What it says at rest, where it is never Ready by itself: in place of Ready."""

    stir: dict[str, Any] = {}
    """A change, right by itself, that keeps the operator busy for a while."""

    fixed: dict[str, str] = {}
    """Leaves that can't be changed after creation, and what the refusal names."""

    leaves: dict[str, Leaf] = {}
    left_out: dict[str, str] = msgspec.field(name="leftOut", default={})
    """Leaves that are not changed, each with the reason."""

    only: tuple[str, ...] = ()
    """Leaves that this form is for, where another form of the kind has the others; empty: all."""

    alone: dict[str, str] = {}
    """Leaves that are in no pair, each with the reason."""

    odds: tuple[Odds, ...] = ()
    apart: tuple[tuple[str, ...], ...] = ()
    """Leaves of which a pair means something else than each alone; what that is, `odds` say."""

    @property
    def kind(self) -> str:
        """Of the object."""
        return str(self.object["kind"])

    @property
    def spec(self) -> dict[str, Any]:
        """The one that is settled in the beginning, and to which everything goes back."""
        found: dict[str, Any] = self.object["spec"]
        return found


class System(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file."""

    scenario: str
    """The file in `scenarios` that says who acts, and where."""

    forms: tuple[Form, ...]
    passes: int = 60
    """The most passes that one step may cost, whatever it is; more is a hot loop."""

    requests: int = 300
    daily: int = 12
    """Trips that are made each day, of each form."""

    everyday: bool = True
    """False: made in campaigns alone, as its scenario is."""

    patience: float = 60.0


class Move(msgspec.Struct, frozen=True):
    """One leaf and what it is set to; of odds the leaf is empty and the value a merge patch of the spec."""

    leaf: str
    sort: str
    to: Any
    ends: Ends = "ready"
    words: str = ""
    same: bool = False
    stays: str = ""

    @property
    def merge(self) -> Any:
        """The patch of the spec."""
        patch = self.to
        for name in reversed(self.leaf.split(".") if self.leaf else ()):
            patch = {name: patch}
        return patch

    @property
    def told(self) -> str:
        """For a line of a report."""
        text = msgspec.json.encode(self.to).decode()
        return f"{self.leaf or 'odds'} ({self.sort}): {text if len(text) < 80 else f'{text[:60]}… {len(text)}'}"


class Verdict(msgspec.Struct, frozen=True):
    """What must come of a change."""

    ends: Ends
    words: tuple[str, ...] = ()
    """One of these must be said where it does not end Ready."""

    same: bool = False
    stays: tuple[str, ...] = ()
    """It can't be taken back, and one of these is said to whoever tries."""


def files() -> list[Path]:
    """One for each system."""
    return sorted(FOLDER.glob("*.yaml"))


def everyday() -> list[Path]:
    """Those that are tried each day."""
    return [path for path in files() if load(path, "none").everyday]


def load(path: Path, namespace: str) -> System:
    """A file, as it is played in a namespace."""
    return msgspec.convert(yaml.safe_load(path.read_text().replace("$(namespace)", namespace)), System)


def moves(form: Form, schema: schemas.Schema) -> list[Move]:
    """All single changes of one leaf, by the schema and by what is declared."""
    found = []
    for leaf in leaves.of(schema):
        if leaf.name not in form.left_out and (not form.only or leaf.name in form.only):
            found += _moves(leaf, form.leaves.get(leaf.name, Leaf()), _at(form.spec, leaf.path))
    whole = enumerate(form.odds)
    return found + [Move("", f"odds {n + 1}", it.merge, it.ends, it.words) for n, it in whole]


def _moves(leaf: leaves.Leaf, said: Leaf, now: Any) -> list[Move]:
    words = said.words or leaf.last
    found = [
        Move(leaf.name, f"declared {number + 1}", it.to, it.ends, it.words or words, it.same, it.stays)
        for number, it in enumerate(said.values)
    ]
    for sort, to in leaves.sorts(leaf, now).items():
        if sort in said.without or ("*" in said.without and _may_be_right(sort)):
            continue
        nothing = now is leaves.ABSENT and "default" not in leaf.schema and to in ("", [], {})
        same = nothing or sort.startswith("spelling")
        ends = "ready" if same else said.ends.get(sort, said.ends.get("*", "ready"))
        found.append(Move(leaf.name, sort, to, ends, words, same))
    return found


def _may_be_right(sort: str) -> bool:
    return sort.split()[0] not in ("type", "below", "above", "unlike", "no")


def _at(spec: Any, path: Sequence[str]) -> Any:
    for name in path:
        spec = spec.get(name) if isinstance(spec, dict) else None
    return spec


def verdict(form: Form, schema: schemas.Schema, made: Sequence[Move]) -> Verdict:
    """What must come of these changes together."""
    spec = form.spec
    for move in made:
        spec = schemas.merged(spec, move.merge)
    before, after = schemas.filled(schema, form.spec), schemas.filled(schema, spec)
    if wrong := schemas.faults(schema, after):
        return Verdict("refused", tuple(path[-1] for path in wrong if path))
    if len(made) == 1 and not made[0].leaf:
        only = made[0]
        return Verdict(only.ends, _words(only))
    if before == after:
        return Verdict("ready", same=True)
    changed = [leaf for leaf in leaves.of(schema) if _at(before, leaf.path) != _at(after, leaf.path)]
    fixed = [form.fixed[leaf.name] for leaf in changed if leaf.name in form.fixed]
    if fixed:
        return Verdict("refused", tuple(fixed))
    stays = tuple(move.stays for move in made if move.stays)
    for ends in ("refused", "still"):
        if said := [word for move in made if move.ends == ends for word in _words(move)]:
            return Verdict(ends, tuple(said), stays=stays)  # type: ignore[arg-type]
    return Verdict("ready", same=all(move.same for move in made), stays=stays)


def _words(move: Move) -> tuple[str, ...]:
    return tuple(move.words.split(" | ")) if move.words else ()
