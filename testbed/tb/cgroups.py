"""Each node's own cgroup, under which its kubelet keeps every pod.

It is made beforehand in each hierarchy, so that two kubelets on one machine never see each other's pods.
"""

import contextlib
import errno
import time
from collections.abc import Iterator
from pathlib import Path

from tb.nodes import PREFIX, Node
from tb.settings import Settings

ROOT = Path("/sys/fs/cgroup")
CONTROLLERS = ("cpuset", "cpu", "io", "memory", "hugetlb", "pids")
RELEASE = 10.0  # seconds


def up(node: Node) -> None:
    """Make the cgroup in every hierarchy of version 1, or in the single one of version 2."""
    if (ROOT / "cgroup.controllers").exists():
        _delegate(ROOT)
        (ROOT / node.cgroup).mkdir(exist_ok=True)
        _delegate(ROOT / node.cgroup)
        return
    for hierarchy in _hierarchies():
        folder = hierarchy / node.cgroup
        folder.mkdir(exist_ok=True)
        # A new cpuset is empty, and no process can enter it before it has processors and memory nodes.
        for name in ("cpuset.cpus", "cpuset.mems"):
            if (folder / name).exists():
                (folder / name).write_text((hierarchy / name).read_text())


def members(settings: Settings) -> set[int]:
    """The pids of all processes in the cgroups of all nodes that there ever were, and below them."""
    return _within(_folders(settings))


def members_of(node: Node) -> set[int]:
    """The pids of all processes of the node's pods."""
    return _within(_named(node.cgroup))


def remove(settings: Settings) -> None:
    """Remove the nodes' cgroups in every hierarchy; their processes must have ended."""
    for folder in _folders(settings):
        # Deepest first: a cgroup with children cannot be removed.
        for child in sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True):
            _remove(child)
        _remove(folder)


def _remove(folder: Path) -> None:
    """The kernel holds a cgroup for a moment after its last process has ended. Raises OSError if it never lets go."""
    end = time.monotonic() + RELEASE
    while True:
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > end:
                raise
            time.sleep(0.05)  # the pace of asking
        else:
            return


def _hierarchies() -> Iterator[Path]:
    for path in sorted(ROOT.iterdir()):
        if path.is_dir() and not path.is_symlink() and (path / "cgroup.procs").exists():
            yield path


def _folders(settings: Settings) -> list[Path]:
    return [*_named(settings.name), *_named(f"{PREFIX}*-{settings.name}")]


def _named(pattern: str) -> list[Path]:
    """The cgroups of that name in every hierarchy."""
    return [folder for parent in (ROOT, *_hierarchies()) for folder in parent.glob(pattern) if folder.is_dir()]


def _within(folders: list[Path]) -> set[int]:
    found: set[int] = set()
    for path in (path for folder in folders for path in folder.rglob("cgroup.procs")):
        # A container may end, and its cgroup with it, between the two looks.
        with contextlib.suppress(OSError):
            found.update(map(int, path.read_text().split()))
    return found


def _delegate(folder: Path) -> None:
    offered = (folder / "cgroup.controllers").read_text().split()
    wanted = [f"+{name}" for name in CONTROLLERS if name in offered]
    (folder / "cgroup.subtree_control").write_text(" ".join(wanted))
