"""The Runtime kind: the original's fields with their types, in both of its spellings; ours are marked "Added".

The original had no schema, and its sample names things otherwise than its chart reads them: `entrypoint.host` and
`runtime.host`, `mongo.credentials` and `mongo.auth`, `className` and `storageClass`, `storage` and `persistentVolume`.
Either is taken; of both at once the sample's counts, and they may not contradict each other. `Settings` is what they
come to.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from moorage.api import crd, meta
from moorage.helm import release_status
from moorage.operators.kre import kinds

_SIZE = msgspec.Meta(
    max_length=32,
    pattern=r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$",
    description="May grow later, where the storage class allows it.",
)
_NAME = msgspec.Meta(max_length=253)
LONGEST_NAME = 40
"""Characters of a Runtime's name."""

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS = rf"{_LABEL}(\.{_LABEL})*"
_LONGEST = 253 - len("-tls")  # a certificate's Secret is called so after its host
_HOST = msgspec.Meta(max_length=_LONGEST, pattern=f"^{_DNS}$")
_OBJECT = msgspec.Meta(max_length=253, pattern=f"^({_DNS})?$")
_ASKED = msgspec.Meta(max_length=32)
_CLEAR = "In clear; rather name a Secret."
_SECRET = msgspec.Meta(min_length=1, max_length=128, description=_CLEAR)
_UNUSED = "Taken as the original's, and not used."
_SWITCH = msgspec.Meta(description="Added. Left out: as the chart has it, or moorage's administrator.")


class Host(msgspec.Struct, frozen=True):
    """Where calls to what is published come in."""

    host: Annotated[str, _HOST] | None = None


class Volume(msgspec.Struct, frozen=True, rename="camel"):
    """A volume; the class by either name."""

    enabled: Annotated[bool, msgspec.Meta(description="Without, all is lost with the pod.")] | None = None
    class_name: Annotated[str, _NAME] | None = None
    storage_class: Annotated[str, _NAME] | None = None
    access_mode: Annotated[str, msgspec.Meta(max_length=32, description=_UNUSED)] | None = None
    size: Annotated[str, _SIZE] | None = None


class Nats(msgspec.Struct, frozen=True):
    """The messages' server."""

    replicas: Annotated[int, msgspec.Meta(ge=1, le=5)] = 1
    storage: Volume | None = None


class Credentials(msgspec.Struct, frozen=True):
    """The administrator of mongo, as the sample has it."""

    username: Annotated[str, _SECRET]
    password: Annotated[str, _SECRET]


class Auth(msgspec.Struct, frozen=True, rename="camel"):
    """The administrator of mongo, as the chart has it."""

    enabled: Annotated[bool, msgspec.Meta(description=_UNUSED)] = True
    key: Annotated[str, msgspec.Meta(max_length=1024, description=_UNUSED)] | None = None
    admin_user: Annotated[str, _SECRET] | None = None
    admin_password: Annotated[str, _SECRET] | None = None


class Mongo(msgspec.Struct, frozen=True, rename="camel"):
    """The database."""

    replicas: Annotated[int, msgspec.Meta(ge=1, le=7, description=_UNUSED + " There is one server.")] | None = None
    replica_set_name: Annotated[str, msgspec.Meta(max_length=63, description=_UNUSED)] | None = None
    credentials: Credentials | None = None
    auth: Auth | None = None
    storage: Volume | None = None
    persistent_volume: Volume | None = None
    image: Annotated[dict[str, Any], msgspec.Meta(description=_UNUSED)] = {}
    install_image: Annotated[dict[str, Any], msgspec.Meta(description=_UNUSED)] = {}
    security_context: Annotated[dict[str, Any], msgspec.Meta(description=_UNUSED)] = {}
    extra_labels: Annotated[dict[str, str], msgspec.Meta(max_length=64, description=_UNUSED)] = {}


class Keys(msgspec.Struct, frozen=True, rename="camel"):
    """The administrator of MinIO."""

    access_key: Annotated[str, msgspec.Meta(min_length=3, max_length=128, description=_CLEAR)]
    secret_key: Annotated[str, msgspec.Meta(min_length=8, max_length=128, description=_CLEAR)]


class Minio(msgspec.Struct, frozen=True):
    """The files' store."""

    image: Annotated[dict[str, Any], msgspec.Meta(description=_UNUSED)] = {}
    credentials: Keys | None = None
    storage: Volume | None = None


