"""Where charts come from, by value of spec.cluster; a registry's credentials and CA are read from a Secret each time.

They reach helm through private files alone, never through a command line or the environment.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from moorage.api import builtin
from moorage.helm.charts import resolver
from moorage.helm.reasons import Reason
from moorage.kube import client as kube_client
from moorage.kube import errors
from moorage.runtime import source

from . import config


class _Secret(msgspec.Struct, frozen=True):
    data: dict[str, str] = {}


class Places:
    """The configured chart sources. `folder` is private and writable, `namespace` is the operator's own."""

    def __init__(self, places: config.Charts, client: kube_client.Client, namespace: str, folder: Path) -> None:
        self._places, self._client, self._namespace, self._folder = places, client, namespace, folder

    def name(self, cluster: str) -> str:
        """The source that a value of spec.cluster means."""
        return cluster if cluster in self._places.clusters else "default"

    def describe(self, name: str) -> str:
        """The source in words."""
        place = self._places.clusters.get(name, self._places.default)
        return f"chart folder {place.folder}" if place.folder else f"chart registry {place.oci}"

    async def source(self, name: str) -> resolver.ChartSource:
        """The source, ready for use. Raises SourceError when its Secret can't be had."""
        place = self._places.clusters.get(name, self._places.default)
        if place.folder:
            return resolver.FolderSource(place.folder)
        auth, ca = "", ""
        if place.secret_ref:
            data = await self._secret(place.secret_ref)
            auth, ca = self._write(name, place.oci, data)
        return resolver.OciSource(place.oci, plain_http=place.plain_http, auth_file=auth, ca_file=ca)

    async def _secret(self, name: str) -> dict[str, bytes]:
        try:
            found = await self._client.get(builtin.SECRET, self._namespace, name, as_=_Secret)
            return {key: base64.b64decode(value) for key, value in found.data.items()}
        except (errors.ApiError, binascii.Error) as error:
            message = f"the registry's Secret {self._namespace}/{name} can't be read: {error}"
            raise source.SourceError(Reason.CHART_UNREACHABLE, message) from error

    def _write(self, name: str, url: str, data: dict[str, bytes]) -> tuple[str, str]:
        """The files that helm reads; empty where the Secret has nothing for them."""
        folder = self._folder / name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        auth = data.get(".dockerconfigjson")
        if auth is None and "username" in data:
            pair = base64.b64encode(data["username"] + b":" + data.get("password", b"")).decode()
            auth = json.dumps({"auths": {urlsplit(url).netloc: {"auth": pair}}}).encode()
        return _private(folder / "config.json", auth), _private(folder / "ca.crt", data.get("ca.crt"))


def _private(path: Path, content: bytes | None) -> str:
    if content is None:
        return ""
    part = path.with_suffix(".part")
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
    part.replace(path)
    return str(path)
