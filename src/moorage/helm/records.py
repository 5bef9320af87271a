"""Helm's own memory of a release: Secrets of type helm.sh/release.v1, one per revision. Pure.

The Secret's labels say name, version and status, so a list by metadata is enough to follow releases; the body (gzip of
JSON, twice in base64) holds chart, values, manifest and hooks. Helm alone writes these Secrets, but for one case: a
helm that was killed leaves the status pending, after which it refuses every upgrade; `with_status` makes the body and
the label of such a record say failed, which helm takes as a base to go on from.

Labels given to helm are inherited: an upgrade merges them into those of the revision before, and a rollback copies
those of its target. So a label is no proof of who made a revision; its description is (`seen.RecordSeen.mine`).
"""

from __future__ import annotations

import base64
import binascii
import gzip
import zlib
from collections.abc import Mapping
from typing import Any

import msgspec

from moorage.api import meta

__all__ = ["PENDING", "Record", "RecordError", "Revision", "decode", "given", "with_status"]

SECRET_TYPE = "helm.sh/release.v1"  # noqa: S105 - the type of a Secret
SELECTOR = "owner=helm"
MAX_SECRET = 1 << 20  # bytes of data that the API server takes
MAX_DECODED = 64 << 20
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
        if labels.get("owner") != "helm" or not number.isdecimal() or not labels.get("name"):
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


def decode(data: str | bytes) -> Record:
    """The record in a Secret's data.release, as the API gives it (in base64). Raises RecordError."""
    body = _open(data)
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
    except (KeyError, TypeError, ValueError) as error:
        raise RecordError(f"a release record of an unknown form: {error!r}") from None


def given(data: str | bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """The values that the revision was made from: what the user gave, and the chart's own. Raises RecordError."""
    body = _open(data)
    return _mapping(body.get("config")), _mapping((body.get("chart") or {}).get("values"))


def _mapping(node: Any) -> dict[str, Any]:
    return node if isinstance(node, dict) else {}


def with_status(data: str | bytes, status: str, description: str) -> tuple[str, dict[str, str]]:
    """The record with another status: (data.release of the Secret, labels to set). Nothing else changes.

    Write both in one update that carries the Secret's uid and resourceVersion: who else touched it meanwhile may be the
    helm that was thought dead. Raises RecordError when the Secret would be too large.
    """
    body = _open(data)
    body["info"] = {**(body.get("info") or {}), "status": status, "description": description}
    return _pack(body), {"status": status}


def with_manifest(data: str | bytes, manifest: str) -> str:
    """The record with another manifest, as data.release of the Secret. Raises RecordError as `with_status` does."""
    return _pack({**_open(data), "manifest": manifest})


def _pack(body: dict[str, Any]) -> str:
    packed = base64.b64encode(gzip.compress(msgspec.json.encode(body), mtime=0))
    if len(packed) > MAX_SECRET:
        raise RecordError(f"the record would have {len(packed)} bytes; a Secret may have {MAX_SECRET}")
    return base64.b64encode(packed).decode()


def _open(data: str | bytes) -> dict[str, Any]:
    try:
        packed = base64.b64decode(base64.b64decode(data, validate=True))
        inflate = zlib.decompressobj(wbits=31)
        plain = inflate.decompress(packed, MAX_DECODED) if packed[:2] == b"\x1f\x8b" else packed
        if not inflate.eof and plain is not packed:
            raise RecordError(f"a release record of more than {MAX_DECODED} bytes, or a cut off one")
        body = msgspec.json.decode(plain)
    except (binascii.Error, zlib.error, msgspec.MsgspecError) as error:
        raise RecordError(f"not a release record: {error}") from None
    if not isinstance(body, dict):
        raise RecordError("not a release record: the body is no object")
    return body


def _hook(body: Mapping[str, Any]) -> Hook:
    return Hook(
        str(body.get("name") or ""),
        str(body.get("kind") or ""),
        str(body.get("manifest") or ""),
        tuple(str(e) for e in body.get("events") or ()),
        str((body.get("last_run") or {}).get("phase") or ""),
    )
