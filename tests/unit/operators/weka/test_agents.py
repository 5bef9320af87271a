"""What both kinds stand on, on an API server in memory: who gets what, who is asked, what becomes of an order."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from moorage.api import meta
from moorage.helm.runs import binary
from moorage.kube import client as kube_client
from moorage.kube import errors
from moorage.kube.http import exec_protocol
from moorage.kube.informers import informer
from moorage.operators import accounts, system, weka
from moorage.operators.weka import agents, allocation, answers, config, names, shared
from moorage.operators.weka.cluster import kind as cluster_kind
from moorage.operators.weka.cluster import types as cluster_types
from moorage.operators.weka.container import kind as container_kind
from moorage.operators.weka.container import types as container_types
from moorage.operators.weka.operation import kind as operation_kind
from moorage.operators.weka.operation import types as operation_types
from moorage.runtime import decision, freshness, gate, kind
from tests.unit.runtime import fake_api

NOW = 1_800_000_000.0
SETTINGS = config.Config("moorage-accounts", "moorage-weka-namespace", images=("registry.example/",))
RIGHTS = accounts.Rights("weka", "moorage-system", "moorage-accounts", "moorage-weka-namespace")
IMAGE = "registry.example/weka:4.4.1"


class Fixed:
    """All kinds, started on a server with one cluster and two of its containers."""

    def __init__(self, api: fake_api.FakeApi) -> None:
        self.api = api
        self.said: dict[str, Any] = {}
        self.asked: list[tuple[str, str, dict[str, Any]]] = []
        self.containers: container_kind.ContainerKind
        self.clusters: cluster_kind.ClusterKind
        self.operations: operation_kind.OperationKind
        self.common: shared.Shared

    def container(self, name: str) -> container_types.WekaContainer:
        found = self.containers.find("ns", name)
        assert found is not None
        return found

    def cluster(self) -> cluster_types.WekaCluster:
        found = self.clusters.find("ns", "demo")
        assert found is not None
        return found

    async def tell(self, order: str = "container.join", **args: Any) -> decision.Outcome:
        return await self.containers.operations[order](self.container("demo-drive-0"), {"pod": "p-0", **args})


async def put_container(api: fake_api.FakeApi, number: int, **status: Any) -> None:
    uid = api.one("wekaclusters", "demo")["metadata"]["uid"]
    owner = {
        "apiVersion": "weka.weka.io/v1alpha1",
        "kind": "WekaCluster",
        "name": "demo",
        "uid": uid,
        "controller": True,
    }
    spec = {"image": IMAGE, "name": f"drivexaax{number}", "mode": "drive", "numCores": 1, "numDrives": 1}
    content = {"metadata": {"ownerReferences": [owner]}, "spec": spec, "status": {"nodeAffinity": "n1", **status}}
    made = await api.put("wekacontainers", f"demo-drive-{number}", content)
    mine = {"apiVersion": "weka.weka.io/v1alpha1", "kind": "WekaContainer", "name": f"demo-drive-{number}"}
    pod = {
        "metadata": {
            "uid": f"p-{number}",
            "labels": {names.CONTAINER_NAME: f"demo-drive-{number}"},
            "ownerReferences": [{**mine, "uid": made["metadata"]["uid"], "controller": True}],
        },
        "spec": {"nodeName": "n1", "containers": [{"name": names.POD_CONTAINER, "image": IMAGE}]},
        "status": {"containerStatuses": [{"name": names.POD_CONTAINER, "ready": True, "state": {"running": {}}}]},
    }
    await api.put("pods", f"demo-drive-{number}", pod)


@contextlib.asynccontextmanager
async def started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: config.Config = SETTINGS
) -> AsyncIterator[Fixed]:
    api = fake_api.FakeApi()
    it = Fixed(api)
    await api.put("namespaces", "ns", {"metadata": {"labels": {names.OPENED: "privileged"}}}, namespace="")
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    await api.put(
        "nodes", "n1", {"metadata": {"annotations": {names.DRIVES: '["s1","s2"]'}}, "status": ready}, namespace=""
    )
    await api.put("rolebindings", RIGHTS.binding, accounts.binding("ns", RIGHTS))
    await api.put("wekaclusters", "demo", {"spec": {"image": IMAGE}})
    for number in (0, 1):
        await put_container(api, number)

    async def run(_: Any, namespace: str, pod: str, command: list[str], container: str, *, timeout: float) -> Any:
        what, args = command[2], json.loads(command[3])
        it.asked.append((pod, what, args))
        assert ("ns", names.POD_CONTAINER) == (namespace, container)
        found = it.said.get(what, {"pod": f"p-{pod.rpartition('-')[2]}"} if what == "local" else {})
        if isinstance(found, Exception):
            raise found
        text = found if isinstance(found, str) else json.dumps(found)
        return exec_protocol.ExecResult(text, "it broke", it.said.get("code", 0))

    monkeypatch.setattr(kube_client.Client, "exec", run)
    client = kube_client.Client(api)
    informers = informer.Informers(client)
    around = system.Environment("moorage-system", tmp_path, Path("helm"), binary.KubeAccess(), 3.0)
    containers, clusters, operations, *_ = weka.SYSTEM.kinds(settings, around)
    assert isinstance(containers, container_kind.ContainerKind)
    assert isinstance(clusters, cluster_kind.ClusterKind)
    assert isinstance(operations, operation_kind.OperationKind)
    it.operations = operations
    it.containers, it.clusters, it.common = containers, clusters, containers._common
    world = kind.World(client, informers, gate.Gate(), lambda *_, **__: None)
    for each in (containers, clusters, operations):
        each.informers = [informers.watch(each.resource, each.model)]
        await each.start(world)
    try:
        await fake_api.until(lambda: all(cache.synced for cache in informers.all()))
        seen = lambda: containers.observe(it.container("demo-drive-0"), NOW).objects  # noqa: E731
        await fake_api.until(lambda: isinstance(seen(), freshness.Fresh))
        yield it
    finally:
        for each in (containers, clusters, operations):
            await each.stop()
        await informers.stop()


async def put_operation(it: Fixed, **status: Any) -> operation_types.WekaManualOperation:
    payload = {"forceResignDrivesPayload": {"nodeName": "n1", "deviceSerials": ["s2"]}}
    spec = {"action": "force-resign-drives", "image": IMAGE, "payload": payload}
    await it.api.put("wekamanualoperations", "again", {"spec": spec, "status": status})

    def found() -> operation_types.WekaManualOperation | None:
        live = it.operations.find("ns", "again")
        return live if live is not None and live.status.status == status["status"] else None

    await fake_api.until(lambda: found() is not None)
    live = found()
    assert live is not None
    return live


async def test_drives_that_are_signed_anew_are_given_to_nobody_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with started(tmp_path, monkeypatch) as it:
        await put_operation(it, status="Running", nodes={"n1": {"status": "Running"}})
        assert {"s1", "s2"} == {serial for each in it.common.taken("n1", "") for serial in each.drives}
        assert () == it.common.taken("n2", "")

        await put_operation(it, status="Done", nodes={"n1": {"status": "Done"}})
        assert () == it.common.taken("n1", "")


async def test_an_operation_is_told_whose_drives_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of what was given and is not written yet; one that came in between has the pod wait for another look."""
    args = {"node": "n1", "drives": ["s1"], "wekaPort": 35_000, "agentPort": 35_300}
    async with started(tmp_path, monkeypatch) as it:
        op = await put_operation(it, status="Running", nodes={"n1": {"status": "Running"}})
        guard = it.operations.guards["drives_are_nobodys"]
        assert "" == await guard(op, {"node": "n1", "taken": []})
        await it.common.allocation_is_free(it.container("demo-drive-1"), {**args, "drives": []})
        it.common._given["u-x"] = ("n1", allocation.Taken("u-x", frozenset({"s1"})))

        assert {"s1"} == it.common.whose("n1").keys()
        assert "a container has got drive s1 meanwhile" == await guard(op, {"node": "n1", "taken": []})
        assert "" == await guard(op, {"node": "n1", "taken": ["s1"]})


