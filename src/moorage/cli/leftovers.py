"""`moorage leftovers`: what nobody could end any more, were moorage uninstalled now. The chart asks it before that."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from moorage import operators
from moorage.api import meta
from moorage.kube import client as kube_client
from moorage.kube import errors
from moorage.operators import steps

from . import connection, suggestions

NAMED = 10
"""Objects that are named; of the others their number."""


@click.command()
@connection.KUBECONFIG
@connection.CONTEXT
@click.argument("systems", nargs=-1)
def leftovers(kubeconfig: Path | None, context: str | None, systems: tuple[str, ...]) -> None:
    """Say which objects need moorage to end. Exit code: 0 none, 1 there are some, 3 that can't be told."""
    for name in systems:
        if name not in operators.SYSTEMS:
            raise click.UsageError(suggestions.unknown("system", name, operators.SYSTEMS))
    kinds = [it for name in systems or tuple(operators.SYSTEMS) for it in operators.SYSTEMS[name].ends_by_moorage]

    async def look() -> str:
        async with connection.connected(kubeconfig, context) as (client, _):
            return "\n".join([it for kind in kinds if (it := said(kind, await _names(client, kind)))])

    if found := connection.run_loop(look()):
        raise click.ClickException(found)


def said(kind: meta.Resource, names: Sequence[str]) -> str:
    """What stands against an uninstallation; empty: nothing."""
    if not names:
        return ""
    return (
        f"moorage is not uninstalled, as {len(names)} {kind.kind} objects exist: {steps.some(names, NAMED)}. "
        "Nobody else tells their pods that they may stop, so these would run on, and could not be deleted. Delete what "
        f"has made them, and wait until they are gone: kubectl get {kind.plural} -A. Nothing was removed; helm counts "
        "the release as uninstalling, until helm rollback RELEASE REVISION, with the last revision of helm history. To "
        "uninstall all the same, and to let go of them by hand, run helm uninstall with --no-hooks."
    )


async def _names(client: kube_client.Client, kind: meta.Resource) -> list[str]:
    try:
        found = await client.list(kind, as_=meta.Partial, metadata_only=True)
    except errors.NotFound:  # the kind is not defined
        return []
    except errors.KubeError as error:
        raise connection.Untold(f"{kind.plural} can't be listed: {error}") from error
    return sorted(f"{it.metadata.namespace}/{it.metadata.name}" for it in found.items)
