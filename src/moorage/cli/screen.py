"""What `moorage status` and `moorage explain` share: what to show, and in which form. Writes nothing to the cluster.

All is read with the user's own rights.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import click
import msgspec
import yaml

from moorage.kube import errors
from moorage.view import text

from . import connection, lookup

T = TypeVar("T")

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
    return looked(lookup.find(wanted))


def looked(work: Coroutine[Any, Any, T]) -> T:
    """What comes of looking at the cluster; what can't be told ends the command."""
    try:
        return connection.run_loop(work)
    except lookup.NotThere as error:
        raise connection.Untold(str(error)) from error
    except errors.KubeError as error:
        raise connection.Untold(f"{error}{lookup.hint(error)}") from error


def render(found: lookup.Found, output: str, show: Show, *, single: bool) -> str:
    """As it was asked for: for people, for the width of their terminal, or for programs."""

    def text_of(paint: text.Paint) -> str:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
        return show(found, paint, width)

    return form(found.views[0] if single else found.views, output, text_of)


def form(told: object, output: str, text_of: Callable[[text.Paint], str]) -> str:
    """Text for people, or the same as JSON or YAML."""
    if output == "text":
        return text_of(_paint if sys.stdout.isatty() else text.plain)
    plain = msgspec.to_builtins(told)
    if output == "json":
        return msgspec.json.format(msgspec.json.encode(plain)).decode()
    return yaml.safe_dump(plain, sort_keys=False, allow_unicode=True).rstrip()


def _paint(words: str, colour: str) -> str:
    match colour:
        case "bold":
            return click.style(words, bold=True)
        case "dim":
            return click.style(words, dim=True)
        case _:
            return click.style(words, fg=colour)
