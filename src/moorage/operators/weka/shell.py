"""Where a person calls the product's own tool: in a container of the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.kube import client as kube_client
from moorage.operators import shells

from . import names


async def container(client: kube_client.Client, obj: Mapping[str, Any]) -> shells.Shell:
    """Its pod, which bears its name. Raises NoShell where it does not run."""
    namespace, name = obj["metadata"]["namespace"], obj["metadata"]["name"]
    found = await shells.running(client, namespace, name, f"wekacontainer/{name}")
    return shells.Shell(name, found["name"])


async def cluster(client: kube_client.Client, obj: Mapping[str, Any]) -> shells.Shell:
    """One of its containers that run; those that compute come first, as they hold no drives."""
    namespace, name, uid = (obj["metadata"][key] for key in ("namespace", "name", "uid"))
    every = (await client.list(names.CONTAINER, namespace, labels=f"{names.CLUSTER_ID}={uid}")).items
    for each in sorted(every, key=lambda it: (str(it["spec"].get("mode")), str(it["metadata"]["name"]))):
        try:
            return await container(client, each)
        except shells.NoShell:
            continue
    raise shells.NoShell(
        f"no container of WekaCluster {name} runs; see moorage explain wekacluster/{name} -n {namespace}"
    )
