"""Members that change their role or image, come back without their state, or never came; and what is kept meanwhile."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from moorage.api import builtin, common_status, meta
from moorage.operators.xsld import group_access, names
from moorage.operators.xsld.cache import build

from . import bench
from .bench import said

THREE = ("cache-0", "cache-1", "cache-2")
BAD, GOOD = "ibmcom/xsld:none", "ibmcom/xsld:8614"


async def made(site: bench.Site, size: int = 3, **spec: Any) -> bench.Operator:
    """A cache that stands."""
    operator = site.operator()
    await site.make_cache(size=size, **spec)
    await site.ready()
    return operator


async def uids(site: bench.Site, resource: meta.Resource = builtin.POD) -> dict[str, str]:
    """Which objects these are, by name."""
    found = await site.client.list(resource, site.namespace, as_=meta.Partial)
    return {it.metadata.name: it.metadata.uid for it in found.items}


async def images(site: bench.Site) -> dict[str, str]:
    """What each pod runs."""
    found = await site.client.list(builtin.POD, site.namespace)
    return {it["metadata"]["name"]: it["spec"]["containers"][0]["image"] for it in found.items}


async def secret(site: bench.Site, password: str) -> None:
    """The user's own Secret with the credentials."""
    given = {"adminPwd": password, "secretKey": bench.SECRET}
    data = {key: base64.b64encode(text.encode()).decode() for key, text in given.items()}
    if await site.get(builtin.SECRET, "login"):
        await site.patch(builtin.SECRET, "login", {"data": data})
        return
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "data": data}
    await site.client.create(builtin.SECRET, site.namespace, body, field_manager="user")


BY_SECRET: dict[str, Any] = {"adminPwd": None, "secretKey": None, "credentialsSecretRef": {"name": "login"}}


async def test_fewer_catalog_servers(site: bench.Site) -> None:
    """One at a time they leave and join anew; whoever holds the copy hands it on before."""
    await made(site, catalogs=3)
    volumes = await uids(site, builtin.VOLUME_CLAIM)
    await site.change(catalogs=1)
    found = await site.ready()

    assert ["cache-0"] == found["status"]["catalogMembers"]
    assert (3, "Running") == (found["status"]["online"], found["status"]["replication"]["state"])
    assert [
        "DerbyReplication cache-1",  # of the beginning
        "DerbyReplication cache-2",
        "RemoveMember cache-1",
        "NewMemberJoin cache-1",
        "DerbyReplication cache-1",
        "RemoveMember cache-2",
        "NewMemberJoin cache-2",
    ] == await site.changes(*THREE)
    now = await uids(site, builtin.VOLUME_CLAIM)
    assert ["vol-cache-0"] == [name for name, uid in volumes.items() if now[name] == uid]


async def test_more_catalog_servers(site: bench.Site) -> None:
    """The lowest ordinal first; the copy follows to a catalog server before a member that holds it leaves."""
    await made(site, catalogs=1)
    await site.change(catalogs=2)
    found = await site.ready()

    assert ["cache-0", "cache-1"] == found["status"]["catalogMembers"]
    assert [
        "DerbyReplication cache-1",  # of the beginning
        "DerbyReplication cache-2",
        "RemoveMember cache-1",
        "NewMemberJoin cache-1",
    ] == await site.changes("cache-0", "cache-1")


async def test_the_copy_is_moved_before_its_holder_leaves(site: bench.Site) -> None:
    """Where it is the one that the size leaves out."""
    await made(site, catalogs=1)
    await site.ask(
        "cache-0", "POST", "/task", command("DerbyReplication", masterMemberName="cache-0", slaveMemberName="cache-2")
    )

    async def moved() -> bool:
        now = await site.cache()
        return now.status.replication.slave == "cache-2"

    await site.until(moved)
    await site.change(size=2)
    found = await site.ready()

    assert "cache-1" == found["status"]["replication"]["slave"]
    assert ["DerbyReplication cache-2", "DerbyReplication cache-1", "RemoveMember cache-2"] == (
        await site.changes("cache-0")
    )[-3:]