async def test_a_node_is_told_only_if_it_is_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with started(tmp_path, monkeypatch) as it:
        op = await put_operation(it, status="Running", nodes={"n1": {"status": "Running"}})
        annotate = it.operations.operations["node.annotate"]
        said = {"node": "n1", "wanted": {names.DRIVES: '["s3"]', names.SIGN_HASH: "h"}}
        with pytest.raises(errors.Conflict):
            await annotate(op, {**said, "before": {names.DRIVES: "[]", names.SIGN_HASH: None}})
        assert '["s1","s2"]' == it.api.one("nodes", "n1", "")["metadata"]["annotations"][names.DRIVES]

        await annotate(op, {**said, "before": {names.DRIVES: '["s1","s2"]', names.SIGN_HASH: None}})
        assert {names.DRIVES: '["s3"]', names.SIGN_HASH: "h"} == it.api.one("nodes", "n1", "")["metadata"][
            "annotations"
        ]


async def test_two_that_decide_at_once_get_different_things(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the first is written the second is refused; once it is, the status itself says whose it is."""
    async with started(tmp_path, monkeypatch) as it:
        args = {"node": "n1", "drives": ["s1"], "wekaPort": 35_000, "agentPort": 35_300}
        free = it.common.allocation_is_free

        assert "" == await free(it.container("demo-drive-0"), args)
        assert "drive s1" in await free(it.container("demo-drive-1"), args)
        assert "ports from 35050 on" in await free(
            it.container("demo-drive-1"), {**args, "drives": ["s2"], "wekaPort": 35_050}
        )
        assert "" == await free(it.container("demo-drive-0"), args), "the same one asks again, after a refusal"
        got = {"drives": ["s1"], "wekaPort": 35_000, "agentPort": 35_300}
        await it.api.put("wekacontainers", "demo-drive-0", {"status": {"allocations": got}})
        await fake_api.until(lambda: it.container("demo-drive-0").status.allocations is not None)
        assert not it.common._given
        assert "drive s1" in await free(it.container("demo-drive-1"), args)
        assert "" == await free(it.container("demo-drive-1"), {**args, "node": "n2"})


async def test_clusters_get_ranges_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with started(tmp_path, monkeypatch) as it:
        await it.api.put("wekaclusters", "other", {"spec": {"image": IMAGE}})
        await fake_api.until(lambda: it.clusters.find("ns", "other") is not None)
        other = it.clusters.find("ns", "other")
        assert other is not None

        assert "" == await it.common.range_is_free(it.cluster(), {"first": 35_000, "count": 500})
        assert "ports from 35499 on" in await it.common.range_is_free(other, {"first": 35_499, "count": 500})
        assert "" == await it.common.range_is_free(other, {"first": 35_500, "count": 500})
        assert [35_000, 35_500] == [span.first for span in it.common.ranges("")]


OUTCOMES: list[tuple[Any, Any, str]] = [
    ({}, decision.Ok, ""),
    ({"fault": "Refused", "message": "no"}, decision.Refused, "container.join at demo-drive-0: no"),
    ({"fault": "Unknown", "message": "slow"}, decision.Unknown, "container.join at demo-drive-0: slow"),
    ("{", decision.Unknown, "an answer that can't be read"),
    ("x" * (answers.MOST_BYTES + 1), decision.Unknown, "an answer of more than 4 MiB"),
]


@pytest.mark.parametrize(("said", "outcome", "words"), OUTCOMES, ids=["ok", "refused", "unknown", "cut", "too large"])
async def test_what_becomes_of_an_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Any, outcome: Any, words: str
) -> None:
    """And whatever it was, what was heard before is outdated."""
    async with started(tmp_path, monkeypatch) as it:
        place = ("ns", "demo-drive-0")
        it.common.inside.locals.read(place, "test")
        await fake_api.until(lambda: isinstance(it.common.inside.locals.peek(place), freshness.Fresh))
        it.said["container.join"] = said
        found = await it.tell(to=[])

        assert isinstance(found, outcome)
        assert getattr(found, "reason", "OrderRefused") == "OrderRefused"
        assert words in getattr(found, "message", "")
        assert isinstance(it.common.inside.locals.peek(place), freshness.Stale)


async def test_an_order_that_was_not_sent_is_told_by_the_runtime(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with started(tmp_path, monkeypatch) as it:
        it.said["container.join"] = errors.TransportError("gone", sent=False)
        with pytest.raises(errors.TransportError):
            await it.tell(to=[])


async def test_a_tool_that_fails_is_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with started(tmp_path, monkeypatch) as it:
        it.said["code"] = 1
        found = await it.tell(to=[])

        assert isinstance(found, decision.Unknown)
        assert "the tool ended with 1: it broke" in found.message


async def test_another_pod_is_not_told_what_was_meant_for_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with started(tmp_path, monkeypatch) as it:
        found = await it.tell(pod="p-9", to=[])

        assert isinstance(found, decision.Conflict)
        assert not [what for _, what, _ in it.asked if what == "container.join"]


async def test_a_pod_of_somebody_elses_is_never_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It bears the name and the label of a container that does not manage it."""
    async with started(tmp_path, monkeypatch) as it:
        await it.api.put("pods", "demo-drive-0", {"metadata": {"ownerReferences": []}})
        view = it.common.inside.watches.peek("ns")
        assert view is not None
        await fake_api.until(lambda: view.pod(it.container("demo-drive-0")) is None)

        assert isinstance(await it.tell(to=[]), decision.Conflict)


CLUSTER = ("ns", "demo")


async def test_who_hands_an_order_on_to_its_cluster_is_known_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cluster is another one after it, and not the container by which it was told."""
    async with started(tmp_path, monkeypatch) as it:
        inside, place = it.common.inside, ("ns", "demo-drive-0")
        it.said["cluster"] = {"guid": "g-1"}
        await it.api.put("wekacontainers", "demo-drive-0", {"status": {"clusterID": "g-1"}})
        await fake_api.until(lambda: bool(it.container("demo-drive-0").status.cluster_id))
        inside.locals.read(place, "test")
        inside.clusters.read(CLUSTER, "test")
        await fake_api.until(lambda: isinstance(inside.locals.peek(place), freshness.Fresh))
        await fake_api.until(lambda: isinstance(inside.clusters.peek(CLUSTER), freshness.Fresh))
        outcome = await it.clusters.operations["user.add"](it.cluster(), {"user": "u"})

        assert isinstance(outcome, decision.Ok)
        assert [("demo-drive-0", "user.add", {"user": "u"})] == [each for each in it.asked if each[1] == "user.add"]
        assert isinstance(inside.locals.peek(place), freshness.Fresh)
        assert isinstance(inside.clusters.peek(CLUSTER), freshness.Stale)


async def test_a_cluster_that_nobody_answers_for_is_unknown_after_a_few_polls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once is no reason to forget what it said; silence that lasts is no evidence that it is well."""
    async with started(tmp_path, monkeypatch) as it:
        inside = it.common.inside
        it.said["cluster"] = {"guid": "g-1"}
        inside.cluster(CLUSTER, "test")
        await fake_api.until(lambda: isinstance(inside.clusters.peek(CLUSTER), freshness.Fresh))
        it.said["cluster"] = errors.TransportError("gone", sent=False)
        found = []
        for missed in range(1, agents.MISSES + 1):
            inside.clusters.refresh(CLUSTER)
            await fake_api.until(lambda missed=missed: inside._misses.get(CLUSTER) == missed)
            await fake_api.until(lambda: not isinstance(inside.clusters.peek(CLUSTER), freshness.Fresh))
            found.append(inside.clusters.peek(CLUSTER))

        assert ["g-1"] * (agents.MISSES - 1) == [it.value.guid for it in found if isinstance(it, freshness.Stale)]
        await fake_api.until(lambda: isinstance(inside.clusters.peek(CLUSTER), freshness.Failed))
        it.said["cluster"] = {"guid": "g-1"}
        inside.clusters.refresh(CLUSTER)
        await fake_api.until(lambda: isinstance(inside.clusters.peek(CLUSTER), freshness.Fresh))
        assert CLUSTER not in inside._misses


async def test_a_cluster_that_can_not_be_asked_is_not_one_that_nobody_belongs_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where most of those who decide do not answer: the tool says so, and the words are told."""
    async with started(tmp_path, monkeypatch) as it:
        inside = it.common.inside
        it.said["cluster"] = {"fault": "Unknown", "message": "weka status: no answer within 10 s"}
        inside.cluster(CLUSTER, "test")
        await fake_api.until(lambda: CLUSTER in inside._misses)
        await fake_api.until(lambda: not freshness.is_unseen(inside.clusters.peek(CLUSTER)))
        found = inside.clusters.peek(CLUSTER)

        assert isinstance(found, freshness.Failed)
        assert "demo-drive-1: weka status: no answer within 10 s" == found.message
        it.said["cluster"] = {}
        inside.clusters.refresh(CLUSTER)
        await fake_api.until(lambda: isinstance(inside.clusters.peek(CLUSTER), freshness.Fresh))


async def set_state(it: Fixed, number: int, uid: str = "", **state: Any) -> None:
    """What the kubelet says of that container's pod; `uid`: it is another pod."""
    container = {"name": names.POD_CONTAINER, "ready": False, "state": state}
    metadata = {"metadata": {"uid": uid}} if uid else {}
    await it.api.put("pods", f"demo-drive-{number}", {**metadata, "status": {"containerStatuses": [container]}})


async def test_a_cluster_of_which_nobody_runs_is_unknown_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked at once when somebody does again."""
    async with started(tmp_path, monkeypatch) as it:
        inside = it.common.inside
        for number in (0, 1):
            await set_state(it, number, waiting={"reason": "ImagePullBackOff"})
        none = lambda: inside.cluster(CLUSTER, "test")  # noqa: E731
        await fake_api.until(lambda: isinstance(none(), freshness.Failed) and none().reason == "NoContainer")
        assert "no container of demo runs" == none().message

        it.said["cluster"] = {"guid": "g-1"}
        await set_state(it, 1, running={})
        await fake_api.until(lambda: isinstance(none(), freshness.Fresh))


async def test_another_pod_of_a_container_is_asked_as_soon_as_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not at the next poll, which may be far."""
    async with started(tmp_path, monkeypatch) as it:
        inside = it.common.inside
        told = lambda: inside.local(it.container("demo-drive-0"), "test")  # noqa: E731
        await fake_api.until(lambda: isinstance(told(), freshness.Fresh))
        it.said["local"] = {"pod": "p-7"}
        await set_state(it, 0, "p-7", running={})

        await fake_api.until(lambda: isinstance(told(), freshness.Fresh) and told().value.pod == "p-7")


async def test_a_container_that_was_started_again_is_asked_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the same pod, by its kubelet: what it said before was another run's."""
    async with started(tmp_path, monkeypatch) as it:
        inside = it.common.inside
        told = lambda: inside.local(it.container("demo-drive-0"), "test")  # noqa: E731
        await fake_api.until(lambda: isinstance(told(), freshness.Fresh))
        it.said["local"] = {"pod": "p-0", "internal": "STEM"}
        await set_state(it, 0, "p-0", running={"startedAt": "2026-01-02T00:00:00Z"})

        await fake_api.until(lambda: isinstance(told(), freshness.Fresh) and told().value.internal == "STEM")


async def test_a_hundred_containers_at_rest_cost_a_tenth_of_flat_polling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is run in pods in ten minutes, two for each second; a look into each every 30 s would be 2,000 calls.

    A container that is not ready is asked as often as before, and as soon as that is known.
    """
    second, count = 1 / 120, 100
    poll = config.Poll(5.0 * second, 60.0 * second, 600.0 * second)
    async with started(tmp_path, monkeypatch, msgspec.structs.replace(SETTINGS, poll=poll)) as it:
        ready = {"type": "Ready", "status": "True", "reason": "Ready", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        stands = {"clusterID": "g-1", "conditions": [ready]}
        it.said["cluster"] = {"guid": "g-1"}
        for number in range(count):
            await put_container(it.api, number, **stands)
        await it.api.put("wekaclusters", "demo", {"status": {"conditions": [ready]}})
        names_ = [f"demo-drive-{number}" for number in range(count)]
        await fake_api.until(lambda: all(it.containers.find("ns", name) for name in names_))
        await fake_api.until(lambda: all(it.container(name).status.cluster_id for name in names_))
        await fake_api.until(lambda: it.cluster().status.conditions != ())

        def look() -> None:
            it.clusters.observe(it.cluster(), NOW)
            for name in names_:
                it.containers.observe(it.container(name), NOW)

        look()
        peek, known = it.common.inside.locals.peek, set[str]()

        def all_were_known() -> bool:
            """At some time each: at this pace answers age while others are asked, where the machine is busy."""
            known.update(name for name in names_ if isinstance(peek(("ns", name)), freshness.Fresh))
            return len(known) == count

        await fake_api.until(all_were_known, within=300)
        before = len(it.asked)
        began = asyncio.get_running_loop().time()
        await fake_api.until(lambda: asyncio.get_running_loop().time() - began >= 600 * second, within=60)
        asked = [what for _, what, _ in it.asked[before:]]

        assert 0 < asked.count("cluster") <= 10
        assert 0 < asked.count("local") <= count
        assert len(asked) <= 2000 / 10

        await it.api.put("wekacontainers", names_[0], {"status": {"conditions": [{**ready, "status": "False"}]}})
        await fake_api.until(lambda: it.container(names_[0]).status.conditions[0].status == "False")
        before = len(it.asked)
        look()

        def looked_into(name: str) -> int:
            return [pod for pod, what, _ in it.asked[before:] if what == "local"].count(name)

        await fake_api.until(lambda: looked_into(names_[0]) >= 10, within=300)
        assert max(looked_into(name) for name in names_[1:]) <= looked_into(names_[0]) / 2


async def test_a_cluster_is_told_by_another_than_who_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with started(tmp_path, monkeypatch) as it:
        for number in (0, 1):
            status = {"status": {"clusterID": "g-1", "containerID": number}}
            await it.api.put("wekacontainers", f"demo-drive-{number}", status)
        await fake_api.until(lambda: all(it.container(f"demo-drive-{n}").status.cluster_id for n in (0, 1)))
        await it.tell("member.deactivate", host=0)

        assert [("demo-drive-1", "member.deactivate", {"pod": "p-0", "host": 0})] == [
            each for each in it.asked if each[1] == "member.deactivate"
        ]


def texts(secret: dict[str, Any]) -> dict[str, str]:
    return {key: base64.b64decode(text).decode() for key, text in secret["data"].items()}


async def test_logins_are_made_once_and_fit_together_after_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The people's password is the one that pods make their user with, also where one Secret was made before a kill."""
    async with started(tmp_path, monkeypatch) as it:
        make, cluster = it.clusters.operations["login.make"], it.cluster()
        own, people = names.operator_secret(cluster.metadata.uid), names.user_secret("demo")

        assert isinstance(await make(cluster, {"named": ""}), decision.Ok)
        first = it.api.one("secrets", own), it.api.one("secrets", people)
        assert {"username", "password", "join-secret", "org", "user-password"} == texts(first[0]).keys()
        assert texts(first[0])["user-password"] == texts(first[1])["password"]
        assert "moorage.dev/applied" not in json.dumps(first)

        await it.api.drop("secrets", people)
        assert isinstance(await make(cluster, {"named": ""}), decision.Ok)
        assert first[0] == it.api.one("secrets", own)
        assert texts(first[1]) == texts(it.api.one("secrets", people))
        assert {RIGHTS.user("ns")} == {asked.user for asked in it.api.writes("secrets")}


@pytest.mark.parametrize(
    ("labels", "listed", "opened"),
    [
        ({names.OPENED: "privileged"}, (), True),
        ({names.OPENED: "true"}, (), False),
        ({}, (), False),
        ({names.OPENED: "privileged"}, ("other",), False),
        ({names.OPENED: "privileged"}, ("ns",), True),
    ],
)
async def test_a_namespace_is_opened_by_its_label(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    labels: dict[str, str],
    listed: tuple[str, ...],
    opened: bool,
) -> None:
    settings = msgspec.structs.replace(SETTINGS, namespaces=listed)
    async with started(tmp_path, monkeypatch, settings) as it:
        assert it.common.places.allow("ns") is (listed in ((), ("ns",)))
        await it.api.put("namespaces", "ns", {"metadata": {"labels": labels}}, namespace="")
        await fake_api.until(lambda: it.common.places.allow("ns") is opened)


NODES: list[tuple[dict[str, str], tuple[str, ...], str]] = [
    ({names.DRIVES: '["a","b","a"]'}, ("a", "b"), ""),
    ({names.DRIVES: '[{"serial_id":"a"},{"serial":"b"}]'}, ("a", "b"), ""),
    ({}, (), ""),
    ({names.DRIVES: "{"}, (), "it is no JSON"),
    ({names.DRIVES: "7"}, (), "it is no list"),
    ({names.DRIVES: '["a b"]'}, (), "an entry has no serial"),
    ({names.DRIVES: "[{}]"}, (), "an entry has no serial"),
    ({names.DRIVES: json.dumps([f"s{it}" for it in range(600)])}, (), "at most 512 drives"),
    ({names.DRIVES: "[" * 100_000}, (), "it is no JSON"),
    ({names.DRIVES: '["a"]', names.BLOCKED_DRIVES: "x"}, (), f"the annotation {names.BLOCKED_DRIVES} can't be read"),
]


@pytest.mark.parametrize(("annotations", "drives", "fault"), NODES)
def test_what_a_nodes_annotations_say(annotations: dict[str, str], drives: tuple[str, ...], fault: str) -> None:
    """Where they can't be read nothing is taken, and it is told why."""
    found = shared.node_seen(shared.Node(meta.ObjectMeta(name="n1", annotations=annotations)))

    assert drives == found.drives
    assert fault in found.fault
    assert bool(fault) == bool(found.fault)


def test_a_failure_domain_is_short_and_its_own() -> None:
    labels = {"rack": "r/1", "room": "a-very-long-name-of-a-room"}
    node = shared.Node(meta.ObjectMeta(name="n1", labels=labels))

    assert "r-1" == shared.node_seen(node, ("rack",)).failure_domain
    assert 16 == len(shared.node_seen(node, ("rack", "room")).failure_domain)
    assert "" == shared.node_seen(node, ("other",)).failure_domain
