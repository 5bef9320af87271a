"""What is done for a DataGrid: created, changed, made anew, deleted, and what it waits for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from moorage.api import meta
from moorage.operators.xsld import config, names
from moorage.operators.xsld.grid import control, settings, types
from moorage.operators.xsld.group import answers, dialect
from moorage.operators.xsld.within_cache import common_steps
from moorage.runtime import decision, freshness
from tests.unit import verdicts
from tests.unit.verdicts import SETTLED, Blocks, Row, Waits, acts
from tests.unit.xsld.states import BUSY, CAP, DONE, FAILED, NOW, RUNNING, ago

DOWN = freshness.Failed("Down", "the server is down")
NOT_YET = freshness.not_yet("it")
CACHE = common_steps.CacheSeen("c", available=True, deleting=False)
SAID = dialect.Dialect()


class It(msgspec.Struct, frozen=True):
    """A grid that is as it should be; each method changes one thing."""

    spec: dict[str, Any] = {}
    grid: answers.Grid | None = answers.Grid("g", "Online", {})
    status: types.DataGridStatus = types.DataGridStatus(made=True)
    meta: meta.ObjectMeta = meta.ObjectMeta(
        name="g", namespace="ns", uid="uid-g", generation=1, finalizers=(names.GRID_FINALIZER,)
    )
    tasks: tuple[answers.Task, ...] = ()
    templates: tuple[str, ...] | None = ()
    grids_known: bool = True
    facts: dict[str, Any] = {}

    def but(self, **changes: Any) -> It:
        return msgspec.structs.replace(self, **changes)

    def fact(self, **facts: Any) -> It:
        return self.but(facts={**self.facts, **facts})

    def wants(self, **fields: Any) -> It:
        """Another spec, by the names of a manifest."""
        return self.but(spec={**self.spec, **fields})

    def object(self, **changes: Any) -> It:
        return self.but(meta=msgspec.structs.replace(self.meta, **changes))

    def says(self, **changes: Any) -> It:
        """Another status as last written."""
        return self.but(status=msgspec.structs.replace(self.status, **changes))

    def server(self, status: str = "Online", **fields: Any) -> It:
        """The server's grid is otherwise."""
        return self.but(grid=answers.Grid("g", status, fields))

    def missing(self) -> It:
        return self.but(grid=None)

    def asked(self, what: str, *, age: float = 5.0, task: int = 7, **changes: Any) -> It:
        """Something was asked and has not shown."""
        asked = {"asked_at": ago(age), "asked_generation": 1, "task_id": task}
        return self.says(asked=what, **{**asked, **changes})

    def failed(self, attempts: int, *, age: float = 4.0, generation: int = 1) -> It:
        """So many failures, the last one that long ago."""
        return self.says(attempts=attempts, failed_at=ago(age), failed_generation=generation)

    def runs(self, phase: answers.Phase = RUNNING, number: int = 7, message: str = "") -> It:
        return self.but(tasks=(*self.tasks, answers.Task(number, "GridCommand", "", phase, message=message)))

    def caches(self, *caches: common_steps.CacheSeen) -> It:
        return self.fact(caches=freshness.Fresh(caches))

    def cache(self, **changes: Any) -> It:
        return self.caches(msgspec.structs.replace(CACHE, **changes))

    @property
    def polled(self) -> answers.Polled:
        answer = answers.Answer("c-0", "uid-0", "10.0.0.1", tasks=self.tasks)
        others = (answers.Grid("other", "Error"), *([self.grid] if self.grid else []))
        return answers.Polled((answer,), "c-0", others if self.grids_known else None, self.templates)

    @property
    def seen(self) -> control.Seen:
        whole = control.Seen(
            meta=self.meta,
            spec=msgspec.convert(self.spec, types.DataGridSpec),
            status=self.status,
            now=NOW,
            limits=config.Retry(),
            busy=BUSY,
            said=SAID,
            grid_name="g",
            caches=freshness.Fresh((CACHE,)),
            polled=freshness.Fresh(self.polled),
        )
        return msgspec.structs.replace(whole, **self.facts)


NEW = It().missing().says(made=False)
ALLOWED = {names.ALLOW_RECREATE: "true"}
NO_RECOVERY = {"recovery": {"policy": "None"}}
SHOWS = "what_was_asked_shows"
WANTED = "grid_is_as_wanted"
SPACED = "failures_are_spaced"
ENDED = "remember no-asked no-attempts made"
FAILURE = "remember no-asked no-taskId attempts failedAt failedGeneration"
UNBEGUN = "remember no-asked no-taskId no-attempts failedAt failedGeneration"


