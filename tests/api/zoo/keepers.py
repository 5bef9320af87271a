"""Two who keep releases: plain helm, run by a person, and moorage."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec

from moorage.api import builtin
from moorage.kube import client as kube_client
from moorage.kube import errors
from moorage.operators.collector import types
from tests.api.collector import operating
from tests.api.faults import waiting
from tests.api.runtime import operate

from . import charts

RELEASES_OF = "zoo"
"""tenant.instance of all Collectors, so that a release is `CHART-zoo` with both."""

ENDLESS = "without end"
"""How words begin of what has not come to an end."""


class Plain:
    """`helm upgrade --install` as a person types it; at most so many at once."""

    def __init__(self, helm: str, kubeconfig: str, folder: Path, *, together: int) -> None:
        self._helm, self._charts, self._room = helm, folder / "charts", asyncio.Semaphore(together)
        home = {f"HELM_{name}_HOME": str(folder / f"helm-{name.lower()}") for name in ("CACHE", "CONFIG", "DATA")}
        self._env = {"PATH": os.environ["PATH"], "HOME": str(folder), "KUBECONFIG": kubeconfig, **home}

    async def bring(self, odd: charts.Odd, namespace: str, version: str, values: str) -> str:
        """Install or upgrade; "" or what helm says against it."""
        archive = str(self._charts / f"{odd.name}-{version}.tgz")
        # --force-conflicts: what somebody changed by hand is the release's again. --reset-values: else no values at all
        # mean those of before. Both are how moorage runs it.
        return await self._run(
            *("upgrade", _release(odd), archive, "--install", "--namespace", namespace, "--values", "-"),
            *("--reset-values", "--force-conflicts", "--server-side=true", "--timeout", f"{odd.told.patience:g}s"),
            given=values,
        )

    async def remove(self, odd: charts.Odd, namespace: str) -> str:
        """Uninstall; "" or what helm says against it."""
        return await self._run("uninstall", _release(odd), "--namespace", namespace, "--ignore-not-found")

    async def roll_back(self, odd: charts.Odd, namespace: str, revision: int) -> None:
        """Back to that revision, which must work."""
        said = await self._run("rollback", _release(odd), str(revision), "--namespace", namespace)
        assert "" == said

    async def _run(self, *args: str, given: str = "") -> str:
        async with self._room:
            pipe = asyncio.subprocess.PIPE
            running = await asyncio.create_subprocess_exec(
                self._helm, *args, env=self._env, stdin=pipe, stdout=pipe, stderr=pipe
            )
            _, said = await running.communicate(given.encode())
        return "" if running.returncode == 0 else said.decode() or "failed without a word"


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
        body = {
            "apiVersion": types.COLLECTOR.api_version,
            "kind": "Collector",
            "metadata": {"name": odd.name},
            "spec": spec,
        }
        await self._client.apply(types.COLLECTOR, self._namespace, odd.name, body, field_manager="user")

    async def settled(self, odd: charts.Odd, reason: str) -> str:
        """Return when it has come to an end: "" when it is Ready, else `REASON: message`.

        Stalled is an end, and so is that reason, a pattern.
        """
        return await self._ended(odd, lambda now: now.ready or now.stalled or now.says(reason))

    async def removed(self, odd: charts.Odd) -> str:
        """Delete the Collector and return "" when it is gone, or, if it is to stay and Stalled, `REASON: message`."""
        await self._client.delete(types.COLLECTOR, self._namespace, odd.name, propagation="Background")
        return await self._ended(odd, lambda now: bool(odd.told.stays) and now.stalled)

    async def _ended(self, odd: charts.Odd, is_end: Callable[[Standing], bool]) -> str:
        now = Standing()

        async def ended() -> bool:
            nonlocal now
            try:
                found = await self._client.get(types.COLLECTOR, self._namespace, odd.name, as_=types.Collector)
            except errors.NotFound:
                now = Standing(ready=True)
                return True
            now = Standing.of(found)
            return is_end(now)

        try:
            await waiting.until(ended, within=odd.told.patience)
        except TimeoutError:
            return f"{ENDLESS} after {odd.told.patience:g} s: {now.words}"
        return "" if now.ready else now.words


class Standing(msgspec.Struct, frozen=True):
    """What a Collector's status says of its latest generation."""

    words: str = "nobody has looked at it"
    ready: bool = False
    stalled: bool = False

    @classmethod
    def of(cls, found: types.Collector) -> Standing:
        """What it says by now."""
        if found.status.observed_generation != found.metadata.generation:
            return cls()
        now = {each.type: each for each in found.status.conditions}
        words = f"{now['Ready'].reason}: {now['Ready'].message}"
        return cls(words, now["Ready"].status == "True", now["Stalled"].status == "True")

    def says(self, reason: str) -> bool:
        """Whether it stands for that reason."""
        return bool(reason) and re.match(f"({reason}):", self.words) is not None


@contextlib.asynccontextmanager
async def moorage(client: kube_client.Client, namespace: str, **more: Any) -> AsyncIterator[Moorage]:
    """An operator over the Collectors of a namespace of its own, which is left as nobody's in the end."""
    await client.create(
        builtin.NAMESPACE,
        "",
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        field_manager="zoo",
    )
    it = operating.Operator(client, namespace, pace=operate.QUICK, **more)
    try:
        yield Moorage(client, namespace)
    finally:
        await it.stop()
        await operating.People(client, namespace).leave()
        await client.delete(builtin.NAMESPACE, "", namespace, propagation="Background")


def _release(odd: charts.Odd) -> str:
    return f"{odd.name}-{RELEASES_OF}"
