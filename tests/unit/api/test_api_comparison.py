"""The comparison, without a server: the rules on forms and lists. Facts about managedFields are in tests/api/helm."""

from __future__ import annotations

import copy
import json

from hypothesis import assume, given
from hypothesis import strategies as st

from moorage.api import comparison

WANTED = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d", "labels": {"a": "1"}},
    "spec": {
        "replicas": 2,
        "template": {
            "spec": {
                "hostNetwork": False,
                "nodeSelector": {},
                "containers": [
                    {
                        "name": "c",
                        "image": "i:1",
                        "args": ["1h"],
                        "env": [{"name": "A", "value": "60m"}, {"name": "B", "value": ""}],
                        "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}],
                        "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}},
                    },
                    {"name": "d", "image": "i:2"},
                ],
                "tolerations": [{"key": "x", "effect": ""}],
            }
        },
    },
}
LIVE = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d", "namespace": "n", "uid": "u", "labels": {"a": "1", "b": "2"}, "annotations": {"r": "1"}},
    "spec": {
        "replicas": 2,
        "strategy": {"type": "RollingUpdate"},
        "template": {
            "spec": {
                "dnsPolicy": "ClusterFirst",
                "containers": [
                    {"name": "sidecar", "image": "s"},
                    {"name": "d", "image": "i:2", "imagePullPolicy": "IfNotPresent"},
                    {
                        "name": "c",
                        "image": "i:1",
                        "args": ["1h"],
                        "env": [{"name": "B"}, {"name": "A", "value": "60m"}],
                        "ports": [{"containerPort": 80, "protocol": "UDP"}, {"containerPort": 80, "protocol": "TCP"}],
                        "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
                    },
                ],
                "tolerations": [{"key": "x"}],
            }
        },
    },
    "status": {"replicas": 1},
}


def found(wanted, live, *, manager="helm", **more) -> list[str]:
    return [str(d) for d in comparison.differences(wanted, live, manager=manager, **more)]


def test_defaults_order_and_forms_are_no_difference():
    assert found(WANTED, LIVE) == []


def leaves(node, path=()):
    items = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in items:
        if isinstance(value, dict | list) and value:
            yield from leaves(value, (*path, key))
        elif value not in ({}, [], "", False):
            yield (*path, key)


def is_key(path) -> bool:
    return path[-1] in ("name", "containerPort", "protocol") or path[0] in ("apiVersion", "kind")


LEAVES = [path for path in leaves(WANTED) if not is_key(path)]


def twin(wanted):
    """What a server without defaults would hold."""
    return copy.deepcopy(wanted)


@given(st.sampled_from(LEAVES), st.booleans())
def test_any_changed_or_removed_leaf_is_found(path, remove):
    live = twin(WANTED)
    node = live
    for step in path[:-1]:
        node = node[step]
    if remove and isinstance(node, dict):
        del node[path[-1]]
    elif remove:
        node.pop(path[-1])
    else:
        node[path[-1]] = 77 if isinstance(node[path[-1]], int) else f"{node[path[-1]]}x"
    assert len(found(WANTED, live)) == 1


KEYS = st.text("abc", min_size=1, max_size=2)
VALUES = st.recursive(
    st.integers(1, 9) | st.text("xyz", min_size=1, max_size=3) | st.just(True),
    lambda inner: st.dictionaries(KEYS, inner, min_size=1, max_size=3) | st.lists(inner, min_size=1, max_size=3),
    max_leaves=12,
)


def defaulted(node, extra):
    """The same with fields added everywhere, as a server does."""
    if isinstance(node, dict):
        return {**{f"default-{k}": v for k, v in extra.items()}, **{k: defaulted(v, extra) for k, v in node.items()}}
    return [defaulted(v, extra) for v in node] if isinstance(node, list) else node


