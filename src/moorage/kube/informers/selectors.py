"""Label selectors, evaluated here: an own write must not enter a cache whose watch would never tell of it. Pure."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

__all__ = ["matches"]

_TERM = re.compile(r"^(!?)\s*([^\s!=,()]+)\s*(?:(==|=|!=)\s*([^\s=!,()]*)|\s(in|notin)\s*\(([^)]*)\))?$")
_COMMA = re.compile(r",(?![^(]*\))")  # not those inside parentheses


def matches(selector: str, labels: Mapping[str, str]) -> bool:
    """True when the labels satisfy a selector such as `app=db,tier in (a, b),!canary`. Raises ValueError."""
    return all(_holds(term, labels) for term in _parse(selector))


_Term = tuple[str, str, frozenset[str]]  # (operator, key, values)


@functools.lru_cache(256)
def _parse(selector: str) -> tuple[_Term, ...]:
    return tuple(_term(text.strip()) for text in _COMMA.split(selector)) if selector.strip() else ()


def _term(text: str) -> _Term:
    found = _TERM.match(text)
    if not found:
        raise ValueError(f"{text!r} is no term of a label selector")
    absent, key, sign, value, word, values = found.groups()
    if word:
        return word, key, frozenset(part.strip() for part in values.split(","))
    if sign:
        return ("notin" if sign == "!=" else "in"), key, frozenset((value,))
    return ("absent" if absent else "exists"), key, frozenset()


def _holds(term: _Term, labels: Mapping[str, str]) -> bool:
    operator, key, values = term
    if operator == "in":
        return labels.get(key) in values
    if operator == "notin":
        return labels.get(key) not in values
    return (key in labels) == (operator == "exists")