def row(it: It, step: str, shape: verdicts.Shape, says: str = "") -> Row:
    return Row(it.seen, step, shape, says)


def asks(reason: str, what: str) -> verdicts.Acts:
    return acts(reason, "remember asked askedAt askedGeneration no-taskId no-refused", f"ask {what}")


def under_way(reason: str) -> Waits:
    return Waits(reason, "group", 300.0, again=2.0)


CHANGING = {
    "it was changed, and is to be otherwise by now": row(
        It().wants(lockTimeout=8).server(lockTimeout="9").object(generation=2).asked("Update").runs(DONE),
        SHOWS,
        acts("TaskDone", "remember no-asked no-attempts made"),
    ),
    "it is being changed, and is to be otherwise by now": row(
        It().wants(lockTimeout=8).server(lockTimeout="9").object(generation=2).asked("Update").runs(),
        SHOWS,
        under_way("GridUpdating"),
    ),
    "the change to what is no longer wanted failed": row(
        It().wants(lockTimeout=8).server(lockTimeout="9").object(generation=2).asked("Update").runs(FAILED),
        SHOWS,
        acts("GridFailed", FAILURE),
    ),
    "its task is done, and it does not show what is wanted": row(
        It().wants(lockTimeout=9).server(lockTimeout="15").asked("Update").runs(DONE), SHOWS, under_way("GridUpdating")
    ),
}
"""A grid that is being changed, whether it is to stay or to go."""

UNAVAILABLE = Waits("CacheNotAvailable", "cache", 1800.0)
LOST = {"task": 7, "age": 21.0}

