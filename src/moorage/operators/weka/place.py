"""What the kinds decide alike: where they may be, which image is run there, and how the last one leaves. Pure.

Each speaks under reasons of its own, as these are about different objects to whoever reads them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.api import builtin, meta
from moorage.operators import accounts, steps
from moorage.runtime import decision, freshness
from moorage.runtime.decision import DONE, Blocked, Verdict

from . import dialect, names


class Placed(msgspec.Struct, frozen=True, kw_only=True):
    """What an observation has, of whichever kind, of the object and of its place."""

    meta: meta.ObjectMeta
    now: float
    rights: accounts.Rights
    allowed: bool  # the namespace is opened
    images: tuple[str, ...]  # how the names of those begin that may be run
    scripts: bool  # specs may bring scripts
    dialect: dialect.Dialect
    namespace_ending: bool = False
    binding: freshness.Observed[accounts.BindingSeen | None]
    neighbours: int = 0  # other objects of the system in the namespace

    @property
    def name(self) -> str:
        """Its own."""
        return self.meta.name

    def confirmed(self, override: str) -> bool:
        """Whether the annotation names that override, which may harm data."""
        return override in confirmed(self.meta)


def confirmed(of: meta.ObjectMeta) -> frozenset[str]:
    """The overrides that the annotation names."""
    return frozenset(it.strip() for it in of.annotations.get(names.CONFIRM, "").split(","))


def namespace_is_allowed(seen: Placed, reason: decision.Reason) -> Verdict:
    """Who may make one of these is root on nodes, so an administrator opens each namespace for them."""
    if seen.allowed:
        return DONE
    said = f"namespace {seen.meta.namespace} is not opened for pods that are root on their nodes"
    return Blocked(reason, said, decision.next_of(reason))


def image_is_allowed(seen: Placed, image: str, reason: decision.Reason) -> Verdict:
    """By the beginning of its name; nothing is listed, nothing is run."""
    if image_may_run(image, seen.images):
        return DONE
    said = f"image {image} is none of those that may be root on nodes"
    return Blocked(reason, said, decision.next_of(reason))


def image_may_run(image: str, listed: tuple[str, ...]) -> bool:
    """Whether an image's name begins as one that is listed, up to the end of a part of it."""
    return any(image == it or (image.startswith(it) and (it[-1] in "/:" or image[len(it)] in "/:@")) for it in listed)


def rights_are_bound(seen: Placed, reason: decision.Reason) -> Verdict:
    """The account of the namespace is bound to its one role there."""
    why = "all that is done in the namespace is done with these rights"
    return accounts.is_bound(seen.binding, seen.meta.namespace, seen.rights, reason, why)


def objects_are_known(objects: freshness.Observed[Any], reason: decision.Reason) -> Verdict:
    """Nothing is decided on watches that are not filled."""
    return decision.unknown(reason, objects, "objects") if isinstance(objects, freshness.Failed) else DONE


def namespace_ends(seen: Placed, reason: decision.Reason) -> Verdict:
    """Its rights are held until all is in order there; without them nobody can be told anything any more."""
    return steps.namespace_ends(seen.namespace_ending and freshness.value_of(seen.binding) is None, reason)


def it_may_go(seen: Placed, scripts: str, reason: decision.Reason) -> Verdict:
    """The last of its namespace takes what runs in pods away, by its uid `scripts`, and gives the rights back."""
    namespace, why = seen.meta.namespace, f"nothing is left in {seen.meta.namespace}"
    back = steps.rights_returned(freshness.value_of(seen.binding), namespace, seen.rights, seen.neighbours, why)

    def last(edit: decision.EditFinalizer) -> tuple[decision.AnyAction, ...]:
        if seen.neighbours or not scripts:
            return back(edit)
        ref = builtin.CONFIG_MAP.ref(namespace, names.SCRIPTS, scripts)
        return decision.Delete(why=why, resource=builtin.CONFIG_MAP, ref=ref), *back(edit)

    return steps.it_may_go(last, reason, f"nothing is left of {seen.meta.name}")
