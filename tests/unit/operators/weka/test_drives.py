"""What an operation's pod does on its node: which drives it signs, which it leaves alone, and its last word."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from moorage.operators.weka import allocation, dialect
from moorage.operators.weka.container import build as container_build
from moorage.operators.weka.operation import build

SCRIPTS = Path(container_build.__file__).parents[1] / "scripts"
TOOL = """#!{python}
import json, sys
here = {here!r}
words = sys.argv[1:]
drives = json.load(open(here + "/drives"))
if words == ["list", "-j"]:
    print(json.dumps(drives))
    sys.exit()
path = words[-1]
assert words[-2] == "--"
open(here + "/calls", "a").write(json.dumps(words) + "\\n")
if path.endswith("broken"):
    sys.exit("it does not answer")
for it in drives:
    if it["block_device"] == path:
        it["is_signed"] = True
json.dump(drives, open(here + "/drives", "w"))
"""
NOTHING = {"paths": [], "serials": [], "pci": [], "all": False, "flags": [], "anew": False, "taken": {}}
ALL = {**NOTHING, "all": True}


def _module(name: str) -> Any:
    found = importlib.util.spec_from_file_location(name.removesuffix(".py"), SCRIPTS / name)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


drives_script, tool_script = _module(container_build.DRIVES), _module(container_build.TOOL)


class Node:
    """A node of folders: its drives, what the kernel says of them, and what is mounted."""

    def __init__(self, root: Path) -> None:
        self.root, self.listed = root, []
        self.block = root / "sys/class/block"
        self.block.mkdir(parents=True)
        (root / "proc/1").mkdir(parents=True)
        tool = root / "sign"
        tool.write_text(TOOL.format(python=sys.executable, here=str(root)))
        tool.chmod(0o700)
        self.machine = drives_script.Machine(str(tool), str(root / "sys"), str(root / "proc/1"))
        self.mounted()
        self.save()

    listed: list[dict[str, Any]]

    def drive(self, name: str, dev: str = "", pci: tuple[str, str] = ("", ""), **said: Any) -> None:
        folder = self.block / name
        (folder / "holders").mkdir(parents=True)
        (folder / "dev").write_text(f"{dev}\n")
        (folder / "device/device").mkdir(parents=True)
        (folder / "device/device/vendor").write_text(pci[0])
        (folder / "device/device/device").write_text(pci[1])
        self.listed.append({"serial_id": f"s-{name}", "block_device": f"/dev/{name}", "is_signed": False, **said})
        self.save()

    def part(self, of: str, name: str, dev: str = "") -> Path:
        folder = self.block / of / name
        (folder / "holders").mkdir(parents=True)
        (folder / "partition").write_text("1")
        (folder / "dev").write_text(dev)
        return folder

    def mounted(self, *devices: str) -> None:
        rows = ["21 1 0:5 / /dev rw - devtmpfs udev rw", *(f"22 1 {it} / /m rw - ext4 /dev/x rw" for it in devices)]
        (self.root / "proc/1/mountinfo").write_text("\n".join(rows) + "\n")

    def save(self) -> None:
        (self.root / "drives").write_text(json.dumps(self.listed))

    def done(self, **args: Any) -> dict[str, Any]:
        found: dict[str, Any] = drives_script.done(self.machine, {**NOTHING, **args})
        return found

    def calls(self) -> list[list[str]]:
        path = self.root / "calls"
        return [json.loads(it) for it in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_both_scripts_read_the_list_of_drives_alike(node: Node) -> None:
    """Each stands alone in its pods; a name of the product's that one of them learns is the other's too."""
    node.drive("a", is_signed=True, weka_guid="g-1", mounted=True)
    node.listed.append({"serial": "s-b", "path": "/dev/b"})
    node.listed.append("no drive")  # type: ignore[arg-type]
    node.save()
    settings = {
        "files": msgspec.structs.asdict(dialect.Files()),
        "commands": msgspec.structs.asdict(dialect.Commands(sign=str(node.root / "sign"))),
    }
    tools = tool_script.Tools(settings, {}, time.monotonic() + 60)

    assert node.machine.drives() == tool_script.devices(tools)
    assert [("s-a", "g-1", True), ("s-b", "", False)] == [
        (it["serial"], it["guid"], it["signed"]) for it in node.machine.drives()
    ]


def test_all_are_signed_that_nobody_uses(node: Node) -> None:
    """Neither the root's disk, nor what volumes or swap are made of, nor a container's, nor another cluster's."""
    for name, dev in (("free", "8:0"), ("root", "8:16"), ("lvm", "8:32"), ("swap", "8:48"), ("whole", "8:64")):
        node.drive(name, dev)
    node.part("root", "root1", "8:17")
    node.mounted("8:17", "8:64")
    (node.part("lvm", "lvm1") / "holders/dm-0").touch()
    node.part("swap", "swap1")
    (node.root / "proc/swaps").write_text("Filename Type\n/dev/swap1 partition 1 0 -2\n")
    node.drive("theirs", weka_guid="g-2")
    node.drive("told", mounted=True)
    node.drive("taken")
    node.drive("signed", is_signed=True)

    found = node.done(all=True, taken={"s-taken": "WekaContainer ns/a"})
    assert {"drives": ["s-free", "s-signed"], "signed": ["s-free"], "fault": ""} == found
    assert [["--", "/dev/free"]] == node.calls()


