"""`moorage krt push`: a `.krt` file into a Runtime, with the user's own rights: its archive, then the RuntimeVersion.

The archive comes first, so that nothing runs that has no files; a push that was broken off is repeated as a whole, and
uploads nothing twice.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import dataclasses
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import click
import yaml

from moorage.api import builtin
from moorage.kube import client as kube_client
from moorage.kube import errors
from moorage.kube.http import port_forward
from moorage.operators.kre import kinds
from moorage.operators.kre.krt import archive, model, problems
from moorage.operators.kre.krt import check as krt_check
from moorage.operators.kre.push import manifest, signing, store
from moorage.operators.kre.runtime import types as runtime_types

from . import connection, lookup

_MANAGER = "moorage-krt"
_SERVER, _PORT = f"{kinds.workload('minio')}-0", 9000
_COLOURS = {"error": "red", "warning": "yellow", "note": "blue"}


@dataclasses.dataclass(frozen=True)
class _Packed:
    """An archive that can be a version."""

    file: BinaryIO
    size: int
    digest: str
    krt: model.Krt
    proto: str


@click.command()
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--runtime", default="", metavar="NAME", help="The Runtime; not needed where the namespace has one.")
@click.option("-n", "--namespace", default="", help="That of the context when left out.")
@click.option("-c", "--config", multiple=True, metavar="KEY=VALUE", help="The value of a config key.")
@click.option("--dry-run", is_flag=True, help="Upload nothing, and print the RuntimeVersion.")
@connection.KUBECONFIG
@connection.CONTEXT
def push(
    path: Path,
    runtime: str,
    namespace: str,
    config: tuple[str, ...],
    dry_run: bool,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """Bring FILE, a .krt archive, into a Runtime's object store, and make or change its RuntimeVersion.

    A config key that is not given has the value that it has in the newest version there that has one.

    Exit code: 0 it is there, 1 FILE can't be a version, 3 it could not be brought there.
    """
    given = _given(config)
    try:
        with path.open("rb") as file:
            packed = _packed(path, file)
            connection.run_loop(_push(packed, runtime, namespace, given, dry_run, kubeconfig, context))
    except OSError as error:
        raise connection.Untold(f"{path} can't be read: {error.strerror or error}") from error
    except store.StoreError as error:
        raise connection.Untold(str(error)) from error
    except errors.KubeError as error:
        raise connection.Untold(f"{error}{lookup.hint(error)}") from error


def told(problem: problems.Problem, path: Path) -> str:
    """FILE:LINE:COLUMN: error: what is wrong, and below it what to do."""
    place = str(path / problem.file) if problem.file else str(path)
    if problem.line:
        place += f":{problem.line}:{problem.column}"
    kind = click.style(problem.severity, fg=_COLOURS[problem.severity], bold=True)
    return f"{click.style(place, bold=True)}: {kind}: {problem.message}" + (
        f"\n    {problem.fix}" if problem.fix else ""
    )


def _given(config: tuple[str, ...]) -> dict[str, str]:
    pairs = [each.partition("=") for each in config]
    if wrong := [name for name, equals, _ in pairs if not equals or not name]:
        raise click.BadParameter(f"{wrong[0]!r} gives no value: write KEY=VALUE", param_hint="--config")
    return {name: value for name, _, value in pairs}


def _packed(path: Path, file: BinaryIO) -> _Packed:
    """Checked as `moorage krt check` does; what can't be a version ends here, with all that is wrong."""
    size = path.stat().st_size
    try:
        found = archive.read(file, size)
    except archive.KrtError as error:
        click.echo(told(problems.Problem("error", error.message, error.fix), path), err=True)
        sys.exit(1)
    report = krt_check.judged(found)
    for problem in report.problems:
        click.echo(told(problem, path), err=True)
    if not report.fit or report.krt is None:
        sys.exit(1)
    try:
        proto = found.texts[report.krt.entrypoint.proto].decode()
    except UnicodeDecodeError as error:
        raise connection.Untold(f"{report.krt.entrypoint.proto} is no UTF-8, as a .proto must be") from error
    return _Packed(file, size, archive.digest(file), report.krt, proto)


