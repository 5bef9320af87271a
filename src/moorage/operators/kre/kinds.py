"""The kinds, and what its objects are called and marked by. Pure."""

from __future__ import annotations

from moorage.api import meta

SYSTEM = "kre"
"""The system's name, as in the operator's configuration."""

GROUP, VERSION = "kre.konstellation.io", "v1alpha1"
RUNTIME = meta.Resource(GROUP, VERSION, "Runtime", "runtimes")
RUNTIME_VERSION = meta.Resource(GROUP, VERSION, "RuntimeVersion", "runtimeversions")
DEPLOYMENT = meta.Resource("apps", "v1", "Deployment", "deployments")

RUNTIME_FINALIZER = f"{GROUP}/runtime"
VERSION_FINALIZER = f"{GROUP}/version"

COMPONENT = f"{GROUP}/component"
"""Label of all that the chart makes, with the server's name."""

OF_VERSION = f"{GROUP}/runtime-version"
"""Label of all that is made for a version, and mark of what it has in NATS: the name of the RuntimeVersion."""

DISCARD = f"{GROUP}/discard-messages"
"""Annotation of a RuntimeVersion: "true" lets it stop although messages wait that nobody has taken, which are lost."""

RELEASE = "kre"
"""The one release of a namespace. All Runtimes there want it, so that its claim says whose servers those are."""

CREDENTIALS = "kre-credentials"
"""The Secret with the wanted credentials that is made where the spec names none."""

IN_USE = "kre-credentials-in-use"
"""The Secret that servers and versions are given: what the servers take, whatever the other one says meanwhile."""

NATS_LOGIN = "kre-nats-login"
"""The Secret with the login of NATS' own account, by which alone servers are removed from its cluster."""

BUCKET = "krt"
"""Of a Runtime's object store: where versions' archives are."""

CLAIM = "data"
"""The claim template of each server."""

SERVERS = ("mongo", "nats", "minio", "influxdb", "chronograf")
"""Those with a StatefulSet, in the order in which they are told of."""


def workload(server: str) -> str:
    """The StatefulSet of that server; its pods and its Service are called after it."""
    return f"kre-{server}"


def placement(namespace: str) -> str:
    """All of a namespace is one process's: its watches, its binding, and whose Runtime its servers are."""
    return f"kre:{namespace}"
