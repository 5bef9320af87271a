"""What is inside a chart archive: bytes in, a frozen view out.

An archive comes from elsewhere, so sizes, counts and paths are checked before anything is believed; `ChartInvalid` says
what is wrong. Limits are helm's own, so what passes here is not refused there; only a schema that points out of the
chart is, as helm would follow it. Files are read one after another and not kept, so that little memory is needed.
"""

from __future__ import annotations

import hashlib
import io
import json
import posixpath
import re
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import msgspec

from moorage.helm.parsing import helm_yaml

from . import values, values_schema

__all__ = ["ChartError", "ChartInvalid", "Contents", "described", "peek", "read", "read_file", "tar_digest"]

MAX_ARCHIVE = 20 << 20  # bytes, packed
MAX_UNPACKED = 100 << 20
MAX_FILE = 5 << 20
MAX_FILES = 10_000
MAX_NAME = 500  # characters
MAX_NESTING = 8  # charts inside charts
CHUNK = 1 << 16  # bytes unpacked at a time

_ACTION = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_COMMENT = re.compile(r"\{\{-?\s*/\*.*?\*/\s*-?\}\}", re.DOTALL)
_TEXT = re.compile(r'"(?:\\.|[^"\\])*"')
_CAPABILITIES = re.compile(r"\.Capabilities\b")
_RELEASE = re.compile(r"\.Release\.(IsInstall|IsUpgrade|Revision)\b|\$?\.Release(?![\w.])|(?<![\w.$-])(tpl|lookup)\b")
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
    templates: dict[str, str]  # without NOTES.txt, which is no part of the manifest; empty where they were not kept
    crds: tuple[str, ...]  # names of the files under crds/, in order
    files: tuple[str, ...]  # all names
    reads_capabilities: bool  # a template mentions .Capabilities: what is rendered depends on the cluster's version
    uses_lookup: bool  # a template asks the cluster: it can't be rendered offline
    reads_release: bool = False  # what is rendered may depend on whether it is an install or an upgrade

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
    """The contents of a .tgz, with its templates. Raises ChartInvalid."""
    return _contents(_Reading(keep=True), io.BytesIO(archive), len(archive))


def read_file(path: str) -> Contents:
    """The contents of a .tgz file, without its templates. Raises ChartInvalid."""
    try:
        with open(path, "rb") as file:
            return _contents(_Reading(keep=False), file, file.seek(0, io.SEEK_END))
    except OSError as error:
        raise ChartInvalid(f"the archive can't be read: {error.strerror}") from None


def described(text: bytes) -> tuple[str, str]:
    """(name, version) in the text of a Chart.yaml. Raises ChartInvalid."""
    metadata = _mapping({"Chart.yaml": text}, "Chart.yaml")
    for field in ("name", "version"):
        if not isinstance(metadata.get(field), str) or not metadata[field]:
            raise ChartInvalid(f"Chart.yaml has no {field}; helm needs one, as text")
    return metadata["name"], metadata["version"]


def peek(path: str) -> tuple[str, str]:
    """(name, version) of a .tgz file, which is read no further than that. Raises ChartInvalid, or OSError."""
    with open(path, "rb") as file:
        found = next((data for name, data in _Reading(keep=False).members(file) if name == "Chart.yaml"), b"")
        return described(found)


def tar_digest(archive: BinaryIO) -> str:
    """The digest of the tar inside a .tgz. Raises ChartInvalid."""
    tar, found = _Tar(archive), hashlib.sha256()
    while chunk := tar.read(CHUNK):
        found.update(chunk)
    return f"sha256:{found.hexdigest()}"


def _contents(reading: _Reading, archive: BinaryIO, size: int) -> Contents:
    archive.seek(0)
    files = reading.unpack(archive, size, 0)
    if "Chart.yaml" not in files:
        raise ChartInvalid("there is no Chart.yaml in the chart's folder")
    described(files["Chart.yaml"])
    _stays_inside(files)
    return Contents(
        metadata=_mapping(files, "Chart.yaml"),
        values=_mapping(files, "values.yaml") if "values.yaml" in files else {},
        schema=_schema(files),
        templates={name: _text(name, data) for name, data in files.items() if reading.keep and _is_template(name)},
        crds=tuple(
            sorted(name for name in files if _under(name, "crds") and name.endswith((".yaml", ".yml", ".json")))
        ),
        files=tuple(sorted(files)),
        reads_capabilities=reading.capabilities,
        uses_lookup=reading.lookup,
        reads_release=reading.release,
    )


