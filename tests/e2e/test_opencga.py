"""An installation of OpenCGA with running pods, under the chart's rights and restricted Pod Security."""

from __future__ import annotations

import base64
import sys
from collections.abc import Iterator

import pytest

from . import communities, tools


@pytest.fixture(scope="module")
def opencga(moorage: tools.Cluster, registry: str) -> Iterator[tools.Cluster]:
    """See `communities.switched_on`."""
    with communities.switched_on(moorage, registry) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def demo(opencga: tools.Cluster) -> Iterator[communities.Community]:
    """The installation, applied; the tests of this module go on from one another's end."""
    made = communities.Community(opencga)
    made.apply()
    try:
        yield made
    finally:
        made.report()
        made.delete()


def test_it_is_there_as_the_seed_says(demo: communities.Community) -> None:
    """A pod for each member and one for the MASTER, each with a volume of its own; a query is answered."""
    status = demo.ready()
    pods = demo.pods()

    assert {"demo-0", "demo-1", "demo-client-0"} == set(pods)
    for pod in pods.values():
        assert 1 == len(pod["spec"]["initContainers"])
        assert 2 == len(pod["spec"]["containers"])
    claims = demo.cluster.items("pvc", "-n", communities.PLACE)
    assert {f"data-volume-{name}" for name in pods} == {it["metadata"]["name"] for it in claims}
    assert ("Running", "5.0.0", "5.0.0") == (status["phase"], status["version"], status["catalogVersion"])
    assert {"5.0.0"} == {it["version"] for it in status["memberStatuses"]}
    assert "5.0.0" == tools.wait("an answer to a query", demo.query)
    catalog = demo.catalog()
    assert (1, ["5.0.0"], 0) == (catalog["installs"], catalog["migrated"], catalog["forbidden"])


def test_people_see_it(demo: communities.Community) -> None:
    """Members with their roles, and the catalog's version."""
    demo.ready()
    shown = demo.cluster.run(
        sys.executable, "-m", "moorage", "status", "opencgacommunity/demo", "-n", communities.PLACE
    )

    assert "3 of 3 ready" in shown
    assert "demo-client-0  master  5.0.0" in shown


def test_at_rest_nothing_is_written(demo: communities.Community, account: str) -> None:
    """Neither by moorage itself nor by its account of the namespace, which acts by its leave."""
    demo.ready()
    mark = tools.quiet(account, for_seconds=12.0)

    assert [] == tools.told(tools.writes(tools.audit(mark), account))


def test_a_database_that_is_gone_restarts_nobody(demo: communities.Community) -> None:
    """It is told by what the servers say, and heals by itself."""
    demo.ready()
    before = demo.restarts()
    demo.database("down")
    demo.until("it is told", lambda said: "CatalogMongoDB" in said["message"], condition="Healthy=False")
    demo.database("up")
    demo.ready()
    assert before == demo.restarts()


def test_another_configuration_restarts_each_server_once_and_no_pod(demo: communities.Community) -> None:
    """By their agents, one after another."""
    before, restarts = demo.ready()["configurationVersion"], demo.restarts()
    pods = {name: pod["metadata"]["uid"] for name, pod in demo.pods().items()}
    begun = {name: log(demo, name).count("INFO: up, of version") for name in pods}
    with communities.Queries(demo) as queries:
        demo.change(additionalOpenCGAConfig={"logLevel": "debug"})
        demo.until("it is applied", lambda said: said["configurationVersion"] > before)

    assert pods == {name: pod["metadata"]["uid"] for name, pod in demo.pods().items()}
    assert restarts == demo.restarts()
    assert queries.answered
    for name in pods:
        assert begun[name] + 1 == log(demo, name).count("INFO: up, of version")


def log(demo: communities.Community, pod: str) -> str:
    """What the server in that pod says."""
    return demo.kubectl("logs", pod, "-c", "opencga-client" if "client" in pod else "opencga-rest")


