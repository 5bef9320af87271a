"""The XsldCache kind: the original's fields with their types; those that it lacks are marked "Added" in their text."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from moorage.api import common_status, crd, meta
from moorage.children import ordinals
from moorage.operators.xsld import names

Int32 = {"format": "int32"}
SPECIALS = "~!@#$%^&*()_+=:;'[]{}|<>,.?/-"
PASSWORD_RULE = (
    "at least 10 characters, with a digit, an upper-case letter and one of "
    "~!@#$%^&*()_-+=:;'[]{}|<>,.?/ , and no double quote or control character"
)


def password_fault(text: str) -> str:
    """Why `text` can't be an administrator's password or a group's secret key, or an empty string.

    A line break at its end is taken off by every shell that reads it, so that people would be refused.
    """
    if text != text.rstrip("\r\n"):
        return "it ends with a line break, as echo makes one: make the Secret with printf '%s' or with --from-literal"
    sound = (
        len(text) >= 10
        and any(c in "0123456789" for c in text)
        and any("A" <= c <= "Z" for c in text)
        and any(c in SPECIALS for c in text)
        and '"' not in text
        and not any(c < " " or c == "\x7f" for c in text)
    )
    return "" if sound else f"it must have {PASSWORD_RULE}"


def _password(field: str) -> tuple[crd.Rule, ...]:
    return (
        crd.Rule(
            f"!has(self.{field}) || (self.{field}.matches('[0-9]') && self.{field}.matches('[A-Z]')"
            f" && self.{field}.matches('[-~!@#$%^&*()_+=:;\\'\\\\[\\\\]{{}}|<>,.?/]')"
            f" && !self.{field}.contains('\"') && !self.{field}.matches('[[:cntrl:]]'))",
            f"{field} must have {PASSWORD_RULE}",
            field_path=f".{field}",
        ),
        crd.Rule(
            f"!has(self.{field}) || (has(oldSelf.{field}) && self.{field} == oldSelf.{field})",
            f"{field} can't be changed; to change how it is given, move it to a Secret and name that in "
            "credentialsSecretRef",
            field_path=f".{field}",
        ),
    )


class CredentialsRef(msgspec.Struct, frozen=True, rename="camel"):
    """A Secret of the cache's namespace that holds both credentials."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=253)]
    admin_pwd_key: Annotated[str, msgspec.Meta(min_length=1, max_length=253)] = "adminPwd"
    secret_key_key: Annotated[str, msgspec.Meta(min_length=1, max_length=253)] = "secretKey"


class Storage(msgspec.Struct, frozen=True, rename="camel"):
    """The volume of each member."""

    size: Annotated[
        str,
        msgspec.Meta(
            max_length=32,
            pattern=r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$",
            description="May grow later, where the storage class allows it.",
        ),
    ] = "100Mi"
    storage_class_name: Annotated[str, msgspec.Meta(max_length=253)] | None = None
    access_modes: Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=4)] = ("ReadWriteOnce",)
    ephemeral: Annotated[
        bool, msgspec.Meta(description="Members keep nothing when their pod is replaced, and join the group anew.")
    ] = False
    reclaim_on_scale_down: Annotated[
        Literal["Delete", "Retain"], msgspec.Meta(description="What becomes of the volume of a member that has left.")
    ] = "Delete"
    reclaim_on_delete: Annotated[
        Literal["Delete", "Retain"], msgspec.Meta(description="What becomes of the volumes of a deleted cache.")
    ] = "Delete"


class Pod(msgspec.Struct, frozen=True, rename="camel"):
    """Settings of the members' pods; each is what the field of the same name is in a pod."""

    service_account_name: Annotated[str, msgspec.Meta(max_length=253)] = ""
    image_pull_secrets: Annotated[tuple[dict[str, Any], ...], msgspec.Meta(max_length=16)] = ()
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    resources: dict[str, Any] = {}
    node_selector: Annotated[dict[str, str], msgspec.Meta(max_length=64)] = {}
    tolerations: Annotated[tuple[dict[str, Any], ...], msgspec.Meta(max_length=64)] = ()
    affinity: dict[str, Any] = {}
    anti_affinity: Annotated[
        Literal["Required", "Preferred", "None"],
        msgspec.Meta(description="Whether two members of the cache may share a node."),
    ] = "Preferred"
    topology_spread_constraints: Annotated[tuple[dict[str, Any], ...], msgspec.Meta(max_length=16)] = ()
    priority_class_name: Annotated[str, msgspec.Meta(max_length=253)] = ""
    security_context: dict[str, Any] = {}
    annotations: Annotated[dict[str, str], msgspec.Meta(max_length=64)] = {}
    labels: Annotated[dict[str, str], msgspec.Meta(max_length=64)] = {}
    env: Annotated[tuple[dict[str, Any], ...], msgspec.Meta(max_length=128)] = ()
    termination_grace_period_seconds: Annotated[int, msgspec.Meta(ge=1, le=86_400)] = 180


