"""In which order requests go to the group and writes to the cluster, from the recorded trace of both."""

from __future__ import annotations

import time

from moorage.operators.xsld import names

from . import bench


async def test_made_with_two_members_and_a_grid(site: bench.Site) -> None:
    """All that a member needs is there before its pod; the second joins the first; the copy follows, then the grid."""
    operator = site.operator()
    await site.make_cache(size=2)
    await site.ready()
    await site.make(names.GRID, "orders", {"numSyncReplicas": 1, "numAsyncReplicas": 0})
    await site.ready("orders", resource=names.GRID)

    assert [
        "PATCH rolebindings moorage-xsld",
        "PATCH configmaps cache-scripts",
        "PATCH services cache",
        "PATCH services cache-client",
        "PATCH services cache-admin",
        "PATCH secrets cache-credentials",
        "PATCH poddisruptionbudgets cache",
        "PATCH statefulsets cache",
        "NewMemberJoin cache-1",
        "PATCH configmaps cache-scripts",  # the first is the whole group no more
        "DerbyReplication cache-1",
        "POST /grid/orders",
    ] == await site.history(operator, "cache-0", "cache-1")


async def test_two_more_and_two_less(site: bench.Site) -> None:
    """Pods at once, joins one by one; then each leaves the group before its pod goes, and its volume after that."""
    operator = site.operator()
    await site.make_cache(size=2)
    await site.ready()
    begun = time.time()
    await site.change(size=4)
    await site.ready()
    assert [
        "PATCH statefulsets cache",
        "NewMemberJoin cache-2",
        "NewMemberJoin cache-3",
    ] == await site.history(operator, "cache-0", "cache-1", "cache-2", "cache-3", since=begun)
    begun = time.time()
    await site.change(size=2)
    await site.ready()

    async def reclaimed() -> bool:
        return await site.claims() == ["vol-cache-0", "vol-cache-1"]

    await site.until(reclaimed)
    assert [
        "RemoveMember cache-3",
        "PATCH statefulsets cache",
        "DELETE persistentvolumeclaims vol-cache-3",
        "RemoveMember cache-2",
        "PATCH statefulsets cache",
        "DELETE persistentvolumeclaims vol-cache-2",
    ] == await site.history(operator, "cache-0", "cache-1", since=begun)


async def test_rolled_and_deleted(site: bench.Site) -> None:
    """The highest first, the primary last and after it has handed over; in the end everything goes with the cache."""
    operator = site.operator()
    await site.make_cache(size=3)
    await site.ready()
    begun = time.time()
    await site.change(image="ibmcom/xsld:8614")
    await site.ready()
    assert [
        "PATCH statefulsets cache",
        "POST pods cache-2/eviction",
        "POST pods cache-1/eviction",
        "PATCH services cache-admin",
        "POST pods cache-0/eviction",
    ] == await site.history(operator, since=begun)
    begun = time.time()
    await site.delete(names.CACHE, "cache")
    await site.gone(names.CACHE, "cache")
    first, *volumes, last = await site.history(operator, since=begun)
    assert ("DELETE statefulsets cache", "DELETE rolebindings moorage-xsld") == (first, last)
    # each goes with its own pod, and which pod ends first is the machine's to say
    assert [f"DELETE persistentvolumeclaims vol-cache-{number}" for number in range(3)] == sorted(volumes)
