"""Who is asked: the password goes to the cache's own pods alone, and what was not asked is not an empty answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from moorage.operators.xsld.cache import build, kind, types
from moorage.operators.xsld.group import admin, answers
from moorage.runtime import decision, freshness, source
from tests.unit.runtime import fake_api
from tests.unit.xsld import states
from tests.unit.xsld.cache.test_cache_kind import NAMED, PLAIN, started

PLACE = ("ns", "c")
LABELS = {build.LABEL: "c"}


class Asked(admin.Admin):
    """Notes whom it would send the password to; they all tell of a group of one."""

    def __init__(self) -> None:
        self.targets: list[str] = []

    async def polled(self, targets: Sequence[admin.Target], **_: Any) -> answers.Polled:
        self.targets = [target.pod for target in targets]
        told = [answers.Answer(it.pod, it.uid, it.address, members=states.alone(0)) for it in targets]
        return answers.Polled(tuple(told))

    async def close(self) -> None:
        pass


def owner(kind_: str, name: str, uid: str, *, controller: bool = True) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind_, "name": name, "uid": uid, "controller": controller}


async def make(api: fake_api.FakeApi, resource: str, name: str, *owners: dict[str, Any], **content: Any) -> str:
    """One object with the cache's label; its uid."""
    metadata = {"labels": LABELS, "ownerReferences": list(owners), **content.pop("metadata", {})}
    made = await api.put(resource, name, {"metadata": metadata, **content})
    return str(made["metadata"]["uid"])


async def asked(api: fake_api.FakeApi, made: kind.CacheKind) -> list[str]:
    """Who is asked once it has seen all that there is."""
    spy = Asked()
    obj = made.find(*PLACE)
    assert obj is not None
    await fake_api.until(lambda: not isinstance(made.observe(obj, states.NOW).objects, freshness.Failed))
    made.groups._admins[PLACE] = ("", spy)
    await made.groups.poll(PLACE)
    return spy.targets


def cache_uid(made: kind.CacheKind) -> str:
    obj = made.find(*PLACE)
    assert obj is not None
    return obj.metadata.uid


RUNNING = {"status": {"podIP": "10.0.0.1", "phase": "Running"}}
FOREIGN: dict[str, tuple[str, tuple[dict[str, Any], ...], dict[str, Any]]] = {
    # id: (name of a pod with the label, its owners, the rest of it)
    "it has the label and no owner": ("c-1", (), RUNNING),
    "it is called otherwise": ("evil", (), RUNNING),
    "of another workload": ("c-1", (owner("ReplicaSet", "c", "uid-rs"),), RUNNING),
    "of a StatefulSet of that name that is gone": ("c-1", (owner("StatefulSet", "c", "uid-old"),), RUNNING),
    "owned, and managed by nobody": ("c-1", (owner("StatefulSet", "c", "SET", controller=False),), RUNNING),
    "one of ours that has ended: its address may be another's by now": (
        "c-1",
        (owner("StatefulSet", "c", "SET"),),
        {"status": {"podIP": "10.0.0.1", "phase": "Failed"}},
    ),
    "one of ours that is ending": (
        "c-1",
        (owner("StatefulSet", "c", "SET"),),
        {**RUNNING, "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
    ),
}


@pytest.mark.parametrize(("name", "owners", "rest"), FOREIGN.values(), ids=FOREIGN)
async def test_the_password_is_sent_to_the_pods_of_the_caches_own_statefulset_alone(
    name: str, owners: tuple[dict[str, Any], ...], rest: dict[str, Any]
) -> None:
    api = fake_api.FakeApi()
    async with started(api, PLAIN) as made:
        workload = await make(api, "statefulsets", "c", owner("XsldCache", "c", cache_uid(made)), spec={})
        await make(api, "pods", "c-0", owner("StatefulSet", "c", workload), **RUNNING)
        theirs = tuple({**it, "uid": workload} if it["uid"] == "SET" else it for it in owners)
        await make(api, "pods", name, *theirs, **rest)

        assert ["c-0"] == await asked(api, made)
        with pytest.raises(LookupError):
            made.groups.target(PLACE, name)


async def test_a_statefulset_that_is_not_the_caches_vouches_for_nobody() -> None:
    api = fake_api.FakeApi()
    async with started(api, PLAIN) as made:
        workload = await make(api, "statefulsets", "c", owner("XsldCache", "c", "another"), spec={})
        await make(api, "pods", "c-0", owner("StatefulSet", "c", workload), **RUNNING)

        with pytest.raises(source.SourceError, match="no pod with an address belongs to StatefulSet c"):
            await asked(api, made)


async def test_pods_of_somebody_else_are_not_seen_at_all() -> None:
    api = fake_api.FakeApi()
    async with started(api, PLAIN) as made:
        workload = await make(api, "statefulsets", "c", owner("XsldCache", "c", cache_uid(made)), spec={})
        await make(api, "pods", "c-0", owner("StatefulSet", "c", workload), **RUNNING)
        await make(api, "pods", "c-1", owner("ReplicaSet", "c", "uid-rs"), **RUNNING)
        await make(api, "pods", "evil", **RUNNING)
        await make(api, "persistentvolumeclaims", "mine", spec={})
        await asked(api, made)
        obj = made.find(*PLACE)
        assert obj is not None

        objects = freshness.value_of(made.observe(obj, states.NOW).objects)
        assert objects is not None
        assert (["c-0"], []) == ([pod.name for pod in objects.pods], list(objects.volumes))


async def test_that_no_pod_is_there_is_an_answer() -> None:
    async with started(fake_api.FakeApi(), PLAIN) as made:
        assert [] == await asked(fake_api.FakeApi(), made)


# --- what was not asked --------------------------------------------------------------------------------------------


async def test_as_long_as_the_secret_is_not_read_nothing_is_known_of_the_group() -> None:
    """An empty answer would say that nobody answers, and show a healthy cache as down at each start of the operator."""
    async with started(fake_api.FakeApi(), NAMED) as made:
        obj = made.find(*PLACE)
        assert obj is not None
        with pytest.raises(source.SourceError) as raised:
            await made.groups.poll(PLACE)

        assert freshness.NOT_YET == raised.value.reason


async def test_as_long_as_the_pods_are_not_listed_nothing_is_known_of_the_group() -> None:
    async with started(fake_api.FakeApi(), PLAIN) as made:
        made.groups._admins[PLACE] = ("", Asked())
        with pytest.raises(source.SourceError) as raised:
            await made.groups.poll(PLACE)

        assert freshness.NOT_YET == raised.value.reason


async def test_a_secret_that_is_wrong_is_why_nobody_is_asked() -> None:
    async with started(fake_api.FakeApi(), NAMED) as made:
        obj = made.find(*PLACE)
        assert obj is not None
        await fake_api.until(lambda: not isinstance(made.observe(obj, states.NOW).credentials, freshness.Failed))
        with pytest.raises(source.SourceError, match="can't be asked: there is no Secret given"):
            await made.groups.poll(PLACE)


# --- certificates --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tls", "verified"),
    [
        (types.Tls(), False),
        (types.Tls(insecure_skip_verify=False), True),
        (types.Tls(ca_secret_ref="ca"), True),  # which is why it was given
        (types.Tls(ca_secret_ref="ca", insecure_skip_verify=False), True),
    ],
)
def test_certificates_are_verified_where_it_is_said_by_whom_they_are_signed(tls: types.Tls, verified: bool) -> None:
    assert verified is tls.verified


