"""What is seen of one release: what the observations of all helm-backed kinds share. Plain, frozen, no secrets."""

from __future__ import annotations

from typing import Protocol

import msgspec

from moorage.api import meta
from moorage.runtime import freshness, tasks

from . import release_status
from .release import manifest

ATTEMPT_LABEL = "moorage.dev/attempt"
DIGEST_LABEL = "moorage.dev/digest"
NO_RIGHTS = "NoRights"
"""The reason of facts in a namespace where the operator has no rights (yet, or any more)."""

PENDING = frozenset({"pending-install", "pending-upgrade", "pending-rollback", "uninstalling"})


class Target(msgspec.Struct, frozen=True):
    """Where the release lives."""

    release: str
    namespace: str

    @property
    def lane(self) -> str:
        """Users of one release are serialised, whatever their kind."""
        return f"release:{self.namespace}/{self.release}"


class Policy(msgspec.Struct, frozen=True):
    """What the owner wants of the care for its release."""

    enforce: bool = True
    rollback: bool = True
    ready_timeout: float = 300.0  # seconds
    history_limit: int = 10
    hook_timeout: float = 300.0  # seconds; for each hook
    adopt: bool = False
    orphan: bool = False
    delete_hooks: bool = True  # run them before it is uninstalled

    @property
    def run_limit(self) -> float:
        """Seconds that a run of helm may take: some hooks, one after another, and the writes between them."""
        return 2 * self.hook_timeout + 300


class Wanted(msgspec.Struct, frozen=True):
    """Which chart the owner asks for. `source` names the configured place it comes from."""

    name: str
    constraint: str
    source: str


class ChartSeen(msgspec.Struct, frozen=True):
    """A chart that is at hand."""

    name: str
    version: str
    digest: str


class Pin(msgspec.Struct, frozen=True):
    """What a constraint was resolved to; kept in the claim, so that it survives the owner's status."""

    wanted: Wanted
    chart: ChartSeen


class ClaimSeen(msgspec.Struct, frozen=True):
    """Who owns the release's name, and all objects that its runs may have created so far."""

    uid: str
    resource_version: str
    owner: meta.ObjectRef
    inventory: tuple[manifest.InventoryItem, ...] = ()
    pin: Pin | None = None

    def is_of(self, owner: meta.ObjectRef) -> bool:
        """It is this very owner's."""
        return self.owner.uid == owner.uid

    def is_of_earlier(self, owner: meta.ObjectRef) -> bool:
        """It is of an incarnation of the owner that is gone, as two of one name can't be there at once."""
        return not self.is_of(owner) and self.owner.identity == owner.identity


class RenderSeen(msgspec.Struct, frozen=True):
    """The chart rendered with the values: `digest` names both, `problems` says what can't be."""

    digest: str
    inventory: tuple[manifest.InventoryItem, ...] = ()
    problems: tuple[manifest.Problem, ...] = ()
    resources: tuple[meta.Resource, ...] = ()  # of all its objects, hooks included

    @property
    def passing(self) -> bool:
        """A kind is not served, which may change without a change of chart or values: it is rendered again."""
        return any(problem.kind is manifest.ProblemKind.UNKNOWN_KIND for problem in self.problems)


class RecordSeen(msgspec.Struct, frozen=True):
    """The latest release record, read whole. `failure` is a word of `failures.FailureKind` when it failed."""

    secret: str
    uid: str
    resource_version: str
    revision: int
    status: str
    description: str
    digest: str
    attempt: str
    updated: float  # when it was deployed, in epoch seconds
    modified: float  # when helm last wrote it, in epoch seconds
    inventory: tuple[manifest.InventoryItem, ...] = ()
    failure: str = ""
    outside: tuple[str, ...] = ()  # what it names that is not in its namespace
    installed: bool = True  # this or an earlier revision was deployed; else the next run is an install again

    @property
    def mine(self) -> bool:
        """Made by moorage: labels are inherited by hand-made revisions, the description is not."""
        return bool(self.attempt) and self.description == marker(self.attempt)