ROWS: dict[str, Row] = {
    "all is well": row(It(), "", SETTLED),
    "the finalizer first": row(
        NEW.object(finalizers=()).fact(caches=DOWN, polled=DOWN), "finalizer_is_set", acts("TakingCare", "finalizer on")
    ),
    "a fresh try is asked for": row(
        It().object(annotations={"moorage.dev/reconcile-at": "2"}),
        "retry_is_honoured",
        acts("Retrying", "remember reconciledAt no-attempts no-refused"),
    ),
    "a fresh try that was honoured": row(
        It().object(annotations={"moorage.dev/reconcile-at": "2"}).says(reconciled_at="2"), "", SETTLED
    ),
    # the cache
    "the caches are not known": row(
        It().fact(caches=NOT_YET), "cache_is_clear", Waits("CacheNotFound", "cache", 120.0, unseen=True)
    ),
    "there is no cache": row(
        It().caches(), "cache_is_clear", Waits("CacheNotFound", "cache", 60.0), "no XsldCache in this namespace"
    ),
    "the named one is not there": row(
        It().wants(cacheRef={"name": "x"}).caches(),
        "cache_is_clear",
        Waits("CacheNotFound", "cache", 60.0),
        "there is no XsldCache x",
    ),
    "there are several": row(
        It().caches(CACHE, msgspec.structs.replace(CACHE, name="d")),
        "cache_is_clear",
        Blocks("AmbiguousCache"),
        "several caches in this namespace: c, d",
    ),
    "it was made in another": row(
        It().wants(cacheRef={"name": "c"}).fact(elsewhere="d"),
        "cache_is_clear",
        Blocks("MadeElsewhere"),
        "it was made in XsldCache d, and spec.cacheRef names another",
    ),
    "it was made in another, and the named one is not there": row(
        It().wants(cacheRef={"name": "x"}).caches().fact(elsewhere="d"), "cache_is_clear", Blocks("MadeElsewhere")
    ),
    "an older one means the same grid": row(
        NEW.fact(older="h"),
        "name_is_free",
        Blocks("NameTaken"),
        "DataGrid h, which is older, means g in XsldCache c too",
    ),
    "an older one means the same grid, and it is being changed": row(
        It().fact(older="h").asked("Update").runs(), "name_is_free", Blocks("NameTaken")
    ),
    "the cache is not available": row(
        It().cache(available=False), "cache_is_available", UNAVAILABLE, "XsldCache c is not available"
    ),
    "the cache is being deleted": row(
        It().cache(deleting=True), "cache_is_available", UNAVAILABLE, "XsldCache c is being deleted"
    ),
    "the group was not asked yet": row(
        It().fact(polled=NOT_YET), "cache_is_available", Waits("CacheNotAvailable", "group", 120.0, unseen=True)
    ),
    "the group can't be asked": row(
        It().fact(polled=DOWN), "cache_is_available", Waits("CacheNotAvailable", "group", 120.0, again=5.0)
    ),
    "something was done to the group since": row(
        It().fact(polled=freshness.Stale(It().polled, 0.0, "POST /grid/g")),
        "cache_is_available",
        Waits("Looking", "group", 120.0, unseen=True),
        "POST /grid/g",
    ),
    "nobody tells of the grids": row(
        It().but(grids_known=False),
        "cache_is_available",
        Waits("CacheNotAvailable", "group", 900.0, again=BUSY),
        "nobody tells of the grids",
    ),
    # what was asked
    "it is being created": row(NEW.asked("Create").runs(), SHOWS, under_way("GridCreating"), "Create of grid g"),
    "it is listed and not online": row(
        NEW.server("Created").asked("Create"), SHOWS, under_way("GridCreating"), "is under way"
    ),
    "it is online while its task runs": row(NEW.server().asked("Create").runs(), SHOWS, under_way("GridCreating")),
    "it was created": row(
        NEW.server().asked("Create").runs(DONE), SHOWS, acts("TaskDone", ENDED), "Create of grid g: done"
    ),
    "its task is forgotten, and it is online": row(NEW.server().asked("Create"), SHOWS, acts("TaskDone", ENDED)),
    "it was online before anybody answered": row(NEW.server().asked("Create", task=0), SHOWS, acts("TaskDone", ENDED)),
    "it is being changed": row(
        It().wants(lockTimeout=9).server(lockTimeout="15").asked("Update").runs(), SHOWS, under_way("GridUpdating")
    ),
    "it was changed": row(
        It().wants(lockTimeout=9).server(lockTimeout="9").asked("Update").runs(DONE), SHOWS, acts("TaskDone", ENDED)
    ),
    **CHANGING,
    "it is being deleted": row(It().asked("Delete").runs(), SHOWS, under_way("GridDeleting")),
    "it was deleted, to be made anew": row(
        It().missing().asked("Delete"), SHOWS, acts("TaskDone", "remember no-asked"), "Delete of grid g: done"
    ),
    "the task failed": row(
        NEW.asked("Create").runs(FAILED, message="no room"), SHOWS, acts("GridFailed", FAILURE), "no room"
    ),
    "the task failed without a word": row(
        NEW.asked("Create").runs(FAILED), SHOWS, acts("GridFailed", FAILURE), "the task failed"
    ),
    "the task failed, and yet it shows": row(NEW.server().asked("Create").runs(FAILED), SHOWS, acts("TaskDone", ENDED)),
    "another's task failed": row(
        NEW.server("Created").asked("Create").runs(FAILED, number=8), SHOWS, under_way("GridCreating")
    ),
    "it came to be in Error": row(
        NEW.server("Error").asked("Create").runs(DONE),
        SHOWS,
        acts("GridFailed", f"{FAILURE} made"),
        "the grid is in Error",
    ),
    "it is in Error while its task runs": row(
        NEW.server("Error").asked("Create").runs(), SHOWS, under_way("GridCreating")
    ),
    "it takes as long as it may": row(NEW.asked("Create", age=300.0).runs(), SHOWS, under_way("GridCreating")),
    "it takes too long": row(
        NEW.asked("Create", age=301.0).runs(), SHOWS, acts("GridFailed", FAILURE), "no effect in time"
    ),
    "its task is not listed for a moment": row(NEW.asked("Create", age=20.0), SHOWS, under_way("GridCreating")),
    "its task is lost": row(NEW.asked("Create", age=21.0), SHOWS, acts("GridFailed", FAILURE), "its task is lost"),
    "its task is lost, and the grid is on its way": row(
        NEW.server("Created").asked("Create", age=21.0), SHOWS, under_way("GridCreating")
    ),
    "the task of a change is lost": row(
        It().wants(lockTimeout=9).server(lockTimeout="15").asked("Update", age=21.0),
        SHOWS,
        acts("GridFailed", FAILURE),
        "Update of grid g: its task is lost",
    ),
    "it was not sent": row(
        NEW.asked("Create", task=0).fact(unsent=True), SHOWS, acts("GridFailed", UNBEGUN), "it was not begun"
    ),
    "no answer came, and it may begin yet": row(NEW.asked("Create", task=0), SHOWS, under_way("GridCreating")),
    "nor did anything come of it": row(
        NEW.asked("Create", task=0, age=31.0), SHOWS, acts("GridFailed", FAILURE), "it was not begun"
    ),
    "a task of before that was not sent anew": row(
        NEW.asked("Create").fact(unsent=True).runs(), SHOWS, under_way("GridCreating")
    ),
    "the task 0 of somebody else is not ours": row(
        NEW.asked("Create", task=0).fact(unsent=True).runs(FAILED, number=0, message="not ours"),
        SHOWS,
        acts("GridFailed", UNBEGUN),
        "it was not begun",
    ),
    "who was asked for grids tells no tasks": row(
        NEW.asked("Create").fact(polled=freshness.Fresh(answers.Polled((), "", (), ()))),
        SHOWS,
        under_way("GridCreating"),
    ),
    # refusals and failures
    "the server refuses it": row(
        NEW.says(refused="not prime", refused_generation=1), "refusal_is_told", Blocks("GridRefused"), "not prime"
    ),
    "it refuses a change": row(
        It()
        .server(ownerName="xsadmin", lockTimeout="15")
        .wants(ownerName="nobody", lockTimeout=16)
        .says(refused="there is no user nobody", refused_generation=1),
        "refusal_is_told",
        Blocks("GridRefused"),
        "the server refuses the change of lockTimeout, ownerName: there is no user nobody",
    ),
    "it refused another spec": row(
        NEW.says(refused="not prime", refused_generation=1).object(generation=2),
        WANTED,
        asks("GridCreating", "Create"),
    ),
    "it failed a moment ago": row(
        NEW.failed(1),
        SPACED,
        Waits("GridFailed", "back-off", CAP, again=6.0),
        "failed 1 times; it is tried again in 6 s",
    ),
    "a second before its time": row(NEW.failed(1, age=9), SPACED, Waits("GridFailed", "back-off", CAP, again=1.0)),
    "for the second time": row(NEW.failed(2), SPACED, Waits("GridFailed", "back-off", CAP, again=16.0)),
    "long enough ago": row(NEW.failed(1, age=10), WANTED, asks("GridCreating", "Create")),
    "too often": row(NEW.failed(5, age=9999), SPACED, Blocks("GridGivenUp"), "failed 5 times"),
    "too often, with another spec": row(
        NEW.failed(5, age=9999).object(generation=2), WANTED, asks("GridCreating", "Create")
    ),
    "a moment ago, with another spec": row(NEW.failed(4).object(generation=2), WANTED, asks("GridCreating", "Create")),
    "too often, before generations were kept": row(
        NEW.failed(5, age=9999, generation=0), WANTED, asks("GridCreating", "Create")
    ),
    "what fails was asked for an older spec": row(
        NEW.asked("Create", attempts=4, failed_generation=1).runs(FAILED).object(generation=2),
        SHOWS,
        acts("GridFailed", FAILURE),
    ),
    "once more than the user wants": row(
        NEW.wants(recovery={"maxAttempts": 1}).failed(1, age=9999), SPACED, Blocks("GridGivenUp")
    ),
    "it failed, and is in Error": row(
        It().server("Error").failed(1),
        SPACED,
        Waits("GridFailed", "back-off", CAP, again=6.0),
    ),
    "it failed, and is online after all": row(
        It().failed(9),
        "grid_is_online",
        acts("TaskDone", "remember no-attempts made"),
        "grid g is online",
    ),
    # what it waits for
    "its template is not there": row(
        NEW.wants(gridType="Custom", templateName="t").but(templates=("u",)),
        "template_is_there",
        Waits("TemplateMissing", "group", 300.0, again=BUSY),
        "template t (spec.templateName) is not uploaded",
    ),
    "its template is there": row(
        NEW.wants(gridType="Custom", templateName="t").but(templates=("t",)), WANTED, asks("GridCreating", "Create")
    ),
    "nobody tells of templates": row(
        NEW.wants(gridType="Custom", templateName="t").but(templates=None), WANTED, asks("GridCreating", "Create")
    ),
    "a simple grid needs none": row(NEW.wants(templateName="t"), WANTED, asks("GridCreating", "Create")),
    "a task of ours runs at the group": row(
        NEW.cache(task="Join c-2"),
        WANTED,
        Waits("TaskRunning", "group", 1800.0, again=BUSY),
        "grid g is created, once the group is free: Join c-2",
    ),
    "a task of others runs at the group": row(
        NEW.runs(number=3),
        WANTED,
        Waits("TaskRunning", "group", 1800.0, again=BUSY),
        "grid g is created, once the group is free: GridCommand",
    ),
    "tasks that have ended are nothing": row(It().runs(DONE, 3).runs(FAILED, 4), "", SETTLED),
    # as it should be
    "it is created": row(NEW, WANTED, asks("GridCreating", "Create"), "grid g is created"),
    "it was lost, and is created anew": row(It().missing(), WANTED, asks("GridCreating", "Create")),
    "it was lost, and shall stay so": row(
        It().missing().wants(**NO_RECOVERY), WANTED, Blocks("GridGivenUp"), "is gone from the server"
    ),
    "the first time it is created all the same": row(NEW.wants(**NO_RECOVERY), WANTED, asks("GridCreating", "Create")),
    "it is in Error": row(It().server("Error"), WANTED, asks("GridRecreating", "Delete"), "is in Error"),
    "it is in Error, and shall stay so": row(
        It().server("Error").wants(**NO_RECOVERY), WANTED, Blocks("GridGivenUp"), "grid g is in Error"
    ),
    "it differs": row(
        It().wants(lockTimeout=9).server(lockTimeout="15"),
        WANTED,
        asks("GridUpdating", "Update"),
        "changed in lockTimeout",
    ),
    "it differs in what can't be changed": row(
        It().wants(numPartition=5, lockTimeout=9).server(numPartition="3", lockTimeout="15"),
        WANTED,
        Blocks("RecreateNeeded"),
        "differs in lockTimeout, numPartition",
    ),
    "which the user allows": row(
        It().wants(numPartition=5).server(numPartition="3").object(annotations=ALLOWED),
        WANTED,
        asks("GridRecreating", "Delete"),
        "it is made anew",
    ),
    "which another value of the annotation does not": row(
        It().wants(numPartition=5).server(numPartition="3").object(annotations={names.ALLOW_RECREATE: "yes"}),
        WANTED,
        Blocks("RecreateNeeded"),
    ),
    "the allowance alone does nothing": row(It().object(annotations=ALLOWED), "", SETTLED),
    # online
    "it is not online": row(
        It().server("Stopped"), "grid_is_online", Waits("GridCreating", "group", 300.0, again=BUSY), "grid g is Stopped"
    ),
    "it was there before, and is taken over": row(
        It().says(made=False), "grid_is_online", acts("TaskDone", "remember no-attempts made")
    ),
}

