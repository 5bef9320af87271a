"""What a version reads of ConfigMaps and Secrets, and what it lacks: by tables, and without a value."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.operators.kre import kinds
from moorage.operators.kre.version import graph_check, inputs, types

from . import versions

SECRET, CONFIG_MAP = inputs.SECRET, inputs.CONFIG_MAP
CREDENTIALS = (SECRET, kinds.IN_USE)
KEYS = frozenset((*inputs.MONGO_KEYS, *inputs.STORE_KEYS))
ALL: inputs.Read = {CREDENTIALS: inputs.Found(KEYS, "1")}
OF_MAP = {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "a"}}}
OF_SECRET = {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "b"}}}
FILES = {"files": {"configMapRef": {"name": "f"}}}
STORE = {"files": {"object": {"key": "v1.krt", "digest": f"sha256:{'0' * 64}"}}}
PROTO = {"entrypoint": {"proto": {"configMapRef": {"name": "p", "key": "a.proto"}}, "image": "a/b:1"}}


def there(*refs: inputs.Ref, keys: str = "a b a.proto") -> inputs.Read:
    """These objects too, with those keys."""
    return ALL | {ref: inputs.Found(frozenset(keys.split()), "1") for ref in refs}


def found(spec: types.RuntimeVersionSpec, read: inputs.Read) -> dict[str, Any]:
    """What is wrong, by what it is about."""
    made = inputs.inputs(spec, read)
    told = {"missing": made.missing, "files": made.files, "proto": made.proto, "secret": made.secret}
    return {name: value for name, value in told.items() if value}


@pytest.mark.parametrize(
    ("changed", "refs"),
    [
        ({}, []),
        ({"config": [OF_MAP, OF_SECRET, {"name": "C"}]}, [(CONFIG_MAP, "m"), (SECRET, "s")]),
        ({"config": [OF_MAP, {**OF_MAP, "name": "A2"}]}, [(CONFIG_MAP, "m")]),
        (FILES, [(CONFIG_MAP, "f")]),
        (STORE, []),
        (PROTO, [(CONFIG_MAP, "p")]),
        (PROTO | FILES, [(CONFIG_MAP, "p"), (CONFIG_MAP, "f")]),
    ],
    ids=["values in the spec", "by reference", "one of two keys", "files", "files of the store", "proto", "both"],
)
def test_what_is_read_is_what_the_spec_names(changed: dict[str, Any], refs: list[inputs.Ref]) -> None:
    """Each once, beside the Runtime's credentials; and nothing else of the namespace."""
    asked = inputs.asked("ns", versions.spec(**changed))

    assert ("ns", (CREDENTIALS, *refs)) == (asked.namespace, asked.refs)


@pytest.mark.parametrize(
    ("changed", "read", "wrong"),
    [
        ({}, ALL, {}),
        ({"config": [{"name": "A", "value": ""}]}, ALL, {}),
        ({"config": [{"name": "A"}]}, ALL, {"missing": {"A": ""}}),
        ({"config": [OF_MAP]}, there((CONFIG_MAP, "m")), {}),
        ({"config": [OF_MAP]}, ALL, {"missing": {"A": "there is no ConfigMap m"}}),
        (
            {"config": [OF_MAP]},
            there((CONFIG_MAP, "m"), keys="b"),
            {"missing": {"A": "ConfigMap m has no key a"}},
        ),
        ({"config": [OF_SECRET]}, there((SECRET, "s")), {}),
        ({"config": [OF_SECRET]}, there((CONFIG_MAP, "s")), {"missing": {"B": "there is no Secret s"}}),
        ({"config": [OF_SECRET]}, there((SECRET, "s"), keys="a"), {"missing": {"B": "Secret s has no key b"}}),
        (FILES, there((CONFIG_MAP, "f"), keys=""), {}),
        (FILES, ALL, {"files": "there is no ConfigMap f"}),
        (STORE, ALL, {}),
        (PROTO, there((CONFIG_MAP, "p")), {}),
        (PROTO, ALL, {"proto": "there is no ConfigMap p"}),
        (PROTO, there((CONFIG_MAP, "p"), keys="b"), {"proto": "ConfigMap p has no key a.proto"}),
        ({}, {CREDENTIALS: None}, {"secret": f"there is no Secret {kinds.IN_USE}"}),
        ({}, {CREDENTIALS: inputs.Found(frozenset(inputs.MONGO_KEYS), "1")}, {}),
        (
            {},
            {CREDENTIALS: inputs.Found(frozenset({"mongoUser"}), "1")},
            {"secret": f"Secret {kinds.IN_USE} has no key mongoPassword"},
        ),
        (
            STORE,
            {CREDENTIALS: inputs.Found(frozenset(inputs.MONGO_KEYS), "1")},
            {"secret": f"Secret {kinds.IN_USE} has no key minioAccessKey"},
        ),
    ],
)
def test_what_is_lacking_is_told_by_its_object_and_key(
    changed: dict[str, Any], read: inputs.Read, wrong: dict[str, Any]
) -> None:
    """Of the store's credentials only where files come from there; an empty value is one."""
    assert wrong == found(versions.spec(**changed), read)


def test_the_print_changes_with_what_was_read_and_with_nothing_else() -> None:
    """By it nodes are rolled; an object that is not there changes it once it is."""
    spec = versions.spec(config=[OF_MAP])

    def printed(read: inputs.Read) -> str:
        return inputs.inputs(spec, read).print

    one = there((CONFIG_MAP, "m"))
    other = one | {(CONFIG_MAP, "m"): inputs.Found(frozenset({"a"}), "2")}

    assert printed(one) == printed(dict(reversed(one.items())))
    assert 4 == len({printed(one), printed(other), printed(ALL), printed({CREDENTIALS: None})})
    assert printed(ALL) == printed(ALL | {(CONFIG_MAP, "m"): None})


def test_a_status_keeps_so_many_notes_of_a_graph_and_no_more() -> None:
    """Each error is told, as nothing is made while there is one."""
    rows = [{"name": f"n{at}", "image": "a", "src": "a", "subscriptions": [f"n{at}"]} for at in range(21)]
    rows.append({"name": "last", "image": "a", "src": "a", "subscriptions": ["entrypoint"]})
    flow = {"name": "greet", "entrypoint": "Greet", "exitpoint": "last", "nodes": rows}
    broken = [{**row, "subscriptions": ["nobody"]} for row in rows]

    assert 20 == len(graph_check.told(versions.spec(workflows=[flow]).graph).notes)
    assert 22 == len(graph_check.told(versions.spec(workflows=[{**flow, "nodes": broken}]).graph).errors)
