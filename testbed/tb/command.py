"""Run another program to its end, with its own words in the error when it fails."""

import subprocess
from pathlib import Path

from tb.errors import TestbedError


def run(
    command: list[str],
    *,
    folder: Path | None = None,
    environment: dict[str, str] | None = None,
    text: str | None = None,
) -> str:
    """Run a command, with `text` as its input, and return what it printed; TestbedError when it fails."""
    try:
        done = subprocess.run(command, cwd=folder, env=environment, input=text, capture_output=True, text=True)
    except FileNotFoundError as missing:
        raise TestbedError(
            f"the program {command[0]} is not installed; `testbed deps` installs what is needed"
        ) from missing
    if done.returncode != 0:
        raise TestbedError(f"`{' '.join(command)}` failed ({done.returncode}): {(done.stderr or done.stdout).strip()}")
    return done.stdout


def succeeds(command: list[str]) -> bool:
    """Does the command end well? Its output is dropped."""
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
