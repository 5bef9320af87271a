"""A user's and a tester's hands on one namespace with XSLD caches: make, change, break, wait, and look."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from moorage.api import builtin, conditions, meta
from moorage.helm.runs import binary
from moorage.kube import client as kube_client
from moorage.kube import errors
from moorage.operators import system, xsld
from moorage.operators.xsld import config, names
from moorage.operators.xsld.cache import types as cache_types
from moorage.operators.xsld.group import dialect
from moorage.runtime import kind
from tests.api.runtime import operate

from . import kubelet

PASSWORD, SECRET = "Xs-Admin-2020", "Xs-Secret-2020"
SPEED = 40.0
"""How many times faster than in life the members work."""

ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "XSLD_SPEED": str(SPEED),
    "XSLD_TASK_SECONDS": "20",
    "XSLD_START_SECONDS": "10",
    "XSLD_SELF_HEAL": "true",
}
CONFIG = config.Config(
    accounts="test-moorage-accounts",
    cluster_role="test-moorage-xsld-namespace",
    poll=config.Poll(task_seconds=0.2, busy_seconds=0.2, idle_seconds=0.4),
    retry=config.Retry(attempts=5, base_seconds=0.2, cap_seconds=2.0, unanswered_seconds=1.0),
    dialect=dialect.Dialect(join_host="{address}"),
    resync_seconds=30.0,
)
WITHIN = 120.0


class Operator(operate.Operator):
    """An operator of XSLD alone."""

    def make(self, namespace: str, **more: Any) -> list[kind.Kind[Any, Any]]:
        settings = msgspec.structs.replace(CONFIG, namespaces=(namespace,), **more)
        around = system.Environment("moorage-system", Path(), Path(), binary.KubeAccess(), 0.0)
        made = list(xsld.SYSTEM.kinds(settings, around))
        for each in made:
            each.namespaces = (namespace,)
        return made


class Site:
    """One namespace, its node, and the operator that looks after it."""

    def __init__(self, client: kube_client.Client, namespace: str, node: kubelet.Node) -> None:
        self.client, self.namespace, self.node = client, namespace, node
        self.operators: list[Operator] = []
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self._http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=context, force_close=True),
            headers={"Authorization": aiohttp.encode_basic_auth("xsadmin", PASSWORD)},
            timeout=aiohttp.ClientTimeout(total=30),
        )

    async def close(self) -> None:
        """Let go of everything."""
        self.node.lingering = set()
        for each in self.operators:
            await each.kill()
        await self._http.close()
        for resource in (names.GRID, names.TEMPLATE, names.CACHE):
            for left in (await self.client.list(resource, self.namespace, as_=meta.Partial)).items:
                await self.patch(resource, left.metadata.name, {"metadata": {"finalizers": None}})
                await self.delete(resource, left.metadata.name)

    def operator(self, **more: Any) -> Operator:
        """Start one."""
        made = Operator(self.client, self.namespace, **more)
        self.operators.append(made)
        return made

    # --- what a user does ------------------------------------------------------------------------------------------

    async def make_cache(self, name: str = "cache", *, size: int = 2, **spec: Any) -> None:
        """A cache whose pods run on this node."""
        body = {
            "license": "accept",
            "size": size,
            "adminPwd": PASSWORD,
            "secretKey": SECRET,
            "image": "ibmcom/xsld:8613",
            "storage": {"storageClassName": "none"},
            "updateStrategy": {"settle": "1s"},
            **spec,
        }
        body["pod"] = {"nodeSelector": {"members": self.node.name}, **spec.get("pod", {})}
        await self.make(names.CACHE, name, body)

    async def make(self, resource: meta.Resource, name: str, spec: dict[str, Any]) -> None:
        """Create one object."""
        body = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": spec,
        }
        await self.client.create(resource, self.namespace, body, field_manager="user")

    async def patch(self, resource: meta.Resource, name: str, body: dict[str, Any]) -> None:
        """Merge into one object; one that is gone stays gone."""
        try:
            await self.client.patch_merge(resource, self.namespace, name, body, field_manager="user")
        except errors.NotFound:
            return

    async def change(self, name: str = "cache", **spec: Any) -> None:
        """Change fields of a cache's spec."""
        await self.patch(names.CACHE, name, {"spec": spec})

    async def delete(self, resource: meta.Resource, name: str) -> None:
        """Delete one object."""
        await self.client.delete(resource, self.namespace, name, propagation="Background")

    # --- what there is ---------------------------------------------------------------------------------------------

    async def get(self, resource: meta.Resource, name: str) -> dict[str, Any] | None:
        """One object as it is now."""
        try:
            return await self.client.get(resource, self.namespace, name)
        except errors.NotFound:
            return None

    async def cache(self, name: str = "cache") -> cache_types.XsldCache:
        """The cache as it is now."""
        return await self.client.get(names.CACHE, self.namespace, name, as_=cache_types.XsldCache)

    async def claims(self) -> list[str]:
        """Names of all volumes."""
        found = await self.client.list(builtin.VOLUME_CLAIM, self.namespace, as_=meta.Partial)
        return sorted(it.metadata.name for it in found.items)

    async def pods(self) -> list[str]:
        """Names of all pods."""
        found = await self.client.list(builtin.POD, self.namespace, as_=meta.Partial)
        return sorted(it.metadata.name for it in found.items)

    # --- what one waits for ----------------------------------------------------------------------------------------

    async def until(self, condition: Callable[[], Any], *, within: float = WITHIN) -> Any:
        """Wait for it; when it does not come, say how everything stands."""
        try:
            return await operate.until(condition, within=within)
        except TimeoutError:
            raise AssertionError(await self.told()) from None

    async def ready(self, name: str = "cache", *, resource: meta.Resource = names.CACHE) -> dict[str, Any]:
        """Wait until the latest generation is Ready."""

        async def is_ready() -> dict[str, Any] | None:
            found = await self.get(resource, name)
            if found is None or said(found, "Ready").status != "True":
                return None
            return found if found["status"]["observedGeneration"] == found["metadata"]["generation"] else None

        found: dict[str, Any] = await self.until(is_ready)
        return found

    async def gone(self, resource: meta.Resource, name: str) -> None:
        """Wait until the object is gone."""

        async def is_gone() -> bool:
            return await self.get(resource, name) is None

        await self.until(is_gone)

    async def says(self, reason: str, name: str = "cache", *, resource: meta.Resource = names.CACHE) -> dict[str, Any]:
        """Wait until that is why the latest generation is not Ready."""

        async def is_said() -> dict[str, Any] | None:
            found = await self.get(resource, name)
            ready = said(found, "Ready") if found else None
            if found is None or ready is None or ready.reason != reason:
                return None
            return found if ready.observed_generation == found["metadata"]["generation"] else None

        found: dict[str, Any] = await self.until(is_said)
        return found

    async def told(self) -> str:
        """How everything stands, for whoever reads of a failure."""
        lines = []
        for resource in (names.CACHE, names.GRID, names.TEMPLATE):
            for found in (await self.client.list(resource, self.namespace)).items:
                status = found.get("status") or {}
                lines.append(f"{resource.kind} {found['metadata']['name']}: {msgspec.json.encode(status).decode()}")
        for container in self.node.containers:
            tail = container.log.read_text().splitlines()[-15:] if container.log.is_file() else []
            lines += [f"--- {container.name} at {container.address}", *tail]
        return "\n".join(lines)

    # --- the members -----------------------------------------------------------------------------------------------

    async def fault(self, pod: str, **switches: Any) -> None:
        """Have one member fail; without switches it is well again."""
        url = f"http://{self.node.pod(pod).address}:9446/faults"
        async with self._http.put(url, json=switches) as answer:
            assert answer.status < 300, await answer.text()

    async def trace(self, pod: str) -> list[dict[str, Any]]:
        """The admin requests that one member has had, in order."""
        async with self._http.get(f"http://{self.node.pod(pod).address}:9446/trace") as answer:
            found: list[dict[str, Any]] = await answer.json(content_type=None)
            return found

    async def changes(self, *pods: str) -> list[str]:
        """What these members took to change since they were started, in order: `PUT /grid/it`, `RemoveMember it-2`."""
        return [what for _, what in await self._taken(*pods)]

    async def _taken(self, *pods: str) -> list[tuple[float, str]]:
        """The same with when it was (epoch seconds)."""
        told = [each for pod in pods for each in await self.trace(pod)]
        taken = [each for each in told if each["method"] != "GET" and 200 <= each["status"] < 300]
        return [(each["time"] / 1000, _change(each)) for each in sorted(taken, key=lambda each: float(each["time"]))]

    async def history(self, operator: Operator, *pods: str, since: float = 0.0) -> list[str]:
        """What the operator wrote to the cluster and these members took to change, in order; its own kinds apart."""
        told = await self._taken(*pods)
        own = (names.CACHE.plural, names.GRID.plural, names.TEMPLATE.plural)
        for write in operator.wire.writes:
            kind, _, name = write.path.rpartition("/namespaces/")[2].partition("/")[2].partition("/")
            if write.applied and kind not in own:
                told.append((write.at, f"{write.method} {kind} {name}"))
        return [what for at, what in sorted(told) if at >= since]

    async def placement(self, pod: str) -> dict[str, Any]:
        """Who holds which part of the grids, as one member knows it."""
        async with self._http.get(f"http://{self.node.pod(pod).address}:9446/placement") as answer:
            found: dict[str, Any] = await answer.json(content_type=None)
            return found

    async def put(self, pod: str, grid: str, key: str, value: str) -> None:
        """Write one entry of a grid."""
        async with self._http.post(self._entry(pod, grid, key), data=value.encode()) as answer:
            assert answer.status < 300, await answer.text()

    async def entry(self, pod: str, grid: str, key: str) -> str:
        """One entry of a grid, as that member finds it."""
        async with self._http.get(self._entry(pod, grid, key)) as answer:
            return await answer.text() if answer.status == 200 else f"{answer.status} {await answer.text()}"

    def _entry(self, pod: str, grid: str, key: str) -> str:
        return f"https://{self.node.pod(pod).address}:9444/wxsdata/v1/grids/{grid}/{grid}/{key}"

    async def ask(self, pod: str, method: str, path: str, body: Any = None) -> Any:
        """One request to the admin API of one member."""
        url = f"https://{self.node.pod(pod).address}:9445/wxsadmin/v1{path}"
        async with self._http.request(method, url, json=body) as answer:
            text = await answer.text()
            assert answer.status < 300, f"{method} {path}: {answer.status} {text}"
            return msgspec.json.decode(text) if text else None

    async def members(self, pod: str = "cache-0") -> dict[str, dict[str, Any]]:
        """The group as one member tells of it."""
        told = await self.ask(pod, "GET", "/cacheMemberGroup")
        return {it["memberName"]: it for it in told["members"]}


def _change(exchange: dict[str, Any]) -> str:
    path, body = exchange["path"].removeprefix("/wxsadmin/v1"), exchange.get("body") or {}
    if path != "/task":
        return f"{exchange['method']} {path}"
    given = body["parameters"]
    whom = next(given[key] for key in ("memberName", "slaveMemberName", "newMasterMemberName") if key in given)
    return f"{body['command'].removesuffix('TaskCommand')} {whom}"


def said(found: dict[str, Any], type_: str) -> conditions.Condition:
    """One condition of an object; unknown when nothing is said."""
    stated = msgspec.convert((found.get("status") or {}).get("conditions") or [], tuple[conditions.Condition, ...])
    return conditions.find(stated, type_) or conditions.Condition(type=type_, status="Unknown")
