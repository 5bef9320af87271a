"""The chart of a Runtime's servers: what it makes of values, under restricted Pod Security, and the same each time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
import yaml

from moorage.operators.kre import kinds
from moorage.operators.kre.runtime import build, credentials, servers, types
from tests.unit.operators.kre import test_types as samples

Values = dict[str, Any]
Objects = list[Values]
CHART = "kre-runtime"
WORKLOADS = ("StatefulSet", "Deployment")
EVERYTHING: Values = {
    "runtime": {"name": "demo"},
    "nats": {"replicas": 5, "maxFileStore": "10Gi"},
    "mongoExpress": {"enabled": True},
    "ingress": {"enabled": True, "host": "demo.example.com", "className": "nginx", "tls": {"enabled": True}},
    "imagePullSecrets": [{"name": "pull"}],
    "nodeSelector": {"disk": "fast"},
    "tolerations": [{"key": "gpu", "operator": "Exists"}],
    "priorityClassName": "high",
}
NO_VOLUMES: Values = {server: {"volume": {"enabled": False}} for server in kinds.SERVERS}
VARIANTS = {"defaults": {}, "everything": EVERYTHING, "without volumes": NO_VOLUMES}


@pytest.fixture(params=VARIANTS.values(), ids=VARIANTS.keys())
def objects(request: pytest.FixtureRequest, render: Any) -> Objects:
    return render(CHART, request.param, release=kinds.RELEASE)


@pytest.fixture
def everything(render: Any) -> Objects:
    return render(CHART, EVERYTHING, release=kinds.RELEASE)


def of_kind(objects: Objects, *wanted: str) -> Objects:
    return [each for each in objects if each["kind"] in wanted]


def named(objects: Objects, kind: str, name: str) -> Values:
    (found,) = [each for each in of_kind(objects, kind) if each["metadata"]["name"] == name]
    return found


def pods(objects: Objects) -> Iterator[tuple[str, Values, Values]]:
    """(name, template of the pod, its one container) of every workload."""
    for each in of_kind(objects, *WORKLOADS):
        template = each["spec"]["template"]
        (container,) = template["spec"]["containers"]
        assert "initContainers" not in template["spec"]
        yield each["metadata"]["name"], template, container


def test_the_sample_makes_the_four_pods(render: Any) -> None:
    """The original's own sample, by the values that a Runtime makes of it."""
    spec = msgspec.convert(yaml.safe_load(samples.SAMPLE), types.RuntimeSpec)
    made = render(CHART, dict(build.chart_values("demo", spec, {}, {})), release=kinds.RELEASE)
    replicas = {each["metadata"]["name"]: each["spec"]["replicas"] for each in of_kind(made, "StatefulSet")}

    assert {"kre-minio": 1, "kre-mongo": 1, "kre-nats": 2, "kre-influxdb": 1, "kre-chronograf": 1} == replicas
    sizes = {
        each["metadata"]["name"]: (claim["spec"]["storageClassName"], claim["spec"]["resources"]["requests"]["storage"])
        for each in of_kind(made, "StatefulSet")
        for claim in each["spec"]["volumeClaimTemplates"]
    }
    assert (
        dict.fromkeys(("kre-minio", "kre-mongo", "kre-nats", "kre-influxdb"), ("standard", "2Gi"))
        | {"kre-chronograf": ("standard", "1Gi")}
        == sizes
    )
    (ingress,) = of_kind(made, "Ingress")
    assert "runtime.local" == ingress["spec"]["rules"][0]["host"]


