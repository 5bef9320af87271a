"""Finding charts: a constraint is resolved to one version and digest, and that digest is fetched from then on. I/O.

Sources are folders and OCI registries; the latter are read by the helm binary. Every archive ends up in the cache and
is named by its digest, so a version that was resolved once stays the same although the source changes: if the source
serves something else under the pinned version, that is a DigestMismatch, never a silent update.

Each error says what happened, why, and what to do; `transient` ones may heal by themselves.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import shutil
import tempfile
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path

import msgspec
import semantic_version

from moorage.helm.parsing import aside, helm_yaml, jobs
from moorage.helm.runs import binary, failures

from . import chart_archive, chart_folder, disk_cache
from .chart_archive import ChartError, ChartInvalid

__all__ = [
    "Chart",
    "ChartError",
    "ChartInvalid",
    "ChartNotFound",
    "ChartSource",
    "Charts",
    "DigestMismatch",
    "FolderSource",
    "NoVersionMatches",
    "OciSource",
    "SourceUnreachable",
]

_NAME = re.compile(r"[a-z0-9]([-a-z0-9._]{0,250}[a-z0-9])?")
_OPERATOR = re.compile(r"([<>=~^]) ")
_LISTED = 10  # versions named in a message


class ChartNotFound(ChartError):  # noqa: N818 - these name what happened
    """The source answers, and has no chart of that name."""


class NoVersionMatches(ChartError):  # noqa: N818
    """The source has the chart, in other versions. `available` is newest first; empty where the source doesn't list."""

    def __init__(self, message: str, available: tuple[str, ...] = ()) -> None:
        self.available = available
        super().__init__(message)


class SourceUnreachable(ChartError):  # noqa: N818
    """The source gives no answer, or refuses to."""

    transient = True


class DigestMismatch(ChartError):  # noqa: N818
    """The source now serves other content under a version that was resolved before."""

    def __init__(self, message: str, wanted: str, found: str) -> None:
        self.wanted, self.found = wanted, found
        super().__init__(message)


class FolderSource(msgspec.Struct, frozen=True, tag="folder"):
    """A folder with NAME-VERSION.tgz files and chart folders; or one .tgz, or one chart folder, itself."""

    path: str

    def __str__(self) -> str:
        return self.path


class OciSource(msgspec.Struct, frozen=True, tag="oci"):
    """A registry path below which charts lie by name, such as oci://registry.example/charts."""

    url: str
    plain_http: bool = False
    auth_file: str = ""  # a docker config JSON, readable by us alone
    ca_file: str = ""

    def __str__(self) -> str:
        return self.url


ChartSource = FolderSource | OciSource


class Chart(msgspec.Struct, frozen=True):
    """One chart, resolved and fetched. Before a later use have `archive` verified anew by `fetch`."""

    name: str
    version: str
    digest: str  # "sha256:..."; of the .tgz as published, or of the tar of a folder
    archive: Path
    contents: chart_archive.Contents  # without templates


class _Found(msgspec.Struct, frozen=True):
    version: semantic_version.Version
    load: Callable[[], tuple[bytes, str]]


