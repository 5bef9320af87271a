"""What a version has in NATS: streams with their consumers, object stores and key-value buckets. Pure.

All three are streams: a bucket is one by a convention of NATS' own, which its clients share. Each bears a mark, so that
what somebody else made under a name that is needed is known, and left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from moorage.operators.kre import kinds, names
from moorage.operators.kre.krt import model

STREAM, OBJECTS, KEY_VALUES = "stream", "object store", "key-value bucket"
_PREFIXES = {STREAM: "", OBJECTS: "OBJ_", KEY_VALUES: "KV_"}

SPREAD = 3
"""Servers of a cluster that keep the same, so that one of them may be lost."""

_NANOSECONDS = 1_000_000_000


class Wanted(msgspec.Struct, frozen=True):
    """One stream to be had, and the consumers that read it. Of the configuration what is not named is NATS' own."""

    kind: str
    called: str  # as the product calls it
    config: dict[str, Any]
    consumers: dict[str, dict[str, Any]] = {}

    @property
    def name(self) -> str:
        """Of the stream."""
        return str(self.config["name"])

    @property
    def id(self) -> str:
        """What it is, for people."""
        return f"{self.kind} {self.called}"


class StreamSeen(msgspec.Struct, frozen=True):
    """A stream as it is: of its configuration what may be wanted."""

    config: dict[str, Any] = {}
    mark: str = ""  # whose it is

    @property
    def subjects(self) -> frozenset[str]:
        """What it keeps."""
        return frozenset(self.config.get("subjects") or ())


class PlacedSeen(msgspec.Struct, frozen=True):
    """A stream, whoever made it, and the servers that it is on."""

    name: str
    mark: str = ""  # whose it is
    copies: int = 1  # that are wanted of it
    servers: tuple[str, ...] = ()
    moving: bool = False  # on its way to others
    known: bool = True  # somebody tells of it; else its servers are away, or are about to elect who leads it


class ConsumerSeen(msgspec.Struct, frozen=True):
    """A consumer as it is."""

    mark: str = ""
    ack_wait: int = 0  # nanoseconds
    pending: int = 0  # messages that its node has not taken, or not answered for


def wanted(
    of: names.Names, graph: Iterable[model.Workflow], mark: str, servers: int, ack_wait: float
) -> tuple[Wanted, ...]:
    """All that this version needs, in a cluster of so many servers.

    `ack_wait`: seconds after which a message that a node took and never answered for is given out again.
    """
    made = [_stream(of, workflow, mark, ack_wait) for workflow in graph]
    stores: dict[str, None] = {}
    buckets = [of.key_values()]
    for workflow in graph:
        found = (of.object_store(workflow.name, node.object_store) for node in workflow.nodes if node.object_store)
        stores |= dict.fromkeys(found)
        buckets.append(of.key_values(workflow.name))
        buckets += [of.key_values(workflow.name, node.name) for node in workflow.nodes]
    made += [_bucket(OBJECTS, name, mark) for name in stores]
    made += [_bucket(KEY_VALUES, name, mark) for name in buckets]
    replicas = SPREAD if servers >= SPREAD else 1
    return tuple(msgspec.structs.replace(each, config={**each.config, "num_replicas": replicas}) for each in made)


def _stream(of: names.Names, workflow: model.Workflow, mark: str, ack_wait: float) -> Wanted:
    """What nobody reads is not kept; so all who are to read are there before anybody writes."""
    name = of.stream(workflow.entrypoint)
    config = {
        **_base(name, of.subjects(workflow), mark),
        "retention": "interest",
    }
    consumers = {
        of.consumer(workflow.entrypoint, node.name, each): _consumer(
            of.consumer(workflow.entrypoint, node.name, each), of.subject(workflow.entrypoint, each), mark, ack_wait
        )
        for node in workflow.nodes
        for each in node.subscriptions
    }
    return Wanted(STREAM, name, config, consumers)


def _consumer(name: str, subject: str, mark: str, ack_wait: float) -> dict[str, Any]:
    """Its messages are dealt out among a node's pods, by a group of its own name."""
    return {
        "durable_name": name,
        "filter_subject": subject,
        "deliver_subject": f"_deliver.{name}",
        "deliver_group": name,
        "deliver_policy": "new",
        "ack_policy": "explicit",
        "ack_wait": int(ack_wait * _NANOSECONDS),
        "metadata": {kinds.OF_VERSION: mark},
    }


def _bucket(kind: str, called: str, mark: str) -> Wanted:
    subjects = [f"$O.{called}.C.>", f"$O.{called}.M.>"] if kind == OBJECTS else [f"$KV.{called}.>"]
    config = {
        **_base(f"{_PREFIXES[kind]}{called}", subjects, mark),
        "retention": "limits",
        "discard": "new",
        "allow_rollup_hdrs": True,
        "allow_direct": True,
    }
    if kind == KEY_VALUES:
        config |= {"max_msgs_per_subject": 1, "deny_delete": True}
    return Wanted(kind, called, config)


def _base(name: str, subjects: Iterable[str], mark: str) -> dict[str, Any]:
    return {"name": name, "subjects": list(subjects), "storage": "file", "metadata": {kinds.OF_VERSION: mark}}


def kind_of(name: str) -> tuple[str, str]:
    """(what it is, how it is called) by the name of the stream."""
    for kind in (OBJECTS, KEY_VALUES):
        if name.startswith(_PREFIXES[kind]):
            return kind, name.removeprefix(_PREFIXES[kind])
    return STREAM, name


def differs(config: Mapping[str, Any], live: StreamSeen) -> tuple[str, ...]:
    """Fields of the stream that are not as they should be. More copies than needed are a person's choice."""
    found = []
    for field, value in config.items():
        there = live.config.get(field)
        match field:
            case "metadata":
                same = live.mark == value[kinds.OF_VERSION]
            case "subjects":
                same = live.subjects == frozenset(value)
            case "num_replicas":
                same = int(there or 1) >= value
            case _:
                same = there == value
        if not same:
            found.append(field)
    return tuple(found)


def widened(config: Mapping[str, Any], live: StreamSeen) -> dict[str, Any]:
    """The configuration that also keeps what the stream keeps now: who publishes it may still run."""
    return {**config, "subjects": [*config["subjects"], *sorted(live.subjects - frozenset(config["subjects"]))]}
