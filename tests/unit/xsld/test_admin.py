"""The client of the admin API."""

from __future__ import annotations

import pytest

from moorage.operators.xsld.group import admin, answers, dialect

TARGET = admin.Target("c-0", "uid-0", "127.0.0.1", "c-0.c.ns.svc")


async def test_once_closed_it_opens_nothing_anew() -> None:
    """A look that is still under way when credentials change must leave no connection behind."""
    it = admin.Admin(dialect.Dialect(), admin.Credentials("Abcdefg1-x", "Abcdefg1-x"), admin.tls(None, verify=False))
    await it.close()

    with pytest.raises(admin.AdminError, match="credentials have changed, or the cache is gone"):
        await it.call(TARGET, "GET", "/grid")
    assert answers.Fault.UNREACHABLE == (await it.answer(TARGET)).fault
