"""Verbs of the API server over a `Transport`.

Every verb takes resource, namespace, name in that order, and `timeout` in seconds, which bounds one exchange with the
server; a list of several pages may take it once per page. Writes name it to the server as well, which then gives up no
later than the caller. Reads wait out a server that sheds load (429, 503 with Retry-After) within their timeout; writes
never repeat themselves, as only the caller knows whether that is harmless. What can go wrong is drawn in `errors`. A
decoded object must not be written back: models drop what they do not read.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal

import msgspec

from moorage.api import meta
from moorage.api.builtin import POD, SECRET
from moorage.api.meta import Resource

from . import codec, errors
from .http import exec_protocol, port_forward, transport

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    T = TypeVar("T", default=dict[str, Any])
else:
    from typing import TypeVar

    T = TypeVar("T")

__all__ = ["Client", "Deletion", "Listing", "Propagation"]

Propagation = Literal["Background", "Foreground", "Orphan"]

_APPLY = "application/apply-patch+yaml"  # JSON is YAML; the type that sends CBOR needs a feature gate
_JSON_PATCH = "application/json-patch+json"
_MERGE_PATCH = "application/merge-patch+json"
_META_ONE = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
_META_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
_RESTARTS = 3  # of a list whose continue token expired, before it is asked for in one piece
_LOG_BYTES = 64 << 10


class Listing(msgspec.Struct, Generic[T], frozen=True):
    """A list or a page of one, all of one moment: the pages of one list share its resourceVersion."""

    items: list[T]
    resource_version: str
    unreadable: list[codec.Unreadable] = []
    first: bool = True  # a page that begins the list


class Deletion(msgspec.Struct, frozen=True):
    """What became of a delete. True when the server accepted it, False when there was nothing to delete."""

    accepted: bool
    answer: bytes = b""

    def __bool__(self) -> bool:
        return self.accepted

    @property
    def gone(self) -> bool:
        """True when the object certainly no longer exists; else finalizers or a grace period may keep it."""
        return not self.accepted or codec.decode(self.answer, _Kinded).kind == "Status"


class _Kinded(msgspec.Struct):
    kind: str = ""


class Client:
    """One API server. Safe for concurrent use; keeps no state but its transport, and what the server can't do."""

    def __init__(self, wire: transport.Transport, *, user: str = "") -> None:
        """`user`: whom all requests act as, by impersonation; empty is oneself."""
        self.transport, self.user = wire, user
        self.only_pages: set[Resource] = set()  # what the server does not list as a stream; see `informers.reflector`

    def as_(self, user: str) -> Client:
        """The same server, reached with another's rights. An empty name is oneself."""
        other = Client(self.transport, user=user)
        other.only_pages = self.only_pages
        return other

    async def get(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        as_: type[T] = dict,  # type: ignore[assignment]
        metadata_only: bool = False,
        timeout: float = 15,
    ) -> T:
        """The live object, by a quorum read. Raises NotFound, at once for a name that no object can have.

        Users give names of what they mean; the server would take `a/b` for a part of `a`, and refuse it as such.
        """
        what = _what("get", resource, namespace, name)
        if not meta.can_name(name):
            said = f"{name!r} can be no object's name: it is empty, . or .., or has a / or % in it"
            raise errors.NotFound(what, errors.Status(404, "NotFound", said))
        accept = _META_ONE if metadata_only else transport.JSON
        answer = await self._call("GET", resource.path(namespace, name), what, accept=accept, timeout=timeout)
        return codec.decode(answer.body, as_, what)

    async def list(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        as_: type[T] = dict,  # type: ignore[assignment]
        metadata_only: bool = False,
        limit: int = 500,
        timeout: float = 15,
    ) -> Listing[T]:
        """All objects, in pages of `limit`; never a truncated answer. An expired continue token starts it over."""
        items: list[T] = []
        bad: list[codec.Unreadable] = []
        version = ""
        pages = self.pages(
            resource,
            namespace,
            labels=labels,
            fields=fields,
            as_=as_,
            metadata_only=metadata_only,
            limit=limit,
            timeout=timeout,
        )
        async for page in pages:
            if page.first:
                items, bad, version = [], [], page.resource_version
            items += page.items
            bad += page.unreadable
        return Listing(items, version, bad)

    async def pages(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        as_: type[T] = dict,  # type: ignore[assignment]
        metadata_only: bool = False,
        limit: int = 500,
        timeout: float = 15,
    ) -> AsyncIterator[Listing[T]]:
        """The same list page by page. With a `first` one it begins, or begins anew as its continue token expired."""
        what = _what("list", resource, namespace)
        query = {"labelSelector": labels, "fieldSelector": fields, "limit": str(limit)}
        accept = _META_LIST if metadata_only else transport.JSON
        version = token = ""
        expired = 0
        while True:
            asked = {key: value for key, value in {**query, "continue": token}.items() if value}
            try:
                answer = await self._call(
                    "GET", resource.path(namespace), what, query=asked, accept=accept, timeout=timeout
                )
            except errors.Gone:
                expired += 1
                if expired > _RESTARTS:
                    raise
                token = ""
                if expired == _RESTARTS:
                    query["limit"] = ""
                continue
            meta, items, bad = codec.decode_page(answer.body, as_, what)
            _complete(items, resource)
            version = version if token else meta.resource_version
            yield Listing(items, version, bad, first=not token)
            token = meta.continue_
            if not token:
                return

    async def create(
        self,
        resource: Resource,
        namespace: str,
        body: Any,
        *,
        field_manager: str,
        name: str = "",
        subresource: str = "",
        as_: type[T] = dict,  # type: ignore[assignment]
        dry_run: bool = False,
        timeout: float = 15,
    ) -> T:
        """POST a new object, or with `name` and `subresource` e.g. a token request. Raises AlreadyExists."""
        path = resource.path(namespace, name, subresource)
        query = _write_query(field_manager, dry_run)
        what = _what("create", resource, namespace, name or _name_in(body), subresource)
        return await self._write("POST", path, what, query, body, transport.JSON, as_, timeout)

    async def apply(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: Any,
        *,
        field_manager: str,
        force: bool = True,
        subresource: str = "",
        as_: type[T] = dict,  # type: ignore[assignment]
        dry_run: bool = False,
        timeout: float = 15,
    ) -> T:
        """Server-side apply of the owned fields. With metadata.uid, an object deleted meanwhile is a Conflict."""
        query = {**_write_query(field_manager, dry_run), "force": "true" if force else "false"}
        what = _what("apply", resource, namespace, name, subresource)
        path = resource.path(namespace, name, subresource)
        return await self._write("PATCH", path, what, query, body, _APPLY, as_, timeout)

    async def patch_json(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        ops: Sequence[Mapping[str, Any]],
        *,
        field_manager: str,
        subresource: str = "",
        as_: type[T] = dict,  # type: ignore[assignment]
        dry_run: bool = False,
        timeout: float = 15,
    ) -> T:
        """A JSON patch. Raises Conflict when a `test` operation does not hold, or a path to change is not there."""
        query = _write_query(field_manager, dry_run)
        what = _what("patch", resource, namespace, name, subresource)
        path = resource.path(namespace, name, subresource)
        try:
            return await self._write("PATCH", path, what, query, ops, _JSON_PATCH, as_, timeout)
        except errors.Invalid as error:
            # the server says 422 also when the patch does not fit; only then it names no field
            raise errors.Conflict(what, error.status) if _inapplicable(error.status) else error from None

    async def patch_merge(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: Any,
        *,
        field_manager: str,
        subresource: str = "",
        as_: type[T] = dict,  # type: ignore[assignment]
        dry_run: bool = False,
        timeout: float = 15,
    ) -> T:
        """A merge patch: the cheapest write for a status. null removes a key, a list is replaced whole."""
        query = _write_query(field_manager, dry_run)
        what = _what("patch", resource, namespace, name, subresource)
        path = resource.path(namespace, name, subresource)
        return await self._write("PATCH", path, what, query, body, _MERGE_PATCH, as_, timeout)

    async def delete(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        propagation: Propagation,
        uid: str = "",
        resource_version: str = "",
        grace: int | None = None,
        dry_run: bool = False,
        timeout: float = 15,
    ) -> Deletion:
        """Delete one incarnation; falsy when already gone. Raises Conflict when uid or resourceVersion do not match."""
        options = _delete_options(uid, resource_version, grace, dry_run)
        options["propagationPolicy"] = propagation
        what = _what("delete", resource, namespace, name)
        path = resource.path(namespace, name)
        try:
            answer = await self._put("DELETE", path, what, {}, options, transport.JSON, timeout)
        except errors.NotFound:
            return Deletion(accepted=False)
        return Deletion(accepted=True, answer=answer.body)

    async def evict(
        self,
        namespace: str,
        pod: str,
        *,
        uid: str = "",
        grace: int | None = None,
        dry_run: bool = False,
        timeout: float = 15,
    ) -> bool:
        """Ask for a pod's eviction; False when already gone. Raises TooManyRequests while a budget forbids it."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"namespace": namespace, "name": pod},
            "deleteOptions": _delete_options(uid, "", grace, dry_run),
        }
        what = _what("evict", POD, namespace, pod)
        path = POD.path(namespace, pod, "eviction")
        try:
            await self._put("POST", path, what, {}, body, transport.JSON, timeout)
        except errors.NotFound:
            return False
        return True

    async def logs(
        self,
        namespace: str,
        pod: str,
        *,
        container: str = "",
        previous: bool = False,
        tail: int = 20,
        timeout: float = 15,
    ) -> str:
        """The last `tail` lines of a container, at most 64 KiB."""
        query = {"tailLines": str(tail), "limitBytes": str(_LOG_BYTES)}
        if container:
            query["container"] = container
        if previous:
            query["previous"] = "true"
        what = _what("log", POD, namespace, pod)
        path = POD.path(namespace, pod, "log")
        answer = await self._call("GET", path, what, query=query, accept="*/*", timeout=timeout)
        return answer.body.decode(errors="replace")

    async def exec(
        self, namespace: str, pod: str, command: Sequence[str], container: str = "", *, timeout: float = 15
    ) -> exec_protocol.ExecResult:
        """Run a command in a container, without stdin or terminal, within `timeout`. Needs `create` on pods/exec."""
        query: dict[str, str | Sequence[str]] = {"command": list(command), "stdout": "true", "stderr": "true"}
        if container:
            query["container"] = container
        what = _what("exec in", POD, namespace, pod)
        path = POD.path(namespace, pod, "exec")
        try:
            async with (
                asyncio.timeout(timeout),
                self.transport.socket(
                    path, query=query, protocols=exec_protocol.PROTOCOLS, user=self.user, timeout=timeout
                ) as socket,
            ):
                return await exec_protocol.collect(socket, what)
        except TimeoutError as error:
            raise errors.TransportError(f"{what}: still running after {timeout:g} s, given up", sent=True) from error

    @contextlib.asynccontextmanager
    async def forward(
        self, namespace: str, pod: str, port: int, *, timeout: float = 15
    ) -> AsyncIterator[port_forward.Stream]:
        """A connection to a port of a pod. `timeout` holds for the handshake. Needs `create` on pods/portforward."""
        what = _what("port-forward to", POD, namespace, pod)
        path = POD.path(namespace, pod, "portforward")
        query = {"ports": str(port)}
        async with self.transport.socket(
            path, query=query, protocols=port_forward.PROTOCOLS, user=self.user, timeout=timeout
        ) as socket:
            yield port_forward.Stream(socket, what)

    async def review(self, body: Mapping[str, Any], *, timeout: float = 15) -> dict[str, Any]:
        """POST a question that is answered in place: SelfSubjectAccessReview, TokenReview and their kin."""
        group, _, version = str(body["apiVersion"]).partition("/")
        kind = str(body["kind"])
        resource = Resource(group, version, kind, f"{kind.lower()}s")
        namespace = str(body.get("metadata", {}).get("namespace", ""))
        what = _what("create", resource, namespace)
        return await self._write("POST", resource.path(namespace), what, {}, body, transport.JSON, dict, timeout)

    async def version(self, *, timeout: float = 15) -> dict[str, Any]:
        """The server's version as it tells it: major, minor, gitVersion."""
        answer = await self._call("GET", "/version", "get /version", timeout=timeout)
        return codec.decode(answer.body, dict, "get /version")

    async def raw(
        self,
        method: str,
        path: str,
        *,
        query: transport.Query | None = None,
        body: Any = None,
        content_type: str = transport.JSON,
        accept: str = transport.JSON,
        timeout: float = 15,
    ) -> transport.Response:
        """Any request, `body` encoded as JSON. Raises the ApiError of a status of 400 or more."""
        what = f"{method} {path}"
        return await self._call(
            method, path, what, query=query or {}, body=body, content_type=content_type, accept=accept, timeout=timeout
        )

    async def _write(
        self,
        method: str,
        path: str,
        what: str,
        query: transport.Query,
        body: Any,
        content_type: str,
        model: type[T],
        timeout: float,
    ) -> T:
        answer = await self._put(method, path, what, query, body, content_type, timeout)
        return codec.decode(answer.body, model, what)

    async def _put(
        self,
        method: str,
        path: str,
        what: str,
        query: transport.Query,
        body: Any,
        content_type: str,
        timeout: float,
    ) -> transport.Response:
        """A write. The server is told when the caller stops waiting, so that it doesn't carry it out afterwards."""
        # whole seconds where they are as good, so that the transport meets the same query again
        query = {**query, "timeout": f"{int(timeout)}s" if timeout >= 5 else f"{max(1, int(timeout * 1000))}ms"}
        return await self._call(method, path, what, query=query, body=body, content_type=content_type, timeout=timeout)

    async def _call(
        self,
        method: str,
        path: str,
        what: str,
        *,
        query: transport.Query | None = None,
        body: Any = None,
        content_type: str = "",
        accept: str = transport.JSON,
        timeout: float,
    ) -> transport.Response:
        data = None if body is None else codec.encode(body)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        while True:
            answer = await self.transport.request(
                method,
                path,
                query=query or {},
                body=data,
                content_type=content_type if data is not None else "",
                accept=accept,
                user=self.user,
                timeout=deadline - loop.time(),
            )
            if answer.status < 400:
                return answer
            asked_to_wait = answer.headers.get("Retry-After", "")
            error = codec.failure(what, answer.status, answer.body, asked_to_wait, secret=_SECRETS in path)
            if method != "GET" or not isinstance(error, errors.TooManyRequests | errors.ServerError):
                raise error
            if not error.retry_after or loop.time() + error.retry_after >= deadline:
                raise error
            await asyncio.sleep(error.retry_after)


