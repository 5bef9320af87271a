"""`moorage shell`: the command line of what runs in pods, by kubectl and with the user's own rights."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from moorage.operators import shells

from . import connection, lookup, screen


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("target", metavar="KIND/NAME")
@click.argument("words", metavar="[-- COMMAND...]", nargs=-1, type=click.UNPROCESSED)
@screen.NAMESPACE
@connection.KUBECONFIG
@connection.CONTEXT
def shell(target: str, words: Sequence[str], namespace: str, kubeconfig: Path | None, context: str | None) -> None:
    """The command line in the pod of KIND/NAME where people work with it, or one COMMAND there.

    Needs kubectl, and the right to create pods/exec in the namespace.

    Exit code: that of the command; 3 if it could not be run.
    """
    wanted = lookup.one(target, namespace, kubeconfig, context)
    described = wanted.kinds[0]
    if described.enter is None:
        raise click.UsageError(f"there is a command line of {_entered()}, and of nothing else")
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        raise connection.Untold("kubectl is not on the PATH, and the command line is reached by it")
    try:
        place, found = screen.looked(_entered_at(wanted, described.enter))
    except shells.NoShell as error:
        raise connection.Untold(str(error)) from error
    options = [*_option("--kubeconfig", kubeconfig), *_option("--context", context)]
    run = [*found.runs, *words] if words else found.alone
    into = ["exec", "-it" if sys.stdin.isatty() else "-i", "-n", place, found.pod, "-c", found.container]
    sys.exit(subprocess.run([kubectl, *options, *into, "--", *run], check=False).returncode)


def _entered() -> str:
    kinds = [each.resource.kind for each in lookup.described() if each.enter]
    return f"{', '.join(kinds[:-1])} and {kinds[-1]}"


def _option(name: str, value: object) -> list[str]:
    return [name, str(value)] if value else []


async def _entered_at(wanted: lookup.Wanted, enter: shells.Enter) -> tuple[str, shells.Shell]:
    """The namespace, and where in it."""
    async with connection.connected(wanted.kubeconfig, wanted.context) as (client, own):
        place = wanted.namespace or own
        obj = await lookup.read(client, wanted.kinds[0].resource, place, wanted.name)
        return place, await enter(client, obj)