class Charts:
    """Resolves and fetches charts of any source into one cache."""

    def __init__(
        self, helm: binary.Helm, work: aside.Aside, root: Path, *, timeout: float = 60, room: int = disk_cache.ROOM
    ) -> None:
        """`root` is a folder of our own with `room` bytes; `timeout` in seconds is for one pull from a registry."""
        self._helm, self._aside, self._cache, self._timeout = helm, work, disk_cache.Cache(root, room), timeout

    async def resolve(
        self, source: ChartSource, name: str, constraint: str, needed: Collection[str] = frozenset()
    ) -> Chart:
        """The newest chart that the constraint allows: a version, a range such as ^1.2, or "" for any stable one.

        `needed` are digests of charts that must stay in the cache. Raises ChartNotFound, NoVersionMatches,
        SourceUnreachable or ChartInvalid.
        """
        _check(name, constraint)
        if isinstance(source, FolderSource):
            archive, digest = await asyncio.to_thread(_from_folder, source, name, constraint)
        else:
            archive, digest = await self._pull(source, name, constraint)
        try:
            path = await asyncio.to_thread(self._cache.put, digest, archive, needed)
        except OSError as error:
            raise SourceUnreachable(f"the chart cache can't be written: {error.strerror}") from None
        contents = await self._read(source, path)
        if contents.name != name:
            self._cache.drop(digest)
            raise ChartInvalid(f"{source} serves chart {contents.name} under the name {name}; publish it under its own")
        return Chart(name, contents.version, digest, path, contents)

    async def fetch(
        self, source: ChartSource, name: str, version: str, digest: str, needed: Collection[str] = frozenset()
    ) -> Chart:
        """The chart that was resolved before, from the cache if it is sound there. Raises DigestMismatch too."""
        kept = await asyncio.to_thread(self._cache.find, digest)
        if kept is not None:
            inside = await self._read(source, kept)
            if (inside.name, inside.version) != (name, version):  # the digest is from a claim, where tenants write
                raise ChartInvalid(f"{digest} is chart {inside.name} {inside.version}, and not {name} {version}")
            return Chart(name, version, digest, kept, inside)
        found = await self.resolve(source, name, version, needed)
        if found.digest != digest:
            raise DigestMismatch(
                f"{source} serves {name} {version} with digest {found.digest}, but {digest} was resolved earlier; "
                "publish the changed chart under a new version",
                digest,
                found.digest,
            )
        return found

    async def _read(self, source: ChartSource, path: Path) -> chart_archive.Contents:
        try:
            return await self._aside.run(("chart", str(source)), jobs.contents, str(path))
        except helm_yaml.TooLarge as error:
            raise ChartInvalid(f"reading the archive {error}") from None
        except aside.AsideError as error:
            raise SourceUnreachable(f"the archive could not be read: {error}") from None

    async def _pull(self, source: OciSource, name: str, constraint: str) -> tuple[bytes, str]:
        dest = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="moorage-pull-"))
        try:
            pulled = await self._helm.pull(
                f"{source.url.rstrip('/')}/{name}",
                constraint,
                dest,
                registry_config=Path(source.auth_file) if source.auth_file else None,
                ca_file=source.ca_file,
                plain_http=source.plain_http,
                timeout=self._timeout,
            )
            archive = await asyncio.to_thread(pulled.path.read_bytes)
        except binary.HelmFailed as error:
            raise _pull_error(source, name, constraint, error) from None
        finally:
            await asyncio.to_thread(shutil.rmtree, dest, ignore_errors=True)
        return archive, f"sha256:{hashlib.sha256(archive).hexdigest()}"


def matches(constraint: str) -> Callable[[semantic_version.Version], bool]:
    """Whether a version is allowed. Pre-releases only where the constraint names one. Raises ValueError."""
    text = constraint.strip()
    if not text:
        return lambda version: not version.prerelease
    try:
        exact = semantic_version.Version(text.removeprefix("v"))
    except ValueError:
        spec = semantic_version.NpmSpec(_OPERATOR.sub(r"\1", " ".join(text.replace(",", " ").split())))
        return lambda version: bool(spec.match(version))
    return lambda version: bool(version == exact)


def _check(name: str, constraint: str) -> None:
    if not _NAME.fullmatch(name) or ".." in name:
        raise ChartNotFound(f"{name!r} can't be a chart's name: lower-case letters, digits, '-', '.' and '_' only")
    try:
        matches(constraint)
    except ValueError:
        raise NoVersionMatches(
            f"{constraint!r} is neither a version nor a range; write 1.2.3, ^1.2, or nothing for the newest"
        ) from None


