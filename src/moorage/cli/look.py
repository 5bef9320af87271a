"""`moorage status` and `moorage explain`: what people see. Reads with the user's own rights, and writes nothing."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import click
import msgspec
import yaml

from moorage.kube import errors
from moorage.view import text

from . import connection, finding

_OUTPUT = click.option("-o", "--output", type=click.Choice(["text", "json", "yaml"]), default="text", show_default=True)
_NAMESPACE = click.option(
    "-n",
    "--namespace",
    default="",
    help="Of KIND/NAME: that of the context when left out. Of a list: all namespaces when left out.",
)
_EVERY = 2.0
"""Seconds between two looks of --watch."""

Screen = Callable[[finding.Found, text.Paint, int], str]


@click.command()
@click.argument("target", default="", metavar="[KIND[/NAME]]")
@_NAMESPACE
@_OUTPUT
@connection.KUBECONFIG
@connection.CONTEXT
@click.option("-w", "--watch", is_flag=True, help=f"Look again every {_EVERY:g} seconds, until interrupted.")
def status(target: str, namespace: str, output: str, kubeconfig: Path | None, context: str | None, watch: bool) -> None:
    """One screen: all objects, those of a KIND, or one KIND/NAME with its release, children and events.

    Exit code: 0 all are ready, 1 something is on its way or nobody looks after it, 2 something is stalled, 3 that
    can't be told.
    """
    wanted = finding.wanted(target, namespace, kubeconfig, context)
    screen = _screen if wanted.name else _table
    if watch:
        _watch(wanted, output, screen)
        return
    found = _find(wanted)
    click.echo(_render(found, output, screen, single=bool(wanted.name)))
    sys.exit(max((view.exit_code for view in found.views), default=0))


def _table(found: finding.Found, paint: text.Paint, width: int) -> str:
    return text.table(found.views, paint, width, operator=found.operator.words, missing=found.missing)


def _screen(found: finding.Found, paint: text.Paint, width: int) -> str:
    return text.one_screen(found.views, paint, width)


def _explanation(found: finding.Found, paint: text.Paint, width: int) -> str:
    return text.explanation(found.views, paint, width)


@click.command()
@click.argument("target", metavar="KIND/NAME")
@_NAMESPACE
@_OUTPUT
@connection.KUBECONFIG
@connection.CONTEXT
def explain(target: str, namespace: str, output: str, kubeconfig: Path | None, context: str | None) -> None:
    """Why KIND/NAME is where it is: first blocker on top, what to do next, then facts and steps.

    Exit code: 0 ready, 1 on its way, 2 stalled, 3 that can't be told.
    """
    wanted = finding.wanted(target, namespace, kubeconfig, context)
    if not wanted.name:
        raise click.UsageError(f"name one object, such as {wanted.kinds[0].resource.kind.lower()}/NAME")
    found = _find(wanted)
    click.echo(_render(found, output, _explanation, single=True))
    sys.exit(found.views[0].exit_code)


def _watch(wanted: finding.Wanted, output: str, screen: Screen) -> None:
    """Show it again and again; on a terminal in place, elsewhere when it changed."""
    last, live = "", sys.stdout.isatty() and output == "text"
    try:
        while True:
            shown = _render(_find(wanted), output, screen, single=bool(wanted.name))
            if live:
                click.echo(f"\x1b[H\x1b[J{shown}")
            elif shown != last:
                click.echo(shown if output == "text" else f"{shown}\n", nl=output == "text")
            last = shown
            connection.run_loop(asyncio.sleep(_EVERY))
    except KeyboardInterrupt:
        return


def _find(wanted: finding.Wanted) -> finding.Found:
    try:
        return connection.run_loop(finding.find(wanted))
    except finding.NotThere as error:
        raise connection.Untold(str(error)) from error
    except errors.KubeError as error:
        raise connection.Untold(f"{error}{finding.hint(error)}") from error


def _render(found: finding.Found, output: str, screen: Screen, *, single: bool) -> str:
    if output == "text":
        terminal = sys.stdout.isatty()
        width = shutil.get_terminal_size().columns if terminal else 0
        return screen(found, _paint if terminal else text.plain, width)
    plain = msgspec.to_builtins(found.views[0] if single else found.views)
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
            return click.style(words, fg=colour)
