"""What kinds the API server serves: names to resources, and the capabilities that chart rendering asks for.

Observes the discovery endpoints and remembers what they said, per group and version. What can go wrong: a kind that is
not served raises NotFound; an aggregated API that is down hides only itself, and is named in `Capabilities.missing`.
"""

from __future__ import annotations

import asyncio
import contextlib
import posixpath
import time
from collections.abc import Callable, Iterable

import msgspec

from moorage.api.meta import Resource

from . import client as kube_client
from . import codec, errors

__all__ = ["Capabilities", "Discovery"]

_REFRESH = 10.0  # seconds between two looks for a kind that was not there
_TOGETHER = 8  # group versions asked for at a time, without aggregated discovery
_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"


class Capabilities(msgspec.Struct, frozen=True):
    """A cluster as chart templates see it."""

    version: str  # e.g. "v1.35.4"
    api_versions: tuple[str, ...]  # "v1", "apps/v1", "apps/v1/Deployment", sorted
    missing: tuple[str, ...] = ()  # group versions that are registered but don't answer


class _Served(msgspec.Struct, rename="camel"):
    name: str
    kind: str
    namespaced: bool = True


class _ResourceList(msgspec.Struct, rename="camel"):
    resources: list[_Served]


class _Version(msgspec.Struct, rename="camel"):
    group_version: str


class _Group(msgspec.Struct):
    versions: list[_Version]  # the preferred one first


class _Legacy(msgspec.Struct):
    """/api answers with versions, /apis with groups."""

    versions: list[str] = []
    groups: list[_Group] = []


class _Kind(msgspec.Struct):
    kind: str = ""


class _AggregatedResource(msgspec.Struct, rename="camel"):
    response_kind: _Kind | None = None
    subresources: list[_AggregatedResource] = []


class _AggregatedVersion(msgspec.Struct):
    version: str
    resources: list[_AggregatedResource] = []
    freshness: str = "Current"


class _AggregatedMeta(msgspec.Struct, frozen=True):
    name: str = ""


class _AggregatedGroup(msgspec.Struct):
    metadata: _AggregatedMeta = _AggregatedMeta()
    versions: list[_AggregatedVersion] = []


class _Aggregated(msgspec.Struct):
    kind: str = ""
    items: list[_AggregatedGroup] = []


class Discovery:
    """Remembers what is served. One per client."""

    def __init__(self, client: kube_client.Client, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._known: dict[str, dict[str, Resource]] = {}  # group version -> kind -> resource
        self._asked: dict[str, float] = {}
        self._lock = asyncio.Lock()

    def invalidate(self, group: str | None = None) -> None:
        """Forget a group, or everything: to be called when a CustomResourceDefinition or APIService changes."""
        gone = [known for known in self._asked if group in (None, known.rpartition("/")[0])]
        for group_version in gone:
            self._known.pop(group_version, None)
            del self._asked[group_version]

    async def resource(self, api_version: str, kind: str) -> Resource:
        """How a kind is served. Looks again on a miss, at most every 10 s. Raises NotFound."""
        if (found := self._known.get(api_version, {}).get(kind)) is not None:
            return found
        async with self._lock:
            asked = self._asked.get(api_version)
            if asked is None or self._clock() - asked >= _REFRESH:
                self._forget_misses()
                self._known[api_version] = await self._look(api_version)
                self._asked[api_version] = self._clock()
        try:
            return self._known[api_version][kind]
        except KeyError:
            message = f"{api_version} serves no kind {kind}; install its CustomResourceDefinition, or correct the name"
            status = errors.Status(code=404, reason="NotFound", message=message)
            raise errors.NotFound("discover", status) from None

    async def served(self, api_version: str, kind: str) -> Resource:
        """How the objects of a kind can be reached: by this version, else by another one of its group.

        Asked anew, as versions and definitions go too. Raises NotFound when the server says that no version has it.
        """
        group = api_version.rpartition("/")[0]
        self.invalidate(group)
        try:
            return await self.resource(api_version, kind)
        except errors.NotFound:
            for other in await self.versions(group):
                with contextlib.suppress(errors.NotFound):
                    return await self.resource(other, kind)
            raise

    async def versions(self, group: str) -> tuple[str, ...]:
        """The group versions of a group, in the server's order of preference; none of a group that is not there."""
        if not group:
            return ("v1",)
        try:
            answer = await self._client.raw("GET", f"/apis/{group}")
        except errors.NotFound:
            return ()
        return tuple(v.group_version for v in codec.decode(answer.body, _Group, f"get /apis/{group}").versions)

    def _forget_misses(self) -> None:
        """What is asked for is what people write, and so without end; what is served is not."""
        old = self._clock() - _REFRESH
        for missed in [known for known, at in self._asked.items() if at <= old and not self._known.get(known)]:
            del self._known[missed], self._asked[missed]

    async def _look(self, api_version: str) -> dict[str, Resource]:
        group, _, version = api_version.rpartition("/")
        try:
            served = await self._resources(api_version)
        except errors.NotFound:
            return {}
        return {
            item.kind: Resource(group, version, item.kind, item.name, item.namespaced)
            for item in served
            if "/" not in item.name
        }

    async def _resources(self, api_version: str) -> list[_Served]:
        path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        answer = await self._client.raw("GET", path)
        return codec.decode(answer.body, _ResourceList, f"get {path}").resources

    async def capabilities(self) -> Capabilities:
        """Asked anew each time, in three requests; from servers without aggregated discovery one per group version."""
        version = str((await self._client.version())["gitVersion"])
        names: set[str] = set()
        missing: set[str] = set()
        for path in ("/api", "/apis"):
            answer = await self._client.raw("GET", path, accept=_AGGREGATED)
            aggregated = codec.decode(answer.body, _Aggregated, f"get {path}")
            if aggregated.kind == "APIGroupDiscoveryList":
                _collect(aggregated, names, missing)
            else:
                legacy = codec.decode(answer.body, _Legacy, f"get {path}")
                await self._collect_one_by_one(legacy, names, missing)
        return Capabilities(version, tuple(sorted(names)), tuple(sorted(missing)))

    async def _collect_one_by_one(self, legacy: _Legacy, names: set[str], missing: set[str]) -> None:
        versions = [*legacy.versions, *(v.group_version for group in legacy.groups for v in group.versions)]
        slots = asyncio.Semaphore(_TOGETHER)

        async def ask(group_version: str) -> None:
            names.add(group_version)
            try:
                async with slots:
                    served = await self._resources(group_version)
            except (errors.ServerError, errors.NotFound):
                missing.add(group_version)
            else:
                names.update(posixpath.join(group_version, item.kind) for item in served)

        await asyncio.gather(*(ask(group_version) for group_version in versions))


def _collect(found: _Aggregated, names: set[str], missing: set[str]) -> None:
    for group in found.items:
        for version in group.versions:
            group_version = posixpath.join(group.metadata.name, version.version)
            names.add(group_version)
            names.update(posixpath.join(group_version, kind) for kind in _kinds(version.resources))
            if version.freshness != "Current":
                missing.add(group_version)


def _kinds(resources: Iterable[_AggregatedResource]) -> Iterable[str]:
    """Kinds of resources and of their subresources, as `helm` counts them."""
    for resource in resources:
        if resource.response_kind is not None and resource.response_kind.kind:
            yield resource.response_kind.kind
        yield from _kinds(resource.subresources)
