"""Observations of a WekaContainer and a WekaCluster that are whole, but for what is changed."""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.api import builtin, meta
from moorage.children import apply, parts
from moorage.operators import accounts
from moorage.operators.weka import allocation, answers, dialect, names
from moorage.operators.weka.cluster import build as cluster_build
from moorage.operators.weka.cluster import observation as cluster_observation
from moorage.operators.weka.cluster import types as cluster_types
from moorage.operators.weka.container import build, observation, types
from moorage.runtime.freshness import Fresh

NOW = 1_800_000_000.0
GUID = "g-1"
IMAGE, NEWER = "registry.example/weka:4.4.1", "registry.example/weka:4.4.2"
RIGHTS = accounts.Rights(
    "weka", "moorage-system", "moorage-accounts", "moorage-weka-namespace", names.BINDING_FINALIZER
)
BOUND = accounts.BindingSeen("b", "1", role=True, subject=True, held=0)
SPOKEN = dialect.Dialect()
OWNER = observation.OwnerSeen("demo", "u-demo", guid=GUID, ports=allocation.Span(35_000, 500), stripe=5)
NODE = observation.NodeSeen("n1", drives=("s1", "s2", "s3"))
ALLOCATIONS = {"drives": ["s1"], "wekaPort": 35_000, "agentPort": 35_300}


# --- a container ------------------------------------------------------------------------------------------------------


def spec(**changed: Any) -> types.WekaContainerSpec:
    base = {"image": IMAGE, "name": "drivexaax0", "mode": "drive", "numCores": 1, "numDrives": 1}
    return msgspec.convert({**base, **changed}, types.WekaContainerSpec)


def status(**changed: Any) -> types.WekaContainerStatus:
    base = {"nodeAffinity": "n1", "allocations": ALLOCATIONS, "clusterID": GUID, "containerID": 0}
    return msgspec.convert({**base, **changed}, types.WekaContainerStatus)


def pod(of: types.WekaContainerSpec | None = None, **changed: Any) -> observation.PodSeen:
    base = parts.PodSeen("demo-drive-0", -1, "p-0", image=IMAGE, running=True, came_up=True, ready=True)
    seen = msgspec.structs.replace(base, **changed)
    return observation.PodSeen(seen, "n1", build.revision(of or spec()))


def device(serial: str = "s1", **changed: Any) -> answers.Device:
    return msgspec.structs.replace(answers.Device(serial, f"/dev/{serial}", True), **changed)


def local(**changed: Any) -> answers.Local:
    base = answers.Local(
        pod="p-0",
        persistent=True,
        run_status="Running",
        internal="READY",
        cluster=GUID,
        host=0,
        addresses=("10.0.0.1",),
        devices=(device(),),
    )
    return msgspec.structs.replace(base, **changed)


def members(count: int = 6, **changed: Any) -> tuple[answers.Member, ...]:
    return tuple(
        msgspec.structs.replace(
            answers.Member(it, "drivexaax0" if it == 0 else "", f"10.0.0.{it + 1}", "UP", "ACTIVE"),
            **(changed if it == 0 else {}),
        )
        for it in range(count)
    )


def drives(count: int = 6, **changed: Any) -> tuple[answers.Drive, ...]:
    return tuple(
        msgspec.structs.replace(answers.Drive(f"d-{it}", f"s{it + 1}", "ACTIVE", it), **(changed if it == 0 else {}))
        for it in range(count)
    )


def cluster(**changed: Any) -> answers.Cluster:
    base = answers.Cluster(
        guid=GUID,
        name="demo",
        status="OK",
        io="STARTED",
        data=3,
        parity=2,
        members=members(),
        drives=drives(),
        users=("admin", "weka-cluster-demo"),
        groups=("default",),
        filesystems=(".config_fs", "default"),
        capacity=2**40,
    )
    return msgspec.structs.replace(base, **changed)


def objects(**changed: Any) -> Fresh[observation.Objects]:
    base: dict[str, Any] = {"pod": pod(), "node": NODE, "owner": OWNER}
    base["scripts"] = (build.scripts("ns", SPOKEN), apply.Child("c"))
    return Fresh(observation.Objects(**base | changed))


def seen(**changed: Any) -> observation.Seen:
    """A drive container that is whole, but for what is changed."""
    metadata = {"finalizers": (names.CONTAINER_FINALIZER,), "uid": "u-0"} | changed.pop("metadata", {})
    of, stands = changed.pop("spec", spec()), changed.pop("status", status())
    base: dict[str, Any] = {
        "meta": meta.ObjectMeta(name="demo-drive-0", namespace="ns", **metadata),
        "spec": of,
        "status": stands,
        "now": NOW,
        "rights": RIGHTS,
        "allowed": True,
        "images": ("registry.example/",),
        "scripts": False,
        "dialect": SPOKEN,
        "binding": Fresh(BOUND),
        "pod_body": parts.Desired(builtin.POD, {"metadata": {"name": "demo-drive-0", "namespace": "ns"}}),
        "revision": build.revision(of),
        "objects": objects(),
        "local": Fresh(local()),
        "cluster": Fresh(cluster()),
    }
    made = observation.Seen(**base | changed)
    told = made.local.value if isinstance(made.local, Fresh) else None
    if told is not None and not told.resources and "local" not in changed:
        right = local(resources=build.resources_digest(made.resources))
        made = msgspec.structs.replace(made, local=Fresh(right))
    return made


