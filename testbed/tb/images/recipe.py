"""Builds an image from its specification: a layer of Debian packages, one of wheels, one of files.

The first two take seconds to minutes to make and seldom change, so they are cached under the hash of all that goes
into them.
"""

import hashlib
import json
import sys
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

from tb.images import archive, bytecode, sources
from tb.images.archive import Entry
from tb.images.spec import Spec
from tb.progress import Step

# Raised when the same specification would give other layers than before.
CACHE_VERSION = 1


def build(spec: Spec, out: Path, cache: Path) -> str:
    """Write the image archive to `out`; returns the digest of the file."""
    layers = []
    if spec.packages:
        key = {"suite": spec.suite, "packages": spec.packages}
        layers.append(_cached(spec, cache, "Debian packages", key, partial(sources.debian, spec.suite, spec.packages)))
    for part in spec.requirements:
        key = {"requirements": part.file.read_text(), "target": part.target}
        layers.append(_cached(spec, cache, "Python wheels", key, partial(sources.wheels, part)))
    own = [Entry(folder.path, folder.mode).owned(folder.owner.user, folder.owner.group) for folder in spec.folders]
    own += [entry for part in spec.files for entry in sources.files(part)]
    if own:
        layers.append(_layer(spec, own))
    settings = archive.Settings(spec.entrypoint, spec.cmd, spec.env, spec.user, spec.workdir)
    archive.write(out, spec.name, layers, settings)
    return f"sha256:{hashlib.sha256(out.read_bytes()).hexdigest()}"


def _layer(spec: Spec, entries: list[Entry]) -> bytes:
    kept = [entry for entry in entries if not _pruned(entry.path, spec.prune)]
    return archive.layer([*kept, *bytecode.compiled(kept, spec.compile)])


def _pruned(path: str, patterns: tuple[str, ...]) -> bool:
    """A pattern names absolute paths; `*` matches across slashes, and what is below a match goes with it."""
    return any(fnmatchcase(f"/{path}", pattern) or fnmatchcase(f"/{path}", f"{pattern}/*") for pattern in patterns)


def _cached(spec: Spec, cache: Path, title: str, inputs: dict[str, Any], make: Callable[[], list[Entry]]) -> bytes:
    whole = {**inputs, "prune": spec.prune, "compile": spec.compile, "python": sys.version, "version": CACHE_VERSION}
    path = cache / f"{hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()}.tar"
    if not path.exists():
        with Step(f"collecting {title}"):
            content = _layer(spec, make())
        cache.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(".new")
        fresh.write_bytes(content)
        fresh.replace(path)
    return path.read_bytes()
