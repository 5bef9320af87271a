"""Verdicts that every system comes to in the same way, each under a reason of its own. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from moorage.api import common_status, meta
from moorage.helm import deletion as helm_deletion
from moorage.runtime import decision, freshness
from moorage.runtime.decision import DONE, Act, Verdict

from . import accounts


def some(words: Iterable[str], most: int = 5) -> str:
    """The first few of them, and how many more there are."""
    listed = list(words)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


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


def namespace_ends(ending: bool, reason: decision.Reason) -> Verdict:
    """With the namespace everything goes, and rights with it."""
    return leave(reason, "the namespace is being deleted with everything in it") if ending else DONE


def nothing_was_made(
    binding: freshness.Observed[accounts.BindingSeen | None],
    allowed: bool,
    unknown: decision.Reason,
    reason: decision.Reason,
) -> Verdict:
    """Where no rights were ever bound there is nothing to remove. `unknown` is told while that is not known."""
    if isinstance(binding, freshness.Failed):
        return decision.unknown(unknown, binding, "binding")
    return leave(reason, "nothing was made") if binding.value is None and not allowed else DONE


def rights_returned(
    binding: accounts.BindingSeen | None, namespace: str, rights: accounts.Rights, neighbours: int, why: str
) -> helm_deletion.Last:
    """The last to leave a namespace gives the rights there back just before its finalizer goes.

    What must be read in the namespace beforehand is read before that, as nothing can be read there afterwards. The
    guard `others_stay` is `tenancy.Neighbours.stay`.
    """

    def last(edit: decision.EditFinalizer) -> tuple[decision.AnyAction, ...]:
        if binding is None or rights.here:
            return (edit,)
        if neighbours:
            return (msgspec.structs.replace(edit, require=(*edit.require, decision.Guard("others_stay"))),)
        back = accounts.give_back(binding, namespace, rights, why, edit.require)
        return (*back, msgspec.structs.replace(edit, require=()))

    return last


def it_may_go(last: helm_deletion.Last, reason: decision.Reason, why: str) -> Act:
    """The finalizer goes, after what `last` gives back; see `rights_returned`."""
    return Act(reason, why, last(decision.EditFinalizer(why=why, present=False)))
