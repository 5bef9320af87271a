"""Where the command line of a system is, for people: which pod and container, and what runs commands there."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from moorage.api import builtin
from moorage.kube import client as kube_client
from moorage.kube import errors


@dataclasses.dataclass(frozen=True)
class Shell:
    """A container of a pod, in the namespace of who was asked for."""

    pod: str
    container: str
    runs: Sequence[str] = ()  # stands before the words of a command
    alone: Sequence[str] = ("/bin/sh", "-c", "command -v bash >/dev/null && exec bash; exec sh")  # without a command


class NoShell(Exception):  # noqa: N818 - what happened
    """There is none now; the message says why, and what to do."""


Enter = Callable[[kube_client.Client, Mapping[str, Any]], Awaitable[Shell]]
"""From an object to where its command line is, by what the user may read. Raises NoShell, or KubeError."""


async def running(client: kube_client.Client, namespace: str, pod: str, see: str) -> Mapping[str, Any]:
    """The pod's container for people, as its spec has it. Raises NoShell where it does not run: `see` tells why."""
    why = f"see moorage explain {see} -n {namespace}"
    try:
        found = await client.get(builtin.POD, namespace, pod)
    except errors.NotFound as error:
        raise NoShell(f"pod {pod} is not there; {why}") from error
    containers: Sequence[Mapping[str, Any]] = found["spec"]["containers"]
    name = (found["metadata"].get("annotations") or {}).get(builtin.DEFAULT_CONTAINER) or containers[0]["name"]
    container = next((each for each in containers if each["name"] == name), None)
    told = (found.get("status") or {}).get("containerStatuses") or ()
    runs = any(each["name"] == name and "running" in (each.get("state") or {}) for each in told)
    if container is None or not runs:
        raise NoShell(f"container {name} of pod {pod} does not run; {why}")
    return container
