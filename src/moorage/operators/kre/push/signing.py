"""Requests to an S3 store, signed with version 4 of its signatures. Pure."""

from __future__ import annotations

import datetime
import hashlib
import hmac
import urllib.parse

import msgspec

REGION = "us-east-1"
"""Which a MinIO takes that was told of none."""

NOTHING = hashlib.sha256(b"").hexdigest()


class Login(msgspec.Struct, frozen=True):
    """Who asks."""

    access_key: str
    secret_key: str


def headers(
    method: str, host: str, path: str, content: str, login: Login, now: datetime.datetime
) -> tuple[str, dict[str, str]]:
    """The path as it goes over the wire, and what is sent beside; `content` is the SHA-256 of the body, in hex."""
    escaped = urllib.parse.quote(path, safe="/-_.~")
    stamp = now.astimezone(datetime.UTC).strftime("%Y%m%dT%H%M%SZ")
    scope = f"{stamp[:8]}/{REGION}/s3/aws4_request"
    signed = {"host": host, "x-amz-content-sha256": content, "x-amz-date": stamp}
    names = ";".join(signed)
    lines = "".join(f"{name}:{value}\n" for name, value in signed.items())
    canonical = f"{method}\n{escaped}\n\n{lines}\n{names}\n{content}"
    text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = f"AWS4{login.secret_key}".encode()
    for word in scope.split("/"):
        key = _keyed(key, word)
    signature = _keyed(key, text).hex()
    credential = f"AWS4-HMAC-SHA256 Credential={login.access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
    return escaped, {**signed, "authorization": credential}


def _keyed(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()
