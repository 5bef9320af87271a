"""What agents and servers say: the health file, the product's envelopes, and what is neither."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moorage.operators.opencga import answers, dialect

HEALTH, ABOUT = dialect.Health(), dialect.About()


def health(plans: list[Any], **progress: Any) -> dict[str, Any]:
    state = {"IsInGoalState": False, "LastMongoUpTime": 1_800_000_000, "ExpectedToBeUp": True, "ReplicationStatus": -1}
    mms = {"name": "demo-0", "lastGoalVersionAchieved": 6, "plans": plans, "errorCode": 0, "errorString": ""}
    return {"statuses": {"demo-0": state}, "mmsStatus": {"demo-0": mms | progress}}


def step(name: str, *, started: str | None = "2027-01-15T08:00:00.123456789Z", completed: str | None = None) -> Any:
    return {"step": name, "stepDoc": "", "isWaitStep": True, "started": started, "completed": completed, "result": ""}


def plan(*moves: tuple[str, list[Any]], completed: str | None = None) -> dict[str, Any]:
    made = [{"move": name, "moveDoc": "", "steps": steps} for name, steps in moves]
    return {"started": "2027-01-15T08:00:00Z", "completed": completed, "moves": made}


def read(told: Any, pod: str = "demo-0") -> answers.Agent:
    return answers.agent(json.dumps(told).encode(), pod, HEALTH)


def test_an_agent_in_its_goal() -> None:
    """The last plan is through, whatever an earlier step looks like."""
    told = health([plan(("WaitRsInit", [step("WaitRsInit")]), completed="2027-01-15T08:01:00Z")])
    told["statuses"]["demo-0"]["IsInGoalState"] = True
    found = read(told)

    assert answers.Agent(in_goal=True, configuration=6) == found
    assert not found.busy


def test_an_agent_at_a_step() -> None:
    """The last that was begun and not ended, of the last plan alone."""
    told = health(
        [
            plan(("Old", [step("Left")])),
            plan(
                ("RenderConfig", [step("Render", completed="2027-01-15T08:00:01Z")]),
                (
                    "Start",
                    [step("Begin", completed="2027-01-15T08:00:02Z"), step("WaitPing"), step("Next", started=None)],
                ),
            ),
        ]
    )

    assert ("Start", "WaitPing", 1_800_000_000) == (read(told).move, read(told).step, int(read(told).since))


@pytest.mark.parametrize(
    ("progress", "words"),
    [
        ({"errorCode": 7}, "error 7"),
        ({"errorString": "no\x1b[31m space\n left"}, "no [31m space left"),
        ({"errorCode": 7, "errorString": "x" * 1000}, "x" * answers.MOST_WORDS),
    ],
)
def test_an_error_is_told_in_words_that_no_terminal_obeys(progress: dict[str, Any], words: str) -> None:
    """In one line, and cut."""
    assert words == read(health([], **progress)).error


def test_the_catalog_by_the_masters_word() -> None:
    """Installed or not, and of which version; of what is neither nothing is known."""
    base = health([])

    assert (None, "") == (read(base).installed, read(base).catalog)
    for catalog, expected in (
        ({"installed": True, "version": "5.0.1-rc1"}, (True, "5.0.1")),
        ({"installed": False}, (False, "")),
        ({"installed": "yes", "version": "5.0"}, (None, "")),
        ({"version": "5.0.0001"}, (None, "")),
        (["installed"], (None, "")),
    ):
        found = read({**base, "catalog": catalog})
        assert expected == (found.installed, found.catalog)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "its answer can't be read"),
        (b"[]", "its answer can't be read"),
        (b'{"statuses": {"demo-0": {"IsInGoalState": "yes"}}}', "its answer can't be read"),
        (b"[" * 100_000, "its answer can't be read"),
        (b"{}", "it speaks of nobody, and not of demo-0"),
        (b'{"statuses": {"demo-1": {}}}', "it speaks of demo-1, and not of demo-0"),
    ],
)
def test_an_answer_that_is_none(text: bytes, words: str) -> None:
    """It says so in words."""
    with pytest.raises(answers.AnswerError, match=words):
        answers.agent(text, "demo-0", HEALTH)


@pytest.mark.parametrize(("said", "taken"), [(10**30, 2**53), (-7, -1), (0, 0)])
def test_a_version_without_measure_is_bounded(said: int, taken: int) -> None:
    """It goes into the status, where numbers have an end."""
    assert taken == read(health([], lastGoalVersionAchieved=said)).configuration


def envelope(**result: Any) -> bytes:
    return json.dumps({"responses": [{"results": [result]}]}).encode()


def test_a_server_that_is_well_and_one_that_is_not() -> None:
    """By the product's own words; what is not asked for is NA."""
    about = envelope(Program="OpenCGA", Version="5.0.0")

    assert answers.Server("5.0.0") == answers.server(
        about, envelope(CatalogMongoDB="OK", Solr="NA", VariantStorage="OK"), ABOUT
    )
    assert answers.Server("5.0.0", ("CatalogMongoDB", "Solr")) == answers.server(
        about, envelope(Solr="KO", CatalogMongoDB="KO", Other="KO"), ABOUT
    )