class _Reading:
    """One archive with all archives inside it: what may still be unpacked, and what its code was seen to do."""

    def __init__(self, *, keep: bool) -> None:
        """With `keep` templates stay; else only what is read as a whole does."""
        self.keep, self.capabilities, self.lookup, self.release = keep, False, False, False
        self._size, self._files = MAX_UNPACKED, MAX_FILES

    def unpack(self, archive: BinaryIO, size: int, depth: int) -> dict[str, bytes]:
        """Files by name relative to the chart, packed dependencies opened in place; what is not kept is empty."""
        if depth > MAX_NESTING:
            raise ChartInvalid(f"charts are nested deeper than {MAX_NESTING}")
        if size > MAX_ARCHIVE:
            raise ChartInvalid(f"the archive has {size} bytes; at most {MAX_ARCHIVE} are read")
        out: dict[str, bytes] = {}
        for name, data in self.members(archive):
            parts = name.split("/")
            if len(parts) == 2 and parts[0] == "charts" and name.endswith(".tgz"):
                inner = self.unpack(io.BytesIO(data), len(data), depth + 1)
                inner_name = str(_mapping(inner, "Chart.yaml").get("name") or parts[1][: -len(".tgz")])
                out |= {f"charts/{inner_name}/{inside}": found for inside, found in inner.items()}
            else:
                out[name] = self._seen(name, data)
        return out

    def _seen(self, name: str, data: bytes) -> bytes:
        """What is kept of a file once it was looked at. Values hold templates too, for charts that use tpl."""
        base = posixpath.basename(name)
        if _is_template(name) or base == "values.yaml":
            code = _code(_text(name, data))
            self.capabilities = self.capabilities or bool(_CAPABILITIES.search(code))
            code = _TEXT.sub('""', code)
            self.lookup = self.lookup or bool(_LOOKUP.search(code))
            self.release = self.release or bool(_RELEASE.search(code))
        return data if self.keep or base in ("Chart.yaml", "values.yaml", "values.schema.json") else b""

    def _take(self, size: int, name: str) -> None:
        self._size, self._files = self._size - size, self._files - 1
        if size > MAX_FILE:
            raise ChartInvalid(f"{name} has {size} bytes; a file of a chart may have {MAX_FILE}")
        if self._size < 0 or self._files < 0:
            raise ChartInvalid(f"unpacks to more than {MAX_UNPACKED} bytes or {MAX_FILES} files")

    def members(self, archive: BinaryIO) -> Iterator[tuple[str, bytes]]:
        """(name below the top folder, content) of the regular files; everything but files and folders is refused."""
        top, tar = "", _Tar(archive)
        try:
            with tarfile.open(fileobj=tar, mode="r|") as packed:  # type: ignore[call-overload]
                for member in packed:
                    name = _safe(member.name)
                    first, _, rest = name.partition("/")
                    if member.isdir() or not name:
                        continue
                    if not member.isreg():
                        raise ChartInvalid(f"{member.name} is a link or a device; a chart has only files")
                    if not rest:
                        raise ChartInvalid(f"{member.name} is not inside the chart's folder")
                    if top not in ("", first):
                        raise ChartInvalid(f"more than one top folder: {top} and {first}")
                    self._take(member.size, name)
                    top = first
                    reader = packed.extractfile(member)
                    yield rest, reader.read() if reader else b""
        except (tarfile.TarError, EOFError, ValueError) as error:
            raise ChartInvalid(f"not a tar archive: {error}") from None
        while tar.read(CHUNK):
            pass  # to the end, which must be there
        if not top:
            raise ChartInvalid("the archive is empty")


class _Tar:
    """The tar inside a gzip file, unpacked as it is read, within the limits."""

    def __init__(self, packed: BinaryIO) -> None:
        self._packed, self._inflate = packed, zlib.decompressobj(wbits=31)
        self._ready, self._total = bytearray(), 0

    def read(self, size: int) -> bytes:
        """So many bytes, less only at the end. Raises ChartInvalid."""
        while len(self._ready) < size and not self._inflate.eof:
            self._more()
        out = bytes(self._ready[:size])
        del self._ready[:size]
        return out

    def _more(self) -> None:
        packed = self._inflate.unconsumed_tail or self._packed.read(CHUNK)
        if not packed:
            raise ChartInvalid("the archive is cut off")
        try:
            plain = self._inflate.decompress(packed, CHUNK)
        except zlib.error as error:
            raise ChartInvalid(f"not a gzip archive: {error}") from None
        self._total += len(plain)
        if self._total > MAX_UNPACKED:
            raise ChartInvalid(f"unpacks to more than {MAX_UNPACKED} bytes")
        self._ready += plain


def _safe(name: str) -> str:
    if len(name) > MAX_NAME:
        raise ChartInvalid(f"the name of a file has {len(name)} characters; at most {MAX_NAME} are read")
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
        layers = helm_yaml.load_layers(_text(name, files[name]))
    except helm_yaml.DocumentError as error:
        raise ChartInvalid(f"{name}: {error}") from None
    if not all(isinstance(layer, dict | None) for layer in layers):
        raise ChartInvalid(f"{name} is not a mapping")
    return values.merge(*(layer or {} for layer in layers))


def _schema(files: Mapping[str, bytes]) -> dict[str, Any] | None:
    if "values.schema.json" not in files:
        return None
    try:
        schema = json.loads(files["values.schema.json"])
    except (ValueError, RecursionError) as error:
        raise ChartInvalid(f"values.schema.json: {error}") from None
    if helm_yaml.count(schema, helm_yaml.MAX_NODES) > helm_yaml.MAX_NODES:
        raise ChartInvalid(f"values.schema.json has more than {helm_yaml.MAX_NODES} keys and values")
    return schema if isinstance(schema, dict) else {}


def _stays_inside(files: Mapping[str, bytes]) -> None:
    """No schema of the chart or its dependencies makes helm open anything else."""
    for name, data in files.items():
        if posixpath.basename(name) != "values.schema.json":
            continue
        try:
            leading = values_schema.outward(json.loads(data))
        except (ValueError, RecursionError):
            continue  # helm can't read it either
        if leading:
            raise ChartInvalid(
                f"{name} refers to {leading[0]}, which helm would fetch; have the chart bring along what it refers to"
            )


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