GONE = "finalizer off if grid_is_gone g"
DELETION_ROWS: dict[str, Row] = {
    "the caches are not known": row(
        It().fact(caches=NOT_YET), "cache_holds_it", Waits("CacheNotFound", "cache", 120.0, unseen=True)
    ),
    "the cache is gone": row(It().caches(), "cache_holds_it", acts("Leaving", "finalizer off"), "the cache is gone"),
    "the cache is being deleted": row(
        It().cache(deleting=True, available=False), "cache_holds_it", acts("Leaving", "finalizer off")
    ),
    "it is to stay": row(
        It().wants(deletionPolicy="Retain"), "cache_holds_it", acts("Leaving", "finalizer off"), "stays on the server"
    ),
    "it is to stay where it is": row(
        It().object(annotations={"moorage.dev/on-delete": "Orphan"}),
        "cache_holds_it",
        acts("Leaving", "finalizer off"),
    ),
    "an older one means the same grid, which stays": row(
        It().fact(older="h"), "cache_holds_it", acts("Leaving", "finalizer off"), "grid g is that of DataGrid h"
    ),
    "which cache has it is not clear": row(
        It().caches(CACHE, msgspec.structs.replace(CACHE, name="d")), "cache_holds_it", Blocks("AmbiguousCache")
    ),
    "that is of no concern to one that was never made": row(
        NEW.caches(CACHE, msgspec.structs.replace(CACHE, name="d")), "cache_holds_it", acts("Leaving", "finalizer off")
    ),
    "it was never made": row(NEW, "cache_holds_it", acts("Leaving", "finalizer off"), "was never made"),
    "another's grid of that name is not deleted": row(
        It().says(made=False), "cache_holds_it", acts("Leaving", "finalizer off")
    ),
    "it may have been made": row(NEW.asked("Create").runs(), SHOWS, under_way("GridCreating")),
    "the cache is not available": row(It().cache(available=False), "cache_is_available", UNAVAILABLE),
    "the group is busy": row(
        It().cache(task="Join c-2"), "grid_is_gone", Waits("TaskRunning", "group", 1800.0, again=BUSY)
    ),
    "it is deleted": row(It(), "grid_is_gone", asks("GridDeleting", "Delete"), "grid g is deleted"),
    **CHANGING,
    "it is being deleted": row(It().asked("Delete").runs(), SHOWS, under_way("GridDeleting")),
    "it was deleted": row(
        It().missing().asked("Delete").object(deletion_timestamp=ago(9)),
        SHOWS,
        acts("TaskDone", "remember no-asked no-attempts"),
    ),
    "failures to make it do not hold it up for ever": row(
        It().server("Error").failed(5, age=9999).object(deletion_timestamp=ago(9)),
        "grid_is_gone",
        asks("GridDeleting", "Delete"),
    ),
    "failures space its deletion": row(
        It().failed(5, age=0.0).object(deletion_timestamp=ago(9)),
        SPACED,
        Waits("GridFailed", "back-off", CAP, again=160.0),
    ),
    "nothing is spaced once it is gone": row(
        It().missing().failed(5, age=0.0).object(deletion_timestamp=ago(9)), "grid_is_gone", acts("Leaving", GONE)
    ),
    "it is gone by the server's own word": row(It().missing(), "grid_is_gone", acts("Leaving", GONE)),
    "nobody tells": row(
        It().but(grids_known=False), "cache_is_available", Waits("CacheNotAvailable", "group", 900.0, again=BUSY)
    ),
}


