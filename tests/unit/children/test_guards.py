"""What is looked at live right before an act."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api import builtin, meta
from moorage.children import reading
from moorage.children.live import guards
from moorage.kube import client as kube_client
from tests.unit.children.depots import LABEL
from tests.unit.runtime import fake_api

DEPOT = meta.ObjectMeta(name="d", namespace="ns", uid="uid-d")
MINE: dict[str, Any] = {"labels": {LABEL: "d"}}


def owned(uid: str) -> dict[str, Any]:
    return {"ownerReferences": [{"apiVersion": "v1", "kind": "Depot", "name": "d", "uid": uid}]}


NAMES: dict[str, tuple[dict[str, Any] | None, str]] = {
    # id: (the metadata of the Service d, why it is not ours to make)
    "nobody has it": (None, ""),
    "it is of this depot": (MINE | owned("uid-d"), ""),
    "it is of this depot, restored without its owner": (MINE, ""),
    "a user's own": ({}, "Service d is there already and is not this depot's; delete it, or name the depot otherwise"),
    "another depot's": ({"labels": {LABEL: "e"}}, "Service d is there already and is not this depot's"),
    "what is left of a depot of that name": (MINE | owned("uid-of-old"), "already and belongs to Depot d; delete"),
}


@pytest.mark.parametrize(("there", "says"), NAMES.values(), ids=NAMES)
async def test_what_is_somebody_elses_is_not_taken_over(there: dict[str, Any] | None, says: str) -> None:
    api = fake_api.FakeApi()
    if there is not None:
        await api.put("services", "d", {"metadata": there})
    why = await guards.name_is_free(kube_client.Client(api), builtin.SERVICE, "d", DEPOT, label=LABEL, called="depot")

    assert says in why
    assert bool(says) == bool(why)


WORKS = {"containerStatuses": [{"name": "depot", "ready": True, "state": {"running": {}}}]}
STARTS = {"containerStatuses": [{"name": "depot", "ready": False, "state": {"running": {}}}]}
CRASHES = {"containerStatuses": [{"name": "depot", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}
PODS: dict[str, tuple[dict[str, Any] | None, str, str, str]] = {
    # id: (its status now, the uid that was seen, what it is at, why it may not go)
    "it is gone": (None, "uid-0", "busy", ""),
    "it is another by now": (WORKS, "uid-of-old", "busy", ""),
    "it came up": (WORKS, "uid-0", "", "d-0 has come up meanwhile"),
    "it never started": ({}, "uid-0", "busy", ""),
    "it crashes": (CRASHES, "uid-0", "busy", ""),
    "it runs, and is at nothing": (STARTS, "uid-0", "", ""),
    "it runs, and is at something": (STARTS, "uid-0", "busy", "busy"),
}


@pytest.mark.parametrize(("status", "uid", "work", "says"), PODS.values(), ids=PODS)
async def test_a_pod_goes_only_if_nobody_is_served_by_it(
    status: dict[str, Any] | None, uid: str, work: str, says: str
) -> None:
    api = fake_api.FakeApi()
    if status is not None:
        await api.put("pods", "d-0", {"metadata": {"uid": "uid-0"}, "status": status})

    async def at_work() -> str:
        return work

    ref = builtin.POD.ref("ns", "d-0", uid)
    found = await guards.pod_is_expendable(kube_client.Client(api), ref, lambda live: reading.pod(live, 0), at_work)

    assert says == found
