"""Lose a node in the ways in which nodes are lost, and have it back.

stop       the power is off: all its processes are gone, those of its pods too, and nobody hears of it
partition  its link is down: all that runs on it runs on, cut off
freeze     it hangs: its processes stand still, and its connections stay open

Each lasts until its opposite, or the next `up`. Only what belongs to that node is touched; see `parts.processes`.
"""

import time
from collections.abc import Callable

from tb import cluster, network, nodes, parts, process
from tb.api import Api
from tb.errors import TestbedError
from tb.nodes import Node
from tb.settings import Settings

WITHIN = 60.0
"""Seconds in which processes that are made while others are dealt with must come to an end."""


def stop(settings: Settings, name: str) -> None:
    """take a node's power: end all its processes, and tell nobody"""
    node = _known(settings, name)
    with cluster.alone(settings):
        if not node.first:
            network.cut(node)
        # First those that would start others again.
        for part in (parts.kubelet, parts.containerd):
            process.kill(settings, part(node).name)
        _each(node, lambda found: process.end(found, patience=0), lambda one: True)


def start(settings: Settings, name: str) -> None:
    """give a stopped node its power back, and wait until it is Ready"""
    _back(settings, name)


def partition(settings: Settings, name: str) -> None:
    """take a node's link down; all that runs on it runs on"""
    node = _known(settings, name)
    if node.first:
        raise TestbedError(f"{name} shares its network with the control plane and can't be cut off; take another node")
    with cluster.alone(settings):
        network.cut(node)


def heal(settings: Settings, name: str) -> None:
    """have a node's link up again, and wait until it is Ready"""
    _back(settings, name)


def freeze(settings: Settings, name: str) -> None:
    """have a node hang: its processes stand still"""
    node = _known(settings, name)
    with cluster.alone(settings):
        _each(node, process.suspend, lambda one: not process.suspended(one))


def thaw(settings: Settings, name: str) -> None:
    """have a frozen node go on, and wait until it is Ready"""
    _back(settings, name)


def said(action: Callable[[Settings, str], None]) -> str:
    """What it does, in a line."""
    return str(action.__doc__)


def _known(settings: Settings, name: str) -> Node:
    if not settings.kubeconfig.exists():
        raise TestbedError("the testbed is down; bring it up with `testbed up`")
    return nodes.find(settings, name)


def _back(settings: Settings, name: str) -> None:
    """Whatever had become of the node, it is whole again."""
    node = _known(settings, name)
    with cluster.alone(settings):
        cluster.join([node], Api(settings))


def _each(node: Node, deal: Callable[[list[process.Process]], None], left: Callable[[process.Process], bool]) -> None:
    """Deal with all processes of the node, until none is left that was not: one may start another meanwhile."""
    deadline = time.monotonic() + WITHIN
    while found := [one for one in parts.processes(node) if left(one)]:
        if time.monotonic() > deadline:
            pids = ", ".join(str(one.pid) for one in found)
            raise TestbedError(f"after {WITHIN:.0f} s {node.name} still has the processes {pids}; look at them with ps")
        deal(found)


ACTIONS = {action.__name__: action for action in (stop, start, partition, heal, freeze, thaw)}
