"""Edited keys of merged lists are taken over, so that an apply takes them away."""

from __future__ import annotations

import copy
from typing import Any

from moorage.helm.release import field_ownership

PORTS = ("f:spec", "f:ports")
EDITED = 'k:{"port":90,"protocol":"TCP"}'
KEPT = 'k:{"port":80,"protocol":"TCP"}'
FOREIGN = 'k:{"port":7,"protocol":"TCP"}'


def wanted() -> dict[str, Any]:
    port = {"name": "http", "port": 70, "targetPort": "http", "protocol": "TCP"}
    other = {"name": "web", "port": 80, "targetPort": "web", "protocol": "TCP"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "one"}, "spec": {"ports": [port, other]}}


def live() -> dict[str, Any]:
    """A person changed port 70 to 90, and another has added port 7."""
    found = copy.deepcopy(wanted())
    found["spec"]["ports"][0]["port"] = 90
    found["spec"]["ports"].append({"name": "echo", "port": 7, "targetPort": 7, "protocol": "TCP"})
    element = {".": {}, "f:name": {}, "f:port": {}, "f:protocol": {}, "f:targetPort": {}}
    found["metadata"]["managedFields"] = [
        _entry("helm", "Apply", {"f:spec": {"f:ports": {KEPT: element}}}),
        _entry("kubectl-patch", "Update", {"f:spec": {"f:ports": {'k:{"protocol":"TCP","port":90}': element}}}),
        _entry("person", "Update", {"f:spec": {"f:ports": {FOREIGN: element}}, "f:metadata": {"f:labels": {}}}),
    ]
    return found


def _entry(manager: str, operation: str, fields: dict[str, Any]) -> dict[str, Any]:
    return {"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsV1": copy.deepcopy(fields)}


def test_what_is_taken_over_is_helms_and_the_rest_stays_whose_it_is() -> None:
    *tests, replace, remove = field_ownership.ops(live(), "helm", [(*PORTS, EDITED)])

    assert ["/metadata/managedFields/0", "/metadata/managedFields/1"] == [op["path"] for op in tests]
    assert ("replace", "/metadata/managedFields/0/fieldsV1") == (replace["op"], replace["path"])
    assert {KEPT, EDITED} == set(replace["value"]["f:spec"]["f:ports"])
    assert {"op": "remove", "path": "/metadata/managedFields/1"} == remove  # it owned nothing else


def test_one_who_owns_more_keeps_the_rest() -> None:
    *_, mine, theirs = field_ownership.ops(live(), "helm", [(*PORTS, FOREIGN)])

    assert {KEPT, FOREIGN} == set(mine["value"]["f:spec"]["f:ports"])
    assert {"f:metadata": {"f:labels": {}}} == theirs["value"]


def test_owners_of_a_subresource_and_of_another_version_keep_what_they_have() -> None:
    found = live()
    found["metadata"]["managedFields"][1]["subresource"] = "scale"
    found["metadata"]["managedFields"][2]["apiVersion"] = "v2"

    assert [] == field_ownership.ops(found, "helm", [field_ownership.SPEC])


def test_an_object_that_helm_did_not_apply_is_left_alone() -> None:
    found = live()
    del found["metadata"]["managedFields"][0]

    assert [] == field_ownership.ops(found, "helm", [field_ownership.SPEC])
