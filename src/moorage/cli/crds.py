"""`moorage crds`: the CustomResourceDefinitions, from the types in the code."""

from __future__ import annotations

from pathlib import Path

import click
import yaml

from moorage import operators

from . import suggestions


@click.command()
@click.option("--into", type=click.Path(path_type=Path), help="Write NAME.yaml per system into this folder.")
@click.argument("systems", nargs=-1)
def crds(into: Path | None, systems: tuple[str, ...]) -> None:
    """Print the CustomResourceDefinitions, or write them as files."""
    for name in systems or tuple(operators.SYSTEMS):
        if name not in operators.SYSTEMS:
            raise click.ClickException(suggestions.unknown("system", name, operators.SYSTEMS))
        out = yaml.safe_dump_all(operators.SYSTEMS[name].definitions(), sort_keys=False, width=120)
        if into is None:
            click.echo(f"---\n{out}", nl=False)
        else:
            into.mkdir(parents=True, exist_ok=True)
            (into / f"{name}.yaml").write_text(out)
