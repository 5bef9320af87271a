"""The objects that are made: a container's pod, the ConfigMap with its scripts, and a cluster's containers."""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
import pytest

from moorage.operators.weka import dialect, names
from moorage.operators.weka.cluster import build as cluster_build
from moorage.operators.weka.cluster import kind as cluster_kind
from moorage.operators.weka.cluster import screen as cluster_screen
from moorage.operators.weka.cluster import types as cluster_types
from moorage.operators.weka.container import build, types
from moorage.operators.weka.container import screen as container_screen

from . import states
from .states import cluster_spec, spec

SPOKEN = dialect.Dialect()
Body = dict[str, Any]


def pod(of: types.WekaContainerSpec | None = None, **changed: Any) -> Body:
    base: dict[str, Any] = {
        "name": "demo-drive-0",
        "namespace": "ns",
        "uid": "u-0",
        "labels": {names.CLUSTER_ID: "u-demo", "team": "a"},
        "spec": of or spec(),
        "login": "weka-operator-u-demo",
        "cluster_uid": "u-demo",
    }
    return build.pod(build.Wanted(**base | changed)).body


def inside(body: Body) -> Body:
    (container,) = body["spec"]["containers"]
    return dict(container)


def env(body: Body) -> dict[str, Any]:
    return {it["name"]: it.get("value", it.get("valueFrom")) for it in inside(body)["env"]}


def test_a_pod_is_its_containers_own() -> None:
    """Of its name, owned by it, with its labels; those that people select by can't be others."""
    body = pod(labels={names.CLUSTER_ID: "u-demo", "team": "a", names.MODE: "compute", "app": "other"})
    (owner,) = body["metadata"]["ownerReferences"]

    assert ("demo-drive-0", "ns") == (body["metadata"]["name"], body["metadata"]["namespace"])
    assert ("WekaContainer", "demo-drive-0", "u-0", True) == (
        owner["kind"],
        owner["name"],
        owner["uid"],
        owner["controller"],
    )
    assert {names.CLUSTER_ID: "u-demo", "team": "a", "app": "weka", names.MODE: "drive"}.items() <= body["metadata"][
        "labels"
    ].items()


def test_a_pod_is_root_on_its_node_has_a_year_to_end_and_no_token() -> None:
    body = pod()

    assert {"privileged": True, "runAsUser": 0} == inside(body)["securityContext"]
    assert body["spec"]["hostNetwork"]
    assert 365 * 86_400 == body["spec"]["terminationGracePeriodSeconds"]
    assert not body["spec"]["automountServiceAccountToken"]
    assert ["python3", "/opt/weka_runtime.py"] == inside(body)["command"]
    assert ("weka-container", "Always") == (inside(body)["name"], body["spec"]["restartPolicy"])


