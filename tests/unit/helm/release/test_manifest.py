"""Manifests become objects, hooks, an inventory and a list of faults."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api import meta
from moorage.helm.release import manifest

TEXT = """---
# Source: app/templates/d.yaml
apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
---
# only a comment
--- # with a remark
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Service, metadata: {name: s, annotations: {helm.sh/resource-policy: keep}}}
- apiVersion: v1
  kind: ConfigMapList
  items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: h, annotations: {helm.sh/hook: "pre-install, post-upgrade", helm.sh/hook-weight: "3"}}
---
apiVersion: v1
kind: Pod
metadata: {name: t, annotations: {helm.sh/hook: test-success, helm.sh/hook-weight: bad}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: cr}
"""


def scope(api_version: str, kind: str) -> bool | None:
    return None if kind == "Thing" else kind not in ("ClusterRole", "Namespace")


def test_objects_and_hooks_in_order():
    found = manifest.parse(TEXT)
    assert [o["kind"] for o in found.objects] == ["ConfigMap", "ClusterRole", "Service", "Deployment"]
    assert [(h.object["kind"], h.events, h.weight, h.delete_policies) for h in found.hooks] == [
        ("Pod", ("test",), 0, ("before-hook-creation",)),
        ("Job", ("pre-install", "post-upgrade"), 3, ("before-hook-creation",)),
    ]
    assert all(h.lasting for h in found.hooks)


def test_inventory_and_its_compact_form():
    found = manifest.parse(TEXT)
    items = manifest.inventory(found.objects, found.hooks, "ns", scope)
    assert [(str(i.ref), i.hook, i.keep) for i in items] == [
        ("Deployment ns/d", False, False),
        ("Job ns/h", True, False),
        ("ClusterRole cr", False, False),
        ("ConfigMap ns/c", False, False),
        ("Service ns/s", False, True),
    ]
    text = manifest.dump_inventory(reversed(items))
    assert text == manifest.dump_inventory(items)
    assert manifest.load_inventory(text) == items
    for bad in ("", "{}", "[[1]]", '[["a","b","c","d"]]'):
        with pytest.raises(manifest.ManifestError):
            manifest.load_inventory(bad)


@pytest.mark.parametrize("policy", ["keep", " Keep ", "delete", ""])
def test_an_object_with_any_resource_policy_is_left_behind_as_helm_does(policy: str) -> None:
    """Helm's uninstall removes nothing that bears the annotation, whatever it says."""
    metadata = {"name": "c", "annotations": {"helm.sh/resource-policy": policy}}
    (item,) = manifest.inventory([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}], (), "ns", scope)

    assert item.keep


WORD = st.text("ab/.-", max_size=5)


@given(
    st.sets(
        st.builds(
            manifest.InventoryItem, st.builds(meta.ObjectRef, WORD, WORD, WORD, WORD), st.booleans(), st.booleans()
        )
    )
)
def test_any_inventory_comes_back(items):
    assert set(manifest.load_inventory(manifest.dump_inventory(items))) == items


def test_problems():
    bodies = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "ns"}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "other"}},
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "r"}},
        {"apiVersion": "x.example/v1", "kind": "Thing", "metadata": {"name": "t"}},
        {"kind": "Job", "metadata": {}},
    ]
    found = manifest.problems(bodies, "ns", scope)
    kind = manifest.ProblemKind
    assert [(p.kind, p.what) for p in found] == [
        (kind.DUPLICATE, "ConfigMap c"),
        (kind.OTHER_NAMESPACE, "Secret s"),
        (kind.CLUSTER_SCOPED, "ClusterRole r"),
        (kind.UNKNOWN_KIND, "Thing t"),
        (kind.NAMELESS, "Job (no name)"),
    ]
    assert found[-1].message == "Job (no name) has no apiVersion and no metadata.name"


@pytest.mark.parametrize("text", ["a: [", "- a", "kind: List\nitems: [1]", "metadata: x\nkind: A"])
def test_faults_name_the_template(text):
    with pytest.raises(manifest.ManifestError, match=r"app/templates/bad\.yaml"):
        manifest.parse(f"---\n# Source: app/templates/bad.yaml\n{text}\n")


def test_an_inventory_has_a_bound():
    row = '["v1","ConfigMap","ns","a",""]'
    with pytest.raises(manifest.ManifestError, match=f"an inventory of {manifest.MAX_INVENTORY + 1} objects"):
        manifest.load_inventory("[" + ",".join([row] * (manifest.MAX_INVENTORY + 1)) + "]")


def test_a_text_is_rewritten_object_by_object() -> None:
    """What stays keeps its letters; a list is opened; what is taken out leaves nothing."""
    text = (
        "---\n# Source: a/one.yaml\nkind: A  # as it is\napiVersion: v1\nmetadata: {name: a}\n"
        "---\n# Source: a/two.yaml\napiVersion: g/v1beta1\nkind: B\nmetadata: {name: b}\n"
        "---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: g/v1beta1, kind: C, metadata: {name: c}}\n"
    )

    def change(body: manifest.Object) -> manifest.Object | None:
        return {"A": body, "B": {**body, "apiVersion": "g/v1"}}.get(body["kind"])

    after = manifest.rewrite(text, change)

    assert "kind: A  # as it is" in after
    assert "# Source: a/two.yaml" in after
    found = manifest.parse(after).objects
    assert [("A", "v1"), ("B", "g/v1")] == [(body["kind"], body["apiVersion"]) for body in found]
    assert text == manifest.rewrite(text, lambda body: body)


def test_an_unknown_kind_is_told_with_the_versions_that_are_served() -> None:
    """And with that there are none."""
    body = {"apiVersion": "g/v1beta1", "kind": "B", "metadata": {"name": "b"}}

    (known,) = manifest.problems((body,), "ns", lambda *_: None, lambda *_: ("g/v1",))
    (unknown,) = manifest.problems((body,), "ns", lambda *_: None)

    assert "doesn't serve B in g/v1beta1, but in g/v1" in known.message
    assert "nor in any other version" in unknown.message
