"""Verdicts that every system comes to in the same way, each under a reason of its own. Pure."""

from __future__ import annotations

from typing import Any

from moorage.api import common_status, meta
from moorage.runtime import decision
from moorage.runtime.decision import DONE, Act, Verdict


def finalizer_is_set(metadata: meta.ObjectMeta, finalizer: str, reason: decision.Reason, why: str) -> Verdict:
    """Before the first outside effect."""
    if finalizer in metadata.finalizers:
        return DONE
    return Act(reason, "the finalizer is set", (decision.EditFinalizer(why=why, present=True),))


def retry_is_honoured(
    metadata: meta.ObjectMeta, status: common_status.Status, reason: decision.Reason, message: str, **forgotten: Any
) -> Verdict:
    """A new value of moorage.dev/reconcile-at puts these fields of the status back."""
    asked = metadata.annotations.get(common_status.RECONCILE_AT, "")
    if asked == status.reconciled_at:
        return DONE
    note = decision.Remember(why="it was asked for", fields={"reconciledAt": asked, **forgotten})
    return Act(reason, message, (note,))


def leave(reason: decision.Reason, why: str, *require: decision.Guard) -> Act:
    """The finalizer goes: nothing keeps the object any more."""
    return Act(reason, why, (decision.EditFinalizer(why=why, present=False, require=require),))