def command(name: str, **parameters: str) -> dict[str, Any]:
    """The request of somebody who does by hand what is the operator's to do."""
    return {"command": f"{name}TaskCommand", "description": "by hand", "parameters": parameters}


async def test_a_member_that_comes_back_blank_joins_once_more(site: bench.Site) -> None:
    """Its volume is lost with its pod: what is listed of it leaves, and it joins as if it were new."""
    await made(site)
    before = await site.members()
    await site.delete(builtin.VOLUME_CLAIM, "vol-cache-2")
    await site.delete(builtin.POD, "cache-2")

    async def rejoined() -> bool:
        now = (await site.members()).get("cache-2", {})
        return now.get("status") == "Online" and now["ipAddress"] != before["cache-2"]["ipAddress"]

    await site.until(rejoined)
    found = await site.ready()

    assert 3 == found["status"]["online"]
    assert ["NewMemberJoin cache-2"] == await site.changes("cache-2")
    assert 1 == (await site.changes("cache-0")).count("RemoveMember cache-2")


@pytest.mark.parametrize("slow", [False, True], ids=["at-once", "its-task-ends-late"])
async def test_a_member_that_was_removed_by_hand_rejoins_by_itself(site: bench.Site, *, slow: bool) -> None:
    """Section 5.2, case 2: the server lost it, it joins exactly once, with a new volume."""
    await made(site)
    old = (await uids(site, builtin.VOLUME_CLAIM))["vol-cache-2"]
    if slow:
        await site.fault("cache-0", stuckAt={"percent": 95, "command": "Remove"})
    await site.ask("cache-0", "POST", "/task", command("RemoveMember", memberName="cache-2"))
    if slow:

        async def told() -> bool:
            return 2 == (await site.cache()).status.members

        await site.until(told)
        await site.fault("cache-0")

    async def is_new() -> bool:
        return (await uids(site, builtin.VOLUME_CLAIM)).get("vol-cache-2", old) != old

    await site.until(is_new)
    found = await site.ready()

    assert 3 == found["status"]["online"]
    assert ["NewMemberJoin cache-2"] == await site.changes("cache-2")


async def test_a_disjoin_that_fails_after_its_effect_has_worked(site: bench.Site) -> None:
    """The member is gone from the list: it is not asked to leave again, and joins anew with another volume."""
    await made(site, 2)
    old = (await uids(site, builtin.VOLUME_CLAIM))["vol-cache-1"]
    await site.fault("cache-0", failAt={"percent": 95, "command": "Remove"})
    await site.change(catalogs=1)
    found = await site.ready()

    assert (2, ["cache-0"]) == (found["status"]["online"], found["status"]["catalogMembers"])
    assert old != (await uids(site, builtin.VOLUME_CLAIM))["vol-cache-1"]
    assert ["NewMemberJoin cache-1"] == await site.changes("cache-1")
    told = await site.ask("cache-0", "GET", "/task")
    assert ["Failed"] == [task["status"] for task in told if task["command"] == "RemoveMemberTaskCommand"]


async def test_an_image_that_cant_be_pulled_stops_the_roll(site: bench.Site) -> None:
    """At the first member that it reaches; the others serve on, and a correction heals all."""
    site.node.image_fails = {BAD}
    await made(site, updateStrategy={"memberTimeout": "3s", "settle": "1s"})
    await site.make(names.GRID, "orders", {"numSyncReplicas": 1, "numAsyncReplicas": 0})
    await site.ready("orders", resource=names.GRID)
    await site.put("cache-0", "orders", "1", "one")
    before = await uids(site)
    await site.change(image=BAD)
    found = await site.says("UpdateStalled")
    now = await uids(site)

    assert "Back-off pulling image" in said(found, "Ready").message
    assert ("True", "True") == (said(found, "Updating").status, said(found, "Degraded").status)
    assert ["cache-0", "cache-1"] == [name for name, uid in before.items() if now[name] == uid]
    assert "one" == await site.entry("cache-1", "orders", "1")
    await site.change(image=GOOD)
    found = await site.ready()

    assert dict.fromkeys(THREE, GOOD) == await images(site)
    assert (3, GOOD) == (found["status"]["online"], found["status"]["currentImage"])
    assert "one" == await site.entry("cache-1", "orders", "1")


