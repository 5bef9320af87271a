"""What a user lays over the StatefulSet of the REST members, and what may not be laid over it. Pure.

It is merged over what moorage wants, never over what is live, so that what is taken out of the spec is gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import msgspec

Body = Mapping[str, Any]

KEYS = {
    "containers": ("name",),
    "initContainers": ("name",),
    "volumes": ("name",),
    "env": ("name",),
    "volumeMounts": ("mountPath",),
    "volumeClaimTemplates": ("metadata", "name"),
}
"""Lists whose items have a name, by which they are merged; all others are replaced."""

MOST_BYTES = 64 * 1024
TAKEN = ("template", "volumeClaimTemplates", "replicas", "minReadySeconds", "revisionHistoryLimit")
"""Fields of a StatefulSet that may be laid over; the others hold its pods together."""

QUANTITY = r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$"
HARMLESS_VOLUMES = frozenset(
    {"name", "configMap", "secret", "emptyDir", "persistentVolumeClaim", "downwardAPI", "ephemeral", "csi"}
)
"""Kinds of volumes of restricted Pod Security, but for such as may hold a token of the API server."""


def merged(base: Any, over: Any, field: str = "") -> Any:
    """`over` laid over `base`; what has no value leaves what is there."""
    if over is None:
        return base
    if isinstance(base, Mapping) and isinstance(over, Mapping):
        if field == "volumes" and (set(base) - {"name"}) != (set(over) - {"name"}):
            return dict(over)  # another kind of volume
        made = dict(base)
        for key, value in over.items():
            made[key] = merged(base[key], value, key) if key in base else value
        return made
    if field in KEYS and _all_named(base, field) and _all_named(over, field):
        return _by_name(base, over, field)
    return over


def _by_name(base: Sequence[Body], over: Sequence[Body], field: str) -> list[Body]:
    laid = {_name(item, field): item for item in over}
    made = [merged(item, laid.pop(_name(item, field), None), field) for item in base]
    return [*made, *laid.values()]


def _name(item: Any, field: str) -> Any:
    for key in KEYS[field]:
        item = item.get(key) if isinstance(item, Mapping) else None
    return item


def _all_named(items: Any, field: str) -> bool:
    return (
        isinstance(items, Sequence)
        and not isinstance(items, str)
        and all(isinstance(_name(item, field), str) for item in items)
    )


# --- what is refused ----------------------------------------------------------------------------------------------


class _Named(msgspec.Struct, frozen=True):
    name: str


class _Mount(msgspec.Struct, frozen=True, rename="camel"):
    mount_path: str


class _Resources(msgspec.Struct, frozen=True):
    limits: dict[str, str | int] = {}
    requests: dict[str, str | int] = {}


class _Probe(msgspec.Struct, frozen=True, rename="camel"):
    period_seconds: int | None = None
    failure_threshold: int | None = None
    timeout_seconds: int | None = None


class _Container(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    image: str = ""
    env: list[_Named] = []
    ports: list[dict[str, Any]] = []
    resources: _Resources = _Resources()
    readiness_probe: _Probe | None = None
    security_context: dict[str, Any] = {}
    volume_mounts: list[_Mount] = []


class _Pod(msgspec.Struct, frozen=True, rename="camel"):
    containers: list[_Container] = []
    init_containers: list[_Container] = []
    volumes: list[_Named] = []
    security_context: dict[str, Any] = {}


class _Metadata(msgspec.Struct, frozen=True):
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class _Template(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()
    spec: _Pod = _Pod()


class _Requests(msgspec.Struct, frozen=True):
    storage: Annotated[str, msgspec.Meta(max_length=32, pattern=QUANTITY)] | None = None


class _ClaimResources(msgspec.Struct, frozen=True):
    requests: _Requests = _Requests()


class _ClaimSpec(msgspec.Struct, frozen=True):
    resources: _ClaimResources = _ClaimResources()


class _Claim(msgspec.Struct, frozen=True):
    metadata: _Named
    spec: _ClaimSpec = _ClaimSpec()


class _Override(msgspec.Struct, frozen=True, rename="camel"):
    """As far as it is read here: all else is the API server's to judge."""

    template: _Template = _Template()
    volume_claim_templates: list[_Claim] = []


