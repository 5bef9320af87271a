"""The real helm binary, run as a child process. I/O.

Observes nothing by itself; writes releases through helm and private files under its scratch folder. Each call has a
deadline; helm is told an earlier one, so that it normally ends by its own hand. On cancellation, on the deadline, and
when the gate closes through which it writes, it is stopped (see `process`); a helm that had to be killed leaves a
pending release record, which `records.with_status` frees.

No secret is on a command line, in the environment or in a file that this module makes: values go through stdin, the
token stays in the file that the kubelet rotates, and registry passwords in a file that the caller owns.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from moorage.helm.charts import chart_archive, values
from moorage.runtime import gate

from . import failures, post_renderer, process, redaction, scaling

__all__ = ["Capabilities", "Done", "Helm", "HelmFailed", "KubeAccess", "Pulled"]

HelmFailed = failures.HelmFailed
MAX_ARGUMENT, MAX_NAMES = 100_000, 1_500_000  # bytes
_WRITES = frozenset({"install", "upgrade", "rollback", "uninstall"})
_OPEN = gate.Gate()  # for whoever runs helm under no lease
RUN_LIMIT = 900.0  # seconds for a run, in which several hooks may take their time one after another
_PASSED_ON = ("PATH", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "TZ")


class KubeAccess(msgspec.Struct, frozen=True):
    """How helm reaches the API server: in a cluster by address, CA and token file; elsewhere by a kubeconfig."""

    server: str = ""
    ca_file: str = ""
    token_file: str = ""  # read by helm for each connection, so a rotated token is taken up
    kubeconfig: str = ""  # when set, the others are not used
    context: str = ""  # of that kubeconfig; empty is its current one


class Capabilities(msgspec.Struct, frozen=True):
    """What a chart may ask of the cluster while it is rendered offline."""

    kube_version: str = ""  # "v1.35.4"
    api_versions: tuple[str, ...] = ()  # "apps/v1" and "apps/v1/Deployment"


class Done(msgspec.Struct, frozen=True):
    """A command that succeeded. `revision` is 0 where helm names none."""

    revision: int = 0
    warnings: tuple[str, ...] = ()


class Pulled(msgspec.Struct, frozen=True):
    """A chart archive from a registry. `digest` is of the registry's manifest, not of the archive."""

    path: Path
    version: str
    digest: str