def test_every_pod_passes_restricted_pod_security(objects: Objects) -> None:
    """As nobody in particular, who can gain nothing; and it writes nowhere but in its volumes."""
    for name, template, container in pods(objects):
        pod = template["spec"]["securityContext"]
        own = container["securityContext"]
        assert pod["runAsNonRoot"] is True, name
        assert pod["runAsUser"] >= 10000, name
        assert {"type": "RuntimeDefault"} == pod["seccompProfile"], name
        assert own["allowPrivilegeEscalation"] is False, name
        assert own["readOnlyRootFilesystem"] is True, name
        assert {"drop": ["ALL"]} == own["capabilities"], name
        assert not {"hostNetwork", "hostPID", "hostIPC"} & template["spec"].keys(), name
        kinds_of = {volume["name"]: (volume.keys() - {"name"}).pop() for volume in template["spec"]["volumes"]}
        assert set(kinds_of.values()) <= {"secret", "configMap", "emptyDir", "projected"}, name
        together = [it["projected"]["sources"] for it in template["spec"]["volumes"] if "projected" in it]
        assert all(source.keys() <= {"secret", "configMap"} for sources in together for source in sources), name
        assert all(it["emptyDir"].get("sizeLimit") for it in template["spec"]["volumes"] if "emptyDir" in it), name


def test_nobody_gets_a_token(objects: Objects) -> None:
    """Nor an account: the original's servers ran as its operator."""
    assert not of_kind(objects, "ServiceAccount", "Role", "RoleBinding")
    for name, template, _ in pods(objects):
        assert template["spec"]["automountServiceAccountToken"] is False, name
        assert "serviceAccountName" not in template["spec"], name


def test_every_pod_has_probes_at_ports_of_its_own_and_asks_for_resources(objects: Objects) -> None:
    """The original had neither but for two."""
    for name, _, container in pods(objects):
        ports = {port["name"] for port in container["ports"]}
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            asked = container[probe].get("httpGet") or container[probe]["tcpSocket"]
            assert asked["port"] in ports, (name, probe)
        assert {"cpu", "memory"} <= container["resources"]["requests"].keys(), name
        assert "memory" in container["resources"]["limits"], name


def test_a_server_of_nats_has_started_when_it_takes_part_and_is_alive_without(objects: Objects) -> None:
    """A rolling restart takes the next one only then; and nobody restarts one for a stream that has lost its majority.

    What NATS says to each is in tests/unit/operators/kre/nats/test_probes.py.
    """
    ((_, _, nats),) = [each for each in pods(objects) if each[0] == "kre-nats"]
    start, live, ready = (nats[f"{probe}Probe"] for probe in ("startup", "liveness", "readiness"))

    assert ("/healthz", "/healthz?js-enabled-only=true", "/healthz?js-server-only=true") == tuple(
        probe["httpGet"]["path"] for probe in (start, live, ready)
    )
    assert start["periodSeconds"] * start["failureThreshold"] == 3600


def test_images_are_pinned_and_come_from_where_they_are_told_to(render: Any) -> None:
    """No `latest`; a prefix, a tag and a digest of one's own."""
    digest = "sha256:" + "0" * 64
    images = {"nats": {"digest": digest}, "mongo": {"repository": "mine", "tag": "1"}}
    made = render(CHART, {"imagePrefix": "place/team", "images": images}, release=kinds.RELEASE)
    found = {name: container["image"] for name, _, container in pods(made)}

    assert f"place/team/nats@{digest}" == found["kre-nats"]
    assert "place/team/mine:1" == found["kre-mongo"]
    for name, _, container in pods(render(CHART, {}, release=kinds.RELEASE)):
        assert re.search(r":[A-Za-z0-9.-]*\d", container["image"]), name
        assert not container["image"].endswith(":latest"), name


def test_secrets_are_files_of_one_secret_that_the_chart_does_not_make(objects: Objects) -> None:
    """None travels by the environment, and each server sees its own keys alone."""
    assert not of_kind(objects, "Secret")
    for name, template, container in pods(objects):
        assert "envFrom" not in container, name
        assert all("secretKeyRef" not in entry.get("valueFrom", {}) for entry in container.get("env", ())), name
        for volume in template["spec"]["volumes"]:
            if "secret" in volume:
                assert kinds.CREDENTIALS == volume["secret"]["secretName"], name
                keys = {item["key"] for item in volume["secret"]["items"]}
                prefix = {"kre-mongo": "mongo", "kre-minio": "minio", "kre-mongo-express": "mongoReader"}[name]
                assert all(key.startswith(prefix) for key in keys), name
            for source in (volume.get("projected") or {}).get("sources", ()):
                if "secret" in source:
                    items = [{"key": credentials.LOGIN_KEY, "path": "login.conf"}]
                    assert ("kre-nats", {"name": kinds.NATS_LOGIN, "items": items}) == (name, source["secret"])


