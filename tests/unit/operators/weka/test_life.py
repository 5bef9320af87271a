"""A cluster's whole life on an API server in memory, from the sample to nothing left. All that runs is played."""

from __future__ import annotations

import asyncio
import base64
import collections
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from moorage.helm.runs import binary
from moorage.kube import client as kube_client
from moorage.operators import system, weka
from moorage.operators.weka import agents, config
from moorage.runtime import manager
from tests.unit.runtime import fake_api

from . import fake_weka

ROOT = Path(__file__).resolve().parents[4]
SAMPLE = yaml.safe_load((ROOT / "examples/weka/hello.yaml").read_text())
NEWER = yaml.safe_load((ROOT / "examples/weka/upgrade.yaml").read_text())["spec"]["image"]
SETTINGS = config.Config(
    "moorage-accounts", "moorage-weka-namespace", images=("registry.example/",), poll=config.Poll(0.05, 0.1)
)


class Lived:
    """The API server, and what is played beside it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, nodes: int = 6) -> None:
        self.api = fake_api.FakeApi()
        self.weka = fake_weka.World(self.api, nodes)

        async def ask(this: Any, *what: Any) -> Any:
            return await self.weka.ask(this, *what)

        monkeypatch.setattr(agents.Agents, "ask", ask)

    async def apply(self, annotations: dict[str, str] | None = None, **changed: Any) -> None:
        """The sample, as somebody applies it with other fields."""
        spec = {**SAMPLE["spec"], **changed}
        metadata = {"creationTimestamp": "2026-01-01T00:00:00Z", "annotations": annotations or {}}
        await self.api.put("wekaclusters", "hello", {"metadata": metadata, "spec": spec})

    def status(self) -> dict[str, Any]:
        found = self.weka.of("wekaclusters").get("hello") or {}
        return found.get("status") or {}

    def stands(self, type_: str = "Ready", status: str = "True") -> bool:
        found = self.weka.of("wekaclusters").get("hello") or {}
        told = {it["type"]: it for it in self.status().get("conditions", ())}
        current = self.status().get("observedGeneration") == (found.get("metadata") or {}).get("generation")
        return current and type_ in told and told[type_]["status"] == status

    def all_ready(self) -> bool:
        stands = self.weka.of("wekacontainers").values()
        return all("Running" == (it.get("status") or {}).get("status") for it in stands)

    def orders(self, what: str) -> list[dict[str, Any]]:
        return [args for _, order, args in self.weka.orders if order == what]

    @contextlib.asynccontextmanager
    async def operating(
        self, scratch: Path, *, killed: bool = False, **settings: Any
    ) -> AsyncIterator[manager.Manager]:
        """An operator at work; `killed`: it ends wherever it stands."""
        around = system.Environment("moorage-system", scratch, Path("helm"), binary.KubeAccess(), 3.0)
        kinds = weka.SYSTEM.kinds(msgspec.structs.replace(SETTINGS, **settings), around)
        stop = asyncio.Event()
        options = manager.Settings(identity="me", namespace="moorage-system", elect=False, port=0)
        made = manager.Manager(kube_client.Client(self.api), kinds, options)
        running = asyncio.create_task(made.run(stop))
        kubelet = asyncio.create_task(self.weka.kubelet())
        try:
            yield made
        finally:
            kubelet.cancel()
            if killed:
                running.cancel()
            stop.set()
            with contextlib.suppress(asyncio.CancelledError):
                await running


@pytest.fixture
async def lived(monkeypatch: pytest.MonkeyPatch) -> Lived:
    made = Lived(monkeypatch)
    await made.weka.prepare()
    await made.apply()
    return made


async def test_the_sample_is_formed_once_and_at_rest_it_writes_nothing(lived: Lived, tmp_path: Path) -> None:
    """Each order is given once, each port and drive is one container's, and another operator finds all as it is."""
    async with lived.operating(tmp_path):
        await fake_api.until(lived.stands, within=60)
        await fake_api.until(lived.all_ready, within=60)
    given = collections.Counter(order for _, order, _ in lived.weka.orders)

    assert "Ready" == lived.status()["status"]
    assert {"cluster.form": 1, "cluster.start_io": 1, "user.add": 1, "group.add": 1, "filesystem.add": 2} == {
        it: given[it] for it in ("cluster.form", "cluster.start_io", "user.add", "group.add", "filesystem.add")
    }
    assert (5, 5) == (given["drive.add"], len(lived.weka.drives))
    assert 10 == len(lived.weka.of("wekacontainers")) == given["container.write_resources"]
    told = [json.loads(text) for text in lived.weka.resources.values()]
    ports = collections.Counter(
        (lived.weka.of("pods")[name]["spec"]["nodeName"], json.loads(text)["wekaPort"])
        for name, text in lived.weka.resources.items()
    )
    assert {1} == {*ports.values()}
    assert 5 == len({serial for it in told for serial in it["drives"]})

    before = len(lived.api.writes())
    async with lived.operating(tmp_path):
        asked = lived.weka.asked
        await fake_api.until(lambda: lived.weka.asked > asked + 100, within=60)

    assert [] == lived.api.writes()[before:]


