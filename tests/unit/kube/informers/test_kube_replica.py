"""The rules by which a cache stays true, one by one: what is stored, and what is told, after each turn of events."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from kube_fakes import Box, body, box

from moorage.kube import codec
from moorage.kube.informers import replica

A, B = ("ns", "a"), ("ns", "b")


class Kept:
    """A replica, and what it has told: old and new version, whether initial, and by whom."""

    def __init__(self, **scope: str) -> None:
        self.it = replica.Replica[Box](self._note, **scope)
        self.told: list[tuple[str | None, str | None, bool, Any]] = []

    def _note(self, change: replica.Change[Box]) -> None:
        old, new = (x and x.metadata.resource_version for x in (change.old, change.new))
        self.told.append((old, new, change.initial, change.by))

    def news(self) -> list[tuple[str | None, str | None, bool, Any]]:
        """What has been told since the last time."""
        told, self.told = self.told, []
        return told

    def changes(self) -> list[tuple[str | None, str | None]]:
        """The same, of the objects alone."""
        return [(old, new) for old, new, _, _ in self.news()]

    def version(self, key: tuple[str, str] = A) -> int | None:
        entry = self.it.objects.get(key)
        return entry.version if entry else None

    def event(self, kind: str, obj: Any) -> None:
        self.it.event(kind, obj)

    def list(self, *items: Any, at: str = "100", tell: bool = True) -> None:
        """A list with these objects comes and is told of."""
        self.it.listing()
        for item in items:
            self.it.event("ADDED", item)
        self.it.listed(at)
        if tell:
            self.tell()

    def tell(self) -> None:
        for _ in self.it.tell():
            pass


@pytest.fixture
def kept() -> Kept:
    return Kept()


def unfit(name: str, version: int | str) -> codec.Unreadable:
    """An object that does not fit the model."""
    made = msgspec.convert(body(name, 1), Box).metadata
    return codec.Unreadable(msgspec.structs.replace(made, resource_version=str(version)), f"why {version}")


def odd(name: str, version: str, uid: str = "") -> Box:
    """An object of an API whose versions are no numbers."""
    metadata = {"namespace": "ns", "name": name, "uid": uid or f"uid-{name}", "resourceVersion": version}
    return msgspec.convert({"metadata": metadata}, Box)


# --- events ----------------------------------------------------------------------------------------------------------


def test_only_a_higher_version_is_news(kept: Kept) -> None:
    for version in (1, 1, 3, 2, 3, 4):
        kept.event("MODIFIED", box("a", version))
    assert [(None, "1"), ("1", "3"), ("3", "4")] == kept.changes()


def test_a_deletion_removes_the_incarnation_that_it_names_and_no_other(kept: Kept) -> None:
    kept.event("ADDED", box("a", 5, uid="second"))
    kept.event("DELETED", box("a", 6, uid="first"))
    assert (5, [(None, "5")]) == (kept.version(), kept.changes())
    kept.event("DELETED", box("a", 7, uid="second"))
    kept.event("DELETED", box("a", 7, uid="second"))
    assert (None, [("5", None)]) == (kept.version(), kept.changes())


def test_an_unreadable_state_is_kept_in_mind_until_a_readable_one_comes(kept: Kept) -> None:
    kept.event("ADDED", box("a", 1))
    kept.event("MODIFIED", unfit("a", 2))
    assert ({A: "why 2"}, 1) == (kept.it.unreadable, kept.version())
    kept.event("MODIFIED", box("a", 1))
    assert {A: "why 2"} == kept.it.unreadable, "an echo of what was there before says nothing"
    kept.event("MODIFIED", box("a", 3))
    assert {} == kept.it.unreadable
    kept.event("MODIFIED", unfit("a", 4))
    kept.event("DELETED", box("a", 5))
    assert ({}, None) == (kept.it.unreadable, kept.version())


# --- lists -----------------------------------------------------------------------------------------------------------


def test_a_list_is_seen_by_nobody_until_it_is_whole(kept: Kept) -> None:
    kept.list(box("a", 1))
    kept.news()
    kept.it.listing()
    kept.event("ADDED", box("b", 2))
    assert ([], 1, None) == (kept.news(), kept.version(A), kept.version(B))
    kept.it.listed("3")
    assert (None, 2) == (kept.version(A), kept.version(B))


def test_a_list_that_was_not_finished_is_void(kept: Kept) -> None:
    kept.it.listing()
    kept.event("ADDED", box("a", 1))
    kept.list(box("b", 2))
    assert [(None, "2")] == kept.changes()
    assert (None, 2) == (kept.version(A), kept.version(B))


def test_the_end_of_a_list_that_was_not_asked_for_changes_nothing(kept: Kept) -> None:
    kept.event("ADDED", box("a", 1))
    kept.it.listed("5")
    kept.tell()
    assert (1, [(None, "1")]) == (kept.version(), kept.changes())


def test_the_first_list_is_initial_and_a_later_one_is_not(kept: Kept) -> None:
    kept.list(box("a", 1))
    kept.list(box("a", 1), box("b", 2))
    assert [(None, "1", True, None), (None, "2", False, None)] == kept.news()


def test_a_list_tells_what_vanished_what_changed_and_nothing_of_what_is_as_it_was(kept: Kept) -> None:
    kept.list(box("a", 1), box("b", 2), box("c", 3))
    kept.news()
    kept.list(box("b", 2), box("c", 4))
    assert [("1", None), ("3", "4")] == kept.changes()
    assert (None, 2) == (kept.version(A), kept.version(B))


def test_what_is_told_is_told_once_however_often_it_is_walked(kept: Kept) -> None:
    kept.list(box("a", 1))
    kept.tell()
    assert 1 == len(kept.news())
    assert [] == list(kept.it.tell()), "and nothing is walked through a second time"


def test_one_object_is_told_with_each_step(kept: Kept) -> None:
    kept.list(box("gone", 1))
    kept.news()
    kept.list(box("a", 2), box("b", 3), tell=False)

    assert [1, 2, 3] == [len(kept.told) for _ in kept.it.tell()]


def test_another_incarnation_of_the_same_version_is_another_object(kept: Kept) -> None:
    kept.list(box("a", 1, uid="first"))
    kept.list(box("a", 1, uid="second"))
    assert [(None, "1"), ("1", "1")] == kept.changes()


def test_versions_that_cannot_be_compared_are_told_with_each_list(kept: Kept) -> None:
    kept.list(odd("a", "x"), at="y")
    kept.list(odd("a", "x"), at="z")
    assert [(None, "x"), ("x", "x")] == kept.changes()


def test_a_streaming_list_may_take_back_and_change_what_it_has_sent(kept: Kept) -> None:
    kept.it.listing()
    kept.event("ADDED", box("a", 1))
    kept.event("ADDED", box("b", 2))
    kept.event("DELETED", box("a", 3))
    kept.event("MODIFIED", box("b", 4))
    kept.it.listed("4")
    kept.tell()
    assert [(None, "4")] == kept.changes()


def test_what_a_streaming_list_has_sent_unreadable_may_become_readable_or_go(kept: Kept) -> None:
    kept.it.listing()
    for name in "abc":
        kept.event("ADDED", unfit(name, 1))
    kept.event("MODIFIED", box("a", 2))
    kept.event("DELETED", box("b", 3))
    kept.it.listed("3")
    kept.tell()
    assert ([("ns", "c")], [(None, "2")]) == (list(kept.it.unreadable), kept.changes())


@pytest.mark.parametrize(
    ("stored", "listed", "is_unfit"), [(5, 6, True), (5, 5, False), (5, 4, False), (1, 1, False), (5, "x", True)]
)
def test_an_unreadable_state_in_a_list_leaves_what_is_stored_and_counts_unless_it_is_older(
    kept: Kept, stored: int, listed: int | str, is_unfit: bool
) -> None:
    kept.list(box("a", stored))
    kept.news()
    kept.list(unfit("a", listed))
    assert (stored, is_unfit, []) == (kept.version(), A in kept.it.unreadable, kept.news())


def test_of_a_list_a_new_unreadable_object_is_noted_and_forgotten_with_the_next(kept: Kept) -> None:
    kept.list(unfit("a", 3))
    assert ({A: "why 3"}, None, []) == (kept.it.unreadable, kept.version(), kept.news())
    kept.list()
    assert {} == kept.it.unreadable


def test_the_next_list_is_told_after_the_rest_of_the_one_before(kept: Kept) -> None:
    kept.list(box("a", 1), box("b", 1), tell=False)
    kept.list(box("b", 2), tell=False)
    kept.tell()
    assert [(None, "1", True, None), (None, "1", True, None), ("1", None, False, None), ("1", "2", False, None)] == (
        kept.news()
    )


# --- what happens while a list is told of ----------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["event", "deleted", "took", "buried"])
def test_whatever_happens_to_an_object_meanwhile_tells_of_its_place_in_the_list_first(kept: Kept, how: str) -> None:
    kept.list(box("a", 1), box("b", 1))
    kept.news()
    kept.list(box("a", 2), box("b", 1), tell=False)
    match how:
        case "event":
            kept.event("MODIFIED", box("a", 3))
        case "deleted":
            kept.event("DELETED", box("a", 3))
        case "took":
            kept.it.took(box("a", 3), by="me")
        case "buried":
            kept.it.buried(A, by="me")
    kept.tell()
    last = None if how in ("deleted", "buried") else "3"
    assert [("1", "2"), ("2", last)] == kept.changes()


def test_what_vanished_with_a_list_and_is_made_anew_meanwhile_is_told_as_both(kept: Kept) -> None:
    kept.list(box("a", 1))
    kept.news()
    kept.list(tell=False)
    kept.event("ADDED", box("a", 3, uid="second"))
    kept.tell()
    assert [("1", None), (None, "3")] == kept.changes()


def test_an_object_that_comes_meanwhile_is_told_once(kept: Kept) -> None:
    kept.list(box("b", 1), tell=False)
    kept.event("ADDED", box("a", 2))
    kept.tell()
    assert [(None, "2", False, None), (None, "1", True, None)] == kept.news()


def test_an_own_write_of_what_vanished_with_the_list_is_told_after_its_end(kept: Kept) -> None:
    kept.list(box("a", 1))
    kept.news()
    kept.list(tell=False)
    kept.it.took(box("a", 3, uid="second"), by="me")
    kept.tell()
    assert [("1", None, False, None), (None, "3", False, "me")] == kept.news()


# --- own writes ------------------------------------------------------------------------------------------------------


def test_an_own_write_is_stored_and_told_only_when_it_is_signed(kept: Kept) -> None:
    kept.it.took(box("a", 1))
    kept.it.took(box("a", 2), by="me")
    kept.it.took(box("a", 2), by="me")
    kept.it.took(box("a", 1), by="me")
    assert [("1", "2", False, "me")] == kept.news()
    assert 2 == kept.version()


def test_an_own_write_of_the_lowest_version_there_is_has_changed_nothing_either(kept: Kept) -> None:
    kept.event("ADDED", box("a", 1))
    kept.news()
    kept.it.took(box("a", 1), by="me")
    assert [] == kept.news()


def test_of_own_writes_whose_versions_are_no_numbers_each_counts(kept: Kept) -> None:
    kept.it.took(odd("a", "x"), by="me")
    kept.it.took(odd("a", "y"), by="me")
    assert [(None, "x"), ("x", "y")] == kept.changes()


def test_an_own_write_heals_what_was_unreadable(kept: Kept) -> None:
    kept.event("ADDED", unfit("a", 1))
    kept.it.took(box("a", 2))
    assert {} == kept.it.unreadable


@pytest.mark.parametrize(
    ("scope", "inside"),
    [
        ({"namespace": "ns"}, True),
        ({"namespace": "other"}, False),
        ({"name": "a"}, True),
        ({"name": "b"}, False),
        ({"labels": "app=x"}, True),
        ({"labels": "app=y"}, False),
        ({"labels": "app=x", "name": "b"}, False),
        ({}, True),
    ],
)
def test_an_own_write_is_kept_where_the_scope_covers_it(scope: dict[str, str], inside: bool) -> None:
    kept = Kept(**scope)
    kept.it.took(msgspec.convert(body("a", 1, labels={"app": "x"}), Box))
    assert inside is (kept.version() is not None)


def test_events_wait_for_the_end_of_a_write_of_their_object_alone(kept: Kept) -> None:
    kept.it.hold(A)
    kept.it.hold(A)
    kept.event("ADDED", box("a", 1))
    kept.event("ADDED", box("b", 2))
    kept.event("MODIFIED", box("a", 3))
    assert [(None, "2")] == kept.changes()
    kept.it.release(A)
    assert [] == kept.changes()
    kept.it.release(A)
    assert [(None, "1"), ("1", "3")] == kept.changes()
    kept.event("MODIFIED", box("a", 4))
    assert [("3", "4")] == kept.changes()


def test_an_own_delete_is_told_only_when_it_is_signed_and_only_of_what_was_there(kept: Kept) -> None:
    kept.list(box("a", 1), box("b", 1))
    kept.news()
    kept.it.buried(A)
    kept.it.buried(B, by="me")
    kept.it.buried(B, by="me")
    assert [("1", None, False, "me")] == kept.news()


@pytest.mark.parametrize(
    ("version", "uid", "deleting", "comes"),
    [
        (4, "uid-a", False, False),
        (5, "uid-a", True, False),  # not newer than what was removed
        (6, "uid-a", False, False),  # somebody's change right before the delete
        (6, "uid-a", True, True),  # finalizers keep it
        (6, "other", False, True),
        (5, "other", False, False),
    ],
)
def test_what_comes_after_an_own_delete(kept: Kept, version: int, uid: str, deleting: bool, comes: bool) -> None:
    kept.list(box("a", 5))
    kept.it.buried(A)
    kept.event("MODIFIED", box("a", version, uid=uid, deleting=deleting))
    assert comes is (kept.version() is not None)


def test_of_the_lowest_version_there_is_nothing_comes_back_after_an_own_delete(kept: Kept) -> None:
    kept.event("ADDED", box("a", 1))
    kept.it.buried(A)
    kept.event("ADDED", box("a", 1, uid="other"))
    assert kept.version() is None


def test_another_incarnation_without_comparable_versions_comes_after_an_own_delete(kept: Kept) -> None:
    kept.event("ADDED", odd("a", "x"))
    kept.it.buried(A)
    kept.event("MODIFIED", odd("a", "y"))
    assert kept.version() is None
    kept.event("ADDED", odd("a", "z", uid="other"))
    assert 0 == kept.version()


def test_an_own_delete_is_remembered_until_the_watch_tells_of_that_very_incarnation(kept: Kept) -> None:
    kept.event("ADDED", box("a", 5))
    kept.it.buried(A)
    kept.event("DELETED", box("a", 4, uid="earlier"))
    kept.event("MODIFIED", box("a", 6))
    assert kept.version() is None
    kept.event("DELETED", box("a", 7))
    kept.event("ADDED", box("a", 4, uid="restored"))  # as after a list of an etcd restored from a backup
    assert 4 == kept.version()


def test_after_a_list_that_was_asked_for_after_an_own_delete_the_list_is_believed(kept: Kept) -> None:
    kept.event("ADDED", box("a", 50))
    kept.it.buried(A)
    kept.list(at="20")  # versions went down: a backup was restored
    kept.event("ADDED", box("a", 21, uid="restored"))
    assert 21 == kept.version()


# --- own writes while a list is under way ----------------------------------------------------------------------------


def test_a_list_asked_for_before_an_own_write_does_not_take_it_back(kept: Kept) -> None:
    kept.list(box("a", 1), box("b", 1))
    kept.it.listing()
    kept.event("ADDED", box("a", 1))
    kept.event("ADDED", box("b", 1))
    kept.it.took(box("a", 5))
    kept.it.buried(B)
    kept.news()
    kept.it.listed("4")
    kept.tell()
    assert (5, None, []) == (kept.version(A), kept.version(B), kept.news())


@pytest.mark.parametrize(("at", "stays"), [("4", True), ("5", False), ("6", False), ("no number", True)])
def test_what_was_written_meanwhile_and_is_not_listed_goes_if_the_list_is_at_least_as_new(
    kept: Kept, at: str, stays: bool
) -> None:
    kept.it.listing()
    kept.it.took(box("a", 5))
    kept.it.listed(at)
    kept.tell()
    assert stays is (kept.version() is not None)


def test_of_versions_that_are_no_numbers_a_list_is_believed_about_what_was_written_meanwhile(kept: Kept) -> None:
    kept.it.listing()
    kept.it.took(odd("a", "x"))
    kept.it.took(box("b", 1))
    kept.it.listed("y")
    kept.tell()
    assert (None, 1) == (kept.version(A), kept.version(B))


def test_what_was_written_meanwhile_and_is_listed_newer_is_news(kept: Kept) -> None:
    kept.it.listing()
    kept.it.took(box("a", 5))
    kept.event("ADDED", box("a", 6))
    kept.it.listed("7")
    kept.tell()
    assert (6, [("5", "6")]) == (kept.version(), kept.changes())


def test_what_was_written_meanwhile_and_is_in_flight_again_is_judged_at_the_end_of_that(kept: Kept) -> None:
    kept.list(box("a", 1), box("b", 1))
    kept.news()
    kept.it.hold(A)
    kept.it.hold(B)
    kept.list(box("a", 4), at="9")
    assert (1, 1, []) == (kept.version(A), kept.version(B), kept.news())
    kept.it.release(A)
    kept.it.release(B)
    assert [("1", "4"), ("1", None)] == kept.changes()


def test_what_was_written_and_is_listed_as_unreadable_is_not_weighed_as_absent(kept: Kept) -> None:
    kept.list(box("a", 1))
    kept.it.listing()
    kept.it.took(box("a", 5))
    kept.event("ADDED", unfit("a", 6))
    kept.it.listed("9")
    kept.tell()
    assert (5, {A: "why 6"}) == (kept.version(), kept.it.unreadable)


def test_a_write_of_the_time_of_one_list_is_no_doubt_in_the_next(kept: Kept) -> None:
    kept.it.listing()
    kept.it.took(box("a", 5))
    kept.it.listed("9")
    kept.list(box("a", 3), at="4")  # versions went down
    assert 3 == kept.version()