class DerbyReplication(msgspec.Struct, frozen=True, rename="camel"):
    """The copy of the group's administrative database on a second member."""

    mode: Annotated[
        Literal["Auto", "Enabled", "Disabled"],
        msgspec.Meta(
            description="Auto and Enabled keep a copy at two or more members; Enabled calls it degraded to have none."
        ),
    ] = "Auto"
    failover_seconds: Annotated[
        int, msgspec.Meta(ge=5, le=86_400, description="How long the primary may be down before the copy takes over.")
    ] = 60


class UpdateStrategy(msgspec.Struct, frozen=True, rename="camel"):
    """How a change of image or pod settings reaches the members."""

    type: Annotated[
        Literal["Gated", "OnDelete"],
        msgspec.Meta(description="Gated replaces member after member, each once the group is well; OnDelete waits."),
    ] = "Gated"
    member_timeout: Annotated[
        str, msgspec.Meta(max_length=16, pattern=r"^[0-9]+(s|m|h)$", description="How long a new member may take.")
    ] = "15m"
    settle: Annotated[
        str,
        msgspec.Meta(
            max_length=16,
            pattern=r"^[0-9]+(s|m|h)$",
            description="How long a new member has worked before the next is replaced: time to copy grid data to it.",
        ),
    ] = "30s"
    pause_on_failure: Annotated[
        bool, msgspec.Meta(description="Call an update stalled when a member is not back in time; else wait on.")
    ] = True
    rollback: Annotated[
        bool,
        msgspec.Meta(description="When a member of a new image is not back in time, run the last good image again."),
    ] = False


class Service(msgspec.Struct, frozen=True, rename="camel"):
    """The client Service."""

    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = "ClusterIP"
    annotations: Annotated[dict[str, str], msgspec.Meta(max_length=64)] = {}


class Tls(msgspec.Struct, frozen=True, rename="camel"):
    """How the operator verifies the admin API."""

    ca_secret_ref: Annotated[
        str, msgspec.Meta(max_length=253, description="A Secret whose ca.crt signs the members' certificates.")
    ] = ""
    insecure_skip_verify: Annotated[
        bool,
        msgspec.Meta(
            description="Takes any certificate, as self-signed ones are the product's way, unless caSecretRef is given."
        ),
    ] = True

    @property
    def verified(self) -> bool:
        """Whether the members' certificates are verified: always where it is said by whom they are signed."""
        return bool(self.ca_secret_ref) or not self.insecure_skip_verify


class DisruptionBudget(msgspec.Struct, frozen=True):
    """The PodDisruptionBudget: one member at a time."""

    enabled: bool = True


_DURATION = msgspec.Meta(max_length=16, pattern=r"^[0-9]+(s|m|h)$")


class Timeouts(msgspec.Struct, frozen=True):
    """How long each may take before it is called overdue, such as 90s, 15m or 1h."""

    startup: Annotated[str, _DURATION] = "15m"
    join: Annotated[str, _DURATION] = "15m"
    disjoin: Annotated[str, _DURATION] = "15m"
    replication: Annotated[str, _DURATION] = "15m"


class XsldCacheSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The desired state."""

    license: Annotated[Literal["accept"], msgspec.Meta(description="The licence of the product must be accepted.")]
    size: Annotated[
        int,
        msgspec.Meta(
            ge=1, le=names.MOST_MEMBERS, description="How many members the group has.", extra_json_schema=Int32
        ),
    ]
    admin_pwd: (
        Annotated[
            str,
            msgspec.Meta(
                min_length=10,
                max_length=128,
                description="The administrator's password. Rather name a Secret in credentialsSecretRef.",
            ),
        ]
        | None
    ) = None
    secret_key: (
        Annotated[
            str,
            msgspec.Meta(
                min_length=10, max_length=128, description="Guards the traffic between members. Rather name a Secret."
            ),
        ]
        | None
    ) = None
    image: Annotated[
        str,
        msgspec.Meta(
            min_length=1,
            max_length=512,
            pattern=r"^[a-zA-Z0-9][a-zA-Z0-9._:/-]*(@sha256:[a-f0-9]{64})?$",
            description="repository:tag",
        ),
    ] = "ibmcom/xsld:latest"
    capacity: Annotated[
        int, msgspec.Meta(ge=1, le=100_000, description="Of each member, in GB.", extra_json_schema=Int32)
    ] = 1
    catalogs: Annotated[
        int,
        msgspec.Meta(
            ge=1, le=100, description="The first so many members run catalog servers.", extra_json_schema=Int32
        ),
    ] = 3
    group: Annotated[str, msgspec.Meta(min_length=1, max_length=64, description="The cache member group.")] = "cg1"
    entrypoint_config_map: Annotated[
        str, msgspec.Meta(max_length=253, description="A ConfigMap whose entrypoint.sh starts the container instead.")
    ] = ""
    credentials_secret_ref: CredentialsRef | None = None
    storage: Storage = Storage()
    pod: Pod = Pod()
    derby_replication: DerbyReplication = DerbyReplication()
    update_strategy: UpdateStrategy = UpdateStrategy()
    service: Service = Service()
    debug_node_ports: Annotated[bool, msgspec.Meta(description="One NodePort Service per member.")] = False
    readiness_gate: Annotated[
        bool, msgspec.Meta(description="A pod is ready only while the group itself counts its member as Online.")
    ] = False
    tls: Tls = Tls()
    pod_disruption_budget: DisruptionBudget = DisruptionBudget()
    timeouts: Timeouts = Timeouts()

    __cel__ = (
        *crd.immutable("license", "capacity", "group"),
        *_password("adminPwd"),
        *_password("secretKey"),
        crd.Rule(
            "has(self.adminPwd) == has(self.secretKey)",
            "give both adminPwd and secretKey, or neither and name a Secret in credentialsSecretRef",
        ),
        crd.Rule(
            "has(self.adminPwd) != has(self.credentialsSecretRef)",
            "give either adminPwd and secretKey, or credentialsSecretRef, but not both",
        ),
        crd.Rule(
            "self.storage.ephemeral == oldSelf.storage.ephemeral",
            "storage.ephemeral can't be changed: make a new cache",
            field_path=".storage",
        ),
        crd.Rule(
            "has(self.storage.storageClassName) == has(oldSelf.storage.storageClassName) && "
            "(!has(self.storage.storageClassName) || "
            "self.storage.storageClassName == oldSelf.storage.storageClassName)",
            "storage.storageClassName can't be changed: make a new cache",
            field_path=".storage",
        ),
        crd.Rule(
            "self.storage.accessModes == oldSelf.storage.accessModes",
            "storage.accessModes can't be changed: make a new cache",
            field_path=".storage",
        ),
    )


REMOVED = "Removed"
"""State of a member that the group has no more, until it is known what it leaves behind; others are the group's."""


class MemberStatus(msgspec.Struct, frozen=True, rename="camel"):
    """One member, as the group and the cluster see it."""

    name: str
    ordinal: int
    pod_ip: str = msgspec.field(name="podIP", default="")
    registered_ip: str = msgspec.field(name="registeredIP", default="")
    state: str = ""
    catalog: bool = False
    image: str = ""
    online_since: Annotated[str, msgspec.Meta(description="Since when it is Online; empty while it is not.")] = ""
    started_at: Annotated[
        str, msgspec.Meta(description="When the container was started in which it was Online last.")
    ] = ""


class Replication(msgspec.Struct, frozen=True):
    """Who keeps the copy of the administrative database."""

    master: str = ""
    slave: str = ""
    state: str = ""  # Off, Starting, Running, Broken
    progress: int = 0


COMMANDS = frozenset({"Join", "Leave", "Replicate", "Failover"})


class CurrentTask(msgspec.Struct, frozen=True, rename="camel"):
    """What was asked of the group and is not known to have ended. Written before it is asked."""

    intent: Annotated[str, msgspec.Meta(description="Stands in the task's description; finds it after a crash.")]
    command: Annotated[str, msgspec.Meta(description="Join, Leave, Replicate or Failover.")]
    target: Annotated[str, msgspec.Meta(description="The member it is about.")]
    endpoint: Annotated[str, msgspec.Meta(description="The member that was asked.")]
    started_at: str = ""
    id: Annotated[int, msgspec.Meta(description="The task's id at that member; 0 until it is known.")] = 0
    attempts: int = 1
    refused: Annotated[str, msgspec.Meta(description="Why the member would not take it.")] = ""


class TaskProgress(msgspec.Struct, frozen=True):
    """How far the current task is."""

    intent: str
    percent: int
    at: Annotated[str, msgspec.Meta(description="Since when it has been that far.")]


class Left(msgspec.Struct, frozen=True):
    """A member that left, and what it left behind: nobody may join with that."""

    member: str
    volume: Annotated[str, msgspec.Meta(description="The uid of its PersistentVolumeClaim.")] = ""
    pod: Annotated[str, msgspec.Meta(description="The uid of its pod.")] = ""


class Trouble(msgspec.Struct, frozen=True):
    """A command that failed, until it succeeds, the spec changes, or nothing is left to do."""

    command: str
    target: str
    attempts: int
    at: str
    message: str = ""
    generation: int = 0