@pytest.mark.parametrize("it", ROWS.values(), ids=ROWS)
def test_table(it: Row) -> None:
    verdicts.check(it, control.STEPS)


@pytest.mark.parametrize("it", DELETION_ROWS.values(), ids=DELETION_ROWS)
def test_farewell(it: Row) -> None:
    verdicts.check(it, control.DELETION_STEPS)


def remembered(it: It) -> dict[str, Any]:
    made = decision.decide(it.seen, steps=control.STEPS)
    (note,) = (action for action in made.acts[0].actions if isinstance(action, decision.Remember))
    return note.fields


def test_what_is_asked_is_remembered_first() -> None:
    fields = {"asked": "Create", "askedAt": ago(0), "askedGeneration": 3, "taskId": 0, "refused": ""}

    assert fields == remembered(NEW.object(generation=3))


def test_the_id_of_the_task_is_kept_at_once() -> None:
    _, call = decision.decide(NEW.seen, steps=control.STEPS).acts[0].actions

    assert isinstance(call, decision.Call)
    assert ({"what": "Create"}, True) == (call.args, call.keep)


def test_a_failure_counts_and_begins_its_wait() -> None:
    twice = {"attempts": 2, "failed_generation": 1}

    assert {"asked": "", "taskId": 0, "attempts": 3, "failedAt": ago(0), "failedGeneration": 1} == remembered(
        NEW.asked("Create", **twice).runs(FAILED)
    )
    unsent = NEW.asked("Create", task=0, **twice).fact(unsent=True)
    assert 2 == remembered(unsent)["attempts"], "what was not sent is no failure"


