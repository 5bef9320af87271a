"""What a krt.yml says, and what is said of one that is wrong: where, what, and what to do."""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from moorage.operators.kre.krt import fields, model, reading

from . import texts


def told(data: bytes) -> list[str]:
    return [
        f"{each.line}:{each.column} {each.severity}: {each.message}; {each.fix}" for each in reading.read(data).problems
    ]


def test_both_versions_are_one_form() -> None:
    """The row of a version 1 is the subscriptions of a version 2."""
    first, second = reading.read(texts.V1.encode()), reading.read(texts.V2.encode())

    assert () == first.problems
    assert () == second.problems
    assert first.krt is not None
    assert second.krt is not None
    assert ("v1", "v2") == (first.krt.krt_version, second.krt.krt_version)
    row = [(node.name, node.subscriptions) for node in first.krt.workflows[0].nodes]
    assert [("first", ("entrypoint",)), ("last", ("first",))] == row
    assert row == [(node.name, node.subscriptions) for node in second.krt.workflows[0].nodes]
    assert "last" == first.krt.workflows[0].exitpoint == second.krt.workflows[0].exitpoint


def test_all_fields_are_read() -> None:
    """Those with a default too."""
    store = "objectStore: {name: models, scope: project}\n        gpu: true"
    krt = reading.read(texts.changed(texts.V2, "replicas: 2", f"replicas: 3\n        {store}")).krt

    assert krt is not None
    node = krt.workflows[0].nodes[1]
    assert (3, True, model.ObjectStore("models", "project")) == (node.replicas, node.gpu, node.object_store)
    assert (
        model.Node("first", "konstellation/kre-py:latest", "src/first.py", subscriptions=("entrypoint",))
        == (krt.workflows[0].nodes[0])
    )
    assert (("API_KEY",), ()) == (krt.config.variables, krt.config.files)
    assert ("public_input.proto", "konstellation/kre-entrypoint:latest") == (krt.entrypoint.proto, krt.entrypoint.image)


@pytest.mark.parametrize(
    "spared", ["config:\n  variables: [API_KEY]\n", "        replicas: 2\n"], ids=["config", "replicas"]
)
def test_what_need_not_be_there(spared: str) -> None:
    """It has a default."""
    assert [] == told(texts.changed(texts.V2, spared, ""))


