"""An installation's definition and its objects, in a real API server: accepted, refused, admitted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from conftest import defined, restricted
from moorage.operators.opencga import dialect, names, types
from moorage.operators.opencga.wanted import automation, basis, build

if TYPE_CHECKING:
    from conftest import Cluster

pytestmark = pytest.mark.api

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples/opencga/community.yaml"
ORIGINAL = {"members": 3, "type": "ReplicaSet", "version": "5.0.0"}
SAMPLES: dict[str, Any] = {
    **ORIGINAL,
    "automationConfig": {"processes": [{"name": "demo-0", "disabled": True}]},
    "security": {
        "authentication": {"modes": ["SCRAM"]},
        "tls": {
            "enabled": True,
            "certificateKeySecretRef": {"name": "certificate"},
            "caConfigMapRef": {"name": "authority"},
        },
    },
    "statefulSet": {
        "spec": {
            "template": {
                "spec": {
                    "containers": [
                        {"name": "opencga-rest", "resources": {"limits": {"memory": "4Gi"}}},
                        {"name": "opencga-agent", "readinessProbe": {"failureThreshold": 40}},
                    ],
                    "initContainers": [{"name": "folders", "image": "busybox", "command": ["true"]}],
                    "tolerations": [{"key": "a", "operator": "Exists"}],
                }
            },
            "volumeClaimTemplates": [
                {"metadata": {"name": "data-volume"}, "spec": {"resources": {"requests": {"storage": "50Gi"}}}},
                {
                    "metadata": {"name": "logs-volume"},
                    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2G"}}},
                },
            ],
        },
        "metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}},
    },
    "additionalOpenCGAConfig": {"healthCheck.interval": 30, "analysis": {"execution": {"id": "local"}}},
    "ingress": {
        "host": "opencga.example",
        "className": "nginx",
        "tlsSecretRef": {"name": "certificate"},
        "annotations": {"cert-manager.io/issuer": "letters", "nginx.ingress.kubernetes.io/auth-secret": "people"},
    },
    "prometheus": {
        "username": "prometheus",
        "passwordSecretRef": {"name": "metrics"},
        "metricsPath": "/metrics",
        "port": 9216,
        "tlsSecretKeyRef": {"name": "metrics-tls"},
    },
}


@pytest.fixture(scope="module", autouse=True)
def definition(cluster: Cluster) -> None:
    """The kind is served."""
    defined(cluster, "opencga")


@pytest.fixture
def place(cluster: Cluster, tag: str) -> Iterator[str]:
    """A namespace that takes only restricted pods."""
    for name in restricted(cluster, tag, "opencgacommunity"):
        cluster.kubectl("-n", name, "create", "serviceaccount", "default")  # where no controller makes it
        yield name


def community(place: str, spec: dict[str, Any], name: str = "demo") -> dict[str, Any]:
    metadata = {"name": name, "namespace": place}
    return {
        "apiVersion": "opencga.zetta.com/v1",
        "kind": "OpenCGACommunity",
        "metadata": metadata,
        "spec": spec,
    }


@pytest.mark.parametrize("how", ["--server-side=false", "--server-side"])
def test_the_example_is_accepted_whole(cluster: Cluster, place: str, how: str) -> None:
    """Strictly: a field that the definition lacks is an error, not a warning."""
    cluster.must(
        cluster.kubectl("-n", place, "apply", "--dry-run=server", "--validate=strict", how, "-f", str(EXAMPLE))
    )


@pytest.mark.parametrize("spec", [ORIGINAL, SAMPLES, {"version": "5.0.0"}], ids=["original", "samples", "least"])
def test_the_original_s_manifests_are_accepted(cluster: Cluster, place: str, spec: dict[str, Any]) -> None:
    """Its three fields, those that its samples have beside them, and the least."""
    cluster.must(cluster.kubectl("create", "--dry-run=server", "--validate=strict", body=community(place, spec)))


def test_what_the_server_fills_in_is_what_the_code_does(cluster: Cluster, place: str) -> None:
    """So that nothing hangs on which of the two did."""
    cluster.must(cluster.kubectl("create", body=community(place, ORIGINAL)))
    live = json.loads(cluster.must(cluster.kubectl("-n", place, "get", "ocbc", "demo", "-o", "json")))

    assert msgspec.convert(ORIGINAL, types.CommunitySpec) == msgspec.convert(live["spec"], types.CommunitySpec)
    assert {"observedGeneration": -1} == live["status"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"members": -1}, "spec.members"),
        ({"members": 101}, "spec.members"),
        ({"type": "OpencgaClient"}, "spec.type"),
        ({"version": "5.0"}, "spec.version"),
        ({"version": "latest"}, "spec.version"),
        ({"resources": {"limits": {"memory": "500M"}}}, "limits.memory must be at least 1Gi"),
        ({"client": {"resources": {"limits": {"memory": "1023Mi"}}}}, "limits.memory must be at least 1Gi"),
        ({"database": {"hosts": ["mongodb://a"]}}, "spec.database.hosts"),
        ({"database": {"prefix": "Open-CGA"}}, "spec.database.prefix"),
        ({"security": {"authentication": {"modes": ["X509"]}}}, "spec.security.authentication.modes"),
        ({"cellbase": {"url": "https://user:password@cellbase"}}, "spec.cellbase.url"),
        ({"volumes": {"data": {"size": "big"}}}, "spec.volumes.data.size"),
        ({"upgrade": {"backup": {"command": []}}}, "spec.upgrade.backup.command"),
        ({"upgrade": {"backup": {"command": ["sh", "-c", "x"]}}}, "the program must be named by its path"),
        ({"upgrade": {"backup": {"command": ["/bin/x", "--force"]}}}, "--force is never passed on"),
        ({"ingress": {}}, "spec.ingress.host"),
        ({"ingress": {"host": "https://a"}}, "spec.ingress.host"),
        ({"ingress": {"host": "a", "path": "opencga"}}, "spec.ingress.path"),
        ({"ingress": {"host": "a", "path": "/a;b{"}}, "spec.ingress.path"),
        ({"ingress": {"host": "a", "tlsSecretRef": {"name": "other/certificate"}}}, "spec.ingress.tlsSecretRef.name"),
        ({"ingress": {"host": "a", "annotations": {"moorage.dev/applied": "x"}}}, "are moorage's own"),
        ({"ingress": {"host": "a", "annotations": {"nginx/server-snippet": "x"}}}, "can't hold a snippet"),
        ({"ingress": {"host": "a", "annotations": {"nginx/auth-secret": "b/c"}}}, "Secrets of this namespace alone"),
        ({"admin": {"passwordSecretRef": {"name": "other/password"}}}, "spec.admin.passwordSecretRef.name"),
        ({"database": {"credentialsSecretRef": {"name": "b/c"}}}, "spec.database.credentialsSecretRef.name"),
        ({"security": {"tls": {"caConfigMapRef": {"name": "b/c"}}}}, "spec.security.tls.caConfigMapRef.name"),
    ],
)
def test_what_is_refused_says_where(cluster: Cluster, place: str, change: dict[str, Any], words: str) -> None:
    """At admission, before anything is made."""
    done = cluster.kubectl("create", "--dry-run=server", body=community(place, ORIGINAL | change))

    assert done.returncode != 0
    assert words in done.stderr


def test_a_name_that_pods_could_not_bear_is_refused(cluster: Cluster, place: str) -> None:
    """At admission."""
    done = cluster.kubectl("create", "--dry-run=server", body=community(place, ORIGINAL, "a" * 41))

    assert "at most 40 lower-case letters" in done.stderr


CHANGES: list[tuple[dict[str, Any], str]] = [
    # change, and what is said; nothing for what is accepted
    ({"members": 0}, ""),
    ({"version": "5.0.10"}, ""),
    ({"version": "5.0.9"}, ""),
    ({"version": "5.0.8"}, "version can't go below status.catalogVersion"),
    ({"version": "4.99.99"}, "version can't go below status.catalogVersion"),
    ({"database": {"prefix": "other"}}, "database.prefix can't be changed"),
    ({"volumes": {"data": {"size": "20G"}}}, ""),
    ({"volumes": {"data": {"size": "8G"}}}, ""),  # as large as the smallest of those that are there
    ({"volumes": {"data": {"size": "5G"}}}, "volumes.data.size can only grow"),
    ({"volumes": {"data": {"storageClassName": "fast"}}}, "storageClassName can't be changed"),
]


@pytest.mark.parametrize(("change", "words"), CHANGES, ids=[json.dumps(change) for change, _ in CHANGES])
def test_what_may_change(cluster: Cluster, place: str, change: dict[str, Any], words: str) -> None:
    """Of an installation whose catalog is of 5.0.9, and whose volumes are of 8G."""
    cluster.must(cluster.kubectl("create", body=community(place, ORIGINAL | {"version": "5.0.10"})))
    status = {"status": {"catalogVersion": "5.0.9", "volumeSize": "8G"}}
    patch = ("-n", place, "patch", "opencgacommunity", "demo", "--type=merge")
    cluster.must(cluster.kubectl(*patch, "--subresource=status", "-p", json.dumps(status)))
    done = cluster.kubectl(*patch, "--dry-run=server", "-p", json.dumps({"spec": change}))

    assert bool(words) == (done.returncode != 0), done.stderr
    assert words in done.stderr


def test_it_scales(cluster: Cluster, place: str) -> None:
    """By the scale subresource."""
    cluster.must(cluster.kubectl("create", body=community(place, ORIGINAL)))
    cluster.must(cluster.kubectl("-n", place, "scale", "opencgacommunity/demo", "--replicas=5"))
    members = cluster.kubectl("-n", place, "get", "ocbc", "demo", "-o", "jsonpath={.spec.members}")

    assert "5" == cluster.must(members)


@pytest.mark.parametrize("spec", [ORIGINAL, SAMPLES], ids=["original", "samples"])
def test_what_is_made_is_accepted_and_its_pods_are_admitted(cluster: Cluster, place: str, spec: dict[str, Any]) -> None:
    """Strictly, by restricted Pod Security, and with what a user lays over."""
    if spec is SAMPLES:  # a container of one's own must be such as the namespace takes
        safe = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
        folders = {"name": "folders", "image": "busybox", "securityContext": safe}
        template = {**spec["statefulSet"]["spec"]["template"]["spec"], "initContainers": [folders]}
        laid = {**spec["statefulSet"]["spec"], "template": {"spec": template}}
        spec = {**spec, "statefulSet": {**spec["statefulSet"], "spec": laid}}
    made = msgspec.convert(spec | {"database": {"hosts": ["m"]}}, types.CommunitySpec)
    wanted = basis.of(place, "demo", "no-uid", made, dialect.Dialect())
    assert "" == wanted.fault
    document = automation.document(
        place, "demo", made, wanted.said, automation.Placed(3, "5.0.0", "5.0.0"), {}, wanted.args
    )
    master, rest = build.master(wanted, "5.0.0"), build.members(wanted, 3, "5.0.0")
    for each in (*build.children(wanted), build.configuration(wanted, document, 1), master, rest):
        body = {**each.body, "metadata": {**each.body["metadata"], "ownerReferences": []}}
        said = cluster.kubectl("create", "--dry-run=server", "--validate=strict", body=body)
        cluster.must(said)
        assert "would violate PodSecurity" not in said.stderr
    for each in (master, rest):
        template = each.body["spec"]["template"]
        claims = [it["metadata"]["name"] for it in each.body["spec"]["volumeClaimTemplates"]]
        volumes = [{"name": it, "persistentVolumeClaim": {"claimName": it}} for it in claims]
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "trial", "namespace": place, "labels": template["metadata"]["labels"]},
            "spec": {**template["spec"], "volumes": [*template["spec"]["volumes"], *volumes]},
        }
        cluster.must(cluster.kubectl("create", "--dry-run=server", body=pod))
    assert names.MASTER == master.body["spec"]["template"]["metadata"]["labels"][names.ROLE]