def passes(at_work: manager.Manager) -> dict[str, float]:
    """How many there were of each kind."""
    samples = [it for metric in at_work.metrics.reconciles.collect() for it in metric.samples]
    found: collections.Counter[str] = collections.Counter()
    for it in samples:
        if it.name.endswith("_total"):
            found[it.labels["kind"]] += it.value
    return found


async def test_at_rest_it_writes_nothing_whatever_is_looked_at(lived: Lived, tmp_path: Path) -> None:
    """Three resyncs of the cluster and of each of its ten containers, and polls of all of them: not one write."""
    async with lived.operating(tmp_path):
        await fake_api.until(lived.stands, within=60)
        await fake_api.until(lived.all_ready, within=60)
    async with lived.operating(tmp_path, resync_seconds=0.5) as at_work:
        await fake_api.until(lambda: passes(at_work)["WekaContainer"] >= 10, within=60)
        before, first = len(lived.api.writes()), passes(at_work)
        enough = {"WekaCluster": first["WekaCluster"] + 3, "WekaContainer": first["WekaContainer"] + 30}
        await fake_api.until(lambda: all(passes(at_work)[kind] >= count for kind, count in enough.items()), within=60)

    assert [] == lived.api.writes()[before:]


async def test_no_secret_is_anywhere_but_in_secrets(lived: Lived, tmp_path: Path) -> None:
    """Not in a status, a container, a pod, an Event, nor in what is told to a container."""
    async with lived.operating(tmp_path):
        await fake_api.until(lived.stands, within=60)
    kept = ("password", "join-secret", "user-password")
    secrets = {it["data"][key] for it in lived.weka.of("secrets").values() for key in kept if key in it["data"]}
    rest = [it for place, it in lived.api.objects.items() if place.plural != "secrets"]
    text = json.dumps(rest) + json.dumps(lived.weka.orders)

    assert 3 == len(secrets)
    assert [] == [it for it in secrets if it in text or _plain(it) in text]


def _plain(data: str) -> str:
    return base64.b64decode(data).decode()


async def test_another_image_reaches_one_container_after_another(lived: Lived, tmp_path: Path) -> None:
    """Drives first, each back before the next, each under its name, on its node, with its drives."""
    async with lived.operating(tmp_path):
        await fake_api.until(lived.stands, within=60)
        await fake_api.until(lived.all_ready, within=60)
        before = {name: it["spec"]["nodeName"] for name, it in lived.weka.of("pods").items()}
        made = len(lived.weka.orders)
        lived.weka.away.clear()
        await lived.apply(image=NEWER)
        await fake_api.until(lambda: lived.status().get("lastAppliedImage") == NEWER, within=120)
        await fake_api.until(lived.stands, within=60)

    assert {1} == {*lived.weka.away}
    assert before == {name: it["spec"]["nodeName"] for name, it in lived.weka.of("pods").items()}
    assert {NEWER} == {it["spec"]["containers"][0]["image"] for it in lived.weka.of("pods").values()}
    later = lived.weka.orders[made:]
    stopped = [pod for pod, order, _ in later if order == "container.allow_stop"]
    assert [f"hello-drive-{it}" for it in range(5)] + [f"hello-compute-{it}" for it in range(5)] == stopped
    assert not any(args["force"] for _, order, args in later if order == "container.allow_stop")
    assert ["DrivePhase", "ComputeRollingPhase"] == [args["phase"] for args in lived.orders("upgrade.phase")]
    assert 1 == len(lived.orders("upgrade.finish"))
    assert 5 == len(lived.orders("drive.add")) == len(lived.weka.drives)


