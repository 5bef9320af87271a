"""The observation of a cache, made from an API server: what is wrong with what the user gives is never swallowed."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from moorage.kube import cache as kube_cache
from moorage.kube import client as kube_client
from moorage.operators import access
from moorage.operators.xsld import config, names
from moorage.operators.xsld.cache import control, kind, seen, types
from moorage.runtime import gate, observed
from moorage.runtime import kind as runtime_kind
from tests.unit.runtime import fake_api
from tests.unit.xsld import states

SETTINGS = config.Config(config.ServiceAccount("moorage", "moorage-system"), "moorage-xsld-tenant")
PLAIN = {"adminPwd": "Abcdefg1-x", "secretKey": "Abcdefg1-x"}
NAMED = {"credentialsSecretRef": {"name": "given"}}


@contextlib.asynccontextmanager
async def started(api: fake_api.FakeApi, spec: dict[str, Any]) -> AsyncIterator[kind.CacheKind]:
    """The kind on a server that has one cache, with all rights bound."""
    await api.put("rolebindings", names.BINDING, access.binding("ns", states.RIGHTS))
    content = {"metadata": {"finalizers": [names.CACHE_FINALIZER]}, "spec": {"license": "accept", "size": 1, **spec}}
    await api.put("xsldcaches", "c", content)
    client = kube_client.Client(api)
    caches = kube_cache.Caches(client)
    made = kind.CacheKind(SETTINGS)
    made.caches = [caches.watch(names.CACHE, types.XsldCache)]
    await made.start(runtime_kind.World(client, caches, gate.Gate(), lambda _: None))
    try:
        for cache in caches.all():
            await cache.wait_synced(5)
        yield made
    finally:
        await made.stop()
        await caches.stop()


async def observation(api: fake_api.FakeApi, spec: dict[str, Any]) -> seen.Seen:
    """What is observed once the credentials were looked at."""
    async with started(api, spec) as made:
        obj = made.find("ns", "c")
        assert obj is not None
        await fake_api.until(lambda: not isinstance(made.observe(obj, states.NOW).credentials, observed.Failed))
        return made.observe(obj, states.NOW)


CA = {"tls": {"caSecretRef": "ca"}}
FAULTS: dict[str, tuple[dict[str, Any], dict[str, str], str]] = {
    # id: (spec, the CA's Secret, what is wrong)
    "the CA is missing": ({**PLAIN, **CA}, {}, "Secret ca has no key ca.crt"),
    "the CA is no certificate": ({**PLAIN, **CA}, {"ca.crt": "eA=="}, "Secret ca: ca.crt holds no certificate"),
    "credentials in a Secret, and the CA is missing": ({**NAMED, **CA}, {}, "Secret ca has no key ca.crt"),
}


@pytest.mark.parametrize(("spec", "ca", "says"), FAULTS.values(), ids=FAULTS)
async def test_a_fault_of_the_ca_is_told_wherever_the_passwords_are(
    spec: dict[str, Any], ca: dict[str, str], says: str
) -> None:
    api = fake_api.FakeApi()
    await api.put("secrets", "ca", {"data": ca})
    await api.put("secrets", "given", {"data": dict.fromkeys(PLAIN, "QWJjZGVmZzEteA==")})

    states.check(
        states.Row(await observation(api, spec), "credentials_are_given", states.Blocks("CredentialsInvalid"), says),
        control.STEPS,
    )


async def test_that_our_secret_is_not_made_yet_is_no_fault() -> None:
    found = await observation(fake_api.FakeApi(), PLAIN)

    assert "" == observed.value_of(found.credentials)
    assert "children_exist" == states.decided(found, control.STEPS)[0]
