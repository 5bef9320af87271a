"""What the operator's chart brings for OpenCGA: off by default, its configuration, its rights on paper, its ports."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from moorage import operators
from moorage.operators.opencga import dialect, members, names, types

Objects = list[dict[str, Any]]
Values = dict[str, Any]

ON = {"systems": {"opencga": {"enabled": True}}}
ONLY = {"systems": {"collector": {"enabled": False}, "xsld": {"enabled": False}, "opencga": {"enabled": True}}}
ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples/opencga/community.yaml"


def of_kind(objects: Objects, kind: str) -> Objects:
    return [each for each in objects if each["kind"] == kind]


def named(objects: Objects, kind: str, name: str) -> dict[str, Any]:
    (found,) = [each for each in of_kind(objects, kind) if each["metadata"]["name"] == name]
    return found


def config(objects: Objects) -> dict[str, Any]:
    return dict(yaml.safe_load(of_kind(objects, "ConfigMap")[0]["data"]["config.yaml"]))


def rights(objects: Objects) -> set[tuple[str, str, tuple[str, ...]]]:
    """What the operator may do in all namespaces: (resource, verb, names)."""
    roles = {each["roleRef"]["name"] for each in of_kind(objects, "ClusterRoleBinding")}
    return {
        (resource, verb, tuple(rule.get("resourceNames", ())))
        for name in roles
        for rule in named(objects, "ClusterRole", name)["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        if verb != "impersonate"
    }


def listed(objects: Objects, words: str) -> list[Values]:
    rules = named(objects, "ValidatingAdmissionPolicy", "moorage-opencga-bindings")["spec"]["validations"]
    return [rule for rule in rules if words in rule.get("messageExpression", "")]


def test_it_is_off_by_default_and_leaves_no_trace(render: Any) -> None:
    """Also where values are reused from before there was one."""
    for values in ({}, {"systems": {"opencga": None}}, {"systems": {"opencga": {"enabled": False}}}):
        assert "opencga" not in yaml.safe_dump(render("moorage", values, release="moorage"))


def test_alone_it_leaves_no_trace_of_the_others(render: Any) -> None:
    """Each system is switched on by itself."""
    objects = render("moorage", ONLY, release="moorage")

    assert ["opencga"] == list(config(objects)["systems"])
    assert not [word for word in ("xsld", "collectors") if word in yaml.safe_dump(objects)]


def test_its_section_is_what_the_operator_takes(render: Any) -> None:
    """With a name of the table that is overridden."""
    values = {"systems": {"opencga": {"enabled": True, "dialect": {"ports": {"rest": 8080}}, "namespaces": ["lab"]}}}
    section = config(render("moorage", values, release="moorage"))["systems"]["opencga"]
    taken = msgspec.convert(section, operators.SYSTEMS["opencga"].config)

    assert ("moorage-opencga-namespace", ("lab",)) == (taken.cluster_role, taken.namespaces)
    assert (8080, dialect.Ports().agent) == (taken.dialect.ports.rest, taken.dialect.ports.agent)


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ({"enabled": "yes"}, "at '/systems/opencga/enabled': got string, want boolean"),
        ({"enabled": True, "namespaces": ["Lab"]}, "at '/systems/opencga/namespaces/0'"),
        ({"enabled": True, "dialect": {"ports": {"rset": 1}}}, "additional properties 'rset' not allowed"),
        ({"enabled": True, "dialect": {"ports": {"rest": 0}}}, "at '/systems/opencga/dialect/ports/rest'"),
        ({"enabled": True, "poll": {"idleSeconds": 0}}, "at '/systems/opencga/poll/idleSeconds'"),
    ],
)
def test_what_the_schema_refuses(helm: Any, root: Any, own: Values, words: str) -> None:
    """In its own words, with the place."""
    values = json.dumps({"systems": {"opencga": own}})
    done = helm("template", "moorage", str(root / "charts/moorage"), "--values", "-", stdin=values)

    assert done.returncode
    assert words in done.stderr


def test_everywhere_nothing_but_its_kind_and_the_first_step(render: Any) -> None:
    """No Secrets, no pods."""
    granted = rights(render("moorage", ONLY, release="moorage"))

    assert {(resource, verb) for resource, verb, given in granted if not given} == {
        *(("opencgacommunity", verb) for verb in ("get", "list", "watch", "patch")),
        *(("opencgacommunity/status", verb) for verb in ("get", "patch")),
        *(("namespaces", verb) for verb in ("get", "list", "watch")),
        ("storageclasses", "get"),
        ("rolebindings", "create"),
        *(("events", verb) for verb in ("create", "patch")),
        ("leases", "get"),
    }
    assert {each for each in granted if each[2]} == {
        ("clusterroles", "bind", ("moorage-opencga-namespace",)),
        *(("rolebindings", verb, ("moorage-opencga",)) for verb in ("get", "list", "watch", "patch", "delete")),
    }


def test_where_it_is_it_may_what_it_is_made_of(render: Any) -> None:
    """All that is watched; nothing is deleted but what is made, and no Secret ever."""
    role = named(render("moorage", ONLY, release="moorage"), "ClusterRole", "moorage-opencga-namespace")
    granted = {(resource, verb) for rule in role["rules"] for resource in rule["resources"] for verb in rule["verbs"]}
    made = ("services", "statefulsets", "poddisruptionbudgets", "ingresses", "servicemonitors")

    watched = {resource.plural for resource in (*members.WATCHED, names.SERVICE_MONITOR)}
    assert watched <= {it for it, verb in granted if verb == "watch"}
    assert granted == {
        *((kind, verb) for kind in made for verb in ("get", "list", "watch", "create", "patch", "delete")),
        *(("secrets", verb) for verb in ("get", "list", "watch", "create", "patch")),
        ("configmaps", "get"),
        *(("persistentvolumeclaims", verb) for verb in ("get", "list", "watch", "patch", "delete")),
        *(("pods", verb) for verb in ("get", "list", "watch", "delete")),
        *(("events", verb) for verb in ("get", "list")),
        ("pods/eviction", "create"),
    }


def test_its_rights_come_beside_those_of_others(render: Any) -> None:
    """And nothing else does."""
    both, others, own = (rights(render("moorage", each, release="moorage")) for each in (ON, {}, ONLY))

    assert both == others | own


def test_listed_namespaces_are_held_by_admission(render: Any) -> None:
    """Whatever the operator is led to believe."""
    values = {"systems": {"opencga": {"enabled": True, "namespaces": ["lab", "clinic"]}}}

    assert not listed(render("moorage", ON, release="moorage"), "may hold no OpenCGA")
    (rule,) = listed(render("moorage", values, release="moorage"), "may hold no OpenCGA")
    assert 'request.namespace in ["lab","clinic"]' in rule["expression"]
    assert "one of: lab, clinic;" in rule["messageExpression"]


def test_people_get_the_kind_through_the_built_in_roles(render: Any) -> None:
    """View too, as nothing secret may stand in it."""
    prefix = "rbac.authorization.k8s.io/aggregate-to-"
    roles = of_kind(render("moorage", ONLY, release="moorage"), "ClusterRole")
    shown = {
        it["metadata"]["name"]: {label.removeprefix(prefix) for label in it["metadata"]["labels"] if prefix in label}
        for it in roles
    }

    assert {"view", "edit", "admin"} == shown["moorage-opencga-view"]
    assert {"edit", "admin"} == shown["moorage-opencga-edit"]
    assert set() == shown["moorage-opencga"] == shown["moorage-opencga-namespace"]


@pytest.mark.parametrize(("ports", "reached"), [({}, {5000, 9090}), ({"rest": 8080}, {5000, 8080})])
def test_pods_are_reached_at_their_ports_and_nobody_else(render: Any, ports: Values, reached: set[int]) -> None:
    """By the operator, where its network is closed."""
    values = {"systems": {**ONLY["systems"], "opencga": {"enabled": True, "dialect": {"ports": ports}}}}
    (policy,) = of_kind(render("moorage", values), "NetworkPolicy")
    (rule,) = [rule for rule in policy["spec"]["egress"] if any("podSelector" in peer for peer in rule.get("to", ()))]

    assert reached == {port["port"] for port in rule["ports"]}
    selector = {"matchExpressions": [{"key": names.LABEL, "operator": "Exists"}]}
    assert [{"namespaceSelector": {}, "podSelector": selector}] == rule["to"]


def image(folder: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / "images" / folder / "image.toml").read_text())


def test_images_are_what_the_table_says() -> None:
    """Those that are built are those that pods ask for; nobody in particular runs them, without a shell."""
    asked = dialect.Images()

    assert (asked.agent, asked.hook) == (image("opencga-agent")["name"], image("opencga-hook")["name"])
    assert f"{asked.server}:5.0.0" == image("opencga")["name"]
    user = dialect.Container().user
    for folder in ("opencga-agent", "opencga-hook", "opencga"):
        made = image(folder)
        assert f"{user}:{user}" == made["user"]
        assert not {"dash", "bash", "busybox-static", "coreutils", "python3-pip"} & set(made.get("base", ()))
    hook = {each["target"] for each in image("opencga-hook")["files"]}
    assert {dialect.Container().hook_source, dialect.Container().probe_source} == hook
    assert dialect.Container().tool in {each["target"] for each in image("opencga")["files"]}


def test_the_agents_image_has_what_it_imports_and_no_more() -> None:
    """Of moorage two packages; of others' libraries two, in the versions of the operator."""
    made = image("opencga-agent")
    pinned = (ROOT / "requirements/agent.txt").read_text()
    known = (ROOT / "requirements/runtime.txt").read_text()
    versions = re.findall(r"^(\S+==\S+) ", pinned, flags=re.MULTILINE)

    assert ["msgspec", "pyyaml"] == [each.partition("==")[0] for each in versions]
    assert all(f"\n{each} " in f"\n{known}" for each in versions)
    assert ["/usr/bin/python3", "-I", "-B", "-m", "moorage.agent.main"] == made["entrypoint"]
    assert ["agent", "api"] == [each["target"].rpartition("/")[2] for each in made["files"]]


def test_the_example_is_one_that_the_operator_takes() -> None:
    """With Secrets that its spec names, and a password that the product takes."""
    *secrets, community = yaml.safe_load_all(EXAMPLE.read_text())
    spec = msgspec.convert(community["spec"], types.CommunitySpec)
    given = {each["metadata"]["name"]: each["stringData"] for each in secrets}

    assert {f"{community['metadata']['name']}-admin-password", "demo-database"} == set(given)
    assert "" == types.password_fault(given["demo-admin-password"]["password"])
    assert spec.database.credentials_secret_ref is not None
    assert {"username", "password"} == set(given[spec.database.credentials_secret_ref.name])
