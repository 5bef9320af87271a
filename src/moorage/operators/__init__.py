"""The systems. This is the one place that names them all; they never import each other."""

from __future__ import annotations

from . import collector, kre, opencga, system, weka, xsld

SYSTEMS: dict[str, system.System] = {
    each.name: each for each in (collector.SYSTEM, kre.SYSTEM, opencga.SYSTEM, weka.SYSTEM, xsld.SYSTEM)
}
