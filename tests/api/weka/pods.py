"""Pods of Weka as plain processes beside an API server in memory: the ConfigMap's scripts, and the stand-in's binary.

A node is an address of this machine and a folder; its drives are files. A pod ends when its first process does.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from moorage.kube import errors
from moorage.operators.weka import answers, names
from moorage.operators.weka.container import build
from tests.unit.runtime import fake_api

HOLD = "test/kubelet"
DRIVES = 1
"""Of each node."""


class Process:
    """One pod."""

    def __init__(self, folder: Path, environ: dict[str, str]) -> None:
        self.folder, self.environ = folder, environ
        self.asked_to_end = False
        self.process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        script = str(self.folder / build.RUNTIME)
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, script, env=self.environ, start_new_session=True, stderr=asyncio.subprocess.DEVNULL
        )

    @property
    def has_ended(self) -> bool:
        return self.process is not None and self.process.returncode is not None

    def ask_to_end(self) -> None:
        if self.process is not None and not self.asked_to_end:
            self.asked_to_end = True
            with contextlib.suppress(ProcessLookupError):  # it has ended
                self.process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """With all that it has started: the agent outlives the first process, and no pod does."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)


class Node:
    """All nodes, and the pods on them."""

    def __init__(self, api: fake_api.FakeApi, root: Path, binary: Path, count: int) -> None:
        self.api, self.root, self.binary = api, root, binary
        self.names = [f"n{it}" for it in range(count)]
        self.pods: dict[str, Process] = {}  # by uid
        self.orders: list[tuple[str, str]] = []
        self._reads: set[asyncio.Task[Any]] = set()

    async def prepare(self) -> None:
        """The namespace, and nodes whose drives are signed."""
        await self.api.put("namespaces", "ns", {"metadata": {"labels": {names.OPENED: "privileged"}}}, namespace="")
        for node in self.names:
            devices = self.root / node / "devices"
            devices.mkdir(parents=True)
            (devices / ".moorage-devices").touch()
            for it in range(DRIVES):
                (devices / f"d{it}").write_text(json.dumps({"serial_id": f"{node}-s{it}", "is_signed": True}))
            annotations = {names.DRIVES: json.dumps([f"{node}-s{it}" for it in range(DRIVES)])}
            ready = {"conditions": [{"type": "Ready", "status": "True"}]}
            await self.api.put("nodes", node, {"metadata": {"annotations": annotations}, "status": ready}, namespace="")

    def of(self, plural: str) -> dict[str, dict[str, Any]]:
        return {place.name: it for place, it in self.api.objects.items() if place.plural == plural}

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            for name, pod in self.of("pods").items():
                uid = pod["metadata"]["uid"]
                process = self.pods.get(uid)
                if process is None:
                    if not pod["metadata"].get("deletionTimestamp"):
                        await self._start(name, pod)
                elif pod["metadata"].get("deletionTimestamp"):
                    process.ask_to_end()
                    if process.has_ended:
                        process.kill()
                        await self.api.drop("pods", name)
            await asyncio.sleep(0.05)

    async def close(self) -> None:
        """Nothing of it runs any more."""
        for process in self.pods.values():
            process.kill()
            if process.process is not None:
                await process.process.wait()
        await asyncio.gather(*self._reads, return_exceptions=True)

    async def _start(self, name: str, pod: dict[str, Any]) -> None:
        node = self._place(pod)
        if not node:
            return
        uid, address = pod["metadata"]["uid"], f"127.77.0.{1 + self.names.index(node)}"
        folder = self.root / node / "pods" / uid
        folder.mkdir(parents=True)
        kept = self.root / node / "kept" / name  # by name, as a container is on one node for good
        kept.mkdir(parents=True, exist_ok=True)
        container = pod["spec"]["containers"][0]
        given = {it["name"]: it.get("value", "") for it in container["env"]}
        fields = {"NODE_NAME": node, "POD_ID": uid, "POD_NAME": name, "POD_NAMESPACE": "ns", "MANAGEMENT_IP": address}
        own = {
            "DEVICES": str(self.root / node / "devices"),
            "WEKA_STANDIN_DATA": str(kept / "standin"),
            "WEKA_STANDIN_SOCKET": str(folder / "agent.sock"),
        }
        self._mount(folder, kept, container)
        process = self.pods[uid] = Process(folder, {"PATH": os.environ["PATH"], **given, **fields, **own})
        await process.start()
        running = {
            "name": names.POD_CONTAINER,
            "ready": True,
            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
        }
        status = {"phase": "Running", "podIP": address, "containerStatuses": [running]}
        await self.api.put(
            "pods", name, {"metadata": {"finalizers": [HOLD]}, "spec": {"nodeName": node}, "status": status}
        )

    def _place(self, pod: dict[str, Any]) -> str:
        terms = pod["spec"]["affinity"].get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution")
        if terms:
            return str(terms["nodeSelectorTerms"][0]["matchFields"][0]["values"][0])
        mode = pod["metadata"]["labels"][names.MODE]
        mine = [it for it in self.of("pods").values() if it["metadata"]["labels"][names.MODE] == mode]
        taken = {it["spec"].get("nodeName") for it in mine}
        return next((it for it in self.names if it not in taken), "")

    def _mount(self, folder: Path, kept: Path, container: dict[str, Any]) -> None:
        """The ConfigMap and the login, as the pod's volumes have them; each path below the pod's own folder."""
        scripts = self.of("configmaps")[names.SCRIPTS]["data"]
        mounted = {it["subPath"]: it["mountPath"] for it in container["volumeMounts"] if it["name"] == "scripts"}
        assert mounted == {name: f"{build.FOLDER}/{name}" for name in (build.RUNTIME, build.TOOL, build.SETTINGS)}
        for name in mounted:
            (folder / name).write_text(scripts[name])
        settings = json.loads(scripts[build.SETTINGS])
        files = {name: f"{folder}{path}" for name, path in settings["files"].items()}
        files["data"], files["runtime"] = str(kept), str(kept / "runtime")
        tools = {"weka": "weka", "agent": "weka-agent", "sign": "weka-sign-drive"}
        commands = settings["commands"] | {name: str(self.binary.parent / tool) for name, tool in tools.items()}
        (folder / build.SETTINGS).write_text(json.dumps({"files": files, "commands": commands}))
        login = Path(files["login"])
        login.mkdir(parents=True)
        secret = next(it for it in self.of("secrets").values() if "join-secret" in it["data"])
        for key, text in secret["data"].items():
            (login / key).write_bytes(_plain(text))
        (folder / "tmp").mkdir(exist_ok=True)

    # --- exec ----------------------------------------------------------------------------------------------------

    async def ask(self, _: Any, namespace: str, pod: str, what: str, args: dict[str, Any], as_: type[Any]) -> Any:
        """In place of `Agents.ask`: the tool itself, in that pod's own surroundings."""
        live = self.of("pods").get(pod)
        process = self.pods.get(live["metadata"]["uid"]) if live is not None else None
        if process is None or process.has_ended:
            raise errors.TransportError(f"exec in {namespace}/{pod}: it is gone", sent=False)
        if what not in ("local", "cluster"):
            self.orders.append((pod, what))
        return answers.read(await self._out(process, build.TOOL, what, json.dumps(args)), as_)

    async def weka(self, pod: str, *words: str, given: str = "") -> str:
        """What the product's command line says in that pod, as a client of the cluster."""
        process = self.pods[self.of("pods")[pod]["metadata"]["uid"]]
        login = Path(json.loads((process.folder / build.SETTINGS).read_text())["files"]["login"])
        names_ = {"WEKA_USERNAME": "username", "WEKA_PASSWORD": "password"}
        environ = process.environ | {name: (login / key).read_text() for name, key in names_.items()}
        code, out, errs = await self._said([str(self.binary.parent / "weka"), *words], environ, given.encode())
        assert code == 0, errs.decode()
        return out.decode()

    async def _out(self, process: Process, script: str, *words: str) -> str:
        command = [sys.executable, str(process.folder / script), *words]
        code, out, errs = await self._said(command, process.environ)
        if code:
            raise answers.AnswerError(errs.decode())
        return out.decode()

    async def _said(
        self, command: list[str], environ: dict[str, str], given: bytes = b""
    ) -> tuple[int | None, bytes, bytes]:
        """How it ended. Whoever asked may be gone before: then it is waited for by `close`."""
        task = asyncio.create_task(said(command, environ, given))
        self._reads.add(task)
        task.add_done_callback(self._reads.discard)
        return await asyncio.shield(task)


async def said(command: list[str], environ: dict[str, str], given: bytes) -> tuple[int | None, bytes, bytes]:
    """The code, the output and the errors of a process."""
    pipe = asyncio.subprocess.PIPE
    begun = await asyncio.create_subprocess_exec(*command, env=environ, stdin=pipe, stdout=pipe, stderr=pipe)
    try:
        out, errs = await asyncio.wait_for(begun.communicate(given), 60.0)
    finally:
        if begun.returncode is None:
            begun.kill()
            await begun.wait()
    return begun.returncode, out, errs


def _plain(text: str) -> bytes:
    return base64.b64decode(text)
