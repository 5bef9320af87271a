"""The operator's pod killed -9 at ten moments of a cache's life, with running members: no step twice, nothing lost.

In `tests/api/xsld/test_kills.py` every write and every admin call is such a moment; here it is ten, drawn by the seed
from the writes of each chapter, on the whole product.

    MOORAGE_TEST_SEED=7 pytest tests/e2e/test_xsld_kills.py -m campaign
"""

from __future__ import annotations

import collections
import json
import os
import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from . import caches, tools

SEED = int(os.environ.get("MOORAGE_TEST_SEED", "1"))
WRITES = {"create": 30, "up": 30, "down": 20, "roll": 20, "delete": 8}
"""About how many writes the operator needs for each chapter."""

KILLS = 2
"""In each chapter."""


@pytest.fixture
def cache(moorage: tools.Cluster) -> Iterator[caches.Cache]:
    """A cache of three members, not made yet."""
    made = caches.Cache(moorage, "survivor")
    try:
        yield made
    finally:
        print(json.dumps(made.status(), indent=1))
        made.remove()


class Killer:
    """Kills the operator once it has written so often, as often as `moments` says."""

    def __init__(self, cluster: tools.Cluster, account: str, moments: list[int]) -> None:
        self._cluster, self._account, self._moments = cluster, account, moments
        self._mark, self._stop = tools.audit_end(), threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.kills = 0

    def __enter__(self) -> Killer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        for moment in self._moments:
            while len(tools.writes(tools.audit(self._mark), self._account)) < moment:
                if self._stop.wait(0.05):
                    return
            for pod in tools.operators(self._cluster):
                caches.kill(pod)
                words = ["pod", pod["metadata"]["name"], "-n", tools.NAMESPACE]
                self._cluster.kubectl("delete", *words, "--force", "--grace-period=0", "--wait=false", check=False)
            self.kills += 1


@pytest.mark.campaign
def test_ten_kills_change_nothing(cache: caches.Cache, moorage: tools.Cluster, account: str) -> None:
    draw, begun, killed = random.Random(SEED), tools.audit_end(), 0

    def chapter(name: str, change: Callable[[], Any], ended: Callable[[], Any]) -> None:
        nonlocal killed
        moments = sorted(draw.sample(range(1, WRITES[name]), KILLS))
        with Killer(moorage, account, moments) as killer:
            change()
            ended()
        killed += killer.kills
        print(f"seed {SEED}, {name}: killed after writes {moments[: killer.kills]}")

    chapter("create", lambda: cache.apply(size=3), lambda: cache.ready(3))
    chapter("up", lambda: cache.change(size=5), lambda: cache.ready(5))
    chapter("down", lambda: cache.change(size=2), lambda: cache.ready(2))
    tools.wait("the leavers' volumes are gone", lambda: cache.claims() == ["vol-survivor-0", "vol-survivor-1"])
    done = tools.wait("the members tell what they did, through an operator that runs", lambda: commands(cache))
    new = "ibmcom/xsld:8614"
    chapter("roll", lambda: cache.change(image=new), lambda: cache.ready(2, image=new))
    chapter("delete", cache.remove, lambda: tools.wait("no volume is left", lambda: not cache.claims()))

    assert {"NewMemberJoinTaskCommand": 1, "RemoveMemberTaskCommand": 3} == done
    deleted = collections.Counter(
        entry["objectRef"]["name"]
        for entry in tools.audit(begun)
        if entry["verb"] == "delete"
        and entry["objectRef"]["resource"] == "persistentvolumeclaims"
        and entry["user"]["username"] == account
        and entry["responseStatus"]["code"] < 400
    )
    assert dict.fromkeys((f"vol-survivor-{n}" for n in range(5)), 1) == deleted
    assert killed >= 8, "the chapters were shorter than thought"


def commands(cache: caches.Cache) -> dict[str, int]:
    """Joins and leaves that the members which are left have ever carried out; history is on their volumes."""
    count: collections.Counter[str] = collections.Counter()
    for member in cache.status()["memberStatuses"]:
        ask = (
            "import base64,json,ssl,urllib.request as r; c=ssl._create_unverified_context();"
            f"l=base64.b64encode(b'xsadmin:{caches.PASSWORD}').decode();"
            f"q=r.Request('https://{member['podIP']}:9445/wxsadmin/v1/task', headers={{'Authorization': 'Basic '+l}});"
            "print(r.urlopen(q, context=c).read().decode())"
        )
        pod = tools.operators(cache.cluster)[0]["metadata"]["name"]
        told = json.loads(cache.cluster.kubectl("exec", pod, "-n", tools.NAMESPACE, "--", "python3", "-c", ask))
        tasks = told if isinstance(told, list) else told["tasks"]
        count.update(task["command"] for task in tasks if task["command"] in JOINS_AND_LEAVES)
    return dict(count)


JOINS_AND_LEAVES = ("NewMemberJoinTaskCommand", "RemoveMemberTaskCommand")
