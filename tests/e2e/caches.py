"""A user's hands on one XsldCache with running pods, and a look into its members."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

from . import tools

PASSWORD = "Change-Me-2-day"
NAMESPACE = "default"
WITHIN = 300.0


class Cache:
    """One XsldCache, by name."""

    def __init__(self, cluster: tools.Cluster, name: str) -> None:
        self.cluster, self.name = cluster, name

    def apply(self, **spec: Any) -> None:
        """Create it."""
        whole = {
            "license": "accept",
            "image": "ibmcom/xsld:8613",
            "adminPwd": PASSWORD,
            "secretKey": PASSWORD,
            "storage": {"size": "100Mi"},
            **spec,
        }
        self.cluster.apply(self._body("XsldCache", self.name, whole))

    def grid(self, name: str, **spec: Any) -> None:
        """Create a grid in it, and wait for it."""
        self.cluster.apply(self._body("DataGrid", name, {"cacheRef": {"name": self.name}, **spec}))
        self.cluster.kubectl("wait", f"datagrid/{name}", "--for=condition=Ready", f"--timeout={WITHIN:g}s")

    @staticmethod
    def _body(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
        metadata = {"name": name, "namespace": NAMESPACE}
        return {"apiVersion": "xsld.ibm.com/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}

    def change(self, **spec: Any) -> None:
        """Merge into the spec."""
        self.cluster.kubectl(
            "patch", f"xsldcache/{self.name}", "--type=merge", "-p", json.dumps({"spec": spec}), "-n", NAMESPACE
        )

    def status(self) -> dict[str, Any]:
        """Its status, when it speaks of the latest spec; else nothing."""
        found = self.cluster.get("xsldcache", self.name, "-n", NAMESPACE)
        said: dict[str, Any] = (found or {}).get("status") or {}
        return said if found and said.get("observedGeneration") == found["metadata"]["generation"] else {}

    def settled(self, members: int) -> dict[str, Any] | None:
        """The status once it is Ready with so many members, and speaks of the pods that there are now."""
        said = self.status()
        ready = next((c for c in said.get("conditions") or () if c["type"] == "Ready"), None)
        if not ready or ready["status"] != "True" or not said["online"] == said["members"] == members:
            return None
        told = {member["name"]: member["podIP"] for member in said["memberStatuses"] if member["state"] != "Removed"}
        return said if told.items() <= self.addresses().items() else None

    def addresses(self) -> dict[str, str]:
        """The address of each pod that is not being deleted."""
        found = self.cluster.items("pods", "-n", NAMESPACE, "-l", f"xsld.ibm.com/cache={self.name}")
        alive = [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]
        return {pod["metadata"]["name"]: pod["status"].get("podIP", "") for pod in alive}

    def ready(self, members: int, *, image: str = "") -> dict[str, Any]:
        """Wait until it is Ready with so many members, all of that image."""

        def holds() -> dict[str, Any] | None:
            said = self.settled(members)
            images = {member["image"] for member in said["memberStatuses"]} if said else set()
            return said if not image or images == {image} else None

        return tools.wait(f"{self.name} Ready with {members} members", holds, within=WITHIN)

    def claims(self) -> list[str]:
        """Names of its volumes."""
        found = self.cluster.items("pvc", "-n", NAMESPACE, "-l", f"xsld.ibm.com/cache={self.name}")
        return sorted(it["metadata"]["name"] for it in found)

    def remove(self, *grids: str) -> None:
        """Delete it and its grids, and wait."""
        for grid in grids:
            self.cluster.kubectl("delete", f"datagrid/{grid}", "-n", NAMESPACE, "--ignore-not-found", tools.HANGS)
        self.cluster.kubectl("delete", f"xsldcache/{self.name}", "-n", NAMESPACE, "--ignore-not-found", tools.HANGS)


def kill(pod: dict[str, Any]) -> None:
    """End every process of that pod at once, as the kernel does when memory is out."""
    uid = pod["metadata"]["uid"].replace("-", "_")
    for entry in Path("/proc").glob("[0-9]*/cgroup"):
        try:
            if f"pod{uid}" in entry.read_text().replace("-", "_"):
                os.kill(int(entry.parent.name), signal.SIGKILL)
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended meanwhile
