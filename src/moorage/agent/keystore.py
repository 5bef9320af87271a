"""The certificate that servers show the database, with its key, as the JVM reads them. Pure.

Of the type of `truststore`. The format wants a password, and this one is public: what keeps the key is that the file
is in the pod's memory. What is made of the same two is the same, so that nobody is restarted for nothing.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import struct

from . import truststore

FILE = "keystore.jks"

_PRIVATE = 1
_PEM = re.compile(r"-----BEGIN ([A-Z ]*PRIVATE KEY)-----(.*?)-----END \1-----", re.DOTALL)
_SEQUENCE, _OCTETS, _EXPLICIT_0 = 0x30, 0x04, 0xA0
_VERSION_0 = b"\x02\x01\x00"
_RSA = bytes.fromhex("300d06092a864886f70d0101010500")  # its algorithm: rsaEncryption, without parameters
_EC = bytes.fromhex("06072a8648ce3d0201")  # ecPublicKey, which its curve follows
_PROTECTED = bytes.fromhex("300e060a2b060104012a021101010500")  # by the format's own means


def made(certificates: str, key: str) -> bytes:
    """A keystore with this one entry; the first certificate is the key's, others lead to its authority.

    Raises ValueError for what can't be read; nothing of the key stands in its words.
    """
    chain = truststore.certificates(certificates)
    if not chain:
        raise ValueError("tls.crt has no certificate")
    protected = _protected(_private(key))
    alias = b"client"
    entry = struct.pack(">IH", _PRIVATE, len(alias)) + alias + struct.pack(">Q", 0)
    entry += struct.pack(">I", len(protected)) + protected
    entry += struct.pack(">I", len(chain)) + b"".join(map(truststore.certificate, chain))
    return truststore.store([entry])


def _private(pem: str) -> bytes:
    """The key in the one form that the JVM takes, from each of the three in which tools write it."""
    if (found := _PEM.search(pem)) is None:
        raise ValueError("tls.key has no private key in the form PEM")
    kind, body = found.groups()
    try:
        der = _whole(base64.b64decode("".join(body.split()), validate=True))
        match kind:
            case "PRIVATE KEY":
                return der
            case "RSA PRIVATE KEY":
                return _der(_SEQUENCE, _VERSION_0 + _RSA + _der(_OCTETS, der))
            case "EC PRIVATE KEY":
                algorithm = _der(_SEQUENCE, _EC + _curve(der))
                return _der(_SEQUENCE, _VERSION_0 + algorithm + _der(_OCTETS, der))
    except (ValueError, IndexError, binascii.Error):
        raise ValueError("the key in tls.key can't be read") from None
    raise ValueError(f"tls.key has a key of the kind {kind[:40]}, and must have a plain one: PRIVATE KEY, RSA or EC")


def _curve(der: bytes) -> bytes:
    """Which curve a key of the older form is on, as it says itself. Raises ValueError and IndexError."""
    _, inner, _ = _part(der, 0)
    at = 0
    while at < len(inner):
        tag, content, at = _part(inner, at)
        if tag == _EXPLICIT_0:
            return content
    raise ValueError


def _whole(der: bytes) -> bytes:
    """The same, if it is one sequence and nothing behind it. Raises ValueError and IndexError."""
    tag, _, end = _part(der, 0)
    if tag != _SEQUENCE or end != len(der):
        raise ValueError
    return der


def _part(der: bytes, at: int) -> tuple[int, bytes, int]:
    """(tag, content, where it ends). Raises ValueError and IndexError."""
    tag, length, at = der[at], der[at + 1], at + 2
    if length >= 0x80:
        more = length & 0x7F
        length, at = int.from_bytes(der[at : at + more]), at + more
    if at + length > len(der):
        raise ValueError
    return tag, der[at : at + length], at + length


def _der(tag: int, content: bytes) -> bytes:
    length = len(content)
    if length < 0x80:
        return bytes([tag, length]) + content
    size = length.to_bytes((length.bit_length() + 7) // 8)
    return bytes([tag, 0x80 | len(size)]) + size + content


def _protected(key: bytes) -> bytes:
    """As the format has keys: changed by a stream that begins with a salt, and followed by what finds damage."""
    password = truststore.NO_PASSWORD
    salt = last = hashlib.sha1(key, usedforsecurity=False).digest()
    stream = b""
    while len(stream) < len(key):
        last = hashlib.sha1(password + last, usedforsecurity=False).digest()
        stream += last
    changed = bytes(one ^ other for one, other in zip(key, stream, strict=False))
    check = hashlib.sha1(password + key, usedforsecurity=False).digest()
    return _der(_SEQUENCE, _PROTECTED + _der(_OCTETS, salt + changed + check))
