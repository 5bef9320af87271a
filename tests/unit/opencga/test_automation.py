"""The document of the agents: what is in it, what may not be, and which version it has."""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
import pytest

from moorage.operators.opencga import dialect, types
from moorage.operators.opencga.wanted import automation, trees

SPEC: dict[str, Any] = {
    "version": "5.0.1",
    "members": 2,
    "database": {"hosts": ["m-0:27017", "m-1"], "replicaSet": "rs0", "credentialsSecretRef": {"name": "db"}},
    "search": {"hosts": ["solr-0"]},
    "cellbase": {"url": "https://cellbase/", "version": "v5"},
    "automationConfig": {"processes": [{"name": "demo-1", "disabled": True}]},
}
REVISIONS = {"db": "r-db", "demo-admin-password": "r-admin", "ConfigMap/ca": "r-ca"}


def spec(**fields: Any) -> types.CommunitySpec:
    return msgspec.convert({**SPEC, **fields}, types.CommunitySpec)


def made(members: int = 2, **fields: Any) -> dict[str, Any]:
    placed, said, it = automation.Placed(members, "5.0.0", "5.0.1"), dialect.Dialect(), spec(**fields)
    args = automation.arguments("ns", "demo", it, said)
    return automation.document("ns", "demo", it, said, placed, REVISIONS, args)


def nested(levels: int) -> Any:
    """Lists and trees in one another."""
    return [{"b": nested(levels - 1)}] if levels else 1


def test_every_member_has_a_process_and_the_master_is_first() -> None:
    """Each with its own version: REST members follow the MASTER. One that is switched off keeps its place."""
    processes = made()["processes"]

    assert [
        ("demo-client-0", "master", "5.0.1", False),
        ("demo-0", "rest", "5.0.0", False),
        ("demo-1", "rest", "5.0.0", True),
    ] == [(it["name"], it["processType"], it["version"], it["disabled"]) for it in processes]
    assert "demo-0.demo-svc.ns.svc.cluster.local" == processes[1]["hostname"]
    assert [
        {
            "_id": "demo",
            "members": [{"_id": 0, "host": "demo-0"}, {"_id": 1, "host": "demo-1"}],
            "master": "demo-client-0",
        }
    ] == made()["deployments"]


def test_passwords_are_named_and_never_said() -> None:
    """By their file in the pod, and by what tells that they have changed."""
    assert {
        "disabled": False,
        "admin": {
            "email": "admin@opencga.local",
            "passwordFile": "/var/lib/automation/credentials/admin/password",
            "revision": "r-admin",
        },
        "database": {
            "userFile": "/var/lib/automation/credentials/database/username",
            "passwordFile": "/var/lib/automation/credentials/database/password",
            "revision": "r-db",
        },
    } == made()["auth"]


def test_what_fields_of_the_spec_say_is_in_the_products_files() -> None:
    """Under the product's own names."""
    args = made(security={"tls": {"enabled": True}, "authentication": {"modes": ["SCRAM-SHA-1"]}})["args"]

    assert {
        "databasePrefix": "opencga",
        "catalog": {
            "database": {
                "hosts": ["m-0:27017", "m-1"],
                "options": {
                    "authenticationDatabase": "admin",
                    "authenticationMechanism": "SCRAM-SHA-1",
                    "replicaSet": "rs0",
                    "sslEnabled": True,
                },
            }
        },
        "server": {"rest": {"port": 9090}},
        "monitor": {"port": 9092},
    } == args["configuration"]
    assert {
        "search": {"hosts": ["solr-0"]},
        "cellbase": {"url": "https://cellbase/", "version": "v5"},
    } == args["storage"]
    assert "http://demo-rest.ns.svc.cluster.local:9090/opencga" == args["client"]["rest"]["hosts"][0]["url"]


def test_a_backup_is_in_the_document_where_there_is_one() -> None:
    """As a list of arguments; without one the document is as it always was."""
    assert {"migration": "Auto", "stopped": False} == made()["upgrade"]
    assert {"migration": "Auto", "stopped": False, "backup": ["/bin/sh", "-c", "x"]} == (
        made(upgrade={"backup": {"command": ["/bin/sh", "-c", "x"]}})["upgrade"]
    )


def test_without_credentials_nobody_logs_in() -> None:
    """And no mechanism is said."""
    found = made(database={"hosts": ["m"]})

    assert found["auth"]["disabled"]
    assert "database" not in found["auth"]
    assert {"replicaSet": "", "sslEnabled": False} == found["args"]["configuration"]["catalog"]["database"]["options"]


SHOWN = {
    "certificateFile": "/var/lib/automation/credentials/client/tls.crt",
    "keyFile": "/var/lib/automation/credentials/client/tls.key",
    "certificateRevision": "r-db",
}


@pytest.mark.parametrize(
    ("tls", "found"),
    [
        ({}, None),
        ({"enabled": True}, {}),
        (
            {"enabled": True, "caConfigMapRef": {"name": "ca"}},
            {"CAFilePath": "/var/lib/automation/credentials/ca/ca.crt", "revision": "r-ca"},
        ),
        (
            {"enabled": True, "caConfigMapRef": {"name": "ca"}, "caCertificateSecretRef": {"name": "db"}},
            {"CAFilePath": "/var/lib/automation/credentials/ca/ca.crt", "revision": "r-db"},
        ),
        ({"caConfigMapRef": {"name": "ca"}}, None),
        ({"enabled": True, "certificateKeySecretRef": {"name": "db"}}, SHOWN),
        (
            {"enabled": True, "certificateKeySecretRef": {"name": "db"}, "caConfigMapRef": {"name": "ca"}},
            {"CAFilePath": "/var/lib/automation/credentials/ca/ca.crt", "revision": "r-ca", **SHOWN},
        ),
        ({"certificateKeySecretRef": {"name": "db"}}, None),
    ],
)
def test_the_authority_of_the_database(tls: dict[str, Any], found: dict[str, str] | None) -> None:
    """Where TLS is on, and one is named."""
    assert found == made(security={"tls": tls}).get("tls")


def test_a_certificate_that_does_not_fit_is_refused_where_an_authority_is_named() -> None:
    """By the product's own key, which nobody can turn then; a renewed authority is another document."""
    named = {"tls": {"enabled": True, "caConfigMapRef": {"name": "ca"}}}
    options = made(security=named)["args"]["configuration"]["catalog"]["database"]["options"]

    assert (True, False) == (options["sslEnabled"], options["sslInvalidCertificatesAllowed"])
    with pytest.raises(trees.TreeError, match="sets catalog"):
        made(security=named, configuration={"catalog.database.options.sslInvalidCertificatesAllowed": True})


def test_who_shows_a_certificate_trusts_not_everybody() -> None:
    """The product's driver has no certificate to show where it is told to trust whoever answers."""
    shown = {"tls": {"enabled": True, "certificateKeySecretRef": {"name": "db"}}}
    options = made(security=shown)["args"]["configuration"]["catalog"]["database"]["options"]

    assert options["sslInvalidCertificatesAllowed"] is False
    alone = made(security={"tls": {"enabled": True}})["args"]["configuration"]["catalog"]["database"]["options"]
    assert "sslInvalidCertificatesAllowed" not in alone, "it is as the image has it"


def test_either_spelling_and_either_name_say_the_same() -> None:
    """Keys nested, or with dots; by the original's name of the field, or by ours."""
    nested = {"analysis": {"execution": {"id": "k8s"}}}
    dotted = {"analysis.execution": {"id": "k8s"}}

    assert made(additionalOpenCGAConfig=nested) == made(configuration=dotted)
    assert made(additionalOpenCGAConfig=nested) == made(additionalOpenCGAConfig=dotted, configuration=nested)
    assert "k8s" == made(configuration=dotted)["args"]["configuration"]["analysis"]["execution"]["id"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"configuration": {"admin.password": "x"}}, "spec.additionalOpenCGAConfig has a value at admin.password"),
        ({"storage": {"a": [{"secretKey": "x"}]}}, "spec.storage has a value at a.0.secretKey"),
        ({"clientConfiguration": {"token": "x"}}, "spec.clientConfiguration has a value at token"),
        ({"configuration": {"databasePrefix": "b"}}, "sets databasePrefix, which follows from other fields"),
        ({"configuration": {"catalog.database.hosts": ["x"]}}, "sets catalog.database.hosts"),
        ({"configuration": {"server": "x"}}, "spec.additionalOpenCGAConfig: server is said twice"),
        (
            {"configuration": {"a": 1}, "additionalOpenCGAConfig": {"a": 2}},
            "spec.configuration and spec.additionalOpenCGAConfig: a is said twice, and differently",
        ),
        ({"configuration": {"a.b": 1, "a": {"b": 2}}}, "a.b is said twice"),
        ({"configuration": {"a..b": 1}}, "in which a name is empty"),
        ({"configuration": {"": 1}}, "in which a name is empty"),
        ({"storage": {"options": {"a.token": "x"}}}, "spec.storage has a value at options.a.token"),
        ({"configuration": {".".join("a" * 40): 1}}, "nested deeper than 24 levels"),
        ({"configuration": {"a": nested(30)}}, "a.b.b.b.b.b.b.b.b.b.b.b.b is nested deeper than 24 levels"),
        (
            {"configuration": {"options": {"a.b": nested(30)}}},
            "options.a.b.b.b.b.b.b.b.b.b.b.b.b is nested deeper than 24 levels",
        ),
        ({"storage": {"a": "x" * automation.MOST_BYTES}}, "bytes together, and may have 65536"),
    ],
)
def test_a_tree_that_is_refused(fields: dict[str, Any], words: str) -> None:
    """With the place where it is wrong."""
    with pytest.raises(trees.TreeError) as caught:
        made(**fields)

    assert words in str(caught.value)


@pytest.mark.parametrize(
    "given",
    [
        {"analysis": {"execution": {"options": {"k8s.dind.rootless": True, "k8s.limits": {"a.b/c": "1"}}}}},
        {
            "analysis.execution.options.k8s.dind.rootless": True,
            "analysis.execution.options": {"k8s.limits": {"a.b/c": "1"}},
        },
    ],
)
def test_the_products_options_have_names_with_dots_which_stay_as_they_are(given: dict[str, Any]) -> None:
    """It looks for an option by its whole name, and would not find one that is nested."""
    args = made(additionalOpenCGAConfig=given)["args"]

    assert {"k8s.dind.rootless": True, "k8s.limits": {"a.b/c": "1"}} == (
        args["configuration"]["analysis"]["execution"]["options"]
    )


def test_words_that_only_look_like_a_password_are_taken() -> None:
    """A switch, an empty value, and a number of days are none."""
    args = made(
        clientConfiguration={"rest": {"tokenAutoRefresh": True}},
        configuration={"account": {"passwordExpirationDays": 90}, "email": {"password": ""}},
    )["args"]

    assert args["client"]["rest"]["tokenAutoRefresh"] is True
    assert 90 == args["configuration"]["account"]["passwordExpirationDays"]


# --- versions -----------------------------------------------------------------------------------------------------

NONE = automation.Published(0, "")
P = automation.Published


@pytest.mark.parametrize(
    ("live", "remembered", "version"),
    [
        (None, NONE, 1),
        (P(4, "same"), P(4, "same"), 4),
        (P(4, "other"), P(4, "other"), 5),
        (None, P(4, "same"), 4),  # the Secret is gone
        (None, P(4, "other"), 5),
        (P(-1), P(4, "same"), 4),  # it can't be read
        (P(-1), P(4, "other"), 5),
        (P(2, "other"), P(4, "other"), 5),  # somebody has put an old one back
        (P(9, "other"), P(4, "same"), 4),
        (P(9, "same"), P(4, "other"), 9),  # status was lost, or is late
        (P(automation.MOST_VERSION, "other"), NONE, 1),
        (P(1, "same"), P(7, "other"), 1),
        (P(0, "same"), P(-1, "same"), 1),
        (P(7, "other"), NONE, 8),
    ],
)
def test_another_content_has_another_version_and_the_same_keeps_it(
    live: automation.Published | None, remembered: automation.Published, version: int
) -> None:
    """Whoever edits the Secret, and whatever is lost."""
    assert version == automation.next_version("same", live, remembered)


def test_what_is_published_is_read_back() -> None:
    """By its version, and by a digest that says nothing of it."""
    text = base64.b64encode(automation.text(made(), 7)).decode()

    assert P(7, automation.digest(made())) == automation.published({"f": text}, "f")
    assert automation.digest(made()) != automation.digest(made(1))
    assert automation.has_place({"f": text}, "f", "demo-1")
    assert automation.has_place({"f": text}, "f", "demo-2") is False


@pytest.mark.parametrize(
    "content",
    [
        None,
        "",
        "%%%",
        base64.b64encode(b"{").decode(),
        base64.b64encode(b"[]").decode(),
        base64.b64encode(b'{"version": true}').decode(),
        base64.b64encode(b'{"version": 0}').decode(),
        base64.b64encode(b'{"version": -3, "processes": 7}').decode(),
        base64.b64encode(b'{"version": 1e300}').decode(),
        base64.b64encode(json.dumps({"version": 2**60, "processes": [3]}).encode()).decode(),
        base64.b64encode(b"[" * 100_000).decode(),
    ],
)
def test_what_somebody_else_has_put_there_is_none(content: str | None) -> None:
    """It breaks off no pass, and gives nobody a place or takes one."""
    data = {} if content is None else {"f": content}

    assert P() == automation.published(data, "f")
    assert automation.has_place(data, "f", "demo-0") is None


def test_a_version_is_a_number_that_every_reader_of_json_keeps() -> None:
    """The largest is followed by the first; one that is larger, or text beside the content, is no document."""

    def held(version: int, beside: str = "") -> automation.Published:
        return automation.published(
            {"f": base64.b64encode(json.dumps({"version": version}).encode()).decode() + beside}, "f"
        )

    assert 9_007_199_254_740_991 == automation.MOST_VERSION == held(automation.MOST_VERSION).version
    assert automation.Published() == held(automation.MOST_VERSION + 1) == held(0) == held(1, beside="!")


def test_of_cellbase_what_is_not_said_is_not_told() -> None:
    """So that the product's own stands."""
    args = automation.arguments("ns", "demo", spec(cellbase={"url": "https://cellbase/"}), dialect.Dialect())

    assert {"url": "https://cellbase/"} == args["storage"]["cellbase"]


def test_of_search_what_is_not_said_is_not_told() -> None:
    assert "search" not in made(search={})["args"]["storage"]
    assert ["solr:8983"] == made(search={"hosts": ["solr:8983"]})["args"]["storage"]["search"]["hosts"]


@pytest.mark.parametrize("named", [{"caConfigMapRef": {"name": "ca"}}, {"caCertificateSecretRef": {"name": "db"}}])
def test_without_tls_nobody_is_trusted_by_name(named: dict[str, Any]) -> None:
    """And what it names is not waited for."""
    assert automation.authority(spec(security={"tls": named})) is None
    assert automation.authority(spec(security={"tls": {**named, "enabled": True}})) is not None
