"""Makes the tool's package importable: it is not installed."""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))


@pytest.fixture
def state() -> Iterator[Path]:
    """A state folder with a path short enough for the Unix sockets in it."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)
