"""Whose release it is and where: claims, admitted namespaces, adoption, pause, restore, and ways to leave."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from . import conftest, tools

_numbers = itertools.count(os.getpid() * 1000)


def plain(make: conftest.Make, values: dict[str, Any] | None = None, **more: Any) -> tools.Collector:
    """A Collector whose release is one ConfigMap."""
    return make(values, **{"chart": "plain", "cluster": "registry"} | more)


@pytest.fixture
def namespace(moorage: tools.Cluster) -> Iterator[str]:
    """A namespace of somebody else, that admits nobody."""
    name = f"neighbour-{next(_numbers)}"
    moorage.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    moorage.kubectl("delete", "namespace", name, "--ignore-not-found")


@pytest.fixture
def stopped(moorage: tools.Cluster) -> Iterator[None]:
    """The operator is down until `tools.start_operator`, which the end of the test calls at the latest."""
    yield
    tools.start_operator(moorage)


# --- one owner per release ------------------------------------------------------------


def test_of_two_that_claim_one_release_the_second_is_blocked(collector: conftest.Make) -> None:
    """plain + two-x and plain-two + x are both the release plain-two-x. The second heals when the first goes."""
    shared = f"Shared{next(_numbers)}"
    first = plain(collector, instance="two-x", tenant=shared)
    first.wait_ready()

    second = plain(collector, chart="plain-two", instance="x", tenant=shared)

    assert first.release == second.release
    message = second.wait_reason("Claimed")
    assert first.name in message
    assert "True" == second.condition("Stalled")["status"]
    assert ["plain-0.1.0"] == [each["chart"] for each in first.history()]

    first.delete()
    second.wait_ready()
    assert "plain-two" == first.cluster.get("configmap", second.release, "-n", second.tenant)["data"]["chart"]


def test_a_blocked_claimant_leaves_without_a_trace(collector: conftest.Make) -> None:
    """Its deletion leaves the owner's release and rights as they are."""
    shared = f"Shared{next(_numbers)}"
    first = plain(collector, instance="two-x", tenant=shared)
    first.wait_ready()
    second = plain(collector, chart="plain-two", instance="x", tenant=shared)
    second.wait_reason("Claimed")

    second.delete()

    first.wait_ready()
    assert 1 == len(first.history())
    assert first.cluster.get("rolebinding", "moorage-collector", "-n", first.tenant)


def test_a_neighbours_namespace_is_refused_until_it_admits(
    collector: conftest.Make, moorage: tools.Cluster, namespace: str, account: str
) -> None:
    """Nothing is made there before; when its administrator admits Collectors of `default`, it goes on by itself."""
    mark = tools.audit_end()
    one = plain(collector, tenant=namespace)

    assert "does not admit Collectors of namespace default" in one.wait_reason("NotAdmitted")
    assert "True" == one.condition("Stalled")["status"]
    assert [] == [e for e in tools.writes(tools.audit(mark), account) if e["objectRef"].get("namespace") == namespace]
    assert [] == one.leftovers()

    moorage.kubectl("annotate", "namespace", namespace, "moorage.dev/collectors-from=default")
    one.wait_ready()


def test_a_foreign_release_is_adopted_only_on_request(
    collector: conftest.Make, moorage: tools.Cluster, namespace: str
) -> None:
    """What a person installed with helm is refused, then taken over in place."""
    moorage.kubectl("annotate", "namespace", namespace, "moorage.dev/collectors-from=default")
    moorage.helm("install", "plain-main", str(conftest.CHARTS / "plain"), "-n", namespace, "--set", "word=theirs")
    uid = moorage.get("configmap", "plain-main", "-n", namespace)["metadata"]["uid"]

    one = plain(collector, tenant=namespace)

    assert "was not made by moorage" in one.wait_reason("ForeignRelease")
    assert "theirs" == moorage.get("configmap", "plain-main", "-n", namespace)["data"]["word"]

    one.annotate(adopt="true")
    one.wait_ready()
    found = moorage.get("configmap", "plain-main", "-n", namespace)
    assert (uid, "hello") == (found["metadata"]["uid"], found["data"]["word"])
    assert 2 == len(one.history())


