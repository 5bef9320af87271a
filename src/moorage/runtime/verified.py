"""Which state of which owned object was compared and found good: a memory that only saves work. No I/O.

An object's state is named by a pair: the digest of the body that was applied last, which is on the object as the
annotation `moorage.dev/applied`, and its resourceVersion. When either moved, whoever looks compares again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from moorage.api import meta

STAMP = "moorage.dev/applied"

REMEMBERED = 50_000
"""How many objects' pairs are remembered; a forgotten one costs a comparison."""


class Verified:
    """Which state of which object is as it was meant: a memory that only saves work."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._remembered = remembered
        self._pairs: dict[str, tuple[str, str]] = {}  # uid -> (digest, resourceVersion)

    def note(self, uid: str, digest: str, version: str) -> None:
        """The object with that digest on it is good at this resourceVersion."""
        self._pairs.pop(uid, None)
        self._pairs[uid] = (digest, version)
        if len(self._pairs) > self._remembered:
            del self._pairs[next(iter(self._pairs))]

    def forget(self, uid: str) -> None:
        """The object is being deleted."""
        self._pairs.pop(uid, None)

    def took(self, body: Mapping[str, Any], answer: msgspec.Raw) -> None:
        """What the server answered to the apply of a body, if that is stamped: it owns what it has written."""
        if stamp := (body["metadata"].get("annotations") or {}).get(STAMP):
            there = msgspec.json.decode(answer, type=meta.Partial).metadata
            if there.annotations.get(STAMP) == stamp:
                self.note(there.uid, stamp, there.resource_version)

    def knows(self, uid: str, digest: str, version: str) -> bool:
        """Whether that state is known to be good."""
        return self._pairs.get(uid) == (digest, version)