def test_the_same_values_render_the_same(helm: Callable[..., Any], root: Any) -> None:
    """A password that a template made anew had the original upgraded for ever."""
    where = ["template", kinds.RELEASE, str(root / "charts" / CHART), "--set", "mongoExpress.enabled=true"]
    first, second = (helm(*where).stdout for _ in range(2))

    assert first == second != ""


def test_lint_is_clean(helm: Callable[..., Any], root: Any) -> None:
    done = helm("lint", "--strict", str(root / "charts" / CHART))

    assert 0 == done.returncode, done.stdout + done.stderr


def test_selectors_select_and_services_are_there(objects: Objects) -> None:
    """A StatefulSet of the original named a Service that there was not."""
    services = {each["metadata"]["name"]: each for each in of_kind(objects, "Service")}
    labels = {
        each["metadata"]["name"]: each["spec"]["template"]["metadata"]["labels"]
        for each in of_kind(objects, *WORKLOADS)
    }
    ports = {name: {port["name"] for port in container["ports"]} for name, _, container in pods(objects)}

    assert labels.keys() == services.keys()
    for each in of_kind(objects, *WORKLOADS):
        name = each["metadata"]["name"]
        assert each["spec"]["selector"]["matchLabels"].items() <= labels[name].items()
        assert services[name]["spec"]["selector"].items() <= labels[name].items()
        assert {port["targetPort"] for port in services[name]["spec"]["ports"]} <= ports[name]
        assert each["spec"].get("serviceName", name) == name
    for budget in of_kind(objects, "PodDisruptionBudget"):
        assert budget["spec"]["selector"]["matchLabels"].items() <= labels[budget["metadata"]["name"]].items()


def test_labels_are_the_recommended_ones_and_no_version_is_in_what_can_t_change(objects: Objects) -> None:
    """A claim template is as it was made for ever; and pods don't restart for a chart's version."""
    for each in objects:
        labels = each["metadata"]["labels"]
        assert {"app.kubernetes.io/name", "app.kubernetes.io/instance", kinds.COMPONENT} <= labels.keys()
        assert "Helm" == labels["app.kubernetes.io/managed-by"]
        assert "place" == each["metadata"]["namespace"]
        inside = (
            [each["spec"]["template"], *each["spec"].get("volumeClaimTemplates", ())]
            if each["kind"] in WORKLOADS
            else []
        )
        for part in inside:
            assert not {"helm.sh/chart", "app.kubernetes.io/version"} & part["metadata"]["labels"].keys()


def test_claims_are_found_by_label_and_outlive_the_release(render: Any) -> None:
    """By the names and the label that moorage looks for."""
    for each in of_kind(render(CHART, {}, release=kinds.RELEASE), "StatefulSet"):
        (claim,) = each["spec"]["volumeClaimTemplates"]
        server = each["metadata"]["name"].removeprefix("kre-")
        assert kinds.CLAIM == claim["metadata"]["name"]
        assert server == claim["metadata"]["labels"][kinds.COMPONENT]
        assert server in kinds.SERVERS
        assert {"whenDeleted": "Retain", "whenScaled": "Retain"} == each["spec"]["persistentVolumeClaimRetentionPolicy"]


def test_without_a_volume_there_is_a_folder_of_that_size(render: Any) -> None:
    made = render(CHART, NO_VOLUMES, release=kinds.RELEASE)

    for each in of_kind(made, "StatefulSet"):
        assert "volumeClaimTemplates" not in each["spec"]
        (data,) = [it for it in each["spec"]["template"]["spec"]["volumes"] if it["name"] == "data"]
        assert data["emptyDir"]["sizeLimit"]