@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=3), st.dictionaries(KEYS, VALUES, max_size=2))
def test_a_custom_object_with_added_fields_does_not_differ(spec, extra):
    wanted = {"apiVersion": "x.example/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": spec}
    assert found(wanted, {**wanted, "spec": defaulted(spec, extra)}) == []


@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=3), st.data())
def test_any_changed_leaf_of_a_custom_object_is_found(spec, data):
    wanted = {"apiVersion": "x.example/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": spec}
    live = json.loads(json.dumps(wanted))
    paths = list(leaves(spec))
    assume(paths)
    *above, last = data.draw(st.sampled_from(paths))
    node = live["spec"]
    for step in above:
        node = node[step]
    node[last] = "changed"
    assert len(found(wanted, live)) == 1


def managed(live, *entries):
    fields = [
        {"manager": m, "operation": op, "fieldsV1": f, **({"subresource": s} if s else {})} for m, op, s, f in entries
    ]
    return {**live, "metadata": {**live["metadata"], "managedFields": fields}}


def test_owners_decide():
    wanted = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"replicas": 2}}
    live = {**wanted, "spec": {"replicas": 5}}
    replicas = {"f:spec": {"f:replicas": {}}}
    helm = ("helm", "Apply", "", {"f:metadata": {}})
    assert found(wanted, managed(live, helm, ("kube-controller-manager", "Update", "scale", replicas))) == []
    assert found(wanted, managed(live, helm, ("kubectl", "Update", "scale", replicas))) == []
    assert found(wanted, managed(live, helm, ("vpa-updater", "Update", "", replicas))) == []
    assert found(wanted, managed(live, ("helm", "Apply", "", replicas))) == []
    for other in (("kube-controller-manager", "Update", ""), ("kubectl-edit", "Update", "")):
        assert found(wanted, managed(live, helm, (*other, replicas))) == ["spec.replicas changed"]


def test_what_the_named_manager_owns_is_no_difference_and_what_another_owns_is_one():
    wanted = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}}
    live = managed({**wanted, "data": {"a": "2"}}, ("moorage", "Apply", "", {"f:data": {"f:a": {}}}))

    assert [] == found(wanted, live, manager="moorage")
    assert ["data.a changed"] == found(wanted, live, manager="helm")


POLICY = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "NetworkPolicy",
    "metadata": {"name": "p"},
    "spec": {
        "podSelector": {"matchLabels": {"app": "a"}},
        "ingress": [{"ports": [{"port": 80}], "from": [{"podSelector": {}}]}],
    },
}
LIVE_POLICY = {
    **POLICY,
    "spec": {
        "podSelector": {"matchLabels": {"app": "a"}},
        "ingress": [{"ports": [{"port": 80, "protocol": "TCP"}], "from": [{"podSelector": {}}]}],
        "policyTypes": ["Ingress"],
    },
}
INGRESS = {"f:spec": {"f:ingress": {}}}


def opened(peer) -> dict:
    """The live policy with another peer."""
    ingress = [{**LIVE_POLICY["spec"]["ingress"][0], "from": [peer]}]
    return {**LIVE_POLICY, "spec": {**LIVE_POLICY["spec"], "ingress": ingress}}


def test_a_value_that_is_one_to_the_server_and_another_s_is_compared_whole():
    """A peer with another selector beside its own means something else, though all that is wanted is there."""
    edit = ("kubectl-edit", "Update", "", INGRESS)
    helm = ("helm", "Apply", "", {"f:spec": {"f:podSelector": {}}})
    place = "spec.ingress[0].from[0]"

    assert [f"{place}.namespaceSelector added"] == found(
        POLICY, managed(opened({"podSelector": {}, "namespaceSelector": {}}), helm, edit)
    )
    assert [f"{place}.podSelector missing", f"{place}.x added"] == found(
        POLICY, managed(opened({"x": {"a": "b"}}), helm, edit)
    )
    assert [] == found(POLICY, managed(LIVE_POLICY, helm, edit))


