"""What moorage does for a GridTemplate, step by step. Pure: read top to bottom."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from moorage.api import common_status
from moorage.operators import steps
from moorage.operators.xsld import names
from moorage.operators.xsld.reasons import Reason
from moorage.operators.xsld.within_cache import common_steps
from moorage.runtime import decision, freshness
from moorage.runtime.decision import DONE, Act, Blocked, Fact, Verdict, Wait

from . import types

IN_USE = 300.0
"""Seconds for grids that are deleted together with their template."""


class Documents(msgspec.Struct, frozen=True):
    """The documents that the source holds: their digest, or what is wrong. They themselves may be secret."""

    digest: str = ""
    fault: str = ""


class Seen(common_steps.Seen, frozen=True, kw_only=True):
    """Everything that is decided on."""

    spec: types.GridTemplateSpec
    status: types.GridTemplateStatus
    template: str
    documents: freshness.Observed[Documents]

    @property
    def there(self) -> bool | None:
        """Whether the server has a template of this name; None when nobody tells."""
        return None if self.told.templates is None else self.template in self.told.templates

    @property
    def used_by(self) -> tuple[str, ...]:
        """Grids on the server that are made of it."""
        grids = self.told.grids or ()
        return tuple(grid.name for grid in grids if grid.fields.get("templateName") == self.template)


def finalizer_is_set(seen: Seen) -> Verdict:
    """Before the first outside effect."""
    why = "the template may not be left behind when it is deleted"
    return steps.finalizer_is_set(seen.meta, names.TEMPLATE_FINALIZER, Reason.TAKING_CARE, why)


def retry_is_honoured(seen: Seen) -> Verdict:
    """A new value of moorage.dev/reconcile-at forgets what was refused."""
    message = "what was refused is tried anew"
    return steps.retry_is_honoured(seen.meta, seen.status, Reason.RETRYING, message, refused="", refusedHash="")


def source_is_there(seen: Seen) -> Verdict:
    """The documents can be read."""
    if isinstance(seen.documents, freshness.Failed):
        return decision.unknown(Reason.TEMPLATE_SOURCE, seen.documents, "source")
    if not seen.documents.value.fault:
        return DONE
    return Blocked(Reason.TEMPLATE_SOURCE, seen.documents.value.fault, "create it, or correct spec.source")


def cache_is_clear(seen: Seen) -> Verdict:
    """The named cache, or the only one in the namespace."""
    return common_steps.cache_is_clear(seen, seen.spec.cache_ref)


def name_is_free(seen: Seen) -> Verdict:
    """The template is no older GridTemplate's."""
    return common_steps.name_is_free(seen, names.TEMPLATE.kind, seen.template)


def cache_is_available(seen: Seen) -> Verdict:
    """Templates are changed in a group that stands."""
    return common_steps.cache_is_available(seen, known=seen.there is not None, what="templates")


def template_is_uploaded(seen: Seen) -> Verdict:
    """The server has these very documents. An upload can be repeated without harm; that there was one is remembered."""
    wanted = (freshness.value_of(seen.documents) or Documents()).digest
    if seen.there and seen.status.hash == wanted:
        return DONE
    if seen.status.refused and seen.status.refused_hash == wanted:
        return Blocked(
            Reason.GRID_REFUSED, f"the server refuses the template: {seen.status.refused}", "correct the documents"
        )
    why = "the server does not have it" if not seen.there else "its documents have changed"
    message = f"template {seen.template} is uploaded: {why}"
    if (held := common_steps.group_is_free(seen, message)) is not DONE:
        return held
    call = decision.Call(why=why, operation="upload", args={"digest": wanted}, keep=True)
    if seen.status.asked:
        return Act(Reason.UPLOADING, message, (call,))
    note = decision.Remember(why="from here on it may be on the server", fields={"asked": True})
    return Act(Reason.UPLOADING, message, (note, call))


STEPS: tuple[Callable[[Seen], Verdict], ...] = (
    finalizer_is_set,
    retry_is_honoured,
    source_is_there,
    cache_is_clear,
    name_is_free,
    cache_is_available,
    template_is_uploaded,
)


