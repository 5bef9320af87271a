"""Where a testbed lives and which addresses follow from its index."""

import dataclasses
import json
from pathlib import Path

import pytest
from tb import control_plane, nodes, settings
from tb.errors import TestbedError
from tb.settings import Settings

MORE_FLAGS = {
    "apiserver": ["--default-not-ready-toleration-seconds=5", "--default-unreachable-toleration-seconds=5"],
    "controller-manager": ["--node-monitor-period=2s", "--node-monitor-grace-period=16s"],
}


def test_command_line_wins_over_environment(state: Path) -> None:
    made = settings.resolve(str(state / "given"), None, {"TESTBED_STATE": str(state / "other")})
    assert made.state == state / "given"


def test_environment_wins_over_defaults(state: Path) -> None:
    made = settings.resolve(None, None, {"TESTBED_STATE": str(state), "TESTBED_BIN": str(state / "bin")})
    assert (made.state, made.bin, made.index) == (state, state / "bin", 0)


def test_two_indices_share_no_name_and_no_address(state: Path) -> None:
    first, second = (settings.resolve(str(state), index, {}) for index in (0, 1))
    names = ("name", "outer_link", "inner_link", "outer_address", "address", "bridge", "pod_network", "owner_file")
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


def test_what_is_remembered_is_plain_json(state: Path) -> None:
    settings.record(settings.resolve(str(state), 2, {}))
    assert json.loads((state / "run/settings.json").read_text()) == {"index": 2, "nodes": 1}


def test_the_number_of_nodes_of_an_earlier_up_is_remembered(state: Path) -> None:
    settings.record(dataclasses.replace(settings.resolve(str(state), 2, {}), nodes=3))
    assert settings.resolve(str(state), None, {}).nodes == 3


def test_nodes_share_no_name_and_no_address(state: Path) -> None:
    one, two = nodes.all_of(Settings(state, 1, state / "bin", nodes=2))
    names = ("name", "namespace", "cgroup", "address", "bridge_hardware_address", "data", "config", "containerd_socket")
    assert all(getattr(one, name) != getattr(two, name) for name in names)


def test_the_first_node_keeps_the_plain_names(state: Path) -> None:
    (node,) = nodes.all_of(Settings(state, 1, state / "bin"))
    assert (node.namespace, node.part("kubelet"), node.address) == ("testbed1", "kubelet", "10.245.0.1")


@pytest.mark.parametrize("number", range(settings.MOST_NODES))
def test_no_socket_of_a_node_has_too_long_a_path(number: int) -> None:
    state = Path("/" + "s" * (settings.LONGEST_STATE - 1))
    socket = nodes.Node(Settings(state, 1, state / "bin"), number).containerd_socket
    assert len(f"{socket}.ttrpc") <= 107


def test_a_node_that_is_not_there_is_told_with_those_that_are(state: Path) -> None:
    made = Settings(state, 1, state / "bin", nodes=2)
    assert nodes.find(made, "node-1").number == 1
    with pytest.raises(TestbedError, match="there is no node node-2, only node-0, node-1; `testbed up --nodes N`"):
        nodes.find(made, "node-2")


def test_a_single_node_keeps_its_pods_and_its_patience(state: Path) -> None:
    """What several nodes need to be lost soon must not touch who has one."""
    alone, several = (Settings(state, 1, state / "bin", nodes=count) for count in (1, 3))
    for component in control_plane.COMPONENTS:
        flags = {word.partition("=")[0] for word in component.command(alone)}
        more = [word for word in component.command(several) if word.partition("=")[0] not in flags]
        assert more == MORE_FLAGS.get(component.name, [])
