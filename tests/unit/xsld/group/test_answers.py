"""What members answer, and whose story of the group is believed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from moorage.operators.xsld.group import answers, dialect

SAID = dialect.Dialect()
TRANSIENT = SAID.transient_status
TASK, GRID, TEMPLATE = SAID.task, SAID.grid, SAID.template


def member(name: str, *, online: bool = True, primary: bool = False) -> answers.Member:
    """One line of a group's list."""
    return answers.Member(name, "10.0.0.1", "Online" if online else "Offline", online, primary=primary)


def story(pod: str, *members: answers.Member, fault: answers.Fault | None = None) -> answers.Answer:
    """What one pod tells."""
    return answers.Answer(pod, f"uid-{pod}", "10.0.0.1", fault, members=members)


def alone(pod: str) -> answers.Answer:
    """A pod that never joined, or lost its volume: it is the primary of a group of its own."""
    return story(pod, member(pod, primary=True))


def listed(pod: str, text: str) -> answers.Answer:
    """A pod that tells of the members in `text`: `a*` is the primary, `a-` is not online."""
    return story(
        pod,
        *(member(word.strip("*-"), online="-" not in word, primary="*" in word) for word in text.split()),
    )


def silent(pod: str, fault: answers.Fault = answers.Fault.UNREACHABLE) -> answers.Answer:
    """A pod that gave no answer."""
    return story(pod, fault=fault)


BELIEVED = {
    "nobody was asked": ("", (), "", None),
    "nobody answers": ("a b", (silent("a"), silent("b", answers.Fault.TIMEOUT)), "a", None),
    "an empty list tells of no group": ("a", (story("a"),), "a", None),
    "all tell the same: the remembered primary's": ("a b", (listed("a", "a b*"), listed("b", "a b*")), "b", "b"),
    "one that lost its volume is outnumbered": (
        "a b c",
        (listed("a", "a* b c-"), listed("b", "a* b c-"), alone("c")),
        "a",
        "a",
    ),
    "a primary that lost its volume is not believed": ("a b", (alone("a"), listed("b", "a*- b")), "a", "b"),
    "nor although more of its own are online": (
        "a b c",
        (listed("c", "c* x y z"), listed("b", "a*- b- c-")),
        "c",
        "b",
    ),
    "a split group: the side with more members online": (
        "a b c",
        (listed("a", "a* b- c-"), listed("b", "a- b* c"), listed("c", "a- b* c")),
        "a",
        "b",
    ),
    "an even split: the remembered primary's side": ("a b", (listed("a", "a* b-"), listed("b", "a- b*")), "b", "b"),
    "an even split without one: who is primary itself": ("a b", (listed("a", "a b*"), listed("b", "a b*")), "", "b"),
    "else the first by name": ("a b c", (listed("b", "a b c*"), listed("a", "a b c*")), "", "a"),
    "strangers only: nobody tells of the group": ("a b", (alone("c"), alone("d")), "a", None),
    "one of the remembered is enough": ("a b", (alone("c"), listed("d", "b d*")), "a", "d"),
    "restored without status: the largest group": ("", (alone("c"), listed("b", "a* b"), listed("a", "a* b")), "", "a"),
    "restored without status: blank pods beside a whole group": (
        "",
        (alone("a"), listed("b", "b* c"), alone("d")),
        "",
        "b",
    ),
    "a faulty answer is no story, whatever it holds": (
        "a b",
        (story("a", member("a", primary=True), member("b"), fault=answers.Fault.MALFORMED), alone("b")),
        "a",
        "b",
    ),
}


@pytest.mark.parametrize(("remembered", "told", "primary", "teller"), BELIEVED.values(), ids=BELIEVED)
def test_of_several_stories_the_right_one_is_believed(
    remembered: str, told: tuple[answers.Answer, ...], primary: str, teller: str | None
) -> None:
    for given in (told, tuple(reversed(told))):
        found = answers.group(answers.Polled(given), remembered=remembered.split(), primary=primary)

        assert teller == (found.teller if found else None), "the order of the answers must not matter"


