"""What moorage does for a DataGrid, step by step. Pure: read top to bottom."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moorage.api import common_status, conditions
from moorage.operators import steps
from moorage.operators.xsld import config, names
from moorage.operators.xsld.group import answers, dialect
from moorage.operators.xsld.reasons import Reason
from moorage.operators.xsld.within_cache import common_steps
from moorage.runtime import decision, freshness
from moorage.runtime.decision import DONE, Act, Blocked, Fact, Verdict, Wait

from . import settings, types

CREATE, UPDATE, DELETE = "Create", "Update", "Delete"
UPLOADED = 300.0
"""Seconds for a template that is made together with its grid."""

TASK_LIMIT = 300.0
"""Seconds within which what was asked must show."""


class Seen(common_steps.Seen, frozen=True, kw_only=True):
    """Everything that is decided on."""

    spec: types.DataGridSpec
    status: types.DataGridStatus
    now: float
    limits: config.Retry
    said: dialect.Dialect
    grid_name: str
    unsent: bool = False  # the last request was certainly not carried out

    @property
    def grid(self) -> answers.Grid | None:
        """The grid on the server."""
        return next((grid for grid in self.told.grids or () if grid.name == self.grid_name), None)

    @property
    def recreate(self) -> bool:
        """Whether the user allows the grid's data to be lost for a change."""
        return self.meta.annotations.get(names.ALLOW_RECREATE) == "true"

    @property
    def attempts(self) -> int:
        """Failures with this spec; none counts any more once it has changed."""
        return self.status.attempts if self.status.failed_generation == self.meta.generation else 0


def _known(seen: Seen) -> bool:
    return seen.told.grids is not None


# --- steps -------------------------------------------------------------------------------------------------------


def finalizer_is_set(seen: Seen) -> Verdict:
    """Before the first outside effect."""
    why = "the grid may not be left behind when it is deleted"
    return steps.finalizer_is_set(seen.meta, names.GRID_FINALIZER, Reason.TAKING_CARE, why)


def retry_is_honoured(seen: Seen) -> Verdict:
    """A new value of moorage.dev/reconcile-at forgets what failed."""
    message = "what failed is tried anew"
    return steps.retry_is_honoured(seen.meta, seen.status, Reason.RETRYING, message, attempts=0, refused="")


def cache_is_clear(seen: Seen) -> Verdict:
    """The named cache, or the only one in the namespace."""
    return common_steps.cache_is_clear(seen, seen.spec.cache_ref)


def name_is_free(seen: Seen) -> Verdict:
    """The grid is no older DataGrid's."""
    return common_steps.name_is_free(seen, names.GRID.kind, seen.grid_name)


def cache_is_available(seen: Seen) -> Verdict:
    """Grids are changed in a group that stands, while nothing else is under way there."""
    return common_steps.cache_is_available(seen, known=_known(seen), what="grids")


def what_was_asked_shows(seen: Seen) -> Verdict:
    """A request that was made has an effect, or counts as failed."""
    asked, grid = seen.status.asked, seen.grid
    if not asked:
        return DONE
    task = _task(seen.told, seen.status.task_id)
    settled = task is None or task.phase is not answers.Phase.RUNNING
    # what was asked for by an earlier spec can only be told by its task
    superseded = task is not None and task.phase is answers.Phase.DONE and _superseded(seen)
    shows = {
        CREATE: grid is not None and grid.status == seen.said.grid_online,
        UPDATE: grid is not None and (superseded or not settings.differences(seen.spec, grid)),
        DELETE: grid is None,
    }[asked]
    if shows and settled:
        fields: dict[str, Any] = {"asked": ""}
        if asked != DELETE:
            fields |= {"attempts": 0, "made": True}
        elif seen.meta.deleting:  # of one that is made anew its failures count on, or it would be for ever
            fields["attempts"] = 0
        note = decision.Remember(why="it has ended well", fields=fields, ended=_ended(seen, "succeeded"))
        return Act(Reason.TASK_DONE, f"{asked} of grid {seen.grid_name}: done", (note,))
    failed = task.message or "the task failed" if task and task.phase is answers.Phase.FAILED else ""
    if grid is not None and grid.status == seen.said.grid_error and settled:
        failed = "the grid is in Error"
    late = conditions.age(seen.status.asked_at, seen.now) > TASK_LIMIT
    lost = task is None and not shows and (asked != CREATE or grid is None)
    unbegun = not seen.status.task_id and (seen.unsent or _unanswered(seen))
    if failed or late or unbegun or (lost and _old(seen) and seen.status.task_id):
        why = "no effect in time" if late else "it was not begun" if unbegun else "its task is lost"
        return _failed(seen, asked, failed or why)
    reason = {CREATE: Reason.GRID_CREATING, UPDATE: Reason.GRID_UPDATING, DELETE: Reason.GRID_DELETING}[asked]
    said = f"{asked} of grid {seen.grid_name} is under way"
    again = min(2.0, seen.busy)
    return Wait(reason, said, on="group", within=TASK_LIMIT, again=again, since=seen.status.asked_at)