# --- annotations ------------------------------------------------------------


def test_paused_it_tells_but_does_nothing(collector: conftest.Make, account: str) -> None:
    """Paused=True, Ready stays honest, and what was held back is done afterwards."""
    one = plain(collector)
    one.wait_ready()
    one.annotate(paused="true")
    tools.wait("Paused=True", lambda: one.condition("Paused").get("status") == "True")
    mark = tools.quiet(account)

    one.edit(collector={"configuration": tools.configuration({"word": "new"})})
    one.cluster.kubectl("patch", "configmap", one.release, "-n", one.tenant, "-p", '{"data": {"word": "mine"}}')

    def told() -> bool:
        status = one.object()["status"]
        return status["observedGeneration"] == one.object()["metadata"]["generation"] and (
            one.condition("Ready")["status"] == "False" and one.condition("Drifted")["status"] == "True"
        )

    tools.wait("the edit is told", told)
    tools.quiet(account)
    assert [] == tools.told(tools.outside(tools.writes(tools.audit(mark), account)))
    assert 1 == len(one.history())

    one.annotate(paused=None)
    tools.wait(
        "the new word", lambda: one.cluster.get("configmap", one.release, "-n", one.tenant)["data"]["word"] == "new"
    )
    one.wait_ready()
    assert "False" == one.condition("Paused").get("status", "False")


def test_reconcile_at_is_heard_once(collector: conftest.Make) -> None:
    """Its value comes back in status; nothing that is well is done again."""
    one = plain(collector)
    one.wait_ready()

    one.annotate(reconcile_at="now")

    tools.wait("the echo", lambda: one.object()["status"].get("reconciledAt") == "now")
    one.wait_ready()
    assert 1 == len(one.history())


def test_orphaned_the_release_stays(collector: conftest.Make, moorage: tools.Cluster) -> None:
    """With on-delete=Orphan the claim and the rights go; the release is helm's alone, and can be adopted again."""
    one = plain(collector)
    one.wait_ready()
    one.annotate(on_delete="Orphan")

    one.delete()

    assert ["deployed"] == [each["status"] for each in one.history()]
    assert moorage.get("configmap", one.release, "-n", one.tenant)
    assert [] == [name for name in one.leftovers() if "release." in name and "helm" not in name]
    assert not moorage.get("rolebinding", "moorage-collector", "-n", one.tenant)


# --- leaving, whatever happened before ------------------------------------------------------------


