"""What a version is given by ConfigMaps and Secrets of its namespace: which there are, with which keys. Pure.

Values are in none of this: of a ConfigMap's content there is a digest, and of a Secret the version that it was read in.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator

import msgspec

from moorage.api import builtin
from moorage.operators.kre import kinds

from . import types

CONFIG_MAP, SECRET = builtin.CONFIG_MAP.kind, builtin.SECRET.kind
MONGO_KEYS = ("mongoUser", "mongoPassword")
STORE_KEYS = ("minioAccessKey", "minioSecretKey")

Ref = tuple[str, str]
"""(kind, name) of an object."""

_CREDENTIALS = SECRET, kinds.IN_USE


@dataclasses.dataclass(frozen=True)
class Asked:
    """What is to be read for one version. Another spec asks for something else: nothing that was read holds for it."""

    namespace: str
    refs: tuple[Ref, ...]


class Found(msgspec.Struct, frozen=True):
    """One object that is there."""

    keys: frozenset[str]
    print: str  # changes with its content


Read = dict[Ref, Found | None]
"""By what was asked; None where there is none."""


class Inputs(msgspec.Struct, frozen=True):
    """What came of it."""

    missing: dict[str, str] = {}  # config keys without a value, each with what is missing
    files: str = ""  # what is wrong with them
    proto: str = ""
    secret: str = ""  # what is wrong with the Runtime's credentials
    print: str = ""  # changes with anything that was read


def asked(namespace: str, spec: types.RuntimeVersionSpec) -> Asked:
    """Of this spec, beside the Secret with the Runtime's credentials."""
    found: dict[Ref, None] = {_CREDENTIALS: None}
    for key in spec.config:
        found |= dict.fromkeys(ref for ref, _ in _of_key(key))
    found |= dict.fromkeys(_others(spec))
    return Asked(namespace, tuple(found))


def inputs(spec: types.RuntimeVersionSpec, read: Read) -> Inputs:
    """What the objects that were read come to for this spec."""
    missing = {key.name: why for key in spec.config if (why := _lacks(key, read)) is not None}
    files, proto = spec.files, spec.entrypoint.proto.config_map_ref
    needed = (*MONGO_KEYS, *(STORE_KEYS if files is not None and files.object is not None else ()))
    lost = next((why for key in needed if (why := _missing(_CREDENTIALS, key, read))), "")
    prints = [f"{kind}/{name} {found.print}" for (kind, name), found in sorted(read.items()) if found]
    return Inputs(
        missing,
        _missing((CONFIG_MAP, files.config_map_ref.name), "", read) if files and files.config_map_ref else "",
        _missing((CONFIG_MAP, proto.name), proto.key, read) if proto else "",
        lost,
        hashlib.blake2b("\n".join(prints).encode(), digest_size=8).hexdigest(),
    )


def _of_key(key: types.ConfigKey) -> Iterator[tuple[Ref, str]]:
    given = key.value_from
    if given is not None and given.config_map_key_ref is not None:
        yield (CONFIG_MAP, given.config_map_key_ref.name), given.config_map_key_ref.key
    if given is not None and given.secret_key_ref is not None:
        yield (SECRET, given.secret_key_ref.name), given.secret_key_ref.key


def _others(spec: types.RuntimeVersionSpec) -> Iterator[Ref]:
    if spec.entrypoint.proto.config_map_ref is not None:
        yield CONFIG_MAP, spec.entrypoint.proto.config_map_ref.name
    if spec.files is not None and spec.files.config_map_ref is not None:
        yield CONFIG_MAP, spec.files.config_map_ref.name


def _lacks(key: types.ConfigKey, read: Read) -> str | None:
    """Why the key has no value; None where it has one."""
    if key.value is not None:
        return None
    for ref, name in _of_key(key):
        return _missing(ref, name, read) or None
    return ""


def _missing(ref: Ref, key: str, read: Read) -> str:
    kind, name = ref
    found = read.get(ref)
    if found is None:
        return f"there is no {kind} {name}"
    return f"{kind} {name} has no key {key}" if key and key not in found.keys else ""