def fault(override: Body, members: int, own_containers: frozenset[str], own_claim: str) -> str:
    """Why `override` can't be laid over a StatefulSet, or an empty string; paths begin at spec.statefulSet.spec."""
    if (size := len(msgspec.json.encode(override))) > MOST_BYTES:
        return f"it has {size} bytes, and may have {MOST_BYTES}"
    for key in override:
        if key not in TAKEN:
            may = ", ".join(TAKEN)
            return f"{key[:100]} can't be set, as it holds the pods of the StatefulSet together; may be set: {may}"
    replicas = override.get("replicas")
    if replicas is not None and replicas != members:
        return f"replicas is {replicas!r}, and spec.members is {members}; leave replicas out"
    try:
        read = msgspec.convert(override, _Override)
    except msgspec.ValidationError as error:
        return str(error)
    for index, claim in enumerate(read.volume_claim_templates):
        if claim.metadata.name != own_claim and not claim.spec.resources.requests.storage:
            return f"volumeClaimTemplates[{index}] names no size in spec.resources.requests.storage"
    pod = (override.get("template") or {}).get("spec") or {}
    return next(filter(None, _unsafe(pod, own_containers)), "")


def _unsafe(pod: Body, own: frozenset[str]) -> Iterator[str]:
    """What restricted Pod Security refuses: no resource brings its author more than pods of that kind may have."""
    for key in ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "automountServiceAccountToken"):
        if pod.get(key):
            yield f"template.spec.{key} can't be set: pods get nothing of the node and no token of the API server"
    yield from _security(pod.get("securityContext"), "template.spec.securityContext")
    for index, volume in enumerate(_mappings(pod.get("volumes"))):
        if strange := sorted(set(volume) - HARMLESS_VOLUMES):
            yield f"template.spec.volumes[{index}] is of a kind that pods may not have: {strange[0]}"
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(_mappings(pod.get(kind))):
            path = f"template.spec.{kind}[{index}]"
            yield from _security(container.get("securityContext"), f"{path}.securityContext")
            if any(port.get("hostPort") for port in _mappings(container.get("ports"))):
                yield f"{path}.ports can't have a hostPort"
            if container.get("name") not in own and not container.get("image"):
                known = ", ".join(sorted(own))
                yield f"{path} is named {container.get('name')!r}, which is none of {known}, and has no image"
    if isinstance(pod.get("ephemeralContainers"), list):
        yield "template.spec.ephemeralContainers can't be set"


def _security(context: Any, path: str) -> Iterator[str]:
    if not isinstance(context, Mapping):
        return
    for key in ("privileged", "allowPrivilegeEscalation"):
        if context.get(key):
            yield f"{path}.{key} can't be true"
    if context.get("runAsUser") == 0:
        yield f"{path}.runAsUser can't be 0"
    if context.get("runAsNonRoot") is False:
        yield f"{path}.runAsNonRoot can't be false"
    capabilities = context.get("capabilities")
    added = capabilities.get("add") if isinstance(capabilities, Mapping) else None
    if added and set(map(str, added)) - {"NET_BIND_SERVICE"}:
        yield f"{path}.capabilities.add can only have NET_BIND_SERVICE"
    profile = context.get("seccompProfile")
    if isinstance(profile, Mapping) and profile.get("type") == "Unconfined":
        yield f"{path}.seccompProfile can't be Unconfined"
    if context.get("procMount") not in (None, "Default"):
        yield f"{path}.procMount can only be Default"


def _mappings(items: Any) -> list[Body]:
    return [each for each in items if isinstance(each, Mapping)] if isinstance(items, list | tuple) else []
