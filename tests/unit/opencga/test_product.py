"""What agents render, loaded by OpenCGA's own configuration classes: those that are published, by the ordinary Maven.

What they hold then is compared with what was set. The first of them refuses a file with a key that it does not know;
the other two pass over one, so that nothing but the comparison tells.
"""

from __future__ import annotations

import json
import socket
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dev.opencga import __main__ as keys
from dev.opencga import product
from moorage.agent import document, files
from moorage.operators.opencga import dialect, types
from moorage.operators.opencga.wanted import automation, product_keys

pytestmark = pytest.mark.campaign

SPEC: dict[str, Any] = {
    "version": "3.4.0",
    "members": 2,
    "database": {
        "hosts": ["m-0.db:27017", "m-1.db:27018"],
        "replicaSet": "rs0",
        "authenticationDatabase": "users",
        "credentialsSecretRef": {"name": "db"},
        "prefix": "mine",
    },
    "security": {
        "authentication": {"modes": ["SCRAM-SHA-1"]},
        "tls": {"enabled": True, "caConfigMapRef": {"name": "ca"}, "certificateKeySecretRef": {"name": "shown"}},
    },
    "search": {"hosts": ["zk-0:2181", "zk-1:2181"]},
    "cellbase": {"url": "https://cellbase.example/", "version": "v6.1"},
    "admin": {"email": "mine@example.org"},
    "additionalOpenCGAConfig": {
        "logLevel": "DEBUG",
        "healthCheck.interval": 77,
        "catalog.database.options.connectionsPerHost": 33,
        "server.grpc.port": 9191,
    },
    "configuration": {
        "logDir": "/data/logs",
        "workspace": "/data/sessions",
        "jobDir": "/data/sessions/jobs",
        "audit": {"maxDocuments": 5, "maxSize": 6},
        "monitor": {"executionDaemonInterval": 1234},
        "panel.host": "http://panels.example/",
        "email": {"host": "mail.example", "from": "who@example.org", "ssl": True},
        "analysis": {
            "scratchDir": "/data/scratch",
            "execution": {
                "id": "k8s",
                "maxConcurrentJobs": {"variant-index": 7},
                "options": {"k8s.imageName": "mine:1", "k8s.requests": {"cpu": 2}, "k8s.ttlSecondsAfterFinished": 60},
            },
        },
    },
    "storage": {
        "cellbase": {},
        "search": {"configSet": "mine", "mode": "cloud", "timeout": 4321, "insertBatchSize": 12},
        "clinical": {"hosts": ["zk-0:2181"], "timeout": 5},
        "rga": {"hosts": ["zk-0:2181"], "configSet": "rga-mine"},
        "alignment": {"bigWigWindowsSize": 2},
        "variant": {
            "defaultEngine": "hadoop",
            "options": {"load.batchSize": 9, "stats.multiAllelic": True, "transform.format": "avro"},
            "engines": [{"id": "hadoop", "engine": "org.example.Engine", "options": {"storage.hadoop.bin": "hadoop"}}],
        },
    },
    "clientConfiguration": {
        "logLevel": "WARN",
        "rest": {
            "tokenAutoRefresh": False,
            "tlsAllowInvalidCertificates": True,
            "query": {"batchSize": 11, "limit": 12},
        },
        "grpc.host": "grpc.example:9091",
    },
}
"""All that fields of the kind lead to, and of what is free something in each part that all of these versions know."""

LATER = {
    "3.4.0": {
        "configuration": {
            "account": {"maxLoginAttempts": 3, "passwordExpirationDays": 4},
            "analysis.packages": ["org.opencb.opencga", "org.example"],
        },
        "storage": {"mode": "READ_ONLY", "cellbase.dataRelease": "6"},
    },
}
"""What came with a version, and is there in later ones."""


def spec(version: str) -> types.CommunitySpec:
    given = {**SPEC, "version": version}
    for since, more in LATER.items():
        if types.number(since) <= types.number(version):
            given = files.over(given, more)
    return msgspec.convert(given, types.CommunitySpec)