def test_a_failure_counts_for_the_spec_that_was_asked_for() -> None:
    failing = NEW.asked("Create", asked_generation=2, attempts=4, failed_generation=1).runs(FAILED)

    for generation in (2, 3):
        fields = remembered(failing.object(generation=generation))
        assert (1, 2) == (fields["attempts"], fields["failedGeneration"])


def test_a_success_is_remembered() -> None:
    assert {"asked": "", "attempts": 0, "made": True} == remembered(NEW.server().asked("Create", attempts=2))


def test_a_step_that_is_asked_without_a_cache_waits() -> None:
    waiting = control.cache_is_available(It().caches().seen)

    assert UNAVAILABLE == verdicts.shape(waiting)


def test_a_grid_that_is_missing_is_not_online() -> None:
    assert Waits("GridCreating", "group", 300.0, again=BUSY) == verdicts.shape(
        control.grid_is_online(It().missing().seen)
    )


FACTS = {
    "Synced: as wanted": (It(), "Synced", True, "Stands", ""),
    "Synced: missing": (It().missing(), "Synced", False, "GridCreating", "not on the server"),
    "Synced: differs": (
        It().wants(lockTimeout=9).server(lockTimeout="15"),
        "Synced",
        False,
        "GridUpdating",
        "differs in lockTimeout",
    ),
    "Online: yes": (It(), "Online", True, "Stands", "the grid is Online"),
    "Online: not yet": (It().server("Created"), "Online", False, "GridCreating", "the grid is Created"),
    "Online: missing": (It().missing(), "Online", False, "GridCreating", "the grid is missing"),
    "Recovering: no": (It(), "Recovering", False, "Idle", ""),
    "Recovering: it is new": (NEW, "Recovering", False, "Idle", ""),
    "Recovering: lost": (It().missing(), "Recovering", True, "GridRecreating", "0 failures"),
    "Recovering: in Error": (It().server("Error"), "Recovering", True, "GridRecreating", ""),
    "Recovering: new and in Error": (NEW.server("Error"), "Recovering", False, "Idle", ""),
    "Recovering: failed with another spec": (
        NEW.failed(2).object(generation=2),
        "Recovering",
        False,
        "Idle",
        "",
    ),
    "Recovering: failed": (NEW.failed(2), "Recovering", True, "GridRecreating", "2 failures"),
}


