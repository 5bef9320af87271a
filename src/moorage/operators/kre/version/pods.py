"""What runs in a version's pods, under restricted Pod Security, without rights in the cluster. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moorage.operators.kre import kinds
from moorage.operators.kre.krt import model

from . import container_files, inputs, types
from .wanted import Wanted

Container = dict[str, Any]

FILES, LOGS, CONFIGURATION, PROTO = "krt-files", "logs", "configuration", "proto"
BASE = "/krt-files"
USER = 10001
"""Who containers run as: images do not say who they run as in a way that Kubernetes can check."""

URI = "uri"
"""Key of the Secret with mongo's address."""

_GRACE = {"node": 30, "entrypoint": 60}
"""Seconds that pods get to end what they have begun."""

_GPU = "nvidia.com/gpu"
_LAST_WORDS = {"terminationMessagePolicy": "FallbackToLogsOnError"}
"""What a container said right before it failed is told by the version's status."""

_LOCKED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def of_node(wanted: Wanted, workflow: model.Workflow, node: model.Node, full: types.Node) -> dict[str, Any]:
    """The pods of a node."""
    name = wanted.names.deployment(workflow.name, node.name)
    env = [*_common(wanted), *_plain(_node_env(wanted, workflow, node, name))]
    resources = dict(full.resources)
    if node.gpu:
        for part in ("requests", "limits"):
            resources[part] = {**(resources.get(part) or {}), _GPU: "1"}
    main: Container = {
        "name": name,
        "image": node.image,
        "imagePullPolicy": "IfNotPresent",
        **_LAST_WORDS,
        "env": _whole_env(env, full.env, wanted.spec.config),
        "envFrom": [{"configMapRef": {"name": wanted.names.config}}],
        "volumeMounts": [_mount(FILES, BASE), _mount(LOGS, "/var/log/app")],
        "securityContext": _LOCKED,
    }
    if resources:
        main["resources"] = resources
    spec = _pod(wanted, "node", [main, *_shipper(wanted, env)], env)
    if node.gpu:
        spec["nodeSelector"] = {"konstellation.io/gpu": "true"}
        tolerated = ("konstellation.io/gpu", _GPU)
        spec["tolerations"] = [{"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in tolerated]
    return spec


def of_entrypoint(wanted: Wanted) -> dict[str, Any]:
    """The pods by which calls come in, with the service's description beside."""
    of_all = dict.fromkeys(("WORKFLOW_ID", "WORKFLOW_NAME", "NODE_ID", "NODE_NAME"), model.ENTRYPOINT)
    own = {
        **{f"KRT_{key}": value for key, value in of_all.items()},
        "KRT_NATS_SUBJECTS_FILE": "/src/conf/nats_subject.json",
        "KRT_REQUEST_TIMEOUT": "30",
    }
    env = [*_common(wanted), *_plain(own)]
    name = wanted.spec.version
    main: Container = {
        "name": name if name != "fluent-bit" else f"{name}-{model.ENTRYPOINT}",  # that of the container beside it
        "image": wanted.spec.entrypoint.image,
        "imagePullPolicy": "IfNotPresent",
        **_LAST_WORDS,
        "env": env,
        "ports": [{"name": "grpc", "containerPort": 9000, "protocol": "TCP"}],
        "readinessProbe": {"tcpSocket": {"port": "grpc"}, "periodSeconds": 2, "failureThreshold": 3},
        "volumeMounts": [
            _mount(FILES, BASE),
            _mount(LOGS, "/var/log/app"),
            _mount(CONFIGURATION, "/src/conf", read_only=True),
            _mount(PROTO, "/proto", read_only=True),
        ],
        "securityContext": _LOCKED,
    }
    web: Container = {
        "name": f"{name}-web",
        "image": wanted.images.web,
        "imagePullPolicy": "IfNotPresent",
        "ports": [{"name": "web", "containerPort": 8080, "protocol": "TCP"}],
        "volumeMounts": [
            {**_mount(CONFIGURATION, "/etc/nginx/conf.d/default.conf", read_only=True), "subPath": "default.conf"},
            _mount(PROTO, "/proto", read_only=True),
        ],
        "securityContext": _LOCKED,
    }
    beside = [web] if wanted.images.web else []
    spec = _pod(wanted, "entrypoint", [main, *_shipper(wanted, env), *beside], env)
    spec["volumes"].append(_proto(wanted))
    return spec


def _pod(wanted: Wanted, kind: str, containers: list[Container], env: list[dict[str, Any]]) -> dict[str, Any]:
    files, fetch = _files(wanted, env)
    spec: dict[str, Any] = {
        "containers": containers,
        "terminationGracePeriodSeconds": _GRACE[kind],
        "enableServiceLinks": False,
        "automountServiceAccountToken": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumes": [
            files,
            {"name": LOGS, "emptyDir": {}},
            {"name": CONFIGURATION, "configMap": {"name": wanted.names.files}},
        ],
    }
    return {**spec, "initContainers": fetch} if fetch else spec


# --- the environment --------------------------------------------------------------------------------------------------


def _plain(values: dict[str, str]) -> list[dict[str, Any]]:
    return [{"name": name, "value": value} for name, value in values.items()]


def _common(wanted: Wanted) -> list[dict[str, Any]]:
    """Of every container."""
    plain = {
        "KRT_INFLUX_URI": f"http://{kinds.workload('influxdb')}:8086",
        "KRT_RUNTIME_ID": wanted.runtime,
        "KRT_VERSION_ID": wanted.metadata.name,
        "KRT_VERSION": wanted.spec.version,
        "KRT_MONGO_DB_NAME": "data",
        "KRT_MONGO_BUCKET": "krt",
        "KRT_BASE_PATH": BASE,
        "KRT_NATS_SERVER": f"{container_files.NATS_HOST}:{container_files.NATS_PORT}",
    }
    secret = {"secretKeyRef": {"name": wanted.names.mongo, "key": URI}}
    return [*_plain(plain), {"name": "KRT_MONGO_URI", "valueFrom": secret}]


def _node_env(wanted: Wanted, workflow: model.Workflow, node: model.Node, name: str) -> dict[str, str]:
    of, method = wanted.names, workflow.entrypoint
    env = {
        "KRT_WORKFLOW_ID": workflow.name,
        "KRT_WORKFLOW_NAME": workflow.name,
        "KRT_NODE_ID": name,
        "KRT_NODE_NAME": node.name,
        "KRT_HANDLER_PATH": node.src,
        "KRT_NATS_MONGO_WRITER": f"mongo_writer_data.{wanted.runtime}",
        "KRT_NATS_STREAM": of.stream(method),
        "KRT_IS_EXITPOINT": "true" if node.name == workflow.exitpoint else "false",
        "KRT_NATS_OUTPUT": of.subject(method, node.name),
        "KRT_NATS_INPUTS": ",".join(of.inputs(method, node)),
        "KRT_NATS_KEY_VALUE_STORE_PROJECT": of.key_values(),
        "KRT_NATS_KEY_VALUE_STORE_WORKFLOW": of.key_values(workflow.name),
        "KRT_NATS_KEY_VALUE_STORE_NODE": of.key_values(workflow.name, node.name),
        "KRT_JS_REQUEST_TIMEOUT": "5",
    }
    if node.object_store is not None:
        env["KRT_NATS_OBJECT_STORE"] = of.object_store(workflow.name, node.object_store)
    return env


def _whole_env(
    own: list[dict[str, Any]], given: Iterable[dict[str, Any]], keys: Iterable[types.ConfigKey]
) -> list[dict[str, Any]]:
    """Ours, then the node's, then config keys whose value is elsewhere. Of one name the first counts."""
    elsewhere = [_from_elsewhere(key) for key in keys if key.value_from is not None]
    found: dict[Any, dict[str, Any]] = {}
    for entry in (*own, *given, *elsewhere):
        found.setdefault(entry.get("name"), dict(entry))
    return list(found.values())


def _from_elsewhere(key: types.ConfigKey) -> dict[str, Any]:
    where: dict[str, Any] = {}
    if key.value_from is not None and (ref := key.value_from.config_map_key_ref):
        where = {"configMapKeyRef": {"name": ref.name, "key": ref.key}}
    if key.value_from is not None and (ref := key.value_from.secret_key_ref):
        where = {"secretKeyRef": {"name": ref.name, "key": ref.key}}
    return {"name": key.name, "valueFrom": where}


# --- volumes, and who fills them --------------------------------------------------------------------------------------


def _mount(name: str, path: str, *, read_only: bool = False) -> dict[str, Any]:
    return {"name": name, "mountPath": path, **({"readOnly": True} if read_only else {})}


def _files(wanted: Wanted, env: list[dict[str, Any]]) -> tuple[dict[str, Any], list[Container]]:
    """The volume that nodes find as /krt-files, and who fills it before they start."""
    files, empty = wanted.spec.files or types.Files(), {"name": FILES, "emptyDir": {}}
    if files.config_map_ref is not None:
        return {"name": FILES, "configMap": {"name": files.config_map_ref.name}}, []
    fetch: Container = {
        "name": "krt-files-downloader",
        "imagePullPolicy": "IfNotPresent",
        **_LAST_WORDS,
        "volumeMounts": [_mount(FILES, BASE)],
        "securityContext": _LOCKED,
    }
    if files.image:
        copy = {"command": ["cp", "-R", f"{BASE}/.", "/to/"], "volumeMounts": [_mount(FILES, "/to")]}
        return empty, [{**fetch, "image": files.image, **copy}]
    if files.downloader:
        return empty, [{**fetch, "image": files.downloader, "env": env}]
    if files.object is not None:
        return empty, [{**fetch, "image": wanted.images.fetcher, "env": _object_env(wanted, files.object)}]
    return empty, []


def _object_env(wanted: Wanted, stored: types.StoredFile) -> list[dict[str, Any]]:
    """By which the fetcher finds the archive, and knows that it is the right one."""
    secrets = dict(zip(("KRT_FILES_ACCESS_KEY", "KRT_FILES_SECRET_KEY"), inputs.STORE_KEYS, strict=True))
    return [
        *_plain(
            {
                "KRT_FILES_ENDPOINT": f"http://{kinds.workload('minio')}:9000",
                "KRT_FILES_BUCKET": kinds.BUCKET,
                "KRT_FILES_OBJECT": stored.key,
                "KRT_FILES_DIGEST": stored.digest,
                "KRT_BASE_PATH": BASE,
            }
        ),
        *(
            {"name": name, "valueFrom": {"secretKeyRef": {"name": kinds.IN_USE, "key": key}}}
            for name, key in secrets.items()
        ),
    ]


def _proto(wanted: Wanted) -> dict[str, Any]:
    ref = wanted.spec.entrypoint.proto.config_map_ref
    name, key = (ref.name, ref.key) if ref is not None else (wanted.names.files, container_files.PROTO)
    items = [{"key": key, "path": key}]
    return {"name": PROTO, "configMap": {"name": name, "items": items}}


def _shipper(wanted: Wanted, env: list[dict[str, Any]]) -> list[Container]:
    """What takes the logs to where the product looks for them."""
    if not wanted.images.fluent_bit:
        return []
    names_ = ("fluent-bit.conf", "parsers.conf")
    mounts = [{**_mount(CONFIGURATION, f"/fluent-bit/etc/{name}", read_only=True), "subPath": name} for name in names_]
    return [
        {
            "name": "fluent-bit",
            "image": wanted.images.fluent_bit,
            "imagePullPolicy": "IfNotPresent",
            "command": ["/fluent-bit/bin/fluent-bit", "-c", "/fluent-bit/etc/fluent-bit.conf", "-v"],
            "env": [each for each in env if "valueFrom" not in each],
            "volumeMounts": [*mounts, _mount(LOGS, "/var/log/app", read_only=True)],
            "securityContext": _LOCKED,
        }
    ]
