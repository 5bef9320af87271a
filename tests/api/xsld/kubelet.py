"""A node that runs the members of a cache as processes of this machine: real stand-in servers, no containers.

It does what a kubelet does, as far as an operator sees it: binds the pods that ask for it, starts one process per pod
with the pod's environment and a folder per claim, tells phase, address and readiness, restarts what ends by itself,
and ends what is deleted, within its grace. Each incarnation of a pod gets an address of its own on loopback.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import os
import re
import signal
import socket
import time
from pathlib import Path
from typing import Any

from moorage.api import builtin, conditions, meta
from moorage.kube import client as kube_client
from moorage.kube import errors
from moorage.kube.informers import informer

NODE = meta.Resource("", "v1", "Node", "nodes", namespaced=False)
BEAT = 5.0


class Network:
    """A part of loopback that no other test on this machine has at the same time."""

    def __init__(self) -> None:
        for second in range(20, 220):
            claim = socket.socket()
            try:
                claim.bind((f"127.{second}.255.254", 9446))
                claim.listen()
            except OSError:
                claim.close()
                continue
            self._claim = claim
            self._addresses = (f"127.{second}.{n // 250}.{1 + n % 250}" for n in itertools.count())
            return
        raise RuntimeError("every network is taken: processes of earlier tests are left over")

    def address(self) -> str:
        """One that was not given out before."""
        return next(self._addresses)

    def close(self) -> None:
        """Another test may have it."""
        self._claim.close()


class Node:
    """The node of one test."""

    def __init__(
        self, client: kube_client.Client, namespace: str, binary: Path, folder: Path, *, env: dict[str, str]
    ) -> None:
        self._client, self._namespace, self._binary, self._folder = client, namespace, binary, folder
        self.name = f"members-{namespace}"
        self.env = env
        self._caches = informer.Informers(client)
        self._running: dict[str, Container] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._network = Network()
        self.image_fails: set[str] = set()
        """Images that can't be pulled."""
        self.image_crashes: set[str] = set()
        """Images whose container ends each time it is started."""
        self.no_room: set[str] = set()
        """Names of pods that no node has room for."""
        self.lingering: set[str] = set()
        """Names of pods that don't end although they were deleted, as on a node that is gone."""

    async def start(self) -> None:
        """Register the node, and look at pods from now on."""
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.name, "labels": {"members": self.name}}}
        await self._client.create(NODE, "", body, field_manager="test")
        self._spawn(self._beat())
        self._pods = self._caches.watch(builtin.POD, dict, namespace=self._namespace)
        await self._pods.wait_synced(60)
        self._pods.subscribe(self._on_pod)

    async def stop(self) -> None:
        """End everything that was started."""
        await self._caches.stop()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for container in self.containers:
            await container.kill()
            await self.gone(container.pod)  # a namespace does not end before its pods
        self._network.close()
        with contextlib.suppress(errors.NotFound):
            await self._client.delete(NODE, "", self.name, propagation="Background")

    def pod(self, name: str) -> Container:
        """The running container of the pod of that name. Raises KeyError."""
        found = [it for it in self._running.values() if it.name == name]
        if not found:
            raise KeyError(name)
        return found[-1]

    @property
    def containers(self) -> list[Container]:
        """All that run."""
        return list(self._running.values())

    async def _beat(self) -> None:
        while True:
            condition = {
                "type": "Ready",
                "status": "True",
                "reason": "Test",
                "lastHeartbeatTime": conditions.timestamp(time.time()),
            }
            await self._client.patch_merge(
                NODE,
                "",
                self.name,
                {"status": {"conditions": [condition], "allocatable": {"cpu": "64", "memory": "64Gi", "pods": "500"}}},
                subresource="status",
                field_manager="test",
            )
            await asyncio.sleep(BEAT)

    def takes(self, pod: dict[str, Any]) -> bool:
        """Whether a pod is to run here: it asks for this node."""
        return (pod["spec"].get("nodeSelector") or {}).get("members") == self.name

    def container(self, pod: dict[str, Any], address: str) -> Container:
        """What is to run in a pod."""
        return Container(self, pod, address)

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _on_pod(self, change: informer.Change[dict[str, Any]]) -> None:
        pod = change.new
        if pod is None:  # one without a node goes at once
            if change.old is not None and (gone := self._running.get(change.old["metadata"]["uid"])):
                gone.deleted.set()
            return
        uid = pod["metadata"]["uid"]
        wanted = self.takes(pod)
        if wanted and pod["metadata"]["name"] in self.no_room:
            self._spawn(self._refuse(pod))
        elif wanted and uid not in self._running:
            self._running[uid] = self.container(pod, self._network.address())
            self._spawn(self._running[uid].live())
        elif uid in self._running and "deletionTimestamp" in pod["metadata"]:
            self._running[uid].deleted.set()

    async def _refuse(self, pod: dict[str, Any]) -> None:
        """As a scheduler does."""
        unplaced = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "0/1 nodes: no room",
            "lastTransitionTime": conditions.timestamp(time.time()),
        }
        if "deletionTimestamp" in pod["metadata"]:
            await self.gone(pod)
        elif not any(c["type"] == "PodScheduled" for c in (pod.get("status") or {}).get("conditions") or ()):
            await self.tell(pod, {"conditions": [unplaced]})

    # --- what a container needs ------------------------------------------------------------------------------------

    async def environment(self, pod: dict[str, Any], address: str) -> dict[str, str]:
        """The container's variables, references resolved. Raises NotFound and KeyError."""
        container, found = pod["spec"]["containers"][0], dict(self.env)
        fields = {"metadata.name": pod["metadata"]["name"], "status.podIP": address}
        for entry in container.get("env") or ():
            origin = entry.get("valueFrom") or {}
            if "fieldRef" in origin:
                value = fields[origin["fieldRef"]["fieldPath"]]
            elif "secretKeyRef" in origin:
                ref = origin["secretKeyRef"]
                secret = await self._client.get(builtin.SECRET, self._namespace, ref["name"])
                value = base64.b64decode(secret["data"][ref["key"]]).decode()
            else:
                value = entry.get("value", "")
            found[entry["name"]] = re.sub(r"\$\(([A-Z_]+)\)", lambda m: found.get(m[1], m[0]), value)
        return found

    async def volume(self, pod: dict[str, Any]) -> Path:
        """The folder of the pod's claim; a fresh one where it has none."""
        for volume in pod["spec"].get("volumes") or ():
            if claim := (volume.get("persistentVolumeClaim") or {}).get("claimName"):
                found = await self._client.get(builtin.VOLUME_CLAIM, self._namespace, claim, as_=meta.Partial)
                return self._folder / found.metadata.uid[:13]
        return self._folder / pod["metadata"]["uid"][:13]

    async def bind(self, pod: dict[str, Any]) -> None:
        """As a scheduler does; a pod that is gone meanwhile needs no node."""
        name = pod["metadata"]["name"]
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": self._namespace, "uid": pod["metadata"]["uid"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": self.name},
        }
        path = builtin.POD.path(self._namespace, name, "binding")
        with contextlib.suppress(errors.Conflict, errors.NotFound):
            await self._client.raw("POST", path, body=body)

    async def tell(self, pod: dict[str, Any], status: dict[str, Any]) -> None:
        """Write the pod's status."""
        with contextlib.suppress(errors.NotFound, errors.Conflict):
            await self._client.patch_merge(
                builtin.POD,
                self._namespace,
                pod["metadata"]["name"],
                {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status},
                subresource="status",
                field_manager="test",
            )

    async def gone(self, pod: dict[str, Any]) -> None:
        """The pod has ended; take it from the API server."""
        while pod["metadata"]["name"] in self.lingering:
            await asyncio.sleep(0.02)
        with contextlib.suppress(errors.NotFound, errors.Conflict):
            await self._client.delete(
                builtin.POD,
                self._namespace,
                pod["metadata"]["name"],
                uid=pod["metadata"]["uid"],
                grace=0,
                propagation="Background",
            )
        self._running.pop(pod["metadata"]["uid"], None)

    async def script(self, pod: str, name: str, **environment: str) -> int:
        """The exit code of one of the scripts, run in that pod as it stands in the cluster now."""
        container = self.pod(pod)
        volumes = {it["name"]: it for it in container.pod["spec"]["volumes"]}
        found = await self._client.get(builtin.CONFIG_MAP, self._namespace, volumes["scripts"]["configMap"]["name"])
        folder = self._folder / f"scripts-{pod}"
        folder.mkdir(exist_ok=True)
        for each, text in found["data"].items():
            (folder / each).write_text(text)
            (folder / each).chmod(0o755)
        tool = folder / "ij"
        if not tool.exists():
            tool.symlink_to(self._binary)
        given = {**container.environment, "XSLD_SQL_TOOL": str(tool), "TMPDIR": str(folder), **environment}
        run = await asyncio.create_subprocess_exec(str(folder / name), env=given, start_new_session=True)
        return await run.wait()

    def command(self) -> list[str]:
        """What runs in each container."""
        return [str(self._binary), "member"]


