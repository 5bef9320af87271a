"""Kernel settings that testbeds change for the whole machine: noted before the first one, restored at the end.

The note lies with the owner files, as it belongs to all testbeds of the machine.
"""

import json
from pathlib import Path

from tb.settings import Settings

CHANGED_BY_KUBELET = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops")
NEEDED = {"fs/inotify/max_user_instances": 1024}
"""At least so many: kubelet and containerd take a dozen each, and a handful of nodes uses up the usual 128."""

SWITCHES = Path("/proc/sys")


def prepare(settings: Settings) -> None:
    """Write the settings down, unless a testbed already did, and have what is needed."""
    path = _note(settings)
    if not path.exists():
        names = (*CHANGED_BY_KUBELET, *NEEDED)
        path.write_text(json.dumps({name: (SWITCHES / name).read_text().strip() for name in names}))
    for name, least in NEEDED.items():
        if int((SWITCHES / name).read_text()) < least:
            (SWITCHES / name).write_text(str(least))


def restore(settings: Settings) -> None:
    """Put the noted settings back, once no testbed owns an index any more."""
    path = _note(settings)
    if path.exists() and not list(path.parent.glob("*.owner")):
        for name, value in json.loads(path.read_text()).items():
            (SWITCHES / name).write_text(value)
        path.unlink()


def _note(settings: Settings) -> Path:
    return settings.owner_file.parent / "kernel.json"