def _unanswered(seen: Seen) -> bool:
    """What got no answer may still be carried out for a while, and is not asked again in that."""
    return conditions.age(seen.status.asked_at, seen.now) > seen.limits.unanswered_seconds


def _superseded(seen: Seen) -> bool:
    return seen.status.asked_generation != seen.meta.generation


def _old(seen: Seen) -> bool:
    """A task may end, and leave the list, a moment before its effect is listed."""
    return conditions.age(seen.status.asked_at, seen.now) > 2 * seen.busy


def _task(told: answers.Polled, number: int) -> answers.Task | None:
    answer = told.answer(told.primary)
    return next((task for task in answer.tasks if task.id == number), None) if answer and number else None


def _ended(seen: Seen, outcome: str) -> decision.Ended:
    return decision.Ended(seen.status.asked, outcome, max(0.0, seen.now - conditions.epoch(seen.status.asked_at)))


def _failed(seen: Seen, asked: str, why: str) -> Verdict:
    """What was not sent is no failure of the grid: it is looked at anew. It counts for the spec that was asked for."""
    status = seen.status
    before = status.attempts if status.failed_generation == status.asked_generation else 0
    fields: dict[str, Any] = {
        "asked": "",
        "taskId": 0,
        "attempts": before + (0 if seen.unsent and not status.task_id else 1),
        "failedAt": conditions.timestamp(seen.now),
        "failedGeneration": status.asked_generation,
    }
    if asked == CREATE and seen.grid is not None:
        fields["made"] = True  # broken as it is, it goes with its DataGrid
    ended = _ended(seen, "failed") if seen.status.task_id else None
    note = decision.Remember(why="the next try waits a while", fields=fields, ended=ended)
    return Act(Reason.GRID_FAILED, f"{asked} of grid {seen.grid_name}: {why}", (note,))


def refusal_is_told(seen: Seen) -> Verdict:
    """What the server refuses is not asked again until the spec changes."""
    if not seen.status.refused or seen.status.refused_generation != seen.meta.generation:
        return DONE
    differs = settings.differences(seen.spec, seen.grid) if seen.grid else ()
    what = f"the change of {', '.join(differs)}" if differs else "the grid"
    return Blocked(Reason.GRID_REFUSED, f"the server refuses {what}: {seen.status.refused}", "correct the spec")


def failures_are_spaced(seen: Seen) -> Verdict:
    """After a failure the next try waits, longer each time, and in the end for the user; but a deletion for nobody."""
    attempts, deleting = seen.attempts, seen.meta.deleting
    if not attempts or (seen.grid is None if deleting else _is_well(seen)):
        return DONE
    if attempts >= seen.spec.recovery.max_attempts and not deleting:
        return Blocked(
            Reason.GRID_GIVEN_UP,
            f"grid {seen.grid_name} failed {attempts} times",
            "correct the spec, or set the annotation moorage.dev/reconcile-at to any new value to try again",
        )
    left = seen.limits.after(attempts) - conditions.age(seen.status.failed_at, seen.now)
    if left <= 0:
        return DONE
    said = f"grid {seen.grid_name} failed {attempts} times; it is tried again in {left:.0f} s"
    return Wait(Reason.GRID_FAILED, said, on="back-off", within=2 * seen.limits.cap_seconds, again=left)


