"""Two who keep releases: plain helm, run by a person, and moorage."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec

from moorage import operators
from moorage.api import kinds, meta
from moorage.helm import binary
from moorage.kube import client as kube_client
from moorage.kube import errors
from moorage.operators import system
from moorage.operators.collector import types
from moorage.runtime import kind
from tests.api.faults import waiting
from tests.api.runtime import operate

from . import charts

RELEASES_OF = "zoo"
"""tenant.instance of all Collectors, so that a release is `CHART-zoo` with both."""


class Plain:
    """`helm upgrade --install` as a person types it; at most so many at once."""

    def __init__(self, helm: str, kubeconfig: str, folder: Path, *, together: int) -> None:
        self._helm, self._charts, self._room = helm, folder / "charts", asyncio.Semaphore(together)
        home = {f"HELM_{name}_HOME": str(folder / f"helm-{name.lower()}") for name in ("CACHE", "CONFIG", "DATA")}
        self._env = {"PATH": os.environ["PATH"], "HOME": str(folder), "KUBECONFIG": kubeconfig, **home}

    async def bring(self, odd: charts.Odd, namespace: str, version: str, values: str) -> str:
        """Install or upgrade; "" or what helm says against it."""
        archive = str(self._charts / f"{odd.name}-{version}.tgz")
        # --force-conflicts as moorage has it: what somebody changed by hand is the release's again
        return await self._run(
            *("upgrade", _release(odd), archive, "--install", "--namespace", namespace, "--values", "-"),
            *("--force-conflicts", "--server-side=true", "--timeout", f"{odd.told.patience:g}s"),
            given=values,
        )

    async def remove(self, odd: charts.Odd, namespace: str) -> str:
        """Uninstall; "" or what helm says against it."""
        return await self._run("uninstall", _release(odd), "--namespace", namespace)

    async def _run(self, *args: str, given: str = "") -> str:
        async with self._room:
            pipe = asyncio.subprocess.PIPE
            running = await asyncio.create_subprocess_exec(
                self._helm, *args, env=self._env, stdin=pipe, stdout=pipe, stderr=pipe
            )
            _, said = await running.communicate(given.encode())
        return "" if running.returncode == 0 else said.decode() or "failed without a word"


class Operator(operate.Operator):
    """moorage with its Collectors in one namespace and its charts in a folder."""

    def make(self, namespace: str, **more: Any) -> list[kind.Kind[Any, Any]]:
        """See `operate.Operator`."""
        chosen = operators.SYSTEMS["collector"]
        section = {
            "charts": {"default": {"folder": str(more["folder"] / "charts")}},
            "serviceAccount": {"name": "moorage", "namespace": "moorage-system"},
            "tenantClusterRole": "moorage-collector-tenant",
            "namespaces": [namespace],
        }
        access = binary.KubeAccess(kubeconfig=more["kubeconfig"])
        around = system.Environment(namespace, more["folder"] / "scratch", Path(more["helm"]), access, grace=1.0)
        return list(chosen.kinds(msgspec.convert(section, chosen.config), around))


class Moorage:
    """What a user of moorage does."""

    def __init__(self, client: kube_client.Client, namespace: str) -> None:
        self._client, self._namespace = client, namespace

    async def bring(self, odd: charts.Odd, namespace: str, version: str, values: str) -> None:
        """Create the Collector, or change it."""
        collector = {
            "name": odd.name,
            "version": version,
            "configuration": base64.b64encode(values.encode()).decode(),
        }
        spec = {
            "collector": collector,
            "tenant": {"reference": namespace, "instance": RELEASES_OF},
            "policy": {"onFailure": "Keep", **odd.told.policy},
        }
        body = {"apiVersion": types.COLLECTOR.api_version, "kind": "Collector", "metadata": {"name": odd.name}, "spec": spec}
        await self._client.apply(types.COLLECTOR, self._namespace, odd.name, body, field_manager="user")

    async def settled(self, odd: charts.Odd, reason: str) -> str:
        """Return when it has come to an end: "" when it is Ready, else `REASON: message`.

        Stalled is an end, and so is that reason.
        """
        said = "nobody has looked at it"

        async def ended() -> tuple[str] | None:
            nonlocal said
            found = await self._client.get(types.COLLECTOR, self._namespace, odd.name, as_=types.Collector)
            if found.status.observed_generation != found.metadata.generation:
                return None
            now = {each.type: each for each in found.status.conditions}
            ready = now["Ready"]
            said = f"{ready.reason}: {ready.message}"
            if ready.status == "True":
                return ("",)
            return (said,) if now["Stalled"].status == "True" or ready.reason == reason else None

        with contextlib.suppress(TimeoutError):
            return str((await waiting.until(ended, within=odd.told.patience))[0])
        return f"no end within {odd.told.patience:g} s: {said}"

    async def remove(self, odd: charts.Odd) -> str:
        """Delete the Collector and return when it is gone; "" or where it stands."""
        await self._client.delete(types.COLLECTOR, self._namespace, odd.name, propagation="Background")

        async def gone() -> bool:
            try:
                await self._client.get(types.COLLECTOR, self._namespace, odd.name, as_=meta.Partial)
            except errors.NotFound:
                return True
            return False

        try:
            await waiting.until(gone, within=odd.told.patience)
        except TimeoutError:
            return f"not gone: {await self.settled(odd, '')}"
        return ""


@contextlib.asynccontextmanager
async def moorage(client: kube_client.Client, namespace: str, **more: Any) -> AsyncIterator[Moorage]:
    """An operator over the Collectors of a namespace of its own, which is left as nobody's in the end."""
    await client.create(
        kinds.NAMESPACE,
        "",
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        field_manager="zoo",
    )
    it = Operator(client, namespace, pace=operate.QUICK, **more)
    try:
        yield Moorage(client, namespace)
    finally:
        await it.stop()
        for left in (await client.list(types.COLLECTOR, namespace, as_=meta.Partial)).items:
            free = {"metadata": {"finalizers": None}}
            await client.patch_merge(types.COLLECTOR, namespace, left.metadata.name, free, field_manager="zoo")
        await client.delete(kinds.NAMESPACE, "", namespace, propagation="Background")


def _release(odd: charts.Odd) -> str:
    return f"{odd.name}-{RELEASES_OF}"
