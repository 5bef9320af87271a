"""The OpenCGACommunity kind: the original's fields and those of its samples; ours are marked "Added"."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import msgspec

from moorage.api import common_status, crd, meta

from . import names
from .wanted import overrides

Int32 = {"format": "int32"}
_VERSION = msgspec.Meta(max_length=11, pattern=r"^[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}$", description="X.Y.Z")
_SIZE = msgspec.Meta(max_length=32, pattern=overrides.QUANTITY)
_NAME = msgspec.Meta(
    min_length=1,
    max_length=253,
    pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
)
_KEY = msgspec.Meta(min_length=1, max_length=253)
_HOST = msgspec.Meta(min_length=1, max_length=259, pattern=r"^[a-zA-Z0-9]([-a-zA-Z0-9._]*[a-zA-Z0-9])?(:[0-9]{1,5})?$")
_HOSTS = msgspec.Meta(max_length=16)
_LABELS = msgspec.Meta(max_length=64)
_DURATION = msgspec.Meta(max_length=16, pattern=r"^[0-9]+(s|m|h)$")
_TREE = (
    "keys nested or with dots between them; what is below a key `options` keeps its names. "
    "Nothing secret: moorage refuses keys such as password, as whoever reads "
    "this resource would read them."
)
PASSWORD_RULE = "8 to 100 characters with an upper-case and a lower-case letter, a digit and a special one, no space"  # noqa: S105


def password_fault(text: str) -> str:
    """Why `text` can't be the password of OpenCGA's administrator, or an empty string."""
    if text != text.rstrip("\r\n"):
        return "it ends with a line break, as echo makes one: make the Secret with printf '%s' or with --from-literal"
    kinds = (str.isupper, str.islower, str.isdigit, lambda c: not c.isalnum() and not c.isspace())
    sound = 8 <= len(text) <= 100 and all(any(map(of, text)) for of in kinds) and not any(map(str.isspace, text))
    return "" if sound else f"it must have {PASSWORD_RULE}"


# --- the original's, and its samples' ---------------------------------------------------------------------------


class NamedRef(msgspec.Struct, frozen=True):
    """An object of the same namespace; one of another can't be named."""

    name: Annotated[str, _NAME]


class Process(msgspec.Struct, frozen=True):
    """What is different for one process; its name is that of its pod."""

    name: Annotated[str, _NAME]
    disabled: Annotated[bool, msgspec.Meta(description="Its server is stopped; the pod stays.")] = False


class AutomationConfig(msgspec.Struct, frozen=True):
    """What is different in the agents' configuration."""

    processes: Annotated[tuple[Process, ...], msgspec.Meta(max_length=names.MOST_MEMBERS + 1)] = ()


class Authentication(msgspec.Struct, frozen=True):
    """How the database is logged in to."""

    modes: Annotated[
        tuple[Literal["SCRAM", "SCRAM-SHA-256", "SCRAM-SHA-1"], ...],
        msgspec.Meta(max_length=3, description="The first counts; SCRAM is SCRAM-SHA-256."),
    ] = ()


class Tls(msgspec.Struct, frozen=True, rename="camel"):
    """TLS to the database."""

    enabled: Annotated[
        bool,
        msgspec.Meta(description="Without an authority below those count that the JVM of the image knows."),
    ] = False
    certificate_key_secret_ref: Annotated[
        NamedRef | None,
        msgspec.Meta(
            description="A Secret of type kubernetes.io/tls whose tls.crt and tls.key servers show the database, "
            "where it asks for a certificate; a renewed one restarts members one at a time."
        ),
    ] = None
    ca_config_map_ref: Annotated[
        NamedRef | None, msgspec.Meta(description="A ConfigMap whose ca.crt signs the database's certificate.")
    ] = None
    ca_certificate_secret_ref: Annotated[
        NamedRef | None, msgspec.Meta(description="The same in a Secret, which counts before the ConfigMap.")
    ] = None


