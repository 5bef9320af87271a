"""What may be told of an exception: in status, events and outcomes, where everybody reads, and in the log."""

from __future__ import annotations

from typing import Any

import structlog

from moorage.kube import errors

log = structlog.get_logger(__name__)

RACES = (errors.NotFound, errors.Conflict, errors.AlreadyExists)
"""The world had moved, as it does all the time: whoever looks again finds it."""


def words(error: BaseException) -> str:
    """Errors of the API server in full, as they withhold secrets; of others the type alone, as they may quote some."""
    if isinstance(error, errors.KubeError):
        return str(error)
    return f"{type(error).__name__}, which is a defect; the operator's log has the trace"


def tell(event: str, error: BaseException, **about: Any) -> None:
    """Log it: a defect with its trace; what the API server says in one line, and quietly what is a mere race."""
    if isinstance(error, RACES):
        log.info(event, error=str(error), **about)
    elif isinstance(error, errors.KubeError):
        log.warning(event, error=str(error), **about)
    else:
        log.error(event, exc_info=error, **about)
