"""What is read from an archive, and what is refused before it is opened."""

from __future__ import annotations

import gzip
import io
import json
import tarfile

import pytest

from moorage.helm import chart, folder


def archive(files: dict[str, bytes], *, mutate=None) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            if mutate:
                mutate(member)
            tar.addfile(member, io.BytesIO(data) if member.isreg() else None)
    return gzip.compress(out.getvalue())


BASE = {"c/Chart.yaml": b"apiVersion: v2\nname: c\nversion: 1.2.3\nappVersion: '4'\n"}


def read(**templates: str) -> chart.Contents:
    return chart.read(archive({**BASE, **{f"c/templates/{n}": t.encode() for n, t in templates.items()}}))


def test_contents(make_chart):
    schema = {"properties": {"a": {"type": "integer"}}}
    where = make_chart({"values.yaml": "a: 1\n", "values.schema.json": json.dumps(schema), "crds/x.yaml": "{}"})
    found = chart.read(folder.pack(where)[0])
    assert (found.name, found.version, found.values, found.schema) == ("probe", "0.1.0", {"a": 1}, schema)
    assert found.crds == ("crds/x.yaml",)
    assert list(found.templates) == ["templates/probe.yaml"]


def test_dependencies_are_read_in_place():
    inner = archive(
        {"dep/Chart.yaml": b"name: dep\nversion: 1.0.0\n", "dep/templates/a": b"{{ .Capabilities.KubeVersion }}"}
    )
    found = chart.read(archive({**BASE, "c/charts/dep-1.0.0.tgz": inner}))
    assert found.reads_capabilities
    assert "charts/dep/templates/a" in found.templates


@pytest.mark.parametrize(
    ("text", "capabilities", "lookup"),
    [
        ('{{ if .Capabilities.APIVersions.Has "x" }}{{ end }}', True, False),
        ("{{- $.Capabilities.KubeVersion.Version -}}", True, False),
        ("{{/* .Capabilities */}}", False, False),
        ("# .Capabilities in a comment of the YAML", False, False),
        ('{{ (lookup "v1" "Secret" "a" "b") }}', False, True),
        ('{{ $x := lookup "v1" "Secret" "a" "b" }}', False, True),
        ('{{ .Values.lookup }} {{ "lookup me" }} {{ include "my.lookup " . }}', False, False),
        ('{{ tpl "{{ .Capabilities.KubeVersion }}" . }}', True, False),
    ],
)
def test_flags(text, capabilities, lookup):
    found = read(**{"a.yaml": text})
    assert (found.reads_capabilities, found.uses_lookup) == (capabilities, lookup)


def test_notes_are_no_part_of_the_manifest():
    assert not read(**{"NOTES.txt": '{{ lookup "v1" "Pod" "" "" }}'}).uses_lookup


def test_schema_takes():
    schema = {
        "$defs": {"tenant": {"properties": {"id": {}}}},
        "properties": {"tenant": {"$ref": "#/$defs/tenant"}, "none": False},
        "allOf": [{"properties": {"extra": {"anyOf": [{"properties": {"deep": {}}}, {"type": "null"}]}}}],
    }
    found = chart.read(archive({**BASE, "c/values.schema.json": json.dumps(schema).encode()}))
    takes = {
        p: found.schema_takes(tuple(p.split(".")))
        for p in ("tenant.id", "tenant", "extra.deep", "none", "other", "tenant.x")
    }
    assert takes == {
        "tenant.id": True,
        "tenant": True,
        "extra.deep": True,
        "none": False,
        "other": False,
        "tenant.x": False,
    }
    assert not read().schema_takes(("tenant",))


def test_a_schema_that_refers_to_itself_ends():
    schema = {"$ref": "#", "allOf": [{"$ref": "#"}]}
    assert not chart.read(archive({**BASE, "c/values.schema.json": json.dumps(schema).encode()})).schema_takes(
        ("a", "b")
    )


@pytest.mark.parametrize("name", ["../x", "c/../../x", "/etc/x", "c/..", "c\\..\\x", "x.yaml", "other/x"])
def test_paths_that_lead_outside_are_refused(name):
    with pytest.raises(chart.ChartInvalid):
        chart.read(archive({**BASE, name: b"x"}))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_links_and_devices_are_refused(kind):
    def mutate(member):
        if member.name == "c/x":
            member.type, member.linkname = kind, "/etc/passwd"

    with pytest.raises(chart.ChartInvalid, match="link or a device"):
        chart.read(archive({**BASE, "c/x": b""}, mutate=mutate))


def test_bombs_are_refused():
    with pytest.raises(chart.ChartInvalid, match="unpacks to more"):
        chart.read(gzip.compress(bytes(chart.MAX_UNPACKED + 1), 1))
    with pytest.raises(chart.ChartInvalid, match="a file of a chart may have"):
        chart.read(archive({**BASE, "c/big": bytes(chart.MAX_FILE + 1)}))
    nested = archive(BASE)
    for _ in range(chart.MAX_NESTING + 1):
        nested = archive({**BASE, "c/charts/c.tgz": nested})
    with pytest.raises(chart.ChartInvalid, match="nested deeper"):
        chart.read(nested)


@pytest.mark.parametrize(
    "bad",
    [b"", b"no gzip", gzip.compress(b"no tar"), archive(BASE)[:60], gzip.compress(b"")],
    ids=["empty", "text", "no-tar", "cut-off", "no-files"],
)
def test_what_is_no_archive(bad):
    with pytest.raises(chart.ChartInvalid):
        chart.read(bad)


@pytest.mark.parametrize("text", [b"name: c\n", b"- a\n", b"a: [", b"name: 1\nversion: 1.0.0", b"\xff"])
def test_chart_yaml_must_be_sound(text):
    with pytest.raises(chart.ChartInvalid):
        chart.read(archive({"c/Chart.yaml": text}))
