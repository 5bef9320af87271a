"""The command `moorage` (also `kubectl moorage`): run the operator, and look at what it looks after."""

from __future__ import annotations

import click

from . import crds, explain, krt, leftovers, run, shell, status, suggestions

click.UsageError.exit_code = 3  # click's own is 2, which `status` has for a stalled object


class _Group(click.Group):
    """Says what was probably meant by a command that there isn't."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            raise click.UsageError(suggestions.unknown("command", args[0], self.commands), ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(package_name="moorage")
def main() -> None:
    """One operator for stateful systems on Kubernetes."""


for _command in (run.run, crds.crds, status.status, explain.explain, shell.shell, krt.krt, leftovers.leftovers):
    main.add_command(_command)
