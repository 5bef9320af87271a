"""The RuntimeVersion of a `.krt` file. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from moorage.operators.kre import kinds
from moorage.operators.kre.krt import model

Given = dict[str, Any]
"""A config key as a spec has it: its name, with value or valueFrom."""


class Earlier(msgspec.Struct, frozen=True):
    """A version that is there, and what its config keys are given."""

    name: str
    created: str
    config: tuple[Given, ...] = ()


class Config(msgspec.Struct, frozen=True):
    """The keys of a new version."""

    keys: tuple[Given, ...]
    taken: dict[str, str]  # by key: the version whose value it has
    missing: tuple[str, ...]  # without a value


def config(krt: model.Krt, given: Mapping[str, str], earlier: Iterable[Earlier]) -> Config:
    """Of each key the value that was given, else that of the newest version which has one."""
    known: dict[str, tuple[str, Given]] = {}
    for version in sorted(earlier, key=lambda it: it.created):
        for each in version.config:
            if "value" in each or "valueFrom" in each:
                known[str(each["name"])] = (version.name, each)
    keys, taken, missing = [], {}, []
    for name in (*krt.config.variables, *krt.config.files):
        if name in given:
            keys.append({"name": name, "value": given[name]})
        elif name in known:
            taken[name], value = known[name]
            keys.append({field: value[field] for field in ("name", "value", "valueFrom") if field in value})
        else:
            keys.append({"name": name})
            missing.append(name)
    return Config(tuple(keys), taken, tuple(missing))


def key(digest: str) -> str:
    """Of the object with that archive: the same content is there once."""
    return f"{digest.partition(':')[2]}.krt"


def manifest(
    krt: model.Krt, proto: str, digest: str, keys: Iterable[Given], *, name: str, namespace: str, runtime: str
) -> dict[str, Any]:
    """To be applied."""
    workflows = [
        {
            "name": each.name,
            "entrypoint": each.entrypoint,
            "exitpoint": each.exitpoint,
            "nodes": [msgspec.to_builtins(node) for node in each.nodes],
        }
        for each in krt.workflows
    ]
    spec = {
        "runtimeRef": {"name": runtime},
        "version": krt.version,
        "description": krt.description,
        "entrypoint": {"image": krt.entrypoint.image, "proto": {"inline": proto}},
        "config": list(keys),
        "files": {"object": {"key": key(digest), "digest": digest}},
        "workflows": workflows,
    }
    return {
        "apiVersion": f"{kinds.GROUP}/{kinds.VERSION}",
        "kind": kinds.RUNTIME_VERSION.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }
