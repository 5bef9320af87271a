"""Fields of a spec that are taken as the original's and from which nothing follows yet: told at each object. Pure.

Which fields these are each kind's `types.UNHEEDED` says, by their paths on the wire. Of every other leaf of the schemas
`tests/unit/operators/weka/test_heeding.py` shows that something follows from it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import msgspec

from moorage.runtime import decision
from moorage.runtime.decision import Fact

MOST_NAMED = 12


def unheeded(spec: msgspec.Struct, paths: Iterable[str]) -> tuple[str, ...]:
    """Those of these paths at which the spec has something else than it has where nobody says anything."""
    return tuple(path for path in paths if _is_set(spec, path.split(".")))


def _is_set(value: Any, path: list[str]) -> bool:
    for name in path:
        if not isinstance(value, msgspec.Struct):
            return False
        field, default = _fields(type(value))[name]
        value = getattr(value, field)
        if value is None or value == default or value in ((), {}):
            return False
    return not isinstance(value, msgspec.Struct) or value != _empty(type(value))


@functools.cache
def _fields(of: type[msgspec.Struct]) -> dict[str, tuple[str, Any]]:
    """By names on the wire: the field, and its value where nobody says anything."""
    known = msgspec.structs.fields(of)
    return {it.encode_name: (it.name, None if it.default is msgspec.NODEFAULT else it.default) for it in known}


@functools.cache
def _empty(of: type[msgspec.Struct]) -> msgspec.Struct | None:
    """One that says nothing; None where it must say something."""
    return None if any(it.required for it in msgspec.structs.fields(of)) else of()


def told(fields: tuple[str, ...], unheeded_: decision.Reason, heeded: decision.Reason) -> Fact:
    """Added: SpecHeeded: which fields nothing follows from yet."""
    if not fields:
        return Fact("SpecHeeded", True, heeded)
    more = f", and {len(fields) - MOST_NAMED} more" if len(fields) > MOST_NAMED else ""
    return Fact(
        "SpecHeeded", False, unheeded_, f"nothing follows yet from spec.{', spec.'.join(fields[:MOST_NAMED])}{more}"
    )