@pytest.mark.parametrize(
    ("about", "status"),
    [
        (b"", envelope()),
        (envelope(Version="5.0.0"), b"<html>"),
        (envelope(Version=5), envelope()),
        (envelope(Version="trunk"), envelope()),
        (b'{"responses": []}', envelope()),
        (b'{"responses": [{"results": 7}]}', envelope()),
        (b"[" * 100_000, envelope()),
    ],
)
def test_a_server_whose_answer_is_none(about: bytes, status: bytes) -> None:
    """It says so in words."""
    with pytest.raises(answers.AnswerError):
        answers.server(about, status, ABOUT)


def test_another_name_of_a_field_is_a_matter_of_the_table() -> None:
    """The first of several names that is there counts."""
    about = dialect.About(version="ProgramVersion Version", failing="DOWN")

    assert answers.Server("4.1.2", ("Solr",)) == answers.server(
        envelope(Version="4.1.2"), envelope(Solr="DOWN", CatalogMongoDB="KO"), about
    )


def test_an_agent_that_has_applied_nothing_yet() -> None:
    """A first configuration is version 1, so that none at all is told from it, and from what is no version."""
    told = health([])
    del told["mmsStatus"]["demo-0"]["lastGoalVersionAchieved"]

    assert -1 == read(told).configuration == answers.Agent().configuration


def test_words_without_measure_are_cut() -> None:
    assert "x" * 300 == answers.words("x" * 10_000)


def test_of_several_responses_the_first_counts() -> None:
    """As the product's own clients read it."""
    two = {
        "responses": [{"results": [{"Version": "5.0.1"}, {"Version": "9.9.9"}]}, {"results": [{"Version": "1.1.1"}]}]
    }

    assert "5.0.1" == answers.server(json.dumps(two).encode(), envelope(), ABOUT).version


@pytest.mark.parametrize(
    ("told", "version"),
    [
        ("5.0.0", "5.0.0"),
        ("5.0.0-SNAPSHOT", "5.0.0"),
        ("5.0.0+build.7", "5.0.0"),
        ("100.200.300", "100.200.300"),
        ("5.0.1000", ""),
        ("5.0", ""),
        ("5.0.0.1", ""),
        ("5.0.x", ""),
        ("\u0665.0.0", ""),
        (5, ""),
        (["5.0.0"], ""),
        (None, ""),
    ],
)
def test_a_version_out_of_what_is_told(told: Any, version: str) -> None:
    assert version == answers.version(told)


MOVES = dialect.Moves()


@pytest.mark.parametrize(
    ("agent", "catalog", "holds"),
    [
        (None, "", False),
        (answers.Agent(), "", False),
        (answers.Agent(move=MOVES.install), "", False),  # it stands at no step
        (answers.Agent(move=MOVES.install, step="Install"), "", True),
        (answers.Agent(move=MOVES.install, step="Install", error="no space"), "", False),
        (answers.Agent(move=MOVES.install, step="WaitMongo"), "5.0.0", False),
        (answers.Agent(move=MOVES.backup, step="Run"), "5.0.0", True),
        (answers.Agent(move=MOVES.migrate, step="Run"), "5.0.0", True),
        (answers.Agent(move=MOVES.migrate, step=MOVES.stop), "5.0.0", False),
        (answers.Agent(move="Start", step=MOVES.stop), "5.0.0", False),
        (answers.Agent(move="Start", step="WaitPing"), "5.0.0", False),
    ],
)
def test_who_holds_the_catalog_must_not_be_broken_off(agent: answers.Agent | None, catalog: str, holds: bool) -> None:
    """Who has begun something at it; who only looks for the database, or waits for servers to stop, has not."""
    assert holds == answers.holds_catalog(agent, MOVES, catalog)
