"""These tests need no cluster: their API server is one in memory."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session", autouse=True)
def account_roles() -> None:
    """Nobody's rights are asked."""
