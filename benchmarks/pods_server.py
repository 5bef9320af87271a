"""Serves a collection of Pods over TLS: as a streaming list or in pages, then as a watch that modifies each once.

Everything is one constant text with three numbers in it, so that sending costs little; it is no API server. It prints
its address when it is ready. The modifications begin when `/begin` is asked for.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import ssl
import urllib.parse
from typing import Any

PIECE = 500  # Pods to a write


def template() -> bytes:
    """A Pod of about 3.4 KB, managedFields left out; %(n)d is its number and %(v)d its resourceVersion."""
    env = [{"name": f"SETTING_{n}", "value": f"value-of-{n}-for-%(n)08d"} for n in range(10)]
    conditions = [
        {"type": each, "status": "True", "lastProbeTime": None, "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for each in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    mounts = [{"name": f"volume-{n}", "mountPath": f"/var/lib/volume-{n}", "readOnly": True} for n in range(4)]
    pod = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": "pod-%(n)08d",
            "generateName": "pod-",
            "namespace": "default",
            "uid": "00000000-0000-4000-8000-0000%(n)08d",
            "resourceVersion": "%(v)d",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": "pods", "pod-template-hash": "5d59d67564", "tier": "back", "number": "%(n)08d"},
            "annotations": {"checksum/config": "d2c1b6f0a94b4d2f8f6d8a5b5f9d3c7e%(n)08d", "owner": "team-%(n)08d"},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": "pods-5d59d67564",
                    "uid": "00000000-0000-4000-9000-000000000001",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "volumes": [{"name": f"volume-{n}", "emptyDir": {}} for n in range(4)],
            "containers": [
                {
                    "name": "main",
                    "image": "registry.example.org/team/app:1.2.3",
                    "env": env,
                    "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
                    "resources": {
                        "limits": {"cpu": "1", "memory": "1Gi"},
                        "requests": {"cpu": "100m", "memory": "1Gi"},
                    },
                    "volumeMounts": mounts,
                    "livenessProbe": {"httpGet": {"path": "/healthz", "port": "http"}, "periodSeconds": 10},
                    "readinessProbe": {"httpGet": {"path": "/readyz", "port": "http"}, "periodSeconds": 10},
                    "imagePullPolicy": "IfNotPresent",
                }
            ],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default",
            "nodeName": "node-%(n)08d",
            "schedulerName": "default-scheduler",
            "tolerations": [
                {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute"}
                for key in ("not-ready", "unreachable")
            ],
        },
        "status": {
            "phase": "Running",
            "conditions": conditions,
            "hostIP": "10.0.0.1",
            "podIP": "10.1.2.3",
            "podIPs": [{"ip": "10.1.2.3"}],
            "startTime": "2026-01-01T00:00:00Z",
            "containerStatuses": [
                {
                    "name": "main",
                    "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
                    "lastState": {},
                    "ready": True,
                    "restartCount": 0,
                    "image": "registry.example.org/team/app:1.2.3",
                    "imageID": "sha256:4bcff63911fcb4448bd4fdacec207030997caf25e9bea4045fa6c8c44de311d1",
                    "containerID": "containerd://%(n)08d",
                    "started": True,
                }
            ],
            "qosClass": "Burstable",
        },
    }
    return json.dumps(pod, separators=(",", ":")).encode()


class Server:
    """The Pods, and when they are modified."""

    def __init__(self, count: int) -> None:
        self._count, self._pod = count, template()
        self._begin = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, for as many requests as it brings."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                path, _, query = head.split(b" ", 2)[1].decode().partition("?")
                await self._answer(writer, path, dict(urllib.parse.parse_qsl(query)))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _answer(self, writer: asyncio.StreamWriter, path: str, query: dict[str, str]) -> None:
        if path == "/begin":
            self._begin.set()
            _whole(writer, {})
        elif query.get("watch") == "true":
            await self._watch(writer, listing=query.get("sendInitialEvents") == "true")
        else:
            self._page(writer, int(query.get("continue", "0")), int(query.get("limit", "0")) or self._count)
        await writer.drain()

    def _page(self, writer: asyncio.StreamWriter, first: int, limit: int) -> None:
        last = min(first + limit, self._count)
        more = {"continue": str(last), "remainingItemCount": self._count - last} if last < self._count else {}
        meta = json.dumps({"resourceVersion": str(self._count), **more}).encode()
        items = b",".join(self._pod % {b"n": n, b"v": n + 1} for n in range(first, last))
        body = b'{"kind":"PodList","apiVersion":"v1","metadata":' + meta + b',"items":[' + items + b"]}"
        writer.write(_head(f"Content-Length: {len(body)}") + body)

    async def _watch(self, writer: asyncio.StreamWriter, *, listing: bool) -> None:
        writer.write(_head("Transfer-Encoding: chunked"))
        if listing:
            await self._events(writer, b"ADDED", 1)
            end = {"resourceVersion": str(self._count), "annotations": {"k8s.io/initial-events-end": "true"}}
            bookmark = {"type": "BOOKMARK", "object": {"kind": "Pod", "apiVersion": "v1", "metadata": end}}
            _chunk(writer, json.dumps(bookmark, separators=(",", ":")).encode() + b"\n")
            await writer.drain()
        await self._begin.wait()
        await self._events(writer, b"MODIFIED", self._count + 1)
        await asyncio.Event().wait()  # the reader leaves when it has seen them all

    async def _events(self, writer: asyncio.StreamWriter, kind: bytes, version: int) -> None:
        line = b'{"type":"' + kind + b'","object":' + self._pod + b"}\n"
        for first in range(0, self._count, PIECE):
            last = min(first + PIECE, self._count)
            _chunk(writer, b"".join(line % {b"n": n, b"v": version + n} for n in range(first, last)))
            await writer.drain()


def _head(*headers: str) -> bytes:
    return "\r\n".join(["HTTP/1.1 200 OK", "Content-Type: application/json", *headers, "", ""]).encode()


def _whole(writer: asyncio.StreamWriter, body: Any) -> None:
    text = json.dumps(body).encode()
    writer.write(_head(f"Content-Length: {len(text)}") + text)


def _chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")


async def _run() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cert", required=True)
    parser.add_argument("--key", required=True)
    parser.add_argument("--count", type=int, required=True)
    given = parser.parse_args()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(given.cert, given.key)
    server = await asyncio.start_server(Server(given.count).serve, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    print(f"https://127.0.0.1:{port}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    import uvloop

    uvloop.run(_run())
