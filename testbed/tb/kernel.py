"""Kernel settings that a kubelet changes for the whole machine: noted before the first testbed, restored at the end.

The note lies with the owner files, as it belongs to all testbeds of the machine.
"""

import json
from pathlib import Path

from tb.settings import Settings

CHANGED_BY_KUBELET = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops")
SWITCHES = Path("/proc/sys")


def note(settings: Settings) -> None:
    """Write the settings down, unless a testbed already did."""
    path = _note(settings)
    if not path.exists():
        path.write_text(json.dumps({name: (SWITCHES / name).read_text().strip() for name in CHANGED_BY_KUBELET}))


def restore(settings: Settings) -> None:
    """Put the noted settings back, once no testbed owns an index any more."""
    path = _note(settings)
    if path.exists() and not list(path.parent.glob("*.owner")):
        for name, value in json.loads(path.read_text()).items():
            (SWITCHES / name).write_text(value)
        path.unlink()


def _note(settings: Settings) -> Path:
    return settings.owner_file.parent / "kernel.json"