class Helm:
    """Runs helm. One instance may run any number of calls at once; how many is for the caller to bound.

    `as_user`: with whose rights helm reads and writes, by impersonation; empty is its own.
    """

    def __init__(self, path: str | Path, kube: KubeAccess, scratch: Path, *, grace: float = 5.0) -> None:
        """`scratch` is made private and is ours alone; `grace` is in seconds, from SIGTERM to SIGKILL."""
        self.path, self._kube, self._grace = str(path), kube, grace
        self._home = scratch
        for folder in ("", "tmp", "cache", "config", "data", "kube"):
            (scratch / folder).mkdir(mode=stat.S_IRWXU, parents=True, exist_ok=True)
        scratch.chmod(stat.S_IRWXU)
        for left_over in (scratch / "tmp").iterdir():  # of an instance that was killed
            shutil.rmtree(left_over, ignore_errors=True)
        self._kubeconfig = Path(kube.kubeconfig) if kube.kubeconfig else _write_kubeconfig(scratch, kube)

    async def version(self) -> str:
        """The binary's version, such as v4.1.4."""
        ended = await self._run("version", ["version", "--template", "{{.Version}}"], 10)
        return ended.stdout.decode().strip()

    async def upgrade_install(
        self,
        release: str,
        namespace: str,
        chart: Path,
        values: Mapping[str, Any],
        *,
        digest_labels: Mapping[str, str] | None = None,
        description: str = "",
        history_max: int = 5,
        timeout: float = 300,
        limit: float = RUN_LIMIT,
        take_ownership: bool = False,
        crds: bool = False,
        as_user: str = "",
        scaled: tuple[scaling.Scaled, ...] = (),
    ) -> Done:
        """Installs the release or upgrades it to exactly these values (never to merged earlier ones).

        `timeout` is for each hook, `limit` for all, in seconds.

        Objects are applied by the server, and fields that others took are taken back, but for what is `scaled`.
        Returns when all is applied and hooks have ended, not when pods run; `health` says that. On failure nothing is
        rolled back: the record tells. CRDs of the chart are left out unless `crds`: they belong to the cluster, and
        helm never upgrades them.
        """
        args = ["upgrade", release, str(chart), "--install", "--reset-values", f"--history-max={history_max}"]
        args += _applied(namespace, timeout, digest_labels or {}, description, take_ownership=take_ownership, crds=crds)
        args += [f"--post-renderer={post_renderer.NAME}"] if scaled else []
        about = (release, namespace)
        ended = await self._run(
            "upgrade", args, limit, given=values, archive=chart, keep=about, as_user=as_user, scaled=scaled
        )
        return _done(ended)

    async def install(
        self,
        release: str,
        namespace: str,
        chart: Path,
        values: Mapping[str, Any],
        *,
        digest_labels: Mapping[str, str] | None = None,
        description: str = "",
        timeout: float = 300,
        limit: float = RUN_LIMIT,
        take_ownership: bool = False,
        crds: bool = False,
        as_user: str = "",
        scaled: tuple[scaling.Scaled, ...] = (),
    ) -> Done:
        """Installs a release that is not there, or of which each revision so far has failed: with its install hooks.

        Nothing is deleted for it: objects that a failed revision has made are applied anew. An upgrade of such a
        revision, as of `upgrade_install`, would run the hooks of upgrades. History is not bounded here.
        """
        args = ["install", release, str(chart), "--replace"]
        args += _applied(namespace, timeout, digest_labels or {}, description, take_ownership=take_ownership, crds=crds)
        args += [f"--post-renderer={post_renderer.NAME}"] if scaled else []
        about = (release, namespace)
        ended = await self._run(
            "install", args, limit, given=values, archive=chart, keep=about, as_user=as_user, scaled=scaled
        )
        return _done(ended)

    async def rollback(
        self,
        release: str,
        namespace: str,
        revision: int,
        *,
        history_max: int = 5,
        timeout: float = 300,
        limit: float = RUN_LIMIT,
        as_user: str = "",
    ) -> Done:
        """Makes a new revision out of an earlier one, with that one's labels."""
        args = [
            "rollback",
            release,
            str(revision),
            "--server-side=true",
            "--force-conflicts",
            f"--history-max={history_max}",
        ]
        args += [*_in(namespace), *_timeout(timeout)]
        return _done(await self._run("rollback", args, limit, as_user=as_user))

    async def uninstall(
        self,
        release: str,
        namespace: str,
        *,
        timeout: float = 300,
        limit: float = RUN_LIMIT,
        cascade: str = "background",
        hooks: bool = True,
        as_user: str = "",
    ) -> Done:
        """Deletes the release's objects and records; a release that is not there counts as success. Doesn't wait."""
        args = ["uninstall", release, "--ignore-not-found", f"--cascade={cascade}", *_in(namespace), *_timeout(timeout)]
        args += [] if hooks else ["--no-hooks"]
        return _done(await self._run("uninstall", args, limit, as_user=as_user))

    async def template(
        self,
        chart: Path,
        values: Mapping[str, Any],
        release: str,
        namespace: str,
        capabilities: Capabilities,
        *,
        is_upgrade: bool = False,
        timeout: float = 30,
    ) -> str:
        """The manifest with hooks (test hooks left out), rendered offline. Looks at no cluster."""
        args = ["template", release, str(chart), "--values=-", "--skip-tests", "--namespace", namespace]
        args += ["--is-upgrade"] if is_upgrade else []
        args += [f"--kube-version={capabilities.kube_version}"] if capabilities.kube_version else []
        args += _api_versions(capabilities.api_versions)
        about = (release, namespace)
        ended = await self._run("template", args, timeout, given=values, archive=chart, keep=about, offline=True)
        return ended.stdout.decode()

    async def pull(
        self,
        oci_ref: str,
        version: str,
        dest: Path,
        *,
        registry_config: Path | None = None,
        ca_file: str = "",
        plain_http: bool = False,
        timeout: float = 120,
    ) -> Pulled:
        """Fetches one archive into the empty folder `dest`. `version` may be a range; empty is the newest stable."""
        args = ["pull", oci_ref, "--destination", str(dest)]
        args += [f"--version={version}"] if version else []
        args += [f"--registry-config={registry_config}"] if registry_config else []
        args += [f"--ca-file={ca_file}"] if ca_file else []
        args += ["--plain-http"] if plain_http else []
        ended = await self._run("pull", args, timeout, offline=True)
        text = ended.stdout.decode() + ended.text
        digest = re.search(r"sha256:[0-9a-f]{64}", text)
        archives = [dest / name for name in sorted(os.listdir(dest)) if name.endswith(".tgz")]
        if len(archives) != 1:
            raise HelmFailed(failures.FailureKind.NOT_FOUND, f"{oci_ref} gave {len(archives)} archives", command="pull")
        tag = re.search(r"^Pulled: \S+:(\S+)$", text, re.MULTILINE)
        return Pulled(archives[0], tag.group(1).replace("_", "+") if tag else "", digest.group() if digest else "")

    async def _run(
        self,
        command: str,
        args: Sequence[str],
        timeout: float,
        *,
        given: Mapping[str, Any] | None = None,
        archive: Path | None = None,
        keep: Sequence[str] = (),
        offline: bool = False,
        as_user: str = "",
        scaled: tuple[scaling.Scaled, ...] = (),
    ) -> process.Ended:
        work = Path(tempfile.mkdtemp(dir=self._home / "tmp"))
        try:
            stdin = values.encode(given) if given is not None else b""
            env = self._environment(work, offline) | ({"HELM_KUBEASUSER": as_user} if as_user else {})
            if scaled:
                env["HELM_PLUGINS"] = str(post_renderer.install(work, scaled))
            ended = await process.run(
                [self.path, *args], stdin=stdin, env=env, timeout=timeout, grace=self._grace, through=_gate(args)
            )
        except OSError as error:
            missing = isinstance(error, FileNotFoundError | PermissionError)
            kind = failures.FailureKind.BINARY_MISSING if missing else failures.FailureKind.NO_SPACE
            raise HelmFailed(kind, f"{self.path} can't be run: {error.strerror}", command=command) from None
        finally:
            shutil.rmtree(work, ignore_errors=True)
        if ended.code == 0 and not ended.cut_off and not ended.timed_out:
            return ended
        raise await asyncio.to_thread(_failure, command, ended, timeout, given or {}, archive, keep)

    def _environment(self, work: Path, offline: bool) -> dict[str, str]:
        home = self._home
        env = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        # credential helpers of a person's kubeconfig look into the person's home; in a cluster there are none
        env["HOME"] = os.environ.get("HOME", str(home)) if self._kube.kubeconfig and not offline else str(home)
        env |= {f"HELM_{name}_HOME": str(home / name.lower()) for name in ("CACHE", "CONFIG", "DATA")}
        env |= {"HELM_PLUGINS": "", "HELM_NO_PLUGINS": "1", "HELM_DRIVER": "secret", "HELM_COLOR": "never"}
        env |= {
            "TMPDIR": str(work),
            "KUBECACHEDIR": str(home / "kube"),
            "HELM_REGISTRY_CONFIG": str(home / "registry.json"),
        }
        env["KUBECONFIG"] = os.devnull if offline else str(self._kubeconfig)
        if self._kube.context and not offline:
            env["HELM_KUBECONTEXT"] = self._kube.context
        return env


