"""kubeconfig files -> `Settings`.

One file whose user has a certificate, a token or a token file is read right here. Anything more (several files, exec
plugins, OIDC, cloud providers, passwords) is left to the kubeconfig library, whose import takes seconds and 60 MB. What
can go wrong is CredentialsError, which names the file.
"""

from __future__ import annotations

import base64
import os
import pathlib
from typing import Any

import msgspec
import yaml

from . import errors

__all__ = ["Reader", "Settings"]

_PLAIN_USER = {"client-certificate", "client-certificate-data", "client-key", "client-key-data", "token", "tokenFile"}


class Settings(msgspec.Struct, frozen=True):
    """What a context comes to. Certificates and keys are PEM texts."""

    server: str
    namespace: str = "default"
    authorization: str = ""  # the header's value
    authority: str = ""
    certificate: str = ""
    key: str = ""
    verify: bool = True
    server_name: str = ""
    proxy: str = ""


class Reader:
    """Reads one context, again and again: tokens and certificates are renewed in place."""

    def __init__(self, files: str, context: str | None) -> None:
        self._files = files
        self._context = context
        self._loader: Any = None  # the library's, which knows when a plugin's token runs out

    async def read(self, *, anew: bool = False) -> Settings:
        """The settings as they are now; `anew` also runs a plugin whose token should still be good."""
        try:
            if (plain := _plain(self._files, self._context)) is not None:
                return plain
            return await self._read_by_library(anew)
        except errors.CredentialsError:
            raise
        except Exception as error:  # the library and the plugins raise whatever they like
            why = f"kubeconfig {self._files} can't be used: {error}"
            raise errors.CredentialsError(f"{why}; check the context and its user") from error

    async def _read_by_library(self, anew: bool) -> Settings:
        from kubernetes_asyncio.client import Configuration
        from kubernetes_asyncio.config import kube_config

        if anew or self._loader is None:
            merged = kube_config.KubeConfigMerger(self._files).config
            self._loader = kube_config.KubeConfigLoader(
                config_dict=merged, config_base_path=None, active_context=self._context
            )
        found: Any = Configuration()
        await self._loader.load_and_set(found)
        context: Any = self._loader.current_context or {}
        return Settings(
            server=str(found.host),
            namespace=context.get("context", {}).get("namespace") or "default",
            authorization=str((found.api_key or {}).get("BearerToken", "")).strip(),
            authority=_text(found.ssl_ca_cert),
            certificate=_text(found.cert_file),
            key=_text(found.key_file),
            verify=bool(found.verify_ssl),
            server_name=found.tls_server_name or "",
            proxy=found.proxy or "",
        )


def _plain(files: str, context: str | None) -> Settings | None:
    """The settings of a file that needs no library, or None."""
    names = [pathlib.Path(name).expanduser() for name in files.split(os.pathsep) if name]
    present = [name for name in names if name.exists()]
    if not present:
        raise errors.CredentialsError(f"no kubeconfig at {files}; name one, or set KUBECONFIG")
    if len(present) > 1:
        return None
    config = yaml.load(present[0].read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    chosen = _named(config, "context", context or config.get("current-context", ""))
    cluster = _named(config, "cluster", chosen["cluster"])
    user = _named(config, "user", chosen["user"]) if chosen.get("user") else {}
    if not set(user) <= _PLAIN_USER:
        return None
    folder = present[0].parent
    token = user.get("token") or _text(folder / user["tokenFile"] if "tokenFile" in user else None)
    return Settings(
        server=cluster["server"],
        namespace=chosen.get("namespace") or "default",
        authorization=f"Bearer {token.strip()}" if token else "",
        authority=_pem(cluster, "certificate-authority", folder),
        certificate=_pem(user, "client-certificate", folder),
        key=_pem(user, "client-key", folder),
        verify=not cluster.get("insecure-skip-tls-verify", False),
        server_name=cluster.get("tls-server-name") or "",
        proxy=cluster.get("proxy-url") or "",
    )


def _named(config: dict[str, Any], kind: str, name: str) -> dict[str, Any]:
    for entry in config.get(f"{kind}s") or ():
        if entry["name"] == name:
            found: dict[str, Any] = entry[kind]
            return found
    raise errors.CredentialsError(
        f"the kubeconfig has no {kind} named {name!r}; `kubectl config view` shows what it has"
    )


def _pem(entry: dict[str, Any], key: str, folder: pathlib.Path) -> str:
    if data := entry.get(f"{key}-data"):
        return base64.b64decode(data).decode()
    return _text(folder / entry[key] if entry.get(key) else None)


def _text(path: str | pathlib.Path | None) -> str:
    return pathlib.Path(path).read_text(encoding="utf-8") if path else ""
