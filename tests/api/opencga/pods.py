"""A node on which the pods of an installation run within the test: agents and servers, as far as moorage asks them.

The catalog is the namespace's, and outlives all pods. The MASTER of a later version migrates it, once its agent has the
configuration and, as each migration but the first forbids the old version, may stop REST servers, once all that have a
place in that have been stopped by it. REST members are in their goal with a catalog of their own version alone.
"""

from __future__ import annotations

import base64
import contextlib
import json
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from moorage.api import builtin, conditions, proof
from moorage.kube import client as kube_client
from moorage.kube import errors
from moorage.operators.opencga import dialect, names
from moorage.operators.opencga.wanted import pods
from tests.api import in_process
from tests.api.xsld import kubelet

SAID = dialect.Dialect()
HELD = "the old version may not touch the catalog: set spec.upgrade.migration to Offline, or set spec.version back"
"""What a MASTER's agent says that may not stop REST servers."""


class Node(kubelet.Node):
    """The node of one test."""

    def __init__(self, client: kube_client.Client, namespace: str, folder: Path) -> None:
        super().__init__(client, namespace, folder, folder, env={})
        self.catalog = ""
        """The version that it was migrated to; empty while it is not installed."""
        self.stopped: dict[str, int] = {}
        """REST member -> the version of the configuration by which its server is stopped."""
        self.token = ""
        """The agents' own, as it was read last."""
        self.applied: dict[str, int] = {}
        """Pod -> the version of the configuration that its agent has applied last."""

    def is_mine(self, pod: dict[str, Any]) -> bool:
        """Every pod of an installation: nothing of the MASTER's says on which node it is to be."""
        return names.LABEL in (pod["metadata"].get("labels") or {})

    def container(self, pod: dict[str, Any], address: str) -> kubelet.Container:
        """See `kubelet.Node`."""
        return Pod(self, pod, address)

    async def document(self, name: str) -> dict[str, Any]:
        """What its agents are to apply; nothing where it is not there. Their token is read with it."""
        try:
            held = await self._client.get(builtin.SECRET, self._namespace, names.agent_token(name))
            self.token = base64.b64decode(held["data"][names.AGENT_TOKEN_KEY]).decode()
            held = await self._client.get(builtin.SECRET, self._namespace, names.configuration(name))
            text = base64.b64decode(held["data"][SAID.container.configuration_file])
            return dict(json.loads(text))
        except (errors.NotFound, KeyError, ValueError):
            return {}


class Pod(in_process.Server):
    """One incarnation of a member."""

    _node: Node

    def __init__(self, node: Node, pod: dict[str, Any], address: str) -> None:
        super().__init__(node, pod, address)
        metadata = pod["metadata"]
        self.version: str = metadata["annotations"][pods.VERSION]
        self.role: str = metadata["labels"][names.ROLE]
        self.of: str = metadata["labels"][names.LABEL]

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """The agent, and beside a REST member's its server."""
        async with contextlib.AsyncExitStack() as both:
            await both.enter_async_context(in_process.http(self.address, SAID.ports.agent, self._health, self._prove))
            if self.role == names.REST:
                await both.enter_async_context(in_process.http(self.address, SAID.ports.rest, self._server))
            yield

    async def _health(self, _: str) -> dict[str, Any]:
        """What the agent tells, after it has done what there is to do."""
        document = await self._node.document(self.of)
        place = next((it for it in document.get("processes", ()) if it["name"] == self.name), {})
        right = place.get("version") == self.version
        plans: list[dict[str, Any]] = []
        error = ""
        if right and self.role == names.MASTER and self._number(self._node.catalog) < self._number(self.version):
            if self._may_migrate(document):
                self._node.catalog = self.version
            elif document["upgrade"]["migration"] == "Offline":
                plans = [self._at(SAID.moves.stop)]
            else:
                plans, error = [self._at(SAID.moves.held)], HELD
        self._node.stopped.pop(self.name, None)
        if place and self.role == names.REST and document["upgrade"]["stopped"]:
            self._node.stopped[self.name] = document["version"]
            plans = [self._at(SAID.moves.stopped)]
        goal = right and self._node.catalog == self.version and not plans
        if goal:
            self._node.applied[self.name] = document["version"]
        told: dict[str, Any] = {
            "statuses": {self.name: {"IsInGoalState": goal, "ExpectedToBeUp": True}},
            "mmsStatus": {
                self.name: {
                    "lastGoalVersionAchieved": self._node.applied.get(self.name, -1),
                    "plans": plans,
                    "errorCode": 1 if error else 0,
                    "errorString": error,
                }
            },
        }
        if self.role == names.MASTER:
            told["catalog"] = {"installed": bool(self._node.catalog), "version": self._node.catalog}
        return told

    def _may_migrate(self, document: dict[str, Any]) -> bool:
        rest = [it["name"] for it in document["processes"] if it["processType"] == names.REST]
        by_this = all(self._node.stopped.get(name) == document["version"] for name in rest)
        return not self._node.catalog or (document["upgrade"]["stopped"] and by_this)

    def _at(self, step: str) -> dict[str, Any]:
        """A plan that stands at that step of a migration."""
        steps = [{"step": step, "started": conditions.timestamp(time.time()), "completed": None}]
        return {"completed": None, "moves": [{"move": SAID.moves.migrate, "steps": steps}]}

    def _prove(self, asked: Mapping[str, str], text: bytes) -> Mapping[str, str]:
        token = self._node.token
        try:
            nonce = proof.asked(token, self.name, asked.get(proof.ASKED, ""), time.time())
        except proof.ProofError as error:
            raise PermissionError(str(error)) from error
        return {proof.TOLD: proof.answer(token, self.name, nonce, text)}

    async def _server(self, path: str) -> dict[str, Any]:
        result = {"Version": self.version} if path.endswith(SAID.paths.about) else {"CatalogMongoDB": "OK"}
        return {"responses": [{"results": [result]}]}

    @staticmethod
    def _number(version: str) -> tuple[int, ...]:
        return tuple(map(int, version.split("."))) if version else ()
