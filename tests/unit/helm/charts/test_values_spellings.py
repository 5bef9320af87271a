"""Values reach the templates as they do with plain helm, however they are spelled, or are refused with the reason."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path

import pytest

from moorage.helm.charts import values
from moorage.helm.parsing import helm_yaml

DUMP = """apiVersion: v1
kind: ConfigMap
metadata: {name: dump}
data:
{{- range $key, $v := .Values }}
  {{ $key }}-p: {{ printf "%v" $v | b64enc }}
  {{ $key }}-q: {{ toString $v | b64enc }}
  {{ $key }}-y: {{ toYaml $v | b64enc }}
  {{ $key }}-j: {{ toJson $v | b64enc }}
{{- end }}
"""

ALIKE = [
    "😀",
    '"\\U0001F600"',
    "'🂡𐀀'",
    "|\n    😀\n    two lines\n",
    ">\n    folded\n    text\n\n    more\n",
    "|+\n    kept\n\n",
    '"a\\tb\\e\\0\\a\\x7f\\x85\\xa0\\u2028\\u2029\\ufeff"',
    '"\\uFFFD\\U0010FFFF"',
    "'it''s'",
    '"a\\\n     b"',
    "-0.0",
    "-0",
    "+0.0",
    "-0e0",
    "1e400",
    "-1e400",
    ".5e999",
    "1e-400",
    "1e300",
    "1e21",
    "1e15",
    "123456789012345678",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775808",
    "-9223372036854775809",
    "9" * 400,
    "9" * 5000,
    "0." + "1" * 400,
    "0x" + "f" * 17,
    "0xffffffffffffffff",
    "0b" + "1" * 65,
    "-0b11",
    "+0o17",
    "0779",
    "1_000",
    "0x_ff",
    "1__0.5",
    "1.5e+3",
    "2001-12-14t21:59:43.10-05:00",
    "2001-12-14 21:59:43.10",
    "190:20:30",
    "!foo 5",
    "!foo bar",
    "!foo {a: 1}",
    "!foo [1]",
    "!foo ''",
    "!!str 5",
    "!!str null",
    "!!str",
    '!!int "5"',
    "!!float 5",
    '!!bool "yes"',
    "!!null ''",
    "!!binary aGk=",
    "!!set {a, b}",
    "!!omap [a: 1]",
    "!!map {a: 1}",
    "!!timestamp 2001-12-14",
    "!<tag:example.com,2000:x> 5",
    "! 5",
    "&a 5",
    "{1: a, true: b, 1.5: c, 0.1: d, 1e10: e, 1e-7: f, 123456.7: g, 1e39: h, 0x10: i, no: j}",
    "{? a : b, c, 'd': e, f: }",
    "[a, b, ]",
    "{a: &x {k: 1}, b: {k: 2, <<: *x}, c: {<<: *x, k: 2}}",
    "{a: &x {k: 1}, y: &y {k: 2, m: 3}, b: {<<: [*x, *y]}, c: {<<: {z: 1}}}",
    "{'<<': 1}",
    '{"<<": {a: 1}}',
    "{!!merge <<: {a: 1}}",
    "{a: {<<: &q {k: 1}}, b: *q}",
    "~",
    "=",
    "a #b",
    "a#b",
    "'#'",
    "\n    - - 1\n      - 2\n    -\n      a: 1",
    "\n    ? a\n    : b",
    "'*'",
    "{a:1}",
    "[a:1]",
    "[a: 1]",
    '{"a":1}',
    "http://x:1/#y",
    "x\n    y\n    z",
    "n",
    "NO",
    "oFF",
    "0o8",
    "1.e3",
    "1.",
    "+.5",
    "-.5e-3",
    "._5",
    "1e",
    "infinity",
    "NaN",
    "0x1p-2",
]

REFUSED_BY_BOTH = [
    "a: 1\nb: .inf",
    "a: .nan",
    "a: !!int x",
    "a: !!int 5.0",
    "a: !!bool 1",
    "a: !!null x",
    "a: !!timestamp x",
    "a: !!binary '*'",
    "a: {[1]: 2}",
    "a: {null: 2}",
    "a: {9223372036854775808: 2}",
    "a: {<<: 1}",
    "a: *b",
    "a: &a [*a]",
    "- 1",
    "5",
    "a: 1\n--- b",
    "a: '\x01'",
    "a: \ud83d",
    'a: "\\ud83d\\ude00"',
    "\ta: 1",
    "a: @b",
    "a: `b",
]

DOCUMENTS = [
    "a: 1\n---\n",
    "---\na: 1\n---\n---\n",
    "a: {b: 1}\n---\na: {c: 2}\n--- # more\nd: [1]\n",
    "a: {b: 1}\n---\na: [1]\n---\na: {d: null}\n",
    "# nothing\n",
    "",
    "---",
    "a: 1\n...\n",
    "\ufeffa: 1\n",
    "a: |\n  --- x\n  y\n",
    "a: 1\r\nb: 2\r\n",
    "~",
    "null\n---\na: 1",
]


POINTS = [*range(0x300), 0x2028, 0x2029, 0xD7FF, 0xE000, 0xFEFF, 0xFFFD, 0xFFFE, 0xFFFF, 0x10000, 0x1FFFE, 0x10FFFF]


@pytest.fixture
def dump(make_chart) -> Path:
    return make_chart({"templates/probe.yaml": DUMP})


def render(helm_path: str, chart: Path, given: bytes) -> str | None:
    """What helm makes of it; None if it refuses."""
    argv = [helm_path, "template", "r", str(chart), "--values=-"]
    done = subprocess.run(argv, input=given, capture_output=True, check=False)
    return done.stdout.decode() if done.returncode == 0 else None


def test_each_spelling_is_for_templates_what_it_is_with_plain_helm(helm_path, dump):
    text = "".join(f"k{i}: {spelling}\n" for i, spelling in enumerate(ALIKE))
    theirs = render(helm_path, dump, text.encode())
    ours = render(helm_path, dump, values.encode(values.parse(text)))

    assert theirs is not None
    assert helm_yaml.load(theirs)["data"] == helm_yaml.load(ours or "")["data"]


@pytest.mark.parametrize("text", DOCUMENTS)
def test_several_documents_are_layers_as_they_are_for_helm(helm_path, dump, text):
    assert render(helm_path, dump, text.encode()) == render(helm_path, dump, values.encode(values.parse(text)))


@pytest.mark.parametrize("text", REFUSED_BY_BOTH)
def test_what_helm_refuses_is_refused_with_a_reason(helm_path, dump, text):
    assert render(helm_path, dump, text.encode(errors="surrogatepass")) is None
    with pytest.raises(values.ValuesError, match=r"\w"):
        values.parse(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: 1\na: 2", "key 'a' is given twice"),
        ("a: 1\n...\nb: 2", "did not find expected <document start>"),
        ("a: {1: x, '1': y}", "key '1' is given twice"),
    ],
)
def test_what_helm_takes_half_is_refused_where_a_user_wrote_it(helm_path, dump, text, says):
    assert render(helm_path, dump, text.encode()) is not None
    with pytest.raises(values.ValuesError, match=says):
        values.parse(text)


def test_all_characters_that_json_has_arrive(helm_path, dump):
    points = [chr(at) for at in POINTS]
    text = "".join(points)
    found = helm_yaml.load(render(helm_path, dump, values.encode({"t": [*points, text]})) or "")

    assert [*points, text] == json.loads(base64.b64decode(found["data"]["t-j"]))


def test_the_longest_key_arrives_and_a_longer_one_is_refused(helm_path, dump):
    longest = "\x80\x7f" * (helm_yaml.MAX_KEY // 12 - 1)
    written = json.dumps({"t": {longest: 1}})
    found = helm_yaml.load(render(helm_path, dump, values.encode(values.parse(written))) or "")

    assert {longest: 1} == json.loads(base64.b64decode(found["data"]["t-j"]))
    with pytest.raises(values.ValuesError, match="key of 1008 characters; at most 1000 may be"):
        values.parse(json.dumps({"t": {longest + "x" * 22: 1}}))
