"""What the API server itself takes and refuses of the three kinds, and in which words."""

from __future__ import annotations

import string
from typing import Any

import msgspec
import pytest

from moorage.api import meta
from moorage.kube import client as kube_client
from moorage.kube import errors
from moorage.operators.xsld import names
from moorage.operators.xsld.cache import types

from . import bench

pytestmark = pytest.mark.usefixtures("definitions")

GIVEN = {"adminPwd": bench.PASSWORD, "secretKey": bench.SECRET}
REF = {"credentialsSecretRef": {"name": "login"}}
NEITHER = {"adminPwd": None, "secretKey": None}
XML = {"objectGridXml": "<objectGridConfig/>", "deploymentXml": "<deploymentPolicy/>"}
BASES: dict[str, tuple[meta.Resource, dict[str, Any]]] = {
    "cache": (names.CACHE, {"license": "accept", "size": 2, **GIVEN}),
    "ref": (names.CACHE, {"license": "accept", "size": 2, **REF}),
    "classy": (names.CACHE, {"license": "accept", "size": 2, **REF, "storage": {"storageClassName": "fast"}}),
    "grid": (names.GRID, {}),
    "named": (names.GRID, {"gridName": "it", "cacheRef": {"name": "cache"}}),
    "template": (names.TEMPLATE, {"source": {"inline": XML}}),
}
"""What is right, by the name of the object."""

TAKEN = ""
PASSWORD = "must have at least 10 characters, with a digit"
EITHER = "give either adminPwd and secretKey, or credentialsSecretRef, but not both"
ONE_SOURCE = "give exactly one of inline, configMapRef and secretRef"
PRIME = "numPartition must be 1 or a prime number"
CREATED: list[tuple[str, dict[str, Any], str]] = [
    ("cache", {}, TAKEN),
    ("cache", {"license": "reject"}, 'supported values: "accept"'),
    ("cache", {"license": None}, "spec.license: Required value"),
    ("cache", {"size": 0}, "should be greater than or equal to 1"),
    ("cache", {"size": 101}, "should be less than or equal to 100"),
    ("cache", {"image": "no such image"}, "spec.image"),
    ("cache", {"image": "registry.example:5000/xsld@sha256:" + 64 * "a"}, TAKEN),
    ("cache", {"adminPwd": "Xs-Admin-x!"}, f"adminPwd {PASSWORD}"),
    ("cache", {"adminPwd": "xs-admin-1!"}, f"adminPwd {PASSWORD}"),
    ("cache", {"adminPwd": "XsAdmin2020"}, f"adminPwd {PASSWORD}"),
    ("cache", {"adminPwd": 'Xs-Admin-"1'}, f"adminPwd {PASSWORD}"),
    ("cache", {"adminPwd": "Xs-Admin-2020\n"}, f"adminPwd {PASSWORD}"),
    ("cache", {"adminPwd": "Xs-Adm-20"}, "should be at least 10 chars long"),
    ("cache", {"secretKey": "Xs-Secret-x"}, f"secretKey {PASSWORD}"),
    ("cache", {"adminPwd": None}, "give both adminPwd and secretKey, or neither"),
    ("cache", {"secretKey": None}, "give both adminPwd and secretKey, or neither"),
    ("cache", NEITHER, EITHER),
    ("cache", REF, EITHER),
    ("ref", {"credentialsSecretRef": {"name": ""}}, "should be at least 1 chars long"),
    ("cache", {"storage": {"size": "much"}}, "spec.storage.size"),
    ("cache", {"storage": {"reclaimOnDelete": "Keep"}}, 'supported values: "Delete", "Retain"'),
    ("cache", {"derbyReplication": {"failoverSeconds": 1}}, "should be greater than or equal to 5"),
    ("cache", {"updateStrategy": {"memberTimeout": "15"}}, "spec.updateStrategy.memberTimeout"),
    *(("grid", {"numPartition": n}, TAKEN) for n in (1, 2, 31, 37, 997)),
    *(("grid", {"numPartition": n}, PRIME) for n in (4, 9, 899, 961, 1000)),
    ("grid", {"numPartition": 1009}, "should be less than or equal to 1000"),
    *(("grid", {field: 2**31 - 1}, TAKEN) for field in ("lockTimeout", "transactionTimeout", "timeToLive")),
    *(("grid", {f: 2**31}, f"spec.{f}: Invalid value") for f in ("lockTimeout", "transactionTimeout", "timeToLive")),
    ("grid", {"gridType": "Custom"}, "a grid of type Custom needs templateName"),
    ("grid", {"gridType": "Custom", "templateName": ""}, "a grid of type Custom needs templateName"),
    ("grid", {"gridType": "Custom", "templateName": "it"}, TAKEN),
    ("grid", {"gridType": "Other"}, "Unsupported value"),
    ("template", {"source": {"inline": None}}, ONE_SOURCE),
    ("template", {"source": {"secretRef": {"name": "it"}}}, ONE_SOURCE),
    ("template", {"source": {"inline": None, "configMapRef": {"name": "it"}}}, TAKEN),
    ("template", {"source": {"inline": {"deploymentXml": ""}}}, "should be at least 1 chars long"),
]
CHANGED: list[tuple[str, dict[str, Any], str]] = [
    ("cache", {"size": 5, "catalogs": 1, "image": "ibmcom/xsld:8614", "storage": {"size": "1Gi"}}, TAKEN),
    ("cache", {"capacity": 2}, "capacity can't be changed after creation"),
    ("cache", {"group": "cg2"}, "group can't be changed after creation"),
    ("cache", {"adminPwd": "Xs-Admin-2021"}, "adminPwd can't be changed"),
    ("cache", {"secretKey": "Xs-Secret-2021"}, "secretKey can't be changed"),
    ("cache", {**NEITHER, **REF}, TAKEN),
    ("ref", {"credentialsSecretRef": {"name": "other"}}, TAKEN),
    ("ref", {**GIVEN, "credentialsSecretRef": None}, "adminPwd can't be changed"),
    ("cache", {"storage": {"ephemeral": True}}, "storage.ephemeral can't be changed"),
    ("cache", {"storage": {"accessModes": ["ReadWriteMany"]}}, "storage.accessModes can't be changed"),
    ("cache", {"storage": {"storageClassName": "fast"}}, "storage.storageClassName can't be changed"),
    ("classy", {"storage": {"storageClassName": "slow"}}, "storage.storageClassName can't be changed"),
    ("classy", {"storage": {"storageClassName": None}}, "storage.storageClassName can't be changed"),
    ("cache", {"storage": {"size": "99Mi"}}, "storage.size can only grow"),
    ("cache", {"storage": {"size": "102400Ki"}}, TAKEN),
    ("grid", {"gridCapacity": 100, "numPartition": 5, "deletionPolicy": "Retain"}, TAKEN),
    ("grid", {"gridName": "other"}, "gridName can't be changed after creation"),
    ("named", {"gridName": "other"}, "gridName can't be changed after creation"),
    ("named", {"cacheRef": None}, TAKEN),  # it is made nowhere
    ("named", {"cacheRef": {"name": "other"}}, TAKEN),
    ("grid", {"cacheRef": {"name": "other"}}, TAKEN),
    ("template", {"source": {"inline": None, "secretRef": {"name": "it"}}}, TAKEN),
    ("template", {"templateName": "other"}, "templateName can't be changed after creation"),
    ("template", {"cacheRef": {"name": "other"}}, TAKEN),
]


