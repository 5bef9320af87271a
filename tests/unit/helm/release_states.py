"""One settled release as an observation; tests change what they are about."""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.api import builtin, conditions, meta
from moorage.helm import observation, release_status
from moorage.helm.release import manifest
from moorage.runtime import decision, freshness

NOW = 1_800_000_000.0
OWNER = meta.ObjectRef("example.com/v1alpha", "Collector", "default", "one", "uid-1")
TARGET = observation.Target("collector-main", "acme")
WANTED = observation.Wanted("collector", "", "default")
CHART = observation.ChartSeen("collector", "1.0.0", "sha256:c")
DEPLOYMENT = meta.ObjectRef("apps/v1", "Deployment", "acme", "collector-main")
SERVICE = meta.ObjectRef("v1", "Service", "acme", "collector-main")
INVENTORY = (manifest.InventoryItem(DEPLOYMENT), manifest.InventoryItem(SERVICE))
ATTEMPT = release_status.Attempt(
    id="a1", action="upgrade", digest="d1", revision=1, started=conditions.timestamp(NOW - 60), tries=1
)


class It(msgspec.Struct, frozen=True):
    """An observation with nothing but a release."""

    release: observation.ReleaseSeen


def claim(**changes: Any) -> observation.ClaimSeen:
    """The claim of OWNER."""
    held = observation.ClaimSeen("claim-uid", "7", OWNER, INVENTORY, observation.Pin(WANTED, CHART))
    return msgspec.structs.replace(held, **changes)


def record(**changes: Any) -> observation.RecordSeen:
    """Revision 1, deployed by moorage a minute ago."""
    made = observation.RecordSeen(
        secret="sh.helm.release.v1.collector-main.v1",
        uid="record-uid",
        resource_version="9",
        revision=1,
        status="deployed",
        description=observation.marker("a1"),
        digest="d1",
        attempt="a1",
        updated=NOW - 60,
        modified=NOW - 60,
        inventory=INVENTORY,
    )
    return msgspec.structs.replace(made, **changes)


def child(ref: meta.ObjectRef = DEPLOYMENT, **changes: Any) -> observation.ChildSeen:
    """A ready object without drift."""
    return msgspec.structs.replace(observation.ChildSeen(ref, True), **changes)


def settled(**changes: Any) -> observation.ReleaseSeen:
    """Everything done; `changes` replace fields, plain values are wrapped as Fresh."""
    whole = observation.ReleaseSeen(
        now=NOW,
        owner=OWNER,
        target=TARGET,
        policy=observation.Policy(),
        wanted=WANTED,
        status=release_status.HelmStatus(attempt=ATTEMPT, good=release_status.Good(1, "d1")),
        claim=freshness.Fresh(claim()),
        chart=freshness.Fresh(CHART),
        render=freshness.Fresh(observation.RenderSeen("d1", INVENTORY)),
        record=freshness.Fresh(record()),
        children=freshness.Fresh((child(DEPLOYMENT), child(SERVICE))),
        leftovers=freshness.Fresh(()),
    )
    facts = {"claim", "chart", "render", "record", "children", "leftovers"}
    known = (freshness.Fresh, freshness.Stale, freshness.Failed)
    wrapped = {k: freshness.Fresh(v) if k in facts and not isinstance(v, known) else v for k, v in changes.items()}
    return msgspec.structs.replace(whole, **wrapped)


def nothing(**changes: Any) -> observation.ReleaseSeen:
    """Before the first install: claimed and rendered, nothing released."""
    empty = {
        "claim": claim(inventory=()),
        "record": None,
        "children": (),
        "status": release_status.HelmStatus(),
    }
    return settled(**(empty | changes))


def actions(verdict: decision.Verdict) -> list[decision.Action]:
    """The actions of an Act."""
    assert isinstance(verdict, decision.Act), verdict
    return list(verdict.actions)


def config_map(name: str) -> meta.ObjectRef:
    """A ConfigMap of the tenant, for objects that left the chart."""
    return builtin.CONFIG_MAP.ref("acme", name)
