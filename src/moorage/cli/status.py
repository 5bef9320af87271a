"""`moorage status`: all objects in a table, or one object on one screen; once, or again and again."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import click

from moorage.view import text

from . import connection, lookup, screen

_EVERY = 2.0
"""Seconds between two looks of --watch."""


@click.command()
@click.argument("target", default="", metavar="[KIND[/NAME]]")
@screen.NAMESPACE
@screen.OUTPUT
@connection.KUBECONFIG
@connection.CONTEXT
@click.option("-w", "--watch", is_flag=True, help=f"Look again every {_EVERY:g} seconds, until interrupted.")
def status(target: str, namespace: str, output: str, kubeconfig: Path | None, context: str | None, watch: bool) -> None:
    """One screen: all objects, those of a KIND, or one KIND/NAME with its release, children and events.

    Exit code: 0 all are ready, 1 something is on its way or nobody looks after it, 2 something is stalled, 3 that
    can't be told.
    """
    wanted = lookup.wanted(target, namespace, kubeconfig, context)
    show = _one if wanted.name else _table
    if watch:
        _watch(wanted, output, show)
        return
    found = screen.find(wanted)
    click.echo(screen.render(found, output, show, single=bool(wanted.name)))
    sys.exit(max((view.exit_code for view in found.views), default=0))


def _table(found: lookup.Found, paint: text.Paint, width: int) -> str:
    return text.table(found.views, paint, width, operator=found.operator.words, missing=found.missing)


def _one(found: lookup.Found, paint: text.Paint, width: int) -> str:
    rows = {each.resource.kind: each.rows for each in lookup.described()}
    return text.one_screen(found.views, paint, width, rows=rows)


def _watch(wanted: lookup.Wanted, output: str, show: screen.Show) -> None:
    """Show it again and again; on a terminal in place, elsewhere when it changed."""
    last, live = "", sys.stdout.isatty() and output == "text"
    try:
        while True:
            shown = screen.render(screen.find(wanted), output, show, single=bool(wanted.name))
            if live:
                click.echo(f"\x1b[H\x1b[J{shown}")
            elif shown != last:
                click.echo(shown if output == "text" else f"{shown}\n", nl=output == "text")
            last = shown
            connection.run_loop(asyncio.sleep(_EVERY))
    except KeyboardInterrupt:
        return