def rendered(given: types.CommunitySpec, own: Mapping[str, str]) -> dict[str, bytes]:
    """The product's three files: from the spec to the document, and from that to what an agent writes."""
    said, placed = dialect.Dialect(), automation.Placed(given.members, given.version, given.version)
    args = automation.arguments("ns", "demo", given, said)
    made = automation.document("ns", "demo", given, said, placed, {}, args)
    found = document.read(automation.text(made, 1))
    plain = msgspec.structs.replace(found, tls=None)  # stores beside the files, which test_keystore.py has Java read
    return files.rendered(plain, own, files.Secrets("Admin_1234", "who", "what"))


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """(path, value) of all single values."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves(inner, f"{path}/{key}")
    elif isinstance(value, list) and value:
        for place, inner in enumerate(value):
            yield from leaves(inner, f"{path}/{place}")
    else:
        yield path, value


def plain(value: Any) -> str:
    """As text: to the product some numbers are text, nothing is nothing in any form, and paths are URLs."""
    text = "" if value in (None, {}, []) else value if isinstance(value, str) else json.dumps(value)
    return text.removeprefix("file://")


@pytest.fixture(scope="module", params=product.VERSIONS)
def classes(request: pytest.FixtureRequest) -> Iterator[tuple[str, product.Product]]:
    with product.product(request.param) as asked:
        yield request.param, asked


def test_the_classes_hold_what_was_set(classes: tuple[str, product.Product]) -> None:
    """Every key, laid over the product's own files, with the value that was set."""
    version, asked = classes
    made = rendered(spec(version), product.own(version))
    lost = {}
    for file, name in files.NAMES.items():
        held = dict(leaves(asked.load(file, made[name])))
        for path, value in leaves(json.loads(made[name])):
            if plain(held.get(path)) != plain(value):
                lost[f"{name}{path}"] = (value, held.get(path))

    assert {} == lost


def test_all_fields_of_the_kind_are_set() -> None:
    """All from which something follows in the product's files; so a new one is tried too."""
    given = spec("4.0.0")
    for part in (given.database, given.search, given.cellbase, given.admin, given.security, given.security.tls):
        same = [name for name in part.__struct_fields__ if getattr(part, name) == getattr(type(part)(), name)]
        assert not set(same) - {"password_secret_ref", "ca_certificate_secret_ref"}, part


def test_what_is_not_set_is_as_in_the_products_own_files(classes: tuple[str, product.Product]) -> None:
    """To write a file anew changes nothing of what it means."""
    version, asked = classes
    own = product.own(version)
    args: dict[str, dict[str, Any]] = {}
    found = document.Document(1, document.Auth(document.Admin("a@b", "")), args, (), ())
    made = files.rendered(found, own, files.Secrets("Admin_1234"))
    for file, name in files.NAMES.items():
        if name in own:
            assert asked.load(file, own[name].encode()) == asked.load(file, made[name])


def test_configuration_with_an_unknown_key_is_refused_and_the_others_pass_over_it(
    classes: tuple[str, product.Product],
) -> None:
    """So says moorage too, where it warns of one."""
    _, asked = classes

    with pytest.raises(product.RefusedError, match='Unrecognized field "nosuch"'):
        asked.load("configuration", b'{"catalog": {"database": {"nosuch": 1}}}')
    assert "nosuch" not in json.dumps(asked.load("storage", b'{"search": {"nosuch": 1}}'))
    assert "nosuch" not in json.dumps(asked.load("client", b'{"rest": {"nosuch": 1}}'))


def test_a_key_that_is_taken_and_not_used_changes_nothing(classes: tuple[str, product.Product]) -> None:
    """By what the class holds; the table says of which."""
    version, asked = classes
    tree = {} if version == "2.4.4" else {"openRegister": True, "authentication": {"expiration": 77}}
    plain, laid = ({"logLevel": "debug"} | more for more in ({}, tree))

    assert asked.load("configuration", json.dumps(plain).encode()) == asked.load(
        "configuration", json.dumps(laid).encode()
    )
    assert set(tree) == {each.path for each in product_keys.odd(version, "configuration", tree)}


def test_the_table_of_keys_is_that_of_the_classes() -> None:
    """Else `python -m dev.opencga` writes it."""
    assert keys.table() == product_keys.TABLE.read_bytes()


def test_by_the_table_nothing_is_unknown_of_what_the_classes_take(classes: tuple[str, product.Product]) -> None:
    """Neither what was set, nor the product's own files."""
    version, _ = classes
    made = rendered(spec(version), product.own(version))
    for file, name in files.NAMES.items():
        found = product_keys.odd(version, file, json.loads(made[name]))
        assert [] == [each for each in found if not each.unused]


def asked(url: str) -> str:
    """What is answered there; empty while nobody does."""
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""


def test_the_storage_server_runs_by_what_an_agent_wrote(tmp_path: Path) -> None:
    """It listens where the file says, and a query reaches for the engine that the file names."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    given = msgspec.structs.replace(spec("3.4.0"), storage=SPEC["storage"] | {"server.rest.port": port})
    made = rendered(given, product.own("3.4.0"))["storage-configuration.yml"]
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/storage-configuration.yml").write_bytes(made)
    url = f"http://127.0.0.1:{port}/opencga/webservices/rest"

    with product.storage_server(tmp_path) as running:
        until = time.monotonic() + product.WITHIN
        while not asked(f"{url}/test/echo/well"):
            assert running.poll() is None, (tmp_path / "log").read_text()[-2000:]
            assert time.monotonic() < until
            time.sleep(0.2)
        assert "well" == asked(f"{url}/test/echo/well")
        assert "StorageEngine 'org.example.Engine'" in asked(f"{url}/variants/query?region=1:1-2")
