"""Ways in to an API server: address, TLS, and headers that stay fresh.

Observes the kubeconfig files, the service account's files, and what exec plugins print. Writes nothing. What can go
wrong: a file is missing or malformed, or a plugin fails; all of it is `CredentialsError`, never a bare OSError.

The cluster's CA may be rotated while a process runs, as tokens and certificates are: it is read again with them, and
when a server's certificate is not trusted. A new one that can't be used changes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import pathlib
import ssl
import tempfile
import time
from collections.abc import Callable, Mapping

from . import errors, kubeconfig

__all__ = ["SERVICE_ACCOUNT", "Credentials", "InCluster", "Kubeconfig", "discover", "from_kubeconfig", "in_cluster"]

SERVICE_ACCOUNT = pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount")
REREAD = 60.0  # seconds; the kubelet renews a projected token when a fifth of its life (at least 2 minutes) is left
DISTRUST = 5.0  # seconds between readings because of certificates that are not trusted


class Credentials:
    """Address, TLS and headers for one API server. Subclasses say how they are renewed.

    One object gives one TLS context for all connections: a context of its own costs each connection about 0.8 MB.
    """

    def __init__(self, server: str, *, namespace: str = "default", server_name: str = "", proxy: str = "") -> None:
        self.server = server.rstrip("/")
        self.namespace = namespace  # where the caller lives, or the context's default
        self.server_name = server_name  # the name to verify in the certificate, when not the host's
        self.proxy = proxy
        self.generation = 0  # counts renewals of certificate or CA; connections made before know the old ones
        self._tls: ssl.SSLContext | None = None
        self._distrusted_at = -math.inf

    def tls(self) -> ssl.SSLContext | None:
        """The one TLS context, or None for plain HTTP."""
        if self._tls is None and self.server.startswith("https:"):
            self._tls = self._make_tls()
        return self._tls

    def _make_tls(self) -> ssl.SSLContext:
        return ssl.create_default_context()

    async def headers(self) -> Mapping[str, str]:
        """Headers for the next request; renews what is about to run out."""
        return {}

    async def refresh(self) -> bool:
        """Read everything anew, after a 401. True when that is worth one more try."""
        return False

    async def distrust(self, generation: int) -> bool:
        """Read the CA anew, as the certificate of a server was not trusted by what was known at that generation.

        True when another is known now, which is worth one more try.
        """
        if generation == self.generation and (now := time.monotonic()) - self._distrusted_at >= DISTRUST:
            self._distrusted_at = now
            await self.refresh()
        return generation != self.generation

    def _renew_tls(self) -> None:
        """Trust and certificate have changed: new connections use the new ones, and only they are used again."""
        if self._tls is None:
            return
        try:
            self._tls = self._make_tls()
        except errors.CredentialsError:  # half written, or malformed: what is known may still do
            return
        self.generation += 1


class InCluster(Credentials):
    """A pod's service account. Its files are re-read each minute, as the kubelet renews them."""

    def __init__(
        self,
        server: str,
        *,
        folder: pathlib.Path = SERVICE_ACCOUNT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._token = ""
        self._authority = b""
        self._read_at = 0.0
        super().__init__(server, namespace=self._text("namespace", default="default"))
        self._read_token()

    def _text(self, name: str, default: str = "") -> str:
        path = self._folder / name
        try:
            return path.read_text(encoding="utf-8").strip()
        except OSError as error:
            if default:
                return default
            raise errors.CredentialsError(
                f"service account file {path} can't be read ({error.strerror}); "
                "set automountServiceAccountToken on the pod"
            ) from error

    def _read_token(self) -> None:
        self._token = self._text("token")
        self._read_at = self._clock()

    def _read(self) -> None:
        self._read_token()
        with contextlib.suppress(OSError):
            if self._tls is not None and self._ca.read_bytes() != self._authority:
                self._renew_tls()

    @property
    def _ca(self) -> pathlib.Path:
        return self._folder / "ca.crt"

    def _make_tls(self) -> ssl.SSLContext:
        try:
            self._authority = self._ca.read_bytes()
            return ssl.create_default_context(cafile=str(self._ca))
        except (OSError, ssl.SSLError) as error:
            raise errors.CredentialsError(f"cluster CA {self._ca} can't be loaded: {error}") from error

    async def headers(self) -> Mapping[str, str]:
        """The bearer token, from a file read at most a minute ago."""
        if self._clock() - self._read_at >= REREAD:
            self._read()
        return {"Authorization": f"Bearer {self._token}"}

    async def refresh(self) -> bool:
        """True when the file holds another token than the one refused."""
        old = self._token
        self._read()
        return old != self._token


class Kubeconfig(Credentials):
    """One context of a kubeconfig. Read again each minute, as token files and plugins' tokens are renewed."""

    def __init__(
        self, reader: kubeconfig.Reader, settings: kubeconfig.Settings, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._reader = reader
        self._settings = settings
        self._clock = clock
        self._read_at = clock()
        self._lock = asyncio.Lock()
        super().__init__(
            settings.server,
            namespace=settings.namespace,
            server_name=settings.server_name,
            proxy=settings.proxy,
        )

    def _make_tls(self) -> ssl.SSLContext:
        try:
            context = ssl.create_default_context(cadata=self._settings.authority or None)
        except ssl.SSLError as error:
            raise errors.CredentialsError(f"the cluster's CA can't be loaded: {error}") from error
        if not self._settings.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        self._load_certificate(context)
        return context

    def _load_certificate(self, context: ssl.SSLContext) -> None:
        if not self._settings.certificate:
            return
        with tempfile.TemporaryDirectory() as folder:  # private; ssl takes a key only from a file
            chain, key = pathlib.Path(folder, "chain"), pathlib.Path(folder, "key")
            chain.write_text(self._settings.certificate, encoding="utf-8")
            key.write_text(self._settings.key, encoding="utf-8")
            try:
                context.load_cert_chain(chain, key)
            except (OSError, ssl.SSLError) as error:
                raise errors.CredentialsError(f"the client certificate can't be loaded: {error}") from error

    async def _read(self, *, anew: bool) -> None:
        before = self._settings
        self._settings = await self._reader.read(anew=anew)
        self._read_at = self._clock()
        if _of_tls(before) != _of_tls(self._settings):
            self._renew_tls()

    async def headers(self) -> Mapping[str, str]:
        """The bearer token if the user has one, at most a minute old."""
        if self._clock() - self._read_at >= REREAD:
            async with self._lock:
                if self._clock() - self._read_at >= REREAD:
                    await self._read(anew=False)
        value = self._settings.authorization
        return {"Authorization": value} if value else {}

    async def refresh(self) -> bool:
        """True when reading anew, which runs an exec plugin again, gave another token or certificate."""
        refused = self._settings
        async with self._lock:
            if self._settings is refused:
                await self._read(anew=True)
        return self._settings != refused


def _of_tls(settings: kubeconfig.Settings) -> tuple[str, str, str, bool]:
    return settings.certificate, settings.key, settings.authority, settings.verify


def in_cluster(folder: pathlib.Path = SERVICE_ACCOUNT, environ: Mapping[str, str] | None = None) -> InCluster:
    """The service account of the pod that this runs in. Raises CredentialsError outside of one."""
    environ = os.environ if environ is None else environ
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise errors.CredentialsError("not in a cluster: KUBERNETES_SERVICE_HOST is not set; give a kubeconfig")
    if ":" in host:
        host = f"[{host}]"
    return InCluster(f"https://{host}:{port}", folder=folder)


async def from_kubeconfig(path: str | os.PathLike[str] | None = None, context: str | None = None) -> Kubeconfig:
    """A context of a kubeconfig: `path`, else $KUBECONFIG (several files are merged), else ~/.kube/config.

    The current context when none is named. Raises CredentialsError.
    """
    files = os.fspath(path) if path else os.environ.get("KUBECONFIG") or "~/.kube/config"
    reader = kubeconfig.Reader(files, context)
    return Kubeconfig(reader, await reader.read())


async def discover(kubeconfig: str | os.PathLike[str] | None = None, context: str | None = None) -> Credentials:
    """What was asked for, else the pod's own service account, else the user's kubeconfig.

    In a pod that means the service account; naming a file or a context overrides it. Raises CredentialsError.
    """
    if kubeconfig is None and context is None:
        mounted = (SERVICE_ACCOUNT / "token").exists()
        if mounted and os.environ.get("KUBERNETES_SERVICE_HOST"):
            return in_cluster()
    return await from_kubeconfig(kubeconfig, context)
