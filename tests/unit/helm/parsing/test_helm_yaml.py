"""YAML is read as the real helm reads it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moorage.helm.parsing import helm_yaml

SCALARS = [
    "yes",
    "no",
    "y",
    "N",
    "on",
    "Off",
    "~",
    "null",
    "2024-01-01",
    "2024-01-01T00:00:00Z",
    "1:30",
    "1e3",
    "1E+3",
    ".5",
    "1.",
    "0777",
    "0o17",
    "0b11",
    "0x1F",
    "-0x1f",
    "+5",
    "-0",
    "08",
    "09.5",
    "1_000",
    "_1",
    "1__0",
    "1_0.5",
    "0.10",
    "-.5",
    "12e03",
    "=",
    "==",
    "a-",
    "0x",
    "0b",
    "1e",
    "1e+",
    ".",
    "+.",
    ".e1",
    "tRUE",
    "Null",
    "NULL",
    "True",
    "0.0",
    "00",
    "-01",
    "1.2.3",
    "v1",
    "=a",
]


def helm_reads(helm_path: str, chart: Path, text: str) -> dict:
    done = subprocess.run(
        [helm_path, "template", "r", str(chart), "--values=-"], input=text, text=True, capture_output=True, check=True
    )
    return json.loads(helm_yaml.load(done.stdout)["data"]["values"])


def test_plain_scalars_are_read_as_helm_does(helm_path, make_chart):
    chart = make_chart()
    text = "".join(f"k{i}: {scalar}\n" for i, scalar in enumerate(SCALARS))
    ours, theirs = helm_yaml.load(text), helm_reads(helm_path, chart, text)
    different = {SCALARS[int(k[1:])]: (ours[k], theirs[k]) for k in ours if ours[k] != theirs.get(k)}
    assert not different


@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text("0123456789.eE+-_xob:yYnNa ~", min_size=1, max_size=7), min_size=40, max_size=60))
def test_any_plain_scalar_is_read_as_helm_does(helm_path, make_chart, scalars):
    usable = []
    for scalar in scalars:
        try:
            found = helm_yaml.load(f"k: {scalar}\n")
        except helm_yaml.DocumentError:
            continue
        if isinstance(found, dict) and set(found) == {"k"} and not isinstance(found["k"], dict | list):
            usable.append(scalar)
    text = "".join(f"k{i}: {scalar}\n" for i, scalar in enumerate(usable))
    ours = helm_yaml.load(text) or {}
    theirs = helm_reads(helm_path, make_chart(), text)

    def as_float(value):
        return float(value) if isinstance(value, int) and not isinstance(value, bool) else value

    assert {k: as_float(v) for k, v in ours.items()} == {k: as_float(v) for k, v in theirs.items()}


@pytest.mark.parametrize("key", ["1", "true", "0x10", "y", "=", "off"])
def test_keys_are_texts_as_helm_makes_them(helm_path, make_chart, key):
    chart = make_chart()
    assert helm_yaml.load(f"{key}: 1\n") == helm_reads(helm_path, chart, f"{key}: 1\n")


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("a: [", 2, 1),
        ("a: b: c", 1, 5),
        ("x: 1\na: .inf", 2, 4),
        ("? [a]\n: b", 1, 3),
        ("a: *b", 1, 4),
        ("a:\n\t- b", 2, 1),
    ],
)
def test_errors_say_where(text, line, column):
    with pytest.raises(helm_yaml.DocumentError) as caught:
        helm_yaml.load(text)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_a_key_given_twice_is_refused_only_where_it_was_written_by_hand():
    assert helm_yaml.load("a: 1\na: 2") == {"a": 2}
    with pytest.raises(helm_yaml.DocumentError, match="line 2, column 1: key 'a' is given twice"):
        helm_yaml.load("a: 1\na: 2", strict=True)


def test_bombs_are_refused():
    laughs = "a: &a [1,1,1,1,1,1,1,1,1]\n"
    for below, name in zip("abcdefgh", "bcdefghi", strict=True):
        laughs += f"{name}: &{name} [{','.join(['*' + below] * 9)}]\n"
    for text in (laughs, "[" * 100_000, "a: &x [*x]", "{a: " * 5000):
        with pytest.raises(helm_yaml.DocumentError):
            helm_yaml.load(text)


def test_merge_keys_and_binary():
    assert helm_yaml.load("base: &b {x: 1, u: 2}\nz: {<<: *b, u: 3}")["z"] == {"x": 1, "u": 3}
    assert helm_yaml.load("a: !!binary aGk=") == {"a": "hi"}


def test_what_is_merged_counts_each_time_and_is_laid_beside_not_below():
    chain = "a0: &a0 {k: 1}\n" + "".join(f"a{i}: &a{i} {{<<: *a{i - 1}, k{i}: 1}}\n" for i in range(1, 4000))
    with pytest.raises(helm_yaml.TooLarge, match=f"more than {helm_yaml.MAX_NODES} keys and values"):
        helm_yaml.load(chain)

    short = "\n".join(chain.splitlines()[:250])
    assert {f"k{i}" for i in range(1, 250)} | {"k"} == set(helm_yaml.load(short)["a249"])


def test_documents_share_a_budget():
    budget = helm_yaml.Budget(10)
    assert [1, 2, 3] == helm_yaml.load("[1, 2, 3]", budget=budget)
    assert 6 == budget.left
    with pytest.raises(helm_yaml.TooLarge, match="line 3, column 4: more than 10 keys"):
        helm_yaml.load("a: 1\nb: 2\nc: d\ne: f", budget=budget)


def test_counting_ends_early():
    assert 6 == helm_yaml.count({"a": 1, "b": [2]}, 100)
    assert 11 == helm_yaml.count([[0] * 1000] * 10, 5)
