"""Where a person works on an installation: beside the MASTER, by the hook, which gives them the server's own files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.kube import client as kube_client
from moorage.operators import shells

from . import names


async def enter(client: kube_client.Client, obj: Mapping[str, Any]) -> shells.Shell:
    """The MASTER's container. Raises NoShell where it is switched off, or does not run."""
    namespace, name = obj["metadata"]["namespace"], obj["metadata"]["name"]
    if not ((obj.get("spec") or {}).get("client") or {}).get("shell", True):
        raise shells.NoShell(f"OpenCGACommunity {name} has spec.client.shell: false")
    pod = f"{names.master(name)}-0"
    container = await shells.running(client, namespace, pod, f"opencga/{name}")
    by_hook = (container["command"][0], "shell")
    return shells.Shell(pod, container["name"], by_hook, by_hook)
