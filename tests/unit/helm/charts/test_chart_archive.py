"""What is read from an archive, and what is refused before it is opened."""

from __future__ import annotations

import gzip
import http.server
import io
import json
import subprocess
import tarfile
import threading
import tracemalloc

import pytest

from moorage.helm.charts import chart_archive, chart_folder, values_schema


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


def read(**templates: str) -> chart_archive.Contents:
    return chart_archive.read(archive({**BASE, **{f"c/templates/{n}": t.encode() for n, t in templates.items()}}))


def test_contents(make_chart):
    schema = {"properties": {"a": {"type": "integer"}}}
    where = make_chart({"values.yaml": "a: 1\n", "values.schema.json": json.dumps(schema), "crds/x.yaml": "{}"})
    found = chart_archive.read(chart_folder.pack(where)[0])
    assert (found.name, found.version, found.values, found.schema) == ("probe", "0.1.0", {"a": 1}, schema)
    assert found.crds == ("crds/x.yaml",)
    assert list(found.templates) == ["templates/probe.yaml"]


def test_dependencies_are_read_in_place():
    inner = archive(
        {"dep/Chart.yaml": b"name: dep\nversion: 1.0.0\n", "dep/templates/a": b"{{ .Capabilities.KubeVersion }}"}
    )
    found = chart_archive.read(archive({**BASE, "c/charts/dep-1.0.0.tgz": inner}))
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
    found = chart_archive.read(archive({**BASE, "c/values.schema.json": json.dumps(schema).encode()}))
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
    assert not chart_archive.read(archive({**BASE, "c/values.schema.json": json.dumps(schema).encode()})).schema_takes(
        ("a", "b")
    )


@pytest.mark.parametrize("name", ["../x", "c/../../x", "/etc/x", "c/..", "c\\..\\x", "x.yaml", "other/x"])
def test_paths_that_lead_outside_are_refused(name):
    with pytest.raises(chart_archive.ChartInvalid):
        chart_archive.read(archive({**BASE, name: b"x"}))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_links_and_devices_are_refused(kind):
    def mutate(member):
        if member.name == "c/x":
            member.type, member.linkname = kind, "/etc/passwd"

    with pytest.raises(chart_archive.ChartInvalid, match="link or a device"):
        chart_archive.read(archive({**BASE, "c/x": b""}, mutate=mutate))


def test_bombs_are_refused():
    with pytest.raises(chart_archive.ChartInvalid, match="unpacks to more"):
        chart_archive.read(gzip.compress(bytes(chart_archive.MAX_UNPACKED + 1), 1))
    with pytest.raises(chart_archive.ChartInvalid, match="a file of a chart may have"):
        chart_archive.read(archive({**BASE, "c/big": bytes(chart_archive.MAX_FILE + 1)}))
    nested = archive(BASE)
    for _ in range(chart_archive.MAX_NESTING + 1):
        nested = archive({**BASE, "c/charts/c.tgz": nested})
    with pytest.raises(chart_archive.ChartInvalid, match="nested deeper"):
        chart_archive.read(nested)


@pytest.mark.parametrize(
    "bad",
    [b"", b"no gzip", gzip.compress(b"no tar"), archive(BASE)[:60], gzip.compress(b"")],
    ids=["empty", "text", "no-tar", "cut-off", "no-files"],
)
def test_what_is_no_archive(bad):
    with pytest.raises(chart_archive.ChartInvalid):
        chart_archive.read(bad)


@pytest.mark.parametrize("text", [b"name: c\n", b"- a\n", b"a: [", b"name: 1\nversion: 1.0.0", b"\xff"])
def test_chart_yaml_must_be_sound(text):
    with pytest.raises(chart_archive.ChartInvalid):
        chart_archive.read(archive({"c/Chart.yaml": text}))


HERE = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
FAR = "http://127.0.0.1:1/x.json"


@pytest.mark.parametrize(
    ("schema", "leads"),
    [
        ({**HERE, "$ref": "#/$defs/a", "$defs": {"a": {}}}, ()),
        ({"$id": "https://example.com/values.json", "$ref": "#/x", "x": {"$ref": "#"}}, ()),
        ({"$id": "https://example.com/values.json", "$ref": "values.json#/x", "x": {}}, ()),
        ({"allOf": [{"$ref": "https://json-schema.org/draft-07/schema#"}, {"$ref": "urn:x"}]}, ()),
        ({"properties": {"$ref": {"type": "string"}, "a": {"$id": "#/properties/a"}}}, ()),
        ({**HERE, "$ref": "b.json", "$defs": {"b": {"$id": "b.json"}}}, ()),
        ({**HERE, "$ref": f"{FAR}#/y", "$defs": {"b": {"$id": FAR, "y": {"$ref": "x.json"}}}}, ()),
        (
            {"$schema": "http://json-schema.org/draft-07/schema#", "$ref": FAR, "definitions": {"b": {"$id": FAR}}},
            (FAR,),
        ),
        ({"allOf": [{"$ref": FAR}], "definitions": {"b": {"$id": FAR}}}, (FAR,)),
        ({**HERE, "allOf": [{"$ref": FAR}], "default": {"$defs": {"b": {"$id": FAR}}}}, (FAR,)),
        ({**HERE, "$ref": FAR, "$defs": {"b": {"$id": FAR}}, "not": {"$id": "http://127.0.0.1:1/"}}, (FAR,)),
        (
            {"$schema": "http://json-schema.org/draft-04/schema", "x": {"$ref": FAR}, "$defs": {"b": {"$id": FAR}}},
            (FAR,),
        ),
        ({"properties": {"a": {"$ref": FAR}}}, (FAR,)),
        (
            {"properties": {"a": {"items": [{"$dynamicRef": FAR}, {"$recursiveRef": "other.json"}]}}},
            (FAR, "other.json"),
        ),
        ({"$schema": FAR}, (FAR,)),
        ({"$schema": "http://json-schema.org/draft-03/schema#"}, ("http://json-schema.org/draft-03/schema#",)),
        ({"$ref": "file:///etc/passwd"}, ("file:///etc/passwd",)),
        ({"$ref": "//127.0.0.1:1/x"}, ("//127.0.0.1:1/x",)),
        ({"$id": "http://127.0.0.1:1/", "$ref": "x.json"}, ("x.json",)),
        ({"$ref": " http://127.0.0.1:1/"}, (" http://127.0.0.1:1/",)),
        (True, ()),
    ],
)
def test_where_the_references_of_a_schema_lead(schema, leads):
    assert leads == values_schema.outward(schema)