def merged(base: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """As a merge patch does it."""
    made = dict(base)
    for key, value in change.items():
        made[key] = merged(made.get(key) or {}, value) if isinstance(value, dict) else value
    return {key: value for key, value in made.items() if value is not None}


class Server:
    """An API server that is only asked what it would do."""

    def __init__(self, client: kube_client.Client, namespace: str) -> None:
        self.client, self.namespace = client, namespace

    async def create(self, resource: meta.Resource, name: str, spec: dict[str, Any], *, dry_run: bool = True) -> str:
        """The words of its refusal; none if it takes it."""
        body = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": spec,
        }
        try:
            await self.client.create(resource, self.namespace, body, field_manager="user", dry_run=dry_run)
        except errors.Invalid as error:
            return error.status.message
        return TAKEN

    async def change(self, resource: meta.Resource, name: str, body: dict[str, Any], **how: Any) -> str:
        """The same for a merge patch."""
        try:
            await self.client.patch_merge(
                resource, self.namespace, name, body, field_manager="user", **{"dry_run": True, **how}
            )
        except errors.Invalid as error:
            return error.status.message
        return TAKEN


@pytest.fixture
def server(client: kube_client.Client, namespace: str) -> Server:
    return Server(client, namespace)


def fits(words: str, told: str) -> bool:
    """Whether that was told; where nothing is to be, whether nothing was."""
    return words in told if words else not told


async def test_what_is_made(server: Server) -> None:
    wrong = {}
    for base, change, words in CREATED:
        resource, spec = BASES[base]
        told = await server.create(resource, base, merged(spec, change))
        if not fits(words, told):
            wrong[f"{base} {change}"] = (words, told)

    assert {} == wrong


