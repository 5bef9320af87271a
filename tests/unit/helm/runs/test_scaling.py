"""The live number of replicas in a manifest's text."""

from __future__ import annotations

import pytest

from moorage.helm.release import manifest
from moorage.helm.runs import scaling

DEPLOYMENT = """# Source: app/templates/d.yaml
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 2 # two will do
  template: {spec: {containers: [{name: "😀", image: x}]}}
"""
OTHERS = """
kind: ConfigMap
apiVersion: v1
metadata: {name: web}
data: {text: "kind: Deployment, replicas: 2"}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web}
spec: {replicas: 2}
"""
WEB = scaling.Scaled("apps", "Deployment", "web", ("spec", "replicas"), 20)


def test_the_live_number_stands_in_its_object_and_no_other_text_changes():
    before = f"---\n{DEPLOYMENT}--- # next\n{OTHERS}"

    assert before.replace("replicas: 2 #", "replicas: 20 #") == scaling.carried(before, [WEB])
    assert before == scaling.carried(before, [])


@pytest.mark.parametrize(
    "text",
    [
        '{"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "web"}, "spec": {"replicas": 2}}',
        "apiVersion: v1\nkind: List\nitems:\n- apiVersion: apps/v1\n  kind: Deployment\n"
        "  metadata: {name: web}\n  spec:\n    replicas: 2\n",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: 'web'}\nspec: {replicas: 1, replicas: 2}\n",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas:   0x2\n",
    ],
)
def test_it_is_found_in_every_form_of_writing(text):
    (changed,) = manifest.parse(scaling.carried(text, [WEB])).objects

    assert 20 == changed["spec"]["replicas"]


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {paused: false}\n",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web2}\nspec: {replicas: 2}\n",
        "apiVersion: x.example/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 2}\n",
        "kind: Deployment\nmetadata: {name: web, labels: {n: &two 2}}\napiVersion: apps/v1\nspec: {replicas: *two}\n",
        "kind: Deployment\nname: web\n\t- nonsense",
    ],
)
def test_what_has_no_number_of_its_own_stays_as_it_is(text):
    assert text == scaling.carried(text, [WEB])


def test_what_was_scaled_is_known_by_the_subresource_wherever_the_field_is():
    entry = {"manager": "x", "operation": "Update", "subresource": "scale"}
    live = {
        "apiVersion": "x.example/v1",
        "kind": "Ring",
        "metadata": {"name": "r", "managedFields": [{**entry, "fieldsV1": {"f:spec": {"f:size": {}}}}]},
        "spec": {"size": 7, "replicas": 3},
    }

    assert (scaling.Scaled("x.example", "Ring", "r", ("spec", "size"), 7),) == scaling.found(live)
    assert scaling.can_be_scaled(live)
    assert not scaling.can_be_scaled({"apiVersion": "v1", "kind": "ConfigMap"})
    assert not scaling.can_be_scaled({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress"})
