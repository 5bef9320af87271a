"""The product's files: those of its image, what the document says over them, and the passwords. Pure.

They are written as JSON, which is YAML too, so that what is read back is what was meant.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec
import yaml

from . import document, keystore, truststore

NAMES = {
    "configuration": "configuration.yml",
    "storage": "storage-configuration.yml",
    "client": "client-configuration.yml",
}
"""The files, by what the document calls them."""

AUTHORITIES = "authorities.pem"
"""Of what the hook tells of the image: whom its programs trust, as one PEM file."""

ALL = (*NAMES.values(), truststore.FILE, keystore.FILE)
"""All that may be written."""


class Secrets(msgspec.Struct, frozen=True):
    """What stands in the files that the document names. Never told, never logged."""

    admin: str
    user: str = ""
    password: str = ""
    authority: str = ""  # that of the database, which is no secret, and read with them
    certificate: str = ""  # what servers show the database, and its key
    key: str = ""

    def __repr__(self) -> str:
        return "Secrets(...)"


def rendered(found: document.Document, own: Mapping[str, str], secrets: Secrets) -> dict[str, bytes]:
    """The files by name. `own` are those of the image, by name. Raises ValueError for one that can't be read."""
    made = {}
    for key, name in NAMES.items():
        try:
            base = yaml.safe_load(own.get(name, "")) or {}
        except yaml.YAMLError as error:
            raise ValueError(f"{name} of the image can't be read") from error
        if not isinstance(base, dict):
            raise ValueError(f"{name} of the image is no mapping")  # noqa: TRY004 - what is in a file, and no argument
        tree = over(base, found.args.get(key, {}))
        if key == "configuration" and found.auth.database is not None:
            login = {"user": secrets.user, "password": secrets.password}
            tree = over(tree, {"catalog": {"database": login}})
        made[name] = msgspec.json.format(msgspec.json.encode(tree, order="deterministic"), indent=2) + b"\n"
    if found.tls is not None and found.tls.ca_file_path:
        made[truststore.FILE] = _trusted(own.get(AUTHORITIES, ""), secrets.authority)
    if found.tls is not None and found.tls.certificate_file:
        try:
            made[keystore.FILE] = keystore.made(secrets.certificate, secrets.key)
        except ValueError as error:
            raise ValueError(f"the certificate for the database can't be used: {error}") from error
    return made


def _trusted(images: str, users: str) -> bytes:
    """The user's authority beside those of the image, by which other servers than the database are known."""
    try:
        given = truststore.certificates(users)
    except ValueError as error:
        raise ValueError(f"the authority of the database can't be read: {error}") from error
    if not given:
        raise ValueError("the authority of the database has no certificate")
    known = [each for each in truststore.certificates(images) if each not in given]
    return truststore.made([*given, *known])


def over(base: Any, laid: Any) -> Any:
    """What is laid over counts; mappings are joined."""
    if not isinstance(base, Mapping) or not isinstance(laid, Mapping):
        return laid
    return {**base, **{key: over(base[key], value) if key in base else value for key, value in laid.items()}}


def digest(made: Mapping[str, bytes]) -> str:
    """Names a set of files; empty where there are none."""
    if not made:
        return ""
    text = msgspec.json.encode(dict(made), order="deterministic")
    return hashlib.blake2b(text, digest_size=16).hexdigest()
