"""The fault transport does what its words say: what is applied, what the caller is told, and which events are left."""

from __future__ import annotations

import msgspec
import pytest

from moorage.api import builtin
from moorage.kube import client as kube_client
from moorage.kube import errors

from . import events, faulty, plans

TOLD = {
    "refused": (False, errors.TransportError, False),
    "drop": (False, errors.TransportError, True),
    "lose": (True, errors.TransportError, True),
    "409": (False, errors.Conflict, False),
    "422": (False, errors.Invalid, False),
    "429": (False, errors.TooManyRequests, False),
    "429 wait": (False, errors.TooManyRequests, False),
    "500": (False, errors.ServerError, True),
    "500 after": (True, errors.ServerError, True),
    "503": (False, errors.ServerError, True),
    "503 wait": (False, errors.ServerError, True),
    "slow": (True, None, False),
    "slow after": (True, None, False),
}
"""Whether it is applied, what is raised, and whether that says that it may have been applied."""


def test_every_word_is_told_about() -> None:
    """Those that kill have tests of their own."""
    assert set(plans.GENTLE) == set(TOLD)


@pytest.mark.parametrize("word", TOLD)
async def test_a_write(client: kube_client.Client, namespace: str, word: str) -> None:
    applied, raised, maybe = TOLD[word]
    wire = faulty.Wire(client.transport)
    wire.fault = lambda write: word
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    caught: errors.KubeError | None = None
    try:
        await kube_client.Client(wire).create(builtin.CONFIG_MAP, namespace, body, field_manager="test")
    except errors.KubeError as error:
        caught = error
    found = await client.list(builtin.CONFIG_MAP, namespace, fields="metadata.name=a")

    assert applied == bool(found.items) == wire.writes[0].applied
    assert raised is (type(caught) if caught else None)
    assert maybe == bool(caught and caught.maybe_applied)
    assert "POST configmaps" == wire.writes[0].what


def _event(type_: str, name: str, version: str) -> bytes:
    metadata = {"namespace": "n", "name": name, "resourceVersion": version}
    return msgspec.json.encode({"type": type_, "object": {"metadata": metadata}}) + b"\n"


def test_what_is_overwritten_is_never_seen_and_all_else_stays_in_order() -> None:
    """An object made anew under a name overwrites the one before."""
    first, gone, anew = _event("ADDED", "a", "1"), _event("DELETED", "a", "3"), _event("ADDED", "a", "4")
    other, bookmark = (
        _event("MODIFIED", "b", "2"),
        b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}\n',
    )
    assert [other, anew, bookmark] == events.latest([first, other, gone, anew, bookmark])


def test_the_same_seed_draws_the_same() -> None:
    """What a table names must be enough to have it again."""

    def drawn(seed: int) -> list[str]:
        chaos = plans.Chaos(seed, 0.5)
        return [chaos.event(faulty.Read("/x"), b"") for _ in range(100)]

    assert drawn(7) == drawn(7)
    assert drawn(7) != drawn(8)


def test_the_busiest_second() -> None:
    """Counted anywhere, not by the clock's seconds."""
    assert 3 == faulty.busiest([0.0, 0.9, 1.0, 1.8, 5.0])
    assert 0 == faulty.busiest([])
