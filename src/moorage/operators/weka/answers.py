"""What containers and clusters answer, as the tool in the pods tells it: typed, and bounded. Pure.

Who answers is whatever image runs there, so that what is said is believed for that cluster alone,
and no text or list is longer than is allowed here.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import msgspec

A = TypeVar("A")

MOST_BYTES = 4 * 2**20
"""Of one answer."""

_Text = Annotated[str, msgspec.Meta(max_length=1024)]
_Name = Annotated[str, msgspec.Meta(max_length=253)]


class Device(msgspec.Struct, frozen=True):
    """A block device of the node, as its container sees it."""

    serial: _Name
    path: _Text = ""
    signed: bool = False  # for Weka
    guid: _Name = ""  # of the cluster that it was signed for; empty: for nobody yet
    mounted: bool = False


class Local(msgspec.Struct, frozen=True):
    """A container, by its runtime and its agent."""

    pod: _Name = ""  # uid of the pod that answered
    persistent: bool = False  # its state is where it should be kept, so that it may be told its resources
    resources: _Name = ""  # digest of the resources that it was told
    allow_stop: bool = False
    allow_force_stop: bool = False
    agent: _Text = ""  # why the agent does not answer
    run_status: _Name = ""
    internal: _Name = ""
    last_failure: _Text = ""
    cluster: _Name = ""  # guid
    host: int | None = None  # by which its cluster knows it
    addresses: Annotated[tuple[_Name, ...], msgspec.Meta(max_length=64)] = ()
    devices: Annotated[tuple[Device, ...], msgspec.Meta(max_length=512)] = ()


class Member(msgspec.Struct, frozen=True):
    """A container, by its cluster."""

    host: int
    name: _Name = ""
    address: _Name = ""
    status: _Name = ""  # UP, or not
    state: _Name = ""  # ACTIVE, DEACTIVATING, INACTIVE


class Drive(msgspec.Struct, frozen=True):
    """A drive, by its cluster."""

    uuid: _Name
    serial: _Name = ""
    status: _Name = ""
    host: int = -1
    path: _Text = ""
    added: _Name = ""


class Cluster(msgspec.Struct, frozen=True):
    """The cluster, by its own word. An empty guid: who answered belongs to none, or has a fault, and can't tell."""

    fault: _Name = ""
    message: Annotated[str, msgspec.Meta(max_length=2048)] = ""
    guid: _Name = ""
    name: _Name = ""
    status: _Name = ""
    io: _Name = ""
    data: int = 0
    parity: int = 0
    hot_spare: int = 0
    unprotected: int = 0  # MiB that have lost parts of their stripes
    moving: bool = False  # data is being moved
    phase: _Name = ""  # of an upgrade
    members: Annotated[tuple[Member, ...], msgspec.Meta(max_length=4096)] = ()
    drives: Annotated[tuple[Drive, ...], msgspec.Meta(max_length=16384)] = ()
    users: Annotated[tuple[_Name, ...], msgspec.Meta(max_length=4096)] = ()
    groups: Annotated[tuple[_Name, ...], msgspec.Meta(max_length=4096)] = ()
    filesystems: Annotated[tuple[_Name, ...], msgspec.Meta(max_length=4096)] = ()
    capacity: int = 0  # bytes

    def member(self, host: int | None) -> Member | None:
        """The container that is known by that number."""
        return next((it for it in self.members if it.host == host), None)

    def of(self, host: int | None) -> tuple[Drive, ...]:
        """The drives of that container."""
        return tuple(it for it in self.drives if it.host == host)


class Done(msgspec.Struct, frozen=True):
    """What became of an order: `fault` is Refused, Unknown, or empty where it was carried out."""

    fault: _Name = ""
    message: Annotated[str, msgspec.Meta(max_length=2048)] = ""
    value: dict[str, Any] = {}


class AnswerError(Exception):
    """An answer that can't be read; the message says why."""


def read(text: str, as_: type[A]) -> A:
    """The one line of JSON that the tool prints. Raises AnswerError."""
    if len(text) > MOST_BYTES:
        raise AnswerError(f"an answer of more than {MOST_BYTES >> 20} MiB")
    try:
        return msgspec.json.decode(text, type=as_)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise AnswerError(f"an answer that can't be read: {str(error)[:200]}") from error