def test_what_the_server_or_a_webhook_puts_into_the_manager_s_own_value_is_no_difference():
    live = managed(opened({"podSelector": {}, "namespaceSelector": {}}), ("helm", "Apply", "", INGRESS))

    assert [] == found(POLICY, live)


def test_a_map_that_is_merged_takes_fields_of_others():
    wanted = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"selector": {"app": "a"}}}
    live = {**wanted, "metadata": {"name": "s", "labels": {"own": "1"}}, "spec": {"selector": {"app": "a", "b": "c"}}}
    labels = {"f:metadata": {"f:labels": {"f:own": {}}}}
    merged = {"f:spec": {"f:selector": {"f:b": {}}}}

    assert ["spec.selector.b added"] == found(
        wanted, managed(live, ("k", "Update", "", {"f:spec": {"f:selector": {}}}))
    )
    assert [] == found(wanted, managed(live, ("k", "Update", "", {**labels, **merged})))


def test_what_is_gone_is_missing_as_a_whole():
    assert ["the object missing"] == found(WANTED, None)


def test_settled_paths_are_left_out():
    live = {**WANTED, "spec": {**WANTED["spec"], "replicas": 9}}
    assert found(WANTED, live, settled={"spec.replicas"}) == []


def test_lists_of_custom_kinds_are_merged_where_managed_fields_say_so():
    wanted = {
        "apiVersion": "x.example/v1",
        "kind": "T",
        "metadata": {"name": "t"},
        "spec": {"l": [{"id": "a", "v": 1}]},
    }
    live = {**wanted, "spec": {"l": [{"id": "b", "v": 9}, {"id": "a", "v": 1}]}}
    assert found(wanted, live) == ["spec.l changed"]
    entry = {"f:spec": {"f:l": {'k:{"id":"b"}': {".": {}, "f:id": {}, "f:v": {}}}}}
    assert found(wanted, managed(live, ("other", "Apply", "", entry))) == []


def test_nothing_secret_is_in_a_difference():
    wanted = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s"},
        "data": {"a": "c2VjcmV0"},
        "stringData": {"b": "pw"},
    }
    live = {**wanted, "data": {"a": "b3RoZXI=", "b": "cHc="}}
    assert found(wanted, live) == ["data.a changed"]
    assert found(wanted, {**live, "data": {}}) == ["data.a missing", "stringData.b missing"]


PORTS = ("f:spec", "f:ports")
EDITED = 'k:{"port":90,"protocol":"TCP"}'


def service(*ports):
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "one"}, "spec": {"ports": list(ports)}}


def port(name, number):
    return {"name": name, "port": number, "targetPort": name, "protocol": "TCP"}


SERVICE = service(port("http", 70), port("web", 80))


def edited():
    """A person changed port 70 to 90, and another has added port 7."""
    element = {".": {}, "f:name": {}, "f:port": {}, "f:protocol": {}, "f:targetPort": {}}
    notes = [
        (manager, operation, "", {"f:spec": {"f:ports": {key: element}}})
        for manager, operation, key in (
            ("helm", "Apply", 'k:{"port":80,"protocol":"TCP"}'),
            ("kubectl-patch", "Update", 'k:{"protocol":"TCP","port":90}'),
            ("person", "Update", 'k:{"port":7,"protocol":"TCP"}'),
        )
    ]
    return managed(service(port("http", 90), port("web", 80), port("echo", 7)), *notes)


def test_an_edited_key_is_told_from_an_added_element():
    assert ((*PORTS, EDITED),) == comparison.renamed(SERVICE, edited(), manager="helm")


def test_nothing_is_renamed_while_all_is_there():
    assert () == comparison.renamed(SERVICE, SERVICE, manager="helm")


def test_an_element_is_alike_though_the_server_left_out_what_is_empty():
    rendered = service(port("http", 70), port("web", 80))
    rendered["spec"]["ports"][0]["appProtocol"] = ""

    assert ((*PORTS, EDITED),) == comparison.renamed(rendered, edited(), manager="helm")
