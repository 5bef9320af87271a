"""What grids and templates see of the cache that they belong to, and the steps that they share. Pure."""

from __future__ import annotations

from typing import Annotated

import msgspec

from moorage.api import common_status, meta
from moorage.operators.xsld.group import answers
from moorage.operators.xsld.reasons import Reason
from moorage.runtime import decision, freshness
from moorage.runtime.decision import DONE, Blocked, Verdict, Wait

MADE_TOGETHER = 60.0
"""Seconds within which what is applied together is all there."""


class CacheRef(msgspec.Struct, frozen=True):
    """An XsldCache of the same namespace."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=253)]


class CacheSeen(msgspec.Struct, frozen=True):
    """The cache that is meant, as its own status says how it stands."""

    name: str
    available: bool
    deleting: bool
    task: str = ""  # what is under way there


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What is observed of the cache, and of its group."""

    meta: meta.ObjectMeta
    busy: float  # seconds between polls while something is under way
    caches: freshness.Observed[tuple[CacheSeen, ...]]  # those that may be meant
    others: tuple[str, ...] = ()  # all caches of the namespace
    elsewhere: str = ""  # the cache that it was made in, where another one is meant
    older: str = ""  # an older resource of the kind that means the same on the server
    polled: freshness.Observed[answers.Polled]

    @property
    def cache(self) -> CacheSeen | None:
        """The one that is meant, if that is clear."""
        found = freshness.value_of(self.caches) or ()
        return found[0] if len(found) == 1 else None

    @property
    def told(self) -> answers.Polled:
        """What the group told last, however old."""
        return freshness.value_of(self.polled) or answers.Polled()


def cache_is_clear(seen: Seen, ref: CacheRef | None) -> Verdict:
    """The named cache, or the only one in the namespace."""
    if isinstance(seen.caches, freshness.Failed):
        return decision.unknown(Reason.CACHE_NOT_FOUND, seen.caches, "cache")
    if seen.elsewhere:
        return Blocked(
            Reason.MADE_ELSEWHERE,
            f"it was made in XsldCache {seen.elsewhere}, and spec.cacheRef names another",
            f"set spec.cacheRef.name to {seen.elsewhere}; or delete it, with the annotation "
            f"{common_status.ON_DELETE}=Orphan if XsldCache {seen.elsewhere} is to keep it, and make it anew",
        )
    found = seen.caches.value
    if len(found) > 1:
        several = ", ".join(cache.name for cache in found)
        return Blocked(
            Reason.AMBIGUOUS_CACHE, f"there are several caches in this namespace: {several}", "set spec.cacheRef.name"
        )
    if found:
        return DONE
    return _no_cache(ref.name if ref else "", ", ".join(seen.others))


def _no_cache(name: str, there: str) -> Wait:
    """It may be made together with what names it; after a minute the name is taken for mistyped."""
    said = f"there is no XsldCache {name}".rstrip()
    said += f" in this namespace, but {there}" if there else " in this namespace"
    make = f"create XsldCache {name}" if name else "create one"
    fix = f"correct spec.cacheRef.name to {there}, or {make}" if there else make
    then = (
        f"XsldCache {name} is awaited, of whoever makes it" if name else "an XsldCache is awaited, of whoever makes it"
    )
    return Wait(Reason.CACHE_NOT_FOUND, said, on="cache", within=MADE_TOGETHER, next=then, fix=fix)


def name_is_free(seen: Seen, kind: str, called: str) -> Verdict:
    """Of several resources that mean the same on the server the oldest has it."""
    if not seen.older:
        return DONE
    place = seen.cache.name if seen.cache else ""
    said = f"{kind} {seen.older}, which is older, means {called} in XsldCache {place} too"
    return Blocked(Reason.NAME_TAKEN, said, "delete one of the two, or make this one anew under another name")


def group_is_free(seen: Seen, message: str) -> Verdict:
    """One thing at a time, whoever asked for it; `message` says what is to be done."""
    running = [task.command for _, task in seen.told.running]
    busy = (seen.cache.task if seen.cache else "") or ", ".join(running)
    if not busy:
        return DONE
    said = f"{message}, once the group is free: {busy}"
    return Wait(Reason.TASK_RUNNING, said, on="group", within=1800.0, again=seen.busy)


def cache_is_available(seen: Seen, *, known: bool, what: str) -> Verdict:
    """The group stands, and whether it tells of `what` is `known`; nothing was done to it since."""
    cache = seen.cache
    if cache is None or cache.deleting or not cache.available:
        name = cache.name if cache else ""
        why = "is being deleted" if cache and cache.deleting else "is not available"
        return Wait(Reason.CACHE_NOT_AVAILABLE, f"XsldCache {name} {why}", on="cache", within=1800.0)
    if isinstance(seen.polled, freshness.Failed):
        return decision.unknown(Reason.CACHE_NOT_AVAILABLE, seen.polled, "group")
    if isinstance(seen.polled, freshness.Stale):
        why = f"the group is asked anew: {seen.polled.why}"
        return Wait(Reason.LOOKING, why, on="group", within=120.0, unseen=True)
    if not known:
        why = f"nobody tells of the {what}"
        return Wait(Reason.CACHE_NOT_AVAILABLE, why, on="group", within=900.0, again=seen.busy)
    return DONE
