"""KRE: runtimes, in which versions of AI models run.

`runtime` holds the kind: `types` spec and status; `build` spec to the chart's values; `control`, `deletion` and `facts`
what is decided; `credentials`, `servers`, `nats` and `mongo` what is known of the outside; `kind` what it watches.
`version` holds that of versions: `types` spec and status; `build`, `pods` and `container_files` spec to objects,
`streams` spec to what is kept in NATS; `control`, `stopping` and `facts` what is decided; `jetstream`, `nats_access`
and `given` what is known of the outside; `kind` what it watches.
`krt` and `names` are for the versions that people bring as `.krt` files: `moorage krt check` reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moorage.helm import reasons as helm_reasons
from moorage.helm import screen as helm_screen
from moorage.operators import system
from moorage.runtime import kind as runtime_kind

from . import config, kinds, reasons
from .runtime import control, deletion, kind, screen, types
from .version import control as version_control
from .version import kind as version_kind
from .version import screen as version_screen
from .version import types as version_types


def _kinds(settings: config.Config, environment: system.Environment) -> Sequence[runtime_kind.Kind[Any, Any]]:
    """The Runtimes first: their versions read what they are."""
    runtimes = kind.RuntimeKind(settings, environment)
    return (runtimes, version_kind.VersionKind(settings, environment, runtimes))


SYSTEM = system.System(
    name=kinds.SYSTEM,
    title="KRE",
    config=config.Config,
    definitions=lambda: (types.definition(), version_types.definition()),
    described=(
        system.Described(
            kinds.RUNTIME, types.RuntimeStatus, control.STEPS, deletion.DELETION_STEPS, screen.rows, helm_screen.objects
        ),
        system.Described(
            kinds.RUNTIME_VERSION,
            version_types.RuntimeVersionStatus,
            version_control.STEPS,
            version_control.DELETION_STEPS,
            version_screen.rows,
            version_screen.objects,
        ),
    ),
    reasons=(reasons.RuntimeReason, helm_reasons.Reason, reasons.VersionReason),
    kinds=_kinds,
)
