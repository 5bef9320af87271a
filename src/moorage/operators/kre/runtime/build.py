"""From a Runtime's spec to the values of its chart. Pure. No password is among them: the chart names a Secret."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.helm.charts import values
from moorage.operators.kre import kinds

from . import types

CHART, VERSION = "kre-runtime", "0.1.0"
"""The chart of this moorage: another comes with another moorage, and then every Runtime is upgraded to it."""

READER = "kre-runtime-data"
"""The user of mongo that may only read."""

READABLE = "data"
"""The database that it may read."""

REPLICA_SET = "rs0"

ROUTES = f"{kinds.GROUP}/nats-routes"
"""Annotation of NATS' StatefulSet: of how many servers its configuration knows."""


def chart_values(
    name: str,
    spec: types.RuntimeSpec,
    known: Mapping[str, Any],
    made: Mapping[str, str],
    published: str = "",
    nats: tuple[int, int] | None = None,
    digests: Mapping[str, str] | None = None,
) -> values.Given:
    """`known` holds for all Runtimes, spec.values is over it, and over both is what fields of the spec say.

    So nothing that a step watches over, such as how many NATS servers there are, can be said past it. `made` has the
    sizes that claim templates were made with: those can't be changed, so that a volume that is to be larger grows by
    its claim, and its template stays. `published` is the Service of what is published, once there is one. `nats` are
    the servers that NATS is to have now, and those that it may know of, where that is not what the spec says. By
    `digests` those are restarted who read other credentials than before.
    """
    wanted = types.settings(spec, name)
    own: dict[str, Any] = {"runtime": {"name": name}, "credentials": {"secretName": kinds.IN_USE}}
    for server, volume in wanted.volumes.items():
        size = made.get(server) or volume.size
        own[server] = {"volume": {"enabled": volume.enabled, "storageClass": volume.storage_class, "size": size}}
    own["nats"]["replicas"], own["nats"]["routes"] = nats or (wanted.nats, wanted.nats)
    for server, on in wanted.switched.items():
        own[server]["enabled"] = on
    own["digests"] = dict(digests or {})
    own["mongoExpress"] = {"enabled": wanted.reader}
    own["ingress"] = {
        "enabled": bool(wanted.host),
        "host": wanted.host,
        "className": spec.ingress.class_name,
        "annotations": spec.ingress.annotations,
        "tls": {"enabled": wanted.tls, "secretName": spec.ingress.tls_secret},
    }
    if wanted.host:
        own["ingress"]["published"] = published
    return values.Given(values.canonical(values.merge(known, spec.values, own)))


def host(server: str, namespace: str) -> str:
    """How the first pod of that server is called inside the cluster, for as long as it lives."""
    return f"{kinds.workload(server)}-0.{kinds.workload(server)}.{namespace}.svc"
