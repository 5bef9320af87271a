"""All objects of the zoo's namespaces, by one watch per kind that is served, and what is comparable of them."""

from __future__ import annotations

import base64
import copy
import gzip
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from moorage.api import builtin, meta
from moorage.kube import client as kube_client
from moorage.kube.informers import informer
from tests.api.faults import everything, observer, waiting

UNSEEN = ("endpoints", "events")
"""What the cluster itself writes about others' objects."""

RECORD = "helm.sh/release.v1"
CLAIM = "moorage.dev/claim"
BINDING = "moorage-collector"

ACCOUNT = meta.Resource("", "v1", "ServiceAccount", "serviceaccounts")
ROLE = meta.Resource("rbac.authorization.k8s.io", "v1", "Role", "roles")

Listener = Callable[[meta.Resource, dict[str, Any]], None]


class World:
    """Watches everything, keeps what is in namespaces that begin with `prefix`; listeners hear of what is new there."""

    def __init__(self, client: kube_client.Client, prefix: str) -> None:
        self.client, self._prefix = client, prefix
        self._caches = informer.Informers(client)
        self._watched: dict[meta.Resource, informer.Informer[dict[str, Any]]] = {}
        self._uids: set[str] = set()
        self.listeners: list[Listener] = []
        self.made: Counter[tuple[str, str]] = Counter()
        """(namespace, `Kind name`) -> how often it was made."""
        self._drawn: dict[str, dict[str, str]] = {}

    async def look(self) -> None:
        """Watch what is served by now, in the version that the server prefers."""
        served = [it for it in await everything.served(self.client) if it.namespaced and it.plural not in UNSEEN]
        fresh = [it for it in served if it not in self._watched]
        for resource in fresh:
            cache = self._caches.watch(resource, dict)
            cache.subscribe(lambda change, of=resource: self._heard(of, change))  # type: ignore[misc]
            self._watched[resource] = cache
        for resource in fresh:
            await self._watched[resource].wait_synced(waiting.PATIENCE)

    async def stop(self) -> None:
        """Let go."""
        await self._caches.stop()

    def resource(self, kind: str) -> meta.Resource:
        """A kind by its name alone."""
        return next(it for it in self._watched if it.kind == kind)

    def _heard(self, resource: meta.Resource, change: informer.Change[dict[str, Any]]) -> None:
        if (body := change.new) is None or not body["metadata"]["namespace"].startswith(self._prefix):
            return
        if body["metadata"]["uid"] not in self._uids:
            self._uids.add(body["metadata"]["uid"])
            if not _is_apart(resource, body):
                self.made[body["metadata"]["namespace"], _called(resource, body)] += 1
        for each in self.listeners:
            each(resource, body)

    def state(self, namespace: str, masked: Sequence[str]) -> dict[str, Any]:
        """What is there and what has been, without status, times and the namespace's name."""
        found: dict[str, Any] = {}
        records: list[dict[str, Any]] = []
        for resource, cache in self._watched.items():
            for body in cache.items(namespace):
                if body.get("type") == RECORD:
                    records.append(body)
                elif not _is_apart(resource, body):
                    found[_called(resource, body)] = _comparable(body)
        found["release"] = _released(records)
        for (where, what), count in self.made.items():
            if where == namespace and count > 1:
                found[f"{what} made"] = count
        found = {key.replace(namespace, "NAMESPACE0"): each for key, each in observer.mask(found, [namespace]).items()}
        return self._numbered(found, masked, self._drawn.setdefault(namespace, {}))  # type: ignore[no-any-return]

    def _numbered(self, value: Any, patterns: Sequence[str], known: dict[str, str]) -> Any:
        """What was drawn by chance is called by its turn, so that it is seen when something is drawn again."""
        if isinstance(value, dict):
            return {key: self._numbered(value[key], patterns, known) for key in sorted(value)}
        if isinstance(value, list):
            return [self._numbered(each, patterns, known) for each in value]
        if isinstance(value, str):
            for pattern in patterns:
                value = re.sub(pattern, lambda it: known.setdefault(it.group(), f"DRAWN-{len(known)}"), value)
        return value


