"""The program that helm runs over what it has rendered, from stdin to stdout.

    python -m moorage.helm.runs.post_renderer SCALED

SCALED is a file with a list of `scaling.Scaled` in JSON. It reads no cluster and writes no file.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from . import scaling

NAME = "moorage-scaled"
EMPTY = "# nothing is rendered\n"


def install(folder: Path, scaled: tuple[scaling.Scaled, ...]) -> Path:
    """Write what helm needs to run it, below the private `folder`; returns the folder for HELM_PLUGINS."""
    plugin = folder / "plugins" / NAME
    plugin.mkdir(parents=True)
    (plugin / "scaled.json").write_bytes(msgspec.json.encode(scaled))
    # -I and -B as the operator itself is started: nothing but its installation decides what is imported
    args = ["-I", "-B", "-m", "moorage.helm.runs.post_renderer", str(plugin / "scaled.json")]
    about: dict[str, Any] = {
        "apiVersion": "v1",
        "type": "postrenderer/v1",
        "name": NAME,
        "version": "1.0.0",
        "runtime": "subprocess",
        "config": {},
        "runtimeConfig": {"platformCommand": [{"command": sys.executable, "args": args}]},
    }
    (plugin / "plugin.yaml").write_text(json.dumps(about))
    return plugin.parent


def main() -> None:
    """One manifest."""
    scaled = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=tuple[scaling.Scaled, ...])
    text = sys.stdin.buffer.read().decode()
    # helm takes an empty answer for a failure, though a chart may well render nothing
    sys.stdout.buffer.write((scaling.carried(text, scaled) if text.strip() else EMPTY).encode())


if __name__ == "__main__":
    main()