class Security(msgspec.Struct, frozen=True):
    """How the database is reached."""

    authentication: Authentication = Authentication()
    tls: Tls = Tls()


class OverrideMetadata(msgspec.Struct, frozen=True):
    """On the StatefulSets; labels and annotations of moorage's own stay."""

    labels: Annotated[dict[str, str], _LABELS] = {}
    annotations: Annotated[dict[str, str], _LABELS] = {}


class StatefulSetOverride(msgspec.Struct, frozen=True):
    """Merged over the StatefulSet of the REST members: lists of named things by name, else what stands here counts."""

    spec: dict[str, Any] = {}
    metadata: OverrideMetadata = OverrideMetadata()


class Prometheus(msgspec.Struct, frozen=True, rename="camel"):
    """Where metrics are. Taken as the original's, and not used: see metrics."""

    username: Annotated[str, msgspec.Meta(max_length=253)] = ""
    password_secret_ref: NamedRef | None = None
    metrics_path: Annotated[str, msgspec.Meta(max_length=64)] = "/metrics"
    port: Annotated[int, msgspec.Meta(ge=1, le=65535, extra_json_schema=Int32)] = 9216
    tls_secret_key_ref: NamedRef | None = None


# --- ours ---------------------------------------------------------------------------------------------------------


class Amounts(msgspec.Struct, frozen=True):
    """CPU and memory."""

    cpu: Annotated[str, _SIZE] | None = None
    memory: Annotated[str, _SIZE] | None = None


class Resources(msgspec.Struct, frozen=True):
    """Of the server's container. The JVM's heap follows from the memory limit."""

    limits: Amounts
    requests: Amounts = Amounts()

    __cel__ = (
        crd.Rule(
            "!has(self.limits.memory) || quantity(self.limits.memory).compareTo(quantity('1Gi')) >= 0",
            "limits.memory must be at least 1Gi: less can't hold the server's heap",
            field_path=".limits",
        ),
    )


class CredentialsRef(msgspec.Struct, frozen=True, rename="camel"):
    """A Secret with a user of the database and its password."""

    name: Annotated[str, _NAME]
    user_key: Annotated[str, _KEY] = "username"
    password_key: Annotated[str, _KEY] = "password"  # noqa: S105 - its name


class Database(msgspec.Struct, frozen=True, rename="camel"):
    """Added. The MongoDB replica set that keeps the catalog."""

    hosts: Annotated[tuple[Annotated[str, _HOST], ...], _HOSTS] = ()
    replica_set: Annotated[str, msgspec.Meta(max_length=63)] = ""
    authentication_database: Annotated[str, msgspec.Meta(max_length=63)] = "admin"
    credentials_secret_ref: CredentialsRef | None = None
    prefix: Annotated[
        str,
        msgspec.Meta(
            min_length=1,
            max_length=32,
            pattern=r"^[a-z][a-z0-9_]*$",
            description="What the names of its databases begin with; no other installation may use the same.",
        ),
    ] = "opencga"

    def places(self, namespace: str) -> frozenset[str]:
        """Where these databases are, each server in one spelling, as seen from pods of that namespace."""
        return frozenset(_server(host, namespace) for host in self.hosts)


def _server(host: str, namespace: str) -> str:
    name, _, port = host.lower().partition(":")
    name = re.sub(r"[.]svc([.].*)?$", "", name).removesuffix(f".{namespace}")
    return f"{name}:{port or 27017}"


class Search(msgspec.Struct, frozen=True):
    """Added. Solr."""

    hosts: Annotated[tuple[Annotated[str, _HOST], ...], _HOSTS] = ()


class Cellbase(msgspec.Struct, frozen=True):
    """Added. CellBase, which annotates variants."""

    url: Annotated[str, msgspec.Meta(max_length=2048, pattern=r"^https?://[^\s@]+$")] = ""
    version: Annotated[str, msgspec.Meta(max_length=63)] = ""


