"""What `moorage status` and `moorage explain` share: what to show, and in which form. Writes nothing to the cluster.

All is read with the user's own rights.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable

import click
import msgspec
import yaml

from moorage.kube import errors
from moorage.view import text

from . import connection, lookup

OUTPUT = click.option("-o", "--output", type=click.Choice(["text", "json", "yaml"]), default="text", show_default=True)
NAMESPACE = click.option(
    "-n",
    "--namespace",
    default="",
    help="Of KIND/NAME: that of the context when left out. Of a list: all namespaces when left out.",
)

Show = Callable[[lookup.Found, text.Paint, int], str]
"""What was found, as text for so many columns."""


def find(wanted: lookup.Wanted) -> lookup.Found:
    """All that the screen needs; what can't be told ends the command."""
    try:
        return connection.run_loop(lookup.find(wanted))
    except lookup.NotThere as error:
        raise connection.Untold(str(error)) from error
    except errors.KubeError as error:
        raise connection.Untold(f"{error}{lookup.hint(error)}") from error


def render(found: lookup.Found, output: str, show: Show, *, single: bool) -> str:
    """As it was asked for: for people, for the width of their terminal, or for programs."""
    if output == "text":
        terminal = sys.stdout.isatty()
        width = shutil.get_terminal_size().columns if terminal else 0
        return show(found, _paint if terminal else text.plain, width)
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
