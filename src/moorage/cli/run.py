"""`moorage run`: the operator itself."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import sys
import uuid
from pathlib import Path

import click
import msgspec

from moorage import config as config_file
from moorage import operators
from moorage.helm.runs import binary
from moorage.kube import credentials
from moorage.kube.informers import garbage_collector
from moorage.operators import system
from moorage.runtime import manager
from moorage.runtime.leading import election
from moorage.runtime.reporting import telemetry

from . import connection, log_level, trace_export


@click.command()
@click.option(
    "--config", "path", type=click.Path(path_type=Path), default="/etc/moorage/config.yaml", show_default=True
)
@click.option("--kubeconfig", type=click.Path(path_type=Path), help="Outside a cluster; $KUBECONFIG counts too.")
@click.option("--context", help="A context of the kubeconfig.")
@click.option("--helm", "helm_path", default="helm", show_default=True, help="The helm binary.")
@click.option(
    "--scratch", type=click.Path(path_type=Path), default="/scratch", show_default=True, help="A private folder."
)
@click.option("--namespace", help="Look after this namespace alone, with rights in no other; its Lease is there too.")
def run(
    path: Path, kubeconfig: Path | None, context: str | None, helm_path: str, scratch: Path, namespace: str | None
) -> None:
    """Run the operator until SIGTERM. Exit code 1 when a lease was lost, or a part of it has died."""
    try:
        loaded = config_file.load(path)
        if namespace:
            config_file.check_alone(loaded)
            loaded = msgspec.structs.replace(loaded, namespace_only=True)
        telemetry.configure_logging(loaded.log_level, as_json=not sys.stderr.isatty())
    except (config_file.ConfigError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    level = log_level.Follower(path, loaded.log_level)
    helm = Path(shutil.which(helm_path) or helm_path).absolute()
    garbage_collector.settle()
    if not connection.run_loop(_operate(loaded, level, kubeconfig, context, helm, scratch, namespace)):
        sys.exit(1)


async def _operate(
    loaded: config_file.Config,
    level: log_level.Follower,
    kubeconfig: Path | None,
    context: str | None,
    helm: Path,
    scratch: Path,
    alone_in: str | None,
) -> bool:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    namespace = alone_in or os.environ.get("POD_NAMESPACE", "default")
    lease = loaded.leader_election
    grace = (lease.duration_seconds - lease.renew_seconds) * 0.6
    around = system.Environment(namespace, scratch, helm, _access(kubeconfig, context), grace, loaded.namespace_only)
    kinds = [kind for name in loaded.systems for kind in operators.SYSTEMS[name].kinds(loaded.section(name), around)]
    identity = f"{os.environ.get('POD_NAME', socket.gethostname())}-{uuid.uuid4().hex[:8]}"
    settings = manager.Settings(
        identity=identity,
        namespace=namespace,
        lease=lease.lease_name,
        shards=lease.shards,
        timing=election.Timing(lease.duration_seconds, lease.renew_seconds, lease.retry_seconds),
        elect=lease.enabled,
        host=loaded.http.host,
        port=loaded.http.port,
        workers=loaded.workers,
        task_limit=loaded.helm_runs,
        drain=loaded.drain_seconds,
        events=loaded.events,
    )
    async with connection.connected(kubeconfig, context) as reached:
        following = asyncio.create_task(level.run(), name="log level")
        traced = trace_export.begin(os.environ, identity)
        try:
            return await manager.Manager(reached.client, kinds, settings, traces=traced).run(stop)
        finally:
            following.cancel()
            await trace_export.end(traced)


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
