"""Every failure case of members, tasks and the primary: what the operator does, and above all what it leaves alone."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from moorage.api import builtin, common_status
from moorage.operators.xsld import names

from . import bench
from .bench import said


async def three(site: bench.Site, **spec: Any) -> None:
    """A cache of three members that stands, with its copy."""
    site.operator()
    await site.make_cache(size=3, **spec)
    await site.ready()


async def asked(site: bench.Site, *pods: str) -> list[str]:
    """Names of the commands that these members have ever carried out; their history is on their volumes."""
    return sorted([task["command"] for pod in pods for task in await site.ask(pod, "GET", "/task")])


async def condition(site: bench.Site, type_: str, status: str) -> dict[str, Any]:
    """Wait until a condition of the cache has that status."""

    async def holds() -> dict[str, Any] | None:
        found = await site.get(names.CACHE, "cache")
        return found if found and said(found, type_).status == status else None

    found: dict[str, Any] = await site.until(holds)
    return found


async def test_a_container_restarts(site: bench.Site) -> None:
    """The same address: it is Degraded for a while, nobody joins or leaves."""
    await three(site)
    before = await asked(site, "cache-0", "cache-2"), await site.claims()
    container = site.node.pod("cache-2")
    container.held = True
    await container.crash()
    found = await condition(site, "Degraded", "True")
    assert "True" == said(found, "Available").status
    container.held = False
    found = await site.ready()
    assert 3 == found["status"]["online"]
    assert before == (await asked(site, "cache-0", "cache-2"), await site.claims())


async def test_a_pod_is_deleted(site: bench.Site) -> None:
    """Another address, the same volume: one record, with the address of the pod, and no join."""
    await three(site)
    joins, old = await asked(site, "cache-2"), site.node.pod("cache-2").address
    await site.delete(builtin.POD, "cache-2")

    async def moved() -> dict[str, Any] | None:
        members, running = await site.members(), [it.name for it in site.node.containers]
        new = site.node.pod("cache-2").address if "cache-2" in running else old
        return members if members["cache-2"]["ipAddress"] == new != old else None

    members = await site.until(moved)
    found = await site.ready()
    assert 3 == len(members)
    assert site.node.pod("cache-2").address == found["status"]["memberStatuses"][2]["registeredIP"]
    assert joins == ["NewMemberJoinTaskCommand"] == await asked(site, "cache-2")


async def test_two_pods_at_once(site: bench.Site) -> None:
    """Most members gone is not Available; nothing is asked of the group meanwhile, and no volume goes."""
    await three(site)
    before, claims = await asked(site, "cache-0"), await site.claims()
    containers = [site.node.pod("cache-1"), site.node.pod("cache-2")]
    for container in containers:
        container.held = True
        await container.crash()
    await condition(site, "Available", "False")
    await site.change(size=2)  # nobody leaves a degraded group
    await condition(site, "Degraded", "True")
    assert before == await asked(site, "cache-0")
    for container in containers:
        container.held = False
    found = await site.ready()
    assert 2 == found["status"]["members"]

    async def reclaimed() -> bool:
        return claims[:2] == await site.claims()

    await site.until(reclaimed)


async def test_the_primary_is_away_and_comes_back(site: bench.Site) -> None:
    """Shorter than the grace: nobody takes over, and a change of size is carried out afterwards."""
    await three(site, derbyReplication={"failoverSeconds": 600})
    container = site.node.pod("cache-0")
    container.held = True
    await container.crash()
    found = await condition(site, "Available", "False")
    assert "cache-0" == found["status"]["primary"]

    async def waits() -> bool:
        now = await site.get(names.CACHE, "cache")
        return now is not None and said(now, "Ready").reason == "PrimaryUnavailable"

    await site.until(waits)
    await site.change(size=2)
    container.held = False
    found = await site.ready()
    assert (2, "cache-0") == (found["status"]["members"], found["status"]["primary"])


async def test_the_copy_takes_over(site: bench.Site) -> None:
    """Longer than the grace: the copy becomes primary, the admin Service follows, no grid is lost."""
    await three(site, derbyReplication={"failoverSeconds": 5})
    await site.make(names.GRID, "orders", {})
    await site.ready("orders", resource=names.GRID)
    found = await site.get(names.CACHE, "cache")
    assert found is not None
    slave = found["status"]["replication"]["slave"]
    container = site.node.pod("cache-0")
    container.held = True
    await container.crash()

    async def taken_over() -> dict[str, Any] | None:
        now = await site.get(names.CACHE, "cache")
        return now if now and now["status"]["primary"] == slave else None

    await site.until(taken_over)

    async def follows() -> bool:
        service = await site.get(builtin.SERVICE, "cache-admin")
        return service is not None and service["spec"]["selector"]["statefulset.kubernetes.io/pod-name"] == slave

    await site.until(follows)
    container.held = False
    found = await site.ready()
    assert slave == found["status"]["replication"]["master"]
    assert found["status"]["replication"]["slave"] not in ("", slave)
    assert ["orders"] == found["status"]["grids"]
    assert 3 == found["status"]["online"]


async def test_without_a_copy_the_primary_is_waited_for(site: bench.Site) -> None:
    await three(site, derbyReplication={"mode": "Disabled", "failoverSeconds": 5})
    container = site.node.pod("cache-0")
    container.held = True
    await container.crash()
    await condition(site, "Available", "False")
    await site.change(size=4)

    async def told() -> bool:
        now = await site.get(names.CACHE, "cache")
        return now is not None and said(now, "Ready").reason == "PrimaryUnavailable"

    await site.until(told)
    container.held = False
    found = await site.ready()
    assert (4, "cache-0") == (found["status"]["online"], found["status"]["primary"])


@pytest.mark.parametrize("percent", [20, 70])
async def test_the_joining_member_dies(site: bench.Site, percent: int) -> None:
    """Before it is listed, and after."""
    site.operator()
    await site.make_cache(size=1)
    await site.ready()
    site.node.env["XSLD_FAULTS"] = f'{{"dieAt": {{"percent": {percent}, "command": "Join", "times": 1}}}}'
    await site.change(size=2)

    async def died() -> bool:
        return any(it.name == "cache-1" and it.restarts for it in site.node.containers)

    await site.until(died)
    del site.node.env["XSLD_FAULTS"]
    await site.node.pod("cache-1").crash()
    found = await site.ready()
    assert 2 == found["status"]["online"]
    assert ["cache-0", "cache-1"] == sorted(await site.members())


async def test_the_primary_dies_during_a_join(site: bench.Site) -> None:
    site.operator()
    await site.make_cache(size=1)
    await site.ready()
    site.node.env["XSLD_FAULTS"] = '{"stuckAt": {"percent": 30, "command": "Join", "times": 1}}'
    await site.change(size=2)

    async def joining() -> bool:
        now = await site.cache()
        return now.status.current_task is not None and now.status.current_task.id > 0

    await site.until(joining)
    del site.node.env["XSLD_FAULTS"]
    await site.node.pod("cache-0").crash()
    await site.fault("cache-1")
    found = await site.ready()
    assert 2 == found["status"]["online"]


async def test_a_join_fails_again_and_again_until_somebody_looks(site: bench.Site) -> None:
    """Bounded attempts; moorage.dev/reconcile-at asks for more."""
    site.operator()
    site.node.env["XSLD_FAULTS"] = '{"failAt": {"percent": 10, "command": "Join"}}'
    await site.make_cache(size=2)

    async def given_up() -> bool:
        now = await site.get(names.CACHE, "cache")
        return now is not None and said(now, "Ready").reason == "JoinGivenUp"

    await site.until(given_up)
    found = await site.get(names.CACHE, "cache")
    assert found is not None
    assert ("True", "Failed") == (said(found, "Stalled").status, found["status"]["phase"])
    assert 5 == found["status"]["troubles"][0]["attempts"]
    await site.fault("cache-1")
    await site.patch(names.CACHE, "cache", {"metadata": {"annotations": {common_status.RECONCILE_AT: "now"}}})
    found = await site.ready()
    assert 2 == found["status"]["online"]
    assert not found["status"].get("troubles")


async def test_a_disjoin_fails_and_the_volume_stays(site: bench.Site) -> None:
    await three(site)
    await site.fault("cache-0", failAt={"percent": 30, "command": "Remove"})
    await site.change(size=2)

    async def failed() -> bool:
        now = await site.cache()
        return any(trouble.command == "Leave" for trouble in now.status.troubles)

    await site.until(failed)
    assert "vol-cache-2" in await site.claims()
    assert "cache-2" in await site.pods()
    await site.fault("cache-0")
    found = await site.ready()
    assert 2 == found["status"]["members"]

    async def reclaimed() -> bool:
        return await site.claims() == ["vol-cache-0", "vol-cache-1"]

    await site.until(reclaimed)


async def test_the_leaving_member_dies(site: bench.Site) -> None:
    """The task is the primary's, so it goes on; then the size is raised again, and a fresh member joins."""
    await three(site)
    await site.fault("cache-0", stuckAt={"percent": 30, "command": "Remove", "times": 1})
    await site.change(size=2)

    async def leaving() -> bool:
        now = await site.cache()
        return now.status.current_task is not None and now.status.current_task.id > 0

    await site.until(leaving)
    volume = await site.get(builtin.VOLUME_CLAIM, "vol-cache-2")
    assert volume is not None
    await site.node.pod("cache-2").crash()
    await site.change(size=3)
    await site.fault("cache-0")
    found = await site.ready()
    assert 3 == found["status"]["online"]
    again = await site.get(builtin.VOLUME_CLAIM, "vol-cache-2")
    assert again is not None
    assert volume["metadata"]["uid"] != again["metadata"]["uid"]


