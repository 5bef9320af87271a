"""Words that the reasons of both kinds have in common; the reasons are in `container.reasons`, `cluster.reasons`."""

from __future__ import annotations

GOES_ON = "moorage goes on with the next step at once"
LOOKS = "moorage's own look is awaited, which takes seconds"
ADMIN = "have moorage's administrator"
BINDS = "the API server is awaited, which takes seconds to know the rights"
TAKES_CARE = "The finalizer is set, so that nothing is left behind when it is deleted."
NOT_ALLOWED = (
    "The namespace is Kubernetes' or moorage's own, or it is not opened for pods that are root on their nodes: by the "
    "label moorage.dev/weka=privileged, and in systems.weka.namespaces where that is listed."
)
OPEN = f"{ADMIN} label the namespace moorage.dev/weka=privileged, and list it where namespaces are listed"
