"""Two operators: handover after a stop and a crash, a leader that sleeps past its lease, a Lease that is deleted."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import threading
import time
from collections.abc import AsyncIterator

from moorage.api import builtin
from moorage.kube import client as kube_client
from moorage.kube import credentials, errors
from moorage.kube.http import transport
from moorage.runtime.leading import election
from tests.api.runtime import operate, widget

LASTING = election.Timing(duration=60, renew=50, retry=0.2)
"""No lease runs out while a test lasts, however slow the machine."""


async def free_lease(client: kube_client.Client, namespace: str) -> None:
    """As an installation brings it, so that the first leader does not wait."""
    body = {
        "apiVersion": builtin.LEASE.api_version,
        "kind": builtin.LEASE.kind,
        "metadata": {"name": "moorage", "namespace": namespace},
    }
    await client.create(builtin.LEASE, namespace, body, field_manager="test")


@contextlib.asynccontextmanager
async def pair(
    client: kube_client.Client, user: operate.User, timing: election.Timing = LASTING
) -> AsyncIterator[tuple[operate.Operator, operate.Operator]]:
    """A leader that has a Widget ready, and a standby with filled caches."""
    await free_lease(client, user.namespace)
    async with operate.operating(client, user.namespace, elect=True, timing=timing) as first:
        await operate.until(lambda: first.leads)
        await user.create("one", text="a")
        await user.ready("one")
        async with operate.operating(client, user.namespace, elect=True, timing=timing) as second:
            await operate.until(lambda: second.manager._synced)
            yield first, second


async def test_a_stop_hands_over_at_once(client: kube_client.Client, user: operate.User) -> None:
    async with pair(client, user) as (first, second):
        assert await first.stop() is True
        begun = time.monotonic()
        await operate.until(lambda: second.leads)
        print(f"\nleaderless after a stop: {time.monotonic() - begun:.3f} s")
        assert time.monotonic() - begun < LASTING.duration, "not by waiting for the lease to run out"
        await user.change("one", {"spec": {"text": "b"}})
        assert (await user.ready("one")).status.text == "b"
        assert second.wrote == ["PATCH configmaps", "PATCH widgets/status"]


async def test_a_crash_is_taken_over_after_a_whole_lease(client: kube_client.Client, user: operate.User) -> None:
    async with pair(client, user, operate.TIMING) as (first, second):
        await first.kill()
        lease = await client.get(builtin.LEASE, user.namespace, "moorage", as_=election.Lease)
        await user.change("one", {"spec": {"text": "b"}})
        await operate.until(lambda: second.leads)
        took = time.time() - datetime.datetime.fromisoformat(lease.spec.renew_time).timestamp()
        print(f"\nleaderless after a crash: {took:.3f} s of a lease of {operate.TIMING.duration:g} s")
        assert took >= operate.TIMING.duration
        assert (await user.ready("one")).status.text == "b"


async def test_a_stop_waits_for_a_task_and_only_then_hands_over(client: kube_client.Client, user: operate.User) -> None:
    async with pair(client, user) as (first, second):
        begun, end = asyncio.Event(), asyncio.Event()

        async def work() -> None:
            begun.set()
            await end.wait()

        first.kind.work = work
        await user.change("one", {"spec": {"task": "t1"}})
        await begun.wait()
        stopped = asyncio.create_task(first.stop())
        renewals = len(first.wire.other)
        await operate.until(lambda: len(first.wire.other) > renewals + 3)
        assert (second.leads, second.wrote) == (False, [])
        end.set()
        assert await stopped is True
        await operate.until(lambda: second.leads)
        found = await user.ready("one")
        assert (found.status.begun, found.status.finished) == ("t1", "t1"), "run again: only its start was written down"


async def test_a_deleted_lease_ends_its_leader_and_never_makes_two(
    client: kube_client.Client, user: operate.User
) -> None:
    async with pair(client, user, operate.TIMING) as (first, second):
        await client.delete(builtin.LEASE, user.namespace, "moorage", propagation="Background")
        both = []

        def led() -> bool:
            both.append(first.leads and second.leads)
            return second.leads

        await operate.until(led)
        assert not any(both)
        assert await first.task is False
        await user.change("one", {"spec": {"text": "b"}})
        assert (await user.ready("one")).status.text == "b"


class Sleeper:
    """A leader on a loop of its own in a thread, which a test can bring to a halt as SIGSTOP would."""

    def __init__(self, namespace: str, kubeconfig: str) -> None:
        self._namespace, self._kubeconfig = namespace, kubeconfig
        self.leads, self.halt, self.halted, self.go_on = (threading.Event() for _ in range(4))
        self.result: bool | None = None
        self.wrote_after = -1
        self.thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self.thread.start()

    async def _run(self) -> None:
        wire = transport.HttpTransport(await credentials.from_kubeconfig(self._kubeconfig))
        it = operate.Operator(kube_client.Client(wire), self._namespace, elect=True, timing=operate.TIMING)
        it.kind.on_observe = self._on_observe
        await operate.until(lambda: it.leads)
        self.leads.set()
        self.it = it
        self.result = await it.task
        self.wrote_after = len(it.wire.writes) + len(it.wire.other) - self.before
        await wire.close()

    def _on_observe(self) -> None:
        """Called in the midst of a pass, before its writes."""
        if self.halt.is_set():
            self.before = len(self.it.wire.writes) + len(self.it.wire.other)
            self.halted.set()
            self.go_on.wait(operate.PATIENCE)


async def test_a_leader_that_slept_past_its_lease_writes_nothing_when_it_wakes(
    client: kube_client.Client, user: operate.User, cluster: str
) -> None:
    await free_lease(client, user.namespace)
    sleeper = Sleeper(user.namespace, cluster)
    await operate.until(sleeper.leads.is_set)
    async with operate.operating(client, user.namespace, elect=True, timing=operate.TIMING) as second:
        sleeper.halt.set()
        await user.create("one", text="a")  # the sleeper is about to set its finalizer
        await operate.until(sleeper.halted.is_set)
        await operate.until(lambda: second.leads)
        assert (await user.ready("one")).status.text == "a"
        await user.change("one", {"spec": {"text": "b"}})
        sleeper.go_on.set()
        await operate.until(lambda: not sleeper.thread.is_alive())
        assert sleeper.result is False
        assert sleeper.wrote_after == 0
        assert (await user.ready("one")).status.text == "b"


async def test_a_handover_with_many_warm_objects_writes_nothing_and_is_as_quick(
    client: kube_client.Client, user: operate.User
) -> None:
    names = [f"w{n}" for n in range(100)]
    async with pair(client, user) as (first, second):
        for name in names:
            await user.create(name, text="a")
        for name in names:
            await user.ready(name)
        latest = {name: (await user.ready(name)).metadata.resource_version for name in names}
        await operate.until(lambda: all(_knows(second, user.namespace, *each) for each in latest.items()))
        assert await first.stop() is True
        begun = time.monotonic()
        await operate.until(lambda: second.leads)
        print(f"\nleaderless with {len(names)} objects: {time.monotonic() - begun:.3f} s")
        await operate.until(lambda: second.passes > len(names) and second.idle)
        assert [] == second.wrote


def _knows(it: operate.Operator, namespace: str, name: str, version: str) -> bool:
    """Whether its caches hold that version of the Widget, and its child."""
    found = it.kind.find(namespace, name)
    children = [each for each in it.manager._informers.all() if each.scope.resource == builtin.CONFIG_MAP]
    is_latest = found is not None and version == found.metadata.resource_version
    return is_latest and any(each.get(namespace, f"{name}-widget") for each in children)


async def test_the_lease_is_renewed_and_no_other_object_is_touched(
    client: kube_client.Client, user: operate.User
) -> None:
    await free_lease(client, user.namespace)
    async with operate.operating(client, user.namespace, elect=True, timing=LASTING) as it:
        await operate.until(lambda: len(it.wire.other) > 5)
        assert {write.what for write in it.wire.other} == {"PATCH leases"}
        assert it.wrote == []
        with contextlib.suppress(errors.NotFound):
            await client.get(widget.resource(), user.namespace, "none")
