"""Release records are read, told apart and rewritten without loss."""

from __future__ import annotations

import base64
import copy
import gzip
import json
import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api import meta
from moorage.helm.parsing import helm_yaml
from moorage.helm.release import records

BODY = {
    "name": "r",
    "info": {"status": "pending-upgrade", "description": "Preparing upgrade", "first_deployed": "2026-01-01T00:00:00Z"},
    "chart": {
        "metadata": {"name": "app", "version": "1.2.3", "appVersion": "9"},
        "lock": {"generated": "2026-01-01T00:00:00Z", "digest": "x"},
        "templates": [{"name": "templates/a", "data": "YQ==", "modtime": "2026-01-01T00:00:00Z"}],
        "values": {"a": 1},
        "schema": None,
        "files": [],
        "modtime": "2026-01-01T00:00:00Z",
    },
    "config": {"a": 2},
    "manifest": "---\n# Source: app/templates/a\n",
    "hooks": [
        {"name": "h", "kind": "Job", "manifest": "x", "events": ["pre-install"], "last_run": {"phase": "Failed"}}
    ],
    "version": 3,
    "namespace": "ns",
    "apply_method": "ssa",
    "something_new": {"kept": [1, 2.5, None]},
}


def pack(body) -> str:
    return base64.b64encode(base64.b64encode(gzip.compress(json.dumps(body).encode()))).decode()


def test_decode():
    record = records.decode(pack(BODY))
    assert (record.name, record.namespace, record.revision, record.status) == ("r", "ns", 3, "pending-upgrade")
    assert (record.chart_name, record.chart_version, record.app_version, record.apply_method) == (
        "app",
        "1.2.3",
        "9",
        "ssa",
    )
    assert record.hooks == (records.Hook("h", "Job", "x", ("pre-install",), "Failed"),)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(JSON, st.text())
def test_another_status_changes_nothing_else(extra, description):
    body = {**BODY, "extra": extra}
    data, labels = records.with_status(pack(body), "failed", description)
    again = json.loads(gzip.decompress(base64.b64decode(base64.b64decode(data))))
    assert labels == {"status": "failed"}
    assert (again["info"].pop("status"), again["info"].pop("description")) == ("failed", description)
    expected = copy.deepcopy(body)
    del expected["info"]["status"], expected["info"]["description"]
    assert again == expected


def test_a_record_that_would_not_fit_is_refused():
    body = {**BODY, "manifest": os.urandom(700_000).hex()}
    with pytest.raises(records.RecordError, match="a Secret may have"):
        records.with_status(pack(body), "failed", "")


BOMB = base64.b64encode(base64.b64encode(gzip.compress(bytes(records.MAX_DECODED + 1), 1))).decode()


@pytest.mark.parametrize(
    "data",
    [
        "",
        "!",
        base64.b64encode(b"x").decode(),
        pack([]),
        pack({}),
        pack({**BODY, "version": "x"}),
        pack(BODY)[:-8],
        pack({**BODY, "info": [1]}),
        pack({**BODY, "hooks": [1]}),
        base64.b64encode(base64.b64encode(b'{"info":' + b"[" * 100_000)).decode(),
    ],
    ids=["empty", "no-base64", "no-gzip", "list", "nothing", "bad-version", "cut-off", "bad-info", "bad-hook", "deep"],
)
def test_what_is_no_record(data):
    with pytest.raises(records.RecordError):
        records.decode(data)


def test_a_record_that_unpacks_to_too_much_is_refused_with_the_figure():
    with pytest.raises(helm_yaml.TooLarge, match=f"more than {records.MAX_DECODED} bytes"):
        records.decode(BOMB)
    with pytest.raises(helm_yaml.TooLarge, match="more than 100 bytes"):
        records.decode(pack(BODY), 100)


def test_revisions_by_their_labels():
    labels = {
        "name": "r",
        "owner": "helm",
        "status": "pending-install",
        "version": "12",
        "modifiedAt": "1",
        "mine": "x",
    }
    found = records.Revision.from_metadata(
        meta.ObjectMeta(name="n", namespace="ns", uid="u", resource_version="7", labels=labels)
    )
    assert found == records.Revision("ns", "r", 12, "pending-install", "u", "7", {"mine": "x"})
    assert (found.pending, found.secret_name) == (True, "sh.helm.release.v1.r.v12")
    for bad in ({}, *({**labels, "version": v} for v in ("x", "", "0", "٣", "9" * 63)), {**labels, "owner": "me"}):
        with pytest.raises(records.RecordError):
            records.Revision.from_metadata(meta.ObjectMeta(name="n", labels=bad))


def test_the_latest_is_the_one_with_the_highest_number_and_what_is_no_record_is_left_out():
    def named(name, **labels):
        return meta.ObjectMeta(name=name, labels={"owner": "helm", "name": "r", **labels})

    sound = [named("v2", version="2"), named("v10", version="10"), named("v9", version="9")]
    strange = [
        named("x", version="x"),
        named("none"),
        named("big", version="9" * 60),
        named("v11", version="11", owner=""),
    ]

    assert "v10" == records.latest([*sound, *strange]).name
    assert None is records.latest(strange)


def test_a_record_names_other_versions_and_nothing_else_changes() -> None:
    """Hooks too; of one whose object is gone nothing is left."""
    old = "apiVersion: g/v1beta1\nkind: B\nmetadata: {name: b}\n"
    gone = "apiVersion: gone/v1\nkind: G\nmetadata: {name: g}\n"
    body = {**BODY, "manifest": f"---\n{old}---\n{gone}", "hooks": [{"name": "h", "manifest": old}, {"manifest": gone}]}

    def change(found: dict[str, Any]) -> dict[str, Any] | None:
        return {**found, "apiVersion": "g/v1"} if found["kind"] == "B" else None

    data = records.rewritten(pack(body), change)

    assert data is not None
    after = json.loads(gzip.decompress(base64.b64decode(base64.b64decode(data))))
    assert '"apiVersion":"g/v1"' in after["manifest"]
    assert "gone/v1" not in after["manifest"]
    assert ["h"] == [hook["name"] for hook in after["hooks"]]
    assert body == {**after, "manifest": body["manifest"], "hooks": body["hooks"]}
    assert records.rewritten(pack(body), lambda found: found) is None
