"""Owned children by server-side apply: one write per change, none in steady state (law 3). No I/O.

The digest of the last applied body is on the object, as the annotation `moorage.dev/applied`. Together with the
object's resourceVersion it is a pair: once a pair was compared and found good, or is what the server answered to the
apply itself, it is not compared again. When either moved, the owned fields are compared (`moorage.api.comparison`), and
what differs costs exactly one write.

    observe:  seen.child = children.look(body, live)            body made by `stamped`
    step:     if not seen.child.good: return Act(..., (apply.write(resource, body, seen.child, why=...),))
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

from moorage.api import comparison, meta
from moorage.runtime import decision, verified

STAMP = verified.STAMP
"""The annotation with the digest of the body that was applied last."""

Body: TypeAlias = Mapping[str, Any]


class Child(msgspec.Struct, frozen=True):
    """What an observation says of one owned object: paths, never values. An empty uid: it is not there."""

    uid: str = ""
    deleting: bool = False
    differs: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        """It is there as it was last meant; `deleting` is for the step to judge."""
        return bool(self.uid) and not self.differs


def digest(body: Body, *, key: bytes = b"") -> str:
    """Names the body, its stamp and uid aside. With `key` (at most 64 bytes) it tells nothing of a secret body."""
    metadata = {k: v for k, v in body.get("metadata", {}).items() if k != "uid"}
    annotations = {k: v for k, v in (metadata.pop("annotations", None) or {}).items() if k != STAMP}
    plain = {**body, "metadata": {**metadata, "annotations": annotations}}
    text = msgspec.json.encode(plain, order="deterministic")
    return hashlib.blake2b(text, digest_size=16, key=key).hexdigest()


def stamped(body: Body, *, key: bytes = b"") -> dict[str, Any]:
    """The body with its digest on it."""
    metadata = dict(body["metadata"])
    metadata["annotations"] = {**(metadata.get("annotations") or {}), STAMP: digest(body, key=key)}
    return {**body, "metadata": metadata}


def write(
    resource: meta.Resource,
    body: Body,
    child: Child,
    *,
    why: str,
    fill: str = "",
    require: tuple[decision.Guard, ...] = (),
) -> decision.Apply:
    """The one write that makes it right. It names the incarnation seen, so that nothing deleted is resurrected."""
    metadata = {**body["metadata"], "uid": child.uid} if child.uid else body["metadata"]
    return decision.Apply(why=why, require=require, resource=resource, body={**body, "metadata": metadata}, fill=fill)


class Children:
    """Compares where it isn't known that all is good. `manager` is who applies the bodies."""

    def __init__(self, known: verified.Verified, manager: str = decision.FIELD_MANAGER) -> None:
        self._verified, self.manager = known, manager

    def look(self, body: Body, live: Body | None) -> Child:
        """The live object, raw with its managedFields, beside the stamped body that is wanted."""
        if live is None:
            return Child()
        there = live["metadata"]
        wanted, stamp = body["metadata"]["annotations"][STAMP], (there.get("annotations") or {}).get(STAMP)
        deleting = "deletionTimestamp" in there
        if stamp != wanted:
            return Child(there["uid"], deleting, (STAMP,))
        pair = (wanted, there["resourceVersion"])
        if self._verified.knows(there["uid"], *pair):
            return Child(there["uid"], deleting)
        differs = tuple(each.path for each in comparison.differences(body, live, manager=self.manager))
        if not differs:
            self._verified.note(there["uid"], *pair)
        return Child(there["uid"], deleting, differs)