class Influx(msgspec.Struct, frozen=True, rename="camel"):
    """The metrics' database."""

    enabled: Annotated[bool, _SWITCH] | None = None
    image: Annotated[dict[str, Any], msgspec.Meta(description=_UNUSED)] = {}
    config: Annotated[dict[str, Any], msgspec.Meta(description=_UNUSED)] = {}
    init_scripts: Annotated[dict[str, Any], msgspec.Meta(description=_UNUSED)] = {}
    persistence: Volume | None = None


class Chronograf(msgspec.Struct, frozen=True):
    """The dashboards."""

    enabled: Annotated[bool, _SWITCH] | None = None
    persistence: Volume | None = None


class MongoExpress(msgspec.Struct, frozen=True):
    """Added. A page on which mongo's data can be read."""

    enabled: bool = False


class SecretRef(msgspec.Struct, frozen=True):
    """A Secret of the Runtime's namespace, with the keys mongoUser, mongoPassword, minioAccessKey, minioSecretKey.

    With mongoExpress also mongoReaderPassword.
    """

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=253)]


class Ingress(msgspec.Struct, frozen=True, rename="camel"):
    """Added. How what is published is reached from outside."""

    class_name: Annotated[str, _OBJECT] = ""
    tls_secret: Annotated[str, _OBJECT, msgspec.Meta(description="Empty: HOST-tls, where TLS is on.")] = ""
    annotations: Annotated[dict[str, str], msgspec.Meta(max_length=64)] = {}


VOLUMES: dict[str, tuple[tuple[str, ...], str]] = {
    "mongo": (("mongo.storage", "mongo.persistentVolume"), "5Gi"),
    "nats": (("nats_streaming.storage",), "1Gi"),
    "minio": (("minio.storage",), "1Gi"),
    "influxdb": (("influxdb.persistence",), "10Gi"),
    "chronograf": (("chronograf.persistence", "cronograf.persistence"), "2Gi"),
}
"""Of each server where its volume is described, whichever says something first, and its size where none does."""


def _has(path: str) -> str:
    """In CEL: whether all of a path of optional fields is there."""
    parts = path.split(".")
    return " && ".join(f"has(self.{'.'.join(parts[:count])})" for count in range(1, len(parts) + 1))


def _first(paths: tuple[str, ...], otherwise: str) -> str:
    """In CEL: the first of these fields that says something."""
    found = f"'{otherwise}'"
    for path in reversed(paths):
        found = f"({_has(path)} && self.{path} != '' ? self.{path} : {found})"
    return found


def _class_of(volumes: tuple[str, ...]) -> str:
    return _first(tuple(f"{path}.{field}" for path in volumes for field in ("className", "storageClass")), "")


def _before(rule: str) -> str:
    return rule.replace("self.", "oldSelf.")


def _volume_rules() -> tuple[crd.Rule, ...]:
    rules = []
    for server, (paths, _) in VOLUMES.items():
        kind = _class_of(paths)
        kept = " && ".join(f"({_has(f'{path}.enabled')} ? self.{path}.enabled : true)" for path in paths)
        rules += [
            crd.Rule(
                f"({kept}) == ({_before(kept)})",
                f"whether {server} has a volume can't be changed: make a new Runtime, and move what it holds",
            ),
            crd.Rule(
                f"{kind} == {_before(kind)}",
                f"the storage class of {server} can't be changed: make a new Runtime, and move what it holds",
            ),
        ]
    return tuple(rules)


def _size_rules() -> tuple[crd.Rule, ...]:
    """Of the whole object, as its status says what there is: what could not grow is put back."""
    rules = []
    for server, (paths, size) in VOLUMES.items():
        large = _first(tuple(f"{path}.size" for path in paths), size).replace("self.", "self.spec.")
        before, there = large.replace("self.", "oldSelf."), f"self.status.volumeSizes.{server}"
        rules.append(
            crd.Rule(
                f"quantity({large}).compareTo(quantity({before})) >= 0 || (has(self.status) && "
                f"has(self.status.volumeSizes) && has({there}) && isQuantity({there}) && "
                f"quantity({large}).compareTo(quantity({there})) >= 0)",
                f"the volume of {server} can only grow, or go back to the size that it has: "
                "volumes can't be made smaller",
                field_path=".spec",
            )
        )
    return tuple(rules)


def _agree(one: str, other: str) -> crd.Rule:
    rule = f"!({_has(one)}) || !({_has(other)}) || self.{one} == self.{other}"
    return crd.Rule(rule, f"{one} and {other} are the same thing and differ: take one of them out")


class RuntimeSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The desired state."""

    development_mode: bool = False
    entrypoint_tls: Annotated[bool, msgspec.Meta(description="TLS for what is published.")] = msgspec.field(
        name="entrypointTLS", default=False
    )
    runtime: Host | None = None
    entrypoint: Host | None = None
    shared_storage_class: Annotated[str, msgspec.Meta(max_length=253, description="Where a volume names none.")] = ""
    nats: Nats = msgspec.field(name="nats_streaming", default=Nats())
    mongo: Mongo | None = None
    minio: Minio | None = None
    influxdb: Influx = Influx()
    chronograf: Chronograf = Chronograf()
    cronograf: Annotated[Chronograf | None, msgspec.Meta(description="As an old sample spells chronograf.")] = None
    credentials_secret_ref: Annotated[
        SecretRef | None, msgspec.Meta(description="Added. Empty: a Secret is made once, and kept with the volumes.")
    ] = None
    mongo_express: MongoExpress = MongoExpress()
    domain: Annotated[
        str,
        msgspec.Meta(
            max_length=_LONGEST - len(f"{'x' * LONGEST_NAME}."),
            pattern=f"^({_DNS})?$",
            description="Added. Where no host is named, it is the Runtime's name below it.",
        ),
    ] = ""
    ingress: Ingress = Ingress()
    published_version: Annotated[
        str,
        msgspec.Meta(
            max_length=19, description="Added. Calls to what is published are led to this version, once it has started."
        ),
    ] = ""
    publish_on_failure: Annotated[
        Literal["Keep", "Previous"],
        msgspec.Meta(
            description="Added. Where calls are led while the published version has a node without any ready pod: "
            "there still, or to the one published before, as long as that is ready."
        ),
    ] = "Keep"
    reclaim: Annotated[
        Literal["Retain", "Delete"], msgspec.Meta(description="Added. What becomes of volumes and of a made Secret.")
    ] = "Retain"
    values: Annotated[dict[str, Any], msgspec.Meta(description="Added. Further values of the chart.")] = {}

    __cel__ = (
        *_volume_rules(),
        _agree("runtime.host", "entrypoint.host"),
        _agree("mongo.credentials.username", "mongo.auth.adminUser"),
        _agree("mongo.credentials.password", "mongo.auth.adminPassword"),
        *crd.immutable(
            "sharedStorageClass", message="{0} can't be changed: make a new Runtime, and move what it holds"
        ),
    )


MOST_VALUES = 64 * 1024
"""Bytes of spec.values: they are read where all others wait."""


class Kept(msgspec.Struct, frozen=True):
    """A server's volume, whichever way it was described."""

    size: str
    storage_class: str = ""
    enabled: bool = True


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What a spec comes to, in one spelling and without secrets."""

    host: str
    tls: bool
    nats: int  # servers
    volumes: dict[str, Kept]
    switched: dict[str, bool]  # servers that are on or off by the spec's own word
    secret: str  # with the credentials
    named: bool  # it is the user's own
    plain: tuple[str, ...]  # fields that hold passwords in clear
    reader: bool  # mongo has a user that may only read
    reclaim: bool  # volumes, and a Secret that was made, go with the Runtime
    further: int  # bytes of spec.values


def settings(spec: RuntimeSpec, name: str) -> Settings:
    """What the spec of the Runtime of that name comes to."""
    hosts = [each.host for each in (spec.entrypoint, spec.runtime) if each is not None and each.host]
    return Settings(
        host=hosts[0] if hosts else f"{name}.{spec.domain}" if spec.domain else "",
        tls=spec.entrypoint_tls,
        nats=spec.nats.replicas,
        volumes={server: _kept(spec, server) for server in VOLUMES},
        switched=_switched(spec),
        secret=spec.credentials_secret_ref.name if spec.credentials_secret_ref else kinds.CREDENTIALS,
        named=spec.credentials_secret_ref is not None,
        plain=_plain(spec),
        reader=spec.mongo_express.enabled,
        reclaim=spec.reclaim == "Delete",
        further=len(msgspec.json.encode(spec.values)) if spec.values else 0,
    )


def in_clear(spec: RuntimeSpec) -> dict[str, str]:
    """The credentials that stand in the spec itself, by their keys in the Secret."""
    mongo, minio = spec.mongo or Mongo(), spec.minio or Minio()
    auth = mongo.auth or Auth()
    given = {
        "mongoUser": mongo.credentials.username if mongo.credentials else auth.admin_user,
        "mongoPassword": mongo.credentials.password if mongo.credentials else auth.admin_password,
        "minioAccessKey": minio.credentials.access_key if minio.credentials else None,
        "minioSecretKey": minio.credentials.secret_key if minio.credentials else None,
    }
    return {key: text for key, text in given.items() if text}


def _switched(spec: RuntimeSpec) -> dict[str, bool]:
    asked = {
        "influxdb": spec.influxdb.enabled,
        "chronograf": next(
            (it.enabled for it in (spec.cronograf, spec.chronograf) if it and it.enabled is not None), None
        ),
    }
    return {server: on for server, on in asked.items() if on is not None}


def _kept(spec: RuntimeSpec, server: str) -> Kept:
    described = {
        "mongo": [spec.mongo.storage, spec.mongo.persistent_volume] if spec.mongo else [],
        "nats": [spec.nats.storage],
        "minio": [spec.minio.storage] if spec.minio else [],
        "influxdb": [spec.influxdb.persistence],
        "chronograf": [each.persistence for each in (spec.chronograf, spec.cronograf) if each],
    }[server]
    found = [each for each in described if each is not None]
    classes = [name for each in found for name in (each.class_name, each.storage_class) if name]
    sizes = [each.size for each in found if each.size]
    return Kept(
        sizes[0] if sizes else VOLUMES[server][1],
        classes[0] if classes else spec.shared_storage_class,
        all(each.enabled is not False for each in found),
    )


def _plain(spec: RuntimeSpec) -> tuple[str, ...]:
    mongo, minio = spec.mongo or Mongo(), spec.minio or Minio()
    held = {
        "mongo.credentials": mongo.credentials,
        "mongo.auth.adminPassword": mongo.auth and mongo.auth.admin_password,
        "minio.credentials": minio.credentials,
    }
    return tuple(f"spec.{field}" for field, value in held.items() if value)


class Component(msgspec.Struct, frozen=True, omit_defaults=True):
    """One server of the runtime, as its pods are."""

    name: Annotated[str, msgspec.Meta(description="mongo, nats, minio, influxdb or chronograf.")]
    ready: Annotated[int, msgspec.Meta(description="Pods that are ready.")] = 0
    wanted: Annotated[int, msgspec.Meta(description="Pods that there should be.")] = 0
    message: Annotated[str, msgspec.Meta(description="What keeps it from being ready, in its own words.")] = ""


class VolumeSizes(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the claim of each server's smallest volume asks for; a size in the spec may go back to it."""

    mongo: Annotated[str, _ASKED] = ""
    nats: Annotated[str, _ASKED] = ""
    minio: Annotated[str, _ASKED] = ""
    influxdb: Annotated[str, _ASKED] = ""
    chronograf: Annotated[str, _ASKED] = ""


