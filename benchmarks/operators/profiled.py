"""Runs an operator under cProfile: `python -m benchmarks.operators.profiled FILE MODULE [options of the operator]`.

The operator is imported rather than run as `__main__`, as its types are looked up by the name of its module.
"""

from __future__ import annotations

import cProfile
import importlib
import sys
import time


def main() -> None:
    """Write FILE when the operator ends."""
    _, file, module, *sys.argv[1:] = sys.argv
    operator = importlib.import_module(module)
    profile = cProfile.Profile(time.process_time)  # of CPU, so that waiting and other processes do not count
    try:
        profile.runcall(operator.main)
    finally:
        profile.dump_stats(file)


if __name__ == "__main__":
    main()
