"""What goes wrong around a Collector: moorage's own parts missing, and charts that render something else each time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from . import conftest, outside, tools, trouble

Make = conftest.Make

LAMP = "lamps.tests.moorage.dev"


def test_without_its_helm_binary_moorage_says_so(collector: Make, moorage: tools.Cluster, tmp_path: Path) -> None:
    """It is its administrator's to mend, and passes with it; what runs is still looked after."""
    running = collector(trouble.pod(), chart="tricky", cluster="registry")
    running.wait_ready()
    missing = str(tmp_path / "no-helm")
    said = f"{missing} can't be run: No such file or directory"
    with outside.instead(moorage, tmp_path, charts=tools.ROOT / "charts", helm=missing):
        one = collector({"replicas": 0})
        assert said in one.wait_reason("BinaryMissing")
        assert one.condition("Stalled")["status"] == "True"
        assert "moorage's administrator" in one.object()["status"]["progress"]["next"]
        another = collector({}, chart="tricky", cluster="registry")
        message = another.wait_reason("ChartUnreachable")
        assert said in message
        assert "is the registry up?" not in message

        moorage.kubectl("delete", "deployment", running.release, "-n", running.tenant)
        tools.wait("it is put back", lambda: moorage.get("deployment", running.release, "-n", running.tenant))
        running.wait_ready()
    for each in (one, another, running):
        each.wait_ready()
        assert len(each.history()) == 1


def test_a_kind_that_is_removed_takes_its_releases_along_and_works_again_when_it_is_back(
    collector: Make, moorage: tools.Cluster
) -> None:
    """Deleting the CRD deletes every Collector, properly; moorage lives on and needs no restart."""
    one = collector(trouble.pod(), chart="tricky", cluster="registry")
    one.wait_ready()
    kept = _definition(moorage, "collectors.example.com")
    before, noticed = _processes(moorage), _told(moorage, "watch in trouble")

    moorage.kubectl("delete", "crd", "collectors.example.com", tools.HANGS)

    assert one.history() == []
    assert one.leftovers() == []
    (pod,) = before
    healthz = f"/api/v1/namespaces/{tools.NAMESPACE}/pods/{pod}:8080/proxy/healthz"
    tools.wait("the watch has noticed", lambda: _told(moorage, "watch in trouble") > noticed)
    assert moorage.kubectl("get", "--raw", healthz) == "ok"

    moorage.kubectl("create", "-f", "-", stdin=json.dumps(kept))
    moorage.kubectl("wait", "crd/collectors.example.com", "--for=condition=Established", tools.HANGS)
    collector({}, chart="tricky", cluster="registry").wait_ready()
    assert _processes(moorage) == before


def test_charts_that_render_anew_each_time_settle(collector: Make, moorage: tools.Cluster) -> None:
    """Random values, `lookup` and Capabilities: one revision over looks, a resync and a restart; then one per cause."""
    charts = ("random", "lookingup", "capable")
    random, looking, capable = made = [collector({}, chart=chart, cluster="registry") for chart in charts]
    for one in made:
        one.wait_ready()
    passwords = [_password(random), _password(looking)]

    for one in made:
        trouble.looked_at_again(one)
    trouble.restart(moorage)
    for one in made:
        trouble.looked_at_again(one)
        one.wait_ready()
        assert len(one.history()) == 1, one.release
    assert [_password(random), _password(looking)] == passwords

    for one in (random, looking):
        one.edit(collector={"configuration": tools.configuration({"note": "changed"})})
        one.wait_ready()
        trouble.looked_at_again(one)
        assert len(one.history()) == 2, one.release
    assert _password(random) != passwords[0]
    assert _password(looking) == passwords[1]

    moorage.kubectl("create", "-f", "-", stdin=json.dumps(_lamps("others.moorage.dev")))
    moorage.kubectl("create", "-f", "-", stdin=json.dumps(_lamps("tests.moorage.dev")))
    try:
        tools.wait("the new kind is served", lambda: moorage.get(LAMP))
        trouble.restart(moorage)  # capabilities are read anew each five minutes, and at the start
        tools.wait("the chart sees the new kind", lambda: _lit(capable) == "true")
        assert len(capable.history()) == 2
    finally:
        moorage.kubectl("delete", "crd", LAMP, "lamps.others.moorage.dev")


def _password(one: tools.Collector) -> str:
    return str(one.cluster.get("secret", one.release, "-n", one.tenant)["data"]["password"])


def _lit(one: tools.Collector) -> str:
    return str(one.cluster.get("configmap", one.release, "-n", one.tenant)["data"]["lamps"])


def _processes(cluster: tools.Cluster) -> dict[str, tuple[str, int]]:
    """The operator's pods with their uids and restarts."""
    pods = cluster.items("pods", "-n", tools.NAMESPACE, "-l", "app.kubernetes.io/name=moorage")
    return {
        pod["metadata"]["name"]: (pod["metadata"]["uid"], pod["status"]["containerStatuses"][0]["restartCount"])
        for pod in pods
    }


def _told(cluster: tools.Cluster, words: str) -> int:
    """How often the running operator has said that."""
    return cluster.kubectl("logs", "-n", tools.NAMESPACE, "deploy/moorage", "--tail=-1").count(words)


def _definition(cluster: tools.Cluster, name: str) -> dict[str, Any]:
    """A CRD as it was created."""
    found = cluster.get("crd", name)
    kept = {key: found["metadata"][key] for key in ("name", "labels", "annotations")}
    return {"apiVersion": found["apiVersion"], "kind": found["kind"], "metadata": kept, "spec": found["spec"]}


def _lamps(group: str) -> dict[str, Any]:
    """A CRD of a kind that nobody looks after."""
    schema = {"openAPIV3Schema": {"type": "object"}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"lamps.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
        },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "lamps", "singular": "lamp", "kind": "Lamp", "listKind": "LampList"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }
