"""What is checked of Secrets that a spec names: they are there, have their keys, and hold what the product takes."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest

from moorage.api import meta
from moorage.kube import client as kube_client
from moorage.kube.informers import informer
from moorage.operators.opencga import observation, secrets, types
from moorage.runtime import freshness, gate, kind
from tests.unit.runtime import fake_api

PASSWORD = "Change-Me-2-day"
WHOLE = {
    "database": {"hosts": ["m"], "credentialsSecretRef": {"name": "db", "userKey": "u"}},
    "security": {"tls": {"enabled": True, "caConfigMapRef": {"name": "authority"}}},
    "admin": {"passwordSecretRef": {"name": "own", "key": "p"}},
}

CERTIFICATE = f"{secrets.BEGINS}\nYQ==\n{secrets.ENDS}\n"


def encoded(**texts: str) -> dict[str, Any]:
    return {"data": {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}}


def community(**spec: Any) -> types.Community:
    made = msgspec.convert({"version": "5.0.0", **spec}, types.CommunitySpec)
    return types.Community(meta.ObjectMeta(name="demo", namespace="ns"), made)


async def seen(api: fake_api.FakeApi, **spec: Any) -> observation.SecretsSeen:
    client = kube_client.Client(api)
    world = kind.World(client, informer.Informers(client), gate.Gate(), lambda *_, **__: None)
    made = secrets.Secrets(world, lambda _: client)
    asked = secrets.given(community(**spec))
    try:
        await fake_api.until(lambda: isinstance(made.seen(asked, "me"), freshness.Fresh))
        found = made.seen(asked, "me")
        assert isinstance(found, freshness.Fresh)
        return found.value
    finally:
        await made.stop()


async def whole() -> fake_api.FakeApi:
    api = fake_api.FakeApi()
    await api.put("secrets", "own", encoded(p=PASSWORD))
    await api.put("secrets", "db", encoded(u="opencga", password="x"))
    await api.put("configmaps", "authority", {"data": {"ca.crt": f"{secrets.BEGINS}\nYQ==\n{secrets.ENDS}\n"}})
    return api


async def test_all_is_there() -> None:
    """By each it is known what it holds now; none of its values is."""
    found = await seen(await whole(), **WHOLE)

    assert ("", ["own", "db", "ConfigMap/authority"]) == (found.fault, list(found.revisions))
    assert PASSWORD not in repr(found)


async def test_an_authority_may_be_in_a_secret() -> None:
    """Under a key of that kind, in its own words; it may end with a line break, as such files do."""
    api = await whole()
    await api.put("secrets", "authority", encoded(**{"ca.crt": f"{secrets.BEGINS}\nYQ==\n{secrets.ENDS}\n"}))
    tls = {"enabled": True, "caCertificateSecretRef": {"name": "authority"}, "caConfigMapRef": {"name": "other"}}
    found = await seen(api, **WHOLE | {"security": {"tls": tls}})
    assert ("", ["own", "db", "authority"]) == (found.fault, list(found.revisions))

    await api.drop("secrets", "authority")
    found = await seen(api, **WHOLE | {"security": {"tls": tls}})
    assert "there is no Secret authority, which spec.security.tls.caCertificateSecretRef names" == found.fault


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"tls.crt": CERTIFICATE, "tls.key": "-----BEGIN PRIVATE KEY-----\nMA==\n"}, ""),
        ({"tls.crt": CERTIFICATE, "tls.key": "-----BEGIN RSA PRIVATE KEY-----\nMA==\n"}, ""),
        ({"tls.crt": CERTIFICATE, "tls.key": "-----BEGIN EC PRIVATE KEY-----\nMA==\n"}, ""),
        ({"tls.crt": CERTIFICATE, "tls.key": "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMA==\n"}, "without a password"),
        ({"tls.crt": CERTIFICATE, "tls.key": CERTIFICATE}, "its key tls.key has no private key"),
        ({"tls.crt": "x", "tls.key": "-----BEGIN PRIVATE KEY-----\n"}, "its key tls.crt has no certificate"),
        ({"tls.crt": CERTIFICATE}, "it has no key tls.key"),
        (None, "there is no Secret client, which spec.security.tls.certificateKeySecretRef names"),
    ],
)
async def test_what_servers_show_the_database(content: dict[str, str] | None, words: str) -> None:
    """A certificate with a key that its agents can read; it is only looked for where TLS is on."""
    api = await whole()
    if content is not None:
        await api.put("secrets", "client", encoded(**content))
    tls = {"enabled": True, "certificateKeySecretRef": {"name": "client"}}
    found = await seen(api, **WHOLE | {"security": {"tls": tls}})

    assert words in found.fault
    assert bool(words) == bool(found.fault)
    assert "MA==" not in found.fault
    assert found.fault or "client" in found.revisions
    off = secrets.given(community(security={"tls": {**tls, "enabled": False}}))
    assert "client" not in {each.name for each in off.asked}


async def test_without_names_it_is_the_one_of_old() -> None:
    """Under the installation's own name; that it is left out stands in the words."""
    found = await seen(fake_api.FakeApi())

    assert "there is no Secret demo-admin-password, which spec.admin.passwordSecretRef, left out, names" == found.fault
    assert "make it with the key password" in found.fix


