"""The RuntimeVersion kind. The product has none: its fields are those of krt.yml, and what the product asks beside it.

What can be said of one field or one list is held by the schema and its rules; ways through the graph are not, as to
follow them costs more than a rule may: they are a step (`control.graph_is_sound`).
"""

from __future__ import annotations

import functools
from typing import Annotated, Any

import msgspec

from moorage.api import common_status, crd, meta
from moorage.operators.kre import kinds, names
from moorage.operators.kre.krt import fields, model, reading

from . import graph_check

MOST_NODES, MOST_SUBSCRIPTIONS = 200, 500
"""Of all workflows together: they are read and compared where all others wait."""

_NAME = msgspec.Meta(min_length=1, max_length=fields.NAME_LENGTH, pattern=f"^{fields.NAME.pattern}$")
_IMAGE = msgspec.Meta(min_length=1, max_length=fields.IMAGE_LENGTH, pattern=f"^{fields.IMAGE.pattern}$")
_IMAGE_OR_NONE = msgspec.Meta(max_length=fields.IMAGE_LENGTH, pattern=f"^({fields.IMAGE.pattern})?$")
_OBJECT = msgspec.Meta(min_length=1, max_length=253)
_BY_NAME = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
_FILE = r"^[^/\\][^\\]*$"
_DIGEST = r"^sha256:[a-f0-9]{64}$"


class ObjectName(msgspec.Struct, frozen=True):
    """An object of the same namespace."""

    name: Annotated[str, _OBJECT]


class KeyRef(msgspec.Struct, frozen=True):
    """A key of a ConfigMap or Secret of the same namespace."""

    name: Annotated[str, _OBJECT]
    key: Annotated[str, _OBJECT]


class Proto(msgspec.Struct, frozen=True, rename="camel"):
    """The service that the version offers: exactly one of these."""

    inline: Annotated[str, msgspec.Meta(min_length=1, max_length=262_144)] | None = None
    config_map_ref: KeyRef | None = None

    __cel__ = (crd.Rule("has(self.inline) != has(self.configMapRef)", "give either inline or configMapRef"),)


class Entrypoint(msgspec.Struct, frozen=True):
    """What serves the version to the outside."""

    proto: Proto
    image: Annotated[str, _IMAGE]


class ValueFrom(msgspec.Struct, frozen=True, rename="camel"):
    """Where a config key's value comes from: exactly one of these."""

    config_map_key_ref: KeyRef | None = None
    secret_key_ref: KeyRef | None = None

    __cel__ = (
        crd.Rule("has(self.configMapKeyRef) != has(self.secretKeyRef)", "give either configMapKeyRef or secretKeyRef"),
    )


class ConfigKey(msgspec.Struct, frozen=True, rename="camel"):
    """A config key, which nodes find as an environment variable. Without a value nothing starts."""

    name: Annotated[
        str, msgspec.Meta(min_length=1, max_length=fields.VARIABLE_LENGTH, pattern=f"^{fields.VARIABLE.pattern}$")
    ]
    value: Annotated[str, msgspec.Meta(max_length=131_072)] | None = None
    value_from: ValueFrom | None = None

    __cel__ = (crd.Rule("!(has(self.value) && has(self.valueFrom))", "give value or valueFrom, but not both"),)


