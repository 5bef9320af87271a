"""Everything that is decided on for a Runtime, as plain data. Pure, and without secrets."""

from __future__ import annotations

import msgspec

from moorage.api import meta
from moorage.children import ordinals
from moorage.children.parts import VolumeSeen
from moorage.helm import observation as helm_observation
from moorage.operators import accounts
from moorage.operators.kre import kinds
from moorage.operators.kre.version.streams import PlacedSeen
from moorage.runtime import freshness

from . import sizes, types


class CredentialsSeen(msgspec.Struct, frozen=True):
    """The Secrets with the credentials, those that are wanted and those that are in use; none of their values."""

    uid: str = ""
    made: bool = False  # by moorage
    fault: str = ""  # what is wrong with it
    differs: tuple[str, ...] = ()  # keys of which the spec says something else, in clear
    known: bool = False  # where it is gone: what it held is known still, so that it can be made as it was
    former: str = ""  # the uid of the Secret that was made before the spec named another
    used: str = ""  # the uid of the Secret with those that are in use
    used_made: bool = False  # by moorage
    behind: tuple[str, ...] = ()  # keys of which it has another text than is wanted
    absent: tuple[str, ...] = ()  # those of them of which it has none
    in_doubt: bool = False  # mongo's administrator has one of two passwords, and both are kept
    system: str = ""  # the uid of the Secret with the login of NATS' own account
    system_made: bool = False  # by moorage
    system_fault: str = ""


class PeerSeen(msgspec.Struct, frozen=True):
    """A server that NATS counts on, whether or not it is there."""

    id: str
    name: str = ""  # not always known of one that is away
    away: bool = False


class NatsSeen(msgspec.Struct, frozen=True):
    """The cluster, by its own word."""

    leader: str = ""
    servers: tuple[str, ...] = ()  # those that are in it, and answer
    peers: tuple[PeerSeen, ...] = ()  # all that the leader counts on, itself included
    held: dict[str, int] = {}  # copies of streams and consumers that a server has, by its own word


class StreamsSeen(msgspec.Struct, frozen=True):
    """Where NATS' streams are, whoever made them."""

    streams: tuple[PlacedSeen, ...] = ()
    refused: str = ""  # its words, where it does not take the login of its own account

    def on(self, server: str) -> tuple[PlacedSeen, ...]:
        """Those that are on that server."""
        return tuple(each for each in self.streams if server in each.servers)

    @property
    def untold(self) -> tuple[str, ...]:
        """Those of which nobody tells where they are."""
        return tuple(each.name for each in self.streams if not each.known)


class MongoSeen(msgspec.Struct, frozen=True):
    """The replica set, by its own word."""

    initiated: bool = True
    primary: bool = True
    reader: bool = True  # the user that may only read is there; asked only where there is to be one
    refused: str = ""  # its words, where it does not take the credentials


class VersionSeen(msgspec.Struct, frozen=True):
    """A RuntimeVersion that has something in the Runtime."""

    name: str
    deleting: bool = False


class PublishedSeen(msgspec.Struct, frozen=True):
    """What is to be published, and what is."""

    wanted: str = ""  # a version's name; empty: none
    led: str | None = ""  # where calls are led to; None while that is not known
    trouble: str = ""  # why the wanted one does not answer, in its own words


class HeldSeen(msgspec.Struct, frozen=True):
    """The volumes of one server, and whether it still has pods."""

    server: str
    volumes: tuple[VolumeSeen, ...] = ()
    pods: tuple[str, ...] = ()


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is decided on. The spec itself is left out, as passwords may stand in it."""

    meta: meta.ObjectMeta
    settings: types.Settings
    status: types.RuntimeStatus
    rights: accounts.Rights
    allowed: bool  # the namespace may hold a Runtime
    namespace_ending: bool
    binding: freshness.Observed[accounts.BindingSeen | None]
    neighbours: int  # other Runtimes of the namespace, and versions
    older: str = ""  # one of them that was there before
    versions: freshness.Observed[tuple[VersionSeen, ...]] = freshness.Fresh(())  # what is made in it
    credentials: freshness.Observed[CredentialsSeen]
    held: freshness.Observed[tuple[HeldSeen, ...]]
    published: PublishedSeen = PublishedSeen()
    components: tuple[types.Component, ...] = ()
    nats: freshness.Observed[NatsSeen]
    streams: freshness.Observed[StreamsSeen] = freshness.not_yet("streams")  # asked for while a server is to leave
    mongo: freshness.Observed[MongoSeen]
    store: freshness.Observed[bool]  # MinIO is ready
    metrics: freshness.Observed[bool] | None  # InfluxDB is ready; None: it is switched off
    release: helm_observation.ReleaseSeen

    def held_by(self, server: str) -> HeldSeen:
        """The volumes of that server, as far as they are known."""
        known = freshness.value_of(self.held) or ()
        return next((each for each in known if each.server == server), HeldSeen(server))

    @property
    def has_mongo(self) -> bool:
        """There is a mongo, which was made with credentials."""
        held = self.held_by("mongo")
        return bool(held.volumes or held.pods) or any(each.name == "mongo" for each in self.components)

    @property
    def nats_before(self) -> int:
        """How many NATS servers may hold streams: as many as were written down, and those that have a volume.

        Without volumes streams are with the pods; where nothing of it is left there are none.
        """
        held = self.held_by("nats")
        claims = [volume.ordinal for volume in held.volumes if not volume.deleting]
        there = bool(held.pods) or any(each.name == "nats" for each in self.components)
        return sizes.before(self.status.nats_servers, claims, there=there)

    @property
    def nats_size(self) -> sizes.Size:
        """How many NATS servers there are to be now, and who leaves."""
        return sizes.Size(self.settings.nats, self.nats_before, self.status.nats_scaled_to)

    @property
    def leaving(self) -> str:
        """The NATS server that is to leave, or is about to; empty where all stay."""
        ordinal = self.nats_size.leaving
        return "" if ordinal is None else ordinals.pod(kinds.workload("nats"), ordinal)
