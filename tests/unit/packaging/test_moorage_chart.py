"""The operator's chart: its configuration file, its switches, its rights on paper, and what its schema refuses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
import yaml

from moorage import operators
from moorage.operators.kre import kinds
from moorage.operators.kre.runtime import servers
from moorage.operators.kre.version import nats_access
from moorage.operators.xsld.group import dialect

COLLECTOR_ONLY = {"systems": {"xsld": {"enabled": False}}}
XSLD_ONLY = {"systems": {"collector": {"enabled": False}}}
KRE_ONLY = {"systems": {"collector": {"enabled": False}, "xsld": {"enabled": False}, "kre": {"enabled": True}}}
ALL = {"systems": {name: {"enabled": True} for name in ("kre", "opencga", "weka")}}
NONE = {"systems": {"collector": {"enabled": False}, "xsld": {"enabled": False}}}

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
        "leaderElection": {
            "leaseName": "moorage",
            "shards": 1,
            "durationSeconds": 15,
            "renewSeconds": 10,
            "retrySeconds": 2,
        },
        "http": {"port": 8080},
        "logLevel": "info",
        "events": "all",
        "workers": 8,
        "helmRuns": 4,
        "drainSeconds": 40,
        "systems": {
            "collector": {
                "namespaces": [],
                "accounts": "moorage-accounts",
                "tenantClusterRole": "moorage-collector-tenant",
                "namespaceLabels": {"pod-security.kubernetes.io/enforce": "restricted"},
                "imageRepository": "moorage.dev",
                "charts": {"default": {"folder": "/charts"}, "clusters": {}},
                "resyncSeconds": 600,
            },
            "xsld": {
                "namespaces": [],
                "accounts": "moorage-accounts",
                "clusterRole": "moorage-xsld-namespace",
                "poll": {"taskSeconds": 2, "busySeconds": 10, "idleSeconds": 30},
                "retry": {"attempts": 5, "baseSeconds": 10, "capSeconds": 300, "unansweredSeconds": 30},
                "dialect": {},
                "resyncSeconds": 600,
            },
        },
    }


def test_every_section_is_one_that_the_operator_takes(render: Any) -> None:
    dialect_ = {"paths": {"group": "/group"}, "ports": {"admin": 9446}}
    runtimes = {"enabled": True, "values": {"imagePrefix": "team"}}
    values = {"systems": {**ALL["systems"], "xsld": {"dialect": dialect_}, "kre": runtimes}}
    taken = {
        name: msgspec.convert(section, operators.SYSTEMS[name].config)
        for name, section in config(render("moorage", values, release="moorage"))["systems"].items()
    }

    assert set(operators.SYSTEMS) == set(taken)
    assert ("moorage-kre-namespace", {"imagePrefix": "team"}) == (taken["kre"].cluster_role, taken["kre"].values)
    assert "/group" == taken["xsld"].dialect.paths.group
    assert dialect.Paths().grids == taken["xsld"].dialect.paths.grids
    assert 9446 == taken["xsld"].dialect.ports.admin


def test_a_registry_replaces_the_default_folder(render: Any) -> None:
    values = {
        "systems": {"collector": {"charts": {"default": {"oci": "oci://registry.example/charts", "plainHTTP": True}}}}
    }
    charts = config(render("moorage", values))["systems"]["collector"]["charts"]
    assert charts["default"] == {"oci": "oci://registry.example/charts", "plainHTTP": True}


@pytest.mark.parametrize(
    ("values", "on", "off"),
    [
        (COLLECTOR_ONLY, ["collector"], ["xsld", "kre"]),
        (XSLD_ONLY, ["xsld"], ["collector", "kre"]),
        (KRE_ONLY, ["kre"], ["collector", "xsld"]),
        ({"systems": {"xsld": None}}, ["collector"], ["xsld"]),  # values reused from before there was one
        ({"systems": {"kre": None, "xsld": {"enabled": False}}}, ["collector"], ["kre"]),
        (NONE, [], ["collector", "xsld", "kre"]),
    ],
)
def test_a_system_that_is_off_leaves_no_trace(render: Any, values: Values, on: list[str], off: list[str]) -> None:
    objects = render("moorage", values, release="moorage")
    text = yaml.safe_dump(objects)

    assert on == sorted(config(objects)["systems"])
    assert not [system for system in off if system in text]
    for system in on:
        assert {f"moorage-{system}"} == {each["metadata"]["name"] for each in of_kind(objects, "ClusterRoleBinding")}


def test_without_systems_there_is_nothing_but_the_operator(render: Any) -> None:
    objects = render("moorage", NONE)
    assert not of_kind(objects, "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding")
    assert not of_kind(objects, "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "Namespace")


def test_crds_are_kept_unless_told_otherwise(render: Any) -> None:
    kept = of_kind(render("moorage"), "CustomResourceDefinition")
    assert [each["metadata"]["annotations"]["helm.sh/resource-policy"] for each in kept] == ["keep"] * 4
    for crd in of_kind(render("moorage", {"crds": {"keep": False}}), "CustomResourceDefinition"):
        assert "helm.sh/resource-policy" not in crd["metadata"].get("annotations", {})
    assert not of_kind(render("moorage", {"crds": {"enabled": False}}), "CustomResourceDefinition")


def test_every_crd_of_every_system_is_rendered_as_it_is(render: Any, root: Any) -> None:
    rendered = {each["metadata"]["name"]: each for each in of_kind(render("moorage", ALL), "CustomResourceDefinition")}
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

    assert template({"workers": 3}) != template({})
    assert template({"replicas": 2}) == template({})
    assert template({"logLevel": "debug"}) == template({}), "this the running process follows"


def test_further_variables_reach_the_operator(render: Any) -> None:
    extra = {"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": "http://collector:4318"}
    (pod,) = of_kind(render("moorage", {"extraEnv": [extra]}), "Deployment")
    assert extra in pod["spec"]["template"]["spec"]["containers"][0]["env"]


def rights(objects: Objects) -> set[tuple[str, str, tuple[str, ...]]]:
    """What the operator may do in all namespaces: (resource, verb, names)."""
    return {
        (resource, verb, tuple(rule.get("resourceNames", ())))
        for rule in operator_rules(objects)
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_no_wildcards(render: Any) -> None:
    for role in of_kind(render("moorage", ALL), "ClusterRole", "Role"):
        for rule in role["rules"]:
            assert "*" not in rule["verbs"] + rule["resources"] + rule["apiGroups"]
            assert not {"escalate", "deletecollection"} & set(rule["verbs"]) or role["metadata"]["name"].endswith(
                "-edit"
            )


def test_it_acts_as_its_own_accounts_alone(render: Any) -> None:
    """A Role says so, in the namespace where nothing else is, so that it can be nobody else anywhere."""
    roles = of_kind(render("moorage", release="moorage", namespace="ops"), "ClusterRole", "Role")
    (role,) = [role for role in roles if any("impersonate" in rule["verbs"] for rule in role["rules"])]

    assert ("Role", "moorage-accounts") == (role["kind"], role["metadata"]["namespace"])
    assert [{"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["impersonate"]}] == role["rules"]


def test_everywhere_nothing_but_collectors_and_the_first_step(render: Any) -> None:
    granted = rights(render("moorage", COLLECTOR_ONLY, release="moorage"))
    anywhere = {(resource, verb) for resource, verb, names in granted if not names}
    assert anywhere == {
        *(("collectors", verb) for verb in ("get", "list", "watch", "patch")),
        *(("collectors/status", verb) for verb in ("get", "patch")),
        *(("namespaces", verb) for verb in ("get", "list", "watch", "create")),
        ("rolebindings", "create"),
        *(("events", verb) for verb in ("create", "patch")),
        ("leases", "get"),
    }
    assert {each for each in granted if each[2]} == {
        ("clusterroles", "bind", ("moorage-collector-tenant",)),
        *(("rolebindings", verb, ("moorage-collector",)) for verb in ("get", "list", "watch", "patch", "delete")),
    }


def test_everywhere_nothing_but_the_three_kinds_and_the_first_step(render: Any) -> None:
    granted = rights(render("moorage", XSLD_ONLY, release="moorage"))
    kinds = ("xsldcaches", "datagrids", "gridtemplates")

    assert {(resource, verb) for resource, verb, names in granted if not names} == {
        *((kind, verb) for kind in kinds for verb in ("get", "list", "watch", "patch")),
        *((f"{kind}/status", verb) for kind in kinds for verb in ("get", "patch")),
        *(("namespaces", verb) for verb in ("get", "list", "watch")),
        ("storageclasses", "get"),
        ("rolebindings", "create"),
        *(("events", verb) for verb in ("create", "patch")),
        ("leases", "get"),
    }
    assert {each for each in granted if each[2]} == {
        ("clusterroles", "bind", ("moorage-xsld-namespace",)),
        *(("rolebindings", verb, ("moorage-xsld",)) for verb in ("get", "list", "watch", "patch", "delete")),
    }


def test_everywhere_nothing_but_runtimes_with_their_versions_and_the_first_step(render: Any) -> None:
    granted = rights(render("moorage", KRE_ONLY, release="moorage"))
    kinds = ("runtimes", "runtimeversions")

    assert {(resource, verb) for resource, verb, names in granted if not names} == {
        *((kind, verb) for kind in kinds for verb in ("get", "list", "watch", "patch")),
        *((f"{kind}/status", verb) for kind in kinds for verb in ("get", "patch")),
        *(("namespaces", verb) for verb in ("get", "list", "watch")),
        ("storageclasses", "get"),
        ("rolebindings", "create"),
        *(("events", verb) for verb in ("create", "patch")),
        ("leases", "get"),
    }
    assert {each for each in granted if each[2]} == {
        ("clusterroles", "bind", ("moorage-kre-namespace",)),
        *(("rolebindings", verb, ("moorage-kre",)) for verb in ("get", "list", "watch", "patch", "delete")),
    }


def test_where_a_runtime_is_it_may_what_its_chart_makes(render: Any) -> None:
    role = named(render("moorage", KRE_ONLY, release="moorage"), "ClusterRole", "moorage-kre-namespace")
    granted = {(resource, verb) for rule in role["rules"] for resource in rule["resources"] for verb in rule["verbs"]}
    chart = {
        f"{each['kind'].lower()}{'es' if each['kind'].endswith('s') else 's'}"
        for each in render("kre-runtime", {"mongoExpress": {"enabled": True}, "nats": {"replicas": 3}}, release="kre")
        + render("kre-runtime", {"ingress": {"enabled": True, "host": "a.b"}}, release="kre")
    }
    lifecycle = ("get", "list", "watch", "create", "update", "patch", "delete")

    assert chart | {"secrets", "prometheusrules"} == {resource for resource, verb in granted if verb == "create"}
    assert granted == {
        *((kind, verb) for kind in chart | {"secrets", "prometheusrules"} for verb in lifecycle),
        *(("persistentvolumeclaims", verb) for verb in ("get", "list", "watch", "patch", "delete")),
        *((kind, verb) for kind in ("pods", "pods/log", "replicasets", "events") for verb in ("get", "list", "watch")),
    }


def test_extra_namespace_rules_reach_the_role_of_runtimes_only(render: Any) -> None:
    rule = {"apiGroups": ["monitoring.coreos.com"], "resources": ["servicemonitors"], "verbs": ["get", "patch"]}
    values = {"systems": {"kre": {"enabled": True, "extraTenantRules": [rule]}}}
    objects = render("moorage", values, release="moorage")
    having = [role["metadata"]["name"] for role in of_kind(objects, "ClusterRole", "Role") if rule in role["rules"]]

    assert ["moorage-kre-namespace"] == having


def test_two_systems_have_the_rights_of_each_and_no_more(render: Any) -> None:
    both, one, other = (rights(render("moorage", each, release="moorage")) for each in ({}, COLLECTOR_ONLY, XSLD_ONLY))

    assert one | other == both


def test_where_caches_are_it_may_what_a_cache_is_made_of(render: Any) -> None:
    role = named(render("moorage", XSLD_ONLY, release="moorage"), "ClusterRole", "moorage-xsld-namespace")
    granted = {(resource, verb) for rule in role["rules"] for resource in rule["resources"] for verb in rule["verbs"]}
    own = ("secrets", "configmaps", "services", "statefulsets", "poddisruptionbudgets")

    assert granted == {
        *((kind, verb) for kind in own for verb in ("get", "list", "watch", "create", "patch", "delete")),
        *(("persistentvolumeclaims", verb) for verb in ("get", "list", "watch", "patch", "delete")),
        *(("pods", verb) for verb in ("get", "list", "watch", "delete")),
        *(("events", verb) for verb in ("get", "list")),
        ("pods/eviction", "create"),
        ("pods/status", "patch"),
    }


def test_the_tenant_role_is_bound_by_nobody_yet(render: Any) -> None:
    objects = render("moorage", release="moorage")
    bound = {each["roleRef"]["name"] for each in of_kind(objects, "ClusterRoleBinding", "RoleBinding")}
    assert bound == {"moorage", "moorage-collector", "moorage-xsld"}
    tenant = named(objects, "ClusterRole", "moorage-collector-tenant")
    resources = {resource for rule in tenant["rules"] for resource in rule["resources"]}
    assert not resources & {"roles", "rolebindings", "pods/exec", "serviceaccounts/token", "namespaces"}


def test_own_secrets_are_readable_by_name_only(render: Any) -> None:
    def secrets(values: Values) -> list[dict[str, Any]]:
        (role,) = [
            it for it in of_kind(render("moorage", values), "Role") if "-accounts" not in it["metadata"]["namespace"]
        ]
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
    operator = "request.userInfo.username == 'system:serviceaccount:ops:moorage'"
    account = "request.userInfo.username.startsWith('system:serviceaccount:moorage-accounts:')"
    others = {"moorage-account-roles": account, "moorage-places": account, "moorage-accounts": "request.operation in "}
    for policy in policies:
        assert policy["spec"]["failurePolicy"] == "Fail"
        first = policy["spec"]["matchConditions"][0]
        assert first["expression"].startswith(others.get(policy["metadata"]["name"], operator))
    assert all(each["spec"]["validationActions"] == ["Deny"] for each in bindings)


@pytest.mark.parametrize(
    ("values", "systems"),
    [
        ({}, ["collector", "xsld"]),
        (COLLECTOR_ONLY, ["collector"]),
        (XSLD_ONLY, ["xsld"]),
        (KRE_ONLY, ["kre"]),
        (ALL, ["collector", "kre", "opencga", "weka", "xsld"]),
    ],
)
def test_every_binding_that_may_be_written_has_a_policy_of_its_own(
    render: Any, values: Values, systems: list[str]
) -> None:
    """What one policy lets through by its name, another must confine: together they leave no gap."""
    objects = render("moorage", values, release="moorage", namespace="ops")
    (names,) = named(objects, "ValidatingAdmissionPolicy", "moorage-bindings")["spec"]["validations"]
    policies = {each["metadata"]["name"]: each["spec"] for each in of_kind(objects, "ValidatingAdmissionPolicy")}

    assert " and ".join(f"moorage-{system}" for system in systems) + "." == names["message"].split(" but ")[1]
    assert json.dumps([f"moorage-{system}" for system in systems]).replace(" ", "") in names["expression"]
    assert {f"moorage-{system}-bindings" for system in systems} == {
        name for name in policies if name.endswith("-bindings") and name != "moorage-bindings"
    }
    for system in systems:
        about = policies[f"moorage-{system}-bindings"]
        assert about["matchConstraints"] == policies["moorage-bindings"]["matchConstraints"]
        assert about["matchConditions"][1]["expression"].endswith(f"metadata.name == 'moorage-{system}'")


@pytest.mark.parametrize("system", ["xsld", "kre"])
def test_listed_namespaces_are_held_by_admission(render: Any, system: str) -> None:
    def listed(own: Values) -> list[Values]:
        objects = render("moorage", {"systems": {system: {"enabled": True, **own}}}, release="moorage")
        rules = named(objects, "ValidatingAdmissionPolicy", f"moorage-{system}-bindings")["spec"]["validations"]
        return [rule for rule in rules if " in one of" in rule.get("messageExpression", "").lower()]

    assert not listed({})
    (rule,) = listed({"namespaces": ["shop", "bank"]})
    assert 'request.namespace in ["shop","bank"]' in rule["expression"]
    assert "one of: shop, bank;" in rule["messageExpression"]


def test_the_role_view_shows_no_caches_for_there_may_be_passwords_in_them(render: Any) -> None:
    prefix = "rbac.authorization.k8s.io/aggregate-to-"
    shown: dict[str, set[str]] = {"view": set(), "edit": set(), "admin": set()}
    for role in of_kind(render("moorage", XSLD_ONLY), "ClusterRole"):
        for rule in role["rules"]:
            for to in shown:
                if prefix + to in role["metadata"]["labels"] and "get" in rule["verbs"]:
                    shown[to] |= {resource for resource in rule["resources"] if "/" not in resource}

    assert {"datagrids", "gridtemplates"} == shown["view"]
    assert {"xsldcaches", "datagrids", "gridtemplates"} == shown["edit"] == shown["admin"]


def test_the_role_view_shows_no_runtimes_either(render: Any) -> None:
    roles = of_kind(render("moorage", KRE_ONLY, release="moorage"), "ClusterRole")
    prefix = "rbac.authorization.k8s.io/aggregate-to-"
    shown = {
        to: {it["metadata"]["name"] for it in roles if prefix + to in it["metadata"]["labels"]}
        for to in ("view", "edit")
    }

    assert {"view": set(), "edit": {"moorage-kre-view-runtimes", "moorage-kre-edit"}} == shown


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
    assert on["moorage-xsld-view"] == {"view", "edit", "admin"}
    assert on["moorage-xsld-view-caches"] == on["moorage-xsld-edit"] == {"edit", "admin"}
    assert not on["moorage-xsld"]
    assert not on["moorage-xsld-namespace"]
    assert not on["moorage-collector"]
    assert not on["moorage-collector-tenant"]
    assert not any(roles(render("moorage", {"rbac": {"aggregate": False}})).values())


def test_network_policy_lets_in_8080_only(render: Any) -> None:
    (policy,) = of_kind(render("moorage"), "NetworkPolicy")
    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert [port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]] == [8080]
    assert {port["port"] for rule in policy["spec"]["egress"] for port in rule["ports"]} == {53, 443, 6443, 9445}
    (policy,) = of_kind(
        render("moorage", {"networkPolicy": {"ports": [5000], "from": [{"podSelector": {}}]}}), "NetworkPolicy"
    )
    assert policy["spec"]["ingress"][0]["from"] == [{"podSelector": {}}]
    assert not of_kind(render("moorage", {"networkPolicy": {"enabled": False}}), "NetworkPolicy")


def test_members_are_reached_at_their_admin_port_and_nobody_else(render: Any) -> None:
    def rules(values: Values) -> list[Values]:
        (policy,) = of_kind(render("moorage", values), "NetworkPolicy")
        return [rule for rule in policy["spec"]["egress"] if any("podSelector" in peer for peer in rule.get("to", ()))]

    selector = {"matchExpressions": [{"key": "xsld.ibm.com/cache", "operator": "Exists"}]}
    (rule,) = rules({})
    assert {
        "ports": [{"port": 9445, "protocol": "TCP"}],
        "to": [{"namespaceSelector": {}, "podSelector": selector}],
    } == (rule)
    (rule,) = rules({"systems": {"xsld": {"dialect": {"ports": {"admin": 9446}}}}})
    assert [9446] == [port["port"] for port in rule["ports"]]
    assert not rules(COLLECTOR_ONLY)


def test_a_runtimes_servers_are_reached_at_their_ports_and_nobody_else(render: Any) -> None:
    (policy,) = of_kind(render("moorage", KRE_ONLY), "NetworkPolicy")
    (rule,) = [rule for rule in policy["spec"]["egress"] if any("podSelector" in peer for peer in rule.get("to", ()))]
    asked = {servers.NATS_PORT, servers.MINIO_PORT, servers.INFLUX_PORT, servers.MONGO_PORT, nats_access.PORT}

    assert asked == {port["port"] for port in rule["ports"]}
    selector = {"matchExpressions": [{"key": kinds.COMPONENT, "operator": "Exists"}]}
    assert [{"namespaceSelector": {}, "podSelector": selector}] == rule["to"]


def test_drain_has_time(render: Any) -> None:
    (deployment,) = of_kind(render("moorage"), "Deployment")
    assert deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == 60


def test_notes_name_the_next_two_commands(helm: Any, root: Any) -> None:
    chart = str(root / "charts/moorage")
    notes = helm("install", "moorage", chart, "--dry-run=client", "--namespace", "ops").stdout.partition("NOTES:")[2]
    assert "kubectl apply -f examples/collector/hello.yaml" in notes
    assert "kubectl get collectors -A" in notes
    assert "safe while resources exist" in notes
    assert "kubectl apply -f examples/xsldcache/hello.yaml" in notes
    assert "moorage-xsld-view-caches" in notes
    none = "systems.collector.enabled=false,systems.xsld.enabled=false"
    off = helm("install", "moorage", chart, "--dry-run=client", "--set", none).stdout
    assert "xsldcache" not in off.partition("NOTES:")[2]
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
        ({"systems": {"xsld": {"enabled": "yes"}}}, "at '/systems/xsld/enabled': got string, want boolean"),
        ({"systems": {"xsld": {"namespaces": ["Shop"]}}}, "at '/systems/xsld/namespaces/0'"),
        ({"systems": {"xsld": {"poll": {"busySeconds": 0}}}}, "at '/systems/xsld/poll/busySeconds'"),
        ({"systems": {"xsld": {"retry": {"tries": 3}}}}, "additional properties 'tries' not allowed"),
        (
            {"systems": {"xsld": {"dialect": {"paths": {"gruop": "/x"}}}}},
            "at '/systems/xsld/dialect/paths': additional properties 'gruop' not allowed",
        ),
        (
            {"systems": {"xsld": {"dialect": {"template": {"method": "PATCH"}}}}},
            "at '/systems/xsld/dialect/template/method'",
        ),
        (
            {"systems": {"xsld": {"dialect": {"grid": {"settings": {"lockTime": "x"}}}}}},
            "invalid propertyName 'lockTime'",
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


def test_each_shard_has_a_lease_and_the_rights_to_it(render: Any) -> None:
    objects = render("moorage", {"leaderElection": {"shards": 3}})
    names = {"moorage", "moorage-0", "moorage-1", "moorage-2"}

    assert names == {lease["metadata"]["name"] for lease in of_kind(objects, "Lease")}
    allowed = [
        rule["resourceNames"]
        for role in of_kind(objects, "Role")
        for rule in role["rules"]
        if rule["resources"] == ["leases"] and "resourceNames" in rule
    ]
    assert [names] == [set(each) for each in allowed]
