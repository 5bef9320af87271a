"""One settled release as an observation; tests change what they are about."""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.api import conditions, kinds, meta
from moorage.helm import manifest, seen, status
from moorage.runtime import decision, observed

NOW = 1_800_000_000.0
OWNER = meta.ObjectRef("example.com/v1alpha", "Collector", "default", "one", "uid-1")
TARGET = seen.Target("collector-main", "acme")
WANTED = seen.Wanted("collector", "", "default")
CHART = seen.ChartSeen("collector", "1.0.0", "sha256:c")
DEPLOYMENT = meta.ObjectRef("apps/v1", "Deployment", "acme", "collector-main")
SERVICE = meta.ObjectRef("v1", "Service", "acme", "collector-main")
INVENTORY = (manifest.InventoryItem(DEPLOYMENT), manifest.InventoryItem(SERVICE))
ATTEMPT = status.Attempt(
    id="a1", action="upgrade", digest="d1", revision=1, started=conditions.timestamp(NOW - 60), tries=1
)


class It(msgspec.Struct, frozen=True):
    """An observation with nothing but a release."""

    release: seen.ReleaseSeen


def claim(**changes: Any) -> seen.ClaimSeen:
    """The claim of OWNER."""
    held = seen.ClaimSeen("claim-uid", "7", OWNER, INVENTORY, seen.Pin(WANTED, CHART))
    return msgspec.structs.replace(held, **changes)


def record(**changes: Any) -> seen.RecordSeen:
    """Revision 1, deployed by moorage a minute ago."""
    made = seen.RecordSeen(
        secret="sh.helm.release.v1.collector-main.v1",
        uid="record-uid",
        resource_version="9",
        revision=1,
        status="deployed",
        description=seen.marker("a1"),
        digest="d1",
        attempt="a1",
        updated=NOW - 60,
        modified=NOW - 60,
        inventory=INVENTORY,
    )
    return msgspec.structs.replace(made, **changes)


def child(ref: meta.ObjectRef = DEPLOYMENT, **changes: Any) -> seen.ChildSeen:
    """A ready object without drift."""
    return msgspec.structs.replace(seen.ChildSeen(ref, True), **changes)


def settled(**changes: Any) -> seen.ReleaseSeen:
    """Everything done; `changes` replace fields, plain values are wrapped as Fresh."""
    whole = seen.ReleaseSeen(
        now=NOW,
        owner=OWNER,
        target=TARGET,
        policy=seen.Policy(),
        wanted=WANTED,
        status=status.HelmStatus(attempt=ATTEMPT, good=status.Good(1, "d1")),
        claim=observed.Fresh(claim()),
        chart=observed.Fresh(CHART),
        render=observed.Fresh(seen.RenderSeen("d1", INVENTORY)),
        record=observed.Fresh(record()),
        children=observed.Fresh((child(DEPLOYMENT), child(SERVICE))),
        leftovers=observed.Fresh(()),
    )
    facts = {"claim", "chart", "render", "record", "children", "leftovers"}
    known = (observed.Fresh, observed.Stale, observed.Failed)
    wrapped = {k: observed.Fresh(v) if k in facts and not isinstance(v, known) else v for k, v in changes.items()}
    return msgspec.structs.replace(whole, **wrapped)


def nothing(**changes: Any) -> seen.ReleaseSeen:
    """Before the first install: claimed and rendered, nothing released."""
    empty = {
        "claim": claim(inventory=()),
        "record": None,
        "children": (),
        "status": status.HelmStatus(),
    }
    return settled(**(empty | changes))


def actions(verdict: decision.Verdict) -> list[decision.Action]:
    """The actions of an Act."""
    assert isinstance(verdict, decision.Act), verdict
    return list(verdict.actions)


def config_map(name: str) -> meta.ObjectRef:
    """A ConfigMap of the tenant, for objects that left the chart."""
    return kinds.CONFIG_MAP.ref("acme", name)
