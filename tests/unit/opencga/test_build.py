"""From a spec to objects: under restricted Pod Security, without a password, and with what a user lays over."""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
import pytest

from moorage.agent import keystore, truststore
from moorage.children import apply
from moorage.operators.opencga import dialect, names, types
from moorage.operators.opencga.wanted import automation, basis, build
from moorage.operators.opencga.wanted import pods as templates

PLAIN: dict[str, Any] = {"version": "5.0.0", "database": {"hosts": ["mongo-0"]}}
WHOLE: dict[str, Any] = {
    **PLAIN,
    "database": {"hosts": ["mongo-0"], "replicaSet": "rs0", "credentialsSecretRef": {"name": "db", "userKey": "u"}},
    "security": {"tls": {"enabled": True, "caConfigMapRef": {"name": "authority"}}},
    "volumes": {"shared": {"claimName": "many"}},
    "client": {"serviceAccountName": "jobs"},
}


def wanted(spec: dict[str, Any] | None = None, **fields: Any) -> basis.Wanted:
    made = msgspec.convert({**(spec or PLAIN), **fields}, types.CommunitySpec)
    return basis.of("ns", "demo", "u-1", made, dialect.Dialect())


def pods(spec: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The pod specs by role."""
    it = wanted(spec)
    made = {names.REST: build.members(it, 3, "5.0.0"), names.MASTER: build.master(it, "5.0.0")}
    return {role: each.body["spec"]["template"]["spec"] for role, each in made.items()}


def by_name(items: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in items}


@pytest.mark.parametrize("role", [names.REST, names.MASTER])
@pytest.mark.parametrize("spec", [PLAIN, WHOLE])
def test_pods_are_what_restricted_pod_security_takes(spec: dict[str, Any], role: str) -> None:
    """Every container: no root, no escalation, no capability, a read-only root, and a limit of memory."""
    pod = pods(spec)[role]

    assert {"runAsUser": 1001, "runAsNonRoot": True} == {
        key: pod["securityContext"][key] for key in ("runAsUser", "runAsNonRoot")
    }
    assert {"type": "RuntimeDefault"} == pod["securityContext"]["seccompProfile"]
    assert pod["automountServiceAccountToken"] is False
    for container in (*pod["initContainers"], *pod["containers"]):
        security = container["securityContext"]
        assert (False, True, {"drop": ["ALL"]}) == (
            security["allowPrivilegeEscalation"],
            security["readOnlyRootFilesystem"],
            security["capabilities"],
        )
        assert container["resources"]["limits"]["memory"]
    kinds = {kind for volume in pod["volumes"] for kind in set(volume) - {"name"}}
    assert kinds <= {"emptyDir", "secret", "projected", "persistentVolumeClaim"}


@pytest.mark.parametrize("role", [names.REST, names.MASTER])
def test_the_jvm_is_told_whom_to_trust(role: str) -> None:
    """Where the agent writes it; the authority itself is the agent's to read, from either kind of object."""
    server, agent = pods(WHOLE)[role]["containers"]
    told = by_name(server["env"])["JDK_JAVA_OPTIONS"]["value"]

    assert f"-Djavax.net.ssl.trustStore=/opencga-conf/{truststore.FILE} -Djavax.net.ssl.trustStoreType=JKS" == told
    assert "JDK_JAVA_OPTIONS" not in by_name(agent["env"])
    assert "JDK_JAVA_OPTIONS" not in by_name(pods(PLAIN)[role]["containers"][0]["env"])
    secret = {"tls": {"enabled": True, "caCertificateSecretRef": {"name": "authority"}}}
    volumes = by_name(pods(WHOLE | {"security": secret})[role]["volumes"])
    source = {"name": "authority", "items": [{"key": "ca.crt", "path": "ca/ca.crt"}]}
    assert {"secret": source} == volumes["credentials"]["projected"]["sources"][-1]


@pytest.mark.parametrize("role", [names.REST, names.MASTER])
def test_the_jvm_is_told_what_to_show(role: str) -> None:
    """Beside whom to trust, or alone; the key is in the agent's volume, and the password of the store is public."""
    shown = {"certificateKeySecretRef": {"name": "client"}}
    spec = {**PLAIN, "security": {"tls": {"enabled": True, **shown}}}
    pod = pods(spec)[role]
    told = by_name(pod["containers"][0]["env"])["JDK_JAVA_OPTIONS"]["value"].split()

    assert [
        f"-Djavax.net.ssl.keyStore=/opencga-conf/{keystore.FILE}",
        "-Djavax.net.ssl.keyStoreType=JKS",
        f"-Djavax.net.ssl.keyStorePassword={truststore.NO_PASSWORD.decode('utf-16-be')}",
    ] == told
    items = [{"key": key, "path": f"client/{key}"} for key in ("tls.crt", "tls.key")]
    sources = by_name(pod["volumes"])["credentials"]["projected"]["sources"]
    assert {"secret": {"name": "client", "items": items}} == sources[-1]
    mounts = by_name(pod["containers"][0]["volumeMounts"])
    assert "credentials" not in mounts, "the server has what the agent writes, and no more"
    both = pods({**WHOLE, "security": {"tls": {**WHOLE["security"]["tls"], **shown}}})[role]
    assert 5 == len(by_name(both["containers"][0]["env"])["JDK_JAVA_OPTIONS"]["value"].split())


def test_the_budget_does_not_count_who_is_switched_off() -> None:
    """Whose pod is never ready: one of the others may go all the same."""

    def budget(*processes: dict[str, Any]) -> int:
        made = {it.resource.kind: it.body for it in build.children(wanted(automationConfig={"processes": processes}))}
        return int(made["PodDisruptionBudget"]["spec"]["maxUnavailable"])

    off = [{"name": f"demo-{n}", "disabled": True} for n in range(4)]
    assert [1, 2, 3] == [budget(), budget(off[1]), budget(*off[:2])]
    assert 1 == budget(off[3], {"name": "demo-0"}, {"name": "demo-client-0", "disabled": True})


METRICS: dict[str, Any] = {"enabled": True, "port": 9300}


def made_of(metrics: dict[str, Any], *, monitored: bool = True) -> dict[str, dict[str, Any]]:
    return {
        f"{it.resource.kind}/{it.name}": it.body for it in build.children(wanted(metrics=metrics), monitored=monitored)
    }


def test_metrics_have_a_port_of_their_own_and_none_where_they_are_off() -> None:
    """In each pod, beside the agent's, and on the one Service that leads to all of them."""
    for role in (names.REST, names.MASTER):
        agent = pods({**PLAIN, "metrics": METRICS})[role]["containers"][1]
        assert {"agent": 5000, "metrics": 9300} == {it["name"]: it["containerPort"] for it in agent["ports"]}
        assert "9300" == by_name(agent["env"])["OPENCGA_METRICS_PORT"]["value"]
        plain = pods(PLAIN)[role]
        assert plain == pods({**PLAIN, "metrics": {"port": 9300}})[role], "nobody is restarted"
        assert ["agent"] == [it["name"] for it in plain["containers"][1]["ports"]]
        assert "OPENCGA_METRICS_PORT" not in by_name(plain["containers"][1]["env"])
    for metrics, ports in ((METRICS, ["rest", "agent", "metrics"]), ({}, ["rest", "agent"])):
        there = made_of(metrics)
        assert ports == [it["name"] for it in there["Service/demo-svc"]["spec"]["ports"]]
        assert ["rest"] == [it["name"] for it in there["Service/demo-rest"]["spec"]["ports"]]


def test_a_service_monitor_is_made_where_the_kind_is() -> None:
    """It chooses the Services of this installation, and of their ports that of metrics; labels may be added."""
    given = {**METRICS, "serviceMonitor": {"interval": "15s", "labels": {"release": "prometheus", names.LABEL: "x"}}}
    body = made_of(given)["ServiceMonitor/demo"]

    assert [{"port": "metrics", "path": "/metrics", "interval": "15s"}] == body["spec"]["endpoints"]
    assert {"matchLabels": {"app": "demo-svc", names.LABEL: "demo"}} == body["spec"]["selector"]
    assert ("prometheus", "demo") == tuple(body["metadata"]["labels"][key] for key in ("release", names.LABEL))
    assert "u-1" == body["metadata"]["ownerReferences"][0]["uid"]
    assert [{"port": "metrics", "path": "/metrics"}] == made_of(METRICS)["ServiceMonitor/demo"]["spec"]["endpoints"]
    for none in (
        made_of(METRICS, monitored=False),
        made_of({}),
        made_of({**METRICS, "serviceMonitor": {"enabled": False}}),
    ):
        assert "ServiceMonitor/demo" not in none


@pytest.mark.parametrize(
    ("port", "who"), [(9090, "the REST server"), (9092, "the MASTER's daemon"), (5000, "the agent")]
)
def test_metrics_take_nobody_elses_port(port: int, who: str) -> None:
    """It says whose it is; where metrics are off it is no matter."""
    said = f"spec.metrics.port is {port}, at which {who} listens; set another one"

    assert said == wanted(metrics={"enabled": True, "port": port}).fault
    assert "" == wanted(metrics={"port": port}).fault


def ingress(**fields: Any) -> dict[str, Any]:
    made = {it.resource.kind: it.body for it in build.children(wanted(ingress={"host": "opencga.example", **fields}))}
    return made["Ingress"]


def test_an_ingress_leads_to_members_that_are_ready() -> None:
    """Through the Service that clients use, below the product's own path, and owned as that Service is."""
    made = ingress()

    service = {"name": "demo-rest", "port": {"name": "rest"}}
    path = {"path": "/opencga", "pathType": "Prefix", "backend": {"service": service}}
    assert {"rules": [{"host": "opencga.example", "http": {"paths": [path]}}]} == made["spec"]
    assert "u-1" == made["metadata"]["ownerReferences"][0]["uid"]
    assert "demo" == made["metadata"]["labels"][names.LABEL]
    assert "Ingress" not in {it.resource.kind for it in build.children(wanted())}


def test_an_ingress_has_what_its_controller_needs() -> None:
    """Class, path, annotations, and the Secret by its name alone: what is in it is read by nobody here."""
    given = {"className": "nginx", "path": "/", "tlsSecretRef": {"name": "certificate"}, "annotations": {"a/b": "c"}}
    made = ingress(**given)

    assert "nginx" == made["spec"]["ingressClassName"]
    assert [{"hosts": ["opencga.example"], "secretName": "certificate"}] == made["spec"]["tls"]
    assert "/" == made["spec"]["rules"][0]["http"]["paths"][0]["path"]
    assert {"a/b": "c", apply.STAMP: made["metadata"]["annotations"][apply.STAMP]} == made["metadata"]["annotations"]


@pytest.mark.parametrize("role", [names.REST, names.MASTER])
def test_one_init_container_and_two_containers(role: str) -> None:
    """As the seed has it; the hook is copied, and is the server's first process."""
    pod, server = pods(PLAIN)[role], {names.REST: "opencga-rest", names.MASTER: "opencga-client"}[role]

    assert [server, "opencga-agent"] == [each["name"] for each in pod["containers"]]
    assert ["opencga-posthook"] == [each["name"] for each in pod["initContainers"]]
    assert ["/hooks/version-upgrade"] == by_name(pod["containers"])[server]["command"]
    assert "opencb/opencga-base:5.0.0" == by_name(pod["containers"])[server]["image"]


@pytest.mark.parametrize(
    ("role", "client", "entered"),
    [
        (names.MASTER, {}, True),
        (names.MASTER, {"shell": False}, False),
        (names.REST, {}, False),
    ],
)
def test_people_work_in_the_master_alone_and_what_they_keep_is_in_memory(
    role: str, client: dict[str, Any], entered: bool
) -> None:
    pod = pods({**PLAIN, "client": client})[role]
    server = pod["containers"][0]
    values = {each["name"]: each.get("value") for each in server["env"]}
    mounts = {each["name"]: each["mountPath"] for each in server["volumeMounts"]}
    volumes = by_name(pod["volumes"])

    assert ("on", "/people") == (values.get("OPENCGA_SHELL"), values.get("HOME")) or not entered
    assert entered == (mounts.get("people") == "/people")
    assert entered == (volumes.get("people", {}).get("emptyDir", {}).get("medium") == "Memory")
    assert entered == ("OPENCGA_SHELL" in values)


@pytest.mark.parametrize(("role", "given"), [(names.MASTER, "jobs"), (names.MASTER, ""), (names.REST, "jobs")])
def test_a_token_is_in_the_masters_server_alone_and_only_where_an_account_is_named(role: str, given: str) -> None:
    pod = pods({**PLAIN, "client": {"serviceAccountName": given}})[role]
    has = [
        container["name"]
        for container in (*pod["initContainers"], *pod["containers"])
        if any(it["mountPath"].startswith("/var/run/secrets") for it in container["volumeMounts"])
    ]
    named = role == names.MASTER and bool(given)

    assert pod["automountServiceAccountToken"] is False
    assert (given if named else None) == pod.get("serviceAccountName")
    assert (["opencga-client"] if named else []) == has
    sources = by_name(pod["volumes"])["api"]["projected"]["sources"] if named else []
    assert named == any("serviceAccountToken" in it for it in sources)


@pytest.mark.parametrize("role", [names.REST, names.MASTER])
def test_kubectl_means_the_server_where_no_container_is_named(role: str) -> None:
    it = wanted()
    made = build.master(it, "5.0.0") if role == names.MASTER else build.members(it, 1, "5.0.0")
    template = made.body["spec"]["template"]

    assert (
        template["spec"]["containers"][0]["name"]
        == template["metadata"]["annotations"]["kubectl.kubernetes.io/default-container"]
    )


def test_volumes_are_where_the_seed_has_them() -> None:
    """data-volume, automation-config and healthstatus, each in both containers; the configuration read-only."""
    containers = by_name(pods(WHOLE)[names.REST]["containers"])
    mounts = {
        name: {(it["name"], it["mountPath"], it.get("readOnly", False)) for it in each["volumeMounts"]}
        for name, each in containers.items()
    }
    both = {
        ("data-volume", "/data", False),
        ("automation-config", "/var/lib/automation/config", True),
        ("shared", "/data/sessions", False),
        ("shared", "/data/variants", False),
    }

    assert both <= mounts["opencga-rest"] & mounts["opencga-agent"]
    assert ("healthstatus", "/healthstatus", False) in mounts["opencga-rest"]
    assert ("healthstatus", "/var/log/opencga-mms-automation/healthstatus", False) in mounts["opencga-agent"]
    assert ("conf", "/opencga-conf", True) in mounts["opencga-rest"]
    assert ("conf", "/opencga-conf", False) in mounts["opencga-agent"]


def test_passwords_are_files_in_memory_and_for_the_agent_alone() -> None:
    """No environment, no command line; the server's own files are in memory too."""
    pod = pods(WHOLE)[names.MASTER]
    containers, volumes = by_name(pod["containers"]), by_name(pod["volumes"])

    assert ["opencga-agent"] == [
        name for name, each in containers.items() if "credentials" in by_name(each["volumeMounts"])
    ]
    assert "Memory" == volumes["conf"]["emptyDir"]["medium"]
    assert [
        ("demo-agent-password", [{"key": "password", "path": "agent/password"}]),
        ("demo-admin-password", [{"key": "password", "path": "admin/password"}]),
        ("db", [{"key": "u", "path": "database/u"}, {"key": "password", "path": "database/password"}]),
        ("authority", [{"key": "ca.crt", "path": "ca/ca.crt"}]),
    ] == [
        (it["name"], it["items"]) for source in volumes["credentials"]["projected"]["sources"] for it in source.values()
    ]
    assert not [
        entry
        for each in containers.values()
        for entry in each["env"]
        if "valueFrom" in entry and "secretKeyRef" in entry["valueFrom"]
    ]


def test_probes_ask_the_hook_and_the_agent_and_never_the_database() -> None:
    """A database that is gone makes pods unready and restarts none: the hook answers for the server's life."""
    containers = by_name(pods(PLAIN)[names.REST]["containers"])
    server, agent = containers["opencga-rest"], containers["opencga-agent"]

    assert ["/hooks/version-upgrade", "alive"] == server["livenessProbe"]["exec"]["command"]
    assert ["/hooks/version-upgrade", "started"] == server["startupProbe"]["exec"]["command"]
    assert 180 == server["startupProbe"]["failureThreshold"]
    assert ["/hooks/version-upgrade", "serving"] == server["readinessProbe"]["exec"]["command"]
    assert "readinessProbe" not in by_name(pods(PLAIN)[names.MASTER]["containers"])["opencga-client"]
    assert ["/opt/scripts/readinessprobe"] == agent["readinessProbe"]["exec"]["command"]
    assert not {"livenessProbe", "startupProbe"} & set(agent)


@pytest.mark.parametrize(
    ("probe", "seconds"),
    [
        ({}, "25"),  # three times 5 s, 5 s for the last answer, and 5 s until Services know
        ({"periodSeconds": 1, "failureThreshold": 2, "timeoutSeconds": 1}, "8"),
        ({"failureThreshold": 40}, "120"),
    ],
)
def test_a_server_is_asked_no_more_once_its_agents_probe_has_failed(probe: dict[str, Any], seconds: str) -> None:
    """For as long the agent waits before it stops the server, by whatever the user has laid over the probe."""
    laid = {"template": {"spec": {"containers": [{"name": "opencga-agent", "readinessProbe": probe}]}}}
    body = build.members(wanted(statefulSet={"spec": laid}), 3, "5.0.0").body
    env = by_name(by_name(body["spec"]["template"]["spec"]["containers"])["opencga-agent"]["env"])

    assert seconds == env["OPENCGA_DRAIN_SECONDS"]["value"]


@pytest.mark.parametrize(("probe", "seconds"), [({}, "9"), ({"periodSeconds": 10, "failureThreshold": 5}, "53")])
def test_an_agent_waits_until_the_servers_probe_has_failed(probe: dict[str, Any], seconds: str) -> None:
    """Of a server that is switched off, by whatever the user has laid over that probe."""
    laid = {"template": {"spec": {"containers": [{"name": "opencga-rest", "readinessProbe": probe}]}}}
    body = build.members(wanted(statefulSet={"spec": laid}), 3, "5.0.0").body
    env = by_name(by_name(body["spec"]["template"]["spec"]["containers"])["opencga-agent"]["env"])

    assert seconds == env["OPENCGA_SETTLE_SECONDS"]["value"]
    assert "OPENCGA_SETTLE_SECONDS" not in by_name(pods(PLAIN)[names.MASTER]["containers"][1]["env"])


def test_two_stateful_sets_share_one_headless_service() -> None:
    """Each selects its own role; pods are called through the one that tells of those who are not ready too."""
    it = wanted()
    rest, master = build.members(it, 3, "5.0.0").body, build.master(it, "5.0.1").body
    headless, endpoint, budget = (each.body for each in build.children(it))

    assert ("demo", "demo-client") == (rest["metadata"]["name"], master["metadata"]["name"])
    assert ("demo-svc", "demo-svc") == (rest["spec"]["serviceName"], master["spec"]["serviceName"])
    assert (3, 1) == (rest["spec"]["replicas"], master["spec"]["replicas"])
    assert {"opencga.zetta.com/role": "master"}.items() <= master["spec"]["selector"]["matchLabels"].items()
    for body in (rest, master):
        labels = body["spec"]["template"]["metadata"]["labels"]
        assert body["spec"]["selector"]["matchLabels"].items() <= labels.items()
        assert headless["spec"]["selector"].items() <= labels.items()
    assert headless["spec"]["publishNotReadyAddresses"]
    assert "demo-svc" == headless["metadata"]["name"] == headless["spec"]["selector"]["app"]
    assert "rest" == endpoint["spec"]["selector"]["opencga.zetta.com/role"]
    assert "rest" == budget["spec"]["selector"]["matchLabels"]["opencga.zetta.com/role"]


def test_no_budget_for_one_member() -> None:
    """It would keep a node from being drained for ever."""
    assert ["Service", "Service"] == [each.resource.kind for each in build.children(wanted(members=1))]
    off = wanted(podDisruptionBudget={"enabled": False})
    assert ["Service", "Service"] == [each.resource.kind for each in build.children(off)]


@pytest.mark.parametrize(
    ("spec", "heap"),
    [
        ({}, "1433m"),  # 70 % of 2Gi
        ({"resources": {"limits": {"memory": "8Gi"}}}, "5734m"),
        (
            {
                "statefulSet": {
                    "spec": {
                        "template": {
                            "spec": {
                                "containers": [{"name": "opencga-rest", "resources": {"limits": {"memory": "4Gi"}}}]
                            }
                        }
                    }
                }
            },
            "2867m",
        ),
        (
            {
                "statefulSet": {
                    "spec": {
                        "template": {
                            "spec": {
                                "containers": [{"name": "opencga-rest", "env": [{"name": "JAVA_HEAP", "value": "1g"}]}]
                            }
                        }
                    }
                }
            },
            "1g",
        ),
    ],
)
def test_the_heap_follows_from_the_memory_limit(spec: dict[str, Any], heap: str) -> None:
    """Of whoever says it last; a heap that the user gives is left as it is."""
    template = build.members(wanted(**spec), 3, "5.0.0").body["spec"]["template"]
    env = by_name(by_name(template["spec"]["containers"])["opencga-rest"]["env"])

    assert heap == env["JAVA_HEAP"]["value"]


def test_what_a_user_lays_over_is_merged_by_name_and_leaves_what_is_ours() -> None:
    """Labels of ours stay, one more container comes, and the size of the data volume is what it says."""
    over = {
        "spec": {
            "minReadySeconds": 5,
            "template": {
                "metadata": {"labels": {"team": "a", "app": "mine"}, "annotations": {"note": "x"}},
                "spec": {
                    "containers": [
                        {"name": "opencga-agent", "imagePullPolicy": "Always"},
                        {"name": "more", "image": "m"},
                    ],
                    "tolerations": [{"key": "k", "operator": "Exists"}],
                    "volumes": [{"name": "tmp", "configMap": {"name": "c"}}],
                },
            },
            "volumeClaimTemplates": [
                {"metadata": {"name": "data-volume"}, "spec": {"resources": {"requests": {"storage": "50Gi"}}}},
                {"metadata": {"name": "logs-volume"}, "spec": {"resources": {"requests": {"storage": "2G"}}}},
            ],
        },
        "metadata": {"labels": {"team": "a"}, "annotations": {"note": "y"}},
    }
    it = wanted(statefulSet=over)
    body = build.members(it, 3, "5.0.0").body
    template = body["spec"]["template"]
    containers, volumes = by_name(template["spec"]["containers"]), by_name(template["spec"]["volumes"])

    assert "" == it.fault
    assert ("demo-svc", "a") == (template["metadata"]["labels"]["app"], template["metadata"]["labels"]["team"])
    assert ("x", "5.0.0") == (
        template["metadata"]["annotations"]["note"],
        template["metadata"]["annotations"][templates.VERSION],
    )
    assert ["opencga-rest", "opencga-agent", "more"] == list(containers)
    assert ("Always", "moorage.dev/opencga-agent:0.1.0") == (
        containers["opencga-agent"]["imagePullPolicy"],
        containers["opencga-agent"]["image"],
    )
    assert {"name": "tmp", "configMap": {"name": "c"}} == volumes["tmp"]
    assert [{"key": "k", "operator": "Exists"}] == template["spec"]["tolerations"]
    assert 5 == body["spec"]["minReadySeconds"]
    assert "50Gi" == build.data_size(it.spec)
    assert {"data-volume": "50Gi", "logs-volume": "2G"} == {
        each["metadata"]["name"]: each["spec"]["resources"]["requests"]["storage"]
        for each in body["spec"]["volumeClaimTemplates"]
    }
    assert ("a", "y") == (body["metadata"]["labels"]["team"], body["metadata"]["annotations"]["note"])
    assert apply.stamped(body)["metadata"]["annotations"] == body["metadata"]["annotations"]


def test_nobody_lays_anything_over_the_master() -> None:
    """It would be told to run twice, or as nothing that a catalog can be migrated by."""
    over = {"spec": {"template": {"spec": {"hostname": "x"}}}}

    assert build.master(wanted(), "5.0.0") == build.master(wanted(statefulSet=over), "5.0.0")


def test_the_document_is_in_a_secret_that_is_watched_by_itself() -> None:
    """With its version, in a text that is the same for the same content."""
    it = wanted()
    made = automation.document("ns", "demo", it.spec, it.said, automation.Placed(1, "5.0.0", "5.0.0"), {}, it.args)
    one = build.configuration(it, made, 3)
    text = base64.b64decode(one.body["data"]["cluster-config.json"])

    assert ("demo-config", "Secret", "") == (one.name, one.resource.kind, one.fill)
    assert "demo" == one.body["metadata"]["labels"][names.CONFIGURATION]
    assert 3 == json.loads(text)["version"]
    assert one == build.configuration(it, dict(reversed(made.items())), 3)
