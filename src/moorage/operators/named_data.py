"""Secrets and ConfigMaps that a spec names: read as they are now, and what they hold, text by text.

They are the user's own, so that nothing about them is taken for granted. It decides nothing and writes nothing.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from moorage.api import builtin, meta
from moorage.kube import client as kube_client
from moorage.kube import errors

Object = dict[str, Any]


async def read(client: kube_client.Client, resource: meta.Resource, namespace: str, name: str) -> Object | None:
    """The object as it is now; None where there is none."""
    try:
        return await client.get(resource, namespace, name)
    except errors.NotFound:
        return None


def texts(resource: meta.Resource, found: Mapping[str, Any]) -> dict[str, str]:
    """Each of its values that is text."""
    read_ = {key: _text(resource, value) for key, value in (found.get("data") or {}).items()}
    return {key: text for key, text in read_.items() if text is not None}


def fault(resource: meta.Resource, found: Mapping[str, Any], key: str) -> str:
    """Why there is no text under that key; empty where there is one, of whatever length."""
    data = found.get("data") or {}
    if key not in data:
        return f"it has no key {key}"
    return f"its key {key} is no text" if _text(resource, data[key]) is None else ""


def changed(found: Mapping[str, Any]) -> str:
    """When what it holds was changed last, by the API server's own notes; empty where it has none.

    Labels and annotations may change all day, and are nobody's data.
    """
    noted = found["metadata"].get("managedFields") or ()
    return max((str(it.get("time") or "") for it in noted if "f:data" in (it.get("fieldsV1") or {})), default="")


def _text(resource: meta.Resource, value: str) -> str | None:
    if resource == builtin.CONFIG_MAP:
        return value
    try:
        return base64.b64decode(value).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
