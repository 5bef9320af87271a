"""What a manual operation does on one node: `weka_drives.py ARGUMENTS`, in one line of JSON.

It lists the drives of the node by the product's own tool, signs those that it was told to, and leaves one line of JSON
as its last word: {drives, signed, fault}. A drive that the node itself uses, or that a container has, is never touched,
whatever was asked. The standard library alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
LAST_WORD = "/dev/termination-log"
MOST_BYTES = 4000  # of the last word, of which the kubelet keeps 4096
SECONDS = 120.0  # that one drive may take to be signed


class Fault(Exception):
    """It can't be done; the text says why."""


class Machine:
    """The node: its drives as the product's tool lists them, and what of them the node itself uses."""

    def __init__(self, tool: str, sys_: str = "/sys", proc: str = "/proc/1") -> None:
        self.tool, self.sys, self.proc = tool, sys_, proc

    def call(self, *words: str) -> str:
        command = [self.tool, *words]
        try:
            done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise Fault(f"{' '.join(command)}: no answer within {SECONDS:.0f} s") from None
        except OSError as error:
            raise Fault(f"{self.tool}: {error}") from None
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip() or f"it ended with {done.returncode}"
            raise Fault(f"{' '.join(command)}: {said[-300:]}")
        return done.stdout.decode(errors="replace")

    def drives(self) -> list[dict[str, Any]]:
        """All that the tool lists."""
        try:
            found = json.loads(self.call("list", "-j"))
        except ValueError:
            raise Fault(f"{self.tool} list: an answer that is no JSON") from None
        listed = [it for it in found if isinstance(it, dict)] if isinstance(found, list) else []
        return [
            {
                "serial": str(it.get("serial_id") or it.get("serial") or ""),
                "path": str(it.get("block_device") or it.get("path") or ""),
                "signed": bool(it.get("is_signed")),
                "guid": str(it.get("weka_guid") or ""),
                "mounted": bool(it.get("mounted")),
            }
            for it in listed
        ]

    def used(self, path: str) -> bool:
        """Whether the node has mounted it, swaps to it, or made something of it; or any partition of it."""
        name = os.path.basename(os.path.realpath(path))
        folder = os.path.join(self.sys, "class", "block", name)
        parts = [it for it in listed(folder) if os.path.exists(os.path.join(folder, it, "partition"))]
        for each in (folder, *(os.path.join(folder, it) for it in parts)):
            if listed(os.path.join(each, "holders")) or text(os.path.join(each, "dev")) in self.mounts():
                return True
        swaps = {os.path.basename(line.split()[0]) for line in text(f"{self.proc}/../swaps").splitlines()[1:]}
        return bool({name, *parts} & swaps)

    def mounts(self) -> set[str]:
        """MAJOR:MINOR of what is mounted on the node; only of block devices, whose major is not 0."""
        rows = [line.split() for line in text(f"{self.proc}/mountinfo").splitlines()]
        return {row[2] for row in rows if len(row) > 2 and not row[2].startswith("0:")}

    def pci(self, path: str) -> tuple[str, str]:
        """(vendor, device) of what that drive is on."""
        name = os.path.basename(os.path.realpath(path))
        for at in ("device/device", "device"):
            folder = os.path.join(self.sys, "class", "block", name, at)
            if vendor := text(os.path.join(folder, "vendor")):
                return plain(vendor), plain(text(os.path.join(folder, "device")))
        return "", ""


def listed(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def plain(number: str) -> str:
    """A number of the PCI bus without its prefix and zeros."""
    return number.lower().removeprefix("0x").lstrip("0")


def same(path: str, other: str) -> bool:
    return os.path.realpath(path) == os.path.realpath(other)


def chosen(machine: Machine, args: dict[str, Any], drives: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """(what somebody named, the drive). One that is named and not there is a fault."""
    found = []
    for named, key in (*((it, "path") for it in args["paths"]), *((it, "serial") for it in args["serials"])):
        drive = next(
            (it for it in drives if (same(named, it["path"]) if key == "path" else named == it["serial"])), None
        )
        if drive is None:
            known = ", ".join(it[key] for it in drives[:8]) or "none"
            raise Fault(f"there is no drive {named} here; there are: {known}")
        found.append((named, drive))
    if args["all"]:
        found += [("", it) for it in drives]
    pci = [(plain(vendor), plain(device)) for vendor, device in args["pci"]]
    found += [("", it) for it in drives if pci and machine.pci(it["path"]) in pci]
    return found


def refusal(machine: Machine, args: dict[str, Any], drive: dict[str, Any]) -> str:
    """Why that drive is not touched."""
    if drive["mounted"] or machine.used(drive["path"]):
        return "the node itself uses it"
    if drive["serial"] in args["taken"]:
        return f"{args['taken'][drive['serial']]} has it"
    if drive["guid"] and not args["anew"]:
        return f"it was signed for cluster {drive['guid']}, and may hold its data"
    return ""


def done(machine: Machine, args: dict[str, Any]) -> dict[str, Any]:
    """What is left as the last word."""
    signed, faults = [], []
    try:
        for named, drive in chosen(machine, args, machine.drives()):
            if drive["signed"] and not args["anew"]:
                continue
            if why := refusal(machine, args, drive):
                faults += [f"drive {named} is left as it is: {why}"] if named else []
                continue
            try:
                machine.call(*args["flags"], "--", drive["path"])
            except Fault as error:
                faults.append(str(error))
                continue
            signed.append(drive["serial"])
        drives = sorted({it["serial"] for it in machine.drives() if it["signed"] and it["serial"]})
    except Fault as error:
        return {"fault": str(error)[:1000]}
    return {"drives": drives, "signed": signed, "fault": "; ".join(faults)[:1000]}


def last_word(found: dict[str, Any]) -> str:
    """As short as it must be: what was signed now can be left out, which drives there are can't."""
    said = json.dumps(found, separators=(",", ":"))
    if len(said) > MOST_BYTES:
        said = json.dumps({**found, "signed": [], "fault": found["fault"][:200]}, separators=(",", ":"))
    if len(said) > MOST_BYTES:
        said = json.dumps({"fault": f"{len(found['drives'])} drives are more than can be told of one node"})
    return said


def main(argv: list[str]) -> None:
    with open(os.path.join(HERE, "settings.json"), encoding="utf-8") as file:
        tool = json.load(file)["commands"]["sign"]
    said = last_word(done(Machine(tool), json.loads(argv[1])))
    with open(LAST_WORD, "w", encoding="utf-8") as file:
        file.write(said)


if __name__ == "__main__":
    main(sys.argv)
