"""Bodies of owned objects, as the steps of the layer count on them."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api import builtin
from moorage.children import apply, bodies, owners
from tests.unit.children import depots
from tests.unit.children.depots import LABEL

SELECTOR, LABELS = {"app": "d"}, {"app": "d", LABEL: "d"}


def test_a_body_bears_its_owner_its_labels_and_its_stamp() -> None:
    rest = {"data": {"a": "1"}}
    body = bodies.owned(
        builtin.CONFIG_MAP, "d-config", depots.OWNER, rest, labels={LABEL: "d"}, annotations={"note": "x"}
    )
    metadata = body["metadata"]

    assert ("v1", "ConfigMap", rest["data"]) == (body["apiVersion"], body["kind"], body["data"])
    assert ("ns", "d-config", {LABEL: "d"}) == (metadata["namespace"], metadata["name"], metadata["labels"])
    assert {"note": "x", apply.STAMP: apply.digest(body)} == metadata["annotations"]
    (reference,) = metadata["ownerReferences"]
    assert {
        "apiVersion": "test.moorage.dev/v1",
        "kind": "Depot",
        "name": "d",
        "uid": "uid-d",
        "controller": True,
    } == reference
    assert owners.is_of(body, LABEL, "d", "uid-d")


def test_a_statefulset_leaves_its_pods_and_claims_to_us() -> None:
    """Its controller neither replaces pods nor deletes claims by itself, and starts all pods at once."""
    claim = bodies.claim("data", "0.3Gi", modes=("ReadWriteOnce",), storage_class=None, labels=LABELS)
    made = bodies.statefulset(depots.OWNER, 3, {"spec": {}}, selector=SELECTOR, labels=LABELS, claims=(claim,))

    assert "StatefulSet/d" == made.id
    assert {
        "replicas": 3,
        "serviceName": "d",
        "podManagementPolicy": "Parallel",
        "updateStrategy": {"type": "OnDelete"},
        "selector": {"matchLabels": SELECTOR},
        "template": {"spec": {}},
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
        "volumeClaimTemplates": [claim],
    } == made.body["spec"]
    assert LABELS == made.body["metadata"]["labels"]


def test_one_without_claims_says_nothing_of_them() -> None:
    made = bodies.statefulset(depots.OWNER, 1, {}, selector=SELECTOR, labels=LABELS)

    assert "volumeClaimTemplates" not in made.body["spec"]


@pytest.mark.parametrize(
    ("storage_class", "said"), [(None, {}), ("fast", {"storageClassName": "fast"}), ("", {"storageClassName": ""})]
)
def test_a_claim_names_a_class_only_where_one_is_given(storage_class: str | None, said: dict[str, str]) -> None:
    """An empty one is a class too: it means a volume that somebody makes by hand."""
    made = bodies.claim("data", "0.3Gi", modes=("ReadWriteOnce",), storage_class=storage_class, labels=LABELS)

    assert {"name": "data", "labels": LABELS} == made["metadata"]
    expected = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "322122548"}}}
    assert expected | said == made["spec"]


def test_a_budget_lets_one_go_and_holds_up_no_drain_for_a_pod_that_never_came_up() -> None:
    made = bodies.budget(depots.OWNER, selector=SELECTOR, labels=LABELS)

    assert "PodDisruptionBudget/d" == made.id
    more = bodies.budget(depots.OWNER, selector=SELECTOR, labels=LABELS, unavailable=3)
    assert 3 == more.body["spec"]["maxUnavailable"]
    assert {
        "maxUnavailable": 1,
        "selector": {"matchLabels": SELECTOR},
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
    } == made.body["spec"]


TERM = {"labelSelector": {"matchLabels": SELECTOR}, "topologyKey": "kubernetes.io/hostname"}
MUST = {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}
SHOULD = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": TERM}]}
OWN: dict[str, Any] = {"podAntiAffinity": {}}
APART: dict[str, tuple[dict[str, Any], str, dict[str, Any]]] = {
    # id: (what the user gives, how, the affinity)
    "they must be": ({}, "Required", {"podAntiAffinity": MUST}),
    "they should be": ({}, "Preferred", {"podAntiAffinity": SHOULD}),
    "they need not": ({"nodeAffinity": {}}, "None", {"nodeAffinity": {}}),
    "beside what the user gives": (
        {"nodeAffinity": {}},
        "Required",
        {"nodeAffinity": {}, "podAntiAffinity": MUST},
    ),
    "the user has a rule of that kind": (OWN, "Required", OWN),
}


@pytest.mark.parametrize(("given", "how", "expected"), APART.values(), ids=APART)
def test_pods_are_on_nodes_of_their_own(given: dict[str, Any], how: str, expected: dict[str, Any]) -> None:
    assert expected == bodies.apart(given, how, SELECTOR)
