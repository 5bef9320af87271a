"""What is inside a chart archive. Pure: bytes in, a frozen view out.

An archive comes from elsewhere, so sizes, counts and paths are checked before anything is believed; `ChartInvalid` says
what is wrong. Limits are helm's own, so what passes here is not refused there.
"""

from __future__ import annotations

import io
import json
import posixpath
import re
import tarfile
import zlib
from collections.abc import Mapping
from typing import Any

import msgspec

from moorage.helm import documents

__all__ = ["ChartError", "ChartInvalid", "Contents", "gunzip", "read", "unpack"]

MAX_ARCHIVE = 20 << 20  # bytes, packed
MAX_UNPACKED = 100 << 20
MAX_FILE = 5 << 20
MAX_FILES = 10_000
MAX_NESTING = 8  # charts inside charts

_ACTION = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_COMMENT = re.compile(r"\{\{-?\s*/\*.*?\*/\s*-?\}\}", re.DOTALL)
_TEXT = re.compile(r'"(?:\\.|[^"\\])*"')
_CAPABILITIES = re.compile(r"\.Capabilities\b")
_LOOKUP = re.compile(r"(?<![\w.$\"-])lookup\s")


class ChartError(Exception):
    """A chart can't be had. `transient` says that trying again later may help without anyone's doing."""

    transient = False


class ChartInvalid(ChartError):  # noqa: N818 - names what happened
    """The archive is no chart that helm would take, or one that must not be opened."""


class Contents(msgspec.Struct, frozen=True):
    """A chart with its dependencies; file names are relative to the chart, dependencies under `charts/NAME/`."""

    metadata: dict[str, Any]
    values: dict[str, Any]
    schema: dict[str, Any] | None
    templates: dict[str, str]  # without NOTES.txt, which is no part of the manifest
    crds: tuple[str, ...]  # names of the files under crds/, in order
    files: tuple[str, ...]  # all names
    reads_capabilities: bool  # a template mentions .Capabilities: what is rendered depends on the cluster's version
    uses_lookup: bool  # a template asks the cluster: it can't be rendered offline

    @property
    def name(self) -> str:
        return str(self.metadata["name"])

    @property
    def version(self) -> str:
        return str(self.metadata["version"])

    @property
    def app_version(self) -> str:
        return str(self.metadata.get("appVersion") or "")

    @property
    def library(self) -> bool:
        """A library chart has nothing to install."""
        return self.metadata.get("type") == "library"

    def schema_takes(self, path: tuple[str, ...]) -> bool:
        """Whether the values schema names this property. Without a schema nothing is named."""
        return self.schema is not None and _declares(self.schema, self.schema, path, 0)


def read(archive: bytes) -> Contents:
    """The contents of a .tgz. Raises ChartInvalid."""
    files = unpack(archive)
    metadata = _mapping(files, "Chart.yaml")
    for field in ("name", "version"):
        if not isinstance(metadata.get(field), str) or not metadata[field]:
            raise ChartInvalid(f"Chart.yaml has no {field}; helm needs one, as text")
    templates = {name: _text(name, data) for name, data in files.items() if _is_template(name)}
    code = [_code(text) for text in templates.values()]
    defaults = [_text(name, data) for name, data in files.items() if posixpath.basename(name) == "values.yaml"]
    code += [_code(text) for text in defaults]  # values hold templates too, for charts that use tpl
    return Contents(
        metadata=metadata,
        values=_mapping(files, "values.yaml") if "values.yaml" in files else {},
        schema=_schema(files),
        templates=templates,
        crds=tuple(
            sorted(name for name in files if _under(name, "crds") and name.endswith((".yaml", ".yml", ".json")))
        ),
        files=tuple(sorted(files)),
        reads_capabilities=any(_CAPABILITIES.search(text) for text in code),
        uses_lookup=any(_LOOKUP.search(_TEXT.sub('""', text)) for text in code),
    )


def unpack(archive: bytes) -> dict[str, bytes]:
    """Regular files of a chart archive by name relative to the chart; packed dependencies are opened in place."""
    budget = _Budget(MAX_UNPACKED, MAX_FILES)
    return _unpack(archive, budget, 0)


class _Budget:
    """What may still be unpacked, shared by an archive and all archives inside it."""

    def __init__(self, size: int, files: int) -> None:
        self.size, self.files = size, files

    def take(self, size: int, name: str) -> None:
        self.size, self.files = self.size - size, self.files - 1
        if size > MAX_FILE:
            raise ChartInvalid(f"{name} has {size} bytes; a file of a chart may have {MAX_FILE}")
        if self.size < 0 or self.files < 0:
            raise ChartInvalid(f"unpacks to more than {MAX_UNPACKED} bytes or {MAX_FILES} files")