@pytest.mark.parametrize("replicas", [1, 2, 3, 5])
def test_nats_is_one_server_or_a_cluster_that_names_all_of_them(render: Any, replicas: int) -> None:
    """Each has a volume of its own, and streams are by JetStream: the original's group needed a volume in common."""
    made = render(CHART, {"nats": {"replicas": replicas}}, release=kinds.RELEASE)
    text = named(made, "ConfigMap", "kre-nats")["data"]["nats.conf"]
    nats = named(made, "StatefulSet", "kre-nats")

    assert "jetstream" in text
    assert "server_name: $POD_NAME" in text
    routes = [f"nats://kre-nats-{n}.kre-nats:6222" for n in range(replicas)] if replicas > 1 else []
    assert routes == re.findall(r"nats://\S+", text)
    assert ("cluster {" in text) == (replicas > 1)
    assert replicas == nats["spec"]["replicas"]
    assert "Parallel" == nats["spec"]["podManagementPolicy"]
    assert (replicas > 2) == bool(of_kind(made, "PodDisruptionBudget"))


def test_a_server_that_leaves_is_known_until_the_last_has_left(render: Any) -> None:
    """So that all of them are restarted once, for fewer; how many they know of stands at the StatefulSet."""
    made = render(CHART, {"nats": {"replicas": 4, "routes": 5}}, release=kinds.RELEASE)
    nats = named(made, "StatefulSet", "kre-nats")
    five = render(CHART, {"nats": {"replicas": 5}}, release=kinds.RELEASE)

    assert (4, "5") == (nats["spec"]["replicas"], nats["metadata"]["annotations"][build.ROUTES])
    assert nats["spec"]["template"] == named(five, "StatefulSet", "kre-nats")["spec"]["template"]


def test_a_new_configuration_of_nats_brings_new_pods(render: Any) -> None:
    def template(values: Values) -> Values:
        found: Values = named(render(CHART, values, release=kinds.RELEASE), "StatefulSet", "kre-nats")["spec"][
            "template"
        ]
        return found

    assert template({}) != template({"nats": {"maxPayload": "2Mi"}})
    assert template({}) == template({"minio": {"volume": {"size": "3Gi"}}})


def test_servers_are_asked_at_ports_that_they_have(everything: Objects) -> None:
    """What moorage asks, and what its network policy lets through."""
    found = {name: {port["containerPort"] for port in container["ports"]} for name, _, container in pods(everything)}

    assert servers.NATS_PORT in found["kre-nats"]
    assert servers.MINIO_PORT in found["kre-minio"]
    assert servers.INFLUX_PORT in found["kre-influxdb"]
    assert servers.MONGO_PORT in found["kre-mongo"]


def test_mongo_is_the_replica_set_that_moorage_makes(everything: Objects) -> None:
    """By the same name; and the user that reads is the one of whom moorage knows."""
    (container,) = named(everything, "StatefulSet", "kre-mongo")["spec"]["template"]["spec"]["containers"]
    (page,) = named(everything, "Deployment", "kre-mongo-express")["spec"]["template"]["spec"]["containers"]
    env = {each["name"]: each.get("value") for each in page["env"]}

    assert f"--replSet={build.REPLICA_SET}" in container["command"][-1]
    assert (build.READER, build.READABLE) == (
        env["ME_CONFIG_MONGODB_AUTH_USERNAME"],
        env["ME_CONFIG_MONGODB_AUTH_DATABASE"],
    )
    assert "true" == env["ME_CONFIG_OPTIONS_READONLY"]


