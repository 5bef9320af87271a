"""What may be told of an exception: in status, events and outcomes, where everybody reads."""

from __future__ import annotations

from moorage.kube import errors


def words(error: BaseException) -> str:
    """Errors of the API server in full, as they withhold secrets; of others the type alone, as they may quote some."""
    if isinstance(error, errors.KubeError):
        return str(error)
    return f"{type(error).__name__}, which is a defect; the operator's log has the trace"