def _unpack(archive: bytes, budget: _Budget, depth: int) -> dict[str, bytes]:
    if depth > MAX_NESTING:
        raise ChartInvalid(f"charts are nested deeper than {MAX_NESTING}")
    if len(archive) > MAX_ARCHIVE:
        raise ChartInvalid(f"the archive has {len(archive)} bytes; at most {MAX_ARCHIVE} are read")
    out: dict[str, bytes] = {}
    for name, data in _members(gunzip(archive), budget):
        parts = name.split("/")
        if len(parts) == 2 and parts[0] == "charts" and name.endswith(".tgz"):
            inner = _unpack(data, budget, depth + 1)
            inner_name = str(_mapping(inner, "Chart.yaml").get("name") or parts[1][: -len(".tgz")])
            out |= {f"charts/{inner_name}/{inside}": found for inside, found in inner.items()}
        else:
            out[name] = data
    return out


def gunzip(archive: bytes) -> bytes:
    """The tar inside, within the limits. Raises ChartInvalid."""
    inflate = zlib.decompressobj(wbits=31)
    try:
        data = inflate.decompress(archive, MAX_UNPACKED + 1)
    except zlib.error as error:
        raise ChartInvalid(f"not a gzip archive: {error}") from None
    if len(data) > MAX_UNPACKED:
        raise ChartInvalid(f"unpacks to more than {MAX_UNPACKED} bytes")
    if not inflate.eof:
        raise ChartInvalid("the archive is cut off")
    return data


def _members(tar: bytes, budget: _Budget) -> list[tuple[str, bytes]]:
    """(name below the top folder, content) of the regular files; everything but files and folders is refused."""
    out, top = [], None
    try:
        with tarfile.open(fileobj=io.BytesIO(tar), mode="r:") as packed:
            for member in packed:
                name = _safe(member.name)
                first, _, rest = name.partition("/")
                if member.isdir() or not name:
                    continue
                if not member.isreg():
                    raise ChartInvalid(f"{member.name} is a link or a device; a chart has only files")
                if not rest:
                    raise ChartInvalid(f"{member.name} is not inside the chart's folder")
                if top not in (None, first):
                    raise ChartInvalid(f"more than one top folder: {top} and {first}")
                budget.take(member.size, name)
                top = first
                reader = packed.extractfile(member)
                out.append((rest, reader.read() if reader else b""))
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise ChartInvalid(f"not a tar archive: {error}") from None
    if not out:
        raise ChartInvalid("the archive is empty")
    return out


def _safe(name: str) -> str:
    clean = posixpath.normpath(name) if name else ""
    if clean.startswith(("/", "..")) or "\\" in name or ".." in name.split("/") or "\0" in name or ":" in name[:2]:
        raise ChartInvalid(f"{name!r} points outside of the chart")
    return "" if clean == "." else clean


def _under(name: str, folder: str) -> bool:
    """In `folder` of the chart itself or of any of its dependencies."""
    parts = name.split("/")
    while len(parts) > 3 and parts[0] == "charts":
        parts = parts[2:]
    return len(parts) > 1 and parts[0] == folder


def _is_template(name: str) -> bool:
    return _under(name, "templates") and posixpath.basename(name) != "NOTES.txt"


def _code(template: str) -> str:
    """The actions of a template, without its comments and plain text."""
    return "\n".join(_ACTION.findall(_COMMENT.sub("", template)))


def _text(name: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ChartInvalid(f"{name} is not UTF-8 text") from None


def _mapping(files: Mapping[str, bytes], name: str) -> dict[str, Any]:
    if name not in files:
        raise ChartInvalid(f"there is no {name} in the chart's folder")
    try:
        loaded = documents.load(_text(name, files[name]).removeprefix("\ufeff"))
    except documents.DocumentError as error:
        raise ChartInvalid(f"{name}: {error}") from None
    if loaded is not None and not isinstance(loaded, dict):
        raise ChartInvalid(f"{name} is not a mapping")
    return loaded or {}


def _schema(files: Mapping[str, bytes]) -> dict[str, Any] | None:
    if "values.schema.json" not in files:
        return None
    try:
        schema = json.loads(files["values.schema.json"])
    except (ValueError, RecursionError) as error:
        raise ChartInvalid(f"values.schema.json: {error}") from None
    return schema if isinstance(schema, dict) else {}


def _declares(schema: Any, root: dict[str, Any], path: tuple[str, ...], hops: int) -> bool:
    if not path:
        return schema is not False
    if not isinstance(schema, dict) or hops > 20:
        return False
    branches = [schema]
    for word in ("allOf", "anyOf", "oneOf"):
        branches += [b for b in schema.get(word, ()) if isinstance(b, dict)]
    if any(
        path[0] in b.get("properties", {}) and _declares(b["properties"][path[0]], root, path[1:], 0) for b in branches
    ):
        return True
    nested = [b for b in branches[1:] if any(w in b for w in ("allOf", "anyOf", "oneOf", "$ref"))]
    targets = [_pointer(root, schema["$ref"])] if isinstance(schema.get("$ref"), str) else []
    return any(_declares(b, root, path, hops + 1) for b in nested + targets)


def _pointer(root: dict[str, Any], ref: str) -> Any:
    """The target of a reference inside the same document; None for any other."""
    if not ref.startswith("#"):
        return None
    node: Any = root
    for part in ref[1:].strip("/").split("/"):
        if part:
            node = node.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(node, dict) else None
    return node
