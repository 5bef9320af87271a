from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
import structlog

from tests.unit.runtime.fake_api import FakeApi


@pytest.fixture
def api() -> FakeApi:
    return FakeApi()


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Traces with all locals, as structlog prints them unasked, cost more than the tests."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.reset_defaults()