def test_a_server_that_is_switched_off_gets_no_queries(demo: communities.Community) -> None:
    """Its pod stays, and is no endpoint; nobody waits for it, and no query fails as it goes and comes back."""
    demo.ready()
    pods = {name: pod["metadata"]["uid"] for name, pod in demo.pods().items()}
    with communities.Queries(demo) as queries:
        demo.change(automationConfig={"processes": [{"name": "demo-1", "disabled": True}]})
        demo.until("its server has stopped", lambda _: demo.endpoints() == {"demo-0"})
        demo.change(automationConfig={"processes": []})
        demo.until("both serve", lambda _: demo.endpoints() == {"demo-0", "demo-1"})

    assert ([], True) == (queries.failed, bool(queries.answered))
    assert pods == {name: pod["metadata"]["uid"] for name, pod in demo.pods().items()}


def test_an_upgrade_under_queries_by_a_migration_that_forbids_the_old_version(demo: communities.Community) -> None:
    """Held until it is allowed; then no server touches the catalog, and no query fails before or after."""
    demo.ready()
    demo.set(offline="yes")
    with communities.Queries(demo) as queries:
        queries.until_answered_by("5.0.0")
        demo.change(version="5.0.1")
        held = demo.until("it is held", lambda said: said["phase"] == "Failed", condition="Migrated=False")
        assert "the old version may not touch the catalog during to-5.0.1" in held["message"]
        assert [] == queries.failed
        demo.change(upgrade={"migration": "Offline"})
        demo.until("all are of the new version", lambda said: said["version"] == "5.0.1")
        queries.until_answered_by("5.0.1")
    assert not queries.failed_outside_one_window(), queries.told
    catalog = demo.catalog()

    assert (1, ["5.0.0", "5.0.1"], 0) == (catalog["installs"], catalog["migrated"], catalog["forbidden"])
    images = {c["image"] for pod in demo.pods().values() for c in pod["spec"]["containers"]}
    assert {"opencb/opencga-base:5.0.1", "moorage.dev/opencga-agent:0.1.0"} == images
    assert {"5.0.0", "5.0.1"} == set(queries.answered)


def test_one_more_and_one_less(demo: communities.Community) -> None:
    """A member comes and is ready, and goes again."""
    demo.ready()
    demo.kubectl("scale", "opencgacommunity/demo", "--replicas=3")
    demo.until("three are ready", lambda said: said["currentOpenCGARESTMembers"] == 3)
    assert {"demo-0", "demo-1", "demo-2", "demo-client-0"} == set(demo.pods())
    demo.kubectl("scale", "opencgacommunity/demo", "--replicas=1")
    demo.until("one is left", lambda said: said["currentOpenCGARESTMembers"] == 1)
    assert {"demo-0", "demo-client-0"} == set(demo.pods())


def test_no_password_is_where_it_may_not_be(demo: communities.Community) -> None:
    """Neither in objects but the Secret itself, nor in what containers log."""
    demo.ready()
    word, coded = communities.PASSWORD, base64.b64encode(communities.PASSWORD.encode()).decode()
    objects = demo.kubectl("get", "pods,statefulsets,events,ocbc,services", "-o", "json")
    document = demo.cluster.get("secret", "demo-config", "-n", communities.PLACE)["data"]["cluster-config.json"]
    logs = [demo.kubectl("logs", pod, "--all-containers") for pod in demo.pods()]

    for text in (objects, base64.b64decode(document).decode(), *logs):
        assert word not in text
        assert coded not in text


def test_it_goes_with_all_that_it_had(demo: communities.Community) -> None:
    """Volumes too, as its spec says; what it owns goes after it, by the garbage collector."""
    demo.delete()

    assert not demo.pods()
    assert demo.cluster.get("rolebinding", "moorage-opencga", "-n", communities.PLACE) is None

    def left() -> bool:
        kinds = "statefulsets,services,poddisruptionbudgets,secrets,pvc"
        found = {it["metadata"]["name"] for it in demo.cluster.items(kinds, "-n", communities.PLACE)}
        if more := found - {"mongo", "demo-admin-password"}:
            raise tools.Failed(", ".join(sorted(more)))
        return True

    tools.wait("nothing is left of it", left, within=communities.WITHIN)