class PasswordRef(msgspec.Struct, frozen=True):
    """A Secret with a password."""

    name: Annotated[str, _NAME]
    key: Annotated[str, _KEY] = "password"


class Admin(msgspec.Struct, frozen=True, rename="camel"):
    """Added. OpenCGA's administrator."""

    password_secret_ref: Annotated[
        PasswordRef | None, msgspec.Meta(description="Left out: NAME-admin-password, key password.")
    ] = None
    email: Annotated[str, msgspec.Meta(max_length=253, pattern=r"^[^\s@]+@[^\s@]+$")] = "admin@opencga.local"


class DataVolume(msgspec.Struct, frozen=True, rename="camel"):
    """The volume of each pod: sessions, variants, logs, and what its agent keeps."""

    size: Annotated[
        str,
        msgspec.Meta(
            max_length=32, pattern=overrides.QUANTITY, description="May grow later, where the storage class allows it."
        ),
    ] = "10G"
    storage_class_name: Annotated[str, msgspec.Meta(max_length=253)] | None = None
    reclaim_on_scale_down: Annotated[
        Literal["Delete", "Retain"], msgspec.Meta(description="What becomes of the volume of a member that has left.")
    ] = "Retain"
    reclaim_on_delete: Annotated[
        Literal["Delete", "Retain"],
        msgspec.Meta(description="What becomes of the volumes of a deleted installation."),
    ] = "Retain"


class SharedVolume(msgspec.Struct, frozen=True, rename="camel"):
    """Sessions and variants of all pods on one volume, which must be one that many nodes may mount."""

    claim_name: Annotated[str, _NAME]


class Volumes(msgspec.Struct, frozen=True):
    """Added. Where data is."""

    data: DataVolume = DataVolume()
    shared: SharedVolume | None = None


class Client(msgspec.Struct, frozen=True, rename="camel"):
    """Added. The MASTER, which runs migrations and jobs; it is always one."""

    resources: Resources = Resources(Amounts(memory="4Gi"), Amounts(cpu="500m", memory="2Gi"))
    shell: Annotated[bool, msgspec.Meta(description="Whether people work in its container, by `moorage shell`.")] = True
    service_account_name: Annotated[
        str,
        msgspec.Meta(
            max_length=253,
            pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$",
            description="As whom the MASTER makes jobs where analysis.execution.id is k8s. Its token is in the "
            "server's container alone; left out, no pod has one.",
        ),
    ] = ""


class Timeouts(msgspec.Struct, frozen=True):
    """Added. How long each may take before it is called overdue, such as 90s, 15m or 1h."""

    startup: Annotated[
        str,
        msgspec.Meta(max_length=16, pattern=r"^[0-9]+(s|m|h)$", description="Of a pod, until its member is ready."),
    ] = "15m"
    step: Annotated[str, _DURATION] = "30m"
    migration: Annotated[str, _DURATION] = "12h"


class Backup(msgspec.Struct, frozen=True):
    """A command that is run in the MASTER's container, without a shell of its own."""

    command: Annotated[
        tuple[Annotated[str, msgspec.Meta(max_length=4096)], ...],
        msgspec.Meta(
            min_length=1,
            max_length=32,
            description="A program of the image by its path, and its arguments. It may be run again where its "
            "container ended before it did; nothing secret may stand in it.",
        ),
    ]

    __cel__ = (
        crd.Rule(
            "self.command[0].startsWith('/')",
            "the program must be named by its path, such as /bin/sh",
            field_path=".command",
        ),
        crd.Rule(
            "self.command.all(word, word != '--force')",
            "--force is never passed on, as it drops what is there",
            field_path=".command",
        ),
    )


