"""Of what a spec comes to nothing, and what is told of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from moorage.operators.opencga import dialect, types
from moorage.operators.opencga.reasons import Reason
from moorage.operators.opencga.wanted import basis, heeded
from tests.unit.opencga import test_facts, test_life
from tests.unit.opencga.states import demo
from tests.unit.opencga.test_automation import made, spec
from tests.unit.runtime import fake_api

EXAMPLES = sorted((Path(__file__).resolve().parents[3] / "examples/opencga").glob("*.yaml"))
TLS: dict[str, Any] = {"caConfigMapRef": {"name": "x"}}
LOGIN = {"hosts": ["m"], "credentialsSecretRef": {"name": "db"}}
BACKUP = {"command": ["/bin/true"]}


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({}, ()),
        ({"prometheus": {"username": "x"}}, ("prometheus",)),
        ({"database": LOGIN, "security": {"authentication": {"modes": ["SCRAM"]}}}, ()),
        (
            {"database": {"hosts": ["m"]}, "security": {"authentication": {"modes": ["SCRAM"]}}},
            ("security.authentication.modes",),
        ),
        ({"database": {**LOGIN, "authenticationDatabase": "x"}}, ()),
        ({"database": {"hosts": ["m"], "authenticationDatabase": "x"}}, ("database.authenticationDatabase",)),
        ({"security": {"tls": {**TLS, "enabled": True}}}, ()),
        ({"security": {"tls": TLS}}, ("security.tls.caConfigMapRef",)),
        (
            {"security": {"tls": {**TLS, "enabled": True, "caCertificateSecretRef": {"name": "x"}}}},
            ("security.tls.caConfigMapRef",),
        ),
        (
            {"security": {"tls": {"certificateKeySecretRef": {"name": "x"}, "caCertificateSecretRef": {"name": "x"}}}},
            ("security.tls.certificateKeySecretRef", "security.tls.caCertificateSecretRef"),
        ),
        ({"upgrade": {"backup": BACKUP, "migration": "Offline"}}, ()),
        ({"upgrade": {"backup": BACKUP, "migration": "Manual"}}, ("upgrade.backup",)),
        ({"metrics": {"enabled": True, "port": 9999, "serviceMonitor": {"interval": "5s"}}}, ()),
        ({"metrics": {"port": 9999}}, ("metrics.port",)),
        ({"metrics": {"serviceMonitor": {"labels": {"a": "b"}}}}, ("metrics.serviceMonitor",)),
        (
            {"automationConfig": {"processes": [{"name": "demo-0"}, {"name": "demo-client-0"}, {"name": "demo-2"}]}},
            ("automationConfig.processes[demo-2]",),
        ),
    ],
)
def test_fields_from_which_nothing_follows(fields: dict[str, Any], names: tuple[str, ...]) -> None:
    """By themselves, or by what else the spec says."""
    plain = {"automationConfig": {}, "members": 2}

    assert names == heeded.unheeded("demo", spec(**{**plain, **fields}))


def test_the_version_of_cellbase_counts_without_an_address() -> None:
    """The product's own file has one."""
    assert {"version": "v6"} == made(cellbase={"version": "v6"})["args"]["storage"]["cellbase"]


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda path: path.stem)
def test_of_examples_all_is_heeded(file: Path) -> None:
    """And the product knows all keys, in each version of which that is known."""
    found = [each for each in yaml.safe_load_all(file.read_text()) if each["kind"] == "OpenCGACommunity"]
    assert found
    for each in found:
        for version in ("2.4.4", "3.4.0", "4.0.0"):
            given = types.msgspec.convert({**each["spec"], "version": version}, types.CommunitySpec)
            assert ("", ()) == (heeded.odd_keys(given), heeded.unheeded(each["metadata"]["name"], given))


def test_unknown_keys_are_told_by_field_with_what_follows() -> None:
    """Of each file what its class does with one; the same in either name of the first."""
    given = spec(
        version="4.0.0",
        additionalOpenCGAConfig={"catalog.databse": {}},
        configuration={"auditt": {"maxSize": 1}},
        storage={"serch": {}},
        clientConfiguration={"rest.defaultHost": "x"},
    )
    unused = spec(version="3.4.0", configuration={"openRegister": True, "auditt": {}})

    assert heeded.odd_keys(given) == (
        "OpenCGA 4.0.0 does not know catalog.databse (the nearest is catalog.database) in "
        "spec.additionalOpenCGAConfig, and refuses the whole file for that; "
        "it does not know auditt (the nearest is audit) in spec.configuration, and refuses the whole file for that; "
        "it does not know serch (the nearest is search) in spec.storage, and passes over that; "
        "it does not know rest.defaultHost (the nearest is rest.defaultHostIndex) in spec.clientConfiguration, "
        "and passes over that"
    )
    assert heeded.odd_keys(unused) == (
        "OpenCGA 3.4.0 does not know auditt (the nearest is audit) in spec.configuration, and refuses the whole file "
        "for that; it takes openRegister in spec.configuration, and does not use that"
    )


@pytest.mark.parametrize(
    ("fields", "status", "reason", "words"),
    [
        ({"version": "4.0.0", "configuration": {"audt": 1}}, False, Reason.UNKNOWN_KEYS, "audt (the nearest is audit)"),
        ({"version": "4.0.0", "storage": {"a": 1}, "prometheus": {}}, False, Reason.UNKNOWN_KEYS, "; nothing follows"),
        ({"version": "4.0.0", "prometheus": {}}, False, Reason.UNHEEDED, "nothing follows from spec.prometheus"),
        ({"version": "4.0.0", "configuration": {"audit.maxSize": 1}}, True, Reason.HEEDED, ""),
        ({"version": "5.0.0", "configuration": {"audt": 1}}, True, Reason.HEEDED, ""),
        ({"configuration": {"audt": {"password": "x"}}}, None, Reason.SPEC_UNSOUND, ""),
    ],
)
def test_the_condition_says_so(fields: dict[str, Any], status: bool | None, reason: Reason, words: str) -> None:
    """Of versions without a table nothing is said."""
    found = test_facts.told(demo(**fields))["SpecHeeded"]

    assert (status, reason) == (found.status, found.reason)
    assert words in found.message
    assert reason.warns is (status is not True)


def test_nothing_is_refused_for_it() -> None:
    """The document has the key, as the user may know better."""
    found = basis.of("ns", "demo", "uid", spec(version="4.0.0", configuration={"audt": 1}), dialect.Dialect())

    assert ("", 1) == (found.fault, found.args["configuration"]["audt"])


async def test_a_person_sees_a_warning_once_and_the_installation_comes_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """One event for each words, whatever else happens meanwhile."""
    api = await test_life.applied(version="4.0.0", configuration={"audt.maxSize": 1})

    def warned() -> list[str]:
        events = [it for place, it in api.objects.items() if place.plural == "events"]
        return [it["note"] for it in events if (it["type"], it["reason"]) == ("Warning", "UnknownKeys")]

    async with test_life.operating(api, monkeypatch):
        await fake_api.until(api.settled, within=test_life.WITHIN)
        assert 1 == len(warned())
        assert "audt (the nearest is audit)" in warned()[0]

        await test_life.edited(api, configuration={"audt": None, "adit": 1})
        await fake_api.until(lambda: len(warned()) == 2 and api.settled(), within=test_life.WITHIN)
        assert "adit (the nearest is audit)" in warned()[1]
