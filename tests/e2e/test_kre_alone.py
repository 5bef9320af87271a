"""moorage beside its Runtime, in that namespace alone, as the product's own page has it.

One for the whole cluster sees that Runtime, too.

pytest tests/e2e/test_kre_alone.py -m campaign
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from . import runtimes, tools

pytestmark = pytest.mark.campaign

SAMPLE = tools.ROOT / "examples" / "kre" / "runtime.yaml"
OF_THE_SAMPLE = {"kre-minio-0", "kre-mongo-0", "kre-nats-0", "kre-nats-1"}
PLACE = "kre-alone"
RELEASE = "beside"
OWN = f"system:serviceaccount:{PLACE}:{RELEASE}-moorage"
OF_THE_CLUSTER = f"system:serviceaccount:{tools.NAMESPACE}:moorage"
ACCOUNT = f"system:serviceaccount:moorage-accounts:kre.{PLACE}"


@pytest.fixture(scope="module")
def demo(kre: tools.Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[runtimes.Runtime]:
    """The sample in a namespace with a moorage of its own; the tests of this module go on from one another's end."""
    one = runtimes.Runtime(kre, PLACE)
    file = tmp_path_factory.mktemp("alone") / "values.yaml"
    file.write_text(yaml.safe_dump(values()))
    chart = str(tools.ROOT / "charts" / "moorage")
    try:
        kre.helm("install", RELEASE, chart, "-n", PLACE, "-f", str(file), "--wait", "--timeout=5m")
        one.kubectl("apply", "-f", str(SAMPLE))
        yield one
    finally:
        print(kre.kubectl("get", "runtimes,pods,pvc,events", "-n", PLACE, "-o", "wide", check=False))
        print(kre.kubectl("logs", "-n", PLACE, f"deploy/{RELEASE}-moorage", "--tail=40", check=False))
        one.delete()
        kre.helm("uninstall", RELEASE, "-n", PLACE, "--wait", check=False)
        kre.kubectl("delete", "namespace", PLACE, "--timeout=180s")


def values() -> dict[str, Any]:
    """Of moorage's chart, for a namespace alone."""
    kre = yaml.safe_load(Path(runtimes.VALUES).read_text())["systems"]["kre"]
    off = {each: {"enabled": False} for each in ("collector", "xsld")}
    systems = {**off, "kre": {**kre, "poll": {"busySeconds": 2, "idleSeconds": 5}}}
    return {"namespaceOnly": True, "replicas": 1, "systems": systems}


def test_the_sample_comes_up_by_the_one_in_its_namespace(demo: runtimes.Runtime) -> None:
    """The four pods of the product's own page, with no right beyond the namespace; and its servers answer."""
    said = demo.ready()

    assert {*OF_THE_SAMPLE, "kre-influxdb-0"} <= set(demo.pods())
    assert ("STARTED", 2) == (said["phase"], said["natsServers"])
    with demo.mongo() as mongo:
        assert "rs0" == mongo.admin.command("replSetGetStatus")["set"]
    made = demo.jetstream("STREAM.CREATE.greetings", name="greetings", subjects=["hello"], num_replicas=2)
    assert made["config"]["num_replicas"] == 2


def test_the_one_for_the_whole_cluster_leaves_it_alone(demo: runtimes.Runtime) -> None:
    """It has written nothing there but the Event that says so; all of it was the other one's."""
    demo.ready()

    def told() -> bool:
        found = demo.cluster.items("events", "-n", PLACE, "--field-selector=reason=OtherOperator")
        return any(each["involvedObject"]["kind"] == "Runtime" for each in found)

    tools.wait("an Event says that another one looks after it", told)
    entries = [each for each in tools.audit() if (each.get("objectRef") or {}).get("namespace") == PLACE]
    foreign = [*tools.writes(entries, OF_THE_CLUSTER), *tools.writes(entries, ACCOUNT)]
    assert [] == [each for each in tools.told(foreign) if " events " not in each]
    assert [] != tools.writes(entries, OWN)
    places = {(each.get("objectRef") or {}).get("namespace") for each in tools.writes(tools.audit(), OWN, leases=True)}
    assert {PLACE} == places


def test_at_rest_neither_writes(demo: runtimes.Runtime) -> None:
    """They are no reason to write for each other."""
    demo.ready()
    mark = tools.quiet(OWN, for_seconds=20.0)
    entries = tools.audit(mark)

    assert [] == tools.told([*tools.writes(entries, OWN), *tools.writes(entries, ACCOUNT)])


def test_deleted_with_its_volumes_nothing_of_it_is_left(demo: runtimes.Runtime) -> None:
    """But moorage itself, until it is uninstalled."""
    demo.edit(reclaim="Delete")
    demo.delete()
    left = demo.cluster.items(runtimes.LEFT, "-n", PLACE)
    names = {each["metadata"]["name"] for each in left if each["kind"] != "Pod"}

    assert {name for name in names if name.startswith(("kre-", "data-", "sh.helm.release.v1.kre."))} == set()
