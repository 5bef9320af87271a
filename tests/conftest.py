"""A cluster of its own for each worker of pytest-xdist: the first of $MOORAGE_TEST_BEDS for the first, and so on.

What is there are state folders of testbeds, as `make test` makes them. This is done as soon as this file is read,
since the files beside and below it ask for the cluster when they are read. Without $MOORAGE_TEST_BEDS nothing is done.
"""

from __future__ import annotations

import os

import pytest

LONGEST = (
    "tests/e2e/docs/test_docs.py",  # it speaks of a cluster that nobody has used, so it must be first in any case
    "tests/e2e/test_xsld.py",
    "tests/e2e/test_kre_versions.py",
    "tests/e2e/test_opencga.py",
    "tests/api/zoo/test_zoo.py",
    "tests/api/xsld/test_repairs.py",
    "tests/api/faults/test_hostile.py",
)
"""Files that take long come first, so that no worker has one left when the others have ended."""

if beds := os.environ.get("MOORAGE_TEST_BEDS"):
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    state = beds.split(os.pathsep)[worker]
    os.environ |= {"TESTBED_STATE": state, "MOORAGE_TEST_KUBECONFIG": os.path.join(state, "kubeconfig")}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """See LONGEST."""
    turns = {name: turn for turn, name in enumerate(LONGEST)}
    items.sort(key=lambda item: turns.get(item.nodeid.partition("::")[0], len(turns)))
