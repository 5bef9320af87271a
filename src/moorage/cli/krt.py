"""`moorage krt`: what a person does with a `.krt` file. To check one needs no cluster."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec

from moorage.operators.kre import names
from moorage.operators.kre.krt import check as krt_check
from moorage.operators.kre.krt import fields, model

from . import connection, krt_push


@click.group()
def krt() -> None:
    """Versions of KRE runtimes, as .krt files."""


krt.add_command(krt_push.push)


@krt.command()
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--runtime", default="", metavar="NAME", help="Show what all of it would be called in this runtime.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def check(path: Path, runtime: str, output: str) -> None:
    """Say whether FILE, a .krt archive, a folder or a krt.yml, can be a version, and all that is wrong with it.

    Exit code: 0 it can, 1 it has errors, 3 that can't be told.
    """
    if runtime and (len(runtime) > names.LONGEST or not fields.NAME.fullmatch(runtime)):
        told = f"{runtime!r} can't be a runtime's name: at most {names.LONGEST} lower-case letters, digits and '-'"
        raise click.BadParameter(told, param_hint="--runtime")
    try:
        report = krt_check.check(path)
    except OSError as error:
        raise connection.Untold(f"{path} can't be read: {error.strerror or error}") from error
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(report)).decode())
    else:
        for problem in report.problems:
            click.echo(krt_push.told(problem, path))
        click.echo(_summary(report, path))
        if runtime and report.krt:
            click.echo("\n".join(_named(report.krt, runtime)))
    sys.exit(0 if report.fit else 1)


def _summary(report: krt_check.Report, path: Path) -> str:
    if not report.fit:
        errors = sum(problem.severity == "error" for problem in report.problems)
        return f"{path} can't be a version: {errors} error{'s' if errors != 1 else ''}"
    lines = [f"{path} can be a version"]
    if krt := report.krt:
        lines.append(f"  Version    {krt.version} ({krt.krt_version}): {krt.description}")
        lines += [f"  Workflow   {_workflow(workflow)}" for workflow in krt.workflows]
        if keys := (*krt.config.variables, *krt.config.files):
            lines.append(f"  Config     {', '.join(keys)}: each needs a value before it can start")
    if report.files:
        lines.append(f"  Files      {report.files}, {report.bytes} bytes")
    else:
        lines.append("  Files      not looked at: name the folder or the archive for that")
    if report.digest:
        lines.append(f"  Digest     {report.digest}")
    return "\n".join(lines)


def _workflow(workflow: model.Workflow) -> str:
    """NAME answers METHOD: each node with whom it gets messages from."""
    nodes = "; ".join(f"{node.name} <- {', '.join(node.subscriptions)}" for node in workflow.nodes)
    return f"{workflow.name} answers {workflow.entrypoint} by {workflow.exitpoint}: {nodes}"


def _named(krt: model.Krt, runtime: str) -> Iterator[str]:
    """What all of the version would be called, in Kubernetes and in NATS."""
    of = names.Names(runtime, krt.version)
    yield f"In runtime {runtime}"
    yield f"  Entrypoint     {of.entrypoint}, when it is published {of.active}"
    yield f"  ConfigMaps     {of.config}, {of.files}"
    for workflow in krt.workflows:
        yield f"  Stream         {of.stream(workflow.entrypoint)}"
        for node in workflow.nodes:
            inputs = ", ".join(of.inputs(workflow.entrypoint, node))
            yield f"    Deployment   {of.deployment(workflow.name, node.name)}"
            yield f"      publishes  {of.subject(workflow.entrypoint, node.name)}"
            yield f"      reads      {inputs}"
            yield f"      keeps      {of.key_values(workflow.name, node.name)}"
            if node.object_store:
                yield f"      files      {of.object_store(workflow.name, node.object_store)}"