SECOND = [
    # --- names ---
    ("version: greeter-v1", "version: Greeter v1", "2:10 error: version 'Greeter v1' can't be part of", "greeter-v1$"),
    (
        "version: greeter-v1",
        "version: greeter-version-no-1",
        "2:10 error: version .* has 20 char.*room for 19",
        "short",
    ),
    ("version: greeter-v1", "version: 1", "2:10 error: version is a number, where text is expected", "in quotes"),
    (
        "version: greeter-v1",
        "version: active",
        "2:10 error: the version can't be called 'active': the Service",
        "other",
    ),
    ("name: greet\n", "name: -greet\n", "10:11 error: name '-greet' can't be part of an object's name", ": greet$"),
    ("name: first", "name: on", "14:15 error: name is true or false, where text is expected", "put it in quotes"),
    # --- missing ---
    ("version: greeter-v1\n", "", "1:1 error: version is missing", "give the version a name"),
    ("description: Says hello.\n", "", "1:1 error: description is missing", "say in a sentence"),
    ("  proto: public_input.proto\n", "", "5:3 error: proto is missing", "name the .proto file"),
    ("    entrypoint: Greet\n", "", "10:5 error: entrypoint is missing", "name the method"),
    ("    exitpoint: last\n", "", "10:5 error: exitpoint is missing", "name the node whose messages"),
    ("        src: src/first.py\n", "", "14:9 error: src is missing", "name the file that the node runs"),
    ("[entrypoint]", "[]", "17:24 error: node 'first' subscribes to nobody", "other nodes, or entrypoint"),
    # --- kinds ---
    ("replicas: 2", "replicas: 0", "21:19 error: replicas is 0", "whole number from 1 to 100"),
    ("replicas: 2", "replicas: 2.5", "21:19 error: replicas is 2.5", "whole number from 1 to 100"),
    ("replicas: 2", "replicas: '2'", "21:19 error: replicas is text", "without quotes"),
    ("replicas: 2", "gpu: 'yes'", "21:14 error: gpu is text, where true or false is expected", "without quotes"),
    ("[API_KEY]", "API_KEY", "8:14 error: variables is text, where a list is expected", "'- '"),
    ("[API_KEY]", "[[API_KEY]]", "8:15 error: the name of a config key is a list", ""),
    (
        "  proto: public_input.proto\n  image: konstellation/kre-entrypoint:latest\n",
        "  all\n",
        "5:3 error: entrypoint is text, where a mapping is expected",
        "write its proto and image",
    ),
    # --- values ---
    (
        "public_input.proto",
        "public_input.txt",
        "5:10 error: proto 'public_input.txt' does not end in .proto",
        "service",
    ),
    ("public_input.proto", "../in.proto", "5:10 error: proto '../in.proto' leads out of the archive", "without '..'"),
    ("src/last.py", "/src/last.py", "20:14 error: src '/src/last.py' leads out", "relative to krt.yml"),
    ("konstellation/kre-entrypoint:latest", "Kre Entrypoint", "6:10 error: image 'Kre Entrypoint' is no ref", "lower"),
    (
        "entrypoint: Greet",
        "entrypoint: greet.me",
        "11:17 error: entrypoint 'greet.me' can't be the name of a",
        "method",
    ),
    ("[API_KEY]", "[api-key]", "8:15 error: config key 'api-key' can't be the name of an env", "upper-case letters"),
    ("[API_KEY]", "[A, A]", "8:18 error: config key A is given twice, first in variables", "take one out"),
    ("[API_KEY]", "[KRT_A]", "8:15 warning: config key KRT_A begins with KRT_", "another name"),
    ("replicas: 2", "objectStore: {name: a, scope: node}", "21:39 error: scope 'node' is unknown", "write workflow"),
    ("replicas: 2", "objectStore: {name: A_b}", "21:29 error: name 'A_b' can't be part of", "a-b$"),
    # --- fields that there are not ---
    ("replicas: 2", "replica: 2", "21:9 error: a node has no field 'replica'", "did you mean replicas?"),
    (
        "exitpoint: last",
        "exitPoint: last",
        "12:5 error: a workflow has no field 'exitPoint'",
        "did you mean exitpoint?",
    ),
    ("config:\n", "nodes: []\nconfig:\n", "7:1 error: version v2 has no nodes here", "its workflow's nodes"),
    ("exitpoint: last", "exitpoint: last\n    sequential: [a]", "13:5 error: version v2 has no sequential", "in nodes"),
    # --- the version of the format ---
    ("krtVersion: v2\n", "", "1:1 error: krtVersion is missing, which means v1, but", "add a line krtVersion: v2"),
    ("krtVersion: v2", "krtVersion: 2", "1:13 error: krtVersion '2' is unknown", "write krtVersion: v2"),
    # --- the graph ---
    (
        "[entrypoint]",
        "[entripoint]",
        "17:25 error: node 'first' subscribes to 'entripoint', which is no",
        "entrypoint?",
    ),
    ("[first]", "[frist.topic]", "22:25 error: node 'last' subscribes to 'frist', which is no node", "mean first?"),
    ("[first]", "[first, first]", "22:32 error: node 'last' subscribes to 'first' twice", "take one out"),
    ("[first]", "[first.a.b]", "22:25 error: 'a.b' is no topic of node 'first'", "for all topics"),
    ("[first]", "[first.*, first.a]", "22:34 warning: node 'last' gets first.a twice", "take one out"),
    ("[first]", "[entrypoint.a]", "22:25 error: the entrypoint publishes no topics", "write entrypoint"),
    (
        "exitpoint: last",
        "exitpoint: lost",
        "12:16 error: exitpoint 'lost' is no node of workflow 'greet'",
        "mean last?",
    ),
    (
        "[entrypoint]",
        "[last]",
        "12:16 error: no way leads from the entrypoint to the exitpoint 'last'",
        "first node sub",
    ),
    (
        "[first]",
        "[last]",
        "12:16 error: no way leads from the entrypoint to the exit",
        "subscribe to one of: entrypoint, fi",
    ),
    ("[first]", "[first, last]", "22:24 note: messages can go round: last -> last", "ends it"),
    ("[entrypoint]", "[entrypoint, last.again]", "17:24 note: messages can go round: first -> last -> first", "ends"),
    # --- YAML ---
    (
        "version: greeter-v1",
        "version: greeter-v1\nversion: b",
        "3:1 error: key 'version' is given twice",
        "each key once",
    ),
    ("description: Says", "description: 'Says", "", "correct it as YAML"),
    ("config:", "\tconfig:", "7:1 error: found a tab character", "indentation by spaces"),
    ("[entrypoint]", "*nobody", "17:24 error: alias 'nobody' has no anchor", "correct it as YAML"),
]


