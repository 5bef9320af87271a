"""A cluster around an installation, played: what controllers, kubelets, agents and servers do, at once and in order.

Agents apply whatever document is there, the MASTER's migrates to its own version, and each server is of its pod's.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Mapping
from typing import Any

from moorage.api import proof
from moorage.children import owners
from moorage.operators import asking
from moorage.operators.opencga import names
from moorage.operators.opencga.wanted import pods
from tests.unit.runtime import fake_api

WATCHED = {"statefulsets", "pods", "opencgacommunity"}


class Api(fake_api.FakeApi):
    """It makes pods and claims of StatefulSets, ends what nobody owns any more, and remembers what must not be."""

    def __init__(self) -> None:
        super().__init__()
        self.after = self._play
        self.broken: set[str] = set()  # pods that are not ready
        self.held: str = ""  # the version that the catalog stays at, while its migration takes its time
        self.failing: str = ""  # what servers report out of order
        self.held_awake = False  # the MASTER is at a migration that takes its time
        self.ended: list[str] = []  # pods, as their StatefulSet let them go
        self.versions: list[tuple[str, str]] = []  # of pods, as they were made
        self.wrong: list[str] = []
        self._addresses: dict[str, str] = {}
        self.asked: dict[str, int] = {}  # how often each pod's agent was

    # --- controllers and kubelets ---------------------------------------------------------------------------------

    async def _play(self, asked: fake_api.Asked) -> None:
        if asked.method == "GET" or asked.at.plural not in WATCHED:
            return
        if asked.at.sub == "eviction":
            self._is_alone(asked.at.name)
        await self.settle()

    async def settle(self) -> None:
        """Everybody does what there is to do."""
        for place, live in list(self.objects.items()):
            if place.plural == "statefulsets" and place in self.objects:
                await self._pods_of(place, live)
        for place, live in list(self.objects.items()):
            mine = owners.controller(live)
            if mine is not None and mine["uid"] not in {it["metadata"]["uid"] for it in self.objects.values()}:
                await self.drop(place.plural, place.name)

    async def _pods_of(self, place: fake_api.Place, live: dict[str, Any]) -> None:
        spec, uid = live["spec"], live["metadata"]["uid"]
        version = spec["template"]["metadata"]["annotations"][pods.VERSION]
        revision = str(abs(hash(json.dumps(spec["template"], sort_keys=True))))
        generation = live["metadata"]["generation"]
        status = {"observedGeneration": generation, "updateRevision": revision}
        if live.get("status") != status:
            await self.put("statefulsets", place.name, {"status": status})
        wanted = [f"{place.name}-{each}" for each in range(spec["replicas"])]
        for pod in [it for it in self.pods() if owners.is_controlled(it, uid)]:
            if pod["metadata"]["name"] not in wanted:
                self.ended.append(pod["metadata"]["name"])
                self._may_end(pod["metadata"]["name"])
                await self.drop("pods", pod["metadata"]["name"])
        for name in wanted:
            if fake_api.Place("pods", "ns", name) not in self.objects:
                await self._start(name, place.name, uid, spec, revision, version)
            await self.ready(name)

    async def _start(
        self, name: str, workload: str, uid: str, spec: dict[str, Any], revision: str, version: str
    ) -> None:
        self.versions.append((name, version))
        catalog = self.catalog(workload)
        if catalog not in ("", version):
            self.wrong.append(f"{name} of {version} while the catalog is of {catalog}")
        owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": workload, "controller": True, "uid": uid}
        template = spec["template"]["metadata"]
        metadata = {
            "labels": {**template["labels"], "controller-revision-hash": revision},
            "annotations": dict(template["annotations"]),
            "ownerReferences": [owner],
        }
        address = self._addresses.setdefault(name, f"10.0.0.{len(self._addresses) + 1}")
        await self.put("pods", name, {"metadata": metadata, "status": {"phase": "Running", "podIP": address}})
        for claim in spec["volumeClaimTemplates"]:
            content = {"metadata": {"labels": claim["metadata"]["labels"]}, "spec": claim["spec"]}
            await self.put("persistentvolumeclaims", f"{claim['metadata']['name']}-{name}", content)

    async def ready(self, name: str) -> None:
        """Its containers run, and its agent's probe says what it is to say."""
        up = name not in self.broken
        told = {"name": "opencga-agent", "ready": up, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
        stated = {"type": "Ready", "status": str(up), "lastTransitionTime": "2026-01-01T00:00:00Z"}
        status = {"containerStatuses": [told], "conditions": [stated, {**stated, "type": "ContainersReady"}]}
        live = self.objects[fake_api.Place("pods", "ns", name)]
        if {key: live["status"].get(key) for key in status} != status:
            await self.put("pods", name, {"status": status})

    # --- what must not be -----------------------------------------------------------------------------------------

    def _is_alone(self, name: str) -> None:
        away = [it["metadata"]["name"] for it in self.pods() if it["metadata"]["name"] in self.broken]
        if away and away != [name]:
            self.wrong.append(f"{name} is evicted while {away} is away")

    def _may_end(self, name: str) -> None:
        of = name.rpartition("-")[0].removesuffix("-client")
        if self.community(of).get("spec", {}).get("hibernate"):
            if name == "demo-client-0" and [it for it in self.running() if it != name]:
                self.wrong.append(f"{name} ends before the others")
            return
        document = self.document(of)
        if document and any(each["name"] == name for each in document["processes"]):
            self.wrong.append(f"{name} ends, and has a place in the configuration")

    # --- what there is --------------------------------------------------------------------------------------------

    def pods(self) -> list[dict[str, Any]]:
        return [it for place, it in self.objects.items() if place.plural == "pods"]

    def running(self) -> dict[str, str]:
        """The version of each pod."""
        return {it["metadata"]["name"]: it["metadata"]["annotations"][pods.VERSION] for it in self.pods()}

    def community(self, name: str = "demo") -> dict[str, Any]:
        return self.objects.get(fake_api.Place("opencgacommunity", "ns", name), {})

    def status(self, name: str = "demo") -> dict[str, Any]:
        return dict(self.community(name).get("status") or {})

    def catalog(self, name: str = "demo") -> str:
        return str(self.status(name).get("catalogVersion") or "")

    def document(self, name: str = "demo") -> dict[str, Any]:
        held = self.objects.get(fake_api.Place("secrets", "ns", f"{name}-config"))
        return dict(json.loads(base64.b64decode(held["data"]["cluster-config.json"]))) if held else {}

    def stands(self, type_: str, status: str = "True", name: str = "demo") -> bool:
        return any((it["type"], it["status"]) == (type_, status) for it in self.status(name).get("conditions", ()))

    def settled(self, name: str = "demo") -> bool:
        """Ready, for the spec as it is."""
        generation = self.community(name)["metadata"]["generation"]
        return self.stands("Ready", name=name) and self.status(name)["observedGeneration"] == generation

    def condition(self, type_: str) -> dict[str, Any]:
        return next((dict(it) for it in self.status().get("conditions", ()) if it["type"] == type_), {})

    def names(self, plural: str) -> set[str]:
        return {place.name for place in self.objects if place.plural == plural}

    def left(self) -> set[str]:
        return {place.plural for place in self.objects} - {"events", "leases"}

    # --- agents and servers ---------------------------------------------------------------------------------------

    async def get(self, address: str, port: int, path: str) -> tuple[int, bytes]:
        """What a pod answers; see `asking.Http.get`."""
        name = next((name for name, it in self._addresses.items() if it == address), "")
        pod = self.objects.get(fake_api.Place("pods", "ns", name))
        if pod is None or name in self.broken:
            raise asking.AskError("connection refused")
        version, of = pod["metadata"]["annotations"][pods.VERSION], pod["metadata"]["labels"][names.LABEL]
        if port == 9090:
            told = {"Version": version} if path.endswith("about") else dict.fromkeys(self.failing.split(), "KO")
            return 500 if self.failing else 200, json.dumps({"responses": [{"results": [told]}]}).encode()
        applied = self.document(of).get("version", -1)
        health: dict[str, Any] = {
            "statuses": {name: {"IsInGoalState": True, "ExpectedToBeUp": True}},
            "mmsStatus": {name: {"name": name, "lastGoalVersionAchieved": applied, "plans": []}},
        }
        if pod["metadata"]["labels"][names.ROLE] == names.MASTER:
            health["catalog"] = {"installed": True, "version": self.held or version}
            if self.held_awake:
                began = {"started": "2099-01-01T00:00:00Z", "completed": None}
                moves = [{"move": "Migrate", "steps": [{"step": "Run", **began}]}]
                health["mmsStatus"][name]["plans"] = [{**began, "moves": moves}]
        return 200, json.dumps(health).encode()

    def token(self, name: str = "demo") -> str:
        """The agents' own."""
        held = self.objects.get(fake_api.Place("secrets", "ns", f"{name}-agent-password"))
        return base64.b64decode(held["data"]["password"]).decode() if held else ""

    async def exchange(
        self, address: str, port: int, path: str, headers: Mapping[str, str]
    ) -> tuple[int, bytes, Mapping[str, str]]:
        """What an agent answers to who proves that it may ask; see `asking.Http.exchange`."""
        status, text = await self.get(address, port, path)
        name = next(name for name, it in self._addresses.items() if it == address)
        token = self.token(name.rpartition("-")[0].removesuffix("-client"))
        self.asked[name] = self.asked.get(name, 0) + 1
        try:
            nonce = proof.asked(token, name, headers.get(proof.ASKED, ""), time.time())
        except proof.ProofError as error:
            return 401, str(error).encode(), {}
        return status, text, {proof.TOLD: proof.answer(token, name, nonce, text)}

    async def close(self) -> None:
        """As a transport and as `asking.Http`: there is nothing to close."""
