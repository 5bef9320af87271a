"""Where the content of layers comes from: Debian packages, Python wheels, and files of the machine."""

import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from tb import host
from tb.command import run
from tb.errors import TestbedError
from tb.images.archive import Entry
from tb.images.spec import Files, Requirements

CERTIFICATES = "usr/share/ca-certificates/"
CERTIFICATE_BUNDLE = "etc/ssl/certs/ca-certificates.crt"
# Console scripts name the interpreter of the machine that installed them, so they would not run.
WHEEL_SCRIPTS = "bin"


def debian(suite: str, packages: tuple[str, ...]) -> list[Entry]:
    """The files of Debian packages and of all they depend on; no script of theirs is run."""
    host.demand(host.IMAGE_NEED)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "root.tar"
        run(["mmdebstrap", "--quiet", "--variant=extract", f"--include={','.join(packages)}", suite, str(path)])
        entries = list(_unpacked(path))
    # What the script of ca-certificates would have made.
    certificates = sorted(
        (entry for entry in entries if entry.path.startswith(CERTIFICATES) and entry.content), key=lambda e: e.path
    )
    if certificates:
        entries.append(Entry.file(CERTIFICATE_BUNDLE, b"".join(entry.content or b"" for entry in certificates)))
    return entries


def wheels(requirements: Requirements) -> list[Entry]:
    """The unpacked wheels of a requirements file in which every line is pinned by hashes."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
        install = [
            "install",
            "--require-hashes",
            "--only-binary=:all:",
            "--no-deps",
            "--no-compile",
            "--no-warn-script-location",
        ]
        done = subprocess.run(
            [*pip, *install, "--target", folder, "--requirement", str(requirements.file)],
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            raise TestbedError(f"pip could not install {requirements.file}: {done.stderr.strip()}")
        return list(_tree(Path(folder), requirements.target, (WHEEL_SCRIPTS,)))


def files(part: Files) -> list[Entry]:
    """What one [[files]] table names."""
    if part.text is not None:
        found = [Entry.file(part.target, part.text.encode(), part.mode or 0o644)]
    elif part.source is None or not part.source.exists():
        raise TestbedError(f"the source {part.source} of {part.target} in the image does not exist")
    elif part.source.is_dir():
        found = list(_tree(part.source, part.target, part.exclude, part.mode))
    else:
        found = [_copied(part.source, part.target, part.mode)]
    return [entry.owned(part.owner.user, part.owner.group) for entry in found]


def _tree(folder: Path, target: str, exclude: tuple[str, ...], mode: int | None = None) -> Iterator[Entry]:
    """A folder with all below it; `exclude` holds patterns of names or of paths relative to the folder."""
    yield Entry.folder(target)
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        tops = [relative, *relative.parents][:-1]
        if "__pycache__" in relative.parts or any(
            fnmatchcase(str(top), pattern) or fnmatchcase(top.name, pattern) for top in tops for pattern in exclude
        ):
            continue
        inside = f"{target}/{relative}"
        if path.is_symlink():
            yield Entry.link(inside, os.readlink(path))
        elif path.is_dir():
            yield Entry.folder(inside)
        else:
            yield _copied(path, inside, mode)


def _copied(path: Path, target: str, mode: int | None) -> Entry:
    """A file; of its rights only whether it can be executed counts, so that the umask of a checkout does not matter."""
    chosen = mode if mode is not None else 0o755 if path.stat().st_mode & 0o100 else 0o644
    return Entry.file(target, path.read_bytes(), chosen)


def _unpacked(path: Path) -> Iterator[Entry]:
    """The entries of a root file system's tar; devices are left out, as a container's runtime makes its own."""
    with tarfile.open(path) as tar:
        for member in tar:
            name = member.name.removeprefix("./").strip("/")
            if name in ("", ".") or name.startswith("dev/"):
                continue
            if member.isdir():
                yield Entry.folder(name, member.mode).owned(member.uid, member.gid)
            elif member.issym():
                yield Entry.link(name, member.linkname).owned(member.uid, member.gid)
            elif member.isfile() or member.islnk():
                content = tar.extractfile(member)
                yield Entry.file(name, content.read() if content else b"", member.mode).owned(member.uid, member.gid)
