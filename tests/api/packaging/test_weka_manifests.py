"""The definitions of WekaClusters and WekaContainers in a real API server: accepted, refused, changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from conftest import defined, emptied

if TYPE_CHECKING:
    from conftest import Cluster

pytestmark = pytest.mark.api

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = sorted({*(ROOT / "examples/weka").glob("*.yaml")} - {ROOT / "examples/weka/testbed.yaml"})
IMAGE = "registry.example/weka:4.4.1"
WHOLE: dict[str, Any] = {
    "template": "dynamic",
    "image": "registry.example/weka.io/weka-in-container:4.4.10.200",
    "imagePullSecret": "pull",
    "nodeSelector": {"weka.io/supports-backends": "true"},
    "roleNodeSelector": {"drive": {"a": "b"}},
    "roleNetworkSelector": {"compute": {"udpMode": True}},
    "driversDistService": "https://drivers.example:60002",
    "dynamicTemplate": {
        "computeContainers": 6,
        "driveContainers": 8,
        "numDrives": 1,
        "s3Containers": 2,
        "s3ExtraCores": 1,
    },
    "redundancyLevel": 4,
    "stripeWidth": 3,
    "hotSpare": 1,
    "leadershipRaftSize": 5,
    "bucketRaftSize": 9,
    "network": {"ethDevices": ["eth1", "eth2"], "deviceSubnets": ["10.0.0.0/24"]},
    "gracefulDestroyDuration": "1h30m",
    "failureDomain": {"compositeLabels": ["rack", "room"], "skew": 2},
    "rawTolerations": [{"key": "a", "operator": "Exists"}],
    "startIoConditions": {"minNumDrives": 14},
    "wekaHome": {"endpoint": "https://home.example", "allowInsecure": True},
    "encryption": {"vault": {"address": "https://vault.example", "role": "weka"}},
    "csiConfig": {"advanced": {"nodeLabels": {"a": "b"}}},
    "telemetry": {
        "exports": [{"name": "x", "sources": ["audit"], "splunk": {"authTokenSecretRef": "s.k", "endpoint": "e"}}]
    },
    "overrides": {"podTerminationDeactivationTimeout": "0", "upgradePaused": False, "forceAio": True},
    "catalog": {"indexInterval": "1d", "retentionPeriod": "30d"},
}
"""Fields of the original, of every kind."""


@pytest.fixture(scope="module", autouse=True)
def definition(cluster: Cluster) -> None:
    """The kinds are served."""
    defined(cluster, "weka")


@pytest.fixture
def place(cluster: Cluster, tag: str) -> Iterator[str]:
    yield from emptied(cluster, tag, "wekaclusters,wekacontainers,wekamanualoperations,wekaclients,wekapolicies")


def weka_cluster(place: str, spec: dict[str, Any], name: str = "demo") -> dict[str, Any]:
    metadata = {"name": name, "namespace": place}
    spec = {"image": IMAGE, **spec}
    return {"apiVersion": "weka.weka.io/v1alpha1", "kind": "WekaCluster", "metadata": metadata, "spec": spec}


def container(place: str, spec: dict[str, Any], name: str = "demo-drive-0") -> dict[str, Any]:
    metadata = {"name": name, "namespace": place}
    spec = {"image": IMAGE, "name": "drivexaax0", "mode": "drive", "numCores": 1, **spec}
    return {"apiVersion": "weka.weka.io/v1alpha1", "kind": "WekaContainer", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_accepted_whole(cluster: Cluster, place: str, path: Path, tmp_path: Path) -> None:
    """Strictly: a field that the definition lacks is an error, not a warning."""
    here = tmp_path / path.name
    here.write_text(path.read_text().replace("namespace: weka\n", f"namespace: {place}\n"))
    cluster.must(cluster.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", str(here)))


def test_the_originals_fields_are_accepted(cluster: Cluster, place: str) -> None:
    cluster.must(cluster.kubectl("create", "--dry-run=server", "--validate=strict", body=weka_cluster(place, WHOLE)))


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        ({"image": "registry.example/weka:latest"}, "image must end in the version"),
        ({"image": "registry.example/weka"}, "image must end in the version"),
        ({"stripeWidth": 2}, "spec.stripeWidth"),
        ({"redundancyLevel": 3}, "spec.redundancyLevel"),
        ({"leadershipRaftSize": 7}, "spec.leadershipRaftSize"),
        (
            {"stripeWidth": 5, "dynamicTemplate": {"driveContainers": 6}},
            "must be at least stripeWidth + redundancyLevel",
        ),
        (
            {"stripeWidth": 3, "redundancyLevel": 4, "hotSpare": 1, "dynamicTemplate": {"driveContainers": 7}},
            "must be at least stripeWidth + redundancyLevel",
        ),
        ({"dynamicTemplate": {"numDrives": 2, "containerCapacity": 100}}, "numDrives and containerCapacity say"),
        ({"dynamicTemplate": {"driveCapacity": 9, "driveTypesRatio": {"tlc": 1}}}, "driveCapacity and driveTypesRatio"),
        ({"dynamicTemplate": {"driveCapacity": 9, "numDrives": 1, "driveCores": 2}}, "each drive core needs a drive"),
        ({"dynamicTemplate": {"driveTypesRatio": {"qlc": 1}}}, "driveTypesRatio.tlc must be above 0"),
        ({"dynamicTemplate": {"driveContainers": 513}}, "spec.dynamicTemplate.driveContainers"),
        ({"dynamicTemplate": {"computeCores": 0}}, "spec.dynamicTemplate.computeCores"),
        ({"network": {"ethDevice": "a", "ethDevices": ["b"]}}, "ethDevice and ethDevices name the same thing"),
        ({"network": {"ethDevice": "a; rm"}}, "spec.network.ethDevice"),
        ({"failureDomain": {"label": "a", "compositeLabels": ["b"]}}, "label and compositeLabels say the same thing"),
        ({"gracefulDestroyDuration": "a day"}, "spec.gracefulDestroyDuration"),
        ({"cpuPolicy": "most"}, "spec.cpuPolicy"),
        ({"ports": {"basePort": 70_000}}, "spec.ports.basePort"),
        ({"expandEndpoints": ["$(id)"]}, "spec.expandEndpoints"),
        ({"nodeSelector": {"a": "no label!"}}, "spec.nodeSelector.a"),
        ({"roleNodeSelector": {"drive": {"a": "no label!"}}}, "spec.roleNodeSelector.drive.a"),
        ({"failureDomain": {"label": "no label!"}}, "spec.failureDomain.label"),
        ({"tolerations": ["no key!"]}, "spec.tolerations"),
        ({"cpuPolicy": "manual", "roleCoreIds": {"drive": [1]}}, "cpuPolicy manual needs roleCoreIds"),
        ({"podConfig": {"roleTopologySpreadConstraints": {"drive": "x"}}}, "spec.podConfig.roleTopologySpread"),
        ({"podConfig": {"roleTopologySpreadConstraints": {"drive": ["x"]}}}, "spec.podConfig.roleTopologySpread"),
        ({"podConfig": {"roleAffinity": {"drive": "x"}}}, "spec.podConfig.roleAffinity"),
    ],
)
def test_a_cluster_that_is_refused_is_told_why(cluster: Cluster, place: str, spec: dict[str, Any], word: str) -> None:
    done = cluster.kubectl("create", "--dry-run=server", body=weka_cluster(place, spec))

    assert done.returncode != 0
    assert word in done.stderr


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        ({"mode": "other"}, "spec.mode"),
        ({"name": "a b"}, "spec.name"),
        ({"mode": "compute", "numDrives": 1}, "numDrives is for containers of mode drive alone"),
        ({"cpuPolicy": "manual"}, "cpuPolicy manual needs coreIds"),
        ({"joinIpPorts": ["10.0.0.1:1;id"]}, "spec.joinIpPorts"),
        ({"state": "gone"}, "spec.state"),
        ({"numDrives": -1}, "spec.numDrives"),
    ],
)
def test_a_container_that_is_refused_is_told_why(cluster: Cluster, place: str, spec: dict[str, Any], word: str) -> None:
    done = cluster.kubectl("create", "--dry-run=server", body=container(place, spec))

    assert done.returncode != 0
    assert word in done.stderr


def operation(place: str, action: str, payload: Any, name: str = "sign") -> dict[str, Any]:
    spec = {"action": action, "image": IMAGE, **({} if payload is None else {"payload": payload})}
    kind = {"apiVersion": "weka.weka.io/v1alpha1", "kind": "WekaManualOperation"}
    return {**kind, "metadata": {"name": name, "namespace": place}, "spec": spec}


OPERATIONS: list[tuple[str, Any, str]] = [
    # action, payload, and what is said; nothing for what is accepted
    ("sign-drives", {"signDrivesPayload": {"type": "aws-all", "nodeSelector": {"a": "b"}, "shared": False}}, ""),
    ("sign-drives", {"signDrivesPayload": {"type": "device-paths", "devicePaths": ["/dev/nvme1n1"]}}, ""),
    (
        "sign-drives",
        {
            "signDrivesPayload": {
                "type": "device-identifiers",
                "pciDevices": {"vendorId": "0x1d0f", "deviceId": "0xcd01"},
                "options": {"allowEraseWekaPartitions": True, "skipTrimFormat": True},
            }
        },
        "",
    ),
    ("discover-drives", None, ""),
    ("discover-drives", {"discoverDrivesPayload": {"nodeSelector": {"a": "b"}}}, ""),
    ("force-resign-drives", {"forceResignDrivesPayload": {"nodeName": "n", "deviceSerials": ["S1"]}}, ""),
    ("block-drives", {"blockDrivesPayload": {"node": "n", "serialIDs": ["S1"], "physicalUUIDs": ["u-1"]}}, ""),
    ("ensure-nics", {"ensureNICsPayload": {"type": "aws", "dataNICsNumber": 2}}, ""),
    ("remote-traces-session", {"remoteTracesSessionPayload": {"cluster": {"name": "a"}, "duration": "168h"}}, ""),
    ("format-drives", {}, "spec.action"),
    ("sign-drives", None, "action sign-drives needs payload.signDrivesPayload"),
    ("sign-drives", {"signDrivesPayload": {"type": "all"}}, "signDrivesPayload.type"),
    ("sign-drives", {"signDrivesPayload": {"type": "device-paths"}}, "type device-paths needs devicePaths"),
    ("sign-drives", {"signDrivesPayload": {"type": "device-paths", "devicePaths": ["/dev/a b"]}}, "devicePaths[0]"),
    (
        "sign-drives",
        {"signDrivesPayload": {"type": "device-paths", "devicePaths": ["/dev/../etc/passwd"]}},
        "name the device itself",
    ),
    ("sign-drives", {"signDrivesPayload": {"type": "device-identifiers"}}, "device-identifiers needs pciDevices"),
    (
        "sign-drives",
        {"signDrivesPayload": {"type": "device-identifiers", "pciDevices": {"vendorId": "x", "deviceId": "1"}}},
        "vendorId",
    ),
    ("force-resign-drives", {}, "needs payload.forceResignDrivesPayload"),
    (
        "force-resign-drives",
        {"forceResignDrivesPayload": {"nodeName": "n"}},
        "either by deviceSerials or by devicePaths",
    ),
    (
        "force-resign-drives",
        {"forceResignDrivesPayload": {"nodeName": "n", "deviceSerials": ["a"], "devicePaths": ["/dev/a"]}},
        "either by deviceSerials or by devicePaths",
    ),
    ("block-drives", {"blockDrivesPayload": {"node": "n"}}, "name the drives"),
    ("block-drives", {"blockDrivesPayload": {"node": "", "serialIDs": ["a"]}}, "blockDrivesPayload.node"),
    ("unblock-drives", {"blockDrivesPayload": {"node": "n", "serialIDs": ["a;b"]}}, "serialIDs[0]"),
    ("unblock-drives", {}, "needs payload.blockDrivesPayload"),
]


@pytest.mark.parametrize(("action", "payload", "word"), OPERATIONS)
def test_operations_are_taken_or_refused_with_words(
    cluster: Cluster, place: str, action: str, payload: Any, word: str
) -> None:
    body = operation(place, action, payload)
    done = cluster.kubectl("create", "--dry-run=server", "--validate=strict", body=body)

    assert (done.returncode == 0) == (word == ""), done.stderr
    assert word in done.stderr


ANNOUNCED: list[tuple[str, dict[str, Any], str]] = [
    (
        "WekaClient",
        {
            "image": IMAGE,
            "imagePullSecret": "pull",
            "nodeSelector": {"weka.io/supports-clients": "true"},
            "targetCluster": {"name": "demo", "namespace": "weka"},
            "coresNum": 1,
            "network": {"udpMode": True},
            "upgradePolicy": {"type": "rolling"},
            "portRange": {"basePort": 46000},
            "driversDistService": "https://drivers.example:60002",
            "tolerations": ["a"],
            "csiConfig": {"csiGroup": "g"},
            "overrides": {"forceDrain": True},
        },
        "",
    ),
    ("WekaClient", {"image": IMAGE, "joinIpPorts": ["10.0.0.1:14000"], "wekaSecretRef": "s"}, ""),
    ("WekaClient", {"image": IMAGE, "upgradePolicy": {"type": "at-once"}}, "spec.upgradePolicy.type"),
    ("WekaClient", {}, "spec.image"),
    (
        "WekaPolicy",
        {
            "type": "enable-local-drivers-distribution",
            "payload": {
                "driverDistPayload": {"ensureImages": [IMAGE], "nodeSelectors": [{"a": "b"}]},
                "interval": "1m",
            },
        },
        "",
    ),
    (
        "WekaPolicy",
        {
            "type": "sign-drives",
            "image": IMAGE,
            "payload": {"signDrivesPayload": {"type": "aws-all"}, "waitForPolicies": ["a"]},
        },
        "",
    ),
    ("WekaPolicy", {"type": "clean"}, "spec.type"),
    ("WekaPolicy", {"type": "sign-drives", "payload": {"interval": "often"}}, "spec.payload.interval"),
]


@pytest.mark.parametrize(("kind", "spec", "word"), ANNOUNCED)
def test_what_is_announced_is_taken_with_all_its_fields(
    cluster: Cluster, place: str, kind: str, spec: dict[str, Any], word: str
) -> None:
    body = {"apiVersion": "weka.weka.io/v1alpha1", "kind": kind, "metadata": {"name": "a", "namespace": place}}
    done = cluster.kubectl("create", "--dry-run=server", "--validate=strict", body={**body, "spec": spec})

    assert (done.returncode == 0) == (word == ""), done.stderr
    assert word in done.stderr


def test_an_operation_is_done_once(cluster: Cluster, place: str) -> None:
    cluster.must(cluster.kubectl("create", body=operation(place, *OPERATIONS[0][:2])))

    def changed(spec: dict[str, Any]) -> str:
        words = ("-n", place, "patch", "wekamanualoperation", "sign", "--type=merge", "-p", json.dumps({"spec": spec}))
        return cluster.kubectl(*words).stderr

    assert "action can't be changed: an operation is done once" in changed({"action": "discover-drives"})
    assert "payload can't be changed" in changed({"payload": {"signDrivesPayload": {"type": "gcp-all"}}})
    assert "" == changed({"deletionDelay": "1h"})


def test_names_that_pods_could_not_bear_are_refused(cluster: Cluster, place: str) -> None:
    done = cluster.kubectl("create", "--dry-run=server", body=weka_cluster(place, {}, "a" * 41))
    other = cluster.kubectl("create", "--dry-run=server", body=container(place, {}, "a" * 64))

    assert "at most 40 lower-case letters" in done.stderr
    assert "at most 63 characters" in other.stderr


CHANGES: list[tuple[dict[str, Any], str]] = [
    # change, and what is said; nothing for what is accepted
    ({"image": "registry.example/weka:4.4.2"}, ""),
    ({"hotSpare": 1}, ""),
    ({"dynamicTemplate": {"driveContainers": 8}}, ""),
    ({"overrides": {"upgradePaused": True}}, ""),
    ({"stripeWidth": 4}, "stripeWidth can't be changed"),
    ({"stripeWidth": None}, "stripeWidth can't be changed"),
    ({"redundancyLevel": 4}, "redundancyLevel can't be changed"),
    ({"leadershipRaftSize": 5}, "leadershipRaftSize can't be changed"),
    ({"ipv6": True}, "ipv6 can't be changed"),
    ({"ports": {"basePort": 20_000}}, "ports.basePort can't be changed"),
    ({"ports": {"lbPort": 20_000}}, ""),
]


@pytest.mark.parametrize(("change", "word"), CHANGES)
def test_what_may_change_of_a_cluster(cluster: Cluster, place: str, change: dict[str, Any], word: str) -> None:
    spec = {"stripeWidth": 3, "redundancyLevel": 2, "dynamicTemplate": {"driveContainers": 7}}
    cluster.must(cluster.kubectl("create", body=weka_cluster(place, spec)))
    patch = json.dumps({"spec": change})
    done = cluster.kubectl("-n", place, "patch", "wekacluster", "demo", "--type=merge", "-p", patch)

    assert (done.returncode == 0) == (word == ""), done.stderr
    assert word in done.stderr


def test_what_may_change_of_a_container(cluster: Cluster, place: str) -> None:
    cluster.must(cluster.kubectl("create", body=container(place, {"nodeAffinity": "n1", "state": "destroying"})))

    def changed(spec: dict[str, Any]) -> str:
        patch = json.dumps({"spec": spec})
        return cluster.kubectl(
            "-n", place, "patch", "wekacontainer", "demo-drive-0", "--type=merge", "-p", patch
        ).stderr

    assert "name can't be changed" in changed({"name": "other"})
    assert "mode can't be changed" in changed({"mode": "compute"})
    assert "nodeAffinity can't be changed" in changed({"nodeAffinity": "n2"})
    assert "can't be taken back" in changed({"state": "active"})
    assert "" == changed({"image": "registry.example/weka:4.4.2"})


def test_a_patch_of_the_status_changes_no_override(cluster: Cluster, place: str) -> None:
    """As an old example has it: the form is that of spec.overrides."""
    cluster.must(cluster.kubectl("create", body=container(place, {})))
    patch = json.dumps({"status": {"debugSleepOnTerminate": 300}})
    cluster.kubectl("-n", place, "patch", "wekacontainer", "demo-drive-0", "--type=merge", "-p", patch)
    found = cluster.kubectl("-n", place, "get", "wekacontainer", "demo-drive-0", "-o", "json")
    body = json.loads(found.stdout)

    assert "overrides" not in body["spec"]
    assert "debugSleepOnTerminate" not in (body.get("status") or {})
