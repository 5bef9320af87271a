"""`moorage explain`: why one object is where it is, and what comes next."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from moorage.view import text

from . import connection, lookup, screen


@click.command()
@click.argument("target", metavar="KIND/NAME")
@screen.NAMESPACE
@screen.OUTPUT
@connection.KUBECONFIG
@connection.CONTEXT
def explain(target: str, namespace: str, output: str, kubeconfig: Path | None, context: str | None) -> None:
    """Why KIND/NAME is where it is: first blocker on top, what to do next, then facts and steps.

    Exit code: 0 ready, 1 on its way, 2 stalled, 3 that can't be told.
    """
    wanted = lookup.wanted(target, namespace, kubeconfig, context)
    if not wanted.name:
        raise click.UsageError(f"name one object, such as {wanted.kinds[0].resource.kind.lower()}/NAME")
    found = screen.find(wanted)
    click.echo(screen.render(found, output, _explanation, single=True))
    sys.exit(found.views[0].exit_code)


def _explanation(found: lookup.Found, paint: text.Paint, width: int) -> str:
    return text.explanation(found.views, paint, width)
