"""The built-in kinds that moorage names in code. All others are found by discovery."""

from __future__ import annotations

from .meta import Resource

CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
DISRUPTION_BUDGET = Resource("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
EVENT = Resource("events.k8s.io", "v1", "Event", "events")
INGRESS = Resource("networking.k8s.io", "v1", "Ingress", "ingresses")
LEASE = Resource("coordination.k8s.io", "v1", "Lease", "leases")
NAMESPACE = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
NODE = Resource("", "v1", "Node", "nodes", namespaced=False)
POD = Resource("", "v1", "Pod", "pods")
ROLE_BINDING = Resource("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings")
SECRET = Resource("", "v1", "Secret", "secrets")
SERVICE = Resource("", "v1", "Service", "services")
STATEFUL_SET = Resource("apps", "v1", "StatefulSet", "statefulsets")
STORAGE_CLASS = Resource("storage.k8s.io", "v1", "StorageClass", "storageclasses", namespaced=False)
VOLUME_CLAIM = Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
CRD = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)

DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
"""Annotation of a pod: the container that kubectl means where none is named."""
