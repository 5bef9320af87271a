"""From a WekaManualOperation to its pods, one on each node, and from what they leave to what a node is told. Pure."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any

import msgspec

from moorage.api import builtin
from moorage.children import bodies, parts
from moorage.operators.weka import allocation, common_types, dialect, names
from moorage.operators.weka.container import build as container_build

from . import observation, types

POD_SECONDS = 600
"""After which the kubelet ends a pod that is not done: a drive that hangs must not keep the operation for good."""

OUT_OF_USE = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}
"""Drives are exchanged, and signed, while a node takes no other pods; a person asks for this one, for that node."""

_Serials = Annotated[tuple[Annotated[str, common_types.SERIAL], ...], msgspec.Meta(max_length=allocation.MOST_DRIVES)]


class Told(msgspec.Struct, frozen=True):
    """The last word of a pod: which drives are signed there, which it has signed, and what went wrong."""

    drives: _Serials | None = None
    signed: _Serials = ()
    fault: Annotated[str, msgspec.Meta(max_length=1024)] = ""


def told(pod: observation.PodSeen) -> Told:
    """What a pod left that has ended. Whatever it is, it is bounded, and about its own node."""
    if not pod.told:
        return Told(fault=f"pod {pod.seen.name} ended{f' ({pod.why})' if pod.why else ''} and left no word")
    try:
        found = msgspec.json.decode(pod.told.encode(), type=Told)
    except (msgspec.MsgspecError, RecursionError):
        said = "".join(it if it.isprintable() else " " for it in pod.told[:300])
        return Told(fault=f"pod {pod.seen.name} left what can't be read: {said}")
    if found.drives is None and not found.fault:
        return Told(fault=f"pod {pod.seen.name} did not say which drives there are")
    return found


def arguments(spec: types.WekaManualOperationSpec, taken: dict[str, str], spoken: dialect.Dialect) -> dict[str, Any]:
    """What the pod of a node is told to do."""
    found: dict[str, Any] = {
        "paths": [],
        "serials": [],
        "pci": [],
        "all": False,
        "flags": [],
        "anew": False,
        "taken": dict(sorted(taken.items())),
    }
    given, commands = spec.payload or types.Payload(), spoken.commands
    if spec.action == "force-resign-drives" and (again := given.force_resign_drives_payload):
        flags = commands.erase_weka_flag.split()
        return found | {
            "paths": list(again.device_paths),
            "serials": list(again.device_serials),
            "flags": flags,
            "anew": True,
        }
    if spec.action != "sign-drives" or (sign := given.sign_drives_payload) is None:
        return found
    options = sign.options or types.SignOptions()
    flags = [
        flag
        for is_set, text in (
            (options.allow_erase_weka_partitions, commands.erase_weka_flag),
            (options.allow_erase_non_weka_partitions, commands.erase_others_flag),
            (options.allow_non_empty_device, commands.not_empty_flag),
            (options.skip_trim_format, commands.skip_trim_flag),
        )
        if is_set
        for flag in text.split()
    ]
    found |= {"flags": flags, "anew": options.allow_erase_weka_partitions}
    pci = {"aws-all": commands.aws_drives, "gcp-all": commands.gcp_drives}.get(sign.type, "")
    if sign.type == "device-identifiers" and sign.pci_devices:
        pci = f"{sign.pci_devices.vendor_id}:{sign.pci_devices.device_id}"
    return found | {
        "paths": list(sign.device_paths) if sign.type == "device-paths" else [],
        "pci": [it.split(":", 1) for it in pci.split()],
        "all": sign.type == "all-not-root",
    }


def pod(seen: observation.Seen, node: observation.NodeSeen) -> parts.Desired:
    """The pod that looks at that node. It ends by itself, and is told everything at its start."""
    files, spec = seen.dialect.files, seen.spec
    owner = names.OPERATION.ref(seen.meta.namespace, seen.name, seen.meta.uid)
    devices = container_build.devices(files)
    told_ = json.dumps(arguments(spec, node.taken, seen.dialect), sort_keys=True, separators=(",", ":"))
    scripts = (container_build.DRIVES, container_build.SETTINGS)
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node.name]}]}
    pinned = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    content: dict[str, Any] = {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": POD_SECONDS,
        "terminationGracePeriodSeconds": 30,
        "hostPID": True,  # by which it sees what the node has mounted
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "affinity": {"nodeAffinity": pinned},
        "tolerations": [*container_build.TOLERATED, OUT_OF_USE, *(dict(it) for it in spec.tolerations)],
        "containers": [
            {
                "name": names.POD_CONTAINER,
                "image": spec.image,
                "imagePullPolicy": "IfNotPresent",
                "command": ["python3", f"{container_build.FOLDER}/{container_build.DRIVES}", told_],
                "securityContext": {"privileged": True, "runAsUser": 0},
                "terminationMessagePolicy": "FallbackToLogsOnError",
                "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
                "env": [{"name": "DEVICES", "value": devices}, {"name": "NODE_NAME", "value": node.name}],
                "volumeMounts": [
                    *(
                        {
                            "name": "scripts",
                            "mountPath": f"{container_build.FOLDER}/{name}",
                            "subPath": name,
                            "readOnly": True,
                        }
                        for name in scripts
                    ),
                    {"name": "devices", "mountPath": devices},
                    {"name": "sys", "mountPath": "/sys"},
                ],
            }
        ],
        "volumes": [
            {"name": "scripts", "configMap": {"name": names.SCRIPTS, "defaultMode": 0o555}},
            {"name": "devices", "hostPath": {"path": files.devices}},
            {"name": "sys", "hostPath": {"path": "/sys"}},
        ],
    }
    if spec.service_account_name:
        content["serviceAccountName"] = spec.service_account_name
    if spec.image_pull_secret:
        content["imagePullSecrets"] = [{"name": spec.image_pull_secret}]
    labels = {
        **names.APP,
        names.MODE: "adhoc-op",
        names.OPERATION_NAME: seen.name,
        "app.kubernetes.io/managed-by": "moorage",
    }
    name = names.operation_pod(seen.name, node.name)
    return parts.Desired(builtin.POD, bodies.owned(builtin.POD, name, owner, {"spec": content}, labels=labels))


# --- what a node is told ----------------------------------------------------------------------------------------------


def node_annotations(
    spec: types.WekaManualOperationSpec, node: observation.NodeSeen, found: Told | None
) -> dict[str, str | None]:
    """Annotations of that node as they are to be, those alone that differ; None: there is to be none.

    What is found anew replaces what was there; what is signed is added to it, as a drive that just now does not show
    may be a container's.
    """
    given = spec.payload or types.Payload()
    wanted: dict[str, str | None] = {}
    if spec.action in ("block-drives", "unblock-drives") and (drives := given.block_drives_payload):
        for name, have, these in (
            (names.BLOCKED_DRIVES, node.blocked, drives.serial_ids),
            (names.BLOCKED_UUIDS, node.blocked_uuids, drives.physical_uuids),
        ):
            if these:
                left = {*have, *these} if spec.action == "block-drives" else {*have} - {*these}
                wanted[name] = _listed(left)
        wanted[names.SIGN_HASH] = None
    elif found is not None and found.drives is not None:
        kept = () if spec.action == "discover-drives" else node.drives
        wanted[names.DRIVES] = _listed({*kept, *found.drives})
        if spec.action == "sign-drives" and not found.fault and node.boot:
            wanted[names.SIGN_HASH] = hashlib.sha256(node.boot.encode()).hexdigest()
    return {name: value for name, value in wanted.items() if value != node.annotations.get(name)}


def _listed(these: set[str]) -> str | None:
    return json.dumps(sorted(these)) if these else None


def result(nodes: dict[str, types.NodeResult]) -> str:
    """The result as JSON, without the serials where there are too many."""
    whole = {
        name: {key: value for key, value in msgspec.to_builtins(it).items() if key != "status"}
        for name, it in sorted(nodes.items())
    }
    text = json.dumps(whole, separators=(",", ":"))
    if len(text) <= 65_536:
        return text
    return json.dumps({name: {"drives": it.drives} for name, it in sorted(nodes.items())}, separators=(",", ":"))
