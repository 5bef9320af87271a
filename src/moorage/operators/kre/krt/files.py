"""Which files a version may bring along. Pure.

What is looked into (krt.yml, protos, dashboards) is kept, within a limit; of the rest only names and sizes are.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable

import msgspec

from . import problems

MAX_PACKED = 512 << 20  # bytes
MAX_UNPACKED = 2 << 30
MAX_FILE = 1 << 30
MAX_FILES = 10_000  # folders count too
MAX_NAME = 500  # characters
MAX_KEPT = 16 << 20  # bytes of all that is looked into
MAX_TOLD = 20  # problems with names

MANIFESTS = ("krt.yml", "krt.yaml")
DASHBOARDS = "metrics/dashboards/"
README = "docs/README.md"


class KrtError(Exception):
    """It can't be read on: what it is and what to do. Nothing of it is to be used."""

    def __init__(self, message: str, fix: str) -> None:
        self.message, self.fix = message, fix
        super().__init__(f"{message}; {fix}")


class Files(msgspec.Struct, frozen=True):
    """What was found."""

    sizes: dict[str, int]  # by name, relative to the top
    texts: dict[str, bytes]  # of those that are looked into
    problems: tuple[problems.Problem, ...]

    @property
    def manifest(self) -> str:
        """The name of the krt.yml; empty when there is none."""
        return next((name for name in MANIFESTS if name in self.sizes), "")


class Inventory:
    """Takes in files one after another, and sees to the limits."""

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}
        self.texts: dict[str, bytes] = {}
        self._folders: set[str] = set()
        self._told: list[problems.Problem] = []
        self._entries, self._unpacked, self._kept = 0, 0, 0

    def entry(self, name: str) -> str:
        """Count one entry, and its name in its plain form; empty for one that was told of, or is the top itself."""
        self._entries += 1
        if self._entries > MAX_FILES:
            fix = "leave out what the nodes don't need, such as environments and caches"
            raise KrtError(f"there are more than {MAX_FILES} files and folders in it", fix)
        return self._plain(name)

    def folder(self, name: str) -> None:
        """Note a folder."""
        if name in self.sizes:
            self.tell(f"{name} is a file and a folder", "remove one of them")
        self._folders.add(name)

    def file(self, name: str, size: int, read: Callable[[], bytes]) -> None:
        """Note a file; `read` is called when its content is wanted."""
        self._unpacked += size
        if size > MAX_FILE:
            fix = "have the node fetch it when it starts"
            raise KrtError(f"{name} has {size} bytes; a file may have {MAX_FILE}", fix)
        if self._unpacked > MAX_UNPACKED:
            raise KrtError(f"the files have more than {MAX_UNPACKED} bytes", "leave out what the nodes don't need")
        above = _above(name)
        if name in self.sizes:
            self.tell(f"{name} is in it twice", "remove one of them: which one counts depends on who unpacks it")
        elif name in self._folders or any(each in self.sizes for each in above):
            self.tell(f"{name} is a file and a folder", "remove one of them")
        self.sizes[name] = size
        self._folders.update(above)
        if _looked_into(name):
            self._kept += size
            if self._kept > MAX_KEPT:
                fix = "make protos and dashboards smaller"
                raise KrtError(f"its krt.yml, protos and dashboards have more than {MAX_KEPT} bytes", fix)
            self.texts[name] = read()

    def tell(self, message: str, fix: str) -> None:
        """Note what is wrong with an entry."""
        if len(self._told) < MAX_TOLD:
            self._told.append(problems.Problem("error", message, fix))

    def files(self) -> Files:
        """All that was taken in."""
        return Files(self.sizes, self.texts, tuple(self._told))

    def _plain(self, name: str) -> str:
        shown = name[:80].encode("utf-8", "backslashreplace").decode()
        if len(name) > MAX_NAME:
            self.tell(f"the name {shown!r}... has {len(name)} characters; at most {MAX_NAME} are taken", "shorten it")
            return ""
        if not name.isprintable():  # half surrogates, which bytes that are no UTF-8 become, are not either
            self.tell(f"the name {shown!r} has characters that can't be printed", "rename it")
            return ""
        if name.startswith("/") or ".." in name.split("/") or "\\" in name or ":" in name[:2]:
            self.tell(
                f"{shown!r} leads out of the archive", "pack it from inside its folder: tar -czf NAME.krt -C FOLDER ."
            )
            return ""
        clean = posixpath.normpath(name) if name else "."
        return "" if clean == "." else clean


def _above(name: str) -> list[str]:
    parts = name.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def _looked_into(name: str) -> bool:
    return name in MANIFESTS or name.endswith(".proto") or is_dashboard(name)


def is_dashboard(name: str) -> bool:
    """Whether a file is a dashboard of the version's metrics."""
    return name.startswith(DASHBOARDS) and name.endswith(".json")
