"""What the reasons of both kinds have in common: words, and whole ones; see `container.reasons`, `cluster.reasons`."""

from __future__ import annotations

from moorage.runtime.decision import WARNS

GOES_ON = "moorage goes on with the next step at once"
LOOKS = "moorage's own look is awaited, which takes seconds"
ADMIN = "have moorage's administrator"
BINDS = "the API server is awaited, which takes seconds to know the rights"
NOT_ALLOWED = (
    "The namespace is Kubernetes' or moorage's own, or it is not opened for pods that are root on their nodes: by the "
    "label moorage.dev/weka=privileged, and in systems.weka.namespaces where that is listed."
)
OPEN = f"{ADMIN} label the namespace moorage.dev/weka=privileged, and list it where namespaces are listed"

NAMESPACE_NOT_ALLOWED = "NamespaceNotAllowed", NOT_ALLOWED, OPEN, WARNS
IMAGE_NOT_ALLOWED = (
    "ImageNotAllowed",
    "Pods of this kind are root on their nodes, so moorage's administrator lists which images are run.",
    f"take an image that is listed, or {ADMIN} add this one to systems.weka.images",
    WARNS,
)
OVERRIDE_UNCONFIRMED = (
    "OverrideUnconfirmed",
    "An override that may harm data is set, and the annotation weka.io/confirm does not name it.",
    "annotate the object weka.io/confirm=OVERRIDE, or take the override out",
    WARNS,
)
UNHEEDED = (
    "Unheeded",
    "The spec sets fields from which nothing follows yet.",
    "nothing needs to be done; what they ask for is not there",
    WARNS,
)
HEEDED = "Heeded", "All that the spec sets is heeded.", "nothing"
TAKING_CARE = (
    "TakingCare",
    "The finalizer is set, so that nothing is left behind when it is deleted.",
    GOES_ON,
)
ORDER_REFUSED = (
    "OrderRefused",
    "An order was given to the product, and the product said no; the message has its words.",
    "mend what the words say; moorage gives the order again, at longer and longer intervals",
    WARNS,
)
