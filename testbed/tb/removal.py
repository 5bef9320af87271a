"""Takes a testbed away: processes, containers, mounts, network, cgroups and data, also after a crash.

Only what provably belongs to the testbed is touched: recorded or marked processes, those in its cgroup, mounts and
files below its state folder, and the namespace and link that carry its index, which one state folder owns at a time.
"""

import shutil
from pathlib import Path

from tb import cgroups, kernel, network, process
from tb.command import run
from tb.errors import TestbedError
from tb.settings import Settings

# Kept by `down`: they tell what happened, or took long to make.
KEPT = ("bin", "cache", "logs", "audit.log", ".gitignore", ".lock")
CNI_RESULTS = Path("/var/lib/cni/results")
CONTAINER_LOG_LINKS = Path("/var/log/containers")


def claim(settings: Settings) -> None:
    """Make this state folder the owner of its index; clean up after an owner of which nothing lives.

    Raises TestbedError when a live testbed in another folder has the index.
    """
    owner = _owner(settings)
    if owner == settings.state:
        return
    if owner is not None:
        if process.marked(owner):
            raise TestbedError(
                f"index {settings.index} is in use by the testbed in {owner}; "
                "choose another with --index, or take that one down"
            )
        remove(Settings(owner, settings.index, settings.bin))
    for leftover in (*settings.logs.glob("*.log"), settings.audit_log):
        leftover.unlink(missing_ok=True)
    settings.owner_file.parent.mkdir(parents=True, exist_ok=True)
    kernel.prepare(settings)
    settings.owner_file.write_text(f"{settings.state}\n")


def remove(settings: Settings) -> None:
    """Remove all that an `up` on this state folder made, except binaries, caches and logs."""
    # No patience, as the data goes too. The kubelet and containerd first, or they would replace what ends after them.
    for part in ("kubelet", "containerd"):
        for name in process.names(settings):
            if name.partition("-")[0] == part:
                process.kill(settings, name)
    recorded = [process.recorded(settings, name) for name in process.names(settings)]
    process.end([*filter(None, recorded), *process.marked(settings.state)], patience=0)
    if _owner(settings) in (settings.state, None):
        process.end(process.living(cgroups.members(settings)), patience=0)
        cgroups.remove(settings)
        network.down(settings)
        settings.owner_file.unlink(missing_ok=True)
        kernel.restore(settings)
    _remove_container_traces(settings)
    _unmount(settings.state)
    if settings.state.exists():
        for path in settings.state.iterdir():
            if path.name not in KEPT:
                _delete(path)


def _owner(settings: Settings) -> Path | None:
    try:
        return Path(settings.owner_file.read_text().strip())
    except FileNotFoundError:
        return None


def _remove_container_traces(settings: Settings) -> None:
    """What containerd, the kubelet and CNI leave in places of the machine that they share with others."""
    for address in settings.data.glob("*/run/io.containerd.runtime.v2.task/*/*/address"):
        Path(address.read_text().removeprefix("unix://")).unlink(missing_ok=True)
    for result in CNI_RESULTS.glob(f"{settings.name}-*"):
        # The loopback's result is of another network name, but of the same pod.
        pod = result.name.split("-")[1]
        (CNI_RESULTS / f"cni-loopback-{pod}-lo").unlink(missing_ok=True)
        result.unlink()
    for link in CONTAINER_LOG_LINKS.glob("*.log"):
        if link.is_symlink() and link.readlink().is_relative_to(settings.data):
            link.unlink()


def _unmount(folder: Path) -> None:
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for point in reversed(points):
        # The kernel writes a space in a path as \040.
        path = point.replace("\\040", " ")
        if Path(path).is_relative_to(folder):
            run(["umount", "--lazy", path])


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
