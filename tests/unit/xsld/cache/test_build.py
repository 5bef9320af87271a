"""Every field of an XsldCache's spec lands where it should, and no secret value lands anywhere."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.api import builtin
from moorage.children import apply
from moorage.operators.xsld.cache import build, types
from moorage.operators.xsld.group import dialect

PASSWORD, KEY = "Very-Secret-1", "Very-Secret-2"
GIVEN = {"license": "accept", "size": 3, "adminPwd": PASSWORD, "secretKey": KEY}
REFERRED = {"license": "accept", "size": 3, "credentialsSecretRef": {"name": "mine"}}


def wanted(
    given: dict[str, Any] | None = None,
    *,
    said: dialect.Dialect | None = None,
    entrypoint: str | None = None,
    **fields: Any,
) -> build.Wanted:
    """From a manifest's spec, GIVEN unless told otherwise, with `fields` on top."""
    spec = msgspec.convert({**(given or GIVEN), **fields}, types.XsldCacheSpec)
    return build.Wanted("ns", "c", "uid-c", spec, said or dialect.Dialect(), entrypoint)


def everything(it: build.Wanted, replicas: int = 3) -> list[build.Child]:
    return [*build.children(it, primary="c-0", pods=replicas), build.workload(it, replicas)]


def child(it: build.Wanted, id_: str) -> dict[str, Any]:
    """The body of one object."""
    return {made.id: made.body for made in everything(it)}[id_]


def workload(it: build.Wanted) -> dict[str, Any]:
    spec: dict[str, Any] = child(it, "StatefulSet/c")["spec"]
    return spec


def pod(it: build.Wanted) -> dict[str, Any]:
    spec: dict[str, Any] = workload(it)["template"]["spec"]
    return spec


def container(it: build.Wanted) -> dict[str, Any]:
    (only,) = pod(it)["containers"]
    found: dict[str, Any] = only
    return found


def env(it: build.Wanted) -> dict[str, Any]:
    """The environment by name: a value, or where it comes from."""
    entries = container(it)["env"]
    assert len(entries) == len({entry["name"] for entry in entries}), "each name is given once"

    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in entries}


def at(body: Any, path: str) -> Any:
    """What is at a dotted path; None where there is nothing."""
    for part in path.split("."):
        if body is None:
            return None
        body = body[int(part)] if isinstance(body, list) else body.get(part)
    return body


# --- fields


TEMPLATE = "template.spec"
CONTAINER = f"{TEMPLATE}.containers.0"
LANDS: dict[str, tuple[dict[str, Any], str, Any, Any]] = {
    # fields of the spec, a path in the StatefulSet's spec, what is there, what is there without
    "image": ({"image": "r/xsld:8613"}, f"{CONTAINER}.image", "r/xsld:8613", "ibmcom/xsld:latest"),
    "service account": (
        {"pod": {"serviceAccountName": "sa"}},
        f"{TEMPLATE}.serviceAccountName",
        "sa",
        None,
    ),
    "pull secrets": (
        {"pod": {"imagePullSecrets": [{"name": "p"}]}},
        f"{TEMPLATE}.imagePullSecrets",
        [{"name": "p"}],
        None,
    ),
    "pull policy": ({"pod": {"imagePullPolicy": "Always"}}, f"{CONTAINER}.imagePullPolicy", "Always", None),
    "resources": (
        {"pod": {"resources": {"limits": {"cpu": "1"}}}},
        f"{CONTAINER}.resources",
        {"limits": {"cpu": "1"}},
        None,
    ),
    "node selector": ({"pod": {"nodeSelector": {"a": "b"}}}, f"{TEMPLATE}.nodeSelector", {"a": "b"}, None),
    "tolerations": (
        {"pod": {"tolerations": [{"operator": "Exists"}]}},
        f"{TEMPLATE}.tolerations",
        [{"operator": "Exists"}],
        None,
    ),
    "spread": (
        {"pod": {"topologySpreadConstraints": [{"maxSkew": 1}]}},
        f"{TEMPLATE}.topologySpreadConstraints",
        [{"maxSkew": 1}],
        None,
    ),
    "priority": ({"pod": {"priorityClassName": "high"}}, f"{TEMPLATE}.priorityClassName", "high", None),
    "security context": (
        {"pod": {"securityContext": {"runAsUser": 5}}},
        f"{TEMPLATE}.securityContext",
        {"runAsUser": 5},
        {"seccompProfile": {"type": "RuntimeDefault"}},
    ),
    "grace": (
        {"pod": {"terminationGracePeriodSeconds": 60}},
        f"{TEMPLATE}.terminationGracePeriodSeconds",
        60,
        180,
    ),
    "labels": ({"pod": {"labels": {"team": "x"}}}, "template.metadata.labels.team", "x", None),
    "annotations": ({"pod": {"annotations": {"team": "x"}}}, "template.metadata.annotations.team", "x", None),
    "readiness gate": (
        {"readinessGate": True},
        f"{TEMPLATE}.readinessGates",
        [{"conditionType": "xsld.ibm.com/member-online"}],
        None,
    ),
    "time to start": (
        {"timeouts": {"startup": "20m"}},
        f"{CONTAINER}.startupProbe.failureThreshold",
        240,
        180,
    ),
    "hardly any time to start": (
        {"timeouts": {"startup": "1s"}},
        f"{CONTAINER}.startupProbe.failureThreshold",
        3,
        180,
    ),
    "more time to start than a probe can count": (
        {"timeouts": {"startup": "111111111111111s"}},
        f"{CONTAINER}.startupProbe.failureThreshold",
        2**31 - 1,
        180,
    ),
    "size of the volume": (
        {"storage": {"size": "2Gi"}},
        "volumeClaimTemplates.0.spec.resources.requests.storage",
        "2Gi",
        "100Mi",
    ),
    "a size that is no number of bytes": (
        {"storage": {"size": "0.3Gi"}},
        "volumeClaimTemplates.0.spec.resources.requests.storage",
        "322122548",
        "100Mi",
    ),
    "storage class": (
        {"storage": {"storageClassName": "fast"}},
        "volumeClaimTemplates.0.spec.storageClassName",
        "fast",
        None,
    ),
    "the empty storage class is one": (
        {"storage": {"storageClassName": ""}},
        "volumeClaimTemplates.0.spec.storageClassName",
        "",
        None,
    ),
    "access modes": (
        {"storage": {"accessModes": ["ReadWriteMany"]}},
        "volumeClaimTemplates.0.spec.accessModes",
        ["ReadWriteMany"],
        ["ReadWriteOnce"],
    ),
    "ephemeral": (
        {"storage": {"ephemeral": True}},
        f"{TEMPLATE}.volumes.1",
        {"name": "vol", "emptyDir": {}},
        None,
    ),
}


@pytest.mark.parametrize(("fields", "path", "expected", "without"), LANDS.values(), ids=LANDS)
def test_a_field_lands_in_the_statefulset(fields: dict[str, Any], path: str, expected: Any, without: Any) -> None:
    plain = workload(wanted())
    plain["template"]["spec"]["volumes"].append(None)

    assert expected == at(workload(wanted(**fields)), path)
    assert without == at(plain, path)


