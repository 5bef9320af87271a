"""Templates: from each source to the server, uploaded again when they change, and kept while grids are made of them."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from moorage.api import builtin, meta
from moorage.operators.xsld import group_access, names

from . import bench
from .bench import said

OLD, NEW = "<objectGridConfig/>", "<objectGridConfig><objectGrids/></objectGridConfig>"
DEPLOYMENT = "<deploymentPolicy/>"
UPLOADED, REMOVED = "PUT /gridTemplate/shop", "DELETE /gridTemplate/shop"
SOURCES = {"configMapRef": builtin.CONFIG_MAP, "secretRef": builtin.SECRET}


@pytest.fixture(autouse=True)
def sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not watched is looked at often."""
    monkeypatch.setattr(group_access, "SECRETS_EVERY", 0.5)


async def there(site: bench.Site) -> str:
    """The server's document."""
    return str((await site.ask("cache-0", "GET", "/gridTemplate/shop"))["objectGridXml"])


async def inline(site: bench.Site) -> None:
    """A cache of one member with a template that is uploaded."""
    site.operator()
    await site.make_cache(size=1)
    source = {"inline": {"objectGridXml": OLD, "deploymentXml": DEPLOYMENT}}
    await site.make(names.TEMPLATE, "shop", {"source": source})
    await site.ready("shop", resource=names.TEMPLATE)


async def changes(site: bench.Site, *expected: str) -> None:
    """Wait until the server was asked so much, and see that it was exactly that."""

    async def enough() -> bool:
        return len(await site.changes("cache-0")) >= len(expected)

    await site.until(enough)

    assert list(expected) == await site.changes("cache-0")


async def test_changed_content_is_uploaded_again(site: bench.Site) -> None:
    await inline(site)
    assert OLD == await there(site)
    await site.patch(names.TEMPLATE, "shop", {"spec": {"source": {"inline": {"objectGridXml": NEW}}}})
    found = await site.ready("shop", resource=names.TEMPLATE)

    assert "Available" == found["status"]["state"]
    assert NEW == await there(site)
    await changes(site, UPLOADED, UPLOADED)


@pytest.mark.parametrize("ref", SOURCES)
async def test_from_an_object_that_comes_late_and_changes(site: bench.Site, ref: str) -> None:
    """It is named while it is missing, and while it lacks a key."""
    site.operator()
    await site.make_cache(size=1)
    await site.make(names.TEMPLATE, "shop", {"source": {ref: {"name": "documents"}}})

    async def missing() -> bool:  # before that the rights to look may be missing
        now = await site.get(names.TEMPLATE, "shop")
        return now is not None and f"there is no {SOURCES[ref].kind} documents" in said(now, "Ready").message

    await site.until(missing)
    found = await site.says("TemplateSource", "shop", resource=names.TEMPLATE)
    assert "Error" == found["status"]["state"]
    await documents(site, SOURCES[ref], {"objectGrid.xml": OLD})

    async def lacks() -> bool:
        now = await site.get(names.TEMPLATE, "shop")
        return now is not None and "has no key deployment.xml" in said(now, "Ready").message

    await site.until(lacks)
    await documents(site, SOURCES[ref], {"deployment.xml": DEPLOYMENT})
    await site.ready("shop", resource=names.TEMPLATE)
    assert OLD == await there(site)
    await documents(site, SOURCES[ref], {"objectGrid.xml": NEW})
    await changes(site, UPLOADED, UPLOADED)
    await site.ready("shop", resource=names.TEMPLATE)

    assert NEW == await there(site)


async def documents(site: bench.Site, resource: meta.Resource, texts: dict[str, str]) -> None:
    """Make the object, or change those keys of it."""
    if resource == builtin.SECRET:
        texts = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
    body: dict[str, Any] = {"apiVersion": "v1", "kind": resource.kind, "metadata": {"name": "documents"}, "data": texts}
    if await site.get(resource, "documents"):
        await site.patch(resource, "documents", {"data": texts})
    else:
        await site.client.create(resource, site.namespace, body, field_manager="user")


async def test_removed_by_hand_it_is_uploaded_anew(site: bench.Site) -> None:
    await inline(site)
    await site.ask("cache-0", "DELETE", "/gridTemplate/shop")
    await changes(site, UPLOADED, REMOVED, UPLOADED)
    await site.ready("shop", resource=names.TEMPLATE)

    assert OLD == await there(site)


async def test_kept_while_a_grid_is_made_of_it(site: bench.Site) -> None:
    """A deletion waits for the grid's, and the server's template goes after its grid."""
    await inline(site)
    await site.make(names.GRID, "orders", {"gridType": "Custom", "templateName": "shop", "numAsyncReplicas": 0})
    await site.ready("orders", resource=names.GRID)
    await site.delete(names.TEMPLATE, "shop")
    found = await site.says("TemplateInUse", "shop", resource=names.TEMPLATE)
    assert ("InUse", ["orders"]) == (found["status"]["state"], found["status"]["usedBy"])
    assert OLD == await there(site)
    await site.delete(names.GRID, "orders")
    await site.gone(names.GRID, "orders")
    await site.gone(names.TEMPLATE, "shop")

    assert [] == await site.ask("cache-0", "GET", "/gridTemplate")
    await changes(site, UPLOADED, "POST /grid/orders", "DELETE /grid/orders", REMOVED)
