"""The conditions of an installation, whatever its steps stand at, and what its status and people's tools show."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.api import conditions
from moorage.operators.opencga import answers, control, facts, observation, screen
from moorage.operators.opencga.reasons import Reason
from moorage.runtime import decision, freshness
from tests.unit.opencga import states
from tests.unit.opencga.states import MASTER, NOW, asleep, demo, fresh

NOT_YET, DOWN = freshness.not_yet("it"), freshness.Failed("Down", "the server is down")
FAULTY = freshness.Fresh(observation.SecretsSeen("there is no Secret x"))
WELL = {
    "Valid": (True, Reason.CURRENT),
    "ConfigApplied": (True, Reason.CURRENT),
    "CatalogInstalled": (True, Reason.INSTALLED),
    "Migrated": (True, Reason.MIGRATED),
    "RestAvailable": (True, Reason.SERVING),
    "MasterAvailable": (True, Reason.SERVING),
    "Healthy": (True, Reason.SERVING),
    "Upgrading": (False, Reason.CURRENT),
    "Hibernated": (False, Reason.CURRENT),
    "SpecHeeded": (True, Reason.HEEDED),
}


def told(it: states.It) -> dict[str, decision.Fact]:
    return {fact.type: fact for fact in (each(it.seen) for each in facts.FACTS)}


def reported(it: states.It) -> dict[str, Any]:
    made = decision.decide(it.seen, steps=control.STEPS, report=facts.report)
    return made.report


def test_all_is_well() -> None:
    """And what readiness needs is True."""
    found = told(demo())

    assert WELL == {name: (fact.status, fact.reason) for name, fact in found.items()}
    assert all(found[name].status for name in facts.READY_FACTS)


@pytest.mark.parametrize(
    ("it", "type_", "status", "reason", "words"),
    [
        (demo().fact(allowed=False), "Valid", False, Reason.NAMESPACE_NOT_ALLOWED, "namespace ns"),
        (demo(storage={"password": "x"}), "Valid", False, Reason.SPEC_UNSOUND, "spec.storage has a value"),
        (demo(database={}), "Valid", False, Reason.DATABASE_MISSING, "hosts"),
        (demo().fact(catalog_of="first"), "Valid", False, Reason.CATALOG_TAKEN, "OpenCGACommunity first"),
        (demo().fact(secrets=FAULTY), "Valid", False, Reason.SECRET_INVALID, "no Secret x"),
        (demo().fact(secrets=NOT_YET), "Valid", True, Reason.CURRENT, ""),
        (demo().behind("demo-1"), "ConfigApplied", False, Reason.APPLYING_CONFIGURATION, "not applied by demo-1"),
        (demo(storage={"password": "x"}), "ConfigApplied", False, Reason.SPEC_UNSOUND, ""),
        (demo().fact(told=DOWN), "ConfigApplied", None, Reason.MEMBERS_UNKNOWN, "not asked"),
        (demo().fact(secrets=DOWN), "ConfigApplied", None, Reason.SECRETS_UNKNOWN, "Secrets are not known"),
        (
            demo().but(published=states.automation.Published(7, "x")),
            "ConfigApplied",
            False,
            Reason.APPLYING_CONFIGURATION,
            "version 8",
        ),
        (fresh(), "CatalogInstalled", False, Reason.INSTALLING_CATALOG, ""),
        (fresh().says_(MASTER, error="no"), "CatalogInstalled", False, Reason.INSTALLING_CATALOG, "no"),
        (demo().says_(MASTER, fault="x"), "CatalogInstalled", True, Reason.INSTALLED, "of version 5.0.0"),
        (fresh().says_(MASTER, fault="x"), "CatalogInstalled", None, Reason.MEMBERS_UNKNOWN, "tells nothing"),
        (demo(version="5.0.1"), "Migrated", False, Reason.MIGRATING, "of version 5.0.0, 5.0.1 is wanted"),
        (demo().says_(MASTER, catalog="4.0.0"), "Migrated", False, Reason.MIGRATING, "of version 4.0.0"),
        (fresh().says_(MASTER, fault="x"), "Migrated", False, Reason.MIGRATING, "of version unknown"),
        (demo().pod("demo-1", ready=False), "RestAvailable", True, Reason.SERVING, "2 of 3 members"),
        (demo(0), "RestAvailable", True, Reason.NOBODY_WANTED, ""),
        (demo(1).pod("demo-0", ready=False), "RestAvailable", False, Reason.MEMBERS_NOT_READY, "0 of 1"),
        (demo().fact(objects=DOWN), "RestAvailable", None, Reason.CLUSTER_UNKNOWN, ""),
        (demo().no_pod(MASTER), "MasterAvailable", False, Reason.MASTER_NOT_READY, "it has no pod"),
        (demo().fact(objects=DOWN), "MasterAvailable", None, Reason.CLUSTER_UNKNOWN, ""),
        (
            demo().says_("demo-0", server=answers.Server("5.0.0", ("Solr",))),
            "Healthy",
            False,
            Reason.DEPENDENCY_DOWN,
            "Solr (demo-0)",
        ),
        (demo().fact(told=DOWN), "Healthy", None, Reason.MEMBERS_UNKNOWN, ""),
        (demo(1).says_("demo-0", server=None), "Healthy", None, Reason.MEMBERS_UNKNOWN, "no server tells"),
        (demo(0), "Healthy", True, Reason.SERVING, ""),
        (demo().pod("demo-1", revision="old"), "Upgrading", True, Reason.UPDATING, "demo-1"),
        (demo().pod(MASTER, revision="old"), "Upgrading", True, Reason.UPDATING, MASTER),
        (demo(version="5.0.1"), "Upgrading", True, Reason.MIGRATING, "5.0.0 to 5.0.1"),
        (
            demo(version="5.0.1").says(stopped_for="5.0.1"),
            "Upgrading",
            True,
            Reason.STOPPING,
            "REST servers are stopped while the catalog is migrated to 5.0.1",
        ),
        (fresh(), "Upgrading", False, Reason.CURRENT, ""),
        (demo().fact(objects=DOWN), "Upgrading", None, Reason.CLUSTER_UNKNOWN, ""),
        (asleep(), "Hibernated", True, Reason.HIBERNATED, ""),
        (asleep(), "ConfigApplied", True, Reason.HIBERNATED, "version 7, for who wakes up"),
        (asleep(), "CatalogInstalled", True, Reason.INSTALLED, "when last told"),
        (asleep(), "Migrated", True, Reason.MIGRATED, "5.0.0"),
        (asleep(version="5.0.1"), "Migrated", False, Reason.MIGRATING, "of version 5.0.0, 5.0.1 is wanted"),
        (asleep(), "RestAvailable", True, Reason.HIBERNATED, ""),
        (asleep(), "MasterAvailable", True, Reason.HIBERNATED, ""),
        (asleep().fact(told=DOWN), "Healthy", True, Reason.HIBERNATED, ""),
        (asleep().pod(MASTER), "Hibernated", False, Reason.HIBERNATING, f"still there: {MASTER}"),
        (asleep().fact(objects=DOWN), "Hibernated", None, Reason.CLUSTER_UNKNOWN, ""),
        (
            demo(version="5.0.1", hibernate=True).says_(MASTER, move="Migrate", step="Run", since=NOW - 60.0),
            "Hibernated",
            False,
            Reason.HIBERNATION_WAITS,
            f"{MASTER} is at Migrate, Run; all is stopped after that",
        ),
    ],
)
def test_a_condition(it: states.It, type_: str, status: bool | None, reason: Reason, words: str) -> None:
    """One situation, and what is said of it."""
    found = told(it)[type_]

    assert (status, reason) == (found.status, found.reason)
    assert words in found.message


@pytest.mark.parametrize("fact", ["told", "objects", "secrets"])
def test_what_nobody_looked_at_stands_as_it_stood(fact: str) -> None:
    """After a restart of the operator, which is no news of the installation."""
    before = conditions.Condition("ConfigApplied", "True", "Current", "version 7", 1, states.ago(1000))
    it = demo().says(conditions=(before,))

    assert told(it.fact(**{fact: NOT_YET}))["ConfigApplied"].status is True
    assert told(it.fact(**{fact: DOWN}))["ConfigApplied"].status is None


def test_the_status_of_one_that_is_well() -> None:
    """The original's fields, and each member's own."""
    made = reported(demo())

    assert ("Running", "", 3, 3) == (
        made["phase"],
        made["message"],
        made["currentStatefulSetReplicas"],
        made["currentOpenCGARESTMembers"],
    )
    assert "http://demo-rest.ns.svc.cluster.local:9090/opencga" == made["opencgarestUri"]
    assert 7 == made["configurationVersion"]
    assert "app=demo-svc,opencga.zetta.com/community=demo,opencga.zetta.com/role=rest" == made["selector"]
    assert [(MASTER, "master", True, "5.0.0", 7)] + [(f"demo-{n}", "rest", True, "5.0.0", 7) for n in range(3)] == [
        (it.name, it.role, it.ready, it.version, it.configuration) for it in made["memberStatuses"]
    ]


def test_the_status_of_one_that_hibernates() -> None:
    """A phase of its own, no pod is missed, and all have the places that they wake up to."""
    made = reported(asleep())

    assert ("Hibernated", "", 0, 3, []) == (
        made["phase"],
        made["message"],
        made["currentStatefulSetReplicas"],
        made["currentOpenCGARESTMembers"],
        made["memberStatuses"],
    )
    assert "Pending" == reported(asleep().pod("demo-0", deleting=True))["phase"]


def test_the_status_says_who_is_where_since_when() -> None:
    """A member that is behind, and one that is silent."""
    made = reported(
        demo().behind("demo-1", since=NOW - 60.0).says_("demo-2", fault="no answer").volume("demo-0", size="5G")
    )
    members = {it.name: it for it in made["memberStatuses"]}

    assert ("Start, WaitPing", states.ago(60.0), 1) == (
        members["demo-1"].step,
        members["demo-1"].since,
        members["demo-1"].configuration,
    )
    assert "its agent: no answer" == members["demo-2"].error
    assert "5G" == made["volumeSize"]


def test_who_should_be_there_has_a_row_and_since_when_is_of_a_step_alone() -> None:
    """One without a pod is missed, unless it hibernates; one that is at no step has not been there since anything."""
    idle = {"move": "", "step": "", "since": NOW - 60.0}
    made = {
        it.name: it for it in reported(demo().behind("demo-0", since=0.0).says_("demo-1", **idle))["memberStatuses"]
    }

    assert ("Start, WaitPing", "") == (made["demo-0"].step, made["demo-0"].since)
    assert ("", "") == (made["demo-1"].step, made["demo-1"].since)
    assert (
        "it has no pod" == {it.name: it for it in reported(demo().no_pod("demo-1"))["memberStatuses"]}["demo-1"].error
    )
    assert ["demo-0"] == [it.name for it in reported(asleep().pod("demo-0"))["memberStatuses"]]


@pytest.mark.parametrize(
    ("it", "phase", "known"),
    [
        (demo(database={}), "Failed", {"memberStatuses", "configurationVersion"}),
        (demo().fact(objects=NOT_YET), "Pending", set()),
        (demo().fact(told=NOT_YET), "Pending", {"configurationVersion"}),
        (demo().fact(secrets=NOT_YET), "Pending", {"memberStatuses"}),
        (demo().but(published=states.automation.Published(7, "x")), "Pending", {"memberStatuses"}),
    ],
)
def test_what_is_not_known_stays_as_it_was(it: states.It, phase: str, known: set[str]) -> None:
    """It is no part of what is reported."""
    made = reported(it)

    assert phase == made["phase"]
    assert known == {"memberStatuses", "configurationVersion"} & set(made)


def test_a_message_without_end_is_cut() -> None:
    """Others' words are in it."""
    it = demo()
    for name in it.pods:
        it = it.says_(name, error="x" * 300)

    made = facts.report(it.seen, decision.decide(it.seen, steps=control.STEPS).standing)
    assert facts.MOST_WORDS == len(made["message"])


def test_the_screen_shows_members_with_their_step() -> None:
    """Who is behind, and who has an error, is marked."""
    it = demo().behind("demo-1").says_("demo-2", error="no space")
    status = {**msgspec.to_builtins(it.status), **msgspec.to_builtins(reported(it))}
    rows = {row.label: row for row in screen.rows(status)}

    assert "5.0.0" == rows["Catalog"].text
    assert "4 of 4 ready, configuration 7" == rows["Members"].text
    shown = {item.text.split()[0]: item for item in rows["Members"].items}
    assert (True, True, False, True) == tuple(shown[name].good for name in (MASTER, "demo-0", "demo-2", "demo-1"))
    assert f"demo-1  rest  5.0.0  configuration 1  at Start, WaitPing since {states.ago(60.0)}" == shown["demo-1"].text
    assert shown["demo-2"].text.endswith("no space")


def test_the_screen_of_one_that_nobody_has_looked_at() -> None:
    """It has nothing to show, and does not fail."""
    assert 1 == len(list(screen.rows({})))