@pytest.mark.parametrize(
    ("plural", "name", "content", "words"),
    [
        ("secrets", "own", None, "there is no Secret own, which spec.admin.passwordSecretRef names"),
        ("secrets", "own", encoded(q="x"), "Secret own of spec.admin.passwordSecretRef: it has no key p"),
        ("secrets", "own", encoded(p=""), "its key p is empty"),
        ("secrets", "own", encoded(p="short"), "p: it must have 8 to 100 characters"),
        ("secrets", "own", encoded(p=f"{PASSWORD}\n"), "p: it ends with a line break, as echo makes one"),
        ("secrets", "own", {"data": {"p": "/w=="}}, "its key p is no text"),
        ("secrets", "own", {}, "it has no key p"),
        (
            "secrets",
            "db",
            encoded(u="opencga"),
            "Secret db of spec.database.credentialsSecretRef: it has no key password",
        ),
        ("secrets", "db", encoded(u="opencga\n", password="x"), "u ends with a line break"),
        (
            "configmaps",
            "authority",
            None,
            "there is no ConfigMap authority, which spec.security.tls.caConfigMapRef names",
        ),
        (
            "configmaps",
            "authority",
            {"data": {}},
            "ConfigMap authority of spec.security.tls.caConfigMapRef: it has no key",
        ),
        ("configmaps", "authority", {"data": {"ca.crt": "PEM"}}, "its key ca.crt has no certificate"),
    ],
)
async def test_what_is_wrong_is_named(plural: str, name: str, content: dict[str, Any] | None, words: str) -> None:
    """With the field that leads there, and never with a value."""
    api = await whole()
    await api.drop(plural, name)
    if content is not None:
        await api.put(plural, name, content)
    found = await seen(api, **WHOLE)

    assert words in found.fault
    assert found.fix
    assert PASSWORD not in found.fault


def test_a_revision_is_that_of_the_data() -> None:
    """Labels come and go all day; a Secret that was made anew is another one."""

    def held(uid: str, version: str, *times: str) -> dict[str, Any]:
        noted = [{"time": time, "fieldsV1": {"f:data": {}}} for time in times]
        noted.append({"time": "2099-01-01T00:00:00Z", "fieldsV1": {"f:metadata": {}}})
        return {"metadata": {"uid": uid, "resourceVersion": version, "managedFields": noted}}

    one = secrets.revision(held("a", "1", "2026-01-01T00:00:00Z"))

    assert one == secrets.revision(held("a", "2", "2026-01-01T00:00:00Z"))
    assert one != secrets.revision(held("a", "2", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"))
    assert one != secrets.revision(held("b", "1", "2026-01-01T00:00:00Z"))
    assert secrets.revision(held("a", "1")) != secrets.revision(held("a", "2"))


@pytest.mark.parametrize(
    ("password", "sound"),
    [
        (PASSWORD, True),
        ("Aa1!aaaa", True),
        ("Aa1!aaa", False),
        ("Aa1!" + "a" * 96, True),
        ("Aa1!" + "a" * 97, False),
        ("aa1!aaaa", False),
        ("AA1!AAAA", False),
        ("Aaa!aaaa", False),
        ("Aa11aaaa", False),
        ("Aa1! aaaa", False),
        ("Aa1!\taaaa", False),
    ],
)
def test_what_the_product_takes_as_a_password(password: str, sound: bool) -> None:
    """By its own rule."""
    assert sound == (types.password_fault(password) == "")
