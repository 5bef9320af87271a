"""Small parts: selectors, the store's indexes, exec's channels, discovery."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kube_fakes import Box, FakeServer, answer, body, box, refusal

from moorage.api.meta import Resource
from moorage.kube import client as kube_client
from moorage.kube import discovery, errors
from moorage.kube.http import exec_protocol, port_forward
from moorage.kube.informers import cached_object, selectors, store


@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        ("", {}, True),
        ("a", {"a": ""}, True),
        ("a", {}, False),
        ("!a", {}, True),
        ("!a", {"a": "1"}, False),
        ("a=1", {"a": "1"}, True),
        ("a==1", {"a": "2"}, False),
        ("a=", {"a": ""}, True),
        ("a!=1", {}, True),
        ("a!=1", {"a": "1"}, False),
        ("a in (1, 2),b", {"a": "2", "b": "x"}, True),
        ("a in (1,2)", {}, False),
        ("a notin (1,2)", {"a": "2"}, False),
        ("a notin (1,2)", {}, True),
        ("x.io/a = 1 , !b", {"x.io/a": "1"}, True),
    ],
)
def test_selectors(selector: str, labels: dict[str, str], expected: bool) -> None:
    assert selectors.matches(selector, labels) is expected


@pytest.mark.parametrize("selector", ["a=b=c", "a in 1", ",", "a b", "in (a)", "=1"])
def test_malformed_selectors(selector: str) -> None:
    with pytest.raises(ValueError, match="selector"):
        selectors.matches(selector, {})


OBJECTS = st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 3), st.booleans()), max_size=30)


@given(OBJECTS)
def test_indexes_follow_every_change(changes: list[tuple[str, int, bool]]) -> None:
    """After any changes an index says the same as a walk over everything."""
    kept: store.Store[Box] = store.Store()
    kept.index("size", lambda item: [str(item.size)])
    model: dict[str, Box] = {}
    for version, (name, size, present) in enumerate(changes, 1):
        before = model.pop(name, None)
        if present:
            made = model[name] = box(name, version, size=size)
            assert kept.put(("ns", name), store.Held(made, name, version), made) == before
        else:
            assert kept.drop(("ns", name)) == before
    assert sorted(kept.objects(), key=str) == sorted(model.values(), key=str)
    assert kept.objects("ns") == kept.objects()
    assert kept.objects("other") == []
    assert sorted(kept) == sorted(("ns", name) for name in model)
    kept.index("late", lambda item: [str(item.size)])
    for size in range(4):
        expected = sorted(item.metadata.name for item in kept.objects() if item.size == size)
        for index in ("size", "late"):
            assert sorted(item.metadata.name for item in kept.by(index, str(size))) == expected


@given(OBJECTS, OBJECTS)
def test_a_store_that_adopts_another_is_that_other(
    changes: list[tuple[str, int, bool]], others: list[tuple[str, int, bool]]
) -> None:
    """Contents and indexes, also one that was made while the other was filled."""
    kept: store.Store[Box] = store.Store()
    kept.index("size", lambda item: [str(item.size)])
    twin = kept.empty_twin()
    kept.index("late", lambda item: [str(item.size), "all"])
    for target, wanted in ((kept, changes), (twin, others)):
        for version, (name, size, present) in enumerate(wanted, 1):
            made = box(name, version, size=size)
            if present:
                target.put(("ns", name), store.Held(made, name, version), made)
            else:
                target.drop(("ns", name))
    expected, given_back = twin.objects(), kept.objects()
    before = kept.adopt(twin)

    assert [entry.obj for space in before.values() for entry in space.values()] == given_back
    assert kept.objects() == expected
    assert len(kept) == len(list(kept)) == len(expected)
    assert sorted(i.metadata.name for i in kept.by("late", "all")) == sorted(i.metadata.name for i in expected)
    for size in map(str, range(4)):
        assert {i.metadata.name for i in kept.by("size", size)} == {
            i.metadata.name for i in expected if str(i.size) == size
        }


def test_index_names_are_unique() -> None:
    kept: store.Store[Box] = store.Store()
    kept.index("owner", store.owner_uids)
    kept.index("owner", store.owner_uids)
    with pytest.raises(ValueError, match="owner"):
        kept.index("owner", lambda _: [])
    with pytest.raises(KeyError):
        kept.by("none", "x")


def test_views_of_structs_and_of_raw_objects_agree() -> None:
    owner = {"apiVersion": "v1", "kind": "X", "name": "o", "uid": "owner-uid"}
    raw = body("a", 7, labels={"l": "1"}, ownerReferences=[owner])
    typed = msgspec.convert(raw, Box)
    assert cached_object.identity(raw) == cached_object.identity(typed) == (("ns", "a"), "uid-a", 7)
    assert cached_object.meta_of(raw) == cached_object.meta_of(typed)
    assert cached_object.version_of(raw) == cached_object.version_of(typed) == "7"
    for owners in ([], [owner], [owner, {**owner, "uid": "other"}]):
        both = body("a", 7, ownerReferences=owners), msgspec.convert(body("a", 7, ownerReferences=owners), Box)
        assert [list(store.owner_uids(obj)) for obj in both] == [[found["uid"] for found in owners]] * 2


class FakeSocket:
    protocol = exec_protocol.PROTOCOLS[0]

    def __init__(self, *frames: bytes) -> None:
        self._frames = frames
        self.sent: list[bytes] = []

    async def send(self, frame: bytes) -> None:
        self.sent.append(frame)

    async def frames(self) -> AsyncIterator[bytes]:
        for frame in self._frames:
            yield frame


async def test_exec_output_and_success() -> None:
    end = b'\x03{"status":"Success"}'
    result = await exec_protocol.collect(FakeSocket(b"\x01he", b"\x02oops", b"\x01llo", b"", b"\x09?", end), "exec")
    assert result == exec_protocol.ExecResult("hello", "oops", 0)


async def test_exec_exit_code() -> None:
    status = refusal(0, "NonZeroExitCode", details={"causes": [{"reason": "ExitCode", "message": "7"}]})
    result = await exec_protocol.collect(
        FakeSocket(b"\x03" + msgspec.json.encode({**status, "status": "Failure"})), "exec"
    )
    assert result.code == 7


async def test_a_forwarded_port_s_frames_are_one_stream() -> None:
    """The first frame of each channel names the port; what follows is what came, cut anywhere."""
    socket = FakeSocket(b"\x00\x28\x23", b"\x01\x28\x23", b"\x00he", b"\x00", b"\x00llo", b"\x09?")
    stream = port_forward.Stream(socket, "port-forward")

    assert [b"he", b"llo", b"", b""] == [await stream.receive() for _ in range(4)]
    await stream.send(b"hi")
    assert [b"\x00hi"] == socket.sent


async def test_a_port_where_nobody_listens_is_told_in_the_kubelet_s_words() -> None:
    socket = FakeSocket(b"\x00\x28\x23", b"\x01\x28\x23", b"\x01connection refused\n")

    with pytest.raises(errors.TransportError, match=r"^port-forward: connection refused$"):
        await port_forward.Stream(socket, "port-forward").receive()


async def test_exec_that_never_started_or_never_ended() -> None:
    status = refusal(0, "InternalError", "no such container", status="Failure")
    with pytest.raises(errors.ServerError, match="no such container"):
        await exec_protocol.collect(FakeSocket(b"\x03" + msgspec.json.encode(status)), "exec")
    with pytest.raises(errors.TransportError) as caught:
        await exec_protocol.collect(FakeSocket(b"\x01half"), "exec")
    assert caught.value.sent


SERVED = answer(
    200,
    {
        "resources": [
            {"name": "widgets", "kind": "Widget", "namespaced": True},
            {"name": "widgets/status", "kind": "Widget", "namespaced": True},
            {"name": "planes", "kind": "Plane", "namespaced": False},
        ]
    },
)


async def test_kinds_are_found_once_and_looked_for_again_after_a_while(server: FakeServer) -> None:
    now = 0.0
    found = discovery.Discovery(kube_client.Client(server), clock=lambda: now)
    server.answers.append(answer(404, refusal(404, "NotFound")))
    for _ in range(3):
        with pytest.raises(errors.NotFound, match=r"x\.io/v1 serves no kind Widget"):
            await found.resource("x.io/v1", "Widget")
    assert len(server.requests) == 1

    now = 10.0
    server.answers.append(SERVED)
    assert await found.resource("x.io/v1", "Widget") == Resource("x.io", "v1", "Widget", "widgets")
    assert not (await found.resource("x.io/v1", "Plane")).namespaced
    assert len(server.requests) == 2

    found.invalidate("other.io")
    await found.resource("x.io/v1", "Widget")
    assert len(server.requests) == 2
    found.invalidate()
    server.answers.append(SERVED)
    await found.resource("x.io/v1", "Widget")
    assert server.requests[-1][1] == "/apis/x.io/v1"
    server.answers.append(SERVED)
    await found.resource("v1", "Widget")
    assert server.requests[-1][1] == "/api/v1"


async def test_what_is_not_served_is_not_remembered_for_ever(server: FakeServer) -> None:
    """People write any apiVersion that they like into what is looked up."""
    now = 0.0
    found = discovery.Discovery(kube_client.Client(server), clock=lambda: now)
    for n in range(100):
        server.answers.append(answer(404, refusal(404, "NotFound")))
        with pytest.raises(errors.NotFound):
            await found.resource(f"x{n}.io/v1", "Widget")
        now += 1

    assert len(found._known) == len(found._asked) <= 11


async def test_capabilities_of_an_aggregated_and_of_an_older_server(server: FakeServer) -> None:
    found = discovery.Discovery(kube_client.Client(server))
    scale = {"subresource": "scale", "responseKind": {"kind": "Scale"}}
    widgets = {"resource": "widgets", "responseKind": {"kind": "Widget"}, "subresources": [scale]}
    group = {
        "metadata": {"name": "x.io"},
        "versions": [{"version": "v1", "resources": [widgets]}, {"version": "v2", "freshness": "Stale"}],
    }
    core = {"versions": [{"version": "v1", "resources": [{"resource": "pods", "responseKind": {"kind": "Pod"}}]}]}
    server.answers += [
        answer(200, {"gitVersion": "v1.35.4"}),
        answer(200, {"kind": "APIGroupDiscoveryList", "items": [core]}),
        answer(200, {"kind": "APIGroupDiscoveryList", "items": [group]}),
    ]
    capabilities = await found.capabilities()
    assert capabilities.version == "v1.35.4"
    assert capabilities.api_versions == ("v1", "v1/Pod", "x.io/v1", "x.io/v1/Scale", "x.io/v1/Widget", "x.io/v2")
    assert capabilities.missing == ("x.io/v2",)

    server.answers += [
        answer(200, {"gitVersion": "v1.25.0"}),
        answer(200, {"kind": "APIVersions", "versions": ["v1"]}),
        answer(200, {"resources": [{"name": "pods", "kind": "Pod"}]}),
        answer(200, {"kind": "APIGroupList", "groups": [{"versions": [{"groupVersion": "down.io/v1"}]}]}),
        answer(503, refusal(503)),
    ]
    older = await found.capabilities()
    assert older.api_versions == ("down.io/v1", "v1", "v1/Pod")
    assert older.missing == ("down.io/v1",)
