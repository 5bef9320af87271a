"""What the server is told of a grid, and whether its grid is as the spec says."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.operators.xsld.grid import settings, types
from moorage.operators.xsld.group import answers

PLAIN = {
    "description": "",
    "gridType": "Simple",
    "ownerName": "xsadmin",
    "useAuthentication": False,
    "useAuthorization": False,
    "useCapLRUEvictor": False,
    "gridCapacity": "0",
    "transactionTimeout": "30",
    "numPartition": "3",
    "numSyncReplicas": "0",
    "numAsyncReplicas": "1",
    "timeToLive": "0",
    "lockTimeout": "15",
}

BODIES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "an empty spec": ({}, PLAIN),
    "numbers are texts": (
        {
            "gridCapacity": 1,
            "transactionTimeout": 2,
            "numPartition": 5,
            "numSyncReplicas": 4,
            "numAsyncReplicas": 6,
            "timeToLive": 7,
            "lockTimeout": 8,
        },
        {
            **PLAIN,
            "gridCapacity": "1",
            "transactionTimeout": "2",
            "numPartition": "5",
            "numSyncReplicas": "4",
            "numAsyncReplicas": "6",
            "timeToLive": "7",
            "lockTimeout": "8",
        },
    ),
    "truths are truths": (
        {"useAuthentication": True, "useAuthorization": True, "useCapLRUEvictor": True},
        {**PLAIN, "useAuthentication": True, "useAuthorization": True, "useCapLRUEvictor": True},
    ),
    "one truth each": ({"useAuthorization": True}, {**PLAIN, "useAuthorization": True}),
    "texts that are set": (
        {"description": "d", "groupName": "Developers", "ownerName": "me"},
        {**PLAIN, "description": "d", "groupName": "Developers", "ownerName": "me"},
    ),
    "texts that are empty": ({"ownerName": ""}, {k: v for k, v in PLAIN.items() if k != "ownerName"}),
    "a custom grid names its template": (
        {"gridType": "Custom", "templateName": "t"},
        {**PLAIN, "gridType": "Custom", "templateName": "t"},
    ),
    "a simple one does not": ({"gridType": "Session", "templateName": "t"}, {**PLAIN, "gridType": "Session"}),
    "what is ours is not sent": (
        {"gridName": "x", "cacheRef": {"name": "c"}, "deletionPolicy": "Retain", "recovery": {"maxAttempts": 2}},
        PLAIN,
    ),
}


def spec(given: dict[str, Any]) -> types.DataGridSpec:
    """From a manifest's spec."""
    return msgspec.convert(given, types.DataGridSpec)


@pytest.mark.parametrize(("given", "expected"), BODIES.values(), ids=BODIES)
def test_the_request(given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert expected == settings.body(spec(given))


@pytest.mark.parametrize(
    ("given", "told", "expected"),
    [
        pytest.param({}, PLAIN, (), id="the same"),
        pytest.param({}, {}, (), id="the server tells of nothing"),
        pytest.param({}, {**PLAIN, "numPartition": 3, "lockTimeout": 15}, (), id="numbers as numbers"),
        pytest.param({}, {**PLAIN, "useAuthentication": "false"}, (), id="a truth as text"),
        pytest.param(
            {"useAuthentication": True}, {"useAuthentication": "True"}, ("useAuthentication",), id="in capitals"
        ),
        pytest.param(
            {"lockTimeout": 1, "gridType": "Session"}, PLAIN, ("gridType", "lockTimeout"), id="several, by name"
        ),
        pytest.param({}, {**PLAIN, "useAuthorization": True}, ("useAuthorization",), id="a truth"),
        pytest.param({}, {**PLAIN, "owner": "x", "templateName": "t"}, (), id="fields that we do not send"),
        pytest.param({"description": "d"}, {"description": ""}, ("description",), id="a text"),
    ],
)
def test_differences(given: dict[str, Any], told: dict[str, Any], expected: tuple[str, ...]) -> None:
    assert expected == settings.differences(spec(given), answers.Grid("g", "Online", told))


def test_the_digest_follows_the_request_alone() -> None:
    assert settings.digest(spec({})) == settings.digest(spec({"gridName": "x"}))
    assert settings.digest(spec({})) != settings.digest(spec({"lockTimeout": 1}))


def test_what_cannot_be_changed_in_place_is_part_of_the_request() -> None:
    assert set(settings.FIXED) <= settings.body(spec({"gridType": "Custom", "templateName": "t"})).keys()