ENV: dict[str, tuple[dict[str, Any], str, Any]] = {
    "licence": ({}, "LICENSE", "accept"),
    "group": ({"group": "g"}, "CACHE_GROUP", "g"),
    "capacity, as text": ({"capacity": 7}, "MEMBER_CAP", "7"),
    "the member is its pod": ({}, "MEMBER_NAME", {"fieldRef": {"fieldPath": "metadata.name"}}),
    "its address": ({}, "POD_IP", {"fieldRef": {"fieldPath": "status.podIP"}}),
    "password of the Secret that is made": (
        {},
        "XSADMIN_PWD",
        {"secretKeyRef": {"name": "c-credentials", "key": "adminPwd"}},
    ),
    "secret key of the Secret that is made": (
        {},
        "SECRET_KEY",
        {"secretKeyRef": {"name": "c-credentials", "key": "secretKey"}},
    ),
    "half of the grace is for stopping": (
        {"pod": {"terminationGracePeriodSeconds": 180}},
        "XSLD_STOP_SECONDS",
        "80",
    ),
    "and some of it always": ({"pod": {"terminationGracePeriodSeconds": 1}}, "XSLD_STOP_SECONDS", "5"),
    "the address is mended as long as a start may take": (
        {"timeouts": {"startup": "1m"}},
        "XSLD_ADDRESS_TRIES",
        "30",
    ),
    "the user's own": ({"pod": {"env": [{"name": "MINE", "value": "1"}]}}, "MINE", "1"),
    "the user's own, from elsewhere": (
        {"pod": {"env": [{"name": "MINE", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}}]}},
        "MINE",
        {"configMapKeyRef": {"name": "m", "key": "k"}},
    ),
    "the user's can't replace ours": (
        {"pod": {"env": [{"name": "LICENSE", "value": "no"}, {"name": "MINE", "value": "1"}]}},
        "LICENSE",
        "accept",
    ),
    "nor what is secret": (
        {"pod": {"env": [{"name": "XSADMIN_PWD", "value": "x"}]}},
        "XSADMIN_PWD",
        {"secretKeyRef": {"name": "c-credentials", "key": "adminPwd"}},
    ),
}


@pytest.mark.parametrize(("fields", "name", "expected"), ENV.values(), ids=ENV)
def test_the_environment(fields: dict[str, Any], name: str, expected: Any) -> None:
    assert expected == env(wanted(**fields))[name]


def test_a_secret_of_the_users_is_read_by_its_own_keys() -> None:
    ref = {"name": "mine", "adminPwdKey": "a", "secretKeyKey": "b"}
    it = wanted(REFERRED, credentialsSecretRef=ref)

    assert {"secretKeyRef": {"name": "mine", "key": "a"}} == env(it)["XSADMIN_PWD"]
    assert {"secretKeyRef": {"name": "mine", "key": "b"}} == env(it)["SECRET_KEY"]
    assert "Secret/c-credentials" not in [made.id for made in everything(it)], "there is none to be made"


def test_the_dialect_tells_what_is_inside_the_image() -> None:
    inside = dialect.Container(
        entrypoint="/go.sh",
        home="/x",
        sql_tool="/x/ij",
        sql_connect="CONNECT;",
        sql_read_address="READ '{member}';",
        sql_write_address="WRITE '{member}' '{address}';",
        sql_count_members="COUNT;",
        volume="/data",
        env={"JVM_ARGS": "-Xmx1g"},
    )
    ports = dialect.Ports(ui=1, data=2, admin=3, catalog=4)
    it = wanted(said=dialect.Dialect(container=inside, ports=ports))
    given = env(it)

    assert {
        "XSLD_ENTRYPOINT": "/go.sh",
        "XSLD_HOME": "/x",
        "XSLD_SQL_TOOL": "/x/ij",
        "XSLD_SQL_CONNECT": "CONNECT;",
        "XSLD_SQL_READ": "READ '$(MEMBER_NAME)';",
        "XSLD_SQL_WRITE": "WRITE '$(MEMBER_NAME)' '$(POD_IP)';",
        "XSLD_SQL_COUNT": "COUNT;",
        "JVM_ARGS": "-Xmx1g",
    }.items() <= given.items()
    assert "/data" == container(it)["volumeMounts"][0]["mountPath"]
    assert [1, 2, 3, 4] == [port["containerPort"] for port in container(it)["ports"]]
    assert (3, "3") == (container(it)["startupProbe"]["tcpSocket"]["port"], given["XSLD_ADMIN_PORT"])


