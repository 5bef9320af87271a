"""The reasons that are the Collector's own; those about its release are in `moorage.helm.reasons`."""

from __future__ import annotations

from moorage.runtime import decision


class Reason(decision.Reason):
    """Each with what it means, and with what comes next."""

    INVALID_CONFIGURATION = (
        "InvalidConfiguration",
        "spec.collector.configuration is no base64 of a YAML mapping, or is too large. The message says where.",
        "correct spec.collector.configuration where the message says",
    )
    READING_CONFIGURATION = (
        "ReadingConfiguration",
        "The configuration is being read; what is large is read aside, one of a tenant at a time.",
        "moorage's own reading is awaited, which takes seconds; if it stays, an administrator must see to what the "
        "message names",
    )
    TAKING_CARE = (
        "TakingCare",
        "The finalizer is set, so that nothing is left behind when the Collector is deleted.",
        "moorage goes on with the tenant's namespace",
    )
    FORBIDDEN_NAMESPACE = (
        "ForbiddenNamespace",
        "Tenants can't live in the namespaces of Kubernetes or of moorage itself.",
        "make a new Collector with another tenant.reference",
    )
    CREATING_NAMESPACE = (
        "CreatingNamespace",
        "The tenant's namespace is created, and admits Collectors of this namespace.",
        "moorage goes on with its rights in the namespace",
    )
    NAMESPACE_UNKNOWN = (
        "NamespaceUnknown",
        "The tenant's namespace is not looked at yet.",
        "moorage's own look is awaited, which takes seconds; if it stays, an administrator must see to what the "
        "message names",
    )
    NAMESPACE_ENDING = (
        "NamespaceEnding",
        "The tenant's namespace is being deleted; nothing can be made in it.",
        "the end of the namespace is awaited; if it hangs, its conditions (kubectl describe namespace) say on what",
    )
    NOT_ADMITTED = (
        "NotAdmitted",
        "The tenant's namespace does not admit Collectors of this namespace.",
        "an administrator of the tenant's namespace may add this one to its annotation moorage.dev/collectors-from",
    )
    BINDING = (
        "Binding",
        "The operator is given its rights in the tenant's namespace.",
        "the API server is awaited, which takes seconds to know the rights",
    )
    LEAVING = "Leaving", "Nothing is left to remove, as the tenant's namespace is gone.", "the Collector goes at once"