def test_a_group_says_who_is_in_it() -> None:
    found = answers.group(answers.Polled((listed("a", "a b*- c"),)), remembered=[], primary="")

    assert found is not None
    assert frozenset("abc") == found.names
    assert ["a", "c"] == [m.name for m in found.online]
    assert "b" == (found.primary.name if found.primary else "")
    assert found.members[2] == found.member("c")
    assert found.member("d") is None


def test_a_group_may_have_no_primary() -> None:
    assert answers.Group("a", (member("a"),)).primary is None


def test_an_answer_is_found_by_its_pod_unless_it_failed() -> None:
    polled = answers.Polled((silent("a"), alone("b")))

    assert polled.answer("a") is None
    assert alone("b") == polled.answer("b")
    assert polled.answer("c") is None


REJECTED = {
    "nobody": ((), False),
    "one refuses, one is away": ((silent("a", answers.Fault.UNAUTHORIZED), silent("b")), True),
    "one refuses, one takes it": ((silent("a", answers.Fault.UNAUTHORIZED), alone("b")), False),
    "all are away": ((silent("a"), silent("b", answers.Fault.TIMEOUT)), False),
}


@pytest.mark.parametrize(("told", "expected"), REJECTED.values(), ids=REJECTED)
def test_credentials_count_as_rejected_when_nobody_takes_them(told: tuple[answers.Answer, ...], expected: bool) -> None:
    assert expected == answers.Polled(told).rejected


# --- bodies


def test_members_are_read_by_the_dialect() -> None:
    whole = {"memberName": "a", "ipAddress": "10.0.0.1", "status": "Online", "catalogServer": True, "primary": "true"}
    body = {"members": [{**whole, "derbyRole": "master"}, {"memberName": "b", "status": "Joining"}]}

    assert (
        answers.Member("a", "10.0.0.1", "Online", online=True, catalog=True, primary=True, role="master"),
        answers.Member("b", "", "Joining", online=False),
    ) == answers.members(body, SAID.member)


def test_members_under_other_names() -> None:
    said = dialect.MemberFields(list="servers", name="id", status="state", online="UP", role="db", slave="copy")
    body = {"servers": [{"id": "a", "state": "UP", "db": "copy"}, {"id": "b", "state": "Online", "db": "slave"}]}

    assert (
        answers.Member("a", "", "UP", online=True, role="slave"),
        answers.Member("b", "", "Online", online=False),
    ) == answers.members(body, said)


def test_entries_without_a_name_are_no_members() -> None:
    body = {"members": [{"memberName": ""}, {"status": "Online"}, "a", None, {"memberName": 7, "primary": "yes"}]}

    assert (answers.Member("7", "", "", online=False),) == answers.members(body, SAID.member)


def test_members_that_are_the_whole_answer() -> None:
    said = dialect.MemberFields(list="")

    assert ["a"] == [member.name for member in answers.members([{"memberName": "a"}], said)]
    with pytest.raises(ValueError, match="is no list"):
        answers.members({"members": []}, said)


def test_a_field_may_have_several_names_of_which_the_first_that_is_there_counts() -> None:
    said = dialect.MemberFields(name="memberName name", address="ip ipAddress", primary="leads primary")
    body = {
        "members": [
            {"name": "a", "memberName": "b", "ipAddress": "10.0.0.1", "leads": False, "primary": True},
            {"name": "c", "memberName": "", "ip": "10.0.0.2", "ipAddress": "10.0.0.3", "leads": None, "primary": True},
        ]
    }

    assert [("b", "10.0.0.1", False), ("c", "10.0.0.2", True)] == [
        (member.name, member.address, member.primary) for member in answers.members(body, said)
    ]


@pytest.mark.parametrize(
    "body", [{}, [], "members", None, {"members": None}, {"members": {"a": 1}}, {"error": "starting"}]
)
def test_a_body_without_a_list_is_no_group(body: Any) -> None:
    with pytest.raises(ValueError, match="members"):
        answers.members(body, SAID.member)