class ObjectStore(msgspec.Struct, frozen=True):
    """A store of files for a node."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=reading.MAX_STORE, pattern=f"^{fields.NAME.pattern}$")]
    scope: Annotated[model.Scope, msgspec.Meta(description="For the nodes of the workflow, or for those of all.")] = (
        "workflow"
    )


class Node(msgspec.Struct, frozen=True, rename="camel"):
    """A process of a workflow."""

    name: Annotated[str, _NAME]
    image: Annotated[str, _IMAGE]
    src: Annotated[
        str, msgspec.Meta(min_length=1, max_length=1000, pattern=_FILE, description="The file that it runs.")
    ]
    gpu: bool = False
    replicas: Annotated[int, msgspec.Meta(ge=1, le=reading.MAX_REPLICAS)] = 1
    subscriptions: Annotated[
        tuple[Annotated[str, msgspec.Meta(min_length=1, max_length=100)], ...],
        msgspec.Meta(
            max_length=reading.MAX_SUBSCRIPTIONS,
            description="Whose messages it gets: entrypoint, NODE, NODE.TOPIC or NODE.*",
        ),
    ] = ()
    object_store: ObjectStore | None = None
    resources: Annotated[dict[str, Any], msgspec.Meta(description="As of a container.")] = {}
    env: Annotated[
        tuple[dict[str, Any], ...], msgspec.Meta(max_length=128, description="As of a container; beside config.")
    ] = ()

    __cel__ = (
        crd.Rule(
            f"self.name != '{model.ENTRYPOINT}'",
            f"{model.ENTRYPOINT} is by what nodes subscribe to what comes in: choose another name",
            field_path=".name",
        ),
        crd.Rule(
            "!self.src.matches('(^|/)[.][.](/|$)')",
            "src must be below krt.yml: write it without '..'",
            field_path=".src",
        ),
    )


class Workflow(msgspec.Struct, frozen=True, rename="camel"):
    """What answers one method of the service. Its nodes stand here, or in a row (`sequential`) of those of the spec."""

    name: Annotated[str, _NAME]
    entrypoint: Annotated[
        str,
        msgspec.Meta(
            min_length=1,
            max_length=fields.METHOD_LENGTH,
            pattern=f"^{fields.METHOD.pattern}$",
            description="The method of the service.",
        ),
    ]
    exitpoint: Annotated[
        str, msgspec.Meta(max_length=fields.NAME_LENGTH, description="The node whose messages are the answer.")
    ] = ""
    nodes: Annotated[tuple[Node, ...], msgspec.Meta(max_length=reading.MAX_NODES, extra_json_schema=_BY_NAME)] = ()
    sequential: Annotated[
        tuple[Annotated[str, _NAME], ...],
        msgspec.Meta(max_length=reading.MAX_NODES, description="Names of spec.nodes, in their order: krt v1."),
    ] = ()

    __cel__ = (
        crd.Rule(
            "(has(self.nodes) && self.nodes.size() > 0) != (has(self.sequential) && self.sequential.size() > 0)",
            "give either nodes with their subscriptions, or sequential with names of spec.nodes",
        ),
        crd.Rule(
            "!has(self.nodes) || self.nodes.size() == 0 || "
            "(has(self.exitpoint) && self.nodes.exists(n, n.name == self.exitpoint))",
            "exitpoint must be the name of one of the workflow's nodes",
        ),
        crd.Rule(
            "!has(self.nodes) || self.nodes.all(n, has(n.subscriptions) && n.subscriptions.size() > 0)",
            f"each node needs subscriptions: other nodes, or {model.ENTRYPOINT}",
            field_path=".nodes",
        ),
    )


class StoredFile(msgspec.Struct, frozen=True):
    """An archive in the object store of the runtime."""

    key: Annotated[str, msgspec.Meta(min_length=1, max_length=1024)]
    digest: Annotated[str, msgspec.Meta(max_length=71, pattern=_DIGEST, description="Of the archive's bytes.")]


class Files(msgspec.Struct, frozen=True, rename="camel"):
    """Where what nodes find in /krt-files comes from: one of these."""

    object: StoredFile | None = None
    config_map_ref: ObjectName | None = None
    image: Annotated[str, _IMAGE_OR_NONE, msgspec.Meta(description="An image that has them in /krt-files.")] = ""
    downloader: Annotated[
        str, _IMAGE_OR_NONE, msgspec.Meta(description="The product's own image that fetches them.")
    ] = ""

    __cel__ = (
        crd.Rule(
            "(has(self.object) ? 1 : 0) + (has(self.configMapRef) ? 1 : 0) + (has(self.image) ? 1 : 0) + "
            "(has(self.downloader) ? 1 : 0) == 1",
            "give exactly one of object, configMapRef, image and downloader",
        ),
    )


class RuntimeVersionSpec(msgspec.Struct, frozen=True, rename="camel", dict=True):
    """The desired state."""

    version: Annotated[str, _NAME, msgspec.Meta(description="Its name, which stands in those of all its objects.")]
    entrypoint: Entrypoint
    workflows: Annotated[
        tuple[Workflow, ...],
        msgspec.Meta(min_length=1, max_length=reading.MAX_WORKFLOWS, extra_json_schema=_BY_NAME),
    ]
    runtime_ref: Annotated[
        ObjectName | None, msgspec.Meta(description="Which Runtime; needed where the namespace has several.")
    ] = None
    description: Annotated[str, msgspec.Meta(max_length=1000)] = ""
    config: Annotated[
        tuple[ConfigKey, ...], msgspec.Meta(max_length=reading.MAX_CONFIG, extra_json_schema=_BY_NAME)
    ] = ()
    nodes: Annotated[
        tuple[Node, ...],
        msgspec.Meta(
            max_length=reading.MAX_NODES,
            description="What workflows put in a row (sequential): krt v1.",
            extra_json_schema=_BY_NAME,
        ),
    ] = ()
    files: Files | None = None
    running: Annotated[bool, msgspec.Meta(description="Whether it is to run; what is published can't be stopped.")] = (
        True
    )

    __cel__ = (
        *crd.immutable("version", message="{0} can't be changed, as it names all that is made: make a new one"),
        crd.Rule(
            "!has(oldSelf.runtimeRef) || (has(self.runtimeRef) && self.runtimeRef == oldSelf.runtimeRef)",
            "runtimeRef can't be changed once it is set: make a new RuntimeVersion for the other Runtime",
            field_path=".runtimeRef",
        ),
        crd.Rule(
            f"self.version != '{reading.ACTIVE}'",
            f"version can't be {reading.ACTIVE!r}, as the Service of what is published is called so",
            field_path=".version",
        ),
        crd.Rule(
            "self.workflows.all(w, self.workflows.exists_one(o, o.entrypoint == w.entrypoint))",
            "each workflow needs an entrypoint of its own, as it names the stream of its messages",
            field_path=".workflows",
        ),
        crd.Rule(
            "self.workflows.all(w, !has(w.sequential) || (has(self.nodes) && "
            "w.sequential.all(s, self.nodes.exists(n, n.name == s))))",
            "each name in sequential must be that of one of spec.nodes",
            field_path=".workflows",
        ),
    )

    @functools.cached_property
    def graph(self) -> tuple[model.Workflow, ...]:
        """The workflows in one form, with the subscriptions that a row stands for."""
        by_name = {node.name: node for node in self.nodes}
        return tuple(_in_one_form(workflow, by_name) for workflow in self.workflows)

    @functools.cached_property
    def told(self) -> graph_check.Told:
        """What is wrong with the workflows."""
        return graph_check.told(self.graph)

    @property
    def too_large(self) -> str:
        """Why this is more than one version can be; empty where it is not."""
        nodes = sum(len(each.nodes) or len(each.sequential) for each in self.workflows)
        if nodes > MOST_NODES:
            return f"it has {nodes} nodes, and may have {MOST_NODES}"
        read = sum(len(node.subscriptions) for each in self.workflows for node in each.nodes)
        return f"it has {read} subscriptions, and may have {MOST_SUBSCRIPTIONS}" if read > MOST_SUBSCRIPTIONS else ""

    def nodes_of(self, workflow: str) -> dict[str, Node]:
        """The nodes of a workflow, whole, by name."""
        found = next(each for each in self.workflows if each.name == workflow)
        own = {node.name: node for node in found.nodes}
        return own or {node.name: node for node in self.nodes if node.name in found.sequential}


def _in_one_form(workflow: Workflow, by_name: dict[str, Node]) -> model.Workflow:
    row = [by_name[name] for name in workflow.sequential if name in by_name]
    if not row:
        nodes = tuple(_node(node, node.subscriptions) for node in workflow.nodes)
        return model.Workflow(workflow.name, workflow.entrypoint, workflow.exitpoint, nodes)
    before = (model.ENTRYPOINT, *(node.name for node in row))
    chained = tuple(_node(node, (whom,)) for node, whom in zip(row, before, strict=False))
    return model.Workflow(workflow.name, workflow.entrypoint, row[-1].name, chained)


def _node(node: Node, subscriptions: tuple[str, ...]) -> model.Node:
    wanted = node.object_store
    store = model.ObjectStore(wanted.name, wanted.scope) if wanted else None
    return model.Node(node.name, node.image, node.src, node.gpu, node.replicas, subscriptions, store)


class NodeStatus(msgspec.Struct, frozen=True, rename="camel"):
    """One node, or the entrypoint, as its pods are."""

    workflow: Annotated[str, msgspec.Meta(description="Empty: the entrypoint.")]
    name: str
    state: Annotated[str, msgspec.Meta(description="STARTING, STARTED, STOPPED or ERROR.")] = ""
    ready: int = 0
    wanted: int = 0
    restarts: int = 0
    message: Annotated[str, msgspec.Meta(description="What keeps its pods from being ready, in their own words.")] = ""


class RuntimeVersionStatus(common_status.Status, frozen=True, kw_only=True, rename="camel"):
    """The observed state."""

    phase: Annotated[
        str,
        msgspec.Meta(description="CREATED, STARTING, STARTED, PUBLISHED, STOPPING, STOPPED or ERROR."),
    ] = ""
    runtime: Annotated[str, msgspec.Meta(description="The Runtime that it is in.")] = ""
    ready: Annotated[int, msgspec.Meta(description="Nodes whose pods are all ready, the entrypoint with them.")] = 0
    node_count: Annotated[int, msgspec.Meta(description="Nodes, the entrypoint with them.")] = 0
    published: bool = False
    nodes: Annotated[
        tuple[NodeStatus, ...],
        msgspec.Meta(
            extra_json_schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["workflow", "name"]}
        ),
    ] = ()
    streams: Annotated[tuple[str, ...], msgspec.Meta(description="In NATS, as they were seen.")] = ()
    object_stores: tuple[str, ...] = ()
    key_value_stores: tuple[str, ...] = ()
    made: Annotated[bool, msgspec.Meta(description="Something may have been made of it outside of Kubernetes.")] = False
    notes: Annotated[
        tuple[str, ...], msgspec.Meta(description="What is odd about the workflows, and works: circles, idle nodes.")
    ] = ()
    missing_config: Annotated[tuple[str, ...], msgspec.Meta(description="Config keys without a value.")] = ()


class RuntimeVersion(msgspec.Struct, frozen=True):
    """A RuntimeVersion, as its cache holds it."""

    metadata: meta.ObjectMeta
    spec: RuntimeVersionSpec
    status: RuntimeVersionStatus = RuntimeVersionStatus()


def definition() -> dict[str, object]:
    """The CustomResourceDefinition."""
    return crd.crd(
        group=kinds.GROUP,
        version=kinds.VERSION,
        kind=kinds.RUNTIME_VERSION.kind,
        plural=kinds.RUNTIME_VERSION.plural,
        short_names=("rv",),
        spec=RuntimeVersionSpec,
        status=RuntimeVersionStatus,
        rules=(
            crd.Rule(
                f"self.metadata.name.size() <= {names.LONGEST}",
                f"metadata.name marks all that is made, so it may have {names.LONGEST} characters",
            ),
        ),
        columns=(
            crd.Column("Phase", ".status.phase"),
            crd.Column("Ready", ".status.ready", type="integer"),
            crd.Column("Nodes", ".status.nodeCount", type="integer"),
            crd.Column("Published", ".status.published", type="boolean"),
            crd.Column("Message", '.status.conditions[?(@.type=="Ready")].message', priority=1),
            crd.Column("Age", ".metadata.creationTimestamp", type="date"),
        ),
    )