def test_what_is_filled_in_by_kubernetes_stands_before_its_use() -> None:
    order = [entry["name"] for entry in container(wanted())["env"]]

    assert order.index("MEMBER_NAME") < order.index("XSLD_SQL_READ")
    assert order.index("POD_IP") < order.index("XSLD_SQL_WRITE")


# --- the StatefulSet


def test_pods_start_together_and_are_replaced_by_nobody_else() -> None:
    made = build.workload(wanted(), 5).body["spec"]

    assert (5, "c", "Parallel", {"type": "OnDelete"}) == (
        made["replicas"],
        made["serviceName"],
        made["podManagementPolicy"],
        made["updateStrategy"],
    )
    assert {"whenDeleted": "Retain", "whenScaled": "Retain"} == made["persistentVolumeClaimRetentionPolicy"]
    assert made["selector"]["matchLabels"].items() <= made["template"]["metadata"]["labels"].items()


def test_the_volume_is_mounted_and_the_scripts_too() -> None:
    it = wanted()

    assert [("vol", "/vol"), ("scripts", "/moorage")] == [
        (mount["name"], mount["mountPath"]) for mount in container(it)["volumeMounts"]
    ]
    assert {"name": "c-scripts", "defaultMode": 0o755} == pod(it)["volumes"][0]["configMap"]
    assert "vol" == workload(it)["volumeClaimTemplates"][0]["metadata"]["name"]
    assert ["/moorage/entrypoint.sh"] == container(it)["command"]
    assert ["/moorage/prestop.sh"] == container(it)["lifecycle"]["preStop"]["exec"]["command"]
    assert ["/moorage/probe.sh"] == container(it)["readinessProbe"]["exec"]["command"]
    assert ["/moorage/alive.sh"] == container(it)["livenessProbe"]["exec"]["command"]


def test_the_scripts_give_up_before_the_kubelet_cuts_them_off() -> None:
    """The kubelet ends the script alone, and waits for what that has started."""
    it = container(wanted())

    limit = int(env(wanted())["XSLD_ANSWER_SECONDS"])
    for probe in ("readinessProbe", "livenessProbe"):
        assert limit < it[probe]["timeoutSeconds"]
    assert 30 == it["livenessProbe"]["terminationGracePeriodSeconds"]


def test_ephemeral_members_claim_no_volume() -> None:
    it = wanted(storage={"ephemeral": True})

    assert "volumeClaimTemplates" not in workload(it)
    assert ["scripts", "vol"] == [volume["name"] for volume in pod(it)["volumes"]]


def test_the_users_labels_cannot_take_a_pod_out_of_the_cache() -> None:
    labels = workload(wanted(pod={"labels": {"app": "x", build.LABEL: "y"}}))["template"]["metadata"]["labels"]

    assert {"app": "c", build.LABEL: "c"}.items() <= labels.items()


def test_the_users_annotations_cannot_hide_a_change_of_the_scripts() -> None:
    annotations = workload(wanted(pod={"annotations": {build.SCRIPTS_HASH: "x"}}))["template"]["metadata"][
        "annotations"
    ]

    assert "x" != annotations[build.SCRIPTS_HASH]


@pytest.mark.parametrize(
    "field", ["automountServiceAccountToken", "enableServiceLinks"], ids=["no token", "no links to services"]
)
def test_a_member_gets_nothing_that_it_does_not_need(field: str) -> None:
    assert pod(wanted())[field] is False
    assert {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}} == container(wanted())[
        "securityContext"
    ]