@pytest.mark.parametrize(
    ("listed", "why"),
    [(["a", "b", "a"], "twice"), (["x" * 300, "x" * 301], "twice"), (map(str, range(201)), "201 members are listed")],
    ids=["one twice", "two that are one as far as names are read", "more than a group can have"],
)
def test_a_list_that_can_be_no_group_is_none(listed: Iterable[str], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        answers.members({"members": [{"memberName": name} for name in listed]}, SAID.member)


def test_more_grids_than_are_read_are_not_known() -> None:
    with pytest.raises(ValueError, match="1001 grids"):
        answers.grids([{"name": str(number)} for number in range(1001)], GRID)


@pytest.mark.parametrize("number", ["9" * 5000, 10**40, -1, True, None, 7.0, "", [7]])
def test_what_is_no_id_names_no_task(number: Any) -> None:
    with pytest.raises(ValueError, match="names no task"):
        answers.task_id({"taskId": number})


TASKS = {
    "running": (
        {"taskId": 7, "command": "C", "description": "d", "status": "Running", "progress": 45, "message": "m"},
        answers.Task(7, "C", "d", answers.Phase.RUNNING, 45, "m"),
    ),
    "done, the id as text": (
        {"taskId": "8", "status": "Success"},
        answers.Task(8, "", "", answers.Phase.DONE),
    ),
    "failed, the id under its other name": (
        {"id": 9, "status": "Failed", "message": "no"},
        answers.Task(9, "", "", answers.Phase.FAILED, 0, "no"),
    ),
    "cancelled counts as failed": (
        {"taskId": 1, "status": "Cancelled"},
        answers.Task(1, "", "", answers.Phase.FAILED),
    ),
    "a word that ends in Failed": (
        {"taskId": 1, "status": "JoinFailed"},
        answers.Task(1, "", "", answers.Phase.FAILED),
    ),
    "pending counts as running": (
        {"taskId": 1, "status": "Pending"},
        answers.Task(1, "", "", answers.Phase.RUNNING),
    ),
    "an unknown word counts as running, so that nothing is started beside it": (
        {"taskId": 1, "status": "Rolling"},
        answers.Task(1, "", "", answers.Phase.RUNNING),
    ),
    **{
        f"progress as {progress!r}": (
            {"taskId": 1, "status": "Running", "progress": progress},
            answers.Task(1, "", "", answers.Phase.RUNNING, percent),
        )
        for progress, percent in (
            ("45", 45),
            (45.9, 45),
            ("45 %", 45),
            ("100%", 100),
            (250, 100),
            (-1, 0),
            ("half", 0),
            ("nan", 0),
            ("inf", 0),
            (True, 0),
        )
    },
    "zero is an id": ({"taskId": 0, "status": "Success"}, answers.Task(0, "", "", answers.Phase.DONE)),
    "an id that no status can hold": ({"taskId": 10**40, "status": "Running"}, None),
    "an id of more digits than are read": ({"taskId": "9" * 5000, "status": "Running"}, None),
    "an id below zero": ({"taskId": -1, "status": "Running"}, None),
    "words that are too long": (
        {"taskId": 1, "command": "C" * 9000, "status": "Running", "description": "d" * 9000, "message": "m" * 9000},
        answers.Task(1, "C" * 253, "d" * 253, answers.Phase.RUNNING, 0, "m" * 253),
    ),
    "no id": ({"status": "Running"}, None),
    "an id that is none": ({"taskId": "x", "status": "Running"}, None),
    "a truth is no id": ({"taskId": True, "status": "Running"}, None),
    "no task at all": ("Running", None),
}


@pytest.mark.parametrize(("item", "expected"), TASKS.values(), ids=TASKS)
def test_tasks_are_read(item: Any, expected: answers.Task | None) -> None:
    assert ((expected,) if expected else ()) == answers.tasks([item], TASK)


@pytest.mark.parametrize("body", [None, {}, "", {"tasks": []}])
def test_a_body_that_is_no_list_holds_no_tasks_grids_or_templates(body: Any) -> None:
    assert ((), (), ()) == (
        answers.tasks(body, TASK),
        answers.grids(body, GRID),
        answers.template_names(body, TEMPLATE),
    )


def test_tasks_under_other_names() -> None:
    said = dialect.TaskFields(
        list="items",
        id="number",
        command="verb",
        description="note",
        status="state",
        progress="percent",
        message="text",
        cancelled="Dropped",
    )
    item = {"number": 7, "verb": "C", "note": "d", "state": "Running", "percent": 45, "text": "m", "taskId": 8}
    body = {"items": [item, {"number": 8, "state": "Dropped"}, {"taskId": 9}]}

    assert (
        answers.Task(7, "C", "d", answers.Phase.RUNNING, 45, "m"),
        answers.Task(8, "", "", answers.Phase.FAILED),
    ) == answers.tasks(body, said)


def test_grids_under_other_names() -> None:
    said = dialect.GridFields(
        list="grids", name="id", status="state", settings={"templateName": "madeOf", "lockTimeout": "locks"}
    )
    body = {"grids": [{"id": "g", "state": "Online", "madeOf": "t", "numPartition": 3, "name": "x"}]}

    (found,) = answers.grids(body, said)
    assert ("g", "Online") == (found.name, found.status)
    assert {"templateName": "t", "numPartition": 3} == {
        key: found.fields[key] for key in found.fields if key in dialect.SETTINGS
    }


def test_templates_under_other_names() -> None:
    said = dialect.TemplateFields(list="templates", name="id")

    assert ("a", "b") == answers.template_names({"templates": [{"id": "b", "name": "x"}, "a"]}, said)


R, D, F = answers.Phase.RUNNING, answers.Phase.DONE, answers.Phase.FAILED
PHASES = {
    "running": ('{"status":"Running"}', R),
    "pending": ('{"status":"Pending"}', R),
    "done": ('{"status":"Success"}', D),
    "failed": ("JoinFailed", F),
    "cancelled": ('{"status":"Cancelled"}', F),
    "an error": ('{"error":"CWOBJ1"}', F),
    "running wins over failed": ("Running, one try Failed", R),
    "running wins over success": ("Success of 1, Running 2", R),
    "running wins over an error": ('{"status":"Running","error":"x"}', R),
    "success wins over failed": ("Failed once, then Success", D),
    "the text that comes and goes while replication starts": (TRANSIENT, None),
    "the same as an error": (f'{{"error":"{TRANSIENT}"}}', None),
    "the same while running": (f"Running; {TRANSIENT}", R),
    "nothing": ("", None),
    "words that mean nothing": ("hello", None),
}


@pytest.mark.parametrize(("text", "expected"), PHASES.values(), ids=PHASES)
def test_a_tasks_status_is_read_as_the_vendors_scripts_do(text: str, expected: answers.Phase | None) -> None:
    assert expected == answers.task_phase(text, SAID)


def test_words_of_a_task_s_status_that_are_guesses_may_be_others() -> None:
    said = dialect.Dialect(task=dialect.TaskFields(pending="Queued", cancelled="Dropped"), transient_status="wait")

    assert [R, F, None, None, None] == [
        answers.task_phase(text, said) for text in ("Queued", "Dropped", "Pending", "Cancelled", "wait, it Failed")
    ]


@pytest.mark.parametrize("body", [{"taskId": 7}, {"x": 7}, {"id": "7"}, {"": "007"}])
def test_a_task_id_is_the_only_value_whatever_its_key(body: Any) -> None:
    assert 7 == answers.task_id(body)


@pytest.mark.parametrize(
    "body",
    [None, [], 7, "7", {}, {"a": 1, "b": 2}, {"a": True}, {"a": None}, {"a": ""}, {"a": "x7"}, {"a": -7}, {"a": 7.5}],
    ids=str,
)
def test_what_names_no_task_is_refused(body: Any) -> None:
    with pytest.raises(ValueError, match="names no task"):
        answers.task_id(body)


def test_grids_are_read_by_name() -> None:
    body = [
        {"name": "b", "status": "Online", "numPartition": "3"},
        {"gridName": "a"},
        {"status": "Online"},
        "c",
        {"name": ""},
    ]

    assert (
        answers.Grid("a", "", {}),
        answers.Grid("b", "Online", {"numPartition": "3"}),
    ) == answers.grids(body, GRID)


def test_templates_are_names_or_objects_with_one() -> None:
    body = ["d", {"name": "b"}, {"templateName": "a"}, {"x": "c"}, "", None]

    assert ("a", "b", "d") == answers.template_names(body, TEMPLATE)
