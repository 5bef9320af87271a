"""XSLD: caches of IBM WebSphere eXtreme Scale Liberty Deployment, with their grids and grid templates.

`cache`, `grid` and `template` hold one kind each: `types` spec and status, `control` facts and steps, `kind` what it
watches. `group` is the product's admin API, `group_access` what the kinds share of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moorage.operators import system
from moorage.runtime import kind as runtime_kind

from . import config, names, reasons
from .cache import control as cache_control
from .cache import kind as cache_kind
from .cache import screen as cache_screen
from .cache import types as cache_types
from .grid import control as grid_control
from .grid import kind as grid_kind
from .grid import types as grid_types
from .template import control as template_control
from .template import kind as template_kind
from .template import types as template_types


def _kinds(settings: config.Config, environment: system.Environment) -> Sequence[runtime_kind.Kind[Any, Any]]:
    """The caches first: the others read what they watch."""
    caches = cache_kind.CacheKind(settings, environment.namespace)
    return (caches, grid_kind.GridKind(settings, caches), template_kind.TemplateKind(settings, caches))


SYSTEM = system.System(
    name=names.SYSTEM,
    title="XSLD",
    config=config.Config,
    definitions=lambda: (cache_types.definition(), grid_types.definition(), template_types.definition()),
    described=(
        system.Described(
            names.CACHE,
            cache_types.XsldCacheStatus,
            cache_control.STEPS,
            cache_control.DELETION_STEPS,
            cache_screen.rows,
            cache_screen.pods,
        ),
        system.Described(names.GRID, grid_types.DataGridStatus, grid_control.STEPS, grid_control.DELETION_STEPS),
        system.Described(
            names.TEMPLATE, template_types.GridTemplateStatus, template_control.STEPS, template_control.DELETION_STEPS
        ),
    ),
    reasons=(reasons.Reason,),
    kinds=_kinds,
)
