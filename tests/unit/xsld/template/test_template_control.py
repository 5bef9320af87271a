"""What is done for a GridTemplate: uploaded, uploaded anew on a change, and not deleted while it is in use."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.api import meta
from moorage.operators.xsld import names
from moorage.operators.xsld.group import answers
from moorage.operators.xsld.template import control, types
from moorage.operators.xsld.within_cache import common_steps, common_types
from moorage.runtime import decision, freshness
from tests.unit import verdicts
from tests.unit.verdicts import SETTLED, Blocks, Row, Waits, acts
from tests.unit.xsld.states import BUSY

DOWN = freshness.Failed("Down", "the server is down")
NOT_YET = freshness.not_yet("it")
CACHE = common_steps.CacheSeen("c", available=True, deleting=False)
UNAVAILABLE = Waits("CacheNotAvailable", "cache", 1800.0)
FAULT = control.Documents(fault="there is no ConfigMap m")


class It(msgspec.Struct, frozen=True):
    """A template that the server has; each method changes one thing."""

    status: types.GridTemplateStatus = types.GridTemplateStatus(asked=True, hash="d1")
    meta: meta.ObjectMeta = meta.ObjectMeta(
        name="t", namespace="ns", uid="uid-t", generation=1, finalizers=(names.TEMPLATE_FINALIZER,)
    )
    documents: Any = freshness.Fresh(control.Documents("d1"))
    caches: Any = freshness.Fresh((CACHE,))
    templates: tuple[str, ...] | None = ("t", "u")
    grids: tuple[answers.Grid, ...] | None = ()
    polled: Any = None
    elsewhere: str = ""
    older: str = ""
    tasks: tuple[answers.Task, ...] = ()
    cache_ref: common_types.CacheRef | None = None

    def but(self, **changes: Any) -> It:
        return msgspec.structs.replace(self, **changes)

    def object(self, **changes: Any) -> It:
        return self.but(meta=msgspec.structs.replace(self.meta, **changes))

    def says(self, **changes: Any) -> It:
        return self.but(status=msgspec.structs.replace(self.status, **changes))

    def reads(self, documents: control.Documents) -> It:
        return self.but(documents=freshness.Fresh(documents))

    def cache(self, **changes: Any) -> It:
        return self.but(caches=freshness.Fresh((msgspec.structs.replace(CACHE, **changes),)))

    def used(self, *grids: str) -> It:
        """Grids are made of it; another is made of another."""
        made = [answers.Grid(name, "Online", {"templateName": "t"}) for name in grids]
        return self.but(grids=(answers.Grid("z", "Online", {"templateName": "u"}), answers.Grid("y", ""), *made))

    @property
    def seen(self) -> control.Seen:
        inline = types.Inline("<a/>", "<b/>")
        answer = answers.Answer("c-0", "uid-0", "10.0.0.1", tasks=self.tasks)
        told = answers.Polled((answer,), "c-0", self.grids, self.templates)
        return control.Seen(
            meta=self.meta,
            spec=types.GridTemplateSpec(types.Source(inline=inline), cache_ref=self.cache_ref),
            status=self.status,
            busy=BUSY,
            template="t",
            documents=self.documents,
            caches=self.caches,
            elsewhere=self.elsewhere,
            older=self.older,
            polled=freshness.Fresh(told) if self.polled is None else self.polled,
        )


NEW = It().says(asked=False, hash="").but(templates=())
GRID_TASK = answers.Task(3, "GridCommand", "", answers.Phase.RUNNING)
BUSY_GROUP = Waits("TaskRunning", "group", 1800.0, again=BUSY)
STALE = freshness.Stale(answers.Polled(), 0.0, "PUT /gridTemplate/t")


def row(it: It, step: str, shape: verdicts.Shape, says: str = "") -> Row:
    return Row(it.seen, step, shape, says)


ROWS: dict[str, Row] = {
    "what was refused is tried anew": row(
        It().object(annotations={"moorage.dev/reconcile-at": "now"}).says(refused="no", refused_hash="h"),
        "retry_is_honoured",
        acts("Retrying", "remember reconciledAt no-refused no-refusedHash"),
    ),
    "all is well": row(It(), "", SETTLED),
    "the finalizer first": row(
        NEW.object(finalizers=()).but(documents=DOWN, caches=DOWN, polled=DOWN),
        "finalizer_is_set",
        acts("TakingCare", "finalizer on"),
    ),
    # the documents
    "the documents are not read yet": row(
        NEW.but(documents=NOT_YET), "source_is_there", Waits("TemplateSource", "source", 120.0, unseen=True)
    ),
    "the documents can't be read": row(
        NEW.but(documents=DOWN), "source_is_there", Waits("TemplateSource", "source", 120.0, again=5.0)
    ),
    "the documents are not there": row(
        NEW.reads(FAULT), "source_is_there", Blocks("TemplateSource"), "there is no ConfigMap m"
    ),
    # the cache
    "the caches are not known": row(
        NEW.but(caches=NOT_YET), "cache_is_clear", Waits("CacheNotFound", "cache", 120.0, unseen=True)
    ),
    "there is no cache": row(
        NEW.but(caches=freshness.Fresh(())),
        "cache_is_clear",
        Waits("CacheNotFound", "cache", 60.0),
        "no XsldCache in this namespace",
    ),
    "the named one is not there": row(
        NEW.but(caches=freshness.Fresh(()), cache_ref=common_types.CacheRef("x")),
        "cache_is_clear",
        Waits("CacheNotFound", "cache", 60.0),
        "there is no XsldCache x",
    ),
    "there are several": row(
        NEW.but(caches=freshness.Fresh((CACHE, msgspec.structs.replace(CACHE, name="d")))),
        "cache_is_clear",
        Blocks("AmbiguousCache"),
        "c, d",
    ),
    "it was made in another": row(
        It().but(elsewhere="d"),
        "cache_is_clear",
        Blocks("MadeElsewhere"),
        "it was made in XsldCache d, and spec.cacheRef names another",
    ),
    "an older one means the same template": row(
        It().but(older="s"),
        "name_is_free",
        Blocks("NameTaken"),
        "GridTemplate s, which is older, means t in XsldCache c too",
    ),
    "the cache is not available": row(
        NEW.cache(available=False), "cache_is_available", UNAVAILABLE, "XsldCache c is not available"
    ),
    "the cache is being deleted": row(
        NEW.cache(deleting=True), "cache_is_available", UNAVAILABLE, "XsldCache c is being deleted"
    ),
    "the group was not asked yet": row(
        NEW.but(polled=NOT_YET), "cache_is_available", Waits("CacheNotAvailable", "group", 120.0, unseen=True)
    ),
    "the group can't be asked": row(
        NEW.but(polled=DOWN), "cache_is_available", Waits("CacheNotAvailable", "group", 120.0, again=5.0)
    ),
    "something was done to the group since": row(
        NEW.but(polled=STALE),
        "cache_is_available",
        Waits("Looking", "group", 120.0, unseen=True),
        "PUT /gridTemplate/t",
    ),
    "nobody tells of the templates": row(
        NEW.but(templates=None), "cache_is_available", Waits("CacheNotAvailable", "group", 900.0, again=BUSY)
    ),
    # the upload
    "it is uploaded": row(
        NEW,
        "template_is_uploaded",
        acts("Uploading", "remember asked", "upload d1"),
        "the server does not have it",
    ),
    "it is uploaded again, as nobody knows whether it arrived": row(
        NEW.says(asked=True), "template_is_uploaded", acts("Uploading", "upload d1")
    ),
    "it is gone from the server": row(
        It().but(templates=("u",)), "template_is_uploaded", acts("Uploading", "upload d1")
    ),
    "its documents have changed": row(
        It().reads(control.Documents("d2")),
        "template_is_uploaded",
        acts("Uploading", "upload d2"),
        "its documents have changed",
    ),
    "one that was there before is written over": row(
        It().says(hash=""), "template_is_uploaded", acts("Uploading", "upload d1"), "its documents have changed"
    ),
    "a task of ours runs at the group": row(
        NEW.cache(task="Join c-2"), "template_is_uploaded", BUSY_GROUP, "is uploaded: the server does not have it, once"
    ),
    "a task of others runs at the group": row(
        NEW.but(tasks=(GRID_TASK,)), "template_is_uploaded", BUSY_GROUP, "once the group is free: GridCommand"
    ),
    "what stands does not mind tasks": row(It().cache(task="Join c-2").but(tasks=(GRID_TASK,)), "", SETTLED),
    "the server refuses it": row(
        NEW.says(refused="no XML", refused_hash="d1"), "template_is_uploaded", Blocks("GridRefused"), "no XML"
    ),
    "it refused other documents": row(
        It().but(templates=()).says(refused="no XML", refused_hash="d0"),
        "template_is_uploaded",
        acts("Uploading", "upload d1"),
    ),
    "a refusal of old matters no more": row(It().says(refused="", refused_hash="d1"), "", SETTLED),
}

LEAVES = acts("Leaving", "finalizer off")
DELETION_ROWS: dict[str, Row] = {
    "the caches are not known": row(
        It().but(caches=NOT_YET), "cache_holds_it", Waits("CacheNotFound", "cache", 120.0, unseen=True)
    ),
    "it is to stay": row(
        It().object(annotations={"moorage.dev/on-delete": "Orphan"}), "cache_holds_it", LEAVES, "stays on the server"
    ),
    "the cache is gone": row(It().but(caches=freshness.Fresh(())), "cache_holds_it", LEAVES, "the cache is gone"),
    "the cache is being deleted": row(It().cache(deleting=True), "cache_holds_it", LEAVES, "the cache is gone"),
    "an older one means the same template, which stays": row(
        It().but(older="s"), "cache_holds_it", LEAVES, "template t is that of GridTemplate s"
    ),
    "which cache has it is not clear": row(
        It().but(caches=freshness.Fresh((CACHE, msgspec.structs.replace(CACHE, name="d")))),
        "cache_holds_it",
        Blocks("AmbiguousCache"),
    ),
    "it was never uploaded": row(NEW, "cache_holds_it", LEAVES, "never uploaded"),
    "the answer to its upload was lost, and it is there": row(
        It().says(hash=""), "template_is_gone", acts("GridDeleting", "remove")
    ),
    "the answer to its upload was lost, and it is not there": row(
        NEW.says(asked=True), "template_is_gone", LEAVES, "template t is gone"
    ),
    "the cache is not available": row(It().cache(available=False), "cache_is_available", UNAVAILABLE),
    "grids are made of it": row(
        It().used("a", "b"),
        "nobody_uses_it",
        Waits("TemplateInUse", "group", 300.0, again=BUSY),
        "template t is used by grid a, b",
    ),
    "it is deleted": row(It().used(), "template_is_gone", acts("GridDeleting", "remove")),
    "a task of ours is waited for": row(
        It().cache(task="Join c-2"), "template_is_gone", BUSY_GROUP, "is deleted on the server, once the group is free"
    ),
    "a task of others, too": row(It().but(tasks=(GRID_TASK,)), "template_is_gone", BUSY_GROUP, "GridCommand"),
    "it is gone, whatever runs": row(
        It().but(templates=("u",), tasks=(GRID_TASK,)), "template_is_gone", LEAVES, "template t is gone"
    ),
    "it is gone": row(It().but(templates=("u",)), "template_is_gone", LEAVES, "template t is gone"),
    "its documents need not be there": row(
        It().reads(FAULT).used(), "template_is_gone", acts("GridDeleting", "remove")
    ),
}


@pytest.mark.parametrize("it", ROWS.values(), ids=ROWS)
def test_table(it: Row) -> None:
    verdicts.check(it, control.STEPS)


@pytest.mark.parametrize("it", DELETION_ROWS.values(), ids=DELETION_ROWS)
def test_farewell(it: Row) -> None:
    verdicts.check(it, control.DELETION_STEPS)


def test_what_the_server_answers_to_an_upload_is_kept() -> None:
    _, call = decision.decide(NEW.seen, steps=control.STEPS).acts[0].actions

    assert isinstance(call, decision.Call)
    assert ("upload", {"digest": "d1"}, True) == (call.operation, call.args, call.keep)


def test_without_a_cache_it_waits() -> None:
    assert UNAVAILABLE == verdicts.shape(control.cache_is_available(NEW.but(caches=freshness.Fresh(())).seen))


FACTS = {
    "Uploaded: yes": (It(), "Uploaded", True, "Stands", ""),
    "Uploaded: not yet": (NEW, "Uploaded", False, "Uploading", "does not have these documents"),
    "Uploaded: gone": (It().but(templates=()), "Uploaded", False, "Uploading", ""),
    "Uploaded: others": (It().reads(control.Documents("d2")), "Uploaded", False, "Uploading", ""),
    "Uploaded: the documents are not known": (It().but(documents=DOWN), "Uploaded", False, "Uploading", ""),
    "Uploaded: neither is what the server has": (
        It().but(documents=DOWN).says(hash=""),
        "Uploaded",
        False,
        "Uploading",
        "",
    ),
    "Uploaded: the server is not known": (It().but(polled=DOWN), "Uploaded", False, "Uploading", ""),
    "InUse: no": (It().used(), "InUse", False, "Idle", ""),
    "InUse: yes": (It().used("a", "b"), "InUse", True, "TemplateInUse", "by grid a, b"),
    "InUse: not known": (It().but(polled=DOWN), "InUse", False, "Idle", ""),
}


@pytest.mark.parametrize(("it", "type_", "status", "reason", "says"), FACTS.values(), ids=FACTS)
def test_facts(it: It, type_: str, status: bool, reason: str, says: str) -> None:
    (found,) = (fact for fact in (each(it.seen) for each in control.FACTS) if fact.type == type_)

    assert (status, reason) == (found.status, str(found.reason))
    assert says in found.message


STATES: dict[str, tuple[It, dict[str, Any]]] = {
    "available": (It(), {"state": "Available", "cache": "c", "usedBy": []}),
    "in use": (It().used("a"), {"state": "InUse", "cache": "c", "usedBy": ["a"]}),
    "to be uploaded": (NEW, {"state": "Uploading", "cache": "c", "usedBy": []}),
    "waits for its cache": (NEW.cache(available=False), {"state": "Pending", "cache": "c", "usedBy": []}),
    "waits for a cache": (NEW.but(caches=DOWN), {"state": "Pending", "usedBy": []}),
    "the documents are missing": (It().reads(FAULT), {"state": "Error", "cache": "c", "usedBy": []}),
    "the server refuses them": (
        NEW.says(refused="no", refused_hash="d1"),
        {"state": "Error", "cache": "c", "usedBy": []},
    ),
    "the server refused others": (
        NEW.says(refused="no", refused_hash="d0"),
        {"state": "Uploading", "cache": "c", "usedBy": []},
    ),
    "it was made in another": (It().but(elsewhere="d", polled=NOT_YET), {"state": "Error"}),
    "an older one means the same": (It().but(older="s"), {"state": "Error", "cache": "c", "usedBy": []}),
    "nobody tells": (It().but(templates=None), {"state": "Uploading", "cache": "c"}),
}


@pytest.mark.parametrize(("it", "expected"), STATES.values(), ids=STATES)
def test_the_report(it: It, expected: dict[str, Any]) -> None:
    assert expected == control.report(it.seen)


def test_a_mistyped_cache_is_told_with_those_that_there_are() -> None:
    """Only a person can correct a name, so that it is theirs once what is made together has had its time."""
    seen = NEW.but(caches=freshness.Fresh(()), cache_ref=common_types.CacheRef("x")).seen

    wait = control.cache_is_clear(msgspec.structs.replace(seen, others=("a", "b")))

    assert isinstance(wait, decision.Wait)
    assert "there is no XsldCache x in this namespace, but a, b" == wait.message
    assert "correct spec.cacheRef.name to a, b, or create XsldCache x" == wait.fix
    assert "XsldCache x is awaited, of whoever makes it" == wait.next
