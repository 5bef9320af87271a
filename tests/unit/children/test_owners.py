"""Whose an object is, and what pods of a StatefulSet are called."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.children import ordinals, owners
from tests.unit.children.depots import LABEL


def owner(uid: str, *, kind: str = "Depot", name: str = "d", controller: bool = True) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "name": name, "uid": uid, "controller": controller}


def made(*its_owners: dict[str, Any], name: str = "d", label: str = "d") -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {LABEL: label}, "ownerReferences": list(its_owners)}}


MINE: dict[str, tuple[dict[str, Any], bool]] = {
    # id: (an object, whether it is the depot's)
    "labelled and owned": (made(owner("uid-d")), True),
    "labelled, restored without its owner": (made(), True),
    "labelled, of an earlier depot": (made(owner("uid-old")), False),
    "labelled, and somebody else's too": (made(owner("uid-d"), owner("uid-x", controller=False)), False),
    "of another label": (made(owner("uid-d"), label="e"), False),
    "without labels": ({"metadata": {"name": "d"}}, False),
}


@pytest.mark.parametrize(("obj", "expected"), MINE.values(), ids=MINE)
def test_whose_it_is(obj: dict[str, Any], expected: bool) -> None:
    assert expected is owners.is_of(obj, LABEL, "d", "uid-d")


def test_others_that_own_it_are_named() -> None:
    assert [] == owners.strangers({"metadata": {}}, "uid-d")
    assert ["Job j"] == owners.strangers(made(owner("uid-d"), owner("uid-j", kind="Job", name="j")), "uid-d")


def test_only_one_owner_manages_it() -> None:
    both = made(owner("uid-x", controller=False), owner("uid-d"))

    assert [True, False] == [owners.is_controlled(both, uid) for uid in ("uid-d", "uid-x")]
    assert owners.controller(made(owner("uid-x", controller=False))) is None
    assert not owners.is_controlled({"metadata": {}}, "")


PODS: dict[str, tuple[dict[str, Any], bool]] = {
    # id: (a pod, whether StatefulSet d has it, or will take it in)
    "its own": (made(owner("uid-s", kind="StatefulSet"), name="d-0"), True),
    "nobody's yet": (made(name="d-0"), True),
    "another workload's": (made(owner("uid-r", kind="ReplicaSet"), name="d-0"), False),
    "another StatefulSet's": (made(owner("uid-s", kind="StatefulSet", name="e"), name="d-0"), False),
    "called otherwise": (made(name="evil"), False),
}


@pytest.mark.parametrize(("pod", "expected"), PODS.values(), ids=PODS)
def test_whose_a_pod_is(pod: dict[str, Any], expected: bool) -> None:
    assert expected is owners.may_be_of(pod, "d")


def test_the_names_of_pods_and_claims() -> None:
    assert "c-3" == ordinals.pod("c", 3)
    assert [3, -1, -1, -1, -1] == [ordinals.of("c", text) for text in ("c-3", "d-3", "c-x", "c", "c-٣")]
    assert 3 == ordinals.of("my-c", "my-c-3")
    assert [3, -1] == [ordinals.of_claim("data", "my-c", text) for text in ("data-my-c-3", "log-my-c-3")]
