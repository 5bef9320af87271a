"""What a release wants of a live object. The rules of the comparison are in tests/unit/api."""

from __future__ import annotations

from moorage.api import comparison
from moorage.helm.release import drift

WANTED = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d", "labels": {"a": "1"}},
    "spec": {"replicas": 2},
}


def scaled(manager: str, operation: str, subresource: str = "") -> dict:
    """As live, with five replicas that `manager` has set."""
    entry = {"manager": manager, "operation": operation, "fieldsV1": {"f:spec": {"f:replicas": {}}}}
    notes = [{**entry, "subresource": subresource} if subresource else entry]
    return {**WANTED, "metadata": {**WANTED["metadata"], "managedFields": notes}, "spec": {"replicas": 5}}


def test_it_differs_where_helm_is_not_the_owner_any_more():
    assert ("spec.replicas",) == drift.differing(WANTED, scaled("kubectl-edit", "Update"))
    assert () == drift.differing(WANTED, scaled("kubectl-edit", "Update"), settled={"spec.replicas"})
    assert () == drift.differing(WANTED, scaled("helm", "Apply"))
    assert (comparison.THE_OBJECT,) == drift.differing(WANTED, None)


def test_a_repair_leaves_alone_what_was_scaled_whoever_did_it():
    """An autoscaler, and a person with `kubectl scale`; not one who edits the field."""
    for who in ("kube-controller-manager", "kubectl", "keda"):
        live = scaled(who, "Update", "scale")

        assert "replicas" not in drift.restore_body(WANTED, "r", "n", live=live)["spec"]
        assert () == drift.differing(WANTED, live)
    assert {"replicas": 2} == drift.restore_body(WANTED, "r", "n", live=scaled("kubectl-edit", "Update"))["spec"]


def test_the_restored_form_has_the_marks_of_helm():
    body = drift.restore_body({**WANTED, "status": {"x": 1}}, "rel", "ns", live={"metadata": {"uid": "u"}})
    assert body["metadata"] == {
        "name": "d",
        "namespace": "ns",
        "uid": "u",
        "labels": {"a": "1", "app.kubernetes.io/managed-by": "Helm"},
        "annotations": {"meta.helm.sh/release-name": "rel", "meta.helm.sh/release-namespace": "ns"},
    }
    assert "status" not in body
    assert "namespace" not in drift.restore_body(WANTED, "rel", "ns", scoped=False)["metadata"]