class RuntimeStatus(release_status.HelmStatus, frozen=True, kw_only=True, rename="camel"):
    """The observed state."""

    phase: Annotated[str, msgspec.Meta(description="CREATING, STARTED or ERROR.")] = ""
    nats_servers: Annotated[
        int, msgspec.Meta(description="Servers that NATS was made with, or last seen whole with.")
    ] = 0
    nats_scaled_to: Annotated[
        int, msgspec.Meta(description="Servers that NATS has while the last one leaves; 0 where none does.")
    ] = 0
    published_version: Annotated[
        str, msgspec.Meta(description="The version that calls were last led to as spec.publishedVersion says.")
    ] = ""
    previous_version: Annotated[str, msgspec.Meta(description="The one that was published before it.")] = ""
    components: Annotated[
        tuple[Component, ...],
        msgspec.Meta(extra_json_schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}),
    ] = ()
    volume_sizes: VolumeSizes = VolumeSizes()


class Runtime(msgspec.Struct, frozen=True):
    """A Runtime, as its cache holds it."""

    metadata: meta.ObjectMeta
    spec: RuntimeSpec
    status: RuntimeStatus = RuntimeStatus()


def definition() -> dict[str, object]:
    """The CustomResourceDefinition."""
    ready = '.status.conditions[?(@.type=="Ready")]'
    return crd.crd(
        group=kinds.GROUP,
        version=kinds.VERSION,
        kind=kinds.RUNTIME.kind,
        plural=kinds.RUNTIME.plural,
        spec=RuntimeSpec,
        status=RuntimeStatus,
        rules=(
            crd.Rule(
                f"self.metadata.name.size() <= {LONGEST_NAME} && "
                "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
                f"metadata.name stands in the names of all versions' objects: at most {LONGEST_NAME} lower-case "
                "letters, digits and dashes, beginning with a letter",
            ),
            *_size_rules(),
        ),
        columns=(
            crd.Column("Ready", f"{ready}.status"),
            crd.Column("Status", f"{ready}.reason"),
            crd.Column("Phase", ".status.phase"),
            crd.Column("Message", f"{ready}.message", priority=1),
            crd.Column("Age", ".metadata.creationTimestamp", type="date"),
        ),
    )
