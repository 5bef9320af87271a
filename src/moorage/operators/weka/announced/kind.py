"""Both kinds as the runtime runs them: each object is told that nothing is done for it. Nothing else is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

from moorage.operators.weka import names
from moorage.runtime import decision, kind
from moorage.runtime.decision import WARNS, Blocked, Verdict

from . import types

A = TypeVar("A", types.WekaClient, types.WekaPolicy)


class AnnouncedReason(decision.Reason):
    """Of a WekaClient or a WekaPolicy."""

    NOT_RUN = (
        "NotRun",
        "This kind is taken as the original's manifests have it, and nothing follows from it yet.",
        "delete it, or have another operator look after it; drives are signed by a WekaManualOperation",
        WARNS,
    )


class Seen(msgspec.Struct, frozen=True):
    """The observation."""

    kind: str
    name: str


def it_is_not_run(seen: Seen) -> Verdict:
    """Said at each object, so that nobody waits for what does not come."""
    said = f"{seen.kind} {seen.name} is taken, and moorage does nothing for it yet"
    return Blocked(AnnouncedReason.NOT_RUN, said, decision.next_of(AnnouncedReason.NOT_RUN))


STEPS: tuple[Callable[[Seen], Verdict], ...] = (it_is_not_run,)


class _AnnouncedKind(kind.Kind[A, Seen], Generic[A]):
    finalizer = f"{names.GROUP}/finalizer"  # which is never set
    steps = STEPS

    def placement(self, _: A) -> str:
        """All of them are one process's, as all of Weka."""
        return names.placement()

    def observe(self, obj: A, now: float) -> Seen:
        """See `Kind.observe`."""
        return Seen(self.resource.kind, obj.metadata.name)

    def report(self, seen: Seen, standing: decision.StepTaken | None) -> dict[str, Any]:
        """See `Kind.report`."""
        return {"status": str(AnnouncedReason.NOT_RUN)}


class ClientKind(_AnnouncedKind[types.WekaClient]):
    """WekaClients."""

    resource = names.CLIENT
    model = types.WekaClient


class PolicyKind(_AnnouncedKind[types.WekaPolicy]):
    """WekaPolicies."""

    resource = names.POLICY
    model = types.WekaPolicy
