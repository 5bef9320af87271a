"""Grids from their making to their end: what the server is asked, in which order, and what it is not asked."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api import common_status
from moorage.operators.xsld import names

from . import bench
from .bench import said

MADE, EDITED, DROPPED = "POST /grid/orders", "PUT /grid/orders", "DELETE /grid/orders"
XML = {"objectGridXml": "<objectGridConfig/>", "deploymentXml": "<deploymentPolicy/>"}


async def orders(site: bench.Site, **spec: Any) -> None:
    """A cache of one member, and a grid that is online."""
    site.operator()
    await site.make_cache(size=1)
    await site.make(names.GRID, "orders", {"numAsyncReplicas": 0, **spec})
    await ready(site)


async def ready(site: bench.Site) -> dict[str, Any]:
    """The grid, once it is Ready, nothing is under way, and the server says so too."""

    async def is_well() -> bool:
        now = await site.get(names.GRID, "orders")
        told = {it["name"]: it["status"] for it in await site.ask("cache-0", "GET", "/grid")}
        return now is not None and not now["status"].get("asked") and told.get("orders") == "Online"

    await site.ready("orders", resource=names.GRID)
    await site.until(is_well)
    return await site.ready("orders", resource=names.GRID)


async def says(site: bench.Site, reason: str) -> dict[str, Any]:
    """The grid, once that is why it is not Ready."""
    return await site.says(reason, "orders", resource=names.GRID)


async def changes(site: bench.Site, *expected: str) -> None:
    """Wait until the server was asked so much, and see that it was exactly that."""

    async def enough() -> bool:
        return len(await site.changes("cache-0")) >= len(expected)

    await site.until(enough)

    assert list(expected) == await site.changes("cache-0")


async def annotate(site: bench.Site, key: str, value: str) -> None:
    await site.patch(names.GRID, "orders", {"metadata": {"annotations": {key: value}}})


async def test_a_custom_grid_waits_for_its_template(site: bench.Site) -> None:
    site.operator()
    await site.make_cache(size=1)
    await site.make(names.GRID, "orders", {"gridType": "Custom", "templateName": "shop", "numAsyncReplicas": 0})
    await says(site, "TemplateMissing")
    assert [] == await site.changes("cache-0")
    await site.make(names.TEMPLATE, "shop", {"source": {"inline": XML}})
    found = await ready(site)

    assert "Online" == found["status"]["status"]
    await changes(site, "PUT /gridTemplate/shop", MADE)


async def test_edited_in_place(site: bench.Site) -> None:
    """One request, with what is new; entries stay."""
    await orders(site)
    await site.put("cache-0", "orders", "1", "one")
    await site.patch(names.GRID, "orders", {"spec": {"gridCapacity": 200, "description": "of this year"}})
    await ready(site)
    grid = await site.ask("cache-0", "GET", "/grid/orders")

    assert ("200", "of this year") == (grid["gridCapacity"], grid["description"])
    assert "one" == await site.entry("cache-0", "orders", "1")
    await changes(site, MADE, EDITED)


async def test_a_fixed_field_is_changed_by_permission_only(site: bench.Site) -> None:
    """Without it nothing is asked, and a change that is undone is forgotten."""
    await orders(site)
    await site.patch(names.GRID, "orders", {"spec": {"numPartition": 5}})
    found = await says(site, "RecreateNeeded")
    assert "True" == said(found, "Stalled").status
    assert names.ALLOW_RECREATE in said(found, "Ready").message
    await site.patch(names.GRID, "orders", {"spec": {"numPartition": 3}})
    await ready(site)
    await changes(site, MADE)
    await site.patch(names.GRID, "orders", {"spec": {"numPartition": 5}})
    await annotate(site, names.ALLOW_RECREATE, "true")
    await ready(site)

    assert "5" == (await site.ask("cache-0", "GET", "/grid/orders"))["numPartition"]
    await changes(site, MADE, DROPPED, MADE)


async def test_removed_by_hand_it_is_made_anew(site: bench.Site) -> None:
    await orders(site)
    await site.ask("cache-0", "DELETE", "/grid/orders")
    await changes(site, MADE, DROPPED, MADE)
    found = await ready(site)

    assert "Online" == found["status"]["status"]


async def test_removed_by_hand_it_is_kept_away(site: bench.Site) -> None:
    """With recovery.policy None, until that is changed."""
    await orders(site, recovery={"policy": "None"})
    await site.ask("cache-0", "DELETE", "/grid/orders")
    found = await says(site, "GridGivenUp")
    assert ("True", "") == (said(found, "Stalled").status, found["status"]["status"])
    await changes(site, MADE, DROPPED)
    await site.patch(names.GRID, "orders", {"spec": {"recovery": {"policy": "Recreate"}}})
    await ready(site)
    await changes(site, MADE, DROPPED, MADE)


async def test_in_error_it_is_made_anew(site: bench.Site) -> None:
    await orders(site)
    await site.fault("cache-0", gridError=["orders"])
    await changes(site, MADE, DROPPED, MADE)
    found = await ready(site)

    assert "Online" == found["status"]["status"]


async def test_in_error_it_is_left_alone(site: bench.Site) -> None:
    """With recovery.policy None."""
    await orders(site, recovery={"policy": "None"})
    await site.fault("cache-0", gridError=["orders"])
    found = await says(site, "GridGivenUp")

    assert "Error" == found["status"]["status"]
    assert "False" == said(found, "Online").status
    await changes(site, MADE)


async def test_lost_by_the_server_it_is_made_anew(site: bench.Site) -> None:
    await orders(site)
    await site.fault("cache-0", loseGrid=["orders"])
    await changes(site, MADE, MADE)
    await ready(site)


async def test_one_that_never_gets_well_is_given_up(site: bench.Site) -> None:
    """After so many attempts; moorage.dev/reconcile-at asks for more."""
    site.operator()
    site.node.env["XSLD_FAULTS"] = '{"gridErrorStays": ["orders"]}'
    await site.make_cache(size=1)
    await site.make(names.GRID, "orders", {"numAsyncReplicas": 0, "recovery": {"maxAttempts": 2}})
    found = await says(site, "GridGivenUp")
    assert 2 == found["status"]["attempts"]
    tried = await site.changes("cache-0")
    assert 2 == tried.count(MADE)
    await site.fault("cache-0")
    await annotate(site, common_status.RECONCILE_AT, "now")
    await ready(site)

    assert 3 == (await site.changes("cache-0")).count(MADE)


async def test_refused_by_the_server_until_it_is_corrected(site: bench.Site) -> None:
    """What the server will not take is asked once."""
    site.operator()
    await site.make_cache(size=1)
    await site.make(names.GRID, "orders", {"numAsyncReplicas": 0, "ownerName": "nobody"})
    found = await says(site, "GridRefused")
    assert "there is no user nobody" in said(found, "Ready").message
    await site.patch(names.GRID, "orders", {"spec": {"ownerName": "xsadmin"}})
    await ready(site)
    posts = [each["status"] for each in await site.trace("cache-0") if each["method"] == "POST"]

    assert [400, 200] == [200 if status < 300 else status for status in posts]


async def test_deleted_it_is_gone_from_the_server(site: bench.Site) -> None:
    await orders(site)
    await site.delete(names.GRID, "orders")
    await site.gone(names.GRID, "orders")

    assert [] == await site.ask("cache-0", "GET", "/grid")
    await changes(site, MADE, DROPPED)


@pytest.mark.parametrize("how", ["deletionPolicy", "annotation"])
async def test_retained_it_stays_and_is_taken_over(site: bench.Site, how: str) -> None:
    """A new resource of the same name finds the grid with its entries, and makes none."""
    await orders(site, **({"deletionPolicy": "Retain"} if how == "deletionPolicy" else {}))
    await site.put("cache-0", "orders", "1", "one")
    if how == "annotation":
        await annotate(site, common_status.ON_DELETE, "Orphan")
    await site.delete(names.GRID, "orders")
    await site.gone(names.GRID, "orders")
    await site.make(names.GRID, "orders", {"numAsyncReplicas": 0})
    found = await ready(site)

    assert found["status"]["made"]
    assert "one" == await site.entry("cache-0", "orders", "1")
    await changes(site, MADE)


async def test_the_cache_is_deleted_first(site: bench.Site) -> None:
    """The grid waits for a cache, is made in a new one of that name, and without one can be deleted."""
    await orders(site)
    await site.delete(names.CACHE, "cache")
    await site.gone(names.CACHE, "cache")
    await says(site, "CacheNotFound")
    await site.make_cache(size=1)
    await ready(site)
    await changes(site, MADE)
    await site.delete(names.CACHE, "cache")
    await site.gone(names.CACHE, "cache")
    await site.delete(names.GRID, "orders")
    await site.gone(names.GRID, "orders")


async def test_deleted_although_it_never_came_to_be_online(site: bench.Site) -> None:
    """What its creation left on the server in Error goes with it."""
    site.operator()
    site.node.env["XSLD_FAULTS"] = '{"gridErrorStays": ["orders"]}'
    await site.make_cache(size=1)
    await site.make(names.GRID, "orders", {"numAsyncReplicas": 0, "recovery": {"maxAttempts": 1}})
    await says(site, "GridGivenUp")
    await site.delete(names.GRID, "orders")
    await site.gone(names.GRID, "orders")

    assert [] == await site.ask("cache-0", "GET", "/grid")


async def test_deleted_although_it_was_given_up(site: bench.Site) -> None:
    """Failures to make it do not hold up its deletion."""
    await orders(site, recovery={"maxAttempts": 1})
    await site.fault("cache-0", gridError=["orders"], gridErrorStays=["orders"])
    await says(site, "GridGivenUp")
    await site.delete(names.GRID, "orders")
    await site.gone(names.GRID, "orders")

    assert [] == await site.ask("cache-0", "GET", "/grid")