def _called(resource: meta.Resource, body: dict[str, Any]) -> str:
    return f"{resource.kind} {body['metadata']['name']}"


def _is_apart(resource: meta.Resource, body: dict[str, Any]) -> bool:
    """What moorage keeps for itself, what a controller made, and records, which are compared by what they say."""
    metadata = body["metadata"]
    own = CLAIM in metadata.get("labels", {}) or (resource.kind == "RoleBinding" and metadata["name"] == BINDING)
    return own or bool(metadata.get("ownerReferences")) or body.get("type") == RECORD


def _comparable(body: dict[str, Any]) -> dict[str, Any]:
    rest = copy.deepcopy({key: value for key, value in body.items() if key != "status"})
    if body["kind"] == "Secret":
        rest["data"] = {key: _plain(value) for key, value in body.get("data", {}).items()}
    if body["kind"] == "Service":  # drawn by the server
        for field in ("clusterIP", "clusterIPs"):
            if rest["spec"].get(field) not in (None, "None", ["None"]):
                rest["spec"][field] = "drawn"
        for port in rest["spec"].get("ports", ()):
            if "nodePort" in port:
                port["nodePort"] = "drawn"
    return rest


def _plain(data: str) -> str:
    try:
        return base64.b64decode(data).decode()
    except UnicodeDecodeError:
        return data


def _released(records: list[dict[str, Any]]) -> dict[str, Any]:
    """What the latest record of each release says of it."""
    latest: dict[str, dict[str, Any]] = {}
    for body in records:
        said = json.loads(gzip.decompress(base64.b64decode(base64.b64decode(body["data"]["release"]))))
        if said["version"] > latest.get(said["name"], {"version": 0})["version"]:
            latest[said["name"]] = said
    return {
        name: {
            "revision": said["version"],
            "status": said["info"]["status"],
            "config": said.get("config"),
            "manifest": said.get("manifest"),
            "hooks": [(hook["path"], hook.get("events")) for hook in said.get("hooks") or ()],
        }
        for name, said in latest.items()
    }


async def has_controllers(client: kube_client.Client) -> bool:
    """Whether somebody acts on Jobs and Deployments here."""
    return any(it["metadata"]["name"] == "default" for it in (await client.list(ACCOUNT, "default")).items)


async def tenant(client: kube_client.Client, name: str, admits: str, account: str, rules: Sequence[Any]) -> None:
    """A tenant's namespace, in which that account, `NAMESPACE:NAME`, has rights beyond the tenant role."""
    body: dict[str, Any] = {"apiVersion": "v1", "kind": "Namespace"}
    body["metadata"] = {"name": name, "annotations": {"moorage.dev/collectors-from": admits}}
    await client.create(builtin.NAMESPACE, "", body, field_manager="zoo")
    if not await has_controllers(client):  # else one of them makes it
        default = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        await client.create(ACCOUNT, name, default, field_manager="zoo")
    if rules:
        role = {"apiVersion": ROLE.api_version, "kind": "Role", "metadata": {"name": "more"}, "rules": rules}
        await client.create(ROLE, name, role, field_manager="zoo")
        where, _, who = account.partition(":")
        binding = {
            "apiVersion": ROLE.api_version,
            "kind": "RoleBinding",
            "metadata": {"name": "more"},
            "roleRef": {"apiGroup": ROLE.group, "kind": "Role", "name": "more"},
            "subjects": [{"kind": "ServiceAccount", "namespace": where, "name": who}],
        }
        await client.create(builtin.ROLE_BINDING, name, binding, field_manager="zoo")


async def first_consumer(client: kube_client.Client) -> None:
    """A class of volumes that are bound when somebody uses them."""
    name = "zoo-first-consumer"
    body: dict[str, Any] = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}}
    body |= {"provisioner": "zoo.moorage.dev/none", "volumeBindingMode": "WaitForFirstConsumer"}
    await client.apply(builtin.STORAGE_CLASS, "", name, body, field_manager="zoo", force=True)
