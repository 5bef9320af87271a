"""From a DataGrid's spec to what the server is told, and back: does the server have it as it should. Pure."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from moorage.operators.xsld.group import answers

from . import types

FIXED = ("gridType", "templateName", "numPartition")
"""What the server can't change in place."""


def body(spec: types.DataGridSpec) -> dict[str, Any]:
    """The request: numbers as texts, booleans as they are, and nothing that is not set."""
    numbers = {
        "gridCapacity": spec.grid_capacity,
        "transactionTimeout": spec.transaction_timeout,
        "numPartition": spec.num_partition,
        "numSyncReplicas": spec.num_sync_replicas,
        "numAsyncReplicas": spec.num_async_replicas,
        "timeToLive": spec.time_to_live,
        "lockTimeout": spec.lock_timeout,
    }
    texts = {
        "gridType": spec.grid_type,
        # the product's own samples name templates for simple grids too, which the server has no use for
        "templateName": spec.template_name if spec.grid_type == "Custom" else "",
        "ownerName": spec.owner_name,
        "groupName": spec.group_name,
    }
    flags = {
        "useAuthentication": spec.use_authentication,
        "useAuthorization": spec.use_authorization,
        "useCapLRUEvictor": spec.use_cap_lru_evictor,
    }
    return {
        "description": spec.description,  # an empty one too, or it could not be taken back
        **{key: text for key, text in texts.items() if text},
        **flags,
        **{key: str(number) for key, number in numbers.items()},
    }


def digest(spec: types.DataGridSpec) -> str:
    """Names the settings."""
    text = msgspec.json.encode(body(spec), order="deterministic")
    return hashlib.blake2b(text, digest_size=8).hexdigest()


def differences(spec: types.DataGridSpec, grid: answers.Grid) -> tuple[str, ...]:
    """Fields in which the server's grid differs; those that the server does not tell of are not counted."""
    told = grid.fields
    wanted = body(spec)
    return tuple(sorted(key for key in wanted if key in told and _text(wanted[key]) != _text(told[key])))


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
