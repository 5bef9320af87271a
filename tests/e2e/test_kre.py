"""KRE Runtimes with running pods: the product's own walk through, then what is done to one in its life.

Its servers are of `images/kre`: NATS, MinIO, InfluxDB and nginx themselves, FerretDB in mongo's place.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from . import runtimes, tools

SAMPLE = tools.ROOT / "examples" / "kre" / "runtime.yaml"
OF_THE_SAMPLE = {"kre-minio-0", "kre-mongo-0", "kre-nats-0", "kre-nats-1"}
FACTS = ("MongoReady", "NatsReady", "ObjectStoreReady", "MetricsReady")


@pytest.fixture(scope="module")
def demo(kre: tools.Cluster) -> Iterator[runtimes.Runtime]:
    """The sample, applied; the tests of this module go on from one another's end."""
    one = runtimes.Runtime(kre, "kre-demo")
    one.kubectl("apply", "-f", str(SAMPLE))
    try:
        yield one
    finally:
        print(kre.kubectl("get", "runtimes,pods,pvc,events", "-n", "kre-demo", "-o", "wide", check=False))
        print(kre.kubectl("get", "runtimes", "-A", "-o", "yaml", check=False))
        one.delete()
        kre.kubectl("delete", "namespace", "kre-demo", "--timeout=180s")


def test_the_sample_comes_up(demo: runtimes.Runtime) -> None:
    """Definition, rights, the sample, and its four pods, as the product's own page has it."""
    said = demo.ready()
    conditions = {each["type"]: each["status"] for each in said["conditions"]}

    assert {*OF_THE_SAMPLE, "kre-influxdb-0"} <= set(demo.pods())
    assert dict.fromkeys(FACTS, "True") == {fact: conditions[fact] for fact in FACTS}
    assert "False" == conditions["SecretsKept"]  # the sample's stand in clear
    assert ("STARTED", 2) == (said["phase"], said["natsServers"])
    assert {("mongo", 1), ("nats", 2), ("minio", 1), ("influxdb", 1)} == {
        (each["name"], each["ready"]) for each in said["components"]
    }


def test_people_see_it(demo: runtimes.Runtime) -> None:
    demo.ready()
    shown = demo.cluster.run(sys.executable, "-m", "moorage", "status", "runtime/demo", "-n", demo.namespace)

    assert "STARTED" in shown
    assert "4 of 4 ready" in shown
    assert "nats  2 of 2" in shown


def test_its_servers_do_what_they_are_there_for(demo: runtimes.Runtime) -> None:
    """Asked by clients of their own: what moorage says of them is so."""
    demo.ready()
    with demo.mongo() as mongo:
        status = mongo.admin.command("replSetGetStatus")
        mongo.data.greetings.insert_one({"hello": "world"})
    stream = demo.jetstream("STREAM.CREATE.greetings", name="greetings", subjects=["hello"], num_replicas=2)

    assert ("rs0", ["kre-mongo-0.kre-mongo.kre-demo.svc:27017"]) == (
        status["set"],
        [member["name"] for member in status["members"]],
    )
    assert stream["config"]["num_replicas"] == 2
    assert b'"kre"' in demo.http("service/kre-influxdb", 8086, "/query?q=SHOW+DATABASES")


def test_at_rest_nothing_is_written(demo: runtimes.Runtime, account: str) -> None:
    demo.ready()
    mark = tools.quiet(account, for_seconds=20.0)

    assert [] == tools.told(tools.writes(tools.audit(mark), account))


@pytest.mark.parametrize("pod", ["kre-mongo-0", "kre-nats-0"])
def test_a_pod_that_ends_comes_back_with_what_it_held(demo: runtimes.Runtime, pod: str) -> None:
    demo.ready()
    before = demo.pods()[pod]
    demo.kubectl("delete", "pod", pod)

    tools.wait(f"{pod} is another and ready", lambda: demo.pods().get(pod, before) != before, within=runtimes.WITHIN)
    demo.ready()
    with demo.mongo() as mongo:
        assert "world" == (mongo.data.greetings.find_one() or {}).get("hello")
    assert "greetings" == demo.jetstream("STREAM.INFO.greetings")["config"]["name"]


