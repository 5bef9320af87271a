"""A server that sheds load: it is asked no more often than it wants, and nothing is lost or repeated."""

from __future__ import annotations

import pytest

from moorage.kube import client as kube_client
from tests.api.runtime import operate
from tests.api.runtime.test_lifecycle import BIRTH

N = 20


@pytest.mark.parametrize("verdict", ["429 wait", "503 wait"])
async def test_all_wait_together_as_long_as_the_server_asks(
    client: kube_client.Client, user: operate.User, verdict: str
) -> None:
    def shed(_: operate.Write) -> str:
        """The first writes find a busy server, and each first after a pause."""
        return verdict if len(tries) < 3 else ""

    def fault(write: operate.Write) -> str:
        said = shed(write)
        if said and (not tries or write.at > tries[-1] + 0.9):
            tries.append(write.at)
        return said

    tries: list[float] = []
    for n in range(N):
        await user.create(f"w{n}", text="a")
    async with operate.operating(client, user.namespace, fault=fault) as it:
        for n in range(N):
            await user.ready(f"w{n}")
        writes = it.wire.writes
        refused = [write for write in writes if not write.applied]
        applied = [write.what for write in writes if write.applied]

    print(f"\n{len(refused)} of {len(writes)} writes were refused, over {tries[-1] - tries[0]:.1f} s")
    assert sorted(applied) == sorted(BIRTH * N)
    workers = it.manager._settings.workers
    assert len(refused) <= workers + 2, "who was under way, then one at a time"
    first = refused[0].at
    assert not [write for write in writes if first + 0.5 < write.at < first + 1], "the pause"
