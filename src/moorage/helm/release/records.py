"""Helm's own memory of a release: Secrets of type helm.sh/release.v1, one per revision. Pure.

The Secret's labels say name, version and status, so a list by metadata is enough to follow releases; the body (gzip of
JSON, twice in base64) holds chart, values, manifest and hooks. Helm alone writes these Secrets, but for one case: a
helm that was killed leaves the status pending, after which it refuses every upgrade; `with_status` makes the body and
the label of such a record say failed, which helm takes as a base to go on from.

Labels given to helm are inherited: an upgrade merges them into those of the revision before, and a rollback copies
those of its target. So a label is no proof of who made a revision; its description is (`observation.RecordSeen.mine`).
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import gzip
import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from moorage.api import meta
from moorage.helm.parsing import helm_yaml

from . import manifest

__all__ = [
    "PENDING",
    "Record",
    "RecordError",
    "Revision",
    "decode",
    "given",
    "latest",
    "rewritten",
    "with_manifest",
    "with_status",
]

SECRET_TYPE = "helm.sh/release.v1"  # noqa: S105 - the type of a Secret
SELECTOR = "owner=helm"
MAX_SECRET = 1 << 20  # bytes of data that the API server takes
MAX_DECODED = 32 << 20
MAX_REVISION = 1 << 31
PENDING = frozenset({"pending-install", "pending-upgrade", "pending-rollback"})
SYSTEM_LABELS = frozenset({"name", "owner", "status", "version", "createdAt", "modifiedAt"})


class RecordError(ValueError):
    """A release record that can't be read, or not be written back."""


class Revision(msgspec.Struct, frozen=True, order=True):
    """One revision as its Secret's metadata tells it; sorts by name, then number."""

    namespace: str
    name: str
    number: int
    status: str
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = {}  # what was given to helm, or inherited

    @property
    def pending(self) -> bool:
        """An operation has begun that has not ended: one runs now, or died."""
        return self.status in PENDING

    @property
    def secret_name(self) -> str:
        return f"sh.helm.release.v1.{self.name}.v{self.number}"

    @classmethod
    def from_metadata(cls, metadata: meta.ObjectMeta) -> Revision:
        """Reads the metadata of a release Secret. Raises RecordError for any other."""
        labels = metadata.labels
        number = labels.get("version", "")
        if labels.get("owner") != "helm" or not _is_revision(number) or not labels.get("name"):
            raise RecordError(
                f"Secret {metadata.namespace}/{metadata.name} is no release record: its labels don't say so"
            )
        own = {k: v for k, v in labels.items() if k not in SYSTEM_LABELS}
        return cls(
            metadata.namespace,
            labels["name"],
            int(number),
            labels.get("status", "unknown"),
            metadata.uid,
            metadata.resource_version,
            own,
        )


def latest(found: Iterable[meta.ObjectMeta]) -> meta.ObjectMeta | None:
    """The Secret of the latest revision among those of one release; what is no record by its labels is left out."""
    told: list[tuple[int, meta.ObjectMeta]] = []
    for each in found:
        with contextlib.suppress(RecordError):
            told.append((Revision.from_metadata(each).number, each))
    return max(told, key=lambda pair: pair[0])[1] if told else None