def test_another_beside_it_in_a_namespace_of_its_own(demo: runtimes.Runtime) -> None:
    """It names no password, so that some are made; neither's account reaches the other's namespace."""
    demo.ready()
    other = runtimes.Runtime(demo.cluster, "kre-other")
    try:
        other.apply(**runtimes.SMALL)
        said = other.ready()
        conditions = {each["type"]: each for each in said["conditions"]}
        assert "MetricsOff" == conditions["MetricsReady"]["reason"]
        assert "True" == conditions["SecretsKept"]["status"]
        assert demo.credentials()["mongoPassword"] != other.credentials()["mongoPassword"]
        with other.mongo() as mongo:
            assert mongo.data.greetings.find_one() is None
        demo.ready()
        for mine, place, may in (("kre-demo", "kre-demo", True), ("kre-demo", "kre-other", False)):
            assert may is can_read_secrets(demo.cluster, mine, place)
    finally:
        other.edit(reclaim="Delete")
        other.delete()
        other.nothing_is_left()
        demo.cluster.kubectl("delete", "namespace", "kre-other", "--timeout=180s")
    demo.ready()


def can_read_secrets(cluster: tools.Cluster, account: str, place: str) -> bool:
    """Whether the account of that namespace reads Secrets of that place."""
    user = f"system:serviceaccount:moorage-accounts:kre.{account}"
    return "yes" in cluster.kubectl("auth", "can-i", "get", "secrets", "-n", place, "--as", user, check=False)


def test_made_anew_it_goes_on_from_what_was_kept(demo: runtimes.Runtime) -> None:
    """By default neither volumes nor the Secret go with it, as the one can't be read without the other."""
    demo.ready()
    kept = demo.credentials()
    demo.delete()

    assert {"data-kre-mongo-0", "data-kre-nats-0", "data-kre-nats-1", "data-kre-minio-0", "data-kre-influxdb-0"} == {
        name.removeprefix("PersistentVolumeClaim/") for name in demo.left() if name.startswith("Persistent")
    }
    demo.kubectl("apply", "-f", str(SAMPLE))
    demo.ready()
    assert kept == demo.credentials()
    with demo.mongo() as mongo:
        assert "world" == (mongo.data.greetings.find_one() or {}).get("hello")


def test_a_volume_grows_under_its_server(demo: runtimes.Runtime) -> None:
    demo.ready()
    before = demo.pods()
    demo.edit(mongo={"storage": {"size": "3Gi"}})

    def capacity() -> bool:
        claim = demo.cluster.get("pvc", "data-kre-mongo-0", "-n", demo.namespace)
        return "3Gi" == claim["status"]["capacity"]["storage"]

    tools.wait("mongo's volume has 3Gi", capacity, within=runtimes.WITHIN)
    demo.ready()
    assert before == demo.pods()


def test_nats_grows_and_shrinks_to_no_fewer_than_three(demo: runtimes.Runtime) -> None:
    """The stream is there all along; of two servers none may be away. How it shrinks is in test_kre_nats."""
    demo.ready()
    demo.edit(nats_streaming={"replicas": 3})

    assert 3 == demo.ready()["natsServers"]
    assert "kre-nats-2" in demo.pods()
    assert "greetings" == demo.jetstream("STREAM.INFO.greetings")["config"]["name"]
    demo.edit(nats_streaming={"replicas": 2})
    assert "NATS may have streams on 3 servers" in demo.stopped("NatsTooFew")
    assert "kre-nats-2" in demo.pods()
    demo.edit(nats_streaming={"replicas": 3})
    demo.ready()


def test_reclaimed_nothing_is_left(demo: runtimes.Runtime) -> None:
    demo.edit(reclaim="Delete")
    demo.delete()

    demo.nothing_is_left()
