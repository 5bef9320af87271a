"""What all of a version is called: the product's names, and never two of one name."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from moorage.operators.kre import names
from moorage.operators.kre.krt import fields, model

OF = names.Names("demo", "greeter-v1")
STORE = model.ObjectStore("models")
SHARED = model.ObjectStore("models", "project")


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        ("demo-greeter-v1-entrypoint", OF.entrypoint),
        ("demo-greeter-v1-krt-conf", OF.config),
        ("demo-greeter-v1-conf-files", OF.files),
        ("demo-active-entrypoint", OF.active),
        ("demo-greeter-v1-greet-hello", OF.deployment("greet", "hello")),
        ("demo_greeter-v1_Greet", OF.stream("Greet")),
        ("demo_greeter-v1_Greet.hello", OF.subject("Greet", "hello")),
        ("demo_greeter-v1_greet_models", OF.object_store("greet", STORE)),
        ("demo_greeter-v1_models", OF.object_store("greet", SHARED)),
        ("key-store_demo_greeter-v1", OF.key_values()),
        ("key-store_demo_greeter-v1_greet", OF.key_values("greet")),
        ("key-store_demo_greeter-v1_greet_hello", OF.key_values("greet", "hello")),
    ],
)
def test_names_are_the_product_s(expected: str, found: str) -> None:
    """Where they fit."""
    assert expected == found


def test_a_stream_keeps_what_comes_in_and_what_nodes_publish() -> None:
    """By node, with its topics; and a node reads what its subscriptions say."""
    hello = model.Node("hello", "a", "b", subscriptions=("entrypoint", "last.again"))
    last = model.Node("last", "a", "b", subscriptions=("hello",))
    workflow = model.Workflow("greet", "Greet", "last", (hello, last))
    stream = "demo_greeter-v1_Greet"

    kept = [f"{stream}.entrypoint", f"{stream}.hello", f"{stream}.hello.*", f"{stream}.last", f"{stream}.last.*"]
    assert kept == list(OF.subjects(workflow))
    assert (f"{stream}.entrypoint", f"{stream}.last.again") == OF.inputs("Greet", hello)


def test_what_is_too_long_is_cut_and_told_apart() -> None:
    """Two that differ in what was cut off stay two."""
    of = names.Names("r" * 40, "v" * 19)
    one, other = of.deployment("w" * 19, "n" * 19), of.deployment("w" * 19, "n" * 18 + "m")

    assert names.LONGEST >= len(one)
    assert one != other
    assert re.fullmatch(r"r{40}-v{10}--[0-9a-f]{10}", one)


Named = tuple[str, str, str]  # version, workflow, node
PIECES = st.lists(st.sampled_from(["a", "b", "0123456789", "a-", "entrypoint"]), min_size=3, max_size=6)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Named, Named]:
    """Two nodes whose names, joined by dashes, are often the same text, cut in different places."""
    one, other = (draw(PIECES) for _ in range(2))
    if draw(st.booleans()):
        other = one
    return cut(one, draw), cut(other, draw)


def cut(pieces: list[str], draw: st.DrawFn) -> Named:
    first = draw(st.integers(1, len(pieces) - 2))
    second = draw(st.integers(first + 1, len(pieces) - 1))
    parts = ["-".join(each).strip("-") for each in (pieces[:first], pieces[first:second], pieces[second:])]
    return parts[0], parts[1], "last" if parts[2] == model.ENTRYPOINT else parts[2]


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(["a", "a-b", "r" * 55]), pairs())
@example("a", (("v", "a-b", "c"), ("v", "a", "b-c")))
@example("a", (("v-a", "b", "c"), ("v", "a", "b-c")))
@example("a", (("v-a", "b", "c"), ("v", "a-b", "c")))
def test_no_two_nodes_share_a_deployment(runtime: str, both: tuple[Named, Named]) -> None:
    """Of one runtime, whatever their versions, workflows and names; and each fits where it is used."""
    one, other = both
    (version, workflow, node), (version_2, workflow_2, node_2) = one, other
    of, of_2 = names.Names(runtime, version), names.Names(runtime, version_2)
    made, made_2 = of.deployment(workflow, node), of_2.deployment(workflow_2, node_2)

    assert (one == other) is (made == made_2)
    for each in (made, of.entrypoint, of.config, of.files, of.active):
        assert fields.NAME.fullmatch(each)
        assert names.LONGEST >= len(each)
    assert made not in {of_2.entrypoint, of.entrypoint}
    assert 4 == len({of.entrypoint, of.config, of.files, of.active})
    assert (version == version_2) is (of.entrypoint == of_2.entrypoint)


@settings(max_examples=200, deadline=None)
@given(pairs(), st.sampled_from(["workflow", "project"]), st.sampled_from(["workflow", "project"]))
def test_no_two_share_what_is_nats(both: tuple[Named, Named], scope: model.Scope, scope_2: model.Scope) -> None:
    """Streams, subjects, buckets and object stores."""
    one, other = both
    of, of_2 = names.Names("a", one[0]), names.Names("a", other[0])

    assert (one == other) is (of.key_values(*one[1:]) == of_2.key_values(*other[1:]))
    assert (one == other) is (of.subject(*one[1:]) == of_2.subject(*other[1:]))
    store, store_2 = model.ObjectStore(one[2], scope), model.ObjectStore(other[2], scope_2)
    same = scope == scope_2 and (one == other if scope == "workflow" else (one[0], one[2]) == (other[0], other[2]))
    assert same is (of.object_store(one[1], store) == of_2.object_store(other[1], store_2))
