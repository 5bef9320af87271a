"""Whether a restart of this process would help: what /healthz says.

A watch that is silent without saying why, or whose task has crashed, is cured by a restart. Trouble with the server (an
outage, missing rights, a missing CRD) is not, so it shows in metrics and logs while the watch tries again by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from moorage.kube.informers import informer

CRASHED = "the watch crashed"
"""How `kube.cache` begins its error when a watch's task has ended."""


def beyond_cure(
    informers: Iterable[informer.Informer[Any]], *, clock: Callable[[], float] = time.monotonic
) -> list[str]:
    """The watches that will not heal by themselves; empty when all is well."""
    return [str(cache.scope) for cache in informers if _is_dead(cache, clock())]


def _is_dead(cache: informer.Informer[Any], now: float) -> bool:
    if cache.error:
        return cache.error.startswith(CRASHED)
    return cache.synced and now - cache.last_contact > cache.stale_after
