"""What is told of a cache, from its making to its end and with failures on the way, holds nothing that is secret."""

from __future__ import annotations

import base64
import io
import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from moorage.api import builtin
from moorage.operators.xsld import names
from moorage.runtime.reporting import telemetry

from . import bench

DOCUMENT = "<objectGridConfig>of nobody's business</objectGridConfig>"


def coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


SECRETS = (bench.PASSWORD, bench.SECRET, DOCUMENT)
FORBIDDEN = (*SECRETS, *(coded(text) for text in SECRETS), coded(f"xsadmin:{bench.PASSWORD}"))


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """All that the operator logs, as it does in a pod."""
    made = io.StringIO()
    monkeypatch.setattr(sys, "stderr", made)
    telemetry.configure_logging("debug", as_json=True)
    yield made
    structlog.reset_defaults()


async def test_no_secret_is_told(site: bench.Site, log: io.StringIO) -> None:
    """Neither in the log, nor in status or Events, nor in any object but a Secret."""
    site.node.env["XSLD_FAULTS"] = '{"failAt": {"percent": 10, "command": "Join", "times": 1}}'
    site.operator()
    await site.make_cache(size=2)
    await site.ready()
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "documents"}}
    data = {"objectGrid.xml": coded(DOCUMENT), "deployment.xml": coded("<deploymentPolicy/>")}
    await site.client.create(builtin.SECRET, site.namespace, {**body, "data": data}, field_manager="user")
    await site.make(names.TEMPLATE, "shop", {"source": {"secretRef": {"name": "documents"}}})
    await site.make(names.GRID, "orders", {"gridType": "Custom", "templateName": "shop"})
    await site.make(names.GRID, "refused", {"ownerName": "nobody"})
    await site.ready("orders", resource=names.GRID)
    await site.says("GridRefused", "refused", resource=names.GRID)
    for pod in ("cache-0", "cache-1"):
        await site.fault(pod, unauthorized=True)
    await site.says("CredentialsRejected")
    for pod in ("cache-0", "cache-1"):
        await site.fault(pod)
    await site.change(size=1)
    await site.ready()
    told = await everything(site)
    await site.delete(names.CACHE, "cache")
    await site.gone(names.CACHE, "cache")
    lines = [json.loads(line) for line in log.getvalue().splitlines()]

    reasons = {line.get("reason") for line in lines}
    assert {"Joining", "JoinFailed", "GridRefused", "CredentialsRejected", "Disjoining", "Removing"} <= reasons
    assert {"XsldCache", "DataGrid", "GridTemplate"} <= {line.get("kind") for line in lines}
    assert [] == [text for text in FORBIDDEN if text in log.getvalue() or text in told]


async def everything(site: bench.Site) -> str:
    """All that the namespace holds, without what the user gave, and without Secrets."""
    mine = (names.CACHE, names.GRID, names.TEMPLATE)
    made = (builtin.STATEFUL_SET, builtin.POD, builtin.CONFIG_MAP, builtin.SERVICE, builtin.VOLUME_CLAIM, builtin.EVENT)
    found: list[dict[str, Any]] = []
    for resource in (*mine, *made):
        there = (await site.client.list(resource, site.namespace)).items
        assert there, resource.kind
        found += [{key: each[key] for key in each if key != "spec" or resource not in mine} for each in there]
    return json.dumps(found)