def told(**changed: Any) -> Fresh[answers.Local]:
    """What a container says that was told the right resources, but for what is changed."""
    right = build.resources_digest(seen().resources)
    return Fresh(local(**{"resources": right, **changed}))


# --- a cluster --------------------------------------------------------------------------------------------------------


def cluster_spec(**changed: Any) -> cluster_types.WekaClusterSpec:
    base = {"image": IMAGE, "dynamicTemplate": {"driveContainers": 6, "computeContainers": 5}, "stripeWidth": 3}
    return msgspec.convert({**base, **changed}, cluster_types.WekaClusterSpec)


def cluster_status(**changed: Any) -> cluster_types.WekaClusterStatus:
    base = {
        "ports": {"basePort": 35_000, "portRange": 500},
        "made": {"drive": 6, "compute": 5},
        "formed": "demo-compute-0",
        "told": {"name": "demo"},
        "clusterID": GUID,
        "lastAppliedImage": IMAGE,
        "status": "Ready",
        "timestamps": {"ioStarted": "2026-01-01T00:00:00Z"},
    }
    return msgspec.convert({**base, **changed}, cluster_types.WekaClusterStatus)


CLUSTER_META = meta.ObjectMeta(name="demo", namespace="ns", uid="u-demo", finalizers=(names.CLUSTER_FINALIZER,))


def container(
    role: str, number: int, of: cluster_types.WekaClusterSpec | None = None, **changed: Any
) -> cluster_observation.ContainerSeen:
    """One that is well; `host` counts drive containers first."""
    host = number if role == "drive" else 100 + number
    body = cluster_build.container(CLUSTER_META, of or cluster_spec(), role, number, login="l").body
    made = msgspec.convert(body["spec"], types.WekaContainerSpec)
    stands = {
        "status": "Running",
        "managementIP": f"10.0.{0 if role == 'drive' else 1}.{number + 1}",
        "containerID": host,
        "clusterID": GUID,
        "lastAppliedImage": made.image,
        "allocations": {"wekaPort": 35_000, "agentPort": 35_300},
    }
    stands |= changed.pop("status", {})
    base = cluster_observation.ContainerSeen(
        name=names.container("demo", role, number),
        uid=f"u-{role}-{number}",
        role=role,
        number=number,
        spec=made,
        status=msgspec.convert(stands, types.WekaContainerStatus),
        child=apply.Child(f"u-{role}-{number}"),
        revision=build.revision(made),
        wanted=build.revision(made),
    )
    return msgspec.structs.replace(base, **changed)


def containers(drive: int = 6, compute: int = 5) -> list[cluster_observation.ContainerSeen]:
    return [container("drive", it) for it in range(drive)] + [container("compute", it) for it in range(compute)]


def all_members(drive: int = 6, compute: int = 5, **changed: Any) -> tuple[answers.Member, ...]:
    hosts = [*range(drive), *range(100, 100 + compute)]
    return tuple(
        msgspec.structs.replace(answers.Member(it, "", "", "UP", "ACTIVE"), **(changed if it == hosts[0] else {}))
        for it in hosts
    )


def cluster_objects(
    have: list[cluster_observation.ContainerSeen] | None = None, **changed: Any
) -> Fresh[cluster_observation.Objects]:
    have = containers() if have is None else have
    bodies = {
        it.name: cluster_build.container(
            CLUSTER_META,
            cluster_spec(),
            it.role,
            it.number,
            login="l",
            keeps={"image": it.spec.image},
        )
        for it in have
    }
    login = cluster_observation.LoginSeen("s-1", "s-2")
    return Fresh(cluster_observation.Objects(**{"containers": tuple(have), "bodies": bodies, "login": login} | changed))


def cluster_seen(**changed: Any) -> cluster_observation.Seen:
    """A cluster that is whole, but for what is changed."""
    metadata = changed.pop("metadata", {})
    base: dict[str, Any] = {
        "meta": msgspec.structs.replace(CLUSTER_META, **metadata),
        "spec": cluster_spec(),
        "status": cluster_status(),
        "now": NOW,
        "rights": RIGHTS,
        "allowed": True,
        "images": ("registry.example/",),
        "scripts": False,
        "dialect": SPOKEN,
        "binding": Fresh(BOUND),
        "objects": cluster_objects(),
        "cluster": Fresh(cluster(members=all_members())),
    }
    return cluster_observation.Seen(**base | changed)
