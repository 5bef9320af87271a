"""moorage as its chart installs it, but for its pods: rights, admission and configuration are the chart's own.

The operator runs in this process, with a token of the chart's ServiceAccount and nothing else; its helm reaches the API
server by a proxy that passes that token on. What both have written is on record.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import msgspec
import yaml

from moorage import config, operators
from moorage.api import builtin, meta
from moorage.helm.runs import binary
from moorage.kube import client as kube_client
from moorage.kube import credentials, errors
from moorage.kube.http import transport
from moorage.operators import system
from moorage.runtime import kind
from moorage.runtime.leading import election
from tests.api.runtime import operate

from . import proxy, waiting

CHART = Path(__file__).parents[3] / "charts" / "moorage"
ACCOUNT = meta.Resource("", "v1", "ServiceAccount", "serviceaccounts")
APART = ("/events", "/leases", "reviews")
"""Writes that change nothing of anybody's."""


class Installed(msgspec.Struct, frozen=True):
    """A release of the chart."""

    name: str
    """Of the release, its namespace and its account."""

    wire: transport.HttpTransport
    """As its account."""

    credentials: credentials.Credentials
    token: Path
    loaded: config.Config

    @property
    def namespaces(self) -> tuple[str, str]:
        """That of the operator, and that of its accounts."""
        return self.name, f"{self.name}-accounts"


class Wrote(msgspec.Struct, frozen=True):
    """One write that the API server has carried out."""

    method: str
    path: str
    by_helm: bool

    @property
    def namespace(self) -> str:
        """Where; empty for the cluster itself."""
        inside = self.path.partition("/namespaces/")[2]
        return inside.split("/")[0] if "/" in inside else ""


class Operator(operate.Operator):
    """One life of the installed operator."""

    def __init__(self, it: Installed, helm: Path, folder: Path, through: proxy.Proxy) -> None:
        self._proxy = through
        access = binary.KubeAccess(kubeconfig=str(through.kubeconfig(folder / "kubeconfig", token_file=str(it.token))))
        around = system.Environment(it.name, folder, helm, access, grace=1.0)
        lease = it.loaded.leader_election
        timing = election.Timing(lease.duration_seconds, lease.renew_seconds, lease.retry_seconds)
        given: dict[str, Any] = {"pace": operate.QUICK, "timing": timing, "loaded": it.loaded, "around": around}
        super().__init__(kube_client.Client(it.wire), it.name, elect=True, **given)

    def make(self, namespace: str, **more: Any) -> list[kind.Kind[Any, Any]]:
        """See `operate.Operator`."""
        loaded, around = more["loaded"], more["around"]
        return [kind for name in loaded.systems for kind in operators.SYSTEMS[name].kinds(loaded.section(name), around)]

    def carried_out(self) -> Iterator[Wrote]:
        """All that it and its helm have written."""
        for write in self.wire.writes:
            if write.applied:
                yield Wrote(write.method, write.path, by_helm=False)
        for it in self._proxy.exchanges:
            if it.method != "GET" and 200 <= it.status < 300:
                yield Wrote(it.method, it.path.partition("?")[0], by_helm=True)


@contextlib.asynccontextmanager
async def installed(
    client: kube_client.Client, kubeconfig: str, helm: Path, folder: Path, name: str, systems: dict[str, Any]
) -> AsyncIterator[Installed]:
    """The chart with this section `systems`, its policies in force."""
    values = folder / "values.yaml"
    values.write_text(yaml.safe_dump({"replicas": 0, "crds": {"enabled": False}, "systems": systems}))
    command = [str(helm), "--kubeconfig", kubeconfig, "--namespace", name]
    await _run(*command, "install", name, str(CHART), "--create-namespace", "--values", str(values))
    try:
        ask: dict[str, Any] = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        told = await client.create(ACCOUNT, name, ask, name=name, subresource="token", field_manager="test")
        token = folder / "token"
        token.write_text(told["status"]["token"])
        reached = await credentials.from_kubeconfig(_with_token(Path(kubeconfig), token, folder / "operator.yaml"))
        wire = transport.HttpTransport(reached)
        text = (await client.get(builtin.CONFIG_MAP, name, name))["data"]["config.yaml"]
        it = Installed(name, wire, reached, token, msgspec.convert(yaml.safe_load(text), config.Config))
        await _in_force(kube_client.Client(wire), name)
        yield it
        await wire.close()
    finally:
        await _run(*command, "uninstall", name)
        for namespace in (name, f"{name}-accounts"):
            await client.delete(builtin.NAMESPACE, "", namespace, propagation="Background")


def _with_token(admin: Path, token: Path, into: Path) -> str:
    body = yaml.safe_load(admin.read_text())
    body["users"] = [{"name": each["name"], "user": {"tokenFile": str(token)}} for each in body["users"]]
    into.write_text(yaml.safe_dump(body))
    return str(into)


async def _in_force(operator: kube_client.Client, name: str) -> None:
    """The API server learns of a new policy within seconds; of one it shows: that bindings are named as moorage's."""
    role = {"apiGroup": builtin.ROLE_BINDING.group, "kind": "ClusterRole"}
    body = {
        "apiVersion": builtin.ROLE_BINDING.api_version,
        "kind": "RoleBinding",
        "metadata": {"name": "another"},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": name}],
    }

    async def refused() -> bool:
        for which in (f"{name}-collector-tenant", f"{name}-xsld-namespace"):
            asked = {**body, "roleRef": {**role, "name": which}}
            try:
                await operator.create(builtin.ROLE_BINDING, "default", asked, field_manager="test", dry_run=True)
            except errors.ApiError as error:
                if "ValidatingAdmissionPolicy" in str(error):
                    return True
        return False

    await waiting.until(refused)


async def _run(*command: str) -> None:
    running = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE, env=dict(os.environ)
    )
    _, said = await running.communicate()
    assert running.returncode == 0, said.decode()
