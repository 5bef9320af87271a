"""What is put in order right before helm runs, and what is let alone."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest

from moorage.api import builtin, meta
from moorage.helm import observation, release_sources
from moorage.helm.parsing import aside
from moorage.helm.release import claim, manifest
from moorage.helm.runs import preparing
from moorage.kube import client as kube_client
from moorage.kube import errors
from tests.unit.helm import release_states as states

SINCE, BEFORE = "2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"
JOB = meta.ObjectRef("batch/v1", "Job", "acme", "seed")
RECORD = {"owner": "helm", "name": "collector-main"}
SUCCEEDED = {"helm.sh/hook": "post-install", "helm.sh/hook-delete-policy": "hook-succeeded"}


class Client:
    """A claim with one hook, that hook's object, and records; remembers what it deleted."""

    user = "account"
    conditions: tuple[preparing._Condition, ...] = ()

    def __init__(self, live: meta.ObjectMeta | None, *, hook: bool = True, records: tuple[str, ...] = ()) -> None:
        self.live, self.deleted = live, list[str]()
        self._records = records
        body = claim.body(states.TARGET, states.OWNER)
        inventory = manifest.dump_inventory((manifest.InventoryItem(JOB, hook=hook),))
        metadata = meta.ObjectMeta(name=body["metadata"]["name"], namespace="acme", uid="c", creation_timestamp=SINCE)
        self._claim = claim.ClaimObject(metadata, {**body["data"], "inventory": inventory})

    async def get(self, resource: meta.Resource, _: str, name: str, **__: Any) -> Any:
        if resource == builtin.CONFIG_MAP:
            return self._claim
        if self.live is None or self.live.uid in self.deleted:
            raise errors.NotFound(name, errors.Status(404, "NotFound"))
        return preparing._Ending(self.live, preparing._EndingStatus(conditions=self.conditions))

    async def list(self, *_: Any, **__: Any) -> kube_client.Listing[meta.Partial]:
        found = [
            meta.Partial(
                meta.ObjectMeta(name=f"v{n}", uid=f"v{n}", labels={**RECORD, "version": str(n), "status": status})
            )
            for n, status in enumerate(self._records, 1)
        ]
        return kube_client.Listing(found, "1")

    async def delete(self, _: meta.Resource, __: str, ___: str, *, uid: str, **____: Any) -> None:
        self.deleted.append(uid)


def place(client: Client) -> preparing.Place:
    """There, with as much time as is asked for."""
    return preparing.Place(
        cast("Any", client), observation.Target("collector-main", "acme"), lambda seconds: seconds, aside.Aside()
    )


def live(**changes: Any) -> meta.ObjectMeta:
    """What the hook of an earlier try left behind."""
    left = meta.ObjectMeta(name="seed", uid="j", creation_timestamp=SINCE, annotations=SUCCEEDED)
    return msgspec.structs.replace(left, **changes)


async def test_what_a_hook_left_behind_goes_before_the_next_try() -> None:
    """Helm would take the failed one for the new one."""
    client = Client(live())
    await preparing.clear_hooks(place(client), "install")

    assert ["j"] == client.deleted


@pytest.mark.parametrize(
    ("found", "hook", "moment"),
    [
        (live(annotations={}), True, "install"),
        (live(creation_timestamp=BEFORE), True, "install"),
        (live(), False, "install"),
        (live(), True, "upgrade"),
        (live(annotations={"helm.sh/hook": "post-install"}), True, "install"),
        (None, True, "install"),
    ],
    ids=["no hook", "older than the claim", "no hook's by the claim", "another moment", "helm deletes it", "gone"],
)
async def test_what_is_no_hooks_of_ours_stays(found: meta.ObjectMeta | None, hook: bool, moment: str) -> None:
    """And what helm itself deletes before."""
    client = Client(found, hook=hook)
    await preparing.clear_hooks(place(client), moment)

    assert [] == client.deleted


async def test_a_hook_that_ended_well_is_left_to_helm() -> None:
    """Its policy keeps it, and the next run goes on from it, as by hand."""
    client = Client(live())
    client.conditions = (preparing._Condition("Complete", "True"),)
    await preparing.clear_hooks(place(client), "install")

    assert [] == client.deleted


async def test_failed_installs_leave_no_endless_history() -> None:
    """One record comes with the next try; one that is no failed install's stays."""
    client = Client(None, records=("failed", "deployed", "failed", "failed"))
    await preparing.bound_history(place(client), 3)

    assert ["v1"] == client.deleted


RULES = (
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": ["", "apps"], "resources": ["*"], "verbs": ["create", "patch", "delete"]},
    {"apiGroups": ["*"], "resources": ["jobs"], "verbs": ["*"]},
    {"apiGroups": [""], "resources": ["secrets"], "verbs": ["*"], "resourceNames": ["one"]},
)


@pytest.mark.parametrize(
    ("group", "plural", "may"),
    [("", "configmaps", True), ("batch", "jobs", True), ("apps", "deployments", False), ("", "secrets", False)],
)
def test_rights_are_enough_when_all_that_helm_does_is_within_them(group: str, plural: str, may: bool) -> None:
    """By several rules together; one for a single name is not enough."""
    assert may is release_sources._may(RULES, group, plural)
