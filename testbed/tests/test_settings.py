"""Where a testbed lives and which addresses follow from its index."""

import json
from pathlib import Path

import pytest
from tb import settings
from tb.errors import TestbedError


def test_command_line_wins_over_environment(state: Path) -> None:
    made = settings.resolve(str(state / "given"), None, {"TESTBED_STATE": str(state / "other")})
    assert made.state == state / "given"


def test_environment_wins_over_defaults(state: Path) -> None:
    made = settings.resolve(None, None, {"TESTBED_STATE": str(state), "TESTBED_BIN": str(state / "bin")})
    assert (made.state, made.bin, made.index) == (state, state / "bin", 0)


def test_two_indices_share_no_name_and_no_address(state: Path) -> None:
    first, second = (settings.resolve(str(state), index, {}) for index in (0, 1))
    names = ("name", "outer_link", "inner_link", "outer_address", "address", "bridge", "pod_prefix", "owner_file")
    assert all(getattr(first, name) != getattr(second, name) for name in names)


def test_addresses_of_the_first() -> None:
    made = settings.resolve(None, 0, {})
    assert (made.server, made.node_address) == ("https://10.231.0.2:6443", "10.244.0.1")


def test_the_index_of_an_earlier_up_is_remembered(state: Path) -> None:
    settings.record(settings.resolve(str(state), 3, {}))
    assert settings.resolve(str(state), None, {}).index == 3
    with pytest.raises(TestbedError, match="has index 3, not 4"):
        settings.resolve(str(state), 4, {})


@pytest.mark.parametrize("index", [-1, 12])
def test_an_index_without_addresses_is_refused(state: Path, index: int) -> None:
    with pytest.raises(TestbedError, match="not between 0 and 11"):
        settings.resolve(str(state), index, {})


def test_a_state_folder_too_deep_for_sockets_is_refused() -> None:
    with pytest.raises(TestbedError, match="too long for the Unix sockets"):
        settings.resolve("/" + "deep/" * 20, None, {})


def test_the_index_file_is_plain_json(state: Path) -> None:
    settings.record(settings.resolve(str(state), 2, {}))
    assert json.loads((state / "run/settings.json").read_text()) == {"index": 2}