def test_without_a_node_it_keeps_apart_from_its_like() -> None:
    (term,) = pod()["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]

    assert {names.MODE: "drive", names.CLUSTER_ID: "u-demo"} == term["labelSelector"]["matchLabels"]
    assert "kubernetes.io/hostname" == term["topologyKey"]
    assert {} == pod(spec(dropAffinityConstraints=True))["spec"]["affinity"]


def test_who_finds_a_node_for_it_is_named() -> None:
    assert "batch" == pod(spec(schedulerName="batch"))["spec"]["schedulerName"]
    assert "schedulerName" not in pod()["spec"]
    assert "batch" == container(podConfig={"schedulerName": "batch"})["spec"]["schedulerName"]
    assert "schedulerName" not in container(podConfig={})["spec"]


def test_with_a_node_it_is_there_and_nowhere_else() -> None:
    """What it holds is there; selectors and spreads have had their say."""
    of = spec(nodeSelector={"a": "b"}, topologySpreadConstraints=[{"maxSkew": 1}])
    body, before = pod(of, node="n7")["spec"], pod(of)["spec"]
    terms = body["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]

    assert [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n7"]}]}] == terms
    assert not {"nodeSelector", "topologySpreadConstraints"} & body.keys()
    assert ({"a": "b"}, [{"maxSkew": 1}]) == (before["nodeSelector"], before["topologySpreadConstraints"])


@pytest.mark.parametrize(
    ("of", "memory", "pages", "told"),
    [
        # 8000 + 3000 a core + 700 a drive; 1400 a core + 200 a drive, of which 200 a drive are beyond
        ({"numCores": 1, "numDrives": 1}, "11700Mi", "1600Mi", "1400MiB"),
        ({"numCores": 2, "numDrives": 6, "additionalMemory": 300}, "18500Mi", "4000Mi", "2800MiB"),
        # 6700 + 5200 a core; 3000 a core, of which 200 are beyond
        ({"mode": "compute", "numDrives": 0, "numCores": 3}, "22300Mi", "9000Mi", "8800MiB"),
        ({"hugepages": 2001, "hugepagesOffset": 100}, "11700Mi", "2002Mi", "1902MiB"),
    ],
)
def test_sizes_are_as_the_original_reckons_them(of: dict[str, Any], memory: str, pages: str, told: str) -> None:
    body = pod(spec(**of))
    limits = inside(body)["resources"]["limits"]

    assert (memory, pages, told) == (limits["memory"], limits["hugepages-2Mi"], env(body)["MEMORY"])
    assert limits == inside(body)["resources"]["requests"], "the kubelet pins cores only where both are alike"


@pytest.mark.parametrize(
    ("of", "cpu"),
    [
        ({"numCores": 2, "cpuPolicy": "dedicated_ht"}, "5000m"),
        ({"numCores": 2, "extraCores": 1}, "6000m"),
        ({"numCores": 2, "cpuPolicy": "dedicated", "extraCores": 1}, "4000m"),
        ({"numCores": 2, "cpuPolicy": "manual", "coreIds": [1, 3]}, "3000m"),
    ],
)
def test_cores(of: dict[str, Any], cpu: str) -> None:
    body = pod(spec(**of))

    assert cpu == inside(body)["resources"]["limits"]["cpu"]
    assert ",".join(map(str, of.get("coreIds", ()))) == env(body)["CORE_IDS"].replace("auto", "")


def test_a_node_without_huge_pages_is_asked_for_none() -> None:
    sizes = msgspec.structs.replace(dialect.Sizes(), huge_pages="")
    body = pod(dialect=msgspec.structs.replace(SPOKEN, sizes=sizes))

    assert {"memory", "cpu"} == inside(body)["resources"]["limits"].keys()
    assert "pages" not in {it["name"] for it in body["spec"]["volumes"]}
    assert "0" == env(body)["MEMORY"]


def test_what_a_pod_is_told() -> None:
    network = {"ethDevices": ["a", "b"], "udpMode": True, "deviceSubnets": ["10.0.0.0/8"]}
    overrides = {"debugSleepOnTerminate": 300, "preRunScript": "true"}
    of = spec(joinIpPorts=["10.0.0.1:35000", "10.0.0.2:35000"], network=network, overrides=overrides)
    told = env(pod(of))

    assert ("drivexaax0", "drive", "1", "u-0") == (told["NAME"], told["MODE"], told["CORES"], told["WEKA_CONTAINER_ID"])
    assert ("a,b", "10.0.0.0/8", "true") == (told["NETWORK_DEVICE"], told["SUBNETS"], told["UDP_MODE"])
    assert "10.0.0.1:35000,10.0.0.2:35000" == told["JOIN_IPS"]
    assert ("300", "true") == (
        told["WEKA_OPERATOR_DEBUG_SLEEP"],
        base64.b64decode(told["PRE_RUN_SCRIPT"]).decode(),
    )
    assert {"fieldRef": {"fieldPath": "metadata.uid"}} == told["POD_ID"]
    assert "PRE_RUN_SCRIPT" not in env(pod())


def test_what_it_keeps_is_on_its_node_by_its_own_uid() -> None:
    volumes = {it["name"]: it for it in pod()["spec"]["volumes"]}
    claimed = {it["name"]: it for it in pod(spec(pvc={"name": "mine"}))["spec"]["volumes"]}

    assert "/opt/k8s-weka/containers/u-0" == volumes["data"]["hostPath"]["path"]
    assert {"claimName": "mine"} == claimed["data"]["persistentVolumeClaim"]
    assert {"secretName": "weka-operator-u-demo", "defaultMode": 0o400} == volumes["login"]["secret"]
    assert "login" not in {it["name"] for it in pod(login="")["spec"]["volumes"]}


def test_a_folder_that_stands_in_for_devices_hides_none_of_a_pods_own() -> None:
    """And the node's own are not in it."""
    files = msgspec.structs.replace(dialect.Files(), devices="/srv/fake")
    body = pod(dialect=msgspec.structs.replace(SPOKEN, files=files))
    mounts = {it["name"]: it["mountPath"] for it in inside(body)["volumeMounts"]}

    assert ("/devices", "/devices") == (mounts["devices"], env(body)["DEVICES"])
    assert "/srv/fake" == next(it for it in body["spec"]["volumes"] if it["name"] == "devices")["hostPath"]["path"]
    assert "/dev" == {it["name"]: it["mountPath"] for it in inside(pod())["volumeMounts"]}["devices"]


def test_tolerations_of_the_spec_come_beside_those_that_all_have() -> None:
    own = {"key": "x", "operator": "Exists"}
    tolerated = pod(spec(tolerations=[own]))["spec"]["tolerations"]

    assert own in tolerated
    assert {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"} in tolerated
    assert {"key": "weka.io/shutdown-node", "operator": "Exists", "effect": "NoExecute"} in tolerated


REVISIONS: list[tuple[dict[str, Any], bool]] = [
    ({"image": states.NEWER}, True),
    ({"numCores": 2}, True),
    ({"hugepages": 2}, True),
    ({"additionalMemory": 1}, True),
    ({"network": {"udpMode": True}}, True),
    ({"tolerations": [{"key": "x"}]}, False),
    ({"joinIpPorts": ["10.0.0.1:1"]}, False),
    ({"state": "paused"}, False),
    ({"overrides": {"forceDrain": True}}, False),
    ({"numDrives": 2}, False),
    ({"schedulerName": "batch"}, False),
]


@pytest.mark.parametrize(("changed", "restarts"), REVISIONS)
def test_what_a_container_is_restarted_for(changed: dict[str, Any], restarts: bool) -> None:
    assert restarts == (build.revision(spec(**changed)) != build.revision(spec()))
    assert build.revision(spec()) == pod()["metadata"]["annotations"][build.REVISION]


def test_another_moorage_restarts_nobody() -> None:
    """Scripts and table are in no revision."""
    files = msgspec.structs.replace(dialect.Files(), data="/elsewhere")
    other = pod(dialect=msgspec.structs.replace(SPOKEN, files=files))

    assert pod()["metadata"]["annotations"][build.REVISION] == other["metadata"]["annotations"][build.REVISION]


def test_the_scripts_come_with_the_table() -> None:
    body = build.scripts("ns", SPOKEN).body
    settings = json.loads(body["data"][build.SETTINGS])

    assert {build.RUNTIME, build.TOOL, build.DRIVES, build.SETTINGS} == body["data"].keys()
    assert "ownerReferences" not in body["metadata"], "it outlives each container of the namespace"
    assert ("weka", "/tmp/.allow-stop") == (settings["commands"]["weka"], settings["files"]["allow_stop"])
    assert body == build.scripts("ns", SPOKEN).body


# --- a cluster's containers -------------------------------------------------------------------------------------------


def container(role: str = "drive", **changed: Any) -> Body:
    return cluster_build.container(states.CLUSTER_META, cluster_spec(**changed), role, 3, login="login").body


def test_a_container_of_a_cluster() -> None:
    body = container(dynamicTemplate={"driveContainers": 6, "computeContainers": 5, "driveCores": 2, "numDrives": 4})

    assert "demo-drive-3" == body["metadata"]["name"]
    assert ("WekaCluster", "u-demo") == (
        body["metadata"]["ownerReferences"][0]["kind"],
        body["metadata"]["ownerReferences"][0]["uid"],
    )
    assert {names.CLUSTER_ID: "u-demo", names.CLUSTER_NAME: "demo", names.MODE: "drive", "app": "weka"}.items() <= body[
        "metadata"
    ]["labels"].items()
    assert {
        "image": states.IMAGE,
        "mode": "drive",
        "name": names.within("drive", "u-demo", 3),
        "numCores": 2,
        "numDrives": 4,
        "wekaSecretRef": "login",
        "state": "active",
    }.items() <= body["spec"].items()
    msgspec.convert(body["spec"], types.WekaContainerSpec)


@pytest.mark.parametrize(
    ("changed", "sizes"),
    [
        ({"dynamicTemplate": None}, (6, 6, 1)),
        ({"dynamicTemplate": {}}, (6, 6, 1)),
        ({"dynamicTemplate": {"driveContainers": 0, "computeContainers": 0}}, (0, 0, 1)),
        ({"dynamicTemplate": {"driveContainers": 7, "numDrives": 3}}, (7, 6, 3)),
        ({"dynamicTemplate": {"containerCapacity": 500}}, (6, 6, 0)),
        ({"dynamicTemplate": None, "template": "large"}, (20, 20, 1)),
        ({"dynamicTemplate": {"computeContainers": 5}, "template": "large"}, (6, 5, 1)),
    ],
)
def test_how_many_a_template_comes_to(changed: dict[str, Any], sizes: tuple[int, int, int]) -> None:
    """Drive containers, those that compute, drives of each: what is said one by one is before a named template."""
    found = cluster_types.template(cluster_spec(**changed))

    assert sizes == (found.containers["drive"], found.containers["compute"], found.drives)


def test_what_is_by_role_replaces_what_is_for_all() -> None:
    given = {
        "nodeSelector": {"all": "1"},
        "roleNodeSelector": {"drive": {"d": "1"}},
        "network": {"udpMode": True},
        "roleNetworkSelector": {"compute": {"ethDevice": "e"}},
        "roleAnnotations": {"drive": {"note": "x"}},
        "additionalMemory": {"compute": 7},
    }
    drive, compute = container("drive", **given), container("compute", **given)

    assert ({"d": "1"}, {"all": "1"}) == (drive["spec"]["nodeSelector"], compute["spec"]["nodeSelector"])
    assert ({"udpMode": True}, {"ethDevice": "e"}) == (drive["spec"]["network"], compute["spec"]["network"])
    assert (0, 7) == (drive["spec"]["additionalMemory"], compute["spec"]["additionalMemory"])
    assert "x" == drive["metadata"]["annotations"]["note"]
    assert "numDrives" not in compute["spec"]


def test_what_pods_of_a_role_are_given_is_before_what_those_of_all_are() -> None:
    own, all_ = {"nodeAffinity": {"a": 1}}, {"podAffinity": {"b": 1}}
    rows = [{"topologyKey": "rack", "maxSkew": 1}], [{"topologyKey": "room", "maxSkew": 1}]
    given = {
        "podConfig": {
            "affinity": all_,
            "roleAffinity": {"drive": own},
            "topologySpreadConstraints": rows[1],
            "roleTopologySpreadConstraints": {"drive": rows[0]},
        },
        "failureDomain": {"label": "zone"},
    }
    drive, compute = container("drive", **given)["spec"], container("compute", **given)["spec"]

    assert (own, all_) == (drive["affinity"], compute["affinity"])
    assert rows == (drive["topologySpreadConstraints"], compute["topologySpreadConstraints"])


def test_the_account_and_the_login_of_a_registry_are_the_specs() -> None:
    """Of the cluster its containers', and of a container its pod's; without any there is neither."""
    given = {"serviceAccountName": "own", "imagePullSecret": "registry"}
    body = pod(spec(**given))["spec"]

    assert given.items() <= container(**given)["spec"].items()
    assert ("own", [{"name": "registry"}]) == (body["serviceAccountName"], body["imagePullSecrets"])
    assert not {"serviceAccountName", "imagePullSecrets"} & pod()["spec"].keys()


@pytest.mark.parametrize(
    ("asked", "forced"),
    [
        ({"upgradeForceReplaceDrives": True}, {"upgradeForceReplace": True}),
        ({"upgradePaused": True}, None),
        (None, None),
    ],
)
def test_force_that_a_container_was_given_stays_while_its_cluster_asks_for_it(
    asked: dict[str, bool] | None, forced: dict[str, bool] | None
) -> None:
    """And goes with that, so that a later replacement is graceful."""
    seen = states.cluster_seen(spec=cluster_spec(**({"overrides": asked} if asked else {})))
    given = msgspec.structs.replace(
        states.container("drive", 0).spec, overrides=types.Overrides(upgrade_force_replace=True)
    )
    mine = types.WekaContainer(
        msgspec.structs.replace(states.CLUSTER_META, name="demo-drive-0"), given, types.WekaContainerStatus()
    )
    found = cluster_kind.wanted(seen, mine, [mine])

    assert found is not None
    assert forced == found.body["spec"].get("overrides")


@pytest.mark.parametrize(
    ("domain", "keys", "rule"),
    [
        ({"label": "rack"}, ["rack"], "DoNotSchedule"),
        ({"compositeLabels": ["rack", "room"], "skew": 2}, ["rack", "room"], "ScheduleAnyway"),
    ],
)
def test_failure_domains_spread(domain: dict[str, Any], keys: list[str], rule: str) -> None:
    spread = container(failureDomain=domain)["spec"]["topologySpreadConstraints"]

    assert [(key, rule, domain.get("skew", 1)) for key in keys] == [
        (it["topologyKey"], it["whenUnsatisfiable"], it["maxSkew"]) for it in spread
    ]


def test_the_keys_of_taints_become_tolerations() -> None:
    found = container(tolerations=["a"], rawTolerations=[{"key": "b", "effect": "NoSchedule"}])

    assert [{"key": "a", "operator": "Exists"}, {"key": "b", "effect": "NoSchedule"}] == found["spec"]["tolerations"]


def test_names_within_a_cluster_are_its_own() -> None:
    """Two clusters of one name, in two namespaces or one after another, share none."""
    assert names.within("drive", "u-1", 0) != names.within("drive", "u-2", 0)
    assert "-" not in names.within("drive", "u-1", 0)


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("demo-drive-7", 7),
        ("demo-drive-", -1),
        ("demo-drive-x", -1),
        ("demo-drive-²", -1),
        ("other-drive-7", -1),
        ("demo-compute-7", -1),
        ("demo-drive-9999999999", -1),
    ],
)
def test_numbers_are_read_from_names_that_are_its_own(name: str, number: int) -> None:
    assert number == names.number("demo", "drive", name)


def live(**changed: Any) -> types.WekaContainer:
    """A container that was made as the cluster wants it, but for what is changed by somebody."""
    body = container()
    text = {"metadata": {**body["metadata"], "uid": "u-3"}, "spec": {**body["spec"], **changed}}
    return msgspec.convert(text, types.WekaContainer)


def test_what_somebody_changes_of_a_container_is_seen() -> None:
    desired = cluster_build.container(states.CLUSTER_META, cluster_spec(), "drive", 3, login="login")

    assert () == cluster_kind.differs(live(), desired)
    assert ("spec.numDrives",) == cluster_kind.differs(live(numDrives=9), desired)
    assert () == cluster_kind.differs(live(overrides={"forceDrain": True}), desired), "what others add is theirs"


# --- what people are shown --------------------------------------------------------------------------------------------


def test_rows_of_a_cluster() -> None:
    status = {
        "status": "Ready",
        "clusterID": "g-1",
        "lastAppliedImage": states.IMAGE,
        "printer": {"driveContainers": "5/6/6", "drives": "5/6/6"},
        "ports": {"basePort": 35_000, "portRange": 500},
        "overridesUsed": {"upgradeAllAtOnce": "2026-01-01T00:00:00Z"},
    }
    told = {row.label: row.text for row in cluster_screen.rows(status)}

    assert "5 active of 6, 6 wanted" == told["Drive"]
    assert "35000 to 35499" == told["Ports"]
    assert "upgradeAllAtOnce, since 2026-01-01T00:00:00Z" == told["Override"]


def test_rows_of_a_container() -> None:
    status = {
        "status": "DrivesAdding",
        "internalStatus": "READY",
        "nodeAffinity": "n1",
        "managementIPs": ["10.0.0.1", "10.1.0.1"],
        "containerID": 0,
        "allocations": {"drives": ["s1", "s2"]},
        "addedDrives": [{"serial_number": "s1", "status": "ACTIVE"}],
    }
    rows = {row.label: row for row in container_screen.rows(status)}

    assert ("DrivesAdding (READY)", "n1", "0") == tuple(rows[it].text for it in ("Status", "Node", "Container"))
    assert "1 of 2 added" == rows["Drives"].text
    assert [("s1  ACTIVE", True), ("s2  not added", False)] == [(it.text, it.good) for it in rows["Drives"].items]


@pytest.mark.parametrize(
    "config",
    [
        {"roleTopologySpreadConstraints": {"drive": "text"}},
        {"roleTopologySpreadConstraints": {"drive": ["text"]}},
        {"roleTopologySpreadConstraints": {"drive": {"maxSkew": 1}}},
        {"roleAffinity": {"drive": "text"}},
    ],
)
def test_what_a_role_has_is_of_the_form_that_pods_take(config: Body) -> None:
    """Else it would be found out when containers are built of it, and a pass would break off."""
    with pytest.raises(msgspec.ValidationError, match=r"podConfig\.\w+\[...\]"):
        cluster_spec(podConfig=config)


@pytest.mark.parametrize("field", ["ethDevices", "deviceSubnets", "selectors", "managementIpsSelectors"])
def test_a_list_of_nothing_is_no_reason_to_restart(field: str) -> None:
    assert build.revision(spec()) == build.revision(spec(network={field: []})) == build.revision(spec(network={}))
    udp = {"udpMode": True}
    assert build.revision(spec(network=udp)) == build.revision(spec(network={**udp, field: []}))
    assert build.revision(spec()) != build.revision(spec(network=udp))
