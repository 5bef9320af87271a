"""What of a spec comes to nothing: fields from which nothing follows, and keys that the product lacks. Pure."""

from __future__ import annotations

from collections.abc import Callable

from moorage.children import ordinals
from moorage.operators.opencga import names, types

from . import product_keys, trees

REFUSES, PASSES_OVER = "refuses the whole file for that", "passes over that"
THEN = {"configuration": REFUSES, "storage": PASSES_OVER, "client": PASSES_OVER}
"""What the product's class of that file does where it meets a key that it does not know."""


def odd_keys(spec: types.CommunitySpec) -> str:
    """Keys that the product's files of this version do not have, or have for nothing, in words. Raises TreeError."""
    given = (
        ("additionalOpenCGAConfig", "configuration", spec.additional_config),
        ("configuration", "configuration", spec.configuration),
        ("storage", "storage", spec.storage),
        ("clientConfiguration", "client", spec.client_configuration),
    )
    words = []
    for field, file, tree in given:
        found = list(product_keys.odd(spec.version, file, trees.expanded(tree)))
        if said := product_keys.told(spec.version, file, [each for each in found if not each.unused]):
            words.append(f"does not know {said} in spec.{field}, and {THEN[file]}")
        if said := product_keys.told(spec.version, file, [each for each in found if each.unused]):
            words.append(f"takes {said} in spec.{field}, and does not use that")
    return f"OpenCGA {spec.version} {'; it '.join(words)}" if words else ""


def _without_login(spec: types.CommunitySpec) -> bool:
    return spec.database.credentials_secret_ref is None


UNHEEDED: dict[str, Callable[[types.CommunitySpec], bool]] = {
    "prometheus": lambda spec: spec.prometheus is not None,
    "security.authentication.modes": lambda spec: bool(spec.security.authentication.modes) and _without_login(spec),
    "database.authenticationDatabase": lambda spec: (
        spec.database.authentication_database != types.Database().authentication_database and _without_login(spec)
    ),
    "security.tls.certificateKeySecretRef": lambda spec: (
        spec.security.tls.certificate_key_secret_ref is not None and not spec.security.tls.enabled
    ),
    "security.tls.caCertificateSecretRef": lambda spec: (
        spec.security.tls.ca_certificate_secret_ref is not None and not spec.security.tls.enabled
    ),
    "security.tls.caConfigMapRef": lambda spec: (
        spec.security.tls.ca_config_map_ref is not None
        and not (spec.security.tls.enabled and spec.security.tls.ca_certificate_secret_ref is None)
    ),
    "upgrade.backup": lambda spec: spec.upgrade.backup is not None and spec.upgrade.migration == "Manual",
    "metrics.port": lambda spec: not spec.metrics.enabled and spec.metrics.port != types.Metrics().port,
    "metrics.serviceMonitor": lambda spec: (
        not spec.metrics.enabled and spec.metrics.service_monitor != types.ServiceMonitor()
    ),
}
"""Fields from which nothing follows, each with when: as the original's alone, or beside what else the spec says."""


def unheeded(name: str, spec: types.CommunitySpec) -> tuple[str, ...]:
    """Which of these the spec of that installation sets, and processes that are none of its pods."""
    pods = {ordinals.pod(names.master(name), 0), *(ordinals.pod(names.rest(name), n) for n in range(spec.members))}
    nobodys = (each.name for each in spec.automation_config.processes if each.name not in pods)
    found = [field for field, is_so in UNHEEDED.items() if is_so(spec)]
    return (*found, *(f"automationConfig.processes[{each}]" for each in nobodys))
