"""A version as a krt file declares it, in one form, however it was written. Pure data.

Version 1 of the format lists a version's nodes once and each workflow's in their order (`sequential`); here they are
nodes of their workflow with subscriptions, as in version 2.
"""

from __future__ import annotations

from typing import Literal

import msgspec

ENTRYPOINT = "entrypoint"
"""By this name nodes subscribe to what comes in from outside; no node may bear it."""

Scope = Literal["workflow", "project"]


class ObjectStore(msgspec.Struct, frozen=True):
    """A store of files for a node: its workflow's, or the whole version's."""

    name: str
    scope: Scope = "workflow"


class Node(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A process of a workflow. It gets what those publish whom it subscribes to, and publishes under its own name."""

    name: str
    image: str
    src: str
    gpu: bool = False
    replicas: int = 1
    subscriptions: tuple[str, ...] = ()  # NODE, or NODE.TOPIC for a part of what it publishes
    object_store: ObjectStore | None = None


class Workflow(msgspec.Struct, frozen=True, rename="camel"):
    """What answers one method of the entrypoint's service: messages go from there by nodes to the exitpoint."""

    name: str
    entrypoint: str  # the method's name
    exitpoint: str  # the node whose messages are the answer
    nodes: tuple[Node, ...]


class Entrypoint(msgspec.Struct, frozen=True):
    """What serves a version to the outside."""

    proto: str
    image: str


class Config(msgspec.Struct, frozen=True, omit_defaults=True):
    """Names of what must have a value before the version can start."""

    variables: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


class Krt(msgspec.Struct, frozen=True, rename="camel"):
    """A whole krt.yml."""

    krt_version: Literal["v1", "v2"]
    version: str
    description: str
    entrypoint: Entrypoint
    config: Config
    workflows: tuple[Workflow, ...]


def source(subscription: str) -> str:
    """Whom a subscription is to: NODE of NODE.TOPIC."""
    return subscription.partition(".")[0]


def reader(subscription: str, node: str) -> str:
    """How a node's reading of one subject is called in its stream: NATS wants neither dots nor stars there."""
    return f"{subscription.replace('.', '-').replace('*', '=')}-{node}"
