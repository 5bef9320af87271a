"""What others put into a part of an object that has one writer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moorage.api import additions

OURS = {"f:metadata": {"f:labels": {"f:app": {}}}, "f:spec": {"f:containers": {'k:{"name":"xsld"}': {"f:image": {}}}}}
WANTED: dict[str, Any] = {
    "metadata": {"labels": {"app": "c"}},
    "spec": {"containers": [{"name": "xsld", "image": "i", "ports": [{"containerPort": 1}]}]},
}


def live(template: dict[str, Any], fields: dict[str, Any], *, manager: str = "kubectl-edit") -> dict[str, Any]:
    def entry(who: str, owned: dict[str, Any]) -> dict[str, Any]:
        return {"manager": who, "operation": "Update", "fieldsV1": {"f:spec": {"f:template": owned}}}

    managed = [entry("moorage", OURS), entry(manager, fields)]
    return {"metadata": {"managedFields": managed}, "spec": {"template": template}}


def element(**key: Any) -> str:
    return f"k:{json.dumps(key, separators=(',', ':'))}"


def with_container(**fields: Any) -> dict[str, Any]:
    return {**WANTED, "spec": {"containers": [{**WANTED["spec"]["containers"][0], **fields}]}}


LABELS = {"metadata": {"labels": {"app": "c", "mine": "x"}}}
SIDECARS = [*WANTED["spec"]["containers"], {"name": "one"}, {"name": "two"}]
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    # id: (the live template, what somebody owns of it, what was added)
    "nothing": (WANTED, {}, []),
    "a label": (WANTED | LABELS, {"f:metadata": {"f:labels": {"f:mine": {}}}}, ["/metadata/labels/mine"]),
    "a map that is not wanted at all": (
        WANTED | {"metadata": {"annotations": {"a": "b"}}},
        {"f:metadata": {"f:annotations": {".": {}, "f:a": {}}}},
        ["/metadata/annotations"],
    ),
    "what is wanted, and owned by another too": (WANTED, OURS, []),
    "what was there once": (WANTED, {"f:metadata": {"f:labels": {"f:mine": {}}}}, []),
    "containers: the last first, as each removal moves those behind it": (
        {**WANTED, "spec": {"containers": SIDECARS}},
        {"f:spec": {"f:containers": {element(name="one"): {".": {}}, element(name="two"): {".": {}}}}},
        ["/spec/containers/2", "/spec/containers/1"],
    ),
    "a field of our container": (
        with_container(stdin=True),
        {"f:spec": {"f:containers": {element(name="xsld"): {"f:stdin": {}}}}},
        ["/spec/containers/0/stdin"],
    ),
    "a port whose protocol is the default": (
        with_container(ports=[{"containerPort": 1, "protocol": "TCP"}]),
        {
            "f:spec": {
                "f:containers": {
                    element(name="xsld"): {"f:ports": {element(containerPort=1, protocol="TCP"): {"f:protocol": {}}}}
                }
            }
        },
        [],
    ),
    "what the server fills in, where somebody replaced it whole": (
        {**WANTED, "spec": {**WANTED["spec"], "dnsPolicy": "ClusterFirst"}},
        {"f:spec": {"f:dnsPolicy": {}}},
        [],
    ),
    "a value of a set": (
        {"metadata": {"finalizers": ["a", "b"]}},
        {"f:metadata": {"f:finalizers": {'v:"b"': {}}}},
        ["/metadata/finalizers"],
    ),
    "what others may add": (
        WANTED | {"metadata": {"labels": {"app": "c", "asked-for": "x"}}},
        {"f:metadata": {"f:labels": {"f:asked-for": {}}}},
        [],
    ),
    "what needs to be escaped": (
        WANTED | {"metadata": {"labels": {"a/b~c": "x"}}},
        {"f:metadata": {"f:labels": {"f:a/b~c": {}}}},
        ["/metadata/labels/a~1b~0c"],
    ),
}


def found(there: dict[str, Any]) -> list[str]:
    wanted = {"spec": {"template": WANTED}}
    places = additions.additions(wanted, there, under=("spec", "template"), manager="moorage", but=("asked-for",))
    return [additions.pointer(place).removeprefix("/spec/template") for place in places]


@pytest.mark.parametrize(("template", "fields", "added"), CASES.values(), ids=CASES)
def test_what_others_have_added(template: dict[str, Any], fields: dict[str, Any], added: list[str]) -> None:
    assert added == found(live(template, fields))


def test_what_the_writer_itself_owns_is_no_addition() -> None:
    """It goes with the next apply."""
    assert [] == found(live(WANTED | LABELS, {"f:metadata": {"f:labels": {"f:mine": {}}}}, manager="moorage"))


def test_without_notes_nothing_is_known() -> None:
    assert [] == found({"metadata": {}, "spec": {"template": WANTED | LABELS}})


@pytest.mark.parametrize(
    ("wanted", "there", "expected"),
    [
        ({}, {"serviceAccountName": "a", "serviceAccount": "a"}, ["/spec/serviceAccountName", "/spec/serviceAccount"]),
        ({}, {"serviceAccount": "a"}, ["/spec/serviceAccount"]),
        ({"serviceAccountName": "b"}, {"serviceAccountName": "a", "serviceAccount": "a"}, []),
        ({}, {}, []),
    ],
)
def test_an_account_that_is_not_wanted_any_more_goes_under_both_its_names(
    wanted: dict[str, Any], there: dict[str, Any], expected: list[str]
) -> None:
    """Else the API server fills the one in from the other."""
    bodies = ({"spec": {"template": {"spec": spec}}} for spec in (wanted, there))
    places = additions.kept_under_two_names(*bodies, under=("spec", "template"))

    assert [f"/spec/template{end}" for end in expected] == [additions.pointer(place) for place in places]
