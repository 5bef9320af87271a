"""The reasons that are the Collector's own; those about its release are in `moorage.helm.reasons`."""

from __future__ import annotations

from moorage.runtime import decision


class Reason(decision.Reason):
    """Each with what it means, and what to do where the user must act."""

    INVALID_CONFIGURATION = (
        "InvalidConfiguration",
        "spec.collector.configuration is no base64 of a YAML mapping. The message says where; correct it.",
    )
    TAKING_CARE = "TakingCare", "The finalizer is set, so that nothing is left behind when the Collector is deleted."
    FORBIDDEN_NAMESPACE = (
        "ForbiddenNamespace",
        "Tenants can't live in the namespaces of Kubernetes or of moorage itself.",
    )
    CREATING_NAMESPACE = (
        "CreatingNamespace",
        "The tenant's namespace is created, and admits Collectors of this namespace.",
    )
    NAMESPACE_UNKNOWN = "NamespaceUnknown", "The tenant's namespace is not looked at yet."
    NAMESPACE_ENDING = "NamespaceEnding", "The tenant's namespace is being deleted; nothing can be made in it."
    NOT_ADMITTED = (
        "NotAdmitted",
        "The tenant's namespace does not admit Collectors of this namespace. An administrator may add that "
        "namespace to its annotation moorage.dev/collectors-from.",
    )
    BINDING = "Binding", "The operator is given its rights in the tenant's namespace."
    LEAVING = "Leaving", "Nothing is left to remove, as the tenant's namespace is gone."
