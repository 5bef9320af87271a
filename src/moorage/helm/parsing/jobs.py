"""What is done with texts that others may make large: read, taken apart, compared. Pure.

Each job is a function of plain data under limits, so that it can run here or in a child process (see `aside`) alike. It
raises TooLarge beyond its limits, and the errors of ERRORS for what is wrong with the text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from moorage.api import meta
from moorage.helm.charts import chart_archive, values
from moorage.helm.release import drift, manifest, records
from moorage.helm.runs import failures, redaction, scaling

from . import helm_yaml

__all__ = ["ASIDE", "ERRORS", "HERE", "JOBS", "Kept", "Limits", "Rendered"]

Object = dict[str, Any]


class Limits(msgspec.Struct, frozen=True):
    """How large a thing may be: a text in bytes, unpacked; what is in it in keys and values."""

    text: int
    nodes: int  # of a text, together
    live: int  # of an object of the API server, each
    archive: int  # bytes of a chart


HERE = Limits(text=64 << 10, nodes=2_000, live=1_000, archive=0)
"""What may be handled on the event loop in one turn."""
ASIDE = Limits(text=records.MAX_DECODED, nodes=helm_yaml.MAX_NODES, live=2_000_000, archive=chart_archive.MAX_ARCHIVE)


class Rendered(msgspec.Struct, frozen=True):
    """A manifest, and the digest of what is in it."""

    manifest: manifest.Manifest
    digest: str


class Kept(msgspec.Struct, frozen=True):
    """A release record, its texts taken apart."""

    record: records.Record  # without the texts of manifest and hooks
    manifest: manifest.Manifest  # hooks of both
    said: str  # the record's description without what may be secret
    secrets: dict[str, str]  # see `redaction.Secrets`


def configuration(limits: Limits, text: str) -> bytes:
    """The canonical form of values that a user wrote. Raises ValuesError."""
    _check(len(text), limits)
    return values.canonical(values.decode(text, helm_yaml.Budget(limits.nodes)))


def rendered(limits: Limits, text: str) -> Rendered:
    """What helm rendered. Raises ManifestError."""
    _check(len(text), limits)
    parsed = manifest.parse(text, helm_yaml.Budget(limits.nodes))
    found = values.canonical([*parsed.objects, *(hook.object for hook in parsed.hooks)])
    return Rendered(parsed, f"sha256:{hashlib.sha256(found).hexdigest()}")


def record(limits: Limits, data: str) -> Kept:
    """The record in a Secret's data.release. Raises RecordError or ManifestError."""
    _check(len(data), limits)
    found = records.decode(data, limits.text)
    budget = helm_yaml.Budget(limits.nodes)
    parsed = manifest.parse(found.manifest, budget)
    hooks = [hook for each in found.hooks for hook in manifest.parse(each.manifest, budget).hooks]
    every = manifest.Manifest(parsed.objects, (*parsed.hooks, *hooks))
    secrets = _secrets(data, every, limits)
    said = found.description
    if found.status == "failed":
        names = {str((body.get("metadata") or {}).get("name")) for body in parsed.objects}
        said = redaction.redact(failures.words(said), secrets, {found.name, found.namespace, *names})
    return Kept(msgspec.structs.replace(found, manifest="", hooks=()), every, said, secrets)


def _secrets(data: str, every: manifest.Manifest, limits: Limits) -> dict[str, str]:
    """What may be secret in a record: of its values, of the chart's own, and what its Secrets hold."""
    config, own = records.given(data, limits.text)
    for each in (config, own):
        if helm_yaml.count(each, limits.nodes) > limits.nodes:
            raise helm_yaml.TooLarge(f"values of more than {limits.nodes} keys and values")
    held = redaction.of_objects((*every.objects, *(hook.object for hook in every.hooks)))
    return held | redaction.of_values(own, "chart") | redaction.of_values(config)


def with_status(limits: Limits, data: str, status: str, description: str) -> tuple[str, dict[str, str]]:
    """See `records.with_status`. Raises RecordError."""
    _check(len(data), limits)
    return records.with_status(data, status, description, limits.text)


def carrying(limits: Limits, data: str, scaled: tuple[scaling.Scaled, ...]) -> tuple[str, str] | None:
    """(manifest before, data) of a record that is to carry what was scaled; None if it does. Raises RecordError."""
    _check(len(data), limits)
    before = records.decode(data, limits.text).manifest
    if len(before) > limits.text:
        raise helm_yaml.TooLarge(f"a manifest of {len(before)} characters")
    after = scaling.carried(before, scaled)
    return None if after == before else (before, records.with_manifest(data, after, limits.text))


