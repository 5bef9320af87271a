"""Events: posted beside the workers, never twice alike, never in the way."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from moorage.api import meta
from moorage.kube import client as kube_client
from moorage.kube import errors
from moorage.runtime import gate
from moorage.runtime.reporting import event_recorder
from tests.unit.runtime.fake_api import Asked, FakeApi, until

ABOUT = meta.ObjectRef("test.moorage.dev/v1", "Gadget", "ns", "one", "uid-1")


def note(reason: str = "Ready", about: meta.ObjectRef = ABOUT) -> event_recorder.Note:
    return event_recorder.Note(about, reason, "all is well", "reconcile")


async def test_the_same_is_told_once_in_a_while(api: FakeApi) -> None:
    now = [0.0]
    it = event_recorder.Recorder(kube_client.Client(api), gate.Gate(), instance="me", clock=lambda: now[0])
    running = asyncio.create_task(it.run())
    for _ in range(5):
        it.note(note())
        it.note(note("Other"))
    await it.flush(30)
    now[0] = event_recorder.QUIET
    it.note(note())
    await it.flush(30)
    running.cancel()
    assert [w.body["reason"] for w in api.writes("events")] == ["Ready", "Other", "Ready"]
    body: dict[str, Any] = api.writes("events")[0].body
    assert body["regarding"] == {
        "apiVersion": "test.moorage.dev/v1",
        "kind": "Gadget",
        "namespace": "ns",
        "name": "one",
        "uid": "uid-1",
    }


@pytest.mark.parametrize(("wanted", "posted"), [("all", ["Ready", "Stuck"]), ("warnings", ["Stuck"]), ("none", [])])
async def test_only_what_is_wanted_is_told(api: FakeApi, wanted: event_recorder.Wanted, posted: list[str]) -> None:
    it = event_recorder.Recorder(kube_client.Client(api), gate.Gate(), instance="me", wanted=wanted)
    running = asyncio.create_task(it.run())
    it.note(note())
    it.note(msgspec.structs.replace(note("Stuck"), warning=True))
    await it.flush(30)
    running.cancel()

    assert posted == [w.body["reason"] for w in api.writes("events")]


async def test_a_full_buffer_drops_and_a_failure_ends_nothing(api: FakeApi) -> None:
    async def fail(asked: Asked) -> None:
        api.before = None
        raise errors.TransportError("no", sent=False) if asked.body["reason"] == "a" else ValueError("no")

    it = event_recorder.Recorder(kube_client.Client(api), gate.Gate(), instance="me", size=3)
    for reason in "abcd":
        it.note(note(reason))
    api.before = fail
    running = asyncio.create_task(it.run())
    await it.flush(30)
    running.cancel()
    posted = [p for p in api.objects if p.plural == "events"]
    assert len(posted) == 2
    it.note(note("d"))
    assert it._notes.qsize() == 1, "what was dropped may still be told later"


async def test_nothing_is_posted_without_the_lease_and_flushing_has_an_end(api: FakeApi) -> None:
    async def hang(_: Asked) -> None:
        await asyncio.Event().wait()

    closed = gate.Gate()
    it = event_recorder.Recorder(kube_client.Client(api), closed, instance="me")
    running = asyncio.create_task(it.run())
    closed.open_until(None)
    it.note(note())
    await it.flush(30)
    assert api.writes("events") == []
    closed.open_until(float("inf"))
    api.before = hang
    it.note(note("b"))
    await until(lambda: api.writes("events"))
    await it.flush(0.01)
    running.cancel()


async def test_names_are_valid_whatever_the_object_is_called(api: FakeApi) -> None:
    it = event_recorder.Recorder(kube_client.Client(api), gate.Gate(), instance="me")
    long = meta.ObjectRef("v1", "Gadget", "", "a" * 199 + ".b", "u")
    name = str(it._body(note(about=long))["metadata"]["name"])  # type: ignore[index]
    assert name.startswith("a" * 199)
    assert ".." not in name
    assert len(name) <= 253
