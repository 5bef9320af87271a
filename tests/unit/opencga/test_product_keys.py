"""Which keys the product does not know, and what is said of them; the table itself is tried in test_product.py."""

from __future__ import annotations

import time
from typing import Any

import pytest

from moorage.operators.opencga import dialect
from moorage.operators.opencga.wanted import automation, product_keys, trees
from tests.unit.opencga.test_automation import spec

VERSIONS = ("2.4.4", "3.4.0", "4.0.0")


def told(tree: dict[str, Any], file: str = "configuration", version: str = "4.0.0") -> str:
    return product_keys.told(version, file, list(product_keys.odd(version, file, trees.expanded(tree))))


@pytest.mark.parametrize("version", VERSIONS)
def test_all_that_moorage_sets_by_itself_is_known(version: str) -> None:
    """By each version of which that is known."""
    given = spec(
        version=version, security={"tls": {"enabled": True, "caConfigMapRef": {"name": "ca"}}}, storage={}, search={}
    )
    args = automation.arguments("ns", "demo", given, dialect.Dialect())

    assert {"configuration": [], "storage": [], "client": []} == {
        file: list(product_keys.odd(version, file, tree)) for file, tree in args.items()
    }


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        ({"catalog": {"databse": {"hosts": []}}}, "catalog.databse (the nearest is catalog.database)"),
        ({"catalog.database.host": "m"}, "catalog.database.host (the nearest is catalog.database.hosts)"),
        ({"loglevel": "x"}, "loglevel (the nearest is logLevel)"),
        ({"database": {"hosts": ["m"]}}, "database (the nearest is catalog.database)"),
        ({"maxDocuments": 1}, "maxDocuments (the nearest is audit.maxDocuments)"),
        ({"logLevel": {"of": "x"}}, "logLevel.of"),
        ({"analysis.frameworks": [{"id": "a"}, {"ids": "b"}]}, "analysis.frameworks.ids (the nearest is"),
        ({"hooks.any.file": [{"fild": "name"}]}, "hooks.any.file.fild (the nearest is hooks.any.file.field)"),
        ({"a": 1, "b": 1, "c": 1, "d": 1, "e": 1}, "a, b, c, 2 more"),
    ],
)
def test_a_key_that_it_does_not_know_is_told_with_the_nearest(tree: dict[str, Any], words: str) -> None:
    """In its place, or where one of that name is."""
    assert told(tree).startswith(words)


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        ({"qwerty": 1}, "qwerty"),
        ({"catalog.qwerty": 1}, "catalog.qwerty"),
        ({"catalog.logFile": "x"}, "catalog.logFile"),
        ({"a": 1, "b": 1, "c": 1}, "a, b, c"),
    ],
)
def test_nothing_is_near_where_nothing_is_alike(tree: dict[str, Any], words: str) -> None:
    """Nor is what is taken and not used."""
    assert words == told(tree)


@pytest.mark.parametrize(
    "tree",
    [
        {"analysis.execution.options": {"k8s.imageName": "x", "whatever": {"is": "free"}}},
        {"catalog.database.options.anything": 1},
        {"hooks": {"who@what:where": {"file": [{"field": "name"}]}}},
        {"analysis.execution.maxConcurrentJobs": {"my-job": 1}},
        {"server.rest.httpConfiguration.headerCacheSize": 1},
    ],
)
def test_names_that_are_free_are_known(tree: dict[str, Any]) -> None:
    """As what is below options is."""
    assert "" == told(tree)


def test_each_version_and_file_has_its_own() -> None:
    """What came later is not known before; of a version without a table nothing is known, and so nothing is told."""
    assert told({"quota.maxNumUsers": 1}, version="3.4.0").startswith("quota")
    assert "" == told({"quota.maxNumUsers": 1})
    assert told({"quota": {}}, "storage")
    assert "" == told({"qwerty": 1}, version="5.0.0")


def test_what_is_taken_and_not_used_is_told_apart() -> None:
    """It is no key that may be meant, and what is below it is not looked at."""
    tree = trees.expanded({"authentication.expiration": 1, "openRegisterr": True, "quota.maxNumUsers": 1})

    assert [
        product_keys.Odd("authentication", unused=True),
        product_keys.Odd("openRegisterr", tuple(sorted(product_keys.versions()["4.0.0"]["configuration"]))),
    ] == list(product_keys.odd("4.0.0", "configuration", tree))
    assert "authentication" == told({"authentication.expiration": 1})
    assert "openRegister" not in told({"expiration": 1})


def test_what_is_large_is_told_of_in_little_time() -> None:
    """A near key is looked for to the first ones alone."""
    began = time.process_time()
    assert told({f"k{each}": 1 for each in range(5000)}).endswith("4997 more")
    assert time.process_time() - began < 1.0