def _gate(args: Sequence[str]) -> gate.Gate | None:
    """The gate through which that command writes; one that only reads or renders may go on when it closes."""
    writes = args[0] in _WRITES and not any(each.startswith("--dry-run") for each in args)
    return gate.current(_OPEN) if writes else None


def _write_kubeconfig(folder: Path, kube: KubeAccess) -> Path:
    """A kubeconfig that holds paths, no secrets; JSON is YAML."""
    cluster: dict[str, Any] = {"server": kube.server}
    if kube.ca_file:
        cluster["certificate-authority"] = kube.ca_file
    body = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "moorage",
        "clusters": [{"name": "moorage", "cluster": cluster}],
        "users": [{"name": "moorage", "user": {"tokenFile": kube.token_file} if kube.token_file else {}}],
        "contexts": [{"name": "moorage", "context": {"cluster": "moorage", "user": "moorage"}}],
    }
    path = folder / "kubeconfig"
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, stat.S_IRUSR | stat.S_IWUSR), "w") as file:
        json.dump(body, file)
    return path


def _own_values(archive: Path | None) -> Mapping[str, Any]:
    """Those of the chart, which may hold secrets too."""
    with contextlib.suppress(OSError, chart_archive.ChartError):  # then helm's words are about that
        return chart_archive.read_file(str(archive)).values if archive else {}
    return {}