def test_a_chart_whose_schema_leads_out_is_refused_also_that_of_a_dependency():
    far = json.dumps({"properties": {"a": {"$ref": FAR}}}).encode()
    inner = archive({"dep/Chart.yaml": b"name: dep\nversion: 1.0.0\n", "dep/values.schema.json": far})

    with pytest.raises(
        chart_archive.ChartInvalid, match=f"^values.schema.json refers to {FAR}, which helm would fetch"
    ):
        chart_archive.read(archive({**BASE, "c/values.schema.json": far}))
    with pytest.raises(chart_archive.ChartInvalid, match=r"^charts/dep/values.schema.json refers to"):
        chart_archive.read(archive({**BASE, "c/charts/dep-1.0.0.tgz": inner}))
    with pytest.raises(chart_archive.ChartInvalid, match=r"^charts/d/values.schema.json refers to"):
        chart_archive.read(archive({**BASE, "c/charts/d/values.schema.json": far}))


SCHEMAS_WITH_A_PLACE = [
    {**HERE, "$ref": "PLACE#/y", "$defs": {"b": {"$id": "PLACE", "y": {"$ref": "x.json"}}}},
    {"$id": "PLACE", "$ref": "#/x", "x": {"$ref": "#"}},
    {"$id": "PLACE", "properties": {"a": {"$id": "#/properties/a", "$ref": "#/x"}}, "x": {}},
    {
        **HERE,
        "$id": "PLACE",
        "properties": {"a": {"$ref": "#/default/y"}},
        "default": {"$id": "PLACE/2", "y": {"$ref": "#"}},
    },
    {**HERE, "properties": {"a": {"$id": "PLACE", "$ref": "#"}}},
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"a": {"$id": "PLACE", "items": {"$ref": "#"}}},
    },
    {"$schema": "http://json-schema.org/draft-04/schema#", "id": "PLACE", "properties": {"a": {"$ref": "#"}}},
    {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "properties": {"a": {"id": "PLACE", "$ref": "#/x"}},
        "x": {},
    },
    {**HERE, "properties": {"a": {"$id": "PLACE", "$dynamicRef": "#n", "$dynamicAnchor": "n"}}},
]


def test_helm_fetches_nothing_for_a_schema_that_is_let_through(helm_path, make_chart):
    asked = []

    class Place(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Place)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    place = f"http://127.0.0.1:{server.server_port}/x.json"
    try:
        for number, schema in enumerate([*SCHEMAS_WITH_A_PLACE, {"properties": {"a": {"$ref": "PLACE"}}}]):
            text = json.dumps(schema).replace("PLACE", place)
            where = make_chart({"values.schema.json": text, "values.yaml": "a: 1"}, version=f"0.0.{number}")
            leads = values_schema.outward(json.loads(text))
            before = len(asked)
            subprocess.run([helm_path, "template", "r", str(where)], capture_output=True, check=False)
            assert bool(leads) or before == len(asked), text
    finally:
        server.shutdown()
        server.server_close()

    assert ["/x.json"] == asked[-1:], "the last is not let through, and is fetched"


def test_a_chart_of_the_largest_size_is_read_in_little_memory(tmp_path):
    path = tmp_path / "c.tgz"
    path.write_bytes(archive({**BASE, **{f"c/files/{i}": bytes(chart_archive.MAX_FILE) for i in range(19)}}))
    tracemalloc.start()
    try:
        found = chart_archive.read_file(str(path))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert ("c", {}) == (found.name, found.templates)
    assert most < 4 * chart_archive.MAX_FILE


def test_values_of_several_documents_are_layers_and_a_long_name_is_refused():
    assert {"a": 1, "b": 2} == chart_archive.read(archive({**BASE, "c/values.yaml": b"a: 1\n---\nb: 2\n---\n"})).values
    with pytest.raises(chart_archive.ChartInvalid, match="name of a file has"):
        chart_archive.read(archive({**BASE, "c/" + "x" * chart_archive.MAX_NAME: b""}))


@pytest.mark.parametrize(
    ("template", "reads"),
    [
        ("{{ if .Release.IsUpgrade }}a{{ end }}", True),
        ("{{ $.Release.Revision }}", True),
        ("{{ tpl .Values.extra $ }}", True),
        ('{{ with lookup "v1" "Secret" "ns" "n" }}a{{ end }}', True),
        ("{{ toYaml .Release }}", True),
        ("{{ .Release.Name }} {{ .Values.tpl }} {{ .Release.Namespace }}", False),
        ('{{ "tpl and lookup" }} tpl .Release.IsUpgrade', False),
    ],
)
def test_only_what_may_differ_by_install_and_upgrade_is_rendered_for_both(template: str, reads: bool) -> None:
    """All others are rendered once."""
    assert reads is read(a=template).reads_release
