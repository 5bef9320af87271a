"""Verbs: what is sent, what is read, and which error comes of which answer."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from kube_fakes import BOX, Box, FakeServer, answer, body, box, refusal

from moorage.api import builtin
from moorage.api.meta import Partial
from moorage.kube import client as kube_client
from moorage.kube import codec, errors
from moorage.kube.http import transport

Client = kube_client.Client


@pytest.fixture
def client(server: FakeServer) -> Client:
    return Client(server)


def last(server: FakeServer) -> tuple[str, str, dict[str, Any], Any]:
    method, path, query, sent = server.requests[-1]
    return method, path, query, None if sent is None else msgspec.json.decode(sent)


async def test_get_decodes_as_asked(client: Client, server: FakeServer) -> None:
    server.answers += [answer(200, body("a", 1, size=2))] * 3
    assert await client.get(BOX, "ns", "a", as_=Box) == box("a", 1, size=2)
    assert (await client.get(BOX, "ns", "a"))["size"] == 2
    partial = await client.get(BOX, "ns", "a", as_=Partial, metadata_only=True)
    assert partial.metadata.name == "a"
    assert last(server)[2]["accept"].startswith("application/json;as=PartialObjectMetadata;")


@pytest.mark.parametrize("name", ["../x", "a/status", "..", ".", "a%2Fb", ""])
async def test_what_can_be_no_name_is_not_there_and_not_asked_for(
    client: Client, server: FakeServer, name: str
) -> None:
    with pytest.raises(errors.NotFound, match="can be no object's name"):
        await client.get(builtin.CONFIG_MAP, "ns", name)

    assert [] == server.requests


async def test_an_answer_of_another_shape(client: Client, server: FakeServer) -> None:
    server.answers.append(answer(200, {"metadata": {"name": "a"}, "size": "large"}))
    with pytest.raises(errors.MalformedAnswer, match=r"get Box\.test\.moorage\.dev ns/a: does not decode as Box.*size"):
        await client.get(BOX, "ns", "a", as_=Box)


async def test_list_walks_all_pages(client: Client, server: FakeServer) -> None:
    for number in range(7):
        await server.put(f"box-{number}")
    listing = await client.list(BOX, "ns", as_=Box, limit=3, labels="a=b", fields="metadata.name!=x")
    assert len(listing.items) == 7
    assert listing.resource_version == "107"
    assert server.calls["list"] == 3
    assert last(server)[2]["labelSelector"] == "a=b"
    assert last(server)[2]["fieldSelector"] == "metadata.name!=x"


async def test_a_lost_continue_token_starts_over(client: Client, server: FakeServer) -> None:
    first = answer(200, {"metadata": {"resourceVersion": "1", "continue": "1"}, "items": [body("old", 1)]})
    server.answers += [first, answer(410, refusal(410, "Expired"))]
    await server.put("new")
    listing = await client.list(BOX, as_=Box)
    assert [item.metadata.name for item in listing.items] == ["new"]


async def test_tokens_that_always_expire_end_in_one_piece(client: Client, server: FakeServer) -> None:
    first = answer(200, {"metadata": {"resourceVersion": "1", "continue": "1"}, "items": []})
    expired = answer(410, refusal(410, "Expired"))
    server.answers += [first, expired] * 3
    await client.list(BOX)
    assert "limit" not in last(server)[2]
    server.answers += [first, expired] * 4
    with pytest.raises(errors.Gone):
        await client.list(BOX)


async def test_raw_items_get_kind_and_version(client: Client, server: FakeServer) -> None:
    server.answers.append(answer(200, {"metadata": {"resourceVersion": "1"}, "items": [{"metadata": {"name": "a"}}]}))
    listing = await client.list(builtin.POD)
    assert listing.items == [{"metadata": {"name": "a"}, "apiVersion": "v1", "kind": "Pod"}]
    server.answers.append(answer(200, {"metadata": {"resourceVersion": "1"}, "items": None}))
    assert (await client.list(builtin.POD)).items == []


async def test_list_of_something_else(client: Client, server: FakeServer) -> None:
    server.answers.append(transport.Response(200, {}, b"<html>"))
    with pytest.raises(errors.MalformedAnswer, match="not a list"):
        await client.list(BOX)


async def test_apply(client: Client, server: FakeServer) -> None:
    await client.apply(BOX, "ns", "a", {"size": 1}, field_manager="m", subresource="status", dry_run=True)
    method, path, query, sent = last(server)
    assert (method, path) == ("PATCH", "/apis/test.moorage.dev/v1/namespaces/ns/boxes/a/status")
    assert query == {
        "fieldManager": "m",
        "force": "true",
        "dryRun": "All",
        "timeout": "15s",
        "content_type": "application/apply-patch+yaml",
        "accept": "application/json",
    }
    assert sent == {"size": 1}
    await client.apply(BOX, "ns", "a", {}, field_manager="m", force=False)
    assert last(server)[2]["force"] == "false"


async def test_patches_and_create(client: Client, server: FakeServer) -> None:
    ops = [{"op": "test", "path": "/size", "value": 1}]
    await client.patch_json(BOX, "ns", "a", ops, field_manager="m")
    assert last(server)[2]["content_type"] == "application/json-patch+json"
    assert last(server)[3] == ops
    await client.patch_merge(BOX, "ns", "a", {"status": None}, subresource="status", field_manager="m")
    assert last(server)[2]["content_type"] == "application/merge-patch+json"
    assert last(server)[3] == {"status": None}
    await client.create(BOX, "ns", body("a", 0), field_manager="m")
    assert last(server)[:2] == ("POST", "/apis/test.moorage.dev/v1/namespaces/ns/boxes")
    await client.create(builtin.POD, "ns", {}, name="p", subresource="binding", field_manager="m")
    assert last(server)[1] == "/api/v1/namespaces/ns/pods/p/binding"


async def test_writes_tell_the_server_when_the_caller_gives_up(client: Client, server: FakeServer) -> None:
    """Else a request that waits in a slow server is carried out after its sender has lost the lease."""
    await client.apply(BOX, "ns", "a", {}, field_manager="m", timeout=1.5)
    await client.patch_merge(BOX, "ns", "a", {}, field_manager="m", timeout=1.5)
    await client.patch_json(BOX, "ns", "a", [], field_manager="m", timeout=1.5)
    await client.create(BOX, "ns", {}, field_manager="m", timeout=1.5)
    await client.delete(BOX, "ns", "a", propagation="Background", timeout=1.5)
    await client.evict("ns", "p", timeout=1.5)

    assert [query.get("timeout") for _, _, query, _ in server.requests] == ["1500ms"] * 6

    await client.apply(BOX, "ns", "a", {}, field_manager="m", timeout=0.0001)
    assert last(server)[2]["timeout"] == "1ms"  # 0 would mean the server's own limit


async def test_a_patch_that_does_not_fit_is_a_conflict(client: Client, server: FakeServer) -> None:
    server.answers.append(answer(422, refusal(422, "Invalid", "the server rejected our request", details={})))
    with pytest.raises(errors.Conflict):
        await client.patch_json(BOX, "ns", "a", [], field_manager="m")
    cause = {"reason": "FieldValueInvalid", "field": "size"}
    server.answers.append(answer(422, refusal(422, "Invalid", "bad size", details={"causes": [cause]})))
    with pytest.raises(errors.Invalid):
        await client.patch_json(BOX, "ns", "a", [], field_manager="m")


async def test_delete(client: Client, server: FakeServer) -> None:
    server.answers.append(answer(200, {"kind": "Status", "status": "Success"}))
    done = await client.delete(
        BOX, "ns", "a", uid="u", resource_version="9", propagation="Foreground", grace=0, dry_run=True
    )
    assert done
    assert done.gone
    assert last(server)[3] == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": "u", "resourceVersion": "9"},
        "propagationPolicy": "Foreground",
        "gracePeriodSeconds": 0,
        "dryRun": ["All"],
    }
    server.answers.append(answer(200, body("a", 1, deletionTimestamp="now")))
    waiting = await client.delete(BOX, "ns", "a", propagation="Background")
    assert waiting
    assert not waiting.gone
    server.answers.append(answer(404, refusal(404, "NotFound")))
    absent = await client.delete(BOX, "ns", "a", propagation="Background")
    assert not absent
    assert absent.gone
    server.answers.append(answer(409, refusal(409, "Conflict")))
    with pytest.raises(errors.Conflict):
        await client.delete(BOX, "ns", "a", uid="other", propagation="Background")


async def test_evict(client: Client, server: FakeServer) -> None:
    assert await client.evict("ns", "p", uid="u", grace=5)
    assert last(server)[:2] == ("POST", "/api/v1/namespaces/ns/pods/p/eviction")
    assert last(server)[3]["deleteOptions"]["preconditions"] == {"uid": "u"}
    server.answers.append(answer(404, refusal(404)))
    assert not await client.evict("ns", "p")
    causes = {"causes": [{"reason": "DisruptionBudget"}], "retryAfterSeconds": 7}
    server.answers.append(answer(429, refusal(429, "TooManyRequests", details=causes)))
    with pytest.raises(errors.TooManyRequests) as caught:
        await client.evict("ns", "p")
    assert caught.value.retry_after == 7
    assert server.calls["POST"] == 3


async def test_logs_review_version_raw(client: Client, server: FakeServer) -> None:
    server.answers.append(transport.Response(200, {}, b"one\ntw\xff"))
    assert await client.logs("ns", "p", container="c", previous=True, tail=2) == "one\ntw\ufffd"
    query = last(server)[2]
    assert (query["container"], query["previous"], query["tailLines"]) == ("c", "true", "2")
    await client.review({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {}})
    assert last(server)[:2] == ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
    server.answers.append(answer(200, {"gitVersion": "v1"}))
    assert await client.version() == {"gitVersion": "v1"}
    server.answers.append(answer(500, refusal(500)))
    with pytest.raises(errors.ServerError, match="PUT /x"):
        await client.raw("PUT", "/x", body={"a": 1})


class TestShedding:
    """A server that sheds load names a time; reads wait for it, writes tell the caller."""

    @pytest.fixture
    def slept(self, monkeypatch: pytest.MonkeyPatch) -> list[float]:
        slept: list[float] = []
        plain = asyncio.sleep

        async def sleep(seconds: float) -> None:
            slept.append(seconds)
            await plain(0)

        monkeypatch.setattr(asyncio, "sleep", sleep)
        return slept

    @pytest.mark.parametrize("code", [429, 503])
    async def test_reads_wait(self, client: Client, server: FakeServer, slept: list[float], code: int) -> None:
        busy = transport.Response(code, {"Retry-After": "3"}, msgspec.json.encode(refusal(code)))
        server.answers += [busy, busy, answer(200, body("a", 1))]
        await client.get(BOX, "ns", "a")
        assert slept == [3, 3]

    async def test_but_not_beyond_their_timeout(self, client: Client, server: FakeServer, slept: list[float]) -> None:
        server.answers.append(transport.Response(429, {"Retry-After": "30"}, b""))
        with pytest.raises(errors.TooManyRequests) as caught:
            await client.get(BOX, "ns", "a", timeout=15)
        assert caught.value.retry_after == 30
        assert slept == []

    @pytest.mark.parametrize("code", [500, 503])
    async def test_nor_without_a_time(self, client: Client, server: FakeServer, slept: list[float], code: int) -> None:
        server.answers.append(answer(code, refusal(code)))
        with pytest.raises(errors.ServerError):
            await client.get(BOX, "ns", "a")
        assert slept == []

    async def test_writes_do_not(self, client: Client, server: FakeServer, slept: list[float]) -> None:
        server.answers.append(transport.Response(429, {"Retry-After": "1"}, b""))
        with pytest.raises(errors.TooManyRequests):
            await client.apply(BOX, "ns", "a", {}, field_manager="m")
        assert slept == []


@pytest.mark.parametrize(
    ("code", "reason", "kind", "maybe"),
    [
        (400, "BadRequest", errors.BadRequest, False),
        (401, "Unauthorized", errors.Unauthorized, False),
        (403, "Forbidden", errors.Forbidden, False),
        (404, "NotFound", errors.NotFound, False),
        (405, "MethodNotAllowed", errors.BadRequest, False),
        (409, "Conflict", errors.Conflict, False),
        (409, "AlreadyExists", errors.AlreadyExists, False),
        (410, "Gone", errors.Gone, False),
        (422, "Invalid", errors.Invalid, False),
        (429, "TooManyRequests", errors.TooManyRequests, False),
        (500, "InternalError", errors.ServerError, True),
        (501, "", errors.ServerError, False),
        (503, "ServiceUnavailable", errors.ServerError, True),
        (504, "Timeout", errors.ServerError, True),
    ],
)
async def test_each_refusal_has_its_class(
    client: Client, server: FakeServer, code: int, reason: str, kind: type[errors.ApiError], maybe: bool
) -> None:
    server.answers.append(answer(code, refusal(code, reason, "because")))
    with pytest.raises(errors.ApiError) as caught:
        await client.apply(BOX, "ns", "a", {}, field_manager="m")
    assert type(caught.value) is kind
    assert caught.value.maybe_applied is maybe
    assert str(caught.value).startswith(f"apply Box.test.moorage.dev ns/a: {code} ")
    assert "because" in str(caught.value)


def test_refusals_that_are_no_status() -> None:
    error = codec.failure("get x", 502, b"<html>bad gateway</html>" + b"x" * 5000, "")
    assert isinstance(error, errors.ServerError)
    assert "bad gateway" in str(error)
    assert len(str(error)) < 400
    long = msgspec.json.encode(refusal(422, "Invalid", "y" * 9000))
    assert len(str(codec.failure("get x", 422, long, ""))) < 1200


@pytest.mark.parametrize(
    "text",
    [
        "failed to create typed patch object (/x; /v1, Kind=ConfigMap): .data.a: expected string",
        "failed to convert new object (/x; apps/v1, Kind=StatefulSet) to proper version: quantities must match",
    ],
)
def test_a_body_of_a_wrong_type_is_the_senders_fault(text: str) -> None:
    """Server-side apply answers 500 where the schema is violated in type, or a text can't be what it stands for."""
    error = codec.failure("apply x", 500, msgspec.json.encode(refusal(500, "", text)), "")
    assert isinstance(error, errors.Invalid)
    assert not error.maybe_applied


async def test_refusals_about_secrets_do_not_quote_them(client: Client, server: FakeServer) -> None:
    server.answers.append(answer(422, refusal(422, "Invalid", 'data: Invalid value: "hunter2"')))
    with pytest.raises(errors.Invalid) as caught:
        await client.apply(builtin.SECRET, "ns", "a", {}, field_manager="m")
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(caught.value.status)


def test_the_tree_is_drawn_as_it_is() -> None:
    """The module docstring of errors is documentation; every class stands in it."""
    for name in errors.__all__:
        if name not in ("Status", "from_status"):
            assert name in str(errors.__doc__)
            assert issubclass(getattr(errors, name), errors.KubeError)
