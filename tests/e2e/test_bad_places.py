"""Releases where they must not be: others' namespaces and names, and places that end while something is in them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from . import conftest, tools, trouble

Make = conftest.Make

TRICKY = {"chart": "tricky", "cluster": "registry"}


@pytest.mark.parametrize("reference", ["Kube-System", "kube-tenants", "Moorage-System"])
def test_the_clusters_own_namespaces_are_no_tenants(reference: str, collector: Make, moorage: tools.Cluster) -> None:
    """Whether they exist or not; the Collector can be deleted again."""
    before = _objects(moorage, reference.lower())
    one = collector(**TRICKY, tenant=reference)

    message = one.wait_reason("ForbiddenNamespace")

    assert f"namespace {reference.lower()} is no tenant's; use another tenant.reference" in message
    one.delete()
    assert _objects(moorage, reference.lower()) == before


def test_a_neighbours_namespace_admits_whom_it_lists(collector: Make, moorage: tools.Cluster) -> None:
    """An existing namespace without the annotation, then with another's; its administrator's word heals."""
    tenant = trouble.tenant(moorage, trouble.own("Neighbour"), admits="")
    one = collector(**TRICKY, tenant=tenant)

    message = one.wait_reason("NotAdmitted")

    assert f"namespace {one.tenant} does not admit Collectors of namespace default" in message
    assert f"an administrator of {one.tenant} may add default to its annotation moorage.dev/collectors-from" in message
    assert one.leftovers() == []
    trouble.tenant(moorage, trouble.own("Neighbour"), admits="somebody-else")
    trouble.looked_at_again(one, times=1)
    assert one.condition("Ready")["reason"] == "NotAdmitted"
    trouble.tenant(moorage, trouble.own("Neighbour"), admits="somebody-else, default")
    one.wait_ready()


def test_a_claimed_release_names_its_owner_and_is_free_when_that_is_gone(collector: Make) -> None:
    """Two Collectors that want the same release, though their fields differ."""
    tenant = trouble.own("Claimed")
    first = collector({"data": {"said": "first"}}, **TRICKY, instance="a-b", tenant=tenant)
    first.wait_ready()

    second = collector({"data": {"said": "second"}}, chart="tricky-a", cluster="registry", instance="b", tenant=tenant)

    message = second.wait_reason("Claimed")
    assert f"release tricky-a-b in namespace {tenant.lower()} is claimed by Collector default/{first.name}" in message
    assert "rename one of the two, or delete the other" in message
    second.delete()
    trouble.untouched(first, revisions=1)

    third = collector({"data": {"said": "third"}}, **TRICKY, instance="a-b", tenant=tenant)
    third.wait_reason("Claimed")
    first.delete()
    third.wait_ready()
    assert third.cluster.get("configmap", "tricky-a-b", "-n", tenant.lower())["data"]["said"] == "third"


def test_a_release_made_by_hand_is_taken_over_only_when_asked(collector: Make, moorage: tools.Cluster) -> None:
    """helm install by a person came first."""
    tenant = trouble.tenant(moorage, trouble.own("ByHand"))
    chart = str(conftest.CHARTS / "tricky")
    moorage.helm("install", "tricky-main", chart, "-n", tenant.lower(), "--set", "data.said=by-hand")
    one = collector({"data": {"said": "moorage"}}, **TRICKY, tenant=tenant)

    message = one.wait_reason("ForeignRelease")

    assert f"release tricky-main exists in namespace {one.tenant} and was not made by moorage" in message
    assert "moorage.dev/adopt=true" in message
    assert _said(one) == "by-hand"
    one.annotate(adopt="true")
    one.wait_ready()
    assert _said(one) == "moorage"
    assert [each["status"] for each in one.history()] == ["superseded", "deployed"]


def test_an_object_of_somebody_else_is_not_taken_over(collector: Make, moorage: tools.Cluster) -> None:
    """An object of that name exists and bears no mark of this release; helm refuses, its words name it."""
    tenant = trouble.tenant(
        moorage, trouble.own("Occupied"), objects=(trouble.config_map("tricky-main", {"said": "mine"}),)
    )
    one = collector({}, **TRICKY, tenant=tenant)

    message = one.wait_reason("UpgradeFailed")

    assert "AlreadyOwned" in message
    assert f'ConfigMap "tricky-main" in namespace "{one.tenant}" exists and cannot be imported' in message
    one.delete()
    assert one.leftovers() == ["ConfigMap/tricky-main"]
    assert _said(one) == "mine"


def test_a_namespace_that_ends_is_waited_for_and_made_anew(collector: Make, moorage: tools.Cluster) -> None:
    """Nothing can be made in it meanwhile; afterwards the Collector is released again."""
    one = collector(trouble.pod(), **TRICKY)
    one.wait_ready()
    moorage.apply(trouble.config_map("stays", namespace=one.tenant, finalizers=["tests.moorage.dev/stays"]))
    first = moorage.get("namespace", one.tenant)["metadata"]["uid"]
    moorage.kubectl("delete", "namespace", one.tenant, "--wait=false")

    message = one.wait_reason("NamespaceEnding")

    assert message == f"namespace {one.tenant} is being deleted"
    _free(moorage, one.tenant)
    tools.wait("another namespace", lambda: (moorage.get("namespace", one.tenant) or _NONE)["metadata"]["uid"] != first)
    one.wait_ready()
    assert len(one.history()) == 1


def test_a_collector_whose_namespace_ends_can_be_deleted(collector: Make, moorage: tools.Cluster) -> None:
    """It goes with its namespace, and says what it waits for."""
    one = collector({}, **TRICKY)
    one.wait_ready()
    moorage.apply(trouble.config_map("stays", namespace=one.tenant, finalizers=["tests.moorage.dev/stays"]))
    moorage.kubectl("delete", "namespace", one.tenant, "--wait=false")
    moorage.kubectl("delete", "collector", one.name, "--wait=false")

    assert one.wait_reason("NamespaceEnding") == f"namespace {one.tenant} is being deleted"

    _free(moorage, one.tenant)
    tools.wait("the Collector is gone", lambda: one.object() is None)
    tools.wait("the namespace is gone", lambda: moorage.get("namespace", one.tenant) is None)


def test_a_collector_restored_from_a_backup_finds_its_release(collector: Make, moorage: tools.Cluster) -> None:
    """With a new uid and without a status, while moorage was away: nothing is rolled, no revision is made."""
    one = collector(trouble.pod(), **TRICKY)
    body = one.wait_ready()
    pods = moorage.items("pods", "-n", one.tenant)
    tools.stop_operator(moorage)
    try:
        moorage.kubectl("patch", "collector", one.name, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
        moorage.kubectl("delete", "collector", one.name)
        kept = {key: body["metadata"][key] for key in ("name", "namespace", "annotations", "finalizers")}
        moorage.kubectl("create", "-f", "-", stdin=json.dumps({**body, "metadata": kept, "status": None}))
    finally:
        tools.start_operator(moorage)

    restored = one.wait_ready()
    assert restored["status"]["release"]["revision"] == 1
    assert restored["status"]["chart"]["version"] == "1.0.0"
    trouble.untouched(one, revisions=1)
    assert [p["metadata"]["uid"] for p in moorage.items("pods", "-n", one.tenant)] == [
        p["metadata"]["uid"] for p in pods
    ]
    one.delete()
    assert one.leftovers() == []


def test_a_lost_status_is_found_again(collector: Make, moorage: tools.Cluster) -> None:
    """The same object, its status wiped."""
    one = collector({}, **TRICKY)
    before = one.wait_ready()["status"]

    wiped = json.dumps([{"op": "replace", "path": "/status", "value": {}}])  # whatever is written meanwhile
    moorage.kubectl("patch", "collector", one.name, "--subresource=status", "--type=json", "-p", wiped)

    after = one.wait_ready()["status"]
    assert {k: after[k] for k in ("chart", "release", "good")} == {k: before[k] for k in ("chart", "release", "good")}
    assert len(one.history()) == 1


_NONE: dict[str, Any] = {"metadata": {"uid": ""}}


def _free(cluster: tools.Cluster, namespace: str) -> None:
    """Let go of what holds the namespace."""
    cluster.kubectl(
        "patch", "configmap", "stays", "-n", namespace, "--type=merge", "-p", '{"metadata":{"finalizers":null}}'
    )


def _said(one: tools.Collector) -> str:
    return str(one.cluster.get("configmap", one.release, "-n", one.tenant)["data"]["said"])


def _objects(cluster: tools.Cluster, namespace: str) -> list[tuple[str, str]]:
    """What is in a namespace, and whether it moved; events and leases aside."""
    kinds = "configmaps,secrets,serviceaccounts,services,deployments,rolebindings,roles"
    found = cluster.items(kinds, "-n", namespace)
    return sorted((each["kind"], each["metadata"]["name"]) for each in found)