_SECRETS = f"/{SECRET.plural}"


def _what(verb: str, resource: Resource, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """`apply StatefulSet.apps default/db (status)`: how messages name a request."""
    kind = f"{resource.group_kind} ({subresource})" if subresource else resource.group_kind
    return " ".join(filter(None, (verb, kind, "/".join(filter(None, (namespace, name))))))


def _inapplicable(status: errors.Status) -> bool:
    """True when a JSON patch did not fit the object, rather than its result the schema."""
    return all(cause.get("reason") == "UnexpectedServerResponse" for cause in status.causes())


def _name_in(body: Any) -> str:
    meta = body.get("metadata", {}) if isinstance(body, Mapping) else {}
    return str(meta.get("name") or meta.get("generateName") or "")


def _write_query(field_manager: str, dry_run: bool) -> dict[str, str]:
    query = {"fieldManager": field_manager}
    if dry_run:
        query["dryRun"] = "All"
    return query


def _delete_options(uid: str, resource_version: str, grace: int | None, dry_run: bool) -> dict[str, Any]:
    options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
    expected = {"uid": uid, "resourceVersion": resource_version}
    if expected := {key: value for key, value in expected.items() if value}:
        options["preconditions"] = expected
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    if dry_run:
        options["dryRun"] = ["All"]
    return options


def _complete(items: list[Any], resource: Resource) -> None:
    """Items of a built-in list come without apiVersion and kind, watch events with them: raw views get both always."""
    for item in items:
        if not isinstance(item, dict):
            return
        item.setdefault("apiVersion", resource.api_version)
        item.setdefault("kind", resource.kind)