# --- steps of a template that is being deleted -------------------------------------------------------------------


def cache_holds_it(seen: Seen) -> Verdict:
    """With its cache the template is gone; one that was never uploaded, or is another's, is not removed."""
    if isinstance(seen.caches, freshness.Failed):
        return decision.unknown(Reason.CACHE_NOT_FOUND, seen.caches, "cache")
    if seen.meta.annotations.get(common_status.ON_DELETE) == "Orphan":
        return steps.leave(Reason.LEAVING, f"template {seen.template} stays on the server")
    if not seen.status.asked:
        return steps.leave(Reason.LEAVING, f"template {seen.template} was never uploaded")
    if seen.older:
        said = f"template {seen.template} is that of {names.TEMPLATE.kind} {seen.older}, which is older"
        return steps.leave(Reason.LEAVING, said)
    if len(seen.caches.value) > 1:
        return common_steps.cache_is_clear(seen, seen.spec.cache_ref)
    if seen.cache is None or seen.cache.deleting:
        return steps.leave(Reason.LEAVING, "the cache is gone, and the template with it")
    return DONE


def nobody_uses_it(seen: Seen) -> Verdict:
    """A template stays while grids are made of it."""
    if not seen.used_by:
        return DONE
    said = f"template {seen.template} is used by grid {', '.join(seen.used_by)}"
    grids = ", ".join(seen.used_by)
    then = f"the end of grid {grids} is awaited, as of a DataGrid that is being deleted too"
    fix = f"delete grid {grids}, or let the template be: annotate this with {common_status.ON_DELETE}=Orphan"
    return Wait(Reason.TEMPLATE_IN_USE, said, on="group", within=IN_USE, again=seen.busy, next=then, fix=fix)


def template_is_gone(seen: Seen) -> Verdict:
    """The template is deleted on the server, by the server's own word."""
    if not seen.there:
        return steps.leave(Reason.LEAVING, f"template {seen.template} is gone")
    message = f"template {seen.template} is deleted on the server"
    if (held := common_steps.group_is_free(seen, message)) is not DONE:
        return held
    call = decision.Call(why="the GridTemplate is deleted", operation="remove")
    return Act(Reason.GRID_DELETING, message, (call,))


DELETION_STEPS: tuple[Callable[[Seen], Verdict], ...] = (
    cache_holds_it,
    cache_is_available,
    nobody_uses_it,
    template_is_gone,
)


# --- facts and status --------------------------------------------------------------------------------------------


def uploaded(seen: Seen) -> Fact:
    """Whether the server has these documents."""
    wanted = (freshness.value_of(seen.documents) or Documents()).digest
    if seen.there and wanted and seen.status.hash == wanted:
        return Fact("Uploaded", True, Reason.STANDS, "")
    return Fact("Uploaded", False, Reason.UPLOADING, "the server does not have these documents")


def in_use(seen: Seen) -> Fact:
    """Whether grids are made of it."""
    if seen.used_by:
        return Fact("InUse", True, Reason.TEMPLATE_IN_USE, f"by grid {', '.join(seen.used_by)}")
    return Fact("InUse", False, Reason.IDLE, "")


FACTS: tuple[Callable[[Seen], Fact], ...] = (uploaded, in_use)
READY_FACTS = frozenset({"Uploaded"})


def report(seen: Seen) -> dict[str, Any]:
    """The fields of the status that say how it stands; what is not known stays as it was."""
    documents = freshness.value_of(seen.documents) or Documents()
    state = "Pending"
    if (
        documents.fault
        or seen.elsewhere
        or seen.older
        or (seen.status.refused and seen.status.refused_hash == documents.digest)
    ):
        state = "Error"
    elif uploaded(seen).status:
        state = "InUse" if seen.used_by else "Available"
    elif seen.cache is not None and seen.cache.available:
        state = "Uploading"
    said: dict[str, Any] = {"state": state}
    if seen.cache is not None and not seen.elsewhere:
        said["cache"] = seen.cache.name
    if seen.there is not None:
        said["usedBy"] = list(seen.used_by)
    return said