def test_restored_from_a_backup_it_finds_its_release(
    collector: conftest.Make, moorage: tools.Cluster, stopped: None
) -> None:
    """Without status, and with a new uid: no new revision, no new pod."""
    one = collector()
    one.wait_ready()
    pods = [
        (pod["metadata"]["uid"], pod["status"]["containerStatuses"][0]["restartCount"])
        for pod in moorage.items("pods", "-n", one.tenant)
    ]
    saved = one.object()
    tools.stop_operator(moorage)
    where = [one.name, "-n", one.namespace]
    moorage.kubectl(
        "patch", "collector", *where, "--type=json", "-p", '[{"op": "remove", "path": "/metadata/finalizers"}]'
    )
    moorage.kubectl("delete", "collector", *where)
    kept = {key: saved["metadata"][key] for key in ("name", "namespace", "annotations", "finalizers")}

    moorage.apply({key: saved[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": kept})
    tools.start_operator(moorage)

    restored = one.wait_ready()
    assert saved["metadata"]["uid"] != restored["metadata"]["uid"]
    assert 1 == len(one.history())
    assert pods == [
        (pod["metadata"]["uid"], pod["status"]["containerStatuses"][0]["restartCount"])
        for pod in moorage.items("pods", "-n", one.tenant)
    ]
    assert saved["status"]["chart"] == restored["status"]["chart"]

    one.delete()
    assert [] == one.leftovers()


def test_deleted_while_the_operator_was_down_it_is_cleaned_up_later(
    collector: conftest.Make, moorage: tools.Cluster, stopped: None
) -> None:
    """The finalizer waits for it."""
    one = plain(collector)
    one.wait_ready()
    tools.stop_operator(moorage)
    moorage.kubectl("delete", "collector", one.name, "-n", one.namespace, "--wait=false")

    tools.start_operator(moorage)

    tools.wait("its end", lambda: not one.object())
    assert [] == one.leftovers()


def test_without_its_release_records_nothing_is_left_either(
    collector: conftest.Make, moorage: tools.Cluster, stopped: None
) -> None:
    """The inventory in the claim says what there was."""
    one = collector({"pdb": {"enabled": True}, "serviceAccount": {"create": True}})
    one.wait_ready()
    tools.stop_operator(moorage)
    moorage.kubectl("delete", "collector", one.name, "-n", one.namespace, "--wait=false")
    moorage.kubectl("delete", "secrets", "-n", one.tenant, "-l", "owner=helm")
    assert "Deployment/collector-main" in one.leftovers()

    tools.start_operator(moorage)

    tools.wait("its end", lambda: not one.object())
    tools.wait("the pods' end", lambda: not moorage.items("pods", "-n", one.tenant))
    assert [] == one.leftovers()


def test_a_namespace_deleted_with_everything_in_it_ends(collector: conftest.Make, moorage: tools.Cluster) -> None:
    """Collector and release in one namespace: neither waits for the other, and the rights go with them."""
    name = f"all-in-one-{os.getpid()}"
    moorage.apply(
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "annotations": {"moorage.dev/collectors-from": name}},
        }
    )
    one = plain(collector, namespace=name, tenant=name)
    one.wait_ready()

    moorage.kubectl("delete", "namespace", name, tools.HANGS)

    assert moorage.get("namespace", name) is None


def test_a_deleted_tenants_namespace_is_made_anew(collector: conftest.Make, moorage: tools.Cluster) -> None:
    """A Collector elsewhere still wants its release; deleted meanwhile, it ends."""
    one = plain(collector)
    one.wait_ready()
    before = moorage.get("namespace", one.tenant)["metadata"]["uid"]

    moorage.kubectl("delete", "namespace", one.tenant, tools.HANGS)

    tools.wait(
        "a new namespace",
        lambda: (moorage.get("namespace", one.tenant) or {"metadata": {"uid": before}})["metadata"]["uid"] != before,
    )
    one.wait_ready()
    assert ["deployed"] == [each["status"] for each in one.history()]


def test_hook_objects_are_removed_with_the_release(collector: conftest.Make, moorage: tools.Cluster) -> None:
    """Helm leaves the objects of hooks without a delete policy behind; moorage's inventory names them."""
    one = collector(chart="hooks", cluster="registry")
    one.wait_ready()
    left = one.leftovers()
    assert f"ConfigMap/{one.release}-before" in left
    assert f"Job/{one.release}-after" in left

    one.delete()

    assert [] == one.leftovers()
    tools.wait("the hook's pod ends", lambda: not moorage.items("pods", "-n", one.tenant))


def test_an_objects_finalizer_is_waited_for(collector: conftest.Make, moorage: tools.Cluster) -> None:
    """A child that somebody holds back keeps the Collector, which says so; once it is let go, all ends."""
    one = plain(collector)
    one.wait_ready()
    where = ["configmap", one.release, "-n", one.tenant, "--type=json"]
    moorage.kubectl(
        "patch",
        *where,
        "-p",
        json.dumps([{"op": "add", "path": "/metadata/finalizers", "value": ["example.com/hold"]}]),
    )

    moorage.kubectl("delete", "collector", one.name, "-n", one.namespace, "--wait=false")

    tools.wait(
        "word of what holds it",
        lambda: (
            f"ConfigMap {one.tenant}/{one.release} is being deleted" in one.condition("Ready").get("message", "")
            and "held by its finalizer example.com/hold" in one.condition("Ready")["message"]
        ),
    )
    moorage.kubectl("patch", *where, "-p", json.dumps([{"op": "remove", "path": "/metadata/finalizers"}]))
    tools.wait("its end", lambda: not one.object())
    assert [] == one.leftovers()