async def test_an_image_that_does_not_come_up_is_rolled_back(site: bench.Site) -> None:
    """All run the former one again; the same image is tried again by permission, another one at once."""
    site.node.image_fails = {BAD}
    await made(site, image=GOOD, updateStrategy={"memberTimeout": "3s", "settle": "1s", "rollback": True})
    before = await uids(site)
    await site.change(image=BAD)
    found = await site.says("UpdateRolledBack")

    async def all_are_back() -> bool:
        now = await site.get(names.CACHE, "cache")
        return now is not None and now["status"]["online"] == 3 and await images(site) == dict.fromkeys(THREE, GOOD)

    await site.until(all_are_back)
    found = await site.says("UpdateRolledBack")
    now = await uids(site)
    assert ("True", "True") == (said(found, "Stalled").status, said(found, "Available").status)
    assert (BAD, GOOD) == (found["status"]["targetImage"], found["status"]["currentImage"])
    assert ["cache-0", "cache-1"] == [name for name, uid in before.items() if now[name] == uid]
    site.node.image_fails = set()
    await site.change(updateStrategy={"rollback": False})
    found = await site.ready()
    assert dict.fromkeys(THREE, BAD) == await images(site)
    assert (BAD, "") == (found["status"]["goodImage"], found["status"].get("failedImage", ""))


async def test_an_image_that_could_never_be_pulled_is_corrected(site: bench.Site) -> None:
    """There is no group yet that a roll could ask: pods that never started are made anew at once."""
    site.node.image_fails = {BAD}
    site.operator()
    await site.make_cache(size=2, image=BAD)

    async def told() -> bool:
        now = await site.get(names.CACHE, "cache")
        return now is not None and "Back-off pulling image" in said(now, "Ready").message

    await site.until(told)
    await site.change(image=GOOD)
    found = await site.ready()

    assert (2, GOOD) == (found["status"]["online"], found["status"]["currentImage"])


async def test_deleted_although_no_pod_ever_started(site: bench.Site) -> None:
    site.node.image_fails = {BAD}
    site.operator()
    await site.make_cache(size=2, image=BAD)
    found = await site.says("GroupUnreachable")
    await site.until(lambda: len(site.node.containers) == 2)
    assert "Creating" == found["status"]["phase"]
    await site.delete(names.CACHE, "cache")
    await site.gone(names.CACHE, "cache")

    assert ([], []) == (await site.pods(), await site.claims())


async def test_deleted_in_the_middle_of_a_join(site: bench.Site) -> None:
    site.node.env["XSLD_FAULTS"] = '{"stuckAt": {"percent": 30, "command": "Join"}}'
    site.operator()
    await site.make_cache(size=2)

    async def joining() -> bool:
        now = await site.cache()
        return now.status.current_task is not None and now.status.current_task.id > 0

    await site.until(joining)
    await site.delete(names.CACHE, "cache")
    await site.gone(names.CACHE, "cache")

    assert ([], []) == (await site.pods(), await site.claims())


