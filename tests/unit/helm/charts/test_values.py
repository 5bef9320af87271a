"""Values are decoded with places of faults, layered as helm does, and digested by meaning."""

from __future__ import annotations

import base64
import json
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moorage.helm.charts import values
from moorage.helm.parsing import helm_yaml

KEYS = st.sampled_from("abc")
TREES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.text("xyz", max_size=2)
    | st.lists(st.integers(0, 3), max_size=2),
    lambda inner: st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
MAPS = st.dictionaries(KEYS, TREES, max_size=3)


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_decode():
    assert values.decode(b64("a: {b: 1}\n")) == {"a": {"b": 1}}
    assert values.decode("") == {}
    wrapped = "\n".join(b64("a: 1   # a comment to make it long")[i : i + 16] for i in range(0, 48, 16)) + "\n"
    assert values.decode(wrapped) == {"a": 1}


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("YTo*gMQ==", "byte 3"),
        ("YTogMQ=", "byte 7"),
        (b64("a: 1\nb: [1"), "line 3, column 1"),
        (b64("a: 1\nb: : 2"), "line 2, column 4"),
        (b64("- a"), "line 1, column 1"),
        (b64("a: 1\na: 2"), "line 2, column 1"),
        (base64.b64encode(b"a: \xff").decode(), "decoded byte 3"),
    ],
)
def test_faults_have_a_place(text, where):
    with pytest.raises(values.ValuesError) as caught:
        values.decode(text)
    assert caught.value.where == where
    assert str(caught.value).startswith(where)


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(MAPS, MAPS, MAPS)
def test_layers_end_as_helm_ends_them(helm_path, make_chart, tmp_path, defaults, first, second):
    chart = make_chart({"values.yaml": json.dumps(defaults)})
    files = [tmp_path / "1.yaml", tmp_path / "2.yaml"]
    for path, layer in zip(files, (first, second), strict=True):
        path.write_text(json.dumps(layer))
    args = [helm_path, "template", "r", str(chart), *(f"--values={f}" for f in files)]
    theirs = json.loads(
        helm_yaml.load(subprocess.run(args, text=True, capture_output=True, check=True).stdout)["data"]["values"]
    )
    assert values.over_defaults(defaults, values.merge(first, second)) == theirs


@given(MAPS)
def test_digest_is_of_the_meaning(tree):
    again = json.loads(json.dumps(tree))
    assert values.digest(dict(reversed(list(tree.items())))) == values.digest(again)


def test_equal_numbers_are_equal():
    assert values.canonical({"b": 1.0, "a": [1e3]}) == b'{"a":[1000],"b":1}'
