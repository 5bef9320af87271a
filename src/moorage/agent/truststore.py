"""Certificates of authorities as the JVM reads them: a keystore of its oldest type, which holds nothing secret. Pure.

The product has no key for an authority, so that its JVM is told. What is made of the same certificates is the same.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import struct

FILE = "truststore.jks"

MOST = 2000
"""Certificates of the image's authorities and of the user's, together."""

_MAGIC, _VERSION, _TRUSTED = 0xFEEDFEED, 2, 2
_TYPE = b"X.509"
_SALT = b"Mighty Aphrodite"  # of the format
NO_PASSWORD = "changeit".encode("utf-16-be")  # that of the JVM's own: the digest finds damage, and keeps no secret

_PEM = re.compile(r"-----BEGIN CERTIFICATE-----(.*?)-----END CERTIFICATE-----", re.DOTALL)


def certificates(text: str) -> list[bytes]:
    """Those in a PEM file, each once. Raises ValueError for one that can't be read, and where there are too many."""
    found = dict.fromkeys(_der(body) for body in _PEM.findall(text))
    if len(found) > MOST:
        raise ValueError(f"{len(found)} certificates, and {MOST} may be")
    return list(found)


def _der(body: str) -> bytes:
    try:
        der = base64.b64decode("".join(body.split()), validate=True)
    except binascii.Error as error:
        raise ValueError("a certificate that is no base64") from error
    if der[:1] != b"\x30":
        raise ValueError("a certificate that is none")
    return der


def made(authorities: list[bytes]) -> bytes:
    """A keystore in which all of these are trusted."""
    entries = []
    for number, der in enumerate(authorities):
        alias = f"authority-{number}".encode()
        entries.append(struct.pack(">IH", _TRUSTED, len(alias)) + alias + struct.pack(">Q", 0) + certificate(der))
    return store(entries)


def certificate(der: bytes) -> bytes:
    """One, as it stands in an entry."""
    return struct.pack(">H", len(_TYPE)) + _TYPE + struct.pack(">I", len(der)) + der


def store(entries: list[bytes]) -> bytes:
    """A keystore of these entries."""
    text = struct.pack(">III", _MAGIC, _VERSION, len(entries)) + b"".join(entries)
    return text + hashlib.sha1(NO_PASSWORD + _SALT + text, usedforsecurity=False).digest()
