"""What is said at the prompt when something was mistyped: what there is, and what was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


def unknown(what: str, given: str, known: Iterable[str]) -> str:
    """No WHAT of that name; did you mean ...? There are: ..."""
    names = sorted(known)
    listed = f"there {'is' if len(names) == 1 else 'are'}: {', '.join(names)}" if names else "there is none"
    guess = nearest(given, names)
    return f"no {what} {given!r}; did you mean {guess}? {listed}" if guess else f"no {what} {given!r}; {listed}"


def nearest(given: str, known: Sequence[str]) -> str:
    """The name that was probably meant, or an empty string."""
    by_lower = {name.lower(): name for name in known}
    found = difflib.get_close_matches(given.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[found[0]] if found else ""
