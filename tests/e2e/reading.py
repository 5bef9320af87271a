"""Objects as `kubectl get ... -o json` tells of them, without a process for each look.

Tests that wait look four times a second, and a process of kubectl costs a tenth of a second of a core. One of them,
`kubectl proxy`, stays, and has whatever credentials the kubeconfig says; what is asked goes through it.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import http.client
import json
import socket
import subprocess
import threading
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import Any

DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
PATIENCE = 60.0  # seconds for one answer


class Failed(AssertionError):
    """A command or a look did not end well; the message holds all that was said."""


@dataclasses.dataclass(frozen=True)
class Served:
    """A resource that the server has."""

    root: str
    plural: str
    kind: str
    version: str
    namespaced: bool

    def path(self, namespace: str) -> str:
        """Of its list, in one namespace or (empty) in all."""
        where = f"namespaces/{namespace}/" if self.namespaced and namespace else ""
        return f"{self.root}/{where}{self.plural}"


class Reader:
    """Reads one cluster, from any thread."""

    def __init__(self, kubectl: Path, kubeconfig: Path) -> None:
        command = [str(kubectl), "--kubeconfig", str(kubeconfig), "proxy", "--port=0"]
        self._proxy = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._proxy.stdout is not None
        said = self._proxy.stdout.readline()  # Starting to serve on 127.0.0.1:41234
        self._port = int(said.rpartition(":")[2])
        self._own, self._all = threading.local(), set[http.client.HTTPConnection]()
        self._served: dict[str, Served] = {}

    def close(self) -> None:
        """End it."""
        for each in self._all:
            each.close()
        self._proxy.terminate()
        self._proxy.communicate()

    def get(self, *words: str) -> Any:
        """`kubectl get WORDS --ignore-not-found -o json`; None when there is no object of that name. Raises Failed."""
        asked = _WORDS.parse_args(words)
        kinds, _, name = asked.kinds.partition("/")
        namespace = "" if asked.all else asked.namespace
        if name or asked.name:
            (served,) = self._kinds(kinds)
            path = f"{served.path(namespace)}/{name or asked.name}"
            status, body = self._ask(path)
            return None if status == 404 else json.loads(_good(path, status, body))
        query = {"labelSelector": asked.labels, "fieldSelector": asked.fields}
        given = urllib.parse.urlencode({key: value for key, value in query.items() if value})
        found = []
        for served in self._kinds(kinds):
            path = f"{served.path(namespace)}?{given}"
            items = json.loads(_good(path, *self._ask(path)))["items"]
            found += [{"apiVersion": served.version, "kind": served.kind, **item} for item in items]
        return {"apiVersion": "v1", "kind": "List", "items": found}

    def watch(self, *words: str, on_event: Callable[[str, Any], None]) -> Watch:
        """`kubectl get WORDS --watch --output-watch-events`; `on_event` hears each event's type and object.

        What is there already is heard before this returns, and all that happens from then on is heard in any case.
        """
        asked = _WORDS.parse_args(words)
        (served,) = self._kinds(asked.kinds)
        path = served.path("" if asked.all else asked.namespace)
        query = {"labelSelector": asked.labels, "fieldSelector": asked.fields}
        given = urllib.parse.urlencode({key: value for key, value in query.items() if value})
        found = json.loads(self.raw(f"{path}?{given}"))
        for item in found["items"]:
            on_event("ADDED", item)
        since = found["metadata"]["resourceVersion"]
        return Watch(self._port, f"{path}?watch=1&resourceVersion={since}&{given}", on_event)

    def raw(self, path: str) -> str:
        """`kubectl get --raw PATH`. Raises Failed."""
        return _good(path, *self._ask(path))

    def _kinds(self, names: str) -> list[Served]:
        wanted = names.lower().split(",")  # as kubectl does it
        if any(name not in self._served for name in wanted):
            self._served = self._discovered()
        if missing := [name for name in wanted if name not in self._served]:
            raise Failed(f"the server has no resource {', '.join(missing)}")
        return [self._served[name] for name in wanted]

    def _discovered(self) -> dict[str, Served]:
        """By each name that people use; where two have the same, the first of the server's own order has it."""
        found: dict[str, Served] = {}
        for root in ("/api", "/apis"):
            for group in json.loads(_good(root, *self._ask(root, DISCOVERY)))["items"]:
                of, preferred = group["metadata"].get("name", ""), group["versions"][0]
                version = "/".join(filter(None, (of, preferred["version"])))
                for it in preferred["resources"]:
                    plural, kind = it["resource"], it["responseKind"]["kind"]
                    served = Served(f"{root}/{version}", plural, kind, version, it["scope"] == "Namespaced")
                    names = (plural, it.get("singularResource"), kind.lower(), *it.get("shortNames", ()))
                    for name in (*names, f"{plural}.{of}"):
                        found.setdefault(name, served)
        return found

    def _ask(self, path: str, accept: str = "application/json") -> tuple[int, bytes]:
        kept: http.client.HTTPConnection | None = getattr(self._own, "connection", None)
        if kept is None:
            self._own.connection = kept = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
            self._all.add(kept)
        try:
            return _answer(kept, path, accept)
        except (OSError, http.client.HTTPException):
            kept.close()  # it had been idle for too long; the next request opens it again
            return _answer(kept, path, accept)


class Watch:
    """A watch, read in a thread of its own."""

    def __init__(self, port: int, path: str, on_event: Callable[[str, Any], None]) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port)
        self._connection.connect()
        self._socket: socket.socket = self._connection.sock
        self._closed = False
        self._reader = threading.Thread(target=self._read, args=(path, on_event), daemon=True)
        self._reader.start()

    def _read(self, path: str, on_event: Callable[[str, Any], None]) -> None:
        try:
            self._connection.request("GET", path)
            for line in self._connection.getresponse():
                event = json.loads(line)
                on_event(event["type"], event["object"])
        except (OSError, http.client.HTTPException, ValueError):
            if not self._closed:
                raise

    def close(self) -> None:
        """End it."""
        self._closed = True
        with contextlib.suppress(OSError):  # the server may have ended it
            self._socket.shutdown(socket.SHUT_RDWR)
        self._reader.join()
        self._connection.close()


def _answer(connection: http.client.HTTPConnection, path: str, accept: str) -> tuple[int, bytes]:
    connection.request("GET", path, headers={"Accept": accept})
    answer = connection.getresponse()
    return answer.status, answer.read()


def _good(path: str, status: int, body: bytes) -> str:
    text = body.decode()
    if status != 200:
        raise Failed(f"GET {path} -> {status}\n{text}")
    return text


class _Words(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise AssertionError(f"not understood: {message}; see tests/e2e/reading.py")


_WORDS = _Words(add_help=False, allow_abbrev=False)
_WORDS.add_argument("kinds")
_WORDS.add_argument("name", nargs="?", default="")
_WORDS.add_argument("-n", dest="namespace", default="default")
_WORDS.add_argument("-A", dest="all", action="store_true")
_WORDS.add_argument("-l", dest="labels", default="")
_WORDS.add_argument("--field-selector", dest="fields", default="")
