"""What one object asks of a helm engine."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable

from moorage.api import meta

from . import observation, release_status
from .charts import chart_archive, values


@dataclasses.dataclass(frozen=True)
class Request:
    """What one object asks of the engine."""

    key: Hashable
    owner: meta.ObjectRef
    target: observation.Target
    policy: observation.Policy
    wanted: observation.Wanted
    status: release_status.HelmStatus
    reconcile_at: str
    generation: int
    leaving: bool
    values: Callable[[chart_archive.Contents], values.Given] | None
    """The release's values, given the chart; None when they can't be had, or not yet."""