async def test_the_operator_restarts_at_any_time(site: bench.Site) -> None:
    """Killed again and again while the group grows and shrinks: each member joins and leaves once."""
    operator = site.operator()
    await site.make_cache(size=2)

    async def hunt() -> None:
        nonlocal operator
        for passes in itertools.cycle((1, 2, 4, 8)):
            await asyncio.sleep(0.7)
            # on a busy machine a start takes longer than that, and who never has a second pass gets nowhere
            await site.until(lambda it=operator, least=passes: it.passes >= least)
            await operator.kill()
            operator = site.operator()

    hunter = asyncio.create_task(hunt())
    try:
        await site.ready()
        await site.change(size=4)
        await site.ready()
        await site.change(size=2)
        found = await site.ready()
    finally:
        hunter.cancel()
        await asyncio.gather(hunter, return_exceptions=True)
    assert 2 == found["status"]["members"]
    commands = await asked(site, "cache-0")
    assert 2 == commands.count("RemoveMemberTaskCommand")
    assert 1 == (await asked(site, "cache-1")).count("NewMemberJoinTaskCommand")


async def test_everything_is_gone_at_once(site: bench.Site) -> None:
    """All pods deleted: the group stands again from its volumes; nobody joins or leaves."""
    await three(site)
    claims, before = await site.claims(), await asked(site, "cache-0", "cache-1", "cache-2")
    for pod in await site.pods():
        await site.delete(builtin.POD, pod)
    await condition(site, "Available", "False")
    found = await site.ready()
    assert 3 == found["status"]["online"]
    assert claims == await site.claims()
    assert before == await asked(site, "cache-0", "cache-1", "cache-2")