TERM = {
    "labelSelector": {"matchLabels": {"app": "c", build.LABEL: "c"}},
    "topologyKey": "kubernetes.io/hostname",
}
PREFERRED = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": TERM}]}
REQUIRED = {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}
NODES = {"nodeAffinity": {"x": "y"}}
OWN: dict[str, Any] = {"podAntiAffinity": {"mine": []}}
AFFINITIES: dict[str, tuple[dict[str, Any], Any]] = {
    "by default members keep apart if they can": ({}, {"podAntiAffinity": PREFERRED}),
    "Preferred": ({"antiAffinity": "Preferred"}, {"podAntiAffinity": PREFERRED}),
    "Required": ({"antiAffinity": "Required"}, {"podAntiAffinity": REQUIRED}),
    "None": ({"antiAffinity": "None"}, None),
    "None, and the user's own": ({"antiAffinity": "None", "affinity": NODES}, NODES),
    "beside the user's own": (
        {"antiAffinity": "Required", "affinity": NODES},
        {**NODES, "podAntiAffinity": REQUIRED},
    ),
    "the user's own rule of that kind wins": ({"antiAffinity": "Required", "affinity": OWN}, OWN),
}


@pytest.mark.parametrize(("given", "expected"), AFFINITIES.values(), ids=AFFINITIES)
def test_affinity(given: dict[str, Any], expected: Any) -> None:
    assert expected == pod(wanted(pod=given)).get("affinity")


# --- scripts


def test_the_users_entrypoint_replaces_ours_and_no_other_script() -> None:
    ours, theirs = build.scripts(wanted()), build.scripts(wanted(entrypoint="#!/bin/sh\n"))

    assert {"alive.sh", "entrypoint.sh", "prestop.sh", "probe.sh", "within.sh"} == ours.keys()
    assert {**ours, "entrypoint.sh": "#!/bin/sh\n"} == theirs
    assert theirs | {"alone": ""} == child(wanted(entrypoint="#!/bin/sh\n"), "ConfigMap/c-scripts")["data"]


def test_who_is_the_whole_group_is_told_beside_the_scripts_and_rolls_nobody() -> None:
    made = {it.id: it.body for it in build.children(wanted(), primary="c-0", pods=3, alone="c-0")}

    assert "c-0" == made["ConfigMap/c-scripts"]["data"]["alone"]
    assert "alone" not in build.scripts(wanted())


def test_another_script_is_another_template() -> None:
    def digest(it: build.Wanted) -> str:
        return str(workload(it)["template"]["metadata"]["annotations"][build.SCRIPTS_HASH])

    assert digest(wanted()) == digest(wanted(size=5))
    assert 3 == len({digest(wanted()), digest(wanted(entrypoint="a")), digest(wanted(entrypoint="b"))})


# --- services and the budget


SELECTOR = {"app": "c", build.LABEL: "c"}


def ports(spec: dict[str, Any]) -> dict[str, int]:
    return {port["name"]: port["port"] for port in spec["ports"]}


ALL_PORTS = {"ui": 9443, "data": 9444, "admin": 9445, "catalog": 4809}


def test_a_member_has_a_name_before_it_is_ready() -> None:
    spec = child(wanted(), "Service/c")["spec"]

    assert ("None", True, SELECTOR) == (spec["clusterIP"], spec["publishNotReadyAddresses"], spec["selector"])
    assert ALL_PORTS == ports(spec)


def test_clients_reach_ready_members_and_not_the_admin_api() -> None:
    spec = child(wanted(), "Service/c-client")["spec"]

    assert ("ClusterIP", SELECTOR) == (spec["type"], spec["selector"])
    assert {"ui": 9443, "data": 9444, "catalog": 4809} == ports(spec)
    assert "publishNotReadyAddresses" not in spec


@pytest.mark.parametrize("kind", ["NodePort", "LoadBalancer"])
def test_the_client_service_is_as_the_spec_says(kind: str) -> None:
    body = child(wanted(service={"type": kind, "annotations": {"lb": "internal"}}), "Service/c-client")

    assert kind == body["spec"]["type"]
    assert "internal" == body["metadata"]["annotations"]["lb"]