async def test_who_is_to_be_replaced_by_force_may_stop_at_once_and_nobody_else(lived: Lived, tmp_path: Path) -> None:
    """From the cluster's override, once it is confirmed, to the order in the pod."""
    confirmed = {"weka.io/confirm": "upgradeForceReplaceDrives"}
    async with lived.operating(tmp_path):
        await fake_api.until(lived.stands, within=60)
        await fake_api.until(lived.all_ready, within=60)
        pods = {it["metadata"]["uid"]: name for name, it in lived.weka.of("pods").items()}
        await lived.apply(annotations=confirmed, image=NEWER, overrides={"upgradeForceReplaceDrives": True})
        await fake_api.until(lambda: lived.status().get("lastAppliedImage") == NEWER, within=120)

    stopped = {pods[args["pod"]]: args["force"] for args in lived.orders("container.allow_stop")}
    assert {f"hello-{role}-{it}": role == "drive" for role in ("drive", "compute") for it in range(5)} == stopped


async def test_it_grows_and_shrinks_and_nobody_is_left_in_the_cluster(lived: Lived, tmp_path: Path) -> None:
    """The one that leaves hands over first: deactivated, its drive out, its pod stopped, and then forgotten."""
    sizes = SAMPLE["spec"]["dynamicTemplate"]
    async with lived.operating(tmp_path):
        await fake_api.until(lived.stands, within=60)
        await lived.apply(dynamicTemplate={**sizes, "driveContainers": 6})
        await fake_api.until(lambda: len(lived.weka.drives) == 6, within=60)
        await fake_api.until(lived.stands, within=60)
        assert 11 == len(lived.weka.members)

        made = len(lived.weka.orders)
        await lived.apply(dynamicTemplate=sizes)
        await fake_api.until(lambda: "hello-drive-5" not in lived.weka.of("wekacontainers"), within=60)
        await fake_api.until(lived.stands, within=60)

    assert (10, 5) == (len(lived.weka.members), len(lived.weka.drives))
    assert ["member.deactivate", "drive.deactivate", "drive.remove", "container.allow_stop", "member.remove"] == [
        order for _, order, _ in lived.weka.orders[made:]
    ]


async def test_a_pod_that_somebody_deletes_comes_back_under_its_name(lived: Lived, tmp_path: Path) -> None:
    """It may stop in its own time, and comes back on its node with what it had."""
    async with lived.operating(tmp_path):
        await fake_api.until(lived.stands, within=60)
        await fake_api.until(lived.all_ready, within=60)
        old = lived.weka.of("pods")["hello-drive-2"]
        await lived.api.mark_deleted("pods", "hello-drive-2")
        await fake_api.until(
            lambda: lived.weka.of("pods").get("hello-drive-2", old)["metadata"]["uid"] != old["metadata"]["uid"],
            within=60,
        )
        await fake_api.until(lived.all_ready, within=60)

    assert old["spec"]["nodeName"] == lived.weka.of("pods")["hello-drive-2"]["spec"]["nodeName"]
    assert [{"pod": old["metadata"]["uid"], "force": False}] == lived.orders("container.allow_stop")


