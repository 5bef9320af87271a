"""The operator's chart: its configuration file, its switches, its rights on paper, and what its schema refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

Objects = list[dict[str, Any]]
Values = dict[str, Any]


def of_kind(objects: Objects, *kinds: str) -> Objects:
    return [each for each in objects if each["kind"] in kinds]


def named(objects: Objects, kind: str, name: str) -> dict[str, Any]:
    (found,) = [each for each in of_kind(objects, kind) if each["metadata"]["name"] == name]
    return found


def config(objects: Objects) -> dict[str, Any]:
    return yaml.safe_load(of_kind(objects, "ConfigMap")[0]["data"]["config.yaml"])


def operator_rules(objects: Objects) -> Iterator[dict[str, Any]]:
    """The rules that the chart itself gives the operator in all namespaces."""
    for binding in of_kind(objects, "ClusterRoleBinding"):
        yield from named(objects, "ClusterRole", binding["roleRef"]["name"])["rules"]


def test_configuration_file(render: Any) -> None:
    assert config(render("moorage", release="moorage", namespace="ops")) == {
        "leaderElection": {"leaseName": "moorage", "durationSeconds": 15, "renewSeconds": 10, "retrySeconds": 2},
        "http": {"port": 8080},
        "logLevel": "info",
        "workers": 8,
        "helmRuns": 4,
        "drainSeconds": 40,
        "systems": {
            "collector": {
                "namespaces": [],
                "serviceAccount": {"name": "moorage", "namespace": "ops"},
                "tenantClusterRole": "moorage-collector-tenant",
                "namespaceLabels": {"pod-security.kubernetes.io/enforce": "restricted"},
                "imageRepository": "moorage.dev",
                "charts": {"default": {"folder": "/charts"}, "clusters": {}},
                "resyncSeconds": 600,
            }
        },
    }


def test_a_registry_replaces_the_default_folder(render: Any) -> None:
    values = {
        "systems": {"collector": {"charts": {"default": {"oci": "oci://registry.example/charts", "plainHTTP": True}}}}
    }
    charts = config(render("moorage", values))["systems"]["collector"]["charts"]
    assert charts["default"] == {"oci": "oci://registry.example/charts", "plainHTTP": True}


def test_a_system_that_is_off_leaves_no_trace(render: Any) -> None:
    objects = render("moorage", {"systems": {"collector": {"enabled": False}}})
    assert config(objects)["systems"] == {}
    assert "collector" not in yaml.safe_dump(objects)
    assert not of_kind(objects, "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding")
    assert not of_kind(objects, "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")


def test_crds_are_kept_unless_told_otherwise(render: Any) -> None:
    (crd,) = of_kind(render("moorage"), "CustomResourceDefinition")
    assert crd["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    (crd,) = of_kind(render("moorage", {"crds": {"keep": False}}), "CustomResourceDefinition")
    assert "helm.sh/resource-policy" not in crd["metadata"].get("annotations", {})
    assert not of_kind(render("moorage", {"crds": {"enabled": False}}), "CustomResourceDefinition")


def test_every_crd_of_every_system_is_rendered_as_it_is(render: Any, root: Any) -> None:
    rendered = {each["metadata"]["name"]: each for each in of_kind(render("moorage"), "CustomResourceDefinition")}
    systems = yaml.safe_load((root / "charts/moorage/values.yaml").read_text())["systems"]
    files = sorted((root / "charts/moorage/files/crds").iterdir())
    assert [path.name for path in files] == sorted(f"{system}.yaml" for system in systems)
    for path in files:
        for crd in yaml.safe_load_all(path.read_text()):
            assert rendered.pop(crd["metadata"]["name"])["spec"] == crd["spec"]
    assert not rendered


def test_a_new_configuration_rolls_the_operator(render: Any) -> None:
    def template(values: Values) -> dict[str, Any]:
        return of_kind(render("moorage", values), "Deployment")[0]["spec"]["template"]

    assert template({"logLevel": "debug"}) != template({})
    assert template({"replicas": 2}) == template({})


def test_no_wildcards(render: Any) -> None:
    for role in of_kind(render("moorage"), "ClusterRole", "Role"):
        for rule in role["rules"]:
            assert "*" not in rule["verbs"] + rule["resources"] + rule["apiGroups"]
            assert not {"escalate", "impersonate", "deletecollection"} & set(rule["verbs"]) or role["metadata"][
                "name"
            ].endswith("-edit")


def test_everywhere_nothing_but_collectors_and_the_first_step(render: Any) -> None:
    objects = render("moorage", release="moorage")
    granted = {
        (resource, verb, tuple(rule.get("resourceNames", ())))
        for rule in operator_rules(objects)
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    anywhere = {(resource, verb) for resource, verb, names in granted if not names}
    assert anywhere == {
        *(("collectors", verb) for verb in ("get", "list", "watch", "patch")),
        *(("collectors/status", verb) for verb in ("get", "patch")),
        *(("namespaces", verb) for verb in ("get", "list", "watch", "create")),
        ("rolebindings", "create"),
        *(("events", verb) for verb in ("create", "patch")),
    }
    assert {each for each in granted if each[2]} == {
        ("clusterroles", "bind", ("moorage-collector-tenant",)),
        *(("rolebindings", verb, ("moorage-collector",)) for verb in ("get", "list", "watch", "patch", "delete")),
    }


def test_the_tenant_role_is_bound_by_nobody_yet(render: Any) -> None:
    objects = render("moorage", release="moorage")
    bound = {each["roleRef"]["name"] for each in of_kind(objects, "ClusterRoleBinding", "RoleBinding")}
    assert bound == {"moorage", "moorage-collector"}
    tenant = named(objects, "ClusterRole", "moorage-collector-tenant")
    resources = {resource for rule in tenant["rules"] for resource in rule["resources"]}
    assert not resources & {"roles", "rolebindings", "pods/exec", "serviceaccounts/token", "namespaces"}


def test_own_secrets_are_readable_by_name_only(render: Any) -> None:
    def secrets(values: Values) -> list[dict[str, Any]]:
        (role,) = of_kind(render("moorage", values), "Role")
        return [rule for rule in role["rules"] if "secrets" in rule["resources"]]

    def source(name: str) -> dict[str, Any]:
        return {"oci": "oci://registry.example/charts", "secretRef": name}

    assert secrets({}) == []
    charts = {"default": source("b"), "clusters": {"one": source("a"), "two": source("b"), "three": {"folder": "/x"}}}
    (rule,) = secrets({"systems": {"collector": {"charts": charts}}})
    assert rule == {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["a", "b"], "verbs": ["get"]}


def test_extra_tenant_rules_reach_the_tenant_role_only(render: Any) -> None:
    rule = {"apiGroups": ["monitoring.coreos.com"], "resources": ["servicemonitors"], "verbs": ["get", "patch"]}
    objects = render("moorage", {"systems": {"collector": {"extraTenantRules": [rule]}}}, release="moorage")
    having = [role["metadata"]["name"] for role in of_kind(objects, "ClusterRole", "Role") if rule in role["rules"]]
    assert having == ["moorage-collector-tenant"]


def test_admission_policies_fail_closed_and_deny(render: Any) -> None:
    objects = render("moorage", release="moorage", namespace="ops")
    policies = of_kind(objects, "ValidatingAdmissionPolicy")
    bindings = of_kind(objects, "ValidatingAdmissionPolicyBinding")
    assert {each["metadata"]["name"] for each in policies} == {each["spec"]["policyName"] for each in bindings}
    for policy in policies:
        assert policy["spec"]["failurePolicy"] == "Fail"
        (condition,) = policy["spec"]["matchConditions"]
        assert condition["expression"] == "request.userInfo.username == 'system:serviceaccount:ops:moorage'"
    assert all(each["spec"]["validationActions"] == ["Deny"] for each in bindings)


def test_people_get_the_kinds_through_the_built_in_roles(render: Any) -> None:
    prefix = "rbac.authorization.k8s.io/aggregate-to-"

    def roles(objects: Objects) -> dict[str, set[str]]:
        return {
            each["metadata"]["name"]: {
                label.removeprefix(prefix) for label in each["metadata"]["labels"] if label.startswith(prefix)
            }
            for each in of_kind(objects, "ClusterRole")
        }

    on = roles(render("moorage", release="moorage"))
    assert on["moorage-collector-view"] == {"view", "edit", "admin"}
    assert on["moorage-collector-edit"] == {"edit", "admin"}
    assert not on["moorage-collector"]
    assert not on["moorage-collector-tenant"]
    assert not any(roles(render("moorage", {"rbac": {"aggregate": False}})).values())


def test_network_policy_lets_in_8080_only(render: Any) -> None:
    (policy,) = of_kind(render("moorage"), "NetworkPolicy")
    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert [port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]] == [8080]
    assert {port["port"] for rule in policy["spec"]["egress"] for port in rule["ports"]} == {53, 443, 6443}
    (policy,) = of_kind(
        render("moorage", {"networkPolicy": {"ports": [5000], "from": [{"podSelector": {}}]}}), "NetworkPolicy"
    )
    assert policy["spec"]["ingress"][0]["from"] == [{"podSelector": {}}]
    assert not of_kind(render("moorage", {"networkPolicy": {"enabled": False}}), "NetworkPolicy")


def test_drain_has_time(render: Any) -> None:
    (deployment,) = of_kind(render("moorage"), "Deployment")
    assert deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == 60


def test_notes_name_the_next_two_commands(helm: Any, root: Any) -> None:
    chart = str(root / "charts/moorage")
    notes = helm("install", "moorage", chart, "--dry-run=client", "--namespace", "ops").stdout.partition("NOTES:")[2]
    assert "kubectl apply -f examples/collector/hello.yaml" in notes
    assert "kubectl get collectors -A" in notes
    assert "safe while resources exist" in notes
    off = helm("install", "moorage", chart, "--dry-run=client", "--set", "systems.collector.enabled=false").stdout
    assert "no system is switched on" in off.partition("NOTES:")[2]
    gone = helm("install", "moorage", chart, "--dry-run=client", "--set", "crds.keep=false").stdout
    assert "Before you uninstall" in gone.partition("NOTES:")[2]


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"replica": 2}, "additional properties 'replica' not allowed"),
        ({"systems": {"collectr": {}}}, "at '/systems': additional properties 'collectr' not allowed"),
        ({"systems": {"collector": {"enabled": "yes"}}}, "at '/systems/collector/enabled': got string, want boolean"),
        (
            {"systems": {"collector": {"charts": {"default": {"folder": "charts"}}}}},
            "at '/systems/collector/charts/default/folder'",
        ),
        (
            {"systems": {"collector": {"charts": {"default": {"oci": "https://x"}}}}},
            "at '/systems/collector/charts/default/oci'",
        ),
        (
            {"systems": {"collector": {"charts": {"default": {"secretRef": "x"}}}}},
            "at '/systems/collector/charts/default'",
        ),
        ({"systems": {"collector": {"charts": {"clusters": {"x": {"path": "/y"}}}}}}, "'path' not allowed"),
        ({"systems": {"collector": {"imageRepository": "host/"}}}, "at '/systems/collector/imageRepository'"),
        (
            {
                "systems": {
                    "collector": {"extraTenantRules": [{"apiGroups": ["*"], "resources": ["x"], "verbs": ["get"]}]}
                }
            },
            "at '/systems/collector/extraTenantRules/0/apiGroups/0'",
        ),
        (
            {"systems": {"collector": {"extraTenantRules": [{"apiGroups": [""], "resources": ["x"], "verbs": ["*"]}]}}},
            "at '/systems/collector/extraTenantRules/0/verbs/0'",
        ),
        ({"logLevel": "loud"}, "at '/logLevel'"),
        ({"leaderElection": {"durationSeconds": 0}}, "at '/leaderElection/durationSeconds'"),
        ({"terminationGracePeriodSeconds": 1}, "at '/terminationGracePeriodSeconds'"),
        ({"scratch": {"medium": "Disk"}}, "at '/scratch/medium'"),
    ],
)
def test_schema_names_what_is_wrong(refusal: Callable[[str, Values], str], values: Values, word: str) -> None:
    assert word in refusal("moorage", values)


def test_an_account_of_ones_own_must_be_named(refusal: Callable[[str, Values], str]) -> None:
    assert "serviceAccount.name: name the account" in refusal("moorage", {"serviceAccount": {"create": False}})


def test_the_lease_is_there_beforehand_and_nobodys(render: Any) -> None:
    (lease,) = of_kind(render("moorage"), "Lease")

    assert "moorage" == lease["metadata"]["name"]
    assert "spec" not in lease