class XsldCacheStatus(common_status.Status, frozen=True, kw_only=True, rename="camel"):
    """The observed state."""

    members: Annotated[int, msgspec.Meta(description="Members that have joined.", extra_json_schema=Int32)] = 0
    online: Annotated[int, msgspec.Meta(description="Members that are Online.", extra_json_schema=Int32)] = 0
    pending_tasks: Annotated[int, msgspec.Meta(description="Tasks that run or wait.", extra_json_schema=Int32)] = 0
    grids: tuple[str, ...] = ()
    size: Annotated[int, msgspec.Meta(description="The wanted size that this status speaks of.")] = 0
    grid_count: int = 0
    phase: Annotated[
        str,
        msgspec.Meta(description="Pending, Creating, Running, Scaling, Updating, Degraded, Failed or Deleting."),
    ] = ""
    primary: Annotated[str, msgspec.Meta(description="The pod of the member that takes administrative writes.")] = ""
    catalog_members: tuple[str, ...] = ()
    member_statuses: tuple[MemberStatus, ...] = ()
    replication: Replication = Replication()
    current_task: CurrentTask | None = None
    task_progress: TaskProgress | None = None
    left: Annotated[
        tuple[Left, ...],
        msgspec.Meta(
            description="Members that left, until their volumes are gone.",
            extra_json_schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["member"]},
        ),
    ] = ()
    troubles: Annotated[
        tuple[Trouble, ...],
        msgspec.Meta(
            description="Commands that failed, and have not succeeded since.",
            extra_json_schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["command", "target"]},
        ),
    ] = ()
    current_image: str = ""
    target_image: str = ""
    good_image: Annotated[str, msgspec.Meta(description="The image of all members when all was well last.")] = ""
    failed_image: Annotated[
        str, msgspec.Meta(description="The image that was rolled back; not tried again while the spec names it.")
    ] = ""
    grows_after: Annotated[
        str, msgspec.Meta(description="The template's revision that members get before pods without a place are made.")
    ] = ""
    volume_size: Annotated[
        str,
        msgspec.Meta(
            max_length=32,
            description="What the claim of the smallest volume asks for; spec.storage.size may go back to it.",
        ),
    ] = ""
    selector: Annotated[str, msgspec.Meta(description="Of the pods, for the scale subresource.")] = ""

    def primary_of(self, cache: str) -> str:
        """Who was the primary when last seen, else who forms the group. A name of no pod of the cache says nothing."""
        return self.primary if ordinals.of(cache, self.primary) >= 0 else ordinals.pod(cache, 0)


_NO_SMALLER = crd.Rule(
    "quantity(self.spec.storage.size).compareTo(quantity(oldSelf.spec.storage.size)) >= 0 || "
    "(has(self.status) && has(self.status.volumeSize) && isQuantity(self.status.volumeSize) && "
    "quantity(self.spec.storage.size).compareTo(quantity(self.status.volumeSize)) >= 0)",
    "storage.size can only grow, or go back to the size that all volumes have: volumes can't be made smaller",
    field_path=".spec.storage",
)


class XsldCache(msgspec.Struct, frozen=True):
    """An XsldCache, as its cache holds it."""

    metadata: meta.ObjectMeta
    spec: XsldCacheSpec
    status: XsldCacheStatus = XsldCacheStatus()


def definition() -> dict[str, object]:
    """The CustomResourceDefinition."""
    return crd.crd(
        group=names.GROUP,
        version=names.VERSION,
        kind=names.CACHE.kind,
        plural=names.CACHE.plural,
        short_names=("xsld",),
        spec=XsldCacheSpec,
        status=XsldCacheStatus,
        scale=crd.Scale(".spec.size", ".status.members", ".status.selector"),
        rules=(
            crd.Rule(
                "self.metadata.name.size() <= 52 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
                "metadata.name names a Service and pods: at most 52 lower-case letters, digits and dashes, beginning "
                "with a letter",
            ),
            _NO_SMALLER,
        ),
        columns=(
            crd.Column("Size", ".spec.size", type="integer"),
            crd.Column("Members", ".status.members", type="integer"),
            crd.Column("Online", ".status.online", type="integer"),
            crd.Column("Tasks", ".status.pendingTasks", type="integer"),
            crd.Column("Grids", ".status.gridCount", type="integer"),
            crd.Column("Phase", ".status.phase"),
            crd.Column("Message", '.status.conditions[?(@.type=="Ready")].message', priority=1),
            crd.Column("Age", ".metadata.creationTimestamp", type="date"),
        ),
    )


def image_to_run(obj: XsldCache) -> str:
    """The image that members get: of a roll that failed the last good one, for as long as the spec names the failed."""
    spec, status = obj.spec, obj.status
    rolled_back = spec.update_strategy.rollback and spec.image == status.failed_image
    return (status.good_image if rolled_back else "") or spec.image
