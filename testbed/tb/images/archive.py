"""An image as one tar file, of the layout that `docker save` writes: the same bytes for the same content.

The layout: each layer's tar under its digest, a configuration with the layers' digests in order, and `manifest.json`.
Every time stamp is zero, entries are sorted, and owners are numbers only.
"""

import hashlib
import io
import json
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self


@dataclass(frozen=True)
class Entry:
    """One path of a layer, relative to the root: a file has content, a symbolic link a target, a folder neither."""

    path: str
    mode: int
    content: bytes | None = None
    target: str | None = None
    owner: int = 0
    group: int = 0

    @classmethod
    def file(cls, path: str, content: bytes, mode: int = 0o644) -> Self:
        return cls(path, mode, content=content)

    @classmethod
    def folder(cls, path: str, mode: int = 0o755) -> Self:
        return cls(path, mode)

    @classmethod
    def link(cls, path: str, target: str) -> Self:
        return cls(path, 0o777, target=target)

    def owned(self, owner: int, group: int) -> Self:
        return replace(self, owner=owner, group=group)


@dataclass(frozen=True)
class Settings:
    """How a container of the image starts."""

    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    user: str = ""
    workdir: str = "/"


def layer(entries: Iterable[Entry]) -> bytes:
    """A layer's tar; of two entries with one path the later wins."""
    chosen = {entry.path.strip("/"): entry for entry in entries}
    for path in list(chosen):
        for parent in list(Path(path).parents)[:-1]:
            chosen.setdefault(str(parent), Entry.folder(str(parent)))
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path, entry in sorted(chosen.items()):
            tar.addfile(_header(path, entry), io.BytesIO(entry.content or b""))
    return out.getvalue()


def write(path: Path, name: str, layers: list[bytes], settings: Settings) -> None:
    """Write the image archive; `name` is the reference that it is loaded under."""
    digests = [hashlib.sha256(content).hexdigest() for content in layers]
    configuration = json.dumps(_configuration(digests, settings), sort_keys=True).encode()
    files = {f"{digest}.tar": content for digest, content in zip(digests, layers, strict=True)}
    manifest = [
        {
            "Config": f"{hashlib.sha256(configuration).hexdigest()}.json",
            "RepoTags": [name],
            "Layers": [f"{digest}.tar" for digest in digests],
        }
    ]
    files[manifest[0]["Config"]] = configuration  # type: ignore[index]
    files["manifest.json"] = json.dumps(manifest).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for file, content in files.items():
            tar.addfile(_header(file, Entry.file(file, content)), io.BytesIO(content))


def _configuration(digests: list[str], settings: Settings) -> dict[str, object]:
    return {
        "architecture": "amd64",
        "os": "linux",
        "created": "1970-01-01T00:00:00Z",
        "config": {
            "Entrypoint": list(settings.entrypoint),
            "Cmd": list(settings.cmd),
            "Env": [f"{key}={value}" for key, value in settings.env],
            "User": settings.user,
            "WorkingDir": settings.workdir,
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in digests]},
        "history": [{"created": "1970-01-01T00:00:00Z"} for _ in digests],
    }


def _header(path: str, entry: Entry) -> tarfile.TarInfo:
    header = tarfile.TarInfo(path)
    header.mode = entry.mode
    header.uid, header.gid = entry.owner, entry.group
    if entry.target is not None:
        header.type, header.linkname = tarfile.SYMTYPE, entry.target
    elif entry.content is None:
        header.type = tarfile.DIRTYPE
    else:
        header.size = len(entry.content)
    return header
