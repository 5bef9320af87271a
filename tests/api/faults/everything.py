"""All that an API server has: the kinds that it serves, and which state each object is in."""

from __future__ import annotations

import json
from collections.abc import Callable

from moorage.api import builtin, meta
from moorage.kube import client as kube_client
from moorage.kube import errors

ACCEPT = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

RESTLESS = (
    *("events", "leases", "endpoints", "endpointslices", "nodes", "csinodes", "pods", "ipaddresses"),
    *("persistentvolumes", "volumeattachments"),
    *("apiservices", "flowschemas", "prioritylevelconfigurations", "componentstatuses"),
)
"""Plurals of what the cluster itself writes all the time."""

Scene = dict[str, tuple[str, str]]
"""`Kind namespace/name` -> (uid, resourceVersion)."""


async def served(client: kube_client.Client) -> list[meta.Resource]:
    """What can be listed and watched, each in the version that the server prefers."""
    found: dict[tuple[str, str], meta.Resource] = {}
    for path in ("/api", "/apis"):
        answer = json.loads((await client.raw("GET", path, accept=ACCEPT)).body)
        for group in answer["items"]:
            name = group["metadata"].get("name", "")
            for version in group["versions"]:
                for each in version["resources"]:
                    if {"list", "watch"} <= set(each["verbs"]):
                        kind, within = each["responseKind"]["kind"], each["scope"] == "Namespaced"
                        resource = meta.Resource(name, version["version"], kind, each["resource"], within)
                        found.setdefault((name, each["resource"]), resource)
    return list(found.values())


async def scene(client: kube_client.Client, is_meant: Callable[[str, str], bool]) -> Scene:
    """All objects, in all namespaces and of the cluster, of which `is_meant(kind, namespace)` holds.

    But for what is in namespaces that are being deleted, as those that earlier tests have left.
    """
    spaces = (await client.list(builtin.NAMESPACE, as_=meta.Partial, metadata_only=True)).items
    ending = {it.metadata.name for it in spaces if it.metadata.deleting}
    found: Scene = {}
    for resource in await served(client):
        if resource.plural in RESTLESS:
            continue
        try:
            there = (await client.list(resource, "", as_=meta.Partial, metadata_only=True)).items
        except errors.NotFound:  # its definition has just gone
            continue
        for it in there:
            metadata = it.metadata
            if (metadata.name if resource == builtin.NAMESPACE else metadata.namespace) in ending:
                continue
            if is_meant(resource.kind, metadata.namespace):
                key = f"{resource.group_kind} {metadata.namespace}/{metadata.name}"
                found[key] = (metadata.uid, metadata.resource_version)
    return found


def changes(before: Scene, after: Scene) -> list[str]:
    """What was made, removed or written between the two."""
    said = []
    for key in sorted(before.keys() | after.keys()):
        if before.get(key) != after.get(key):
            what = "made" if key not in before else "removed" if key not in after else "changed"
            said.append(f"{key} was {what}")
    return said