@pytest.mark.parametrize(("it", "type_", "status", "reason", "says"), FACTS.values(), ids=FACTS)
def test_facts(it: It, type_: str, status: bool, reason: str, says: str) -> None:
    (found,) = (fact for fact in (each(it.seen) for each in control.FACTS) if fact.type == type_)

    assert (status, reason) == (found.status, str(found.reason))
    assert says in found.message


TAKEN = {"lastAppliedHash": settings.digest(It().seen.spec)}
REPORTS: dict[str, tuple[It, dict[str, Any]]] = {
    "well": (It(), {"cache": "c", "status": "Online", **TAKEN}),
    "it differs": (It().wants(lockTimeout=9).server(lockTimeout="15"), {"cache": "c", "status": "Online"}),
    "it is an older one's": (It().fact(older="h"), {"cache": "c", "status": "Online"}),
    "missing": (It().missing(), {"cache": "c", "status": ""}),
    "nobody tells of grids": (It().but(grids_known=False), {"cache": "c"}),
    "the group is not known": (It().fact(polled=DOWN), {"cache": "c"}),
    "which cache is not clear": (It().caches(), {"status": "Online", **TAKEN}),
    "it was made in another": (It().fact(elsewhere="d", polled=NOT_YET), {}),
    "nothing is known": (It().fact(caches=DOWN, polled=DOWN), {}),
}


@pytest.mark.parametrize(("it", "expected"), REPORTS.values(), ids=REPORTS)
def test_the_report(it: It, expected: dict[str, Any]) -> None:
    assert expected == control.report(it.seen)


def test_one_that_is_in_error_each_time_is_given_up() -> None:
    """That the broken one could be deleted is no success of the grid."""
    it = NEW.wants(recovery={"maxAttempts": 2})
    it = it.says(attempts=1, failed_at=ago(9999), failed_generation=it.meta.generation)
    assert "attempts" not in remembered(it.asked("Delete"))
    noted = remembered(it.server("Error").asked("Create").runs(DONE))
    it = it.says(attempts=noted["attempts"], failed_generation=noted["failedGeneration"])

    assert Blocks("GridGivenUp") == verdicts.shape(control.failures_are_spaced(it.seen))


def test_a_grid_is_made_lost_and_made_anew() -> None:
    """As the world follows: create, online, Error, delete, create, online."""
    it, told = NEW, []
    world: tuple[Callable[[It], It], ...] = (
        lambda it: it.asked("Create").runs(),
        lambda it: it.but(tasks=()).server(),
        lambda it: it.says(asked="", made=True, attempts=0),
        lambda it: it.server("Error"),
        lambda it: it.asked("Delete").missing(),
        lambda it: it.says(asked=""),
        lambda it: it.asked("Create").server(),
    )
    for follow in world:
        step, found, _, _ = verdicts.decided(it.seen, control.STEPS)
        told.append((step, getattr(found, "reason", "")))
        it = follow(it)

    assert [
        (WANTED, "GridCreating"),
        (SHOWS, "GridCreating"),
        (SHOWS, "TaskDone"),
        ("", ""),
        (WANTED, "GridRecreating"),
        (SHOWS, "TaskDone"),
        (WANTED, "GridCreating"),
    ] == told