class Upgrade(msgspec.Struct, frozen=True):
    """Added. What a new version may do."""

    migration: Annotated[
        Literal["Auto", "Offline", "Manual"],
        msgspec.Meta(
            description="Auto: migrations are run that let the old version work on; Offline: for others REST servers "
            "are stopped meanwhile; Manual: a person runs all of them."
        ),
    ] = "Auto"
    backup: Annotated[
        Backup | None,
        msgspec.Meta(description="Run before a migration; one that fails holds the upgrade, and nothing is migrated."),
    ] = None


class Ingress(msgspec.Struct, frozen=True, rename="camel"):
    """Added. How REST servers are reached from outside the cluster."""

    host: Annotated[
        str,
        msgspec.Meta(max_length=253, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"),
    ]
    class_name: Annotated[
        str, msgspec.Meta(max_length=253, description="Of the controller; empty: the cluster's own choice.")
    ] = ""
    path: Annotated[
        str,
        msgspec.Meta(
            max_length=253,
            pattern=r"^(/[-a-zA-Z0-9._~]+)*/?$",
            description="What is led to the servers; empty: what their paths begin with. They see it as it was asked.",
        ),
    ] = ""
    tls_secret_ref: Annotated[
        NamedRef | None,
        msgspec.Meta(
            description="A Secret of type kubernetes.io/tls, which the controller reads: a renewed one restarts nobody."
        ),
    ] = None
    annotations: Annotated[
        dict[str, Annotated[str, msgspec.Meta(max_length=1024)]],
        msgspec.Meta(max_length=32, description="For the controller, or for who makes certificates."),
    ] = {}

    __cel__ = (
        crd.Rule(
            "!has(self.annotations) || self.annotations.all(key, !key.startsWith('moorage.dev/'))",
            "annotations that begin with moorage.dev/ are moorage's own",
            field_path=".annotations",
        ),
        crd.Rule(
            "!has(self.annotations) || self.annotations.all(key, !key.endsWith('-snippet'))",
            "annotations can't hold a snippet, which would be configuration of a controller that others use too",
            field_path=".annotations",
        ),
        crd.Rule(
            "!has(self.annotations) || "
            "self.annotations.all(key, !key.endsWith('-secret') || !self.annotations[key].contains('/'))",
            "annotations can name Secrets of this namespace alone: a name without a /",
            field_path=".annotations",
        ),
    )


class ServiceMonitor(msgspec.Struct, frozen=True):
    """What is made where the API server knows the kind; where it does not, nothing is missing."""

    enabled: bool = True
    interval: Annotated[
        str,
        msgspec.Meta(
            max_length=16, pattern=r"^([0-9]+(s|m|h))?$", description="Between two questions; empty: Prometheus' own."
        ),
    ] = ""
    labels: Annotated[
        dict[str, str],
        msgspec.Meta(max_length=64, description="By which a Prometheus chooses it; moorage's own stay."),
    ] = {}


class Metrics(msgspec.Struct, frozen=True, rename="camel"):
    """Added. What agents tell Prometheus, and so everybody who reaches that port: nothing secret is among it."""

    enabled: bool = False
    port: Annotated[
        int,
        msgspec.Meta(ge=1024, le=65535, description="Of each pod, for metrics alone.", extra_json_schema=Int32),
    ] = 9216
    service_monitor: ServiceMonitor = ServiceMonitor()


class DisruptionBudget(msgspec.Struct, frozen=True):
    """Added. One REST member at a time may be taken away by others."""

    enabled: bool = True


class CommunitySpec(msgspec.Struct, frozen=True, rename="camel"):
    """The desired state."""

    version: Annotated[str, _VERSION]
    members: Annotated[
        int,
        msgspec.Meta(
            ge=0,
            le=names.MOST_MEMBERS,
            description="How many REST servers there are, beside the MASTER.",
            extra_json_schema=Int32,
        ),
    ] = 3
    type: Literal["ReplicaSet"] = "ReplicaSet"
    automation_config: AutomationConfig = AutomationConfig()
    security: Security = Security()
    stateful_set: StatefulSetOverride = StatefulSetOverride()
    additional_config: Annotated[
        dict[str, Any], msgspec.Meta(description=f"What is different in configuration.yml: {_TREE}")
    ] = msgspec.field(name="additionalOpenCGAConfig", default_factory=dict)
    prometheus: Prometheus | None = None

    configuration: Annotated[
        dict[str, Any], msgspec.Meta(description=f"Added. The same as additionalOpenCGAConfig: {_TREE}")
    ] = {}
    storage: Annotated[
        dict[str, Any],
        msgspec.Meta(description=f"Added. What is different in storage-configuration.yml: {_TREE}"),
    ] = {}
    client_configuration: Annotated[
        dict[str, Any], msgspec.Meta(description=f"Added. What is different in client-configuration.yml: {_TREE}")
    ] = {}
    resources: Annotated[Resources, msgspec.Meta(description="Added. Of each REST server.")] = Resources(
        Amounts(memory="2Gi"), Amounts(cpu="500m", memory="1Gi")
    )
    client: Client = Client()
    database: Database = Database()
    search: Search = Search()
    cellbase: Cellbase = Cellbase()
    admin: Admin = Admin()
    volumes: Volumes = Volumes()
    anti_affinity: Annotated[
        Literal["Required", "Preferred", "None"],
        msgspec.Meta(description="Added. Whether two REST members may share a node."),
    ] = "Preferred"
    pod_disruption_budget: DisruptionBudget = DisruptionBudget()
    timeouts: Timeouts = Timeouts()
    upgrade: Upgrade = Upgrade()
    ingress: Ingress | None = None
    metrics: Metrics = Metrics()
    hibernate: Annotated[
        bool,
        msgspec.Meta(
            description="Added. True: REST servers and the MASTER are stopped, and all data is kept; False: they are "
            "back as they were."
        ),
    ] = False

    __cel__ = (
        crd.Rule(
            "self.database.prefix == oldSelf.database.prefix",
            "database.prefix can't be changed: it names the databases that hold the catalog",
            field_path=".database",
        ),
        crd.Rule(
            "has(self.volumes.data.storageClassName) == has(oldSelf.volumes.data.storageClassName) && "
            "(!has(self.volumes.data.storageClassName) || "
            "self.volumes.data.storageClassName == oldSelf.volumes.data.storageClassName)",
            "volumes.data.storageClassName can't be changed: make a new installation",
            field_path=".volumes",
        ),
    )

    def is_disabled(self, pod: str) -> bool:
        """Whether the server of that pod is to be stopped, while its pod stays."""
        return any(each.name == pod and each.disabled for each in self.automation_config.processes)


# --- status -------------------------------------------------------------------------------------------------------


class MemberStatus(msgspec.Struct, frozen=True, rename="camel"):
    """One pod, as its agent and the cluster see it."""

    name: str
    role: str
    ready: bool = False
    version: Annotated[str, msgspec.Meta(description="What its server tells.")] = ""
    configuration: Annotated[int, msgspec.Meta(description="The version that its agent has applied; -1: none.")] = -1
    step: Annotated[str, msgspec.Meta(description="Where its agent stands; empty when it is done.")] = ""
    since: str = ""
    error: str = ""


class CommunityStatus(common_status.Status, frozen=True, kw_only=True, rename="camel"):
    """The observed state."""

    opencgarest_uri: str = ""
    phase: Annotated[
        str, msgspec.Meta(description="Running, Pending or Failed; Hibernated where spec.hibernate has it so.")
    ] = ""
    version: Annotated[str, msgspec.Meta(max_length=11, description="What all members ran when all was well last.")] = (
        ""
    )
    current_stateful_set_replicas: Annotated[int, msgspec.Meta(extra_json_schema=Int32)] = 0
    current_rest_members: Annotated[
        int, msgspec.Meta(description="Members with a place in the configuration.", extra_json_schema=Int32)
    ] = msgspec.field(name="currentOpenCGARESTMembers", default=0)
    message: str = ""
    member_statuses: tuple[MemberStatus, ...] = ()
    configuration_version: Annotated[int, msgspec.Meta(description="Of the document that agents should apply.")] = 0
    configuration_digest: Annotated[str, msgspec.Meta(description="Names what is in it.")] = ""
    catalog_version: Annotated[
        str,
        msgspec.Meta(
            max_length=11,
            pattern=r"^([0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3})?$",
            description="What the catalog was migrated to; there is no way back before it.",
        ),
    ] = ""
    stopped_for: Annotated[
        str,
        msgspec.Meta(
            max_length=11,
            description="The version to which the catalog is migrated while REST servers are stopped; empty otherwise.",
        ),
    ] = ""
    volume_size: Annotated[
        str, msgspec.Meta(max_length=32, description="What the claim of the smallest volume asks for.")
    ] = ""
    selector: Annotated[str, msgspec.Meta(description="Of the REST pods, for the scale subresource.")] = ""


class Community(msgspec.Struct, frozen=True):
    """An OpenCGACommunity, as its cache holds it."""

    metadata: meta.ObjectMeta
    spec: CommunitySpec
    status: CommunityStatus = CommunityStatus()


def _number(path: str) -> str:
    """A version as one number, in CEL."""
    parts = (f"int({path}.split('.')[{place}]) * {weight}" for place, weight in enumerate((1_000_000, 1_000, 1)))
    return " + ".join(parts)


_NO_WAY_BACK = crd.Rule(
    "!has(self.status) || !has(self.status.catalogVersion) || self.status.catalogVersion == '' || "
    f"{_number('self.spec.version')} >= {_number('self.status.catalogVersion')}",
    "version can't go below status.catalogVersion: the catalog was migrated to that, and there is no way back",
    field_path=".spec.version",
)

_NO_SMALLER = crd.Rule(
    "quantity(self.spec.volumes.data.size).compareTo(quantity(oldSelf.spec.volumes.data.size)) >= 0 || "
    "(has(self.status) && has(self.status.volumeSize) && isQuantity(self.status.volumeSize) && "
    "quantity(self.spec.volumes.data.size).compareTo(quantity(self.status.volumeSize)) >= 0)",
    "volumes.data.size can only grow, or go back to the size that all volumes have: volumes can't be made smaller",
    field_path=".spec.volumes",
)


def definition() -> dict[str, object]:
    """The CustomResourceDefinition."""
    return crd.crd(
        group=names.GROUP,
        version=names.VERSION,
        kind=names.COMMUNITY.kind,
        plural=names.COMMUNITY.plural,
        short_names=("ocbc",),
        spec=CommunitySpec,
        status=CommunityStatus,
        scale=crd.Scale(".spec.members", ".status.currentStatefulSetReplicas", ".status.selector"),
        rules=(
            crd.Rule(
                "self.metadata.name.size() <= 40 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
                "metadata.name names Services and pods: at most 40 lower-case letters, digits and dashes, beginning "
                "with a letter",
            ),
            _NO_SMALLER,
            _NO_WAY_BACK,
        ),
        columns=(
            crd.Column("RestURI", ".status.opencgarestUri"),
            crd.Column("Phase", ".status.phase"),
            crd.Column("Version", ".status.version"),
            crd.Column("Members", ".status.currentOpenCGARESTMembers", type="integer"),
            crd.Column("Message", ".status.message", priority=1),
            crd.Column("Age", ".metadata.creationTimestamp", type="date"),
        ),
    )


def number(version: str) -> tuple[int, ...]:
    """A version in an order; of one that is none, the least."""
    parts = version.split(".")
    return tuple(map(int, parts)) if len(parts) == 3 and all(map(str.isdecimal, parts)) else (0, 0, 0)