def _failure(
    command: str,
    ended: process.Ended,
    timeout: float,
    given: Mapping[str, Any],
    archive: Path | None,
    keep: Sequence[str],
) -> HelmFailed:
    """What a command ended with. Takes its time with large values: not for the event loop."""
    secrets = redaction.of_values(_own_values(archive), "chart") | redaction.of_values(given)
    said = redaction.redact(failures.words(ended.text), secrets, keep)
    if ended.timed_out:
        kind, message = failures.FailureKind.TIMED_OUT, f"did not end within {timeout:g} s and was stopped"
        message = f"{message}: {said}" if said else message
    elif ended.cut_off:
        kind, message = failures.FailureKind.INVALID, f"gave more than {process.MAX_OUTPUT} bytes"
    else:
        kind = failures.FailureKind.KILLED if ended.code < 0 else failures.classify(ended.text)
        message = said or f"ended with code {ended.code} and without a word"
    return HelmFailed(kind, message, command=command, exit_code=ended.code)


def _api_versions(names: Sequence[str]) -> list[str]:
    """In arguments that the kernel takes: 128 KiB each, 2 MiB together with the environment.

    A cluster with more than some ten thousand kinds goes by group and version alone, which is what most charts ask for.
    """
    if sum(map(len, names)) > MAX_NAMES:
        names = [name for name in names if not name.rpartition("/")[2][:1].isupper()]  # a kind comes last
    args: list[str] = []
    room = 0
    for name in names:
        if len(name) >= room:
            args.append(f"--api-versions={name}")
            room = MAX_ARGUMENT
        else:
            args[-1] += f",{name}"
        room -= len(name) + 1
    return args


def _in(namespace: str) -> list[str]:
    return ["--namespace", namespace]


def _timeout(seconds: float) -> list[str]:
    return [f"--timeout={max(1, int(seconds))}s", "--wait=hookOnly"]


def _applied(
    namespace: str, timeout: float, labels: Mapping[str, str], description: str, *, take_ownership: bool, crds: bool
) -> list[str]:
    """What an install and an upgrade have in common."""
    args = ["--values=-", "--hide-notes", "--server-side=true", "--force-conflicts"]
    args += [*_in(namespace), *_timeout(timeout)]
    args += [] if crds else ["--skip-crds"]
    args += ["--take-ownership"] if take_ownership else []
    args += [f"--description={description}"] if description else []
    args += ["--labels=" + ",".join(f"{k}={v}" for k, v in sorted(labels.items()))] if labels else []
    return args


def _done(ended: process.Ended) -> Done:
    revision = re.search(r"^REVISION: (\d+)$", ended.stdout.decode(errors="replace"), re.MULTILINE)
    return Done(int(revision.group(1)) if revision else 0, failures.warnings(ended.text))
