"""The examples of caches: what they show is there, and they fit together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from moorage.operators.xsld.cache import types as cache_types
from moorage.operators.xsld.grid import types as grid_types
from moorage.operators.xsld.template import types as template_types

FOLDER = Path(__file__).resolve().parents[3] / "examples/xsldcache"
SPECS: dict[str, Any] = {
    "XsldCache": cache_types.XsldCacheSpec,
    "DataGrid": grid_types.DataGridSpec,
    "GridTemplate": template_types.GridTemplateSpec,
}
ORIGINAL = {
    "XsldCache": "license size adminPwd secretKey image capacity catalogs group entrypointConfigMap",
    "DataGrid": "description gridType templateName gridCapacity numPartition numSyncReplicas numAsyncReplicas"
    " lockTimeout transactionTimeout timeToLive ownerName groupName useAuthentication useAuthorization"
    " useCapLRUEvictor",
}
"""All fields that the original operator had."""


def objects(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / f"{name}.yaml").read_text()))


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.yaml")))
def test_the_operator_takes_it(name: str) -> None:
    for each in objects(name):
        if each["kind"] in SPECS:
            msgspec.convert(each["spec"], SPECS[each["kind"]])


def test_credentials_are_such_as_the_product_takes() -> None:
    (secret,) = [each for each in objects("hello") if each["kind"] == "Secret"]
    (cache,) = [each for each in objects("original") if each["kind"] == "XsldCache"]
    given = [*secret["stringData"].values(), cache["spec"]["adminPwd"], cache["spec"]["secretKey"]]

    assert [""] * 4 == [cache_types.password_fault(text) for text in given]


def test_grids_belong_to_the_cache_of_hello() -> None:
    (cache,) = [each for each in objects("hello") if each["kind"] == "XsldCache"]
    grids = [
        each for name in ("hello", "grids") for each in objects(name) if each["kind"] in ("DataGrid", "GridTemplate")
    ]

    assert {cache["metadata"]["name"]} == {each["spec"]["cacheRef"]["name"] for each in grids}
    assert {"Simple", "Session", "Custom"} <= {each["spec"].get("gridType") for each in grids}
    (template,) = {each["metadata"]["name"] for each in grids if each["kind"] == "GridTemplate"}
    assert {template} == {name for each in grids if (name := each["spec"].get("templateName"))}


def test_the_original_s_manifest_has_the_original_s_fields_alone() -> None:
    for each in objects("original"):
        assert each["spec"].keys() <= set(ORIGINAL[each["kind"]].split())
        assert {"name"} == each["metadata"].keys()