async def test_a_size_that_was_too_much_is_taken_back(site: bench.Site) -> None:
    """The new member never started; nobody has to wait for it."""
    await made(site, 2)
    site.node.image_fails = {"ibmcom/xsld:8613"}
    await site.change(size=3)
    found = await site.says("MemberStarting")
    assert "True" == said(found, "Scaling").status
    await site.change(size=2)
    await site.ready()

    async def as_before() -> bool:
        return ["cache-0", "cache-1"] == await site.pods() and ["vol-cache-0", "vol-cache-1"] == await site.claims()

    await site.until(as_before)
    assert 0 == sum(each.startswith("RemoveMember") for each in await site.changes("cache-0"))


async def test_credentials_move_to_a_secret(site: bench.Site) -> None:
    """Every member is replaced once, as its environment changes; none leaves the group, and no entry is lost."""
    operator = await made(site)
    await site.make(names.GRID, "orders", {"numSyncReplicas": 1, "numAsyncReplicas": 0})
    await site.ready("orders", resource=names.GRID)
    for n in range(10):
        await site.put("cache-0", "orders", str(n), f"value {n}")
    before, volumes = await uids(site), await site.claims()
    await secret(site, bench.PASSWORD)
    await site.change(**BY_SECRET)

    async def replaced() -> bool:
        now = await uids(site)
        return set(now) == set(before) and not set(now.values()) & set(before.values())

    await site.until(replaced)
    await site.ready()
    evicted = [write for write in operator.wire.writes if write.what == "POST pods/eviction" and write.applied]

    assert 3 == len(evicted)
    assert volumes == await site.claims()
    assert [f"value {n}" for n in range(10)] == [await site.entry("cache-1", "orders", str(n)) for n in range(10)]
    commands = [task["command"] for pod in THREE for task in await site.ask(pod, "GET", "/task")]
    assert 0 == commands.count("RemoveMemberTaskCommand")
    assert 2 == commands.count("NewMemberJoinTaskCommand")

    async def tidied() -> bool:
        return await site.get(builtin.SECRET, "cache-credentials") is None

    await site.until(tidied)
    assert await site.get(builtin.SECRET, "login") is not None