async def test_replication_stuck_is_cancelled_and_run_again(site: bench.Site, monkeypatch: pytest.MonkeyPatch) -> None:
    from moorage.operators.xsld.cache import tasks

    site.operator()
    site.node.env["XSLD_FAULTS"] = '{"stuckAt": {"percent": 45, "command": "DerbyReplication", "times": 1}}'
    await site.make_cache(size=2)

    async def stands_still() -> bool:
        progress = (await site.cache()).status.task_progress
        return progress is not None and progress.percent == 45

    async def cancels() -> int:
        return sum("/cancel/" in it["path"] for it in await site.trace("cache-0"))

    await site.until(stands_still)
    with monkeypatch.context() as sooner:
        sooner.setattr(tasks, "STUCK", 2.0)
        await site.until(cancels)
    found = await site.ready()  # the next one may stand still for as long as in life, on a busy machine
    assert "Running" == found["status"]["replication"]["state"]
    assert 1 == await cancels()


async def test_a_wrong_password(site: bench.Site) -> None:
    """It is told, nothing is done to the group, and the right one heals."""
    await three(site)
    for pod in ("cache-0", "cache-1", "cache-2"):
        await site.fault(pod, unauthorized=True)

    async def told() -> bool:
        now = await site.get(names.CACHE, "cache")
        return now is not None and said(now, "Ready").reason == "CredentialsRejected"

    await site.until(told)
    await site.change(size=2)
    assert "cache-2" in await site.pods()
    for pod in ("cache-0", "cache-1", "cache-2"):
        await site.fault(pod)
    found = await site.ready()
    assert 2 == found["status"]["members"]


async def test_an_answer_is_lost(site: bench.Site) -> None:
    """The join was taken although the connection broke: it is found by its intent, and not asked twice."""
    site.operator()
    site.node.env["XSLD_FAULTS"] = '{"dropReply": 1}'
    await site.make_cache(size=2)
    await site.ready()
    assert 1 == (await asked(site, "cache-1")).count("NewMemberJoinTaskCommand")


async def test_history_is_dropped_during_a_join(site: bench.Site) -> None:
    site.operator()
    site.node.env["XSLD_FAULTS"] = '{"stuckAt": {"percent": 30, "command": "Join", "times": 1}}'
    await site.make_cache(size=2)

    async def joining() -> bool:
        now = await site.cache()
        return now.status.current_task is not None and now.status.current_task.id > 0

    await site.until(joining)
    await site.fault("cache-1", forgetTasks=True)
    found = await site.ready()
    assert 2 == found["status"]["online"]


async def test_a_hung_member_holds_up_nobody(site: bench.Site) -> None:
    """The admin port of one member hangs: the others are watched on, and the group is Degraded but Available."""
    await three(site)
    await site.fault("cache-2", hang=True)
    await site.make(names.GRID, "orders", {})
    await site.ready("orders", resource=names.GRID)
    await site.fault("cache-2")
    await site.ready()
