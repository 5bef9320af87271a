"""Live looks right before an act, for a kind's `guards`: each returns why it must not be done, or nothing.

They read with the client that they are given, and write nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from moorage.api import builtin, meta
from moorage.children import owners, parts
from moorage.kube import client as kube_client
from moorage.kube import errors

Object = dict[str, Any]


async def name_is_free(
    client: kube_client.Client, resource: meta.Resource, name: str, owner: meta.ObjectMeta, *, label: str, called: str
) -> str:
    """What somebody else made under the name of an object of ours is never taken over. `called`: such as "cache"."""
    live = await _live(client, resource, owner.namespace, name)
    if live is None or owners.is_of(live, label, owner.name, owner.uid):
        return ""
    strangers = owners.strangers(live, owner.uid)
    whose = f"belongs to {', '.join(strangers)}" if strangers else f"is not this {called}'s"
    return f"{resource.kind} {name} is there already and {whose}; delete it, or name the {called} otherwise"


async def pod_is_expendable(
    client: kube_client.Client,
    ref: meta.ObjectRef,
    read: Callable[[Object], parts.PodSeen],
    at_work: Callable[[], Awaitable[str]],
) -> str:
    """It serves nobody still; where its container runs, `at_work` says whether it has something to do all the same."""
    live = await _live(client, builtin.POD, ref.namespace, ref.name)
    if live is None:
        return ""
    pod = read(live)
    if pod.uid != ref.uid:
        return ""
    if not pod.expendable:
        return f"{pod.name} has come up meanwhile"
    return await at_work() if pod.running else ""


async def _live(client: kube_client.Client, resource: meta.Resource, namespace: str, name: str) -> Object | None:
    try:
        return await client.get(resource, namespace, name)
    except errors.NotFound:
        return None
