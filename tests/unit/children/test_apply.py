"""The stamp: one write per change, none in steady state."""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.api import builtin
from moorage.children import apply
from moorage.runtime.verified import Verified

BODY = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "ns"}, "data": {"a": "1"}}


def _live(body: Any, version: str = "1", **data: str) -> dict[str, Any]:
    metadata = {**body["metadata"], "uid": "u", "resourceVersion": version}
    return {**body, "metadata": metadata, "data": {**body["data"], **data}}


def _owned(body: Any, manager: str, **data: str) -> dict[str, Any]:
    """With the note that `manager` was the last to set data.a."""
    live = _live(body, **data)
    notes = [{"manager": manager, "operation": "Apply", "fieldsV1": {"f:data": {"f:a": {}}}}]
    return {**live, "metadata": {**live["metadata"], "managedFields": notes}}


def test_a_digest_names_the_body_whatever_the_order_its_stamp_and_uid() -> None:
    shuffled = {k: BODY[k] for k in reversed(BODY)}
    stamped = apply.stamped(shuffled)
    again = {**stamped, "metadata": {**stamped["metadata"], "uid": "u"}}
    assert apply.digest(BODY) == apply.digest(stamped) == apply.digest(again)
    assert apply.digest({**BODY, "data": {"a": "2"}}) != apply.digest(BODY)
    assert apply.digest(BODY, key=b"k") != apply.digest(BODY)
    assert apply.STAMP not in BODY["metadata"], "the caller's body is left alone"


def test_missing_changed_drifted_good() -> None:
    body = apply.stamped(BODY)
    children = apply.Children(Verified())
    assert children.look(body, None) == apply.Child()
    assert not children.look(body, None).good
    older = apply.stamped({**BODY, "data": {"a": "0"}})
    assert children.look(body, _live(older)).differs == (apply.STAMP,)
    assert children.look(body, _live(BODY)).differs == (apply.STAMP,), "made by another"
    assert children.look(body, _live(body, a="drifted")).differs == ("data.a",)
    assert children.look(body, _live(body)).good


def test_a_verified_pair_is_not_compared_again_until_either_moves() -> None:
    children, body = apply.Children(Verified()), apply.stamped(BODY)

    assert children.look(body, _live(body)).good
    assert children.look(body, _live(body, a="x")).good, "the same version can't differ, and is not compared"
    assert children.look(body, _live(body, "2")).good
    assert not children.look(body, _live(body, "3", a="x")).good
    assert not children.look(body, _live(body, "3", a="x")).good, "what is not good is never taken as verified"
    newer = apply.stamped({**BODY, "metadata": {**BODY["metadata"], "labels": {"l": "1"}}})
    assert not children.look(newer, _live(newer, "2", a="x")).good, "another digest at a verified version"


def test_what_the_server_answered_to_an_apply_is_not_compared() -> None:
    verified, body = Verified(), apply.stamped(BODY)
    children = apply.Children(verified)
    verified.took(body, _answer(_live(body, "2")))

    assert children.look(body, _live(body, "2", a="not looked at")).good
    assert not children.look(body, _live(body, "3", a="x")).good, "another has written since"
    other = apply.stamped({**BODY, "data": {"a": "2"}})
    assert not children.look(other, _live(body, "2")).good, "something else is wanted now"


def test_an_answer_that_is_not_to_this_body_tells_nothing() -> None:
    verified, body = Verified(), apply.stamped(BODY)
    verified.took(body, _answer(_live(apply.stamped({**BODY, "data": {"a": "2"}}), "2")))
    verified.took(BODY, _answer(_live(BODY, "2")))

    assert not apply.Children(verified).look(body, _live(body, "2", a="x")).good


def test_the_memory_of_what_is_good_is_bounded() -> None:
    verified = Verified(remembered=2)
    for uid in ("a", "b", "a", "c"):
        verified.note(uid, "digest", "1")

    assert [True, False, True] == [verified.knows(uid, "digest", "1") for uid in "abc"]


def _answer(live: dict[str, Any]) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(live))


def test_what_the_applier_still_owns_is_as_it_wrote_it_whatever_a_webhook_made_of_it() -> None:
    body = apply.stamped(BODY)

    assert apply.Children(Verified()).look(body, _owned(body, "moorage", a="by a webhook")).good
    assert apply.Children(Verified()).look(body, _owned(body, "kubectl-edit", a="by hand")).differs == ("data.a",)
    assert apply.Children(Verified(), "another").look(body, _owned(body, "moorage", a="by hand")).differs == ("data.a",)
    assert apply.Children(Verified(), "another").look(body, _owned(body, "another", a="by a webhook")).good


def test_the_write_names_the_incarnation_it_repairs() -> None:
    body = apply.stamped(BODY)
    fresh = apply.write(builtin.CONFIG_MAP, body, apply.Child(), why="w")
    assert "uid" not in fresh.body["metadata"]
    repair = apply.write(builtin.CONFIG_MAP, body, apply.Child("u", differs=("a",)), why="w", fill="secret")
    assert (repair.body["metadata"]["uid"], repair.fill) == ("u", "secret")
    assert repair.body["metadata"]["annotations"] == body["metadata"]["annotations"]