def test_the_admin_service_follows_the_primary() -> None:
    made = {it.id: it.body for it in build.children(wanted(), primary="c-2", pods=3)}
    spec = made["Service/c-admin"]["spec"]

    assert {**SELECTOR, "statefulset.kubernetes.io/pod-name": "c-2"} == spec["selector"]
    assert {"ui": 9443, "admin": 9445} == ports(spec)


def test_each_pod_has_its_debug_service_if_asked_for() -> None:
    assert not [it for it in everything(wanted()) if it.name.endswith("-debug")]
    it = wanted(debugNodePorts=True)
    made = {each.name: each.body["spec"] for each in everything(it) if each.name.endswith("-debug")}

    assert ["c-0-debug", "c-1-debug", "c-2-debug"] == sorted(made)
    assert "NodePort" == made["c-1-debug"]["type"]
    assert {**SELECTOR, "statefulset.kubernetes.io/pod-name": "c-1"} == made["c-1-debug"]["selector"]
    assert ALL_PORTS == ports(made["c-1-debug"])


@pytest.mark.parametrize(
    ("size", "enabled", "expected"),
    [(1, True, False), (2, True, True), (5, True, True), (5, False, False)],
)
def test_a_budget_at_two_and_more_if_enabled(size: int, enabled: bool, expected: bool) -> None:
    it = wanted(size=size, podDisruptionBudget={"enabled": enabled})

    assert expected == ("PodDisruptionBudget/c" in [made.id for made in everything(it)])


def test_the_budget_lets_one_member_go_and_those_that_never_came_up() -> None:
    assert {
        "maxUnavailable": 1,
        "selector": {"matchLabels": SELECTOR},
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
    } == child(wanted(), "PodDisruptionBudget/c")["spec"]


# --- all of them


FULL = wanted(debugNodePorts=True, readinessGate=True)


@pytest.mark.parametrize("made", everything(FULL), ids=lambda it: it.id)
def test_every_object_is_labelled_owned_and_stamped(made: build.Child) -> None:
    metadata = made.body["metadata"]
    (owner,) = metadata["ownerReferences"]

    assert {"app": "c", build.LABEL: "c", "app.kubernetes.io/managed-by": "moorage"}.items() <= metadata[
        "labels"
    ].items()
    assert ("XsldCache", "c", "uid-c", True) == (owner["kind"], owner["name"], owner["uid"], owner["controller"])
    assert "xsld.ibm.com/v1alpha1" == owner["apiVersion"]
    assert apply.digest(made.body) == metadata["annotations"][apply.STAMP]
    assert "ns" == metadata["namespace"]
    assert (made.resource.kind, made.resource.api_version) == (made.body["kind"], made.body["apiVersion"])


def test_the_objects_of_a_cache() -> None:
    assert [
        "ConfigMap/c-scripts",
        "PodDisruptionBudget/c",
        "Secret/c-credentials",
        "Service/c",
        "Service/c-admin",
        "Service/c-client",
        "StatefulSet/c",
    ] == sorted(made.id for made in everything(wanted()))


def test_no_secret_value_is_in_any_body() -> None:
    text = msgspec.json.encode([made.body for made in everything(FULL)]).decode()

    assert PASSWORD not in text
    assert KEY not in text
    secrets = [made for made in everything(FULL) if made.resource == builtin.SECRET]
    assert ["credentials"] == [made.fill for made in secrets], "the executor fills it in"
    assert "data" not in secrets[0].body
    assert "stringData" not in secrets[0].body
    assert {""} == {made.fill for made in everything(FULL) if made.resource != builtin.SECRET}


def test_what_is_handed_on_as_it_is_written_is_known_by_name() -> None:
    """For a refusal of the API server that names no field."""
    pod = {"nodeSelector": {"a": "b"}, "resources": {"limits": {"cpu": "much"}}, "antiAffinity": "None"}

    assert "" == build.handed_on(types.Pod())
    assert "spec.pod.resources, spec.pod.nodeSelector" == build.handed_on(msgspec.convert(pod, types.Pod))