def _is_well(seen: Seen) -> bool:
    grid = seen.grid
    return grid is not None and grid.status == seen.said.grid_online and not settings.differences(seen.spec, grid)


def template_is_there(seen: Seen) -> Verdict:
    """A grid of type Custom is made after its template."""
    there = seen.told.templates
    if seen.spec.grid_type != "Custom" or there is None or seen.spec.template_name in there:
        return DONE
    said = f"template {seen.spec.template_name} (spec.templateName) is not uploaded"
    then = f"the upload of template {seen.spec.template_name} is awaited, as by a GridTemplate of that name"
    return Wait(
        Reason.TEMPLATE_MISSING,
        said,
        on="group",
        within=UPLOADED,
        again=seen.busy,
        next=then,
        fix=f"make a GridTemplate of {seen.spec.template_name}, or correct spec.templateName",
    )


def grid_is_as_wanted(seen: Seen) -> Verdict:
    """Create what is missing, change what differs, make anew what is broken."""
    grid = seen.grid
    if grid is None:
        if seen.status.made and seen.spec.recovery.policy == "None":
            return Blocked(
                Reason.GRID_GIVEN_UP,
                f"grid {seen.grid_name} is gone from the server",
                "set recovery.policy to Recreate",
            )
        return ask(seen, CREATE, Reason.GRID_CREATING, f"grid {seen.grid_name} is created")
    if grid.status == seen.said.grid_error:
        if seen.spec.recovery.policy == "None":
            return Blocked(
                Reason.GRID_GIVEN_UP,
                f"grid {seen.grid_name} is in Error",
                "set recovery.policy to Recreate, or mend it",
            )
        return ask(seen, DELETE, Reason.GRID_RECREATING, f"grid {seen.grid_name} is in Error, and is made anew")
    differs = settings.differences(seen.spec, grid)
    if not differs:
        return DONE
    if any(field in settings.FIXED for field in differs):
        said = f"grid {seen.grid_name} differs in {', '.join(differs)}, which can't be changed in place"
        if not seen.recreate:
            return Blocked(
                Reason.RECREATE_NEEDED, said, f"set the annotation {names.ALLOW_RECREATE}=true, or undo the change"
            )
        return ask(seen, DELETE, Reason.GRID_RECREATING, f"{said}: it is made anew")
    return ask(seen, UPDATE, Reason.GRID_UPDATING, f"grid {seen.grid_name} is changed in {', '.join(differs)}")


def grid_is_online(seen: Seen) -> Verdict:
    """In the end the grid can be used."""
    grid = seen.grid
    if grid is not None and grid.status == seen.said.grid_online:
        if seen.status.attempts or not seen.status.made:  # also where what was asked had its effect unnoticed
            note = decision.Remember(why="it is well", fields={"attempts": 0, "made": True})
            return Act(Reason.TASK_DONE, f"grid {seen.grid_name} is online", (note,))
        return DONE
    state = grid.status if grid else "missing"
    return Wait(
        Reason.GRID_CREATING, f"grid {seen.grid_name} is {state}", on="group", within=TASK_LIMIT, again=seen.busy
    )


def ask(seen: Seen, what: str, reason: Reason, message: str) -> Verdict:
    """Remember that it is asked, then ask; one thing at a time, whoever asked for it."""
    if (held := common_steps.group_is_free(seen, message)) is not DONE:
        return held
    asked = {"asked": what, "askedAt": conditions.timestamp(seen.now), "askedGeneration": seen.meta.generation}
    fields = {**asked, "taskId": 0, "refused": ""}
    remember = decision.Remember(why="a crash must not have it asked blindly again", fields=fields)
    call = decision.Call(why=message, operation="ask", args={"what": what}, keep=True)
    return Act(reason, message, (remember, call))


# --- steps of a grid that is being deleted -----------------------------------------------------------------------


