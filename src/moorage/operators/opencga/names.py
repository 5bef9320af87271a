"""What an installation of OpenCGA and its objects are called. Pure."""

from __future__ import annotations

from moorage.api import meta

SYSTEM = "opencga"
"""The system's name, as in the operator's configuration."""

GROUP, VERSION = "opencga.zetta.com", "v1"
COMMUNITY = meta.Resource(GROUP, VERSION, "OpenCGACommunity", "opencgacommunity")
"""Plural and singular are one word, as the original has it."""

SERVICE_MONITOR = meta.Resource("monitoring.coreos.com", "v1", "ServiceMonitor", "servicemonitors")
"""Of the Prometheus operator, where that is: by it a Prometheus knows whom to ask."""

FINALIZER = f"{GROUP}/community"

LABEL = f"{GROUP}/community"
"""On every object of an installation, with its name."""

ROLE = f"{GROUP}/role"
REST, MASTER = "rest", "master"

CONFIGURATION = f"{GROUP}/configuration"
"""On the Secrets with the agents' configuration and token alone, which are watched with what they hold."""

APP = "app"
"""Label of pods with the name of their headless Service, as the original has it."""

CLAIM = "data-volume"
MOST_MEMBERS = 100


def rest(name: str) -> str:
    """The StatefulSet of the REST members."""
    return name


def master(name: str) -> str:
    """The StatefulSet of the MASTER."""
    return f"{name}-client"


def headless(name: str) -> str:
    """The Service by which pods are called before they are ready."""
    return f"{name}-svc"


def endpoint(name: str) -> str:
    """The Service that clients use: members that are ready."""
    return f"{name}-rest"


def ingress(name: str) -> str:
    """What leads to that Service from outside the cluster."""
    return name


def monitor(name: str) -> str:
    """The ServiceMonitor, by which agents are asked for metrics."""
    return name


def configuration(name: str) -> str:
    """The Secret that the agents read."""
    return f"{name}-config"


def agent_token(name: str) -> str:
    """The Secret with the token by which agents know who asks, and are known: called as its parent calls it."""
    return f"{name}-agent-password"


AGENT_TOKEN_KEY = "password"  # noqa: S105 - its name


def admin_password(name: str) -> str:
    """The Secret with the administrator's password, where the spec names none."""
    return f"{name}-admin-password"


def placement(namespace: str) -> str:
    """All of a namespace is one process's: its watches and its binding."""
    return f"opencga:{namespace}"