async def test_what_is_changed(server: Server) -> None:
    for name, (resource, spec) in BASES.items():
        assert TAKEN == await server.create(resource, name, spec, dry_run=False)
    wrong = {}
    for name, change, words in CHANGED:
        told = await server.change(BASES[name][0], name, {"spec": change})
        if not fits(words, told):
            wrong[f"{name} {change}"] = (words, told)

    assert {} == wrong


MADE: dict[str, dict[str, Any]] = {
    "named": {"made": True, "cache": "cache"},
    "template": {"asked": True, "cache": "cache"},
}


@pytest.mark.parametrize("name", MADE)
async def test_what_is_made_in_a_cache_stays_there(server: Server, name: str) -> None:
    """But a name that was never its cache's can be taken back, and corrected."""
    resource, spec = BASES[name]
    stays = "cacheRef can't be changed once it is made in that cache"
    here, other, third = ({"cacheRef": {"name": each}} for each in ("cache", "other", "third"))
    await server.create(resource, name, merged(spec, here), dry_run=False)
    await server.change(resource, name, {"status": MADE[name]}, subresource="status", dry_run=False)

    assert stays in await server.change(resource, name, {"spec": other})
    assert stays in await server.change(resource, name, {"spec": {"cacheRef": None}})
    moved = {"status": {"cache": "another"}}  # as for one whose name came later than its cache
    await server.change(resource, name, moved, subresource="status", dry_run=False)

    assert stays in await server.change(resource, name, {"spec": third})
    assert TAKEN == await server.change(resource, name, {"spec": {"cacheRef": {"name": "another"}}})
    assert TAKEN == await server.change(resource, name, {"spec": {"cacheRef": None}})


async def test_a_size_that_no_volume_has_got_yet_can_be_taken_back(server: Server) -> None:
    """To the smallest volume's, in whatever words, and no further."""
    await server.create(names.CACHE, "cache", BASES["cache"][1], dry_run=False)

    async def to(size: str, **how: Any) -> str:
        return await server.change(names.CACHE, "cache", {"spec": {"storage": {"size": size}}}, **how)

    async def volumes(size: str) -> None:
        status = {"status": {"volumeSize": size}}
        assert TAKEN == await server.change(names.CACHE, "cache", status, subresource="status", dry_run=False)

    assert TAKEN == await to("1Gi", dry_run=False)
    assert "storage.size can only grow" in await to("100Mi")
    await volumes("100Mi")

    assert "storage.size can only grow" in await to("99Mi")
    assert TAKEN == await to("100Mi")
    assert TAKEN == await to("102400Ki")
    await volumes("1Gi")

    assert "storage.size can only grow" in await to("100Mi")


async def test_names(server: Server) -> None:
    """A cache's name becomes that of a Service, and with a number that of pods."""
    told = {
        name: await server.create(names.CACHE, name, BASES["cache"][1])
        for name in ("a", "a" * 52, "a" * 53, "1a", "a.b", "a-1")
    }

    assert {"a", "a" * 52, "a-1"} == {name for name, words in told.items() if not words}
    assert all("metadata.name names a Service and pods" in words for words in told.values() if words)


async def test_server_and_operator_agree_on_passwords(server: Server) -> None:
    """Character by character: what the one takes, the other does."""
    tried = [f"Password1{character}" for character in string.punctuation]
    tried += [f"Pass{character}word1!" for character in map(chr, (*range(32), 127))]
    taken = [
        text
        for text in tried
        if not await server.create(names.CACHE, "it", merged(BASES["cache"][1], {"adminPwd": text, "secretKey": text}))
    ]

    assert [text for text in tried if not types.password_fault(text)] == taken
    assert set(types.SPECIALS) == {text[-1] for text in taken}


async def test_the_scale_subresource(server: Server) -> None:
    """As `kubectl scale` does it: the size, within its limits."""
    await server.create(names.CACHE, "cache", BASES["cache"][1], dry_run=False)

    async def scaled(to: int) -> str:
        body = {"spec": {"replicas": to}}
        return await server.change(names.CACHE, "cache", body, subresource="scale", dry_run=False)

    assert "greater than or equal to 1" in await scaled(0)
    assert "less than or equal to 100" in await scaled(101)
    assert TAKEN == await scaled(4)
    found = await server.client.get(names.CACHE, server.namespace, "cache", as_=types.XsldCache)

    assert msgspec.structs.replace(found.spec, size=4) == found.spec