def test_the_ingress_is_of_today_s_form(everything: Objects) -> None:
    """The original's had the fields of a form that is served no more."""
    (ingress,) = of_kind(everything, "Ingress")
    spec = ingress["spec"]

    assert "networking.k8s.io/v1" == ingress["apiVersion"]
    assert ("nginx", [{"hosts": ["demo.example.com"], "secretName": "demo.example.com-tls"}]) == (
        spec["ingressClassName"],
        spec["tls"],
    )
    (path,) = spec["rules"][0]["http"]["paths"]
    backend = path["backend"]["service"]
    service = named(everything, "Service", backend["name"])
    assert backend["port"]["name"] in {port["name"] for port in service["spec"]["ports"]}
    assert "annotations" not in ingress["metadata"]


def test_the_ingress_leads_to_what_is_published(render: Any) -> None:
    """By gRPC, which ingress-nginx must be told; what the user says of that counts."""
    protocol = "nginx.ingress.kubernetes.io/backend-protocol"
    given = {"enabled": True, "host": "a.b", "published": "demo-active-entrypoint"}
    (ingress,) = of_kind(render(CHART, {"ingress": given}, release=kinds.RELEASE), "Ingress")
    own = {"ingress": {**given, "annotations": {protocol: "GRPCS", "a": "b"}}}
    (told,) = of_kind(render(CHART, own, release=kinds.RELEASE), "Ingress")

    (path,) = ingress["spec"]["rules"][0]["http"]["paths"]
    assert {"name": "demo-active-entrypoint", "port": {"name": "grpc"}} == path["backend"]["service"]
    assert {protocol: "GRPC"} == ingress["metadata"]["annotations"]
    assert {protocol: "GRPCS", "a": "b"} == told["metadata"]["annotations"]


def test_alerts_are_made_where_their_kind_is_served(helm: Callable[..., Any], root: Any, render: Any) -> None:
    """About the servers by the names that they have, which the original's were not."""
    assert not of_kind(render(CHART, {}, release=kinds.RELEASE), "PrometheusRule")
    served = ("--api-versions", "monitoring.coreos.com/v1/PrometheusRule")
    text = helm("template", kinds.RELEASE, str(root / "charts" / CHART), "--namespace", "place", *served).stdout
    made = [each for each in yaml.safe_load_all(text) if each]
    (rule,) = of_kind(made, "PrometheusRule")
    told = {re.search(r'statefulset="([^"]+)"', each["expr"])[1] for each in rule["spec"]["groups"][0]["rules"]}  # type: ignore[index]

    assert {"kre-mongo", "kre-nats", "kre-minio", "kre-influxdb"} == told
    assert told <= {each["metadata"]["name"] for each in of_kind(made, "StatefulSet")}


def test_what_is_switched_off_is_not_there(render: Any) -> None:
    off = {"influxdb": {"enabled": False}, "chronograf": {"enabled": False}}
    names = {each["metadata"]["name"] for each in render(CHART, off, release=kinds.RELEASE)}

    assert not {"kre-influxdb", "kre-chronograf", "kre-mongo-express", "kre-entrypoint"} & names


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"nats": {"replicas": 6}}, "at '/nats/replicas'"),
        ({"nats_streaming": {"replicas": 1}}, "additional properties 'nats_streaming' not allowed"),
        ({"mongo": {"volume": {"size": "big"}}}, "at '/mongo/volume/size'"),
        ({"ingress": {"enabled": True}}, "ingress.host: name the host"),
        ({"influxdb": {"enabled": False}}, "set chronograf.enabled to false too"),
        ({"defaultBackend": {"page": "costs $5"}}, "at '/defaultBackend/page'"),
        ({"mongo": {"auth": {"adminPassword": "x"}}}, "at '/mongo': additional properties 'auth' not allowed"),
    ],
)
def test_what_is_refused(refusal: Any, values: Values, word: str) -> None:
    """By name, where the original overlooked it."""
    assert word in refusal(CHART, values)


def test_its_version_is_the_one_that_moorage_asks_for(root: Any) -> None:
    chart = yaml.safe_load((root / "charts" / CHART / "Chart.yaml").read_text())

    assert (build.CHART, build.VERSION) == (chart["name"], chart["version"])