class Container:
    """One incarnation of a pod."""

    def __init__(self, node: Node, pod: dict[str, Any], address: str) -> None:
        self._node, self.pod, self.address = node, pod, address
        self.name: str = pod["metadata"]["name"]
        self.deleted = asyncio.Event()
        self.restarts = 0
        self.process: asyncio.subprocess.Process | None = None
        self.held = False
        """While true, what has ended is not started again."""
        self.log = Path()
        self.environment: dict[str, str] = {}
        self._stated: dict[str, tuple[str, str]] = {}  # condition -> its status, and since when

    async def live(self) -> None:
        """From binding to the pod's end."""
        try:
            await self._live()
        except errors.NotFound:  # its claim is gone: it never starts, and so is to be deleted
            await self.deleted.wait()
            await self._node.gone(self.pod)

    async def _live(self) -> None:
        await self._node.bind(self.pod)
        image = self.pod["spec"]["containers"][0]["image"]
        if image in self._node.image_fails:
            waiting = {"reason": "ImagePullBackOff", "message": f"Back-off pulling image {image}"}
            await self._tell("Pending", {"waiting": waiting}, ready=False)
            await self.deleted.wait()
            await self._node.gone(self.pod)
            return
        if image in self._node.image_crashes:
            self.restarts = 3
            await self._tell("Running", {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}, ready=False)
            await self.deleted.wait()
            await self._node.gone(self.pod)
            return
        while not self.deleted.is_set():
            await self._run_once()
            self.restarts += 1
            while self.held and not self.deleted.is_set():
                await asyncio.sleep(0.02)
        await self._node.gone(self.pod)

    async def _run_once(self) -> None:
        volume = await self._node.volume(self.pod)
        volume.mkdir(parents=True, exist_ok=True)
        self.log = volume.parent / f"{self.name}.log"
        environment = await self._node.environment(self.pod, self.address)
        hosts = volume.parent / "hosts"  # what a cluster's name service would say
        with hosts.open("a") as names:
            names.write(f"{self.address} {self.name}\n")
        environment |= {"XSLD_VOL": str(volume), "XSLD_ADDRESS": self.address}
        environment |= {"XSLD_HOST": self.name, "XSLD_HOSTS": str(hosts)}
        self.environment = environment
        with self.log.open("a") as log:
            self.process = await asyncio.create_subprocess_exec(
                *self._node.command(), env=environment, stdout=log, stderr=log, start_new_session=True
            )
        began = {"startedAt": conditions.timestamp(time.time())}
        await self._tell("Running", {"running": began}, ready=False)
        ended = asyncio.create_task(self.process.wait())
        deleted = asyncio.create_task(self.deleted.wait())
        ready = asyncio.create_task(self._become_ready(began))
        try:
            await asyncio.wait({ended, deleted}, return_when=asyncio.FIRST_COMPLETED)
            if not ended.done():
                self.process.send_signal(signal.SIGTERM)
                await asyncio.wait({ended}, timeout=5)
        finally:
            for task in (deleted, ready):
                task.cancel()
            await self.kill()
        if not self.deleted.is_set():
            code = self.process.returncode
            await self._tell("Running", {"terminated": {"exitCode": code, "reason": "Error"}}, ready=False)
            await asyncio.sleep(0.1)

    async def _become_ready(self, began: dict[str, str]) -> None:
        while True:
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection(self.address, 9445)
                writer.transport.abort()
                break
            await asyncio.sleep(0.05)
        await self._tell("Running", {"running": began}, ready=True)

    async def _tell(self, phase: str, state: dict[str, Any], *, ready: bool) -> None:
        word = "True" if ready else "False"
        pod = self.pod
        status = {
            "name": pod["spec"]["containers"][0]["name"],
            "image": pod["spec"]["containers"][0]["image"],
            "imageID": "",
            "state": {key: state.get(key) for key in ("waiting", "running", "terminated")},
            "ready": ready,
            "started": ready,
            "restartCount": self.restarts,
        }
        await self._node.tell(
            pod,
            {
                "phase": phase,
                "podIP": self.address,
                "podIPs": [{"ip": self.address}],
                "containerStatuses": [status],
                "conditions": [
                    self._condition("Initialized", "True"),
                    self._condition("Ready", word),
                    self._condition("ContainersReady", word),
                ],
            },
        )

    def _condition(self, type_: str, status: str) -> dict[str, str]:
        """Its time moves with its status alone; all of them are stated at once in the beginning."""
        if self._stated.get(type_, ("", ""))[0] != status:
            first = min((since for _, since in self._stated.values()), default="")
            now = conditions.timestamp(time.time())
            self._stated[type_] = (status, now if type_ in self._stated or not first else first)
        return {"type": type_, "status": status, "lastTransitionTime": self._stated[type_][1]}

    async def crash(self) -> None:
        """The container's process dies at once; it is started again, with the same address."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()

    async def kill(self) -> None:
        """End the process for good."""
        if self.process is not None and self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            await self.process.wait()
