"""The command `moorage`: run the operator, write its definitions, and look at what it looks after."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec
import structlog
import yaml

from moorage import config as config_file
from moorage import operators
from moorage.api import kinds as api_kinds
from moorage.helm import binary
from moorage.kube import client as kube_client
from moorage.kube import credentials, errors, transport
from moorage.operators import system
from moorage.runtime import election, manager, telemetry
from moorage.view import model, text

T = TypeVar("T")
log = structlog.get_logger(__name__)

_COLOURS = {"green": "green", "yellow": "yellow", "red": "red"}


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="moorage")
def main() -> None:
    """One operator for stateful systems on Kubernetes."""


# --- run -------------------------------------------------------------------------------------------------------------


@main.command()
@click.option(
    "--config", "path", type=click.Path(path_type=Path), default="/etc/moorage/config.yaml", show_default=True
)
@click.option("--kubeconfig", type=click.Path(path_type=Path), help="Outside a cluster; $KUBECONFIG counts too.")
@click.option("--context", help="A context of the kubeconfig.")
@click.option("--helm", "helm_path", default="helm", show_default=True, help="The helm binary.")
@click.option(
    "--scratch", type=click.Path(path_type=Path), default="/scratch", show_default=True, help="A private folder."
)
def run(path: Path, kubeconfig: Path | None, context: str | None, helm_path: str, scratch: Path) -> None:
    """Run the operator until SIGTERM. Exit code 1 when the lease was lost."""
    try:
        loaded = config_file.load(path)
        telemetry.configure_logging(loaded.log_level, as_json=not sys.stderr.isatty())
    except (config_file.ConfigError, KeyError) as error:
        raise click.ClickException(str(error)) from error
    if not _run_loop(_operate(loaded, kubeconfig, context, Path(helm_path), scratch)):
        sys.exit(1)


def _run_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run on uvloop where it is installed."""
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    with contextlib.suppress(ImportError):
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(work)


async def _operate(
    loaded: config_file.Config, kubeconfig: Path | None, context: str | None, helm_path: Path, scratch: Path
) -> bool:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    namespace = os.environ.get("POD_NAMESPACE", "default")
    helm_path = Path(shutil.which(helm_path) or helm_path).absolute()
    lease = loaded.leader_election
    grace = (lease.duration_seconds - lease.renew_seconds) * 0.6
    around = system.Environment(namespace, scratch, helm_path, _access(kubeconfig, context), grace)
    kinds = [kind for name in loaded.systems for kind in operators.SYSTEMS[name].kinds(loaded.section(name), around)]
    settings = manager.Settings(
        identity=f"{os.environ.get('POD_NAME', socket.gethostname())}-{uuid.uuid4().hex[:8]}",
        namespace=namespace,
        lease=lease.lease_name,
        timing=election.Timing(lease.duration_seconds, lease.renew_seconds, lease.retry_seconds),
        elect=lease.enabled,
        host=loaded.http.host,
        port=loaded.http.port,
        workers=loaded.workers,
        task_limit=loaded.helm_runs,
    )
    async with _connected(kubeconfig, context) as client:
        return await manager.Manager(client, kinds, settings).run(stop)


def _access(kubeconfig: Path | None, context: str | None) -> binary.KubeAccess:
    """How helm reaches the same API server as this process."""
    chosen = str(kubeconfig or os.environ.get("KUBECONFIG", ""))
    if chosen or "KUBERNETES_SERVICE_HOST" not in os.environ:
        return binary.KubeAccess(kubeconfig=chosen or str(Path.home() / ".kube/config"), context=context or "")
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    account = credentials.SERVICE_ACCOUNT
    return binary.KubeAccess(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        ca_file=str(account / "ca.crt"),
        token_file=str(account / "token"),
    )


# --- crds ------------------------------------------------------------------------------------------------------------


@main.command()
@click.option("--into", type=click.Path(path_type=Path), help="Write NAME.yaml per system into this folder.")
@click.argument("systems", nargs=-1)
def crds(into: Path | None, systems: tuple[str, ...]) -> None:
    """Print the CustomResourceDefinitions, or write them as files."""
    for name in systems or tuple(operators.SYSTEMS):
        if name not in operators.SYSTEMS:
            raise click.ClickException(f"no system {name}; there are: {', '.join(operators.SYSTEMS)}")
        out = yaml.safe_dump_all(operators.SYSTEMS[name].definitions(), sort_keys=False, width=120)
        if into is None:
            click.echo(f"---\n{out}", nl=False)
        else:
            into.mkdir(parents=True, exist_ok=True)
            (into / f"{name}.yaml").write_text(out)


# --- looking ---------------------------------------------------------------------------------------------------------

