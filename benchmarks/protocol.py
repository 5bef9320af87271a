"""What an API server is told and tells, whichever client carries it: content types, lists and the lines of watches.

Imports no client, as that would count in the start of an operator that has another.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Generic, TypeVar

import msgspec

T = TypeVar("T")

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
JSON = "application/json"


class ListMeta(msgspec.Struct, rename="camel"):
    """Of a list."""

    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class Page(msgspec.Struct, Generic[T]):
    """A list, or a part of one."""

    metadata: ListMeta
    items: list[T] | None = None


class Event(msgspec.Struct):
    """One line of a watch."""

    type: str
    object: msgspec.Raw


def watching(version: str, query: dict[str, str]) -> dict[str, str]:
    """The query of a watch from `version` on."""
    return {"watch": "true", "resourceVersion": version, "allowWatchBookmarks": "true", **query}


async def events(chunks: AsyncIterator[bytes]) -> AsyncIterator[Event]:
    """The lines of a watch, whose pieces may end anywhere."""
    decoder, rest = msgspec.json.Decoder(Event), b""
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield decoder.decode(line)