async def test_of_many_that_somebody_deletes_no_more_stop_at_once_than_redundancy_covers(
    lived: Lived, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when nodes are drained one right after the other; all are stopped in the end, and come back."""
    drives = [f"hello-drive-{it}" for it in range(5)]
    away: list[int] = []

    def stops(name: str, pod: dict[str, Any], args: dict[str, Any]) -> None:
        allow(name, pod, args)
        away.append(sum(not lived.weka.serves(it) for it in drives))

    allow = lived.weka.container_allow_stop
    monkeypatch.setattr(lived.weka, "container_allow_stop", stops)
    async with lived.operating(tmp_path):
        await fake_api.until(lived.stands, within=60)
        await fake_api.until(lived.all_ready, within=60)
        old = {name: lived.weka.of("pods")[name]["metadata"]["uid"] for name in drives}
        for name in reversed(drives):
            await lived.api.mark_deleted("pods", name)

        def others() -> bool:
            pods = lived.weka.of("pods")
            return all(name in pods and pods[name]["metadata"]["uid"] != old[name] for name in drives)

        await fake_api.until(others, within=60)
        await fake_api.until(lived.all_ready, within=60)

    assert 5 == len(away)
    assert 2 == max(away), "a stripe of 3+2"


async def test_it_goes_with_all_that_it_had(lived: Lived, tmp_path: Path) -> None:
    """Nothing is handed over, as nobody is left to take it."""
    async with lived.operating(tmp_path):
        await fake_api.until(lived.stands, within=60)
        await lived.api.mark_deleted("wekaclusters", "hello")
        await fake_api.until(lambda: not lived.weka.of("wekaclusters"), within=60)
    left = {place.plural for place in lived.api.objects}

    assert not {"pods", "wekacontainers", "rolebindings", "configmaps"} & left
    assert [] == lived.orders("member.deactivate")
    assert {(True, True)} == {(it["force"], it.get("forget")) for it in lived.orders("container.allow_stop")}


async def test_it_goes_with_its_namespace(lived: Lived, tmp_path: Path) -> None:
    """All is deleted at once, the rights included, which last until the pods were told that they may stop."""
    await lived.apply(gracefulDestroyDuration="9999999h")
    async with lived.operating(tmp_path):
        await fake_api.until(lived.stands, within=60)
        at = fake_api.Place("namespaces", "", "ns")
        live = lived.api.objects[at]
        terminating = {"metadata": {**live["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
        await lived.api.put("namespaces", "ns", terminating, namespace="")
        for plural in ("rolebindings", "wekaclusters", "wekacontainers", "pods"):
            for name in lived.weka.of(plural):
                await lived.api.mark_deleted(plural, name)
        gone = {"rolebindings", "wekaclusters", "wekacontainers", "pods"}
        await fake_api.until(lambda: not gone & {place.plural for place in lived.api.objects}, within=60)

    assert 10 == len(lived.orders("container.allow_stop"))


async def test_within_its_grace_it_stands_still_and_can_be_had_back(lived: Lived, tmp_path: Path) -> None:
    await lived.apply(gracefulDestroyDuration="9999999h")
    async with lived.operating(tmp_path):
        await fake_api.until(lived.stands, within=60)
        await lived.api.mark_deleted("wekaclusters", "hello")
        await fake_api.until(lambda: not lived.weka.of("pods"), within=60)
        assert 10 == len(lived.weka.of("wekacontainers"))
        assert "GracePeriod" == lived.status()["status"]

        await lived.apply(gracefulDestroyDuration="9999999h", overrides={"cancelDeletion": True})
        await fake_api.until(lambda: len(lived.weka.of("pods")) == 10, within=60)
        await fake_api.until(lived.all_ready, within=60)

    assert 10 == len(lived.weka.members)
    assert 5 == len(lived.weka.drives)


async def test_five_clusters_at_once_share_no_port_and_no_drive(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whoever was first: their ranges are apart, and on each node each port and each drive is one container's."""
    lived = Lived(monkeypatch, nodes=5)
    lived.weka.slots = tuple(f"s{it}" for it in range(5))
    await lived.weka.prepare()
    for it in range(5):
        await lived.api.put("wekaclusters", f"c{it}", {"spec": SAMPLE["spec"]})

    def given() -> list[dict[str, Any]]:
        return [
            it["status"] for it in lived.weka.of("wekacontainers").values() if "allocations" in it.get("status", {})
        ]

    async with lived.operating(tmp_path):
        await fake_api.until(lambda: len(given()) == 50, within=120)
    ranges = [it["status"]["ports"]["basePort"] for it in lived.weka.of("wekaclusters").values()]
    ports = [(it["nodeAffinity"], it["allocations"][port]) for it in given() for port in ("wekaPort", "agentPort")]
    drives = [serial for it in given() for serial in it["allocations"].get("drives", ())]

    assert [35_000 + 500 * it for it in range(5)] == sorted(ranges)
    assert 100 == len({*ports})
    assert all(port % 100 == 0 for _, port in ports[::2]), "blocks of 100, which do not overlap"
    assert 25 == len(drives) == len({*drives})


async def test_while_moorage_is_away_a_pod_that_is_deleted_stays_and_serves(lived: Lived, tmp_path: Path) -> None:
    """Nobody tells it that it may stop; once somebody does, another one takes its place."""
    async with lived.operating(tmp_path):
        await fake_api.until(lived.stands, within=60)
        await fake_api.until(lived.all_ready, within=60)
    old = lived.weka.of("pods")["hello-drive-2"]["metadata"]["uid"]
    await lived.api.mark_deleted("pods", "hello-drive-2")
    looks = len(lived.weka.away)
    kubelet = asyncio.create_task(lived.weka.kubelet())
    await fake_api.until(lambda: len(lived.weka.away) > looks + 20)
    kubelet.cancel()

    assert old == lived.weka.of("pods")["hello-drive-2"]["metadata"]["uid"]
    assert lived.weka._up("hello-drive-2")
    async with lived.operating(tmp_path):
        await fake_api.until(
            lambda: lived.weka.of("pods").get("hello-drive-2", {"metadata": {"uid": old}})["metadata"]["uid"] != old,
            within=60,
        )
        await fake_api.until(lived.all_ready, within=60)
    assert [{"pod": old, "force": False}] == lived.orders("container.allow_stop")


async def test_answers_that_are_lost_lead_to_nothing_twice(lived: Lived, tmp_path: Path) -> None:
    """Each order is carried out, and its first answer is lost: it is looked at what became of it."""
    lived.weka.loses = True
    async with lived.operating(tmp_path):
        await fake_api.until(lived.stands, within=120)
        await fake_api.until(lived.all_ready, within=120)

    assert {"cluster.form", "drive.add", "user.add", "container.write_resources"} <= {
        order for _, order, _ in lived.weka.orders
    }
    assert (10, 5, 10) == (len(lived.weka.members), len(lived.weka.drives), len(lived.weka.of("wekacontainers")))
    assert ["admin", "weka-cluster-hello"] == lived.weka.users
    assert [".config_fs", "default"] == lived.weka.filesystems
    assert 1 == len(lived.orders("cluster.start_io"))


async def test_an_operator_that_is_killed_after_each_order_goes_on_where_it_was(lived: Lived, tmp_path: Path) -> None:
    """Another one finds what was done, and what was remembered: nothing is made twice."""
    kills = 0
    while not (lived.status() and lived.stands() and lived.all_ready()):
        async with lived.operating(tmp_path, killed=True):
            done = len(lived.weka.orders), len(lived.weka.of("wekacontainers")), len(lived.weka.of("pods"))

            def moved(before: tuple[int, ...] = done) -> bool:
                now = len(lived.weka.orders), len(lived.weka.of("wekacontainers")), len(lived.weka.of("pods"))
                return now != before or (lived.stands() and lived.all_ready())

            await fake_api.until(moved, within=60)
        kills += 1
        assert kills < 200

    assert kills > 10
    assert (10, 5, 10) == (len(lived.weka.members), len(lived.weka.drives), len(lived.weka.of("wekacontainers")))
    assert 1 == len(lived.orders("cluster.form"))
    assert ["admin", "weka-cluster-hello"] == lived.weka.users
    assert 2 == len(lived.weka.of("secrets"))


async def test_a_policy_is_told_that_it_is_not_run(lived: Lived, tmp_path: Path) -> None:
    """Nobody waits for what does not come, and nothing keeps it from being deleted."""
    spec = {"type": "discover-drives", "payload": {"interval": "1m"}}
    await lived.api.put("wekapolicies", "often", {"spec": spec})

    def told() -> dict[str, Any]:
        found = lived.weka.of("wekapolicies")["often"]
        return {it["type"]: it for it in (found.get("status") or {}).get("conditions", ())}

    async with lived.operating(tmp_path):
        await fake_api.until(lambda: "Stalled" in told() and told()["Stalled"]["status"] == "True", within=30)
    found = lived.weka.of("wekapolicies")["often"]

    assert ("NotRun", "NotRun") == (found["status"]["status"], told()["Ready"]["reason"])
    assert [] == found["metadata"].get("finalizers", [])
