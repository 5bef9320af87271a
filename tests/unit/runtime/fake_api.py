"""An API server in memory, at the transport: objects with versions and uids, patches, finalizers, watches, faults."""

from __future__ import annotations

import asyncio
import bisect
import contextlib
import itertools
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import msgspec

from moorage.kube.http import transport

Object = dict[str, Any]
NOTHING: transport.Query = {}


class Place(msgspec.Struct, frozen=True):
    """What a request path names: a collection when `name` is empty; all namespaces when `namespace` is."""

    plural: str
    namespace: str = ""
    name: str = ""
    sub: str = ""

    @classmethod
    def of(cls, path: str) -> Place:
        parts = path.strip("/").split("/")[2 if path.startswith("/api/") else 3 :]
        namespace = ""
        if not parts:
            return cls("", "")  # what is served of a group
        if parts[0] == "namespaces" and len(parts) > 2:
            namespace, parts = parts[1], parts[2:]
        return cls(parts[0], namespace, *parts[1:])

    def covers(self, other: Place) -> bool:
        return self.plural == other.plural and self.namespace in ("", other.namespace)

    @property
    def whole(self) -> Place:
        return msgspec.structs.replace(self, sub="")


class Refusal(Exception):
    """An answer of 400 or more; `after` is its Retry-After in seconds."""

    def __init__(self, code: int, reason: str = "", message: str = "no", *, after: int = 0) -> None:
        super().__init__(f"{code} {reason}")
        self.code, self.reason, self.message, self.after = code, reason, message, after

    def answer(self) -> transport.Response:
        status = {"kind": "Status", "code": self.code, "reason": self.reason, "message": self.message}
        headers = {"Retry-After": str(self.after)} if self.after else {}
        return transport.Response(self.code, headers, msgspec.json.encode(status))


class Asked(msgspec.Struct, frozen=True):
    """One request."""

    method: str
    at: Place
    body: Any = None
    query: dict[str, Any] = {}
    user: str = ""