def test_what_is_named_and_left_alone_is_a_fault(node: Node) -> None:
    """As whoever named it counts on it; the others are signed all the same."""
    node.drive("a", "8:0")
    node.drive("b", "8:1")
    node.drive("c")
    node.drive("broken")
    node.mounted("8:0")
    found = node.done(paths=["/dev/a", "/dev/b", "/dev/broken"], serials=["s-c"], taken={"s-c": "WekaContainer ns/x"})

    assert ["s-b"] == found["signed"] == found["drives"]
    assert "drive /dev/a is left as it is: the node itself uses it" in found["fault"]
    assert "drive s-c is left as it is: WekaContainer ns/x has it" in found["fault"]
    assert "it does not answer" in found["fault"]


def test_one_that_is_named_and_not_there_is_told_beside_those_that_are(node: Node) -> None:
    node.drive("a")

    assert {"fault": "there is no drive /dev/z here; there are: /dev/a"} == node.done(paths=["/dev/z"])
    assert {"fault": "there is no drive s-z here; there are: s-a"} == node.done(serials=["s-z"])
    assert [] == node.calls()


def test_signed_anew_it_is_with_the_flags_that_were_confirmed(node: Node) -> None:
    node.drive("a", weka_guid="g-1", is_signed=True)
    assert "" == node.done(serials=["s-a"])["fault"]
    assert [] == node.calls()  # it is signed already, and nobody asked for more

    found = node.done(serials=["s-a"], anew=True, flags=["--allow-erase-weka-partitions"])
    assert ["s-a"] == found["signed"]
    assert [["--allow-erase-weka-partitions", "--", "/dev/a"]] == node.calls()


def test_drives_of_a_kind_are_found_on_the_bus(node: Node) -> None:
    node.drive("a", pci=("0x1d0f\n", "0xcd01\n"))
    node.drive("b", pci=("0x8086", "0x0001"))

    assert ["s-a"] == node.done(pci=[["0x1D0F", "cd01"]])["signed"]
    assert ["s-b"] == node.done(pci=[["8086", "1"]])["signed"]


@pytest.mark.parametrize(
    ("text", "said"), [("", "an answer that is no JSON"), ("{", "an answer that is no JSON"), (None, "it ended with 1")]
)
def test_a_tool_that_fails_is_told(node: Node, text: str | None, said: str) -> None:
    body = "import sys; sys.exit(1)" if text is None else f"print({text!r})"
    (node.root / "sign").write_text(f"#!{sys.executable}\n{body}\n")

    assert said in node.done()["fault"]


def test_no_tool_is_told(node: Node) -> None:
    (node.root / "sign").unlink()

    assert "No such file" in node.done()["fault"]


@pytest.mark.parametrize("count", [1, 100, 150, 600])
def test_its_last_word_is_short_enough_and_can_be_read(count: int) -> None:
    """Of very many drives it says that they are too many, and never half of them."""
    these = [f"S{it:022}" for it in range(count)]
    text = drives_script.last_word({"drives": these, "signed": these, "fault": ""})
    read = msgspec.json.decode(text, type=build.Told)

    assert len(text.encode()) <= 4096
    assert read.drives == tuple(these) if count < 151 else "more than can be told" in read.fault
    assert count <= allocation.MOST_DRIVES or read.drives is None


def test_it_runs_as_in_the_pod(node: Node) -> None:
    """With the standard library alone, its settings beside it; what it leaves is where the kubelet looks."""
    node.drive("a")
    script, left = node.root / container_build.DRIVES, node.root / "left"
    script.write_text((SCRIPTS / container_build.DRIVES).read_text().replace("/dev/termination-log", str(left)))
    (node.root / "settings.json").write_text(json.dumps({"commands": {"sign": str(node.root / "sign")}}))
    subprocess.run([sys.executable, "-I", "-S", str(script), json.dumps(ALL)], check=True, timeout=60)

    assert {"drives": ["s-a"], "signed": ["s-a"], "fault": ""} == json.loads(left.read_text())
