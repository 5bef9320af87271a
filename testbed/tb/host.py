"""What the machine must offer, and how to get what it lacks."""

import os
import platform
import shutil
import subprocess
from pathlib import Path

from tb.component import Level
from tb.errors import TestbedError
from tb.process import PATH

# A program or file that is needed: the Debian package that has it, and from which level on.
NEEDS = {
    "ip": ("iproute2", Level.API),
    "nsenter": ("util-linux", Level.API),
    "sysctl": ("procps", Level.API),
    "openssl": ("openssl", Level.API),
    "containerd": ("containerd", Level.NODE),
    "runc": ("runc", Level.NODE),
    "nft": ("nftables", Level.NODE),
    "iptables": ("iptables", Level.NODE),
    "conntrack": ("conntrack", Level.NODE),
    "mount": ("mount", Level.NODE),
    "/usr/lib/cni/bridge": ("containernetworking-plugins", Level.NODE),
}
REGISTRY_NEED = {"docker-registry": ("docker-registry", Level.API)}
IMAGE_NEED = {"mmdebstrap": ("mmdebstrap", Level.API)}


def check(level: Level) -> None:
    """Raise TestbedError unless this is Linux on amd64, run by root, with every program the level needs."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        raise TestbedError(f"a testbed needs Linux on amd64; this is {platform.system()} on {platform.machine()}")
    if os.geteuid() != 0:
        raise TestbedError("a testbed makes network namespaces and mounts, so it must be run as root")
    demand({program: need for program, need in NEEDS.items() if need[1] <= level})


def demand(needs: dict[str, tuple[str, Level]]) -> None:
    """Raise TestbedError naming the packages of the programs that are missing."""
    missing = {program: package for program, (package, _) in needs.items() if not _present(program)}
    if missing:
        packages = " ".join(sorted(set(missing.values())))
        raise TestbedError(
            f"missing: {', '.join(sorted(missing))}; install with `apt-get install {packages}` "
            "or let `testbed deps` install all that a testbed uses"
        )


def install() -> None:
    """Install every Debian package that a testbed uses and that is missing."""
    needs = {**NEEDS, **REGISTRY_NEED, **IMAGE_NEED}
    packages = sorted({package for program, (package, _) in needs.items() if not _present(program)})
    if not packages:
        print("all packages are there")
        return
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["apt-get", "update"], ["apt-get", "install", "--yes", "--no-install-recommends", *packages]):
        if subprocess.run(command, env=environment).returncode != 0:
            raise TestbedError(f"`{' '.join(command)}` failed; see its output above")


def _present(program: str) -> bool:
    if program.startswith("/"):
        return Path(program).exists()
    return shutil.which(program, path=PATH) is not None
