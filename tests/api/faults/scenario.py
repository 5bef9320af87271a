"""Scenarios: what an operator is put through in every campaign, as a file. docs/reliability.md tells how to add one.

In a file, `$(namespace)` stands for the namespace of a run, `$(charts)` for the folder of the tests' charts and
`$(shipped)` for that of moorage's own.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import yaml

from moorage import operators
from moorage.api import meta
from moorage.operators import system
from moorage.runtime import kind

FOLDER = Path(__file__).parent / "scenarios"
CHARTS = Path(__file__).parents[2] / "e2e" / "charts"
SHIPPED = Path(__file__).parents[3] / "charts"


class Change(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A merge patch of one object."""

    kind: str
    name: str
    merge: dict[str, Any]
    namespace: str = ""


class Which(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One object."""

    kind: str
    name: str
    namespace: str = ""


class Act(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a user does next: one of create, change, delete. Then everything is waited for that `own` names."""

    create: dict[str, Any] = {}
    change: Change | None = None
    delete: Which | None = None
    settle: bool = True
    """False: go on at once."""

    expect: tuple[dict[str, Any], ...] = ()
    """Parts of objects that must hold once it has settled."""


class Operator(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who acts: kinds of the tests by their place in the source, or a system of moorage with its configuration."""

    kinds: tuple[str, ...] = ()
    definitions: tuple[str, ...] = ()
    system: str = ""
    section: dict[str, Any] = {}


class Scenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file."""

    name: str
    operator: Operator
    kinds: dict[str, str]
    """Kind -> `apiVersion plural`, and `cluster` behind it if it is in no namespace."""

    own: tuple[str, ...]
    """Kinds that are Ready, or gone, when all has settled."""

    look: tuple[str, ...]
    """Kinds whose objects are compared with those of an undisturbed run."""

    count: tuple[str, ...]
    """Kinds whose objects are made and removed as often as in an undisturbed run."""

    story: tuple[Act, ...]
    namespaces: tuple[str, ...] = ("$(namespace)",)
    """Where it all happens; the first is made for the run, the others are the operator's to make."""

    ignore: tuple[str, ...] = ()
    """Fields that may differ from an undisturbed run: `Collector.status.release.revision`."""

    mask: tuple[str, ...] = ()
    """Patterns of what may differ in texts: `revision \\d+`."""

    again: tuple[str, ...] = ()
    """Counted kinds whose objects a disturbed operator may make, and then also remove, once more."""

    stale: tuple[str, ...] = ()
    """What an operator that starts with lists of the past may do: counted kinds of which it may make one once more,
    and fields that may differ.
    """

    everyday: bool | Literal["kills"] = True
    """False: played in campaigns alone, as a run takes long. `kills`: each day killed, and the rest in campaigns."""

    surroundings: str = ""
    """`members`: a node that runs stand-ins of XSLD members; `servers`: of a Runtime's; `agents`: of OpenCGA's pods."""

    patience: float = 90.0
    """Seconds after which an act that has not settled counts as hanging."""

    def resource(self, of: str) -> meta.Resource:
        """A kind by its name."""
        version, plural, *scope = self.kinds[of].split()
        group, _, number = version.rpartition("/")
        return meta.Resource(group, number, of, plural, namespaced=scope != ["cluster"])


def files() -> list[Path]:
    """All scenarios."""
    return sorted(FOLDER.glob("*.yaml"))


def everyday(part: str = "") -> list[Path]:
    """Those that are played each day, in this part of the campaigns."""
    return [path for path in files() if load(path, "none").everyday in (True, part)]


def load(path: Path, namespace: str, *, but: int = 0) -> Scenario:
    """The scenario as it is played in a namespace, the last acts `but` so many left out."""
    text = path.read_text()
    for word, meaning in (("namespace", namespace), ("charts", CHARTS), ("shipped", SHIPPED)):
        text = text.replace(f"$({word})", str(meaning))
    found = msgspec.convert(yaml.safe_load(text), Scenario)
    found = msgspec.structs.replace(found, story=found.story[: len(found.story) - but])
    return found if found.namespaces != ("$(namespace)",) else msgspec.structs.replace(found, namespaces=(namespace,))


def definitions(of: Scenario) -> Sequence[dict[str, Any]]:
    """The CustomResourceDefinitions that it needs."""
    if of.operator.system:
        return operators.SYSTEMS[of.operator.system].definitions()
    return [_at(place)() for place in of.operator.definitions]


def kinds(of: Scenario, namespace: str, around: system.Environment) -> list[kind.Kind[Any, Any]]:
    """A fresh set of what the operator looks after."""
    if not of.operator.system:
        return [_at(place)(namespace) for place in of.operator.kinds]
    chosen = operators.SYSTEMS[of.operator.system]
    made = list(chosen.kinds(msgspec.convert(of.operator.section, chosen.config), around))
    for each in made:
        each.namespaces = (namespace,)
    return made


def _at(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)
