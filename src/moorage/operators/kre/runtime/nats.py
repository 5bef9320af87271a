"""What NATS' servers tell of JetStream at their monitoring port, and what is so by the words of all."""

from __future__ import annotations

import msgspec

from moorage.operators import asking

from .observation import NatsSeen, PeerSeen


class Member(msgspec.Struct, frozen=True):
    """Another server of the cluster, as one of them sees it."""

    name: str = ""
    peer: str = ""
    offline: bool = False


class Cluster(msgspec.Struct, frozen=True):
    """The group that keeps what streams there are."""

    leader: str = ""
    peer: str = ""  # of the leader
    replicas: tuple[Member, ...] = ()


class Answer(msgspec.Struct, frozen=True):
    """What one server tells."""

    disabled: bool = False
    streams: int = 0
    consumers: int = 0
    meta_cluster: Cluster | None = None


def answer(status: int, text: bytes) -> Answer:
    """What one server told. Raises AskError."""
    if status != 200:
        raise asking.AskError(f"HTTP {status}")
    try:
        return msgspec.json.decode(text, type=Answer)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise asking.AskError(f"an answer that can't be read: {asking.why(error)}") from error


def seen(answers: dict[str, Answer]) -> NatsSeen:
    """From what each server tells, by its pod's name, to what is so. One without JetStream is none."""
    working = {name: it for name, it in answers.items() if not it.disabled}
    clusters = {name: it.meta_cluster for name, it in working.items() if it.meta_cluster is not None}
    if not clusters:  # a single server is no cluster
        return NatsSeen("", tuple(sorted(working)))
    leader = next((name for name, cluster in clusters.items() if cluster.leader == name), "")
    if not leader:
        return NatsSeen("", tuple(sorted(clusters)))
    others = clusters[leader].replicas
    away = {member.name for member in others if member.offline}
    peers = [PeerSeen(clusters[leader].peer, leader), *(PeerSeen(it.peer, it.name, it.offline) for it in others)]
    held = {name: it.streams + it.consumers for name, it in working.items()}
    return NatsSeen(leader, tuple(sorted(clusters.keys() - away)), tuple(peers), held)
