"""A Runtime that is whole, and what is decided for it once something of it is changed."""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.api import meta
from moorage.children.parts import VolumeSeen
from moorage.operators import accounts
from moorage.operators.kre import kinds
from moorage.operators.kre.runtime import control, deletion, facts, types
from moorage.operators.kre.runtime.observation import CredentialsSeen, HeldSeen, MongoSeen, NatsSeen, Seen
from moorage.runtime import decision
from moorage.runtime.freshness import Failed, Fresh
from tests.unit.helm import release_states

DOWN = Failed("Unreachable", "it does not answer")
SERVERS = ("kre-nats-0", "kre-nats-1", "kre-nats-2")
RIGHTS = accounts.Rights("kre", "moorage-system", "moorage-accounts", "moorage-kre-namespace")
BOUND = accounts.BindingSeen("b", "1", role=True, subject=True)
SECRET = CredentialsSeen("s", made=True, used="i", used_made=True, system="n", system_made=True)


def settings(**changed: Any) -> types.Settings:
    spec = msgspec.convert({"nats_streaming": {"replicas": 3}, **changed}, types.RuntimeSpec)
    return types.settings(spec, "demo")


def status(**changed: Any) -> types.RuntimeStatus:
    return msgspec.convert({"natsServers": 3, **changed}, types.RuntimeStatus)


def volume(server: str, ordinal: int = 0, **changed: Any) -> VolumeSeen:
    name = f"data-kre-{server}-{ordinal}"
    return msgspec.structs.replace(VolumeSeen(name, ordinal, f"u-{name}", "5Gi"), **changed)


def held(**volumes: list[VolumeSeen]) -> Fresh[tuple[HeldSeen, ...]]:
    return Fresh(tuple(HeldSeen(server, tuple(volumes.get(server, ()))) for server in kinds.SERVERS))


def seen(**changed: Any) -> Seen:
    """A Runtime that is whole, but for what is changed."""
    finalizers = changed.pop("finalizers", (kinds.RUNTIME_FINALIZER,))
    base: dict[str, Any] = {
        "meta": meta.ObjectMeta(name="demo", namespace="ns", finalizers=finalizers),
        "settings": settings(),
        "status": status(),
        "rights": RIGHTS,
        "allowed": True,
        "namespace_ending": False,
        "binding": Fresh(BOUND),
        "neighbours": 0,
        "credentials": Fresh(SECRET),
        "held": held(),
        "nats": Fresh(NatsSeen("kre-nats-0", SERVERS)),
        "mongo": Fresh(MongoSeen()),
        "store": Fresh(True),
        "metrics": Fresh(True),
        "release": release_states.settled(),
    }
    return Seen(**base | changed)


def decided(it: Seen, *, deleting: bool = False) -> decision.Decision:
    steps = deletion.DELETION_STEPS if deleting else control.STEPS
    return decision.decide(it, steps=steps, facts=facts.FACTS, report=facts.report)


def verdict(it: Seen, *, deleting: bool = False) -> Any:
    """Where the steps stop."""
    standing = decided(it, deleting=deleting).standing
    assert standing is not None, "all steps are done"
    return standing.verdict