_OUTPUT = click.option("-o", "--output", type=click.Choice(["text", "json", "yaml"]), default="text", show_default=True)
_NAMESPACE = click.option("-n", "--namespace", default="", help="All namespaces when left out and no name is given.")
_KUBECONFIG = click.option("--kubeconfig", type=click.Path(path_type=Path))
_CONTEXT = click.option("--context")


@main.command()
@click.argument("target", default="")
@_NAMESPACE
@_OUTPUT
@_KUBECONFIG
@_CONTEXT
@click.option("-w", "--watch", is_flag=True, help="Redraw every two seconds.")
def status(target: str, namespace: str, output: str, kubeconfig: Path | None, context: str | None, watch: bool) -> None:
    """One screen: all objects, or KIND/NAME. Exit code: 0 ready, 1 on its way, 2 stalled."""
    look = _Look(target, namespace, kubeconfig, context)
    while True:
        views = _ask(look)
        shown = _render(views, output, text.status if look.name else None)
        click.echo(f"\x1b[2J\x1b[H{shown}" if watch and sys.stdout.isatty() else shown)
        if not watch:
            sys.exit(max((view.exit_code for view in views), default=0))
        _run_loop(asyncio.sleep(2))


@main.command()
@click.argument("target")
@_NAMESPACE
@_OUTPUT
@_KUBECONFIG
@_CONTEXT
def explain(target: str, namespace: str, output: str, kubeconfig: Path | None, context: str | None) -> None:
    """Why KIND/NAME is where it is: first blocker on top, then facts and steps."""
    look = _Look(target, namespace, kubeconfig, context)
    if not look.name:
        raise click.ClickException("name one object, such as collector/hello")
    views = _ask(look)
    click.echo(_render(views, output, text.explain))
    sys.exit(views[0].exit_code)


class _Look:
    """What the user wants to look at. Raises ClickException for a kind that moorage does not know."""

    def __init__(self, target: str, namespace: str, kubeconfig: Path | None, context: str | None) -> None:
        kind, _, self.name = target.partition("/")
        known = {d.resource.kind.lower(): d for each in operators.SYSTEMS.values() for d in each.described}
        known |= {d.resource.plural: d for d in known.values()}
        if kind and kind.lower() not in known:
            raise click.ClickException(
                f"no kind {kind}; there are: {', '.join(sorted({d.resource.kind for d in known.values()}))}"
            )
        wanted = known.get(kind.lower())
        self.described = [wanted] if wanted else list({d.resource: d for d in known.values()}.values())
        self.namespace = namespace or ("default" if self.name else "")
        self.kubeconfig, self.context = kubeconfig, context

    async def fetch(self) -> list[model.ObjectView]:
        """The objects with their events."""
        views: list[model.ObjectView] = []
        async with _connected(self.kubeconfig, self.context) as client:
            for described in self.described:
                if self.name:
                    found = [await client.get(described.resource, self.namespace, self.name)]
                else:
                    found = (await client.list(described.resource, self.namespace)).items
                for obj in found:
                    events = await self._events(client, obj) if self.name else []
                    views.append(model.of(described, obj, events))
        return views

    @staticmethod
    async def _events(client: kube_client.Client, obj: dict[str, Any]) -> list[dict[str, Any]]:
        meta = obj["metadata"]
        with contextlib.suppress(errors.ApiError):  # not everyone may read events
            listed = await client.list(api_kinds.EVENT, meta["namespace"], fields=f"regarding.uid={meta['uid']}")
            return listed.items
        return []


def _ask(look: _Look) -> list[model.ObjectView]:
    try:
        return _run_loop(look.fetch())
    except errors.NotFound as error:
        raise click.ClickException(f"{error}; is the name right, and its namespace (-n)?") from error
    except errors.KubeError as error:
        raise click.ClickException(str(error)) from error


def _render(
    views: list[model.ObjectView], output: str, one: Callable[[model.ObjectView, text.Paint], str] | None
) -> str:
    if output == "text":
        paint = _paint if sys.stdout.isatty() else text.plain
        return "\n\n".join(one(view, paint) for view in views) if one else text.table(views, paint)
    plain = msgspec.to_builtins(views[0] if one and len(views) == 1 else views)
    if output == "json":
        return msgspec.json.format(msgspec.json.encode(plain)).decode()
    return yaml.safe_dump(plain, sort_keys=False).rstrip()


def _paint(words: str, colour: str) -> str:
    match colour:
        case "bold":
            return click.style(words, bold=True)
        case "dim":
            return click.style(words, dim=True)
        case _:
            return click.style(words, fg=_COLOURS[colour])


@contextlib.asynccontextmanager
async def _connected(kubeconfig: Path | None, context: str | None) -> AsyncIterator[kube_client.Client]:
    try:
        wire = transport.AiohttpTransport(await credentials.discover(kubeconfig, context))
    except errors.CredentialsError as error:
        raise click.ClickException(str(error)) from error
    try:
        yield kube_client.Client(wire)
    finally:
        await wire.close()