async def test_a_changed_password_is_told_and_changes_nothing(
    site: bench.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The group keeps the password that it was made with; so does a Secret that breaks the rule, or is gone."""
    monkeypatch.setattr(group_access, "SECRETS_EVERY", 0.5)
    await secret(site, bench.PASSWORD)
    await made(site, 2, **BY_SECRET)
    before, asked = await uids(site), await site.changes("cache-0", "cache-1")
    await secret(site, "Xs-Admin-2021")
    found = await site.says("CredentialsRejected")
    assert "False" == said(found, "Watching").status
    await secret(site, "short")
    found = await site.says("CredentialsInvalid")
    assert "short" not in said(found, "Ready").message
    await site.delete(builtin.SECRET, "login")

    async def missed() -> bool:
        now = await site.get(names.CACHE, "cache")
        return now is not None and "there is no Secret login" in said(now, "Ready").message

    await site.until(missed)
    await secret(site, bench.PASSWORD)
    await site.ready()

    assert before == await uids(site)
    assert asked == await site.changes("cache-0", "cache-1")


async def test_the_readiness_gate_follows_the_group(site: bench.Site) -> None:
    await made(site, 2, readinessGate=True)

    async def gate(status: str) -> bool:
        pod = await site.get(builtin.POD, "cache-1")
        told = [c["status"] for c in (pod or {})["status"]["conditions"] if c["type"] == build.GATE]
        return told == [status]

    await site.until(lambda: gate("True"))
    await site.fault("cache-0", memberStatus={"cache-1": "Stopped"})
    await site.until(lambda: gate("False"))
    await site.fault("cache-0")
    await site.until(lambda: gate("True"))


async def test_paused_nothing_is_done(site: bench.Site) -> None:
    """What would be done is told; afterwards it is done."""
    operator = await made(site, 2)
    await annotate(site, common_status.PAUSED, "true")
    wrote, asked = len(operator.wrote), await site.changes("cache-0", "cache-1")
    await site.change(size=3)
    found = await site.says("Paused")
    assert ("True", "False") == (said(found, "Paused").status, said(found, "Stalled").status)
    await site.delete(builtin.SERVICE, "cache-client")

    async def noticed() -> bool:
        now = await site.get(names.CACHE, "cache")
        return now is not None and "Service/cache-client (missing)" in said(now, "Ready").message

    await site.until(noticed)
    assert {"PATCH xsldcaches/status"} == set(operator.wrote[wrote:])
    assert asked == await site.changes("cache-0", "cache-1")
    await annotate(site, common_status.PAUSED, "false")
    found = await site.ready()

    assert 3 == found["status"]["online"]
    assert await site.get(builtin.SERVICE, "cache-client") is not None


async def annotate(site: bench.Site, key: str, value: str) -> None:
    await site.patch(names.CACHE, "cache", {"metadata": {"annotations": {key: value}}})


async def test_a_kept_volume_is_in_the_way_until_somebody_deletes_it(site: bench.Site) -> None:
    """reclaimOnScaleDown Retain: nobody joins with what an earlier member left."""
    await made(site, 2, storage={"storageClassName": "none", "reclaimOnScaleDown": "Retain"})
    kept = (await uids(site, builtin.VOLUME_CLAIM))["vol-cache-1"]
    await site.change(size=1)
    await site.ready()
    await site.until(lambda: only(site, "cache-0"))
    await site.change(size=2)
    found = await site.says("LeftoverVolume")
    assert ("True", 1) == (said(found, "Stalled").status, found["status"]["members"])
    assert (["cache-0"], kept) == (await site.pods(), (await uids(site, builtin.VOLUME_CLAIM))["vol-cache-1"])
    await site.delete(builtin.VOLUME_CLAIM, "vol-cache-1")
    found = await site.ready()

    assert 2 == found["status"]["online"]
    assert kept != (await uids(site, builtin.VOLUME_CLAIM))["vol-cache-1"]


async def only(site: bench.Site, *pods: str) -> bool:
    return list(pods) == await site.pods()


async def test_kept_volumes_are_a_new_cache_s_group(site: bench.Site) -> None:
    """reclaimOnDelete Retain: a cache of the same name finds its group and its grids, and nobody joins."""
    storage = {"storageClassName": "none", "reclaimOnDelete": "Retain"}
    await made(site, 2, storage=storage)
    await site.make(names.GRID, "orders", {})
    await site.ready("orders", resource=names.GRID)
    claims = await uids(site, builtin.VOLUME_CLAIM)
    await site.delete(names.CACHE, "cache")
    await site.gone(names.CACHE, "cache")
    assert ([], claims) == (await site.pods(), await uids(site, builtin.VOLUME_CLAIM))
    await site.make_cache(size=2, storage=storage)
    found = await site.ready()

    assert (2, ["orders"]) == (found["status"]["online"], found["status"]["grids"])
    assert claims == await uids(site, builtin.VOLUME_CLAIM)
    assert 0 == sum(each.startswith("NewMemberJoin") for each in await site.changes("cache-0", "cache-1"))


async def test_without_volumes_a_full_outage_leaves_an_empty_group(site: bench.Site) -> None:
    """Nothing is left to come back from: the first member forms the group anew, the other joins, grids are made."""
    await made(site, 2, storage={"ephemeral": True})
    await site.make(names.GRID, "orders", {})
    await site.ready("orders", resource=names.GRID)
    before = await uids(site)
    for pod in before:
        await site.delete(builtin.POD, pod)

    async def replaced() -> bool:
        now = await uids(site)
        return set(now) == set(before) and not set(now.values()) & set(before.values())

    await site.until(replaced)
    found = await site.ready()

    assert 2 == found["status"]["online"]
    await site.until(lambda: both(site))


async def both(site: bench.Site) -> bool:
    found = await site.ready()
    return bool(found["status"]["grids"] == ["orders"])
