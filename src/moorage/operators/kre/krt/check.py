"""Whether a `.krt` archive, a folder or a krt.yml can be a version: all that is wrong with it, at once.

I/O: reads what it is given, writes nothing. The text is judged by `reading`, the files around it here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec

from . import archive, files, folder, model, problems, reading

__all__ = ["Report", "check"]

_PACK = "tar -czf NAME.krt -C FOLDER ."


class Report(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What was found."""

    fit: bool  # to be a version
    problems: tuple[problems.Problem, ...] = ()
    krt: model.Krt | None = None  # where its text is without errors
    files: int = 0  # how many there are; none were looked at where the text alone was given
    bytes: int = 0  # of all files, unpacked
    digest: str = ""  # of an archive


def check(path: Path) -> Report:
    """Check an archive, a folder, or a krt.yml alone. Raises OSError for what can't be opened."""
    if path.is_dir():
        return _of_folder(path)
    if path.suffix in (".yml", ".yaml"):
        with path.open("rb") as file:
            read = reading.read(file.read(reading.MAX_TEXT + 1))
        return Report(read.krt is not None, read.problems, read.krt)
    return _of_archive(path)


def _of_folder(path: Path) -> Report:
    try:
        return judged(folder.read(path))
    except files.KrtError as error:
        return _refused(error)


def _of_archive(path: Path) -> Report:
    with path.open("rb") as file:
        try:
            found = archive.read(file, path.stat().st_size)
        except files.KrtError as error:
            return _refused(error)
        return msgspec.structs.replace(judged(found), digest=archive.digest(file))


def _refused(error: files.KrtError) -> Report:
    return Report(False, (problems.Problem("error", error.message, error.fix),))


def judged(found: files.Files) -> Report:
    """What there is to say of these files. Pure."""
    told = [*found.problems, *_around(found)]
    krt = None
    if name := found.manifest:
        read = reading.read(found.texts[name], name, found)
        krt = read.krt
        told += read.problems
    fit = krt is not None and not any(each.severity == "error" for each in told)
    return Report(fit, tuple(told), krt, len(found.sizes), sum(found.sizes.values()))


def _around(found: files.Files) -> Iterator[problems.Problem]:
    """What is wrong with the files around the text."""
    if not found.manifest:
        yield _no_manifest(found)
    if all(name in found.sizes for name in files.MANIFESTS):
        told = f"there are both {' and '.join(files.MANIFESTS)}"
        yield problems.Problem("error", told, "remove one of them: which one counts depends on who reads them")
    for name, text in found.texts.items():
        if files.is_dashboard(name):
            yield from _dashboard(name, text)


def _no_manifest(found: files.Files) -> problems.Problem:
    deeper = [name for name in found.sizes if name.rpartition("/")[2] in files.MANIFESTS]
    if not deeper:
        return problems.Problem(
            "error", "there is no krt.yml in it", "add one, beside the proto; docs/krt.md has an example"
        )
    top = min(deeper, key=len).rpartition("/")[0]
    told = f"krt.yml is not at the top but in {top}/"
    return problems.Problem("error", told, f"pack it from inside that folder: {_PACK.replace('FOLDER', top)}")


def _dashboard(name: str, text: bytes) -> Iterator[problems.Problem]:
    fix = "correct it, or export the dashboard anew"
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        yield problems.Problem("error", f"it is no JSON: {error.msg}", fix, name, error.lineno, error.colno)
    except (ValueError, RecursionError) as error:
        yield problems.Problem("error", f"it is no JSON: {error}", fix, name)