@pytest.mark.parametrize(("old", "new", "what", "fix"), SECOND, ids=[f"{new[:40]!r}" for _, new, *_ in SECOND])
def test_what_is_wrong_in_version_2(old: str, new: str, what: str, fix: str) -> None:
    """One problem for one mistake, at its place, with what to do."""
    found = told(texts.changed(texts.V2, old, new))

    assert 1 == len(found), found
    assert re.match(what, found[0])
    assert re.search(fix, found[0].partition("; ")[2])


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        (
            "name: first",
            "name: entrypoint",
            ["14:15 error: a node can't be called 'entrypoint'", "22:25 error: node 'last'"],
        ),
        (
            "name: first",
            "name: last",
            ["18:15 error: two nodes of workflow 'greet' are", "22:25 error: node 'last' sub"],
        ),
        ("krtVersion", "krtVersoin", ["1:1 error: krt.yml has no field 'krtVersoin'"]),
        ("config:", "confg:", ["7:1 error: krt.yml has no field 'confg'"]),
    ],
)
def test_a_mistake_and_what_follows_from_it(old: str, new: str, what: list[str]) -> None:
    """What is nearly a field's name is read as that field, so that nothing else is told of it."""
    found = told(texts.changed(texts.V2, old, new))

    assert len(what) == len(found), found
    assert all(map(re.match, what, found)), found


FIRST = [
    ("[first, last]", "[first, lost]", "19:25 error: there is no node 'lost' in nodes", "did you mean last?"),
    ("[first, last]", "[first, first, last]", "19:25 error: node 'first' is in the row twice", "a second node"),
    ("[first, last]", "[]", "19:17 error: the workflow has no nodes", "in sequential"),
    ("[first, last]", "[first]", "12:5 warning: node 'last' is in no workflow's sequential, so it never runs", ""),
    ("gpu: true", "replicas: 2", "15:5 error: replicas is a field of version v2 alone", "krtVersion: v2"),
    ("gpu: true", "subscriptions: [a]", "15:5 error: subscriptions is a field of version v2 alone", "krtVersion: v2"),
    ("description: Says hello.", "krtVersion: v3\ndescription: a", "2:13 error: krtVersion 'v3' is unknown", "v1$"),
]


@pytest.mark.parametrize(("old", "new", "what", "fix"), FIRST, ids=[f"{new[:40]!r}" for _, new, *_ in FIRST])
def test_what_is_wrong_in_version_1(old: str, new: str, what: str, fix: str) -> None:
    """As in version 2, with its own words."""
    found = told(texts.changed(texts.V1, old, new))

    assert 1 == len(found), found
    assert re.match(what, found[0])
    assert re.search(fix, found[0].partition("; ")[2])


def test_two_nodes_of_version_1_with_one_name() -> None:
    """The second is told of; the row can only mean the first."""
    found = told(texts.V1.replace("last", "first").encode())

    assert found[0].startswith("12:11 error: two nodes are called 'first'")


def test_workflows_are_told_apart() -> None:
    """By name, and by method, as two of one method would share a stream."""
    twice = texts.V2 + texts.V2.partition("workflows:\n")[2]

    assert [
        "23:11 error: two workflows are called 'greet'; rename one of them",
        "24:17 error: workflow 'greet' has the entrypoint Greet already; give each workflow a method of its own: "
        "messages of both would go through one stream",
    ] == told(twice.encode())


