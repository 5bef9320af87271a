"""An installation whose agents, operator and MASTER end again and again, while it is made and while it is upgraded."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from . import test_opencga as life
from . import tools

END = "import os, signal; os.kill(1, signal.SIGTERM)"


@pytest.fixture
def opencga(moorage: tools.Cluster, registry: str) -> Iterator[tools.Cluster]:
    """moorage with OpenCGA switched on."""
    with life.switched_on(moorage, registry) as cluster:
        yield cluster


@pytest.fixture
def place(opencga: tools.Cluster) -> Iterator[life.Demo]:
    """A namespace with a database, and nothing installed."""
    moorage = opencga
    moorage.kubectl("delete", "namespace", life.PLACE, "--ignore-not-found", "--timeout=240s")
    moorage.apply(life.namespace())
    moorage.apply(*life.DATABASE, life.secret())
    moorage.kubectl("-n", life.PLACE, "wait", "pod/mongo", "--for=condition=Ready", "--timeout=240s")
    made = life.Demo(moorage)
    try:
        yield made
    finally:
        print(moorage.kubectl("-n", life.PLACE, "get", "ocbc,pod", "-o", "wide", check=False))
        print(moorage.kubectl("-n", life.PLACE, "get", "ocbc/demo", "-o", "jsonpath={.status}", check=False))
        for pod in made.pods():
            print(moorage.kubectl("-n", life.PLACE, "logs", pod, "--all-containers", "--tail=25", check=False))
        moorage.kubectl("-n", life.PLACE, "delete", "ocbc/demo", "--ignore-not-found", "--timeout=240s", check=False)
        moorage.kubectl("delete", "namespace", life.PLACE, "--wait=false")


def end(demo: life.Demo, round_: int) -> None:
    """One of them ends, by turns: an agent, the operator, and now and then the MASTER's whole pod."""
    pods = sorted(demo.pods())
    match round_ % 6:
        case 2:
            demo.cluster.kubectl(
                "-n", tools.NAMESPACE, "delete", "pod", "-l", "app.kubernetes.io/name=moorage", "--wait=false"
            )
        case 5:
            demo.cluster.kubectl("-n", life.PLACE, "delete", "pod", "demo-client-0", "--wait=false", check=False)
        case _ if pods:
            pod = pods[round_ % len(pods)]
            command = ("exec", pod, "-c", "opencga-agent", "--", "/usr/bin/python3", "-I", "-c", END)
            demo.cluster.kubectl("-n", life.PLACE, *command, check=False)


def through(demo: life.Demo, version: str, rounds: int) -> dict[str, Any]:
    """End somebody so many times, then let all be; the status once all is well."""
    for round_ in range(rounds):
        end(demo, round_)
        time.sleep(3.0)  # the pace of kills
    return tools.wait(
        f"all are of {version}",
        lambda: said if (said := demo.stands("Ready")) and said["version"] == version else None,
        within=2 * life.WITHIN,
    )


@pytest.mark.campaign
def test_whoever_ends_the_catalog_is_installed_and_migrated_once(place: life.Demo) -> None:
    """And no server touches a catalog that it may not, in all that time."""
    place.cluster.apply(life.community())
    through(place, "5.0.0", 9)
    with life.Queries(place.cluster) as queries:
        place.change(version="5.0.1")
        through(place, "5.0.1", 12)
    catalog = place.catalog()

    assert (1, ["5.0.0", "5.0.1"], 0) == (catalog["installs"], catalog["migrated"], catalog["forbidden"])
    assert queries.answered
    print(json.dumps({"answered": queries.answered, "failed": len(queries.failed), "catalog": catalog}))
