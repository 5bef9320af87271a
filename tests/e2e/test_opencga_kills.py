"""An installation whose agents, operator and MASTER end again and again, while it is made and while it is upgraded.

The upgrade is by a migration that forbids the old version to touch the catalog.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from . import communities, tools

END = "import os, signal; os.kill(1, signal.SIGTERM)"


@pytest.fixture
def place(moorage: tools.Cluster, registry: str) -> Iterator[communities.Community]:
    """A namespace with a database, and nothing installed."""
    with communities.switched_on(moorage, registry) as cluster:
        made = communities.Community(cluster)
        try:
            yield made
        finally:
            made.report()
            made.delete()


def end(demo: communities.Community, round_: int) -> None:
    """One of them ends, by turns: an agent, the operator, and now and then the MASTER's whole pod."""
    pods = sorted(demo.pods())
    match round_ % 6:
        case 2:
            demo.cluster.kubectl(
                "-n", tools.NAMESPACE, "delete", "pod", "-l", "app.kubernetes.io/name=moorage", "--wait=false"
            )
        case 5:
            demo.kubectl("delete", "pod", "demo-client-0", "--wait=false", check=False)
        case _ if pods:
            pod = pods[round_ % len(pods)]
            command = ("exec", pod, "-c", "opencga-agent", "--", "/usr/bin/python3", "-I", "-c", END)
            demo.kubectl(*command, check=False)


def through(demo: communities.Community, version: str, rounds: int) -> None:
    """End somebody so many times, then let all be, until all is well."""
    for round_ in range(rounds):
        end(demo, round_)
        time.sleep(3.0)  # the pace of kills
    demo.until(f"all are of {version}", lambda said: said["version"] == version)


@pytest.mark.campaign
def test_whoever_ends_the_catalog_is_installed_and_migrated_once(place: communities.Community) -> None:
    """And no server touches a catalog that it may not, in all that time."""
    place.apply()
    through(place, "5.0.0", 9)
    place.set(offline="yes")
    with communities.Queries(place) as queries:
        place.change(version="5.0.1", upgrade={"migration": "Offline"})
        through(place, "5.0.1", 12)
    catalog = place.catalog()

    assert (1, ["5.0.0", "5.0.1"], 0) == (catalog["installs"], catalog["migrated"], catalog["forbidden"])
    assert queries.answered
    print(json.dumps({"answered": len(queries.answered), "failed": len(queries.failed), "catalog": catalog}))