async def _push(
    packed: _Packed,
    runtime: str,
    namespace: str,
    given: Mapping[str, str],
    dry_run: bool,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    async with connection.connected(kubeconfig, context) as (client, own):
        place = namespace or own
        target = await _runtime(client, place, runtime)
        versions = (await client.list(kinds.RUNTIME_VERSION, place)).items
        config = manifest.config(packed.krt, given, _earlier(versions, packed.krt.version))
        if unknown := sorted(given.keys() - {each["name"] for each in config.keys}):
            raise click.BadParameter(f"the version has no config key {unknown[0]}", param_hint="--config")
        body = manifest.manifest(
            packed.krt,
            packed.proto,
            packed.digest,
            config.keys,
            name=_name(versions, packed.krt.version),
            namespace=place,
            runtime=target.metadata.name,
        )
        if dry_run:
            click.echo(yaml.safe_dump(body, sort_keys=False), nl=False)
            return
        await _upload(client, place, target, packed)
        name = body["metadata"]["name"]
        await client.apply(kinds.RUNTIME_VERSION, place, name, body, field_manager=_MANAGER)
    for key, version in config.taken.items():
        click.echo(f"{key} is as in {version}")
    for key in config.missing:
        click.echo(f"{key} has no value yet, and nothing starts without: give it by --config {key}=VALUE")
    click.echo(f"RuntimeVersion {name} is applied; see how it starts: moorage status runtimeversion/{name} -n {place}")


async def _runtime(client: kube_client.Client, namespace: str, name: str) -> runtime_types.Runtime:
    there = (await client.list(kinds.RUNTIME, namespace, as_=runtime_types.Runtime)).items
    found = [each for each in there if name in ("", each.metadata.name)]
    if len(found) == 1:
        return found[0]
    names = ", ".join(sorted(each.metadata.name for each in there)) or "none"
    if name:
        raise connection.Untold(f"there is no Runtime {name} in namespace {namespace}; there is {names}")
    raise connection.Untold(f"namespace {namespace} has not one Runtime but {names}: name one by --runtime, or by -n")


def _earlier(versions: list[dict[str, Any]], version: str) -> list[manifest.Earlier]:
    """What is there; the version itself counts as the newest."""
    return [
        manifest.Earlier(
            each["spec"]["version"],
            "~" if each["spec"]["version"] == version else each["metadata"]["creationTimestamp"],
            tuple(each["spec"].get("config") or ()),
        )
        for each in versions
    ]


def _name(versions: list[dict[str, Any]], version: str) -> str:
    """Of the RuntimeVersion: that of the one that is there."""
    there = (each["metadata"]["name"] for each in versions if each["spec"]["version"] == version)
    return next(there, version)


async def _upload(client: kube_client.Client, namespace: str, target: runtime_types.Runtime, packed: _Packed) -> None:
    login = await _login(client, namespace)

    @contextlib.asynccontextmanager
    async def connect() -> AsyncIterator[port_forward.Stream]:
        async with client.forward(namespace, _SERVER, _PORT) as stream:
            yield stream

    to, key = store.Store(connect, login), manifest.key(packed.digest)
    await to.prepare(kinds.BUCKET)
    if await to.has(kinds.BUCKET, key, packed.size):
        click.echo(f"{packed.digest} is in the store of Runtime {target.metadata.name} already")
        return
    content = packed.digest.partition(":")[2]
    with click.progressbar(length=packed.size, label="Uploading", file=sys.stderr) as bar:
        await to.put(kinds.BUCKET, key, packed.file, packed.size, content, bar.update)
    click.echo(f"{packed.digest} is in the store of Runtime {target.metadata.name}")


async def _login(client: kube_client.Client, namespace: str) -> signing.Login:
    """Who may write there: by the Secret that its servers are given."""
    data = (await client.get(builtin.SECRET, namespace, kinds.IN_USE)).get("data") or {}
    try:
        pair = [base64.b64decode(data[key], validate=True).decode() for key in ("minioAccessKey", "minioSecretKey")]
    except (KeyError, binascii.Error, UnicodeDecodeError) as error:
        raise connection.Untold(
            f"Secret {kinds.IN_USE} has no minioAccessKey and minioSecretKey that can be read"
        ) from error
    return signing.Login(*pair)
