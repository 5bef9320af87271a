"""What is wrong with one member holds up nobody else; and what was corrected reaches every pod without a hand."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from moorage.api import builtin, meta
from moorage.kube import errors
from moorage.operators.xsld import group_access, names
from moorage.operators.xsld.cache import observation

from . import bench
from .bench import said

BAD, GOOD = "ibmcom/xsld:crashes", "ibmcom/xsld:8614"
QUOTA = meta.Resource("", "v1", "ResourceQuota", "resourcequotas")
QUICK: dict[str, Any] = {"updateStrategy": {"memberTimeout": "3s", "settle": "1s"}}


async def made(site: bench.Site, size: int, **spec: Any) -> None:
    """A cache that stands."""
    site.operator()
    await site.make_cache(size=size, **spec)
    await site.ready()


async def images(site: bench.Site) -> dict[str, str]:
    """What each pod runs."""
    found = await site.client.list(builtin.POD, site.namespace)
    return {it["metadata"]["name"]: it["spec"]["containers"][0]["image"] for it in found.items}


async def condition(site: bench.Site, type_: str, says: str) -> dict[str, Any]:
    """Wait until that is part of what a condition of the cache says."""

    async def holds() -> dict[str, Any] | None:
        found = await site.get(names.CACHE, "cache")
        return found if found and says in said(found, type_).message else None

    found: dict[str, Any] = await site.until(holds)
    return found


# --- the corrected template ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2])
async def test_pods_that_crash_before_there_is_a_group(site: bench.Site, size: int) -> None:
    """Nobody has ever answered, and nobody ever will with that image."""
    site.node.image_crashes = {BAD}
    site.operator()
    await site.make_cache(size=size, image=BAD)
    await site.says("GroupUnreachable")
    await condition(site, "Ready", "cache-0")
    await site.change(image=GOOD)
    found = await site.ready()

    assert (size, GOOD) == (found["status"]["online"], found["status"]["currentImage"])


async def test_a_single_member_that_crashes_after_an_edit(site: bench.Site) -> None:
    site.node.image_crashes = {BAD}
    await made(site, 1, **QUICK)
    await site.change(image=BAD)
    await site.says("GroupUnreachable")
    await site.change(image=GOOD)
    await site.ready()

    assert {"cache-0": GOOD} == await images(site)


async def test_all_members_down_by_a_bad_edit(site: bench.Site) -> None:
    """The roll stops at the first; the others' pods are lost as with their nodes, and come back with the same fault."""
    site.node.image_crashes = {BAD}
    await made(site, 3, **QUICK)
    await site.change(image=BAD)
    await site.says("UpdateStalled")
    for pod in ("cache-0", "cache-1"):
        await site.delete(builtin.POD, pod)

    async def down() -> bool:
        return set((await images(site)).values()) == {BAD} and len(await site.pods()) == 3

    await site.until(down)
    await site.says("GroupUnreachable")
    claims = await site.claims()
    await site.change(image=GOOD)
    found = await site.ready()

    assert (3, claims) == (found["status"]["online"], await site.claims())
    assert dict.fromkeys(("cache-0", "cache-1", "cache-2"), GOOD) == await images(site)


async def test_an_update_that_stalls_stays_stalled(site: bench.Site) -> None:
    """Not for one pass: until somebody corrects it."""
    site.node.image_crashes = {BAD}
    await made(site, 2, **QUICK)
    (operator,) = site.operators
    await site.change(image=BAD)
    await site.says("UpdateStalled")
    passes = operator.passes
    for number in range(3):
        await site.patch(names.CACHE, "cache", {"metadata": {"annotations": {"look": str(number)}}})
        await site.until(lambda before=passes: operator.passes > before + 1)
        passes = operator.passes
        found = await site.get(names.CACHE, "cache")

        assert found is not None
        assert ("UpdateStalled", "True") == (said(found, "Ready").reason, said(found, "Stalled").status)


# --- a member that has no place --------------------------------------------------------------------------------------


async def test_a_wanted_pod_that_has_no_room_keeps_no_update_from_the_others(
    site: bench.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The image reaches all that are members; the one that waits is spoken of beside it."""
    monkeypatch.setattr(observation, "PLACED", 1.0)
    await made(site, 2)
    site.node.no_room = {"cache-2"}
    await site.change(size=3)
    await condition(site, "Scaling", "cache-2 (pod cache-2 can't be scheduled")
    await site.change(image=GOOD)

    async def updated() -> bool:
        now = await images(site)
        return (now.get("cache-0"), now.get("cache-1")) == (GOOD, GOOD) and (await site.cache()).status.online == 2

    await site.until(updated)
    found = await site.says("MemberStarting")
    assert GOOD == found["status"]["currentImage"]
    site.node.no_room = set()
    await site.delete(builtin.POD, "cache-2")
    found = await site.ready()
    assert 3 == found["status"]["online"]


async def test_a_quota_keeps_no_update_from_the_others(site: bench.Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no pod at all of the third."""
    monkeypatch.setattr(observation, "PLACED", 1.0)
    await made(site, 2)
    body = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "two"}, "spec": {"hard": {"pods": "2"}}}
    await site.client.create(QUOTA, site.namespace, body, field_manager="user")
    await site.until(lambda: refused(site, "exceeded quota: two"))
    await site.change(size=3)
    await condition(site, "Scaling", "exceeded quota: two")
    await site.change(image=GOOD)

    async def updated() -> bool:
        return await images(site) == {"cache-0": GOOD, "cache-1": GOOD}

    await site.until(updated)
    await site.says("MemberStarting")
    await site.client.delete(QUOTA, site.namespace, "two", propagation="Background")
    found = await site.ready()
    assert 3 == found["status"]["online"]