# --- what came of a request ------------------------------------------------------------------------------------------

OUTCOMES: dict[str, tuple[Exception | None, bool]] = {
    # id: (what is raised, whether it was certainly not carried out)
    "it was taken": (None, False),
    "no answer": (admin.AdminError(answers.Fault.TIMEOUT, "no answer", maybe=True), False),
    "no connection": (admin.AdminError(answers.Fault.UNREACHABLE, "no connection"), True),
    "another task runs": (admin.AdminError(None, "busy", status=409), True),
    "nobody to send it to": (LookupError("c-1 has no address"), True),
}


@pytest.mark.parametrize(("error", "unsent"), OUTCOMES.values(), ids=OUTCOMES)
async def test_what_was_certainly_not_carried_out_need_not_be_waited_for(error: Exception | None, unsent: bool) -> None:
    async def work() -> decision.Outcome:
        if error is not None:
            raise error
        return decision.Ok()

    async with started(fake_api.FakeApi(), PLAIN) as made:
        await made.groups.attempt("it", work(), decision.Conflict)
        assert unsent is made.groups.unsent("it")
        assert not made.groups.unsent("another")


# --- who is the whole group ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", ["", "c-0"])
async def test_who_was_named_as_the_whole_group_is_read_from_the_scripts(before: str) -> None:
    """While nobody answers it stays as it is."""
    api = fake_api.FakeApi()
    async with started(api, PLAIN) as made:
        uid = cache_uid(made)
        await make(api, "statefulsets", "c", owner("XsldCache", "c", uid), spec={})
        await make(api, "configmaps", "c-scripts", owner("XsldCache", "c", uid), data={build.ALONE: before})
        assert [] == await asked(api, made)
        obj = made.find(*PLACE)
        assert obj is not None

        objects = freshness.value_of(made.observe(obj, states.NOW).objects)
        assert objects is not None
        assert before == next(it.body["data"] for it, _ in objects.children if it.name == "c-scripts")[build.ALONE]


async def test_right_before_an_act_nobody_to_ask_is_nobody_who_agrees() -> None:
    async with started(fake_api.FakeApi(), PLAIN) as made:
        assert answers.Polled() == await made.groups.look(PLACE)
