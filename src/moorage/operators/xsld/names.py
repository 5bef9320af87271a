"""What the three kinds and their objects are called: group, kinds, labels, finalizers, suffixes. Pure."""

from __future__ import annotations

from moorage.api import meta

GROUP, VERSION = "xsld.ibm.com", "v1alpha1"
CACHE = meta.Resource(GROUP, VERSION, "XsldCache", "xsldcaches")
GRID = meta.Resource(GROUP, VERSION, "DataGrid", "datagrids")
TEMPLATE = meta.Resource(GROUP, VERSION, "GridTemplate", "gridtemplates")

CACHE_FINALIZER = f"{GROUP}/cache"
GRID_FINALIZER = f"{GROUP}/grid"
TEMPLATE_FINALIZER = f"{GROUP}/template"

ALLOW_RECREATE = f"{GROUP}/allow-recreate"
"""Annotation of a DataGrid: "true" lets a change that the server can't make in place delete the grid with its data."""

APP = "app"
"""Label of every object of a cache, with the cache's name, as the original has it."""

SYSTEM = "xsld"
"""The system's name, as in the operator's configuration."""

VOLUME = "vol"
MOST_MEMBERS = 100
"""Of one cache."""


def placement(namespace: str) -> str:
    """All of a namespace is one process's: its caches with their grids and templates, its watches, polls and binding.

    The cache would be finer, but a grid may name its cache only later, and a placement never changes.
    """
    return f"xsld:{namespace}"


def lane(namespace: str, cache: str) -> str:
    """Everything that is done to one group is done one thing at a time."""
    return f"xsld:{namespace}/{cache}"