class FakeApi:
    """`before` and `after` are awaited around each request; they may raise, or hold it up."""

    def __init__(self) -> None:
        self.objects: dict[Place, Object] = {}
        self.requests: list[Asked] = []
        self.before: Callable[[Asked], Awaitable[None]] | None = None
        self.after: Callable[[Asked], Awaitable[None]] | None = None
        self.version = 1
        self.served: set[str] = set()  # plurals, in whichever group
        self._uids = itertools.count(1)
        self._log: list[tuple[int, str, Place, Object]] = []
        self._news = asyncio.Condition()

    def writes(self, plural: str = "") -> list[Asked]:
        """The requests so far that may have changed something, Events and Leases aside."""
        quiet = ("events", "leases") if not plural else ()
        return [
            it
            for it in self.requests
            if it.method != "GET" and plural in ("", it.at.plural) and it.at.plural not in quiet
        ]

    def one(self, plural: str, name: str, namespace: str = "ns") -> Object:
        """An object as it is now."""
        return self.objects[Place(plural, namespace, name)]

    # --- what others do ------------------------------------------------------------------------------------------

    async def put(self, plural: str, name: str, content: Object | None = None, *, namespace: str = "ns") -> Object:
        """Create an object, or merge into it."""
        at = Place(plural, namespace, name)
        content = content or {}
        old = self.objects.get(at, {"metadata": {"generation": 1, "uid": f"uid-{next(self._uids)}"}})
        metadata = {**old["metadata"], **content.get("metadata", {}), "namespace": namespace, "name": name}
        return await self._store(at, {**_merge(old, content), "metadata": metadata})

    async def drop(self, plural: str, name: str, *, namespace: str = "ns") -> None:
        """Remove an object at once, whatever its finalizers."""
        await self._remove(Place(plural, namespace, name))

    async def mark_deleted(self, plural: str, name: str) -> None:
        """Delete as a user does: finalizers hold it."""
        at = Place(plural, "ns", name)
        await self._delete(at, self.objects[at])

    # --- transport.Transport -------------------------------------------------------------------------------------

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: transport.Query = NOTHING,
        body: bytes | None = None,
        content_type: str = "",
        accept: str = transport.JSON,
        user: str = "",
        timeout: float,
    ) -> transport.Response:
        asked = Asked(method, Place.of(path), msgspec.json.decode(body) if body else None, dict(query), user)
        self.requests.append(asked)
        await asyncio.sleep(0)
        try:
            if self.before:
                await self.before(asked)
            found = await self._answer(asked, content_type)
        except Refusal as refusal:
            return refusal.answer()
        if self.after:
            await self.after(asked)
        return transport.Response(200, {}, msgspec.json.encode(found))

    async def _answer(self, asked: Asked, content_type: str) -> Object:
        at, body = asked.at, asked.body
        if not at.plural:
            return {"resources": [{"name": each} for each in sorted(self.served)]}
        if asked.method == "POST" and at.sub != "eviction":
            return await self._create(at, body)
        if asked.method == "GET" and not at.name:
            items = [found for place, found in self.objects.items() if at.covers(place) and _chosen(asked.query, place)]
            return {"metadata": {"resourceVersion": str(self.version)}, "items": items}
        live = self.objects.get(at.whole)
        if live is None:
            if "apply" not in content_type:
                raise Refusal(404, "NotFound")
            if body["metadata"].get("uid"):
                raise Refusal(409, "Conflict")
            return await self.put(at.plural, at.name, body, namespace=at.namespace)
        match asked.method:
            case "GET":
                return live
            case "DELETE":
                _hold(live, body.get("preconditions") or {})
                return await self._delete(at, live)
            case "POST":
                return await self._delete(at.whole, live)
        return await self._patch(at.whole, live, body, dry="dryRun" in asked.query)

    async def _patch(self, at: Place, live: Object, body: Any, *, dry: bool) -> Object:
        if isinstance(body, list):
            made = _json_patch(live, body)
        else:
            _hold(live, body.get("metadata") or {})
            made = _merge(live, {k: v for k, v in body.items() if k != "metadata"})
            made["metadata"] = _merge(live["metadata"], _writable(body.get("metadata") or {}))
        if made == live or dry:
            return made
        if made["metadata"].get("deletionTimestamp") and not made["metadata"].get("finalizers"):
            await self._remove(at)
            return made
        return await self._store(at, made)

    async def _create(self, at: Place, body: Object) -> Object:
        name = body["metadata"]["name"]
        if Place(at.plural, at.namespace, name) in self.objects:
            raise Refusal(409, "AlreadyExists")
        return await self.put(at.plural, name, body, namespace=at.namespace)

    async def _delete(self, at: Place, live: Object) -> Object:
        if not live["metadata"].get("finalizers"):
            await self._remove(at)
            return {"kind": "Status", "status": "Success"}
        metadata = {**live["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
        return await self._store(at, {**live, "metadata": metadata})

    async def _store(self, at: Place, made: Object) -> Object:
        old = self.objects.get(at)
        self.version += 1
        metadata = {**made["metadata"], "resourceVersion": str(self.version)}
        if old is not None and old.get("spec") != made.get("spec"):
            metadata["generation"] = old["metadata"]["generation"] + 1
        stored = self.objects[at] = {**made, "metadata": metadata}
        await self._tell("MODIFIED" if old else "ADDED", at, stored)
        return stored

    async def _remove(self, at: Place) -> None:
        gone = self.objects.pop(at)
        self.version += 1
        await self._tell(
            "DELETED", at, {**gone, "metadata": {**gone["metadata"], "resourceVersion": str(self.version)}}
        )

    async def _tell(self, kind: str, at: Place, content: Object) -> None:
        self._log.append((self.version, kind, at, content))
        async with self._news:
            self._news.notify_all()

    @contextlib.asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        query: transport.Query = NOTHING,
        accept: str = transport.JSON,
        user: str = "",
        timeout: float,
    ) -> AsyncIterator[transport.Stream]:
        if "sendInitialEvents" in query:  # a server that lists in pages only
            yield _Stream(_nothing(), status=422)
            return
        yield _Stream(self._follow(Place.of(path), query))

    async def _follow(self, scope: Place, query: transport.Query) -> AsyncGenerator[bytes, None]:
        since = int(str(query["resourceVersion"]))
        position = bisect.bisect_right(self._log, since, key=lambda entry: entry[0])
        while True:
            while position < len(self._log):
                since, kind, at, content = self._log[position]
                position += 1
                if scope.covers(at) and _chosen(query, at):
                    yield msgspec.json.encode({"type": kind, "object": content}) + b"\n"
            async with self._news:
                while self.version <= since:
                    await self._news.wait()

    def socket(self, path: str, **_: Any) -> Any:
        raise NotImplementedError

    async def close(self) -> None:
        pass


class _Stream:
    headers: Mapping[str, str] = {}

    def __init__(self, source: AsyncGenerator[bytes, None], *, status: int = 200) -> None:
        self._source, self.status = source, status

    def chunks(self) -> AsyncGenerator[bytes, None]:
        return self._source


async def _nothing() -> AsyncGenerator[bytes, None]:
    yield b""


def _chosen(query: Mapping[str, Any], at: Place) -> bool:
    return query.get("fieldSelector", "") in ("", "type=Warning", f"metadata.name={at.name}")


def _hold(live: Object, expected: Mapping[str, Any]) -> None:
    for name in ("uid", "resourceVersion"):
        if (wanted := expected.get(name)) and wanted != live["metadata"][name]:
            raise Refusal(409, "Conflict", f"{name} does not match")


def _writable(metadata: Object) -> Object:
    return {k: v for k, v in metadata.items() if k in ("labels", "annotations", "finalizers")}


def _merge(old: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    out = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        else:
            out[key] = _merge(out.get(key), value)
    return out


def _json_patch(live: Object, ops: list[Object]) -> Object:
    made: Object = msgspec.json.decode(msgspec.json.encode(live))
    for op in ops:
        *parents, last = (part.replace("~1", "/") for part in op["path"].strip("/").split("/"))
        holder: Any = made
        for name in parents:
            holder = holder[name]
        if isinstance(holder, list):
            at: Any = int(last)
            there = holder[at] if at < len(holder) else None
        else:
            at, there = last, holder.get(last)
        if op["op"] == "test":
            if there != op["value"]:
                raise Refusal(422, "Invalid")
        elif op["op"] == "remove":
            del holder[at]
        else:
            holder[at] = op["value"]
    return made


async def until(condition: Callable[[], Any], *, within: float = 30.0) -> None:
    """Let the loop run until the condition holds."""
    async with asyncio.timeout(within):
        while not condition():
            await asyncio.sleep(0.001)
