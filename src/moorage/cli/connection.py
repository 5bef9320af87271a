"""What every command that talks to a cluster shares: its options, its connection, and its loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from moorage.kube import client as kube_client
from moorage.kube import credentials, errors
from moorage.kube.http import transport

T = TypeVar("T")

logging.getLogger("kubernetes_asyncio").addHandler(logging.NullHandler())  # its errors are told as ours

KUBECONFIG = click.option(
    "--kubeconfig", type=click.Path(path_type=Path), help="The file to use; $KUBECONFIG and ~/.kube/config count too."
)
CONTEXT = click.option("--context", help="A context of the kubeconfig.")


class Reached(NamedTuple):
    """A cluster, and the namespace that is meant where none is named."""

    client: kube_client.Client
    namespace: str


def run_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run on uvloop where it is installed."""
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    with contextlib.suppress(ImportError):
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(work)


class Untold(click.ClickException):
    """The state can't be told: the exit code is none of those that tell it."""

    exit_code = 3


@contextlib.asynccontextmanager
async def connected(kubeconfig: Path | None, context: str | None) -> AsyncIterator[Reached]:
    """The cluster that the options mean. Raises Untold for unusable credentials."""
    try:
        found = await credentials.discover(kubeconfig, context)
        wire = transport.HttpTransport(found)
    except errors.CredentialsError as error:
        raise Untold(str(error)) from error
    try:
        yield Reached(kube_client.Client(wire), found.namespace)
    finally:
        await wire.close()
