"""The stamp: one write per change, none in steady state."""

from __future__ import annotations

from typing import Any

from moorage.api import kinds
from moorage.runtime import apply

BODY = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "ns"}, "data": {"a": "1"}}


def _compare(wanted: Any, live: Any) -> list[str]:
    return [key for key, value in wanted["data"].items() if live["data"].get(key) != value]


def _live(body: Any, version: str = "1", **data: str) -> dict[str, Any]:
    metadata = {**body["metadata"], "uid": "u", "resourceVersion": version}
    return {**body, "metadata": metadata, "data": {**body["data"], **data}}


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
    children = apply.Children(_compare)
    assert children.look(body, None) == apply.Child()
    assert not children.look(body, None).good
    older = apply.stamped({**BODY, "data": {"a": "0"}})
    assert children.look(body, _live(older)).differs == (apply.STAMP,)
    assert children.look(body, _live(BODY)).differs == (apply.STAMP,), "made by another"
    assert children.look(body, _live(body, a="drifted")).differs == ("a",)
    assert children.look(body, _live(body)).good


def test_a_verified_pair_is_not_compared_again_until_either_moves() -> None:
    calls: list[Any] = []

    def compare(wanted: Any, live: Any) -> list[str]:
        calls.append(live)
        return _compare(wanted, live)

    children, body = apply.Children(compare), apply.stamped(BODY)
    for _ in range(3):
        assert children.look(body, _live(body)).good
    assert len(calls) == 1
    assert children.look(body, _live(body, "2")).good
    assert not children.look(body, _live(body, "3", a="x")).good
    assert not children.look(body, _live(body, "3", a="x")).good
    assert len(calls) == 4, "what is not good is never taken as verified"
    children.forget("u")
    children.look(body, _live(body, "2"))
    assert len(calls) == 5


def test_the_write_names_the_incarnation_it_repairs() -> None:
    body = apply.stamped(BODY)
    fresh = apply.write(kinds.CONFIG_MAP, body, apply.Child(), why="w")
    assert "uid" not in fresh.body["metadata"]
    repair = apply.write(kinds.CONFIG_MAP, body, apply.Child("u", differs=("a",)), why="w", fill="secret")
    assert (repair.body["metadata"]["uid"], repair.fill) == ("u", "secret")
    assert repair.body["metadata"]["annotations"] == body["metadata"]["annotations"]