def _from_folder(source: FolderSource, name: str, constraint: str) -> tuple[bytes, str]:
    root = Path(source.path)
    try:
        found = sorted(_versions(root, name), key=lambda f: f.version, reverse=True)
        if not found:
            holds = f"it has {', '.join(others)}" if (others := _names(root)) else "it is empty"
            raise ChartNotFound(
                f"{root} holds no chart {name}, {holds}; put {name}-VERSION.tgz there, or correct the name"
            )
        allowed = matches(constraint)
        for candidate in found:
            if allowed(candidate.version):
                return candidate.load()
    except OSError as error:
        raise SourceUnreachable(f"{root} can't be read: {error.strerror}; is the volume mounted?") from None
    available = tuple(str(f.version) for f in found)
    shown = ", ".join(available[:_LISTED]) + (", ..." if len(available) > _LISTED else "")
    wish = f"no version of {name} matches {constraint!r}" if constraint else f"{name} has no stable version"
    raise NoVersionMatches(f"{wish}; {root} has {shown}", available)


def _versions(root: Path, name: str) -> list[_Found]:
    """All versions of a chart in a folder. Names starting with a dot are the kubelet's own, in a mounted ConfigMap."""
    if root.is_file() or (root / "Chart.yaml").is_file():
        places = [root]
    else:
        places = sorted(p for p in root.iterdir() if not p.name.startswith("."))
    found = []
    for place in places:
        if place.is_dir() and (place / "Chart.yaml").is_file():
            if place.resolve().name == name or place == root:
                called, version = chart_archive.described((place / "Chart.yaml").read_bytes())
                found += [_Found(_version(version), partial(chart_folder.pack, place))] if called == name else []
        elif place.suffix == ".tgz" and (sound := _named(place, name, alone=place == root)):
            found.append(_Found(sound, partial(_read, place)))
    return found


def _names(root: Path) -> list[str]:
    """Some of what lies in a folder of charts, as it is called there."""
    if root.is_file() or (root / "Chart.yaml").is_file():
        return [root.name]
    found = sorted(p.name for p in root.iterdir() if p.suffix == ".tgz" or (p / "Chart.yaml").is_file())
    return [*found[:_LISTED], *(["..."] if len(found) > _LISTED else [])]


def _named(place: Path, name: str, *, alone: bool) -> semantic_version.Version | None:
    """The version in an archive's file name; in the archive itself when that was named by the source."""
    if alone:
        called, version = chart_archive.peek(str(place))
        return _version(version) if called == name else None
    prefix, rest = f"{name}-", place.name.removesuffix(".tgz")
    try:
        return _version(rest.removeprefix(prefix)) if rest.startswith(prefix) else None
    except ChartInvalid:
        return None  # another chart, whose name begins alike


def _read(place: Path) -> tuple[bytes, str]:
    if place.stat().st_size > chart_archive.MAX_ARCHIVE:
        raise ChartInvalid(f"{place} is larger than {chart_archive.MAX_ARCHIVE} bytes")
    archive = place.read_bytes()
    return archive, f"sha256:{hashlib.sha256(archive).hexdigest()}"


def _version(text: str) -> semantic_version.Version:
    try:
        return semantic_version.Version(text.removeprefix("v"))
    except ValueError:
        raise ChartInvalid(f"{text!r} is no semantic version such as 1.2.3") from None


def _pull_error(source: OciSource, name: str, constraint: str, error: binary.HelmFailed) -> ChartError:
    kind = failures.FailureKind
    wish = f"{name} {constraint}".strip()
    if error.kind is kind.NOT_FOUND and "version matching" in error.message:
        return NoVersionMatches(f"{source} has no {wish}: {error.message}; publish it or change the version")
    if error.kind is kind.NOT_FOUND:
        return ChartNotFound(f"{source} has no chart {wish}: {error.message}")
    if error.kind is kind.CHART_INVALID:
        return ChartInvalid(f"{source} serves {wish}, which is no chart: {error.message}")
    hint = _HINTS.get(error.kind, "is the registry up?")
    return SourceUnreachable(f"{wish} can't be pulled from {source}: {error.message}; {hint}")


_HINTS = {
    failures.FailureKind.FORBIDDEN: "check the credentials",
    failures.FailureKind.UNAUTHORIZED: "check the credentials",
    failures.FailureKind.TLS: "give the authority of its certificate as ca.crt in the source's Secret",
    failures.FailureKind.NO_SPACE: "moorage's scratch volume is full",
    failures.FailureKind.BINARY_MISSING: "moorage's own helm is not where `moorage run --helm` says",
}
