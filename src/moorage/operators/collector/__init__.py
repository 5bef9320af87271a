"""Collector: telemetry collectors per tenant, each a Helm release in the tenant's namespace.

`types` spec and status; `build` spec -> values and children; `control` facts and steps; `kind` what it watches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moorage.helm import reasons as helm_reasons
from moorage.helm import screen
from moorage.operators import accounts, system
from moorage.runtime import kind as runtime_kind

from . import build, config, control, kind, reasons, types


def _kinds(settings: config.Config, environment: system.Environment) -> Sequence[runtime_kind.Kind[Any, Any]]:
    return (
        kind.CollectorKind(
            kind.Settings(
                rights=accounts.Rights(
                    build.SYSTEM, environment.namespace, settings.accounts, settings.tenant_cluster_role
                ),
                charts=settings.charts,
                namespace_labels=settings.namespace_labels,
                image_repository=settings.image_repository,
                namespaces=settings.namespaces,
                resync=settings.resync_seconds,
                environment=environment,
            )
        ),
    )


SYSTEM = system.System(
    name=build.SYSTEM,
    title="Collector",
    config=config.Config,
    definitions=lambda: (types.definition(),),
    described=(
        system.Described(
            types.COLLECTOR, types.CollectorStatus, control.STEPS, control.DELETION_STEPS, screen.rows, screen.objects
        ),
    ),
    reasons=(reasons.Reason, helm_reasons.Reason),
    kinds=_kinds,
)
