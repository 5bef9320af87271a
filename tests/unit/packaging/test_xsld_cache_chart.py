"""The chart of one cache: what it makes of its values, and that its schema knows the fields of the definitions."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from moorage.operators.xsld.cache import types

Values = dict[str, Any]
ACCEPTED: Values = {"license": "accept"}
ELSEWHERE = {"license", "size", "image", "capacity", "catalogs", "storage"}
CREDENTIALS = {"adminPwd", "secretKey", "credentialsSecretRef"}


def only(objects: list[Values], kind: str) -> Values:
    (found,) = [each for each in objects if each["kind"] == kind]
    return found


def test_one_cache_of_the_release_s_name(render: Any) -> None:
    values = ACCEPTED | {"size": 3, "spec": {"group": "shop"}, "storage": {"storageClassName": "fast"}}
    cache = only(render("xsld-cache", values, release="shop"), "XsldCache")

    assert ("shop", "place") == (cache["metadata"]["name"], cache["metadata"]["namespace"])
    assert cache["spec"] == {
        "license": "accept",
        "size": 3,
        "image": "ibmcom/xsld:8613",
        "capacity": 1,
        "catalogs": 3,
        "group": "shop",
        "storage": {"size": "1Gi", "storageClassName": "fast", "reclaimOnDelete": "Delete"},
        "credentialsSecretRef": {"name": "shop-login", "adminPwdKey": "adminPwd", "secretKeyKey": "secretKey"},
    }


def test_the_cluster_s_default_class_is_no_class_by_name(render: Any) -> None:
    assert "storageClassName" not in only(render("xsld-cache", ACCEPTED), "XsldCache")["spec"]["storage"]


def test_generated_credentials_are_what_the_product_takes(render: Any) -> None:
    secret = only(render("xsld-cache", ACCEPTED), "Secret")
    given = {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}

    assert {"adminPwd", "secretKey"} == given.keys()
    assert 2 == len(set(given.values()))
    assert ["", ""] == [types.password_fault(text) for text in given.values()]


def test_a_secret_of_ones_own_is_named_and_none_is_made(render: Any) -> None:
    own = {"existingSecret": "mine", "adminPwdKey": "password", "secretKeyKey": "key"}
    objects = render("xsld-cache", ACCEPTED | {"credentials": own})

    assert {"XsldCache"} == {each["kind"] for each in objects}
    ref = only(objects, "XsldCache")["spec"]["credentialsSecretRef"]
    assert {"name": "mine", "adminPwdKey": "password", "secretKeyKey": "key"} == ref


def test_credentials_stay_where_volumes_stay(render: Any) -> None:
    policy = "helm.sh/resource-policy"
    gone = only(render("xsld-cache", ACCEPTED), "Secret")
    kept = only(render("xsld-cache", ACCEPTED | {"storage": {"reclaimOnDelete": "Retain"}}), "Secret")

    assert policy not in gone["metadata"].get("annotations", {})
    assert "keep" == kept["metadata"]["annotations"][policy]


def test_grids_and_templates_belong_to_the_cache(render: Any) -> None:
    source = {"configMapRef": {"name": "orders"}}
    values = {
        "grids": {"orders": {"gridType": "Custom", "templateName": "orders"}, "old": {"gridName": "Old_Grid"}},
        "templates": {"orders": {"source": source}},
    }
    objects = render("xsld-cache", ACCEPTED | values, release="shop")
    ref = {"name": "shop"}

    assert {each["metadata"]["name"]: each["spec"] for each in objects if each["kind"] == "DataGrid"} == {
        "shop-orders": {"cacheRef": ref, "gridName": "orders", "gridType": "Custom", "templateName": "orders"},
        "shop-old": {"cacheRef": ref, "gridName": "Old_Grid"},
    }
    template = only(objects, "GridTemplate")
    assert "shop-orders" == template["metadata"]["name"]
    assert {"cacheRef": ref, "templateName": "orders", "source": source} == template["spec"]


def test_the_schema_knows_the_fields_of_the_definitions_and_no_more(root: Any) -> None:
    """A field that is misspelt, or given where the chart gives it itself, is refused by name."""
    schema = json.loads((root / "charts/xsld-cache/values.schema.json").read_text())["properties"]
    specs = {
        crd["spec"]["names"]["kind"]: crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        for crd in yaml.safe_load_all((root / "charts/moorage/files/crds/xsld.yaml").read_text())
    }
    cache = specs["XsldCache"]["properties"]

    assert cache.keys() - ELSEWHERE - CREDENTIALS == schema["spec"]["properties"].keys()
    assert cache["storage"]["properties"].keys() == schema["storage"]["properties"].keys()
    for value, kind in (("grids", "DataGrid"), ("templates", "GridTemplate")):
        each = schema[value]["additionalProperties"]
        assert specs[kind]["properties"].keys() - {"cacheRef"} == each["properties"].keys()
        assert specs[kind].get("required", []) == each.get("required", [])


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({}, "license: set it to accept"),
        ({"license": "yes"}, "at '/license'"),
        (ACCEPTED | {"size": 0}, "at '/size'"),
        (ACCEPTED | {"spec": {"adminPwd": "x"}}, "at '/spec': additional properties 'adminPwd' not allowed"),
        (ACCEPTED | {"grids": {"a": {"type": "Simple"}}}, "at '/grids/a': additional properties 'type' not allowed"),
        (ACCEPTED | {"grids": {"A": {}}}, "invalid propertyName 'A'"),
        (ACCEPTED | {"templates": {"a": {}}}, "missing property 'source'"),
    ],
)
def test_what_is_wrong_is_named(refusal: Callable[[str, Values], str], values: Values, word: str) -> None:
    assert word in refusal("xsld-cache", values)


def test_notes_say_how_to_wait_and_where_the_password_is(helm: Any, root: Any) -> None:
    chart = str(root / "charts/xsld-cache")
    said = helm("install", "shop", chart, "--dry-run=client", "--namespace", "ops", "--set", "license=accept").stdout
    notes = said.partition("NOTES:")[2]

    assert "kubectl wait -n ops --for=condition=Ready xsldcache/shop" in notes
    assert "adminPwd of Secret shop-login" in notes