def cache_holds_it(seen: Seen) -> Verdict:
    """With its cache the grid is gone; one that was never made, or is another's, is not removed."""
    if isinstance(seen.caches, freshness.Failed):
        return decision.unknown(Reason.CACHE_NOT_FOUND, seen.caches, "cache")
    if seen.spec.deletion_policy == "Retain" or seen.meta.annotations.get(common_status.ON_DELETE) == "Orphan":
        return steps.leave(Reason.LEAVING, f"grid {seen.grid_name} stays on the server")
    if not seen.status.made and not seen.status.asked:
        return steps.leave(Reason.LEAVING, f"grid {seen.grid_name} was never made")
    if seen.older:
        said = f"grid {seen.grid_name} is that of {names.GRID.kind} {seen.older}, which is older"
        return steps.leave(Reason.LEAVING, said)
    if len(seen.caches.value) > 1:
        return common_steps.cache_is_clear(seen, seen.spec.cache_ref)
    cache = seen.cache
    if cache is None or cache.deleting:
        return steps.leave(Reason.LEAVING, "the cache is gone, and the grid with it")
    return DONE


def grid_is_gone(seen: Seen) -> Verdict:
    """The grid is deleted on the server, by the server's own word."""
    if seen.grid is None:
        gone = decision.Guard("grid_is_gone", {"grid": seen.grid_name})
        action = decision.EditFinalizer(why="the grid is gone", present=False, require=(gone,))
        return Act(Reason.LEAVING, f"grid {seen.grid_name} is gone", (action,))
    return ask(seen, DELETE, Reason.GRID_DELETING, f"grid {seen.grid_name} is deleted")


STEPS: tuple[Callable[[Seen], Verdict], ...] = (
    finalizer_is_set,
    retry_is_honoured,
    cache_is_clear,
    name_is_free,
    cache_is_available,
    what_was_asked_shows,
    refusal_is_told,
    failures_are_spaced,
    template_is_there,
    grid_is_as_wanted,
    grid_is_online,
)

DELETION_STEPS: tuple[Callable[[Seen], Verdict], ...] = (
    cache_holds_it,
    retry_is_honoured,
    cache_is_available,
    what_was_asked_shows,
    failures_are_spaced,
    grid_is_gone,
)


# --- facts and status ----------------------------------------------------------------------------------------------


def synced(seen: Seen) -> Fact:
    """Whether the server's grid is as the spec says."""
    grid = seen.grid
    if not _known(seen):
        return Fact("Synced", None, Reason.CACHE_NOT_AVAILABLE, "nobody tells of the grids")
    if grid is None:
        return Fact("Synced", False, Reason.GRID_CREATING, "the grid is not on the server")
    differs = settings.differences(seen.spec, grid)
    if differs:
        return Fact("Synced", False, Reason.GRID_UPDATING, f"differs in {', '.join(differs)}")
    return Fact("Synced", True, Reason.STANDS, "")


def online(seen: Seen) -> Fact:
    """Whether the grid can be used."""
    grid = seen.grid
    if not _known(seen):
        return Fact("Online", None, Reason.CACHE_NOT_AVAILABLE, "nobody tells of the grids")
    state = grid.status if grid else "missing"
    up = grid is not None and grid.status == seen.said.grid_online
    return Fact("Online", up, Reason.STANDS if up else Reason.GRID_CREATING, f"the grid is {state}")


def recovering(seen: Seen) -> Fact:
    """Whether a lost or broken grid is being made anew."""
    lost = _known(seen) and seen.status.made and (seen.grid is None or seen.grid.status == seen.said.grid_error)
    if lost or seen.attempts:
        return Fact("Recovering", True, Reason.GRID_RECREATING, f"{seen.attempts} failures")
    return Fact("Recovering", False, Reason.IDLE, "")


FACTS: tuple[Callable[[Seen], Fact], ...] = (synced, online, recovering)
READY_FACTS = frozenset({"Synced", "Online"})


def report(seen: Seen) -> dict[str, Any]:
    """The fields of the status that say how it stands; what is not known stays as it was."""
    said: dict[str, Any] = {}
    if seen.cache is not None and not seen.elsewhere:
        said["cache"] = seen.cache.name
    if _known(seen):
        said["status"] = seen.grid.status if seen.grid else ""
    if seen.grid is not None and not seen.older and not settings.differences(seen.spec, seen.grid):
        said["lastAppliedHash"] = settings.digest(seen.spec)
    return said
