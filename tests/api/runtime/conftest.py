from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from moorage.api import builtin
from moorage.kube import client as kube_client
from moorage.kube import errors
from tests.api.runtime import operate, widget


async def define(client: kube_client.Client, group: str = widget.GROUP) -> None:
    """Have the Widget's definition served."""
    body = widget.definition(group)
    await client.apply(builtin.CRD, "", body["metadata"]["name"], body, field_manager="test")

    async def is_served() -> bool:
        """By the definition that is there now: one that has just gone may be served for a moment longer."""
        try:
            found = await client.get(builtin.CRD, "", body["metadata"]["name"])
            await client.list(widget.resource(group), "default")
        except errors.ApiError:
            return False
        stated = (found.get("status") or {}).get("conditions") or ()
        return any((each["type"], each["status"]) == ("Established", "True") for each in stated)

    await operate.until(is_served)


@pytest.fixture
async def user(client: kube_client.Client, namespace: str) -> AsyncIterator[operate.User]:
    """Somebody who makes Widgets, in a namespace of their own."""
    await define(client)
    one = operate.User(client, namespace)
    yield one
    await one.leave()