def _is_revision(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 10 and 0 < int(text) < MAX_REVISION


class Hook(msgspec.Struct, frozen=True):
    """A hook as recorded, with how its last run went."""

    name: str = ""
    kind: str = ""
    manifest: str = ""
    events: tuple[str, ...] = ()
    phase: str = ""  # Unknown, Running, Succeeded, Failed; empty if never run


class Record(msgspec.Struct, frozen=True):
    """A decoded record, without the chart and the values that it was made from. A manifest may hold secrets."""

    name: str
    namespace: str
    revision: int
    status: str
    description: str
    chart_name: str
    chart_version: str
    app_version: str
    first_deployed: str  # RFC 3339
    last_deployed: str
    rollback_revision: int  # 0, or the revision that this one was made from by a rollback
    apply_method: str  # "ssa"; "csa" or empty for client-side apply, as Helm 3 does
    manifest: str
    hooks: tuple[Hook, ...]


def decode(data: str | bytes, most: int = MAX_DECODED) -> Record:
    """The record in a Secret's data.release, as the API gives it (in base64), when it unpacks to at most `most` bytes.

    Raises RecordError, or documents.TooLarge.
    """
    body = _body(_open(data, most))
    info, chart = body.get("info") or {}, body.get("chart") or {}
    metadata = chart.get("metadata") or {}
    try:
        return Record(
            name=str(body["name"]),
            namespace=str(body.get("namespace") or ""),
            revision=int(body["version"]),
            status=str(info.get("status") or "unknown"),
            description=str(info.get("description") or ""),
            chart_name=str(metadata.get("name") or ""),
            chart_version=str(metadata.get("version") or ""),
            app_version=str(metadata.get("appVersion") or ""),
            first_deployed=str(info.get("first_deployed") or ""),
            last_deployed=str(info.get("last_deployed") or ""),
            rollback_revision=int(info.get("rollback_revision") or 0),
            apply_method=str(body.get("apply_method") or ""),
            manifest=str(body.get("manifest") or ""),
            hooks=tuple(_hook(hook) for hook in body.get("hooks") or ()),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RecordError(f"a release record of an unknown form: {error!r}") from None


def given(data: str | bytes, most: int = MAX_DECODED) -> tuple[dict[str, Any], dict[str, Any]]:
    """The values that the revision was made from: what the user gave, and the chart's own. Raises RecordError."""
    parts = _open(data, most)
    try:
        return _mapping(_decoded(parts.get("config"))), _mapping(_decoded(_chart(parts).get("values")))
    except (msgspec.MsgspecError, RecursionError) as error:
        raise RecordError(f"not a release record: {error}") from None


def _mapping(node: Any) -> dict[str, Any]:
    return node if isinstance(node, dict) else {}


def with_status(
    data: str | bytes, status: str, description: str, most: int = MAX_DECODED
) -> tuple[str, dict[str, str]]:
    """The record with another status: (data.release of the Secret, labels to set). Nothing else changes.

    Write both in one update that carries the Secret's uid and resourceVersion: who else touched it meanwhile may be the
    helm that was thought dead. Raises RecordError when the Secret would be too large.
    """
    body = _open(data, most)
    info = {**(_decoded(body.get("info")) or {}), "status": status, "description": description}
    body["info"] = msgspec.Raw(msgspec.json.encode(info))
    return _pack(body), {"status": status}


def with_manifest(data: str | bytes, text: str, most: int = MAX_DECODED) -> str:
    """The record with another manifest, as data.release of the Secret. Raises RecordError as `with_status` does."""
    return _pack({**_open(data, most), "manifest": msgspec.Raw(msgspec.json.encode(text))})


def rewritten(
    data: str | bytes,
    change: Callable[[dict[str, Any]], dict[str, Any] | None],
    most: int = MAX_DECODED,
    budget: helm_yaml.Budget | None = None,
) -> str | None:
    """data.release with each object and hook as `change` gives it; None when nothing changes.

    Raises RecordError or ManifestError for a record that can't be read or is too large.
    """
    parts, budget = _open(data, most), budget or helm_yaml.Budget()
    text, hooks = str(_decoded(parts.get("manifest")) or ""), _decoded(parts.get("hooks")) or []
    after = manifest.rewrite(text, change, budget)
    left = []
    for hook in hooks:
        changed = manifest.rewrite(str(hook.get("manifest") or ""), change, budget)
        if changed.strip() or not str(hook.get("manifest") or "").strip():
            left.append({**hook, "manifest": changed})
    if (after, left) == (text, hooks):
        return None
    return _pack(
        {
            **parts,
            "manifest": msgspec.Raw(msgspec.json.encode(after)),
            "hooks": msgspec.Raw(msgspec.json.encode(left)),
        }
    )


def _pack(body: dict[str, msgspec.Raw]) -> str:
    packed = base64.b64encode(gzip.compress(msgspec.json.encode(body), mtime=0))
    if len(packed) > MAX_SECRET:
        raise RecordError(f"the record would have {len(packed)} bytes; a Secret may have {MAX_SECRET}")
    return base64.b64encode(packed).decode()


def _open(data: str | bytes, most: int) -> dict[str, msgspec.Raw]:
    """The parts of a record, none of them taken apart."""
    try:
        packed = base64.b64decode(base64.b64decode(data, validate=True))
        inflate = zlib.decompressobj(wbits=31)
        plain = inflate.decompress(packed, most) if packed[:2] == b"\x1f\x8b" else packed
        if len(plain) >= most:
            raise helm_yaml.TooLarge(f"a release record of more than {most} bytes")
        if not inflate.eof and plain is not packed:
            raise RecordError("a release record that is cut off")
        return msgspec.json.decode(plain, type=dict[str, msgspec.Raw])
    except (binascii.Error, zlib.error, msgspec.MsgspecError, RecursionError) as error:
        raise RecordError(f"not a release record: {error}") from None


def _body(parts: Mapping[str, msgspec.Raw]) -> dict[str, Any]:
    """What is read of a record: the chart is as large as all the rest, and only its metadata are wanted."""
    try:
        body = {name: _decoded(part) for name, part in parts.items() if name not in ("chart", "config")}
        return {**body, "chart": {"metadata": _decoded(_chart(parts).get("metadata"))}}
    except (msgspec.MsgspecError, RecursionError) as error:
        raise RecordError(f"not a release record: {error}") from None


def _chart(parts: Mapping[str, msgspec.Raw]) -> dict[str, msgspec.Raw]:
    return msgspec.json.decode(parts.get("chart", b"null"), type=dict[str, msgspec.Raw] | None) or {}


def _decoded(part: msgspec.Raw | None) -> Any:
    return None if part is None else msgspec.json.decode(part)


def _hook(body: Mapping[str, Any]) -> Hook:
    return Hook(
        str(body.get("name") or ""),
        str(body.get("kind") or ""),
        str(body.get("manifest") or ""),
        tuple(str(e) for e in body.get("events") or ()),
        str((body.get("last_run") or {}).get("phase") or ""),
    )