def with_manifest(limits: Limits, data: str, manifest_text: str) -> str:
    """See `records.with_manifest`. Raises RecordError."""
    _check(len(data) + len(manifest_text), limits)
    return records.with_manifest(data, manifest_text, limits.text)


def kinds_of(limits: Limits, data: str) -> tuple[tuple[str, str], ...]:
    """(apiVersion, kind) of all that a record names, hooks included. Raises RecordError or ManifestError."""
    _check(len(data), limits)
    found = records.decode(data, limits.text)
    budget = helm_yaml.Budget(limits.nodes)
    parsed = [manifest.parse(text, budget) for text in (found.manifest, *(hook.manifest for hook in found.hooks))]
    bodies = [body for each in parsed for body in (*each.objects, *(hook.object for hook in each.hooks))]
    return tuple(sorted({_kind(body) for body in bodies}))


def naming(
    limits: Limits,
    data: str,
    versions: tuple[tuple[str, str, str], ...],
    gone: tuple[meta.Identity, ...],
    namespace: str,
) -> str | None:
    """data of a record that names its objects by other versions; None if it is so. Raises RecordError or ManifestError.

    `versions`: of (apiVersion, kind) the version to name it by, empty where it is left out, as is what is `gone`.
    """
    _check(len(data), limits)
    to = {(api_version, kind): version for api_version, kind, version in versions}
    absent = {tuple(identity) for identity in gone}

    def change(body: Object) -> Object | None:
        version = to.get(_kind(body), "")
        if not version or manifest.ref(body, namespace, lambda *_: True).identity in absent:
            return None
        return body if version == body.get("apiVersion") else {**body, "apiVersion": version}

    return records.rewritten(data, change, limits.text, helm_yaml.Budget(limits.nodes))


def changed(limits: Limits, before: str, after: str, kind: str, name: str) -> tuple[str, ...]:
    """Where two records differ in the spec of an object that both have: paths, never values."""
    _check(len(before) + len(after), limits)
    budget = helm_yaml.Budget(limits.nodes)
    specs = []
    for data in (before, after):
        objects = manifest.parse(records.decode(data, limits.text).manifest, budget).objects
        found = [b for b in objects if (b.get("kind"), (b.get("metadata") or {}).get("name")) == (kind, name)]
        specs += [body.get("spec") for body in found[:1]]
    return tuple(sorted(set(_paths(specs[0], specs[1], "spec")))) if len(specs) == 2 else ()


def _kind(body: Object) -> tuple[str, str]:
    return str(body.get("apiVersion") or ""), str(body.get("kind") or "")


def _paths(before: Any, after: Any, path: str) -> Iterator[str]:
    """Where two values differ; lists are compared by place."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before.keys() | after.keys():
            yield from _paths(before.get(key), after.get(key), f"{path}.{key}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from _paths(one, other, f"{path}[{index}]")
    elif before != after:
        yield path


def contents(limits: Limits, path: str) -> chart_archive.Contents:
    """What must be known of a chart's archive. Raises ChartInvalid."""
    if limits.archive == 0:
        raise helm_yaml.TooLarge("charts are not read in place")
    return msgspec.structs.replace(chart_archive.read_file(path), files=())


def differing(limits: Limits, wanted: Object, live: Object | None, settled: tuple[str, ...]) -> tuple[str, ...]:
    """See `drift.differing`."""
    for each in (wanted, live):
        if helm_yaml.count(each, limits.live) > limits.live:
            raise helm_yaml.TooLarge(f"an object of more than {limits.live} keys and values")
    return drift.differing(wanted, live, settled=settled)


JOBS: dict[str, Callable[..., Any]] = {
    job.__name__: job
    for job in (
        *(configuration, rendered, record, with_status, carrying, with_manifest, contents, differing),
        *(kinds_of, naming, changed),
    )
}
ERRORS: dict[str, type[Exception]] = {
    error.__name__: error
    for error in (
        helm_yaml.TooLarge,
        values.ValuesError,
        manifest.ManifestError,
        records.RecordError,
        chart_archive.ChartInvalid,
    )
}


def _check(size: int, limits: Limits) -> None:
    if size > limits.text:
        raise helm_yaml.TooLarge(f"text of {size} bytes; at most {limits.text} are read")