class ChildSeen(msgspec.Struct, frozen=True):
    """One recorded object as it is live. `drift` holds field paths, never values."""

    ref: meta.ObjectRef
    ready: bool
    reason: str = ""
    message: str = ""
    drift: tuple[str, ...] = ()
    refusal: str = ""  # the server's words, where it refuses the repair as it is
    yielded: tuple[str, ...] = ()  # field paths where another writer, such as a webhook, has had the last word
    fix: str = ""  # what a person must do before it can be ready, where nothing comes by itself


class HookSeen(msgspec.Struct, frozen=True):
    """A hook that has not ended, and what keeps its pod from ending, where that is known."""

    ref: meta.ObjectRef
    trouble: str = ""
    reason: str = ""  # the word for it, see object_reasons.PodReason

    def __str__(self) -> str:
        return f"hook {self.ref.kind} {self.ref.name}" + (f": {self.trouble}" if self.trouble else "")


class Leftover(msgspec.Struct, frozen=True):
    """An object that should be gone, by a live read."""

    ref: meta.ObjectRef  # with its uid
    resource: meta.Resource
    resource_version: str
    terminating: bool
    since: str = ""  # when its deletion began (RFC 3339)
    held_by: tuple[str, ...] = ()  # its finalizers


class ReleaseSeen(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the shared steps decide on."""

    now: float  # epoch seconds
    owner: meta.ObjectRef
    target: Target
    policy: Policy
    wanted: Wanted
    status: release_status.HelmStatus
    reconcile_at: str = ""
    released_before: bool = False  # status says that the spec as it is now was released
    claim: freshness.Observed[ClaimSeen | None]
    chart: freshness.Observed[ChartSeen]
    render: freshness.Observed[RenderSeen]
    record: freshness.Observed[RecordSeen | None]
    children: freshness.Observed[tuple[ChildSeen, ...]]
    leftovers: freshness.Observed[tuple[Leftover, ...]]
    missing_rules: freshness.Observed[tuple[str, ...]] = freshness.Fresh(())
    """What a role must have before helm can make all objects; looked for only when a run is due."""
    hooks: tuple[HookSeen, ...] = ()
    task: tasks.TaskState = None
    settles_in: float = 0.0
    """Seconds for which a helm of a former leader, who did not give the lease back, may still be at work."""

    @property
    def desired(self) -> str:
        """The digest that the deployed revision should have; empty while it is not known."""
        render, record = freshness.value_of(self.render), freshness.value_of(self.record)
        if render is not None:
            return render.digest
        return record.digest if record is not None and self.stands_without_chart else ""

    @property
    def stands_without_chart(self) -> bool:
        """The chart can't be had now, and need not be: what is deployed was made of the spec as it is."""
        if not isinstance(self.chart, freshness.Failed) or self.chart.reason == freshness.NOT_YET:
            return False
        record = freshness.value_of(self.record)
        return (
            self.released_before
            and record is not None
            and record.status == "deployed"
            and self.is_ours
            and record.digest == self.status.release.digest
        )

    @property
    def is_current(self) -> bool:
        """The deployed revision is what the spec says."""
        record = freshness.value_of(self.record)
        return record is not None and record.status == "deployed" and record.digest == self.desired

    @property
    def is_rolled_back(self) -> bool:
        """The deployed revision is the one that a failed upgrade was rolled back to."""
        record, target = freshness.value_of(self.record), self.status.failed.rolled_back_to
        return bool(record and target and record.status == "deployed" and record.description == f"Rollback to {target}")

    @property
    def is_ours(self) -> bool:
        """The latest revision was made by moorage, by an upgrade or a rollback, or was seen good before."""
        record, good = freshness.value_of(self.record), self.status.good
        if record is None:
            return False
        return record.mine or self.is_rolled_back or (record.revision, record.digest) == (good.revision, good.digest)


class HasRelease(Protocol):
    """An observation with a release in it."""

    @property
    def release(self) -> ReleaseSeen:
        """The release."""


def marker(attempt: str) -> str:
    """The description of a revision that moorage made."""
    return f"moorage attempt {attempt}"
