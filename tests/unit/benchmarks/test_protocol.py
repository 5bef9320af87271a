"""Lists and watches as the harness and the limit read them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
import pytest

from benchmarks import protocol

LINES = b'{"type":"ADDED","object":{"a":1}}\n{"type":"BOOKMARK","object":{}}\n'


@pytest.mark.parametrize("size", [1, 7, len(LINES)])
async def test_the_lines_of_a_watch_are_read_wherever_its_pieces_end(size: int) -> None:
    """In the middle of a line, or after several."""

    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(LINES), size):
            yield LINES[at : at + size]

    found = [(it.type, bytes(it.object)) async for it in protocol.events(pieces())]

    assert [("ADDED", b'{"a":1}'), ("BOOKMARK", b"{}")] == found


def test_a_list_without_items_is_empty_and_tells_where_the_next_part_begins() -> None:
    """The server leaves out what is empty."""
    page = msgspec.json.decode(b'{"metadata":{"resourceVersion":"7","continue":"x"}}', type=protocol.Page[int])

    assert (None, "7", "x") == (page.items, page.metadata.resource_version, page.metadata.continue_)