async def refused(site: bench.Site, words: str) -> bool:
    """Whether the server, which reads quotas from a cache of its own, refuses a pod in these words."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"}}
    spec = {"spec": {"containers": [{"name": "x", "image": "x"}]}}
    try:
        await site.client.create(builtin.POD, site.namespace, {**pod, **spec}, field_manager="user", dry_run=True)
    except errors.ApiError as error:
        return words in str(error)
    return False


# --- credentials -----------------------------------------------------------------------------------------------------


async def secret(site: bench.Site, key: str) -> None:
    """The user's own Secret with the credentials."""
    given = {"adminPwd": bench.PASSWORD, "secretKey": key}
    data = {name: base64.b64encode(text.encode()).decode() for name, text in given.items()}
    if await site.get(builtin.SECRET, "login"):
        await site.patch(builtin.SECRET, "login", {"data": data})
        return
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "data": data}
    await site.client.create(builtin.SECRET, site.namespace, body, field_manager="user")


async def test_a_pod_that_began_with_a_wrong_secret_key_comes_back_by_itself(
    site: bench.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once the Secret is right; who is Online is left alone, and nobody has to join anew."""
    monkeypatch.setattr(group_access, "SECRETS_EVERY", 0.5)
    monkeypatch.setattr(group_access, "KUBELET_LAG", 1.0)
    await secret(site, bench.SECRET)
    await made(site, 3, adminPwd=None, secretKey=None, credentialsSecretRef={"name": "login"})
    found = await site.client.list(builtin.POD, site.namespace, as_=meta.Partial)
    before = {it.metadata.name: it.metadata.uid for it in found.items}
    await secret(site, "Another-key-1")
    await site.delete(builtin.POD, "cache-2")

    async def back() -> bool:
        return any(
            it.name == "cache-2" and it.pod["metadata"]["uid"] != before["cache-2"] for it in site.node.containers
        )

    await site.until(back)
    await condition(site, "MembersReady", "not online: cache-2")
    await secret(site, bench.SECRET)
    await site.ready()
    found = await site.client.list(builtin.POD, site.namespace, as_=meta.Partial)
    now = {it.metadata.name: it.metadata.uid for it in found.items}

    assert (before["cache-0"], before["cache-1"]) == (now["cache-0"], now["cache-1"])
    assert ["NewMemberJoin cache-2"] == await site.changes("cache-2") or [] == await site.changes("cache-2")


# --- what should be gone ---------------------------------------------------------------------------------------------


async def test_two_that_are_dead_and_surplus_leave(site: bench.Site) -> None:
    """Neither waits for the other, once all that stay are well."""
    await made(site, 4)
    for pod in ("cache-2", "cache-3"):
        container = site.node.pod(pod)
        container.held = True
        await container.crash()
    await site.change(size=2)
    found = await site.ready()

    assert (2, 2) == (found["status"]["members"], found["status"]["online"])
    assert ["vol-cache-0", "vol-cache-1"] == await site.claims()


async def test_a_pod_that_does_not_end_is_told_and_holds_up_nobody(site: bench.Site) -> None:
    """The next member leaves; Ready comes once nothing is left."""
    await made(site, 4)
    site.node.lingering = {"cache-3"}
    await site.change(size=2)

    async def left() -> bool:
        return (await site.cache()).status.members == 2

    await site.until(left)
    found = await site.says("SurplusStays")
    assert "cache-3 (pod cache-3 is" in said(found, "Ready").message

    async def the_other_is_gone() -> bool:
        return "vol-cache-2" not in await site.claims()

    await site.until(the_other_is_gone)
    site.node.lingering = set()
    await site.ready()

    assert ["vol-cache-0", "vol-cache-1"] == await site.claims()


async def test_at_deletion_each_volume_goes_with_its_own_pod(site: bench.Site) -> None:
    await made(site, 3)
    site.node.lingering = {"cache-1"}
    await site.delete(names.CACHE, "cache")

    async def others_are_gone() -> bool:
        return await site.claims() == ["vol-cache-1"]

    await site.until(others_are_gone)
    found = await condition(site, "Ready", "cache-1 (pod cache-1 is")
    assert "Deleting" == found["status"]["phase"]
    site.node.lingering = set()
    await site.gone(names.CACHE, "cache")

    assert ([], []) == (await site.pods(), await site.claims())