def test_all_is_told_at_once() -> None:
    """In the order of the text, however many."""
    text = texts.V2.replace("version: greeter-v1", "version: A").replace("replicas: 2", "replicas: no")
    found = told(text.replace("[first]", "[nobody]").encode())

    assert ["2:10", "21:19", "22:25"] == [each.partition(" ")[0] for each in found]


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "1:1 error: there is nothing in it"),
        (b"# nothing\n", "1:1 error: there is nothing in it"),
        (b"- a\n", "1:1 error: krt.yml is a list, where a mapping is expected"),
        (b"a: 1\n---\nb: 2\n", "0:0 error: 2 documents where one is expected"),
        (b"version: a\nb: \xff\n", "2:1 error: it is not UTF-8 text from here on"),
        (b"a: &x [b]\nc: &x [d]\n", "2:4 error: an anchor of this name is given before"),
        (b"[" * 1000, "1:201 error: nested deeper than 200"),
        (b" " * (reading.MAX_TEXT + 1), f"0:0 error: it has {reading.MAX_TEXT + 1} bytes; at most"),
    ],
)
def test_what_is_no_krt_at_all(data: bytes, what: str) -> None:
    """Told without a trace of how it is read."""
    assert told(data)[0].startswith(what)


def test_a_byte_order_mark_and_anchors_are_no_harm() -> None:
    """As editors write them; an anchor's place is told where the text stands."""
    text = texts.V2.replace("image: konstellation/kre-py:latest", "image: &py a/b", 1)
    text = text.replace("image: konstellation/kre-py:latest", "image: *py")

    assert [] == told(b"\xef\xbb\xbf" + text.encode())
    assert [f"{line}:{column} error" for line, column in ((15, 16), (15, 16))] == [
        each[:11] for each in told(text.replace("a/b", "A").encode())
    ]


def test_a_text_made_to_blow_up_is_refused() -> None:
    """Aliases of aliases, and lists beyond any version."""
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    bomb += "".join(f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 10)}]\n" for n in range(8))

    assert "keys and values" in told(bomb.encode())[0]
    many = texts.V2 + texts.V2.partition("workflows:\n")[2] * reading.MAX_WORKFLOWS
    assert any(f"workflows has {reading.MAX_WORKFLOWS + 1} entries" in each for each in told(many.encode()))


def test_problems_are_listed_up_to_a_limit_and_still_count() -> None:
    """Warnings beyond it never hide an error."""
    keys = ", ".join(f"KRT_{n}" for n in range(150))
    read = reading.read(texts.changed(texts.V2, "[API_KEY]", f"[{keys}, bad]"))

    assert fields.MAX_PROBLEMS == sum(each.severity == "warning" for each in read.problems)
    assert read.krt is None
    assert any(each.severity == "error" for each in read.problems)


IMAGES = {
    "a": True,
    "a/b:1": True,
    "registry.example.com:5000/team/runner:1.0": True,
    "localhost/a": True,
    "a@sha256:" + "0" * 64: True,
    "a:1@sha256:" + "0" * 64: True,
    "a__b/c--d.e:V_1.0-x": True,
    "A": False,
    "a:": False,
    "a/": False,
    "/a": False,
    "a b": False,
    "a@sha256:0": False,
    "a:1:2": False,
    "a:" + "x" * 129: False,
    "http://a/b": False,
    "a\n": False,
}


@pytest.mark.parametrize(("image", "good"), IMAGES.items())
def test_references_to_images(image: str, good: bool) -> None:
    """As container runtimes take them."""
    assert good is bool(fields.IMAGE.fullmatch(image))


def test_a_version_is_the_same_however_often_it_is_written() -> None:
    """What is read, written as YAML and read again is the same."""
    krt = reading.read(texts.V2.encode()).krt
    again = reading.read(msgspec.json.encode(krt)).krt

    assert krt is not None
    assert krt == again


PIECES = st.sampled_from(
    ["name: x", "nodes", "- ", "[", "]", "{", "}", "*py", "&py ", ": ", "\n", "  ", "v1", "'", "1"]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(texts.V2)), st.integers(0, 12), PIECES), max_size=6))
@example([(0, len(texts.V2), "")])
def test_no_text_is_a_surprise(cuts: list[tuple[int, int, str]]) -> None:
    """A good text, damaged anywhere: never an exception; and whatever is not taken has an error with a place in it."""
    text = texts.V2
    for at, length, piece in cuts:
        text = text[:at] + piece + text[at + length :]
    read = reading.read(text.encode())

    errors = [each for each in read.problems if each.severity == "error"]
    assert (read.krt is None) is bool(errors)
    lines = text.count("\n") + 1
    assert all(0 <= each.line <= lines + 1 and each.message for each in read.problems)
