"""`moorage explain`: why one object is where it is, and what comes next."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from moorage.view import text

from . import connection, explain_if, lookup, screen


@click.command()
@click.argument("target", metavar="KIND/NAME")
@screen.NAMESPACE
@screen.OUTPUT
@click.option(
    "--if",
    "given",
    multiple=True,
    metavar="spec.FIELD=VALUE",
    help="Say what would follow from another spec in place of that. Nothing is changed.",
)
@connection.KUBECONFIG
@connection.CONTEXT
def explain(
    target: str, namespace: str, output: str, given: tuple[str, ...], kubeconfig: Path | None, context: str | None
) -> None:
    """Why KIND/NAME is where it is: first blocker on top, what to do next, then facts and steps.

    Exit code: 0 ready, 1 on its way, 2 stalled, 3 that can't be told. With --if: 0 it would be done, 1 something would
    stand in its way, 2 the API server would refuse it, 3 that can't be told.
    """
    wanted = lookup.one(target, namespace, kubeconfig, context)
    if given:
        foreseen = screen.looked(explain_if.foreseen(wanted, given))
        click.echo(screen.form(foreseen, output, lambda paint: explain_if.said(foreseen, paint)))
        sys.exit(foreseen.exit_code)
    found = screen.find(wanted)
    click.echo(screen.render(found, output, _explanation, single=True))
    sys.exit(found.views[0].exit_code)


def _explanation(found: lookup.Found, paint: text.Paint, width: int) -> str:
    return text.explanation(found.views, paint, width)
