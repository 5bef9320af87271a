"""What the files of the systems declare, and which trips come of that."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.api.faults import scenario
from tests.api.faults.transitions import declared, leaves, schemas, trips

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 4},
        "size": {"type": "integer", "minimum": 1, "maximum": 3, "default": 2},
        "ref": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 4}}, "required": ["name"]},
        "own": {"type": "object"},
        "on": {"type": "boolean", "default": False},
    },
}
FORM = declared.Form(
    name="it",
    object={"kind": "It", "metadata": {"name": "it"}, "spec": {"name": "it"}},
    stir={"size": 3},
    fixed={"name": "the name"},
    leaves={"own": declared.Leaf(values=(declared.Value({"a": 1}, ends="still", words="a | b"),))},
    alone={"own": "it is a test"},
    odds=(declared.Odds({"name": "other", "ref": {"name": "x"}}, ends="ready"),),
)


def verdict(*merges: dict[str, Any], **said: Any) -> declared.Verdict:
    """Of moves that say nothing by themselves."""
    made = [declared.Move(next(iter(it)), "x", next(iter(it.values())), **said) for it in merges]
    return declared.verdict(FORM, SCHEMA, made)


@pytest.mark.parametrize(
    ("merge", "expected"),
    [
        ({"size": 1}, declared.Verdict("ready")),
        ({"size": 2}, declared.Verdict("ready", same=True)),
        ({"size": 4}, declared.Verdict("refused", ("size",))),
        ({"name": None}, declared.Verdict("refused", ("the name",))),
        ({"name": "it"}, declared.Verdict("ready", same=True)),
        ({"name": "other"}, declared.Verdict("refused", ("name",))),
        ({"ref": {}}, declared.Verdict("refused", ("name",))),
        ({"ref": {"name": "x"}}, declared.Verdict("ready")),
    ],
)
def test_what_must_come_of_a_change(merge: dict[str, Any], expected: declared.Verdict):
    """By the schema first, then by what is declared."""
    assert expected == verdict(merge)


def test_what_can_not_be_taken_back_is_so_in_company_too():
    move = declared.Move("ref.name", "declared", "x", stays="ref")

    assert ("ref",) == declared.verdict(FORM, SCHEMA, [declared.Move("size", "other", 1), move]).stays


def test_of_a_pair_the_worse_counts():
    one = declared.Move("size", "other", 1)
    bad = declared.Move("own", "declared", {"a": 1}, ends="still", words="a | b")

    assert declared.Verdict("still", ("a", "b")) == declared.verdict(FORM, SCHEMA, [one, bad])
    beyond = declared.Move("size", "above", 4)
    assert "refused" == declared.verdict(FORM, SCHEMA, [bad, beyond]).ends


def test_trips_are_singles_then_those_under_way_then_pairs():
    """And the same by the same seed."""
    drawn = trips.all_of(FORM, SCHEMA, seed=1, steps=200)
    hows = [it.how for it in drawn]
    pairs = [it for it in drawn if len(it.moves) == 2]

    assert drawn == trips.all_of(FORM, SCHEMA, seed=1, steps=200)
    assert drawn != trips.all_of(FORM, SCHEMA, seed=2, steps=200)
    assert [*range(1, len(drawn) + 1)] == [it.number for it in drawn]
    assert hows.index("settled") < hows.index("under way") < drawn.index(pairs[0])
    assert 200 <= sum(it.steps for it in drawn) < 204
    assert {"name", "size", "ref.name", "own", "on"} == trips.exercised(drawn, SCHEMA)
    assert not any(move.leaf == "own" for pair in pairs for move in pair.moves)
    assert not any(move.leaf == "size" for it in drawn if it.how == "under way" for move in it.moves)


def test_a_slice_has_both_what_is_refused_and_what_is_taken():
    some = trips.some_of(trips.all_of(FORM, SCHEMA, seed=1), 6, seed=1)

    assert {"refused"} < {it.verdict.ends for it in some}
    assert 6 == len(some)
    assert sorted(some, key=lambda it: it.number) == some


def known(system: declared.System) -> dict[str, schemas.Schema]:
    """The schemas of its kinds."""
    played = scenario.load(scenario.FOLDER / f"{system.scenario}.yaml", "none")
    return {body["spec"]["names"]["kind"]: schemas.spec_of(body) for body in scenario.definitions(played)}


@pytest.mark.parametrize("path", declared.files(), ids=lambda path: path.stem)
def test_a_file_names_leaves_that_there_are_and_begins_with_what_is_right(path: Path):
    """Else a misspelt leaf would be tried as if nothing were declared of it."""
    system = declared.load(path, "none")
    for form in system.forms:
        schema = known(system)[form.kind]
        there = {leaf.name for leaf in leaves.of(schema)}
        named = {*form.fixed, *form.leaves, *form.left_out, *form.only, *form.alone}
        named |= {name for group in form.apart for name in group}

        assert set() == named - there, form.name
        assert [] == schemas.faults(schema, schemas.filled(schema, form.spec)), form.name
        assert all(form.left_out.values()), form.name


@pytest.mark.parametrize("path", declared.files(), ids=lambda path: path.stem)
def test_enough_leaves_are_changed_often_enough(path: Path):
    """Nineteen of twenty of each kind, and a thousand steps of each system."""
    system, used, steps = declared.load(path, "none"), defaultdict[str, set[str]](set), 0
    for form in system.forms:
        schema = known(system)[form.kind]
        drawn = trips.all_of(form, schema, seed=1, steps=-(-1000 // len(system.forms)))
        used[form.kind] |= trips.exercised(drawn, schema)
        steps += sum(it.steps for it in drawn)

    assert steps >= 1000
    for kind, names in used.items():
        assert len(names) >= 0.95 * len(leaves.of(known(system)[kind])), kind


def test_a_move_is_told_in_one_short_line():
    move = declared.Move("a.b", "greatest", "x" * 1000)

    assert {"a": {"b": "x" * 1000}} == move.merge
    assert len(move.told) < 100
    assert msgspec.json.encode(move)
