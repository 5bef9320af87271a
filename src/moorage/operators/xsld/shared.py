"""What grids and templates see of the cache that they belong to. Pure."""

from __future__ import annotations

from typing import Annotated

import msgspec


class CacheRef(msgspec.Struct, frozen=True):
    """An XsldCache of the same namespace."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=253)]


class CacheSeen(msgspec.Struct, frozen=True):
    """The cache that is meant, as its own status says how it stands."""

    name: str
    available: bool
    deleting: bool
    task: str = ""  # what is under way there
