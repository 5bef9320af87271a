"""What a system hands to the registry: its configuration, its kinds, its definitions, and its reasons."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from moorage.api import meta
from moorage.helm.runs import binary
from moorage.kube import client as kube_client
from moorage.runtime import decision, kind
from moorage.runtime.reporting import screen_rows

from . import shells


@dataclasses.dataclass(frozen=True)
class Environment:
    """What a system may need of the process it runs in."""

    namespace: str  # the operator's own
    scratch: Path  # a private, writable folder
    helm: Path
    access: binary.KubeAccess
    grace: float  # seconds a stopped child may take; it must be dead before the lease is another's
    alone: bool = False  # the operator is there for its own namespace alone, with rights in no other


Find = Callable[[kube_client.Client, Mapping[str, Any]], Awaitable[screen_rows.Owned]]
"""From an object to those that it owns, as far as the user may read them; never fails for want of rights."""


Foresee = Callable[[Mapping[str, Any], Mapping[str, Any], screen_rows.Owned], Iterable[screen_rows.Item]]
"""From an object as it is and as it might be, and what it owns, to what would follow, in order. Pure."""


async def owns_nothing(_: kube_client.Client, __: Mapping[str, Any]) -> screen_rows.Owned:
    """Of a kind without objects of its own."""
    return screen_rows.Owned()


@dataclasses.dataclass(frozen=True)
class Described:
    """A kind as people's tools need it."""

    resource: meta.Resource
    status: type[Any]
    steps: Sequence[decision.Step[Any]]
    deletion_steps: Sequence[decision.Step[Any]]
    rows: screen_rows.Rows = screen_rows.nothing
    find: Find = owns_nothing
    enter: shells.Enter | None = None
    foresee: Foresee | None = None


@dataclasses.dataclass(frozen=True)
class System:
    """One of the systems that moorage runs."""

    name: str
    title: str
    config: type[Any]
    definitions: Callable[[], Sequence[dict[str, object]]]
    described: Sequence[Described]
    reasons: Sequence[type[decision.Reason]]
    kinds: Callable[[Any, Environment], Sequence[kind.Kind[Any, Any]]]
    ends_by_moorage: Sequence[meta.Resource] = ()
    """Kinds of objects that nobody else can end, so that none may be left when moorage is uninstalled."""
