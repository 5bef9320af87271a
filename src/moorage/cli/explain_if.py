"""`moorage explain --if`: what would follow from another spec, by the API server's dry run and the kind's own word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click
import msgspec
import yaml

from moorage.api import common_status
from moorage.kube import errors
from moorage.runtime.reporting import screen_rows
from moorage.view import text

from . import connection, lookup

_MANAGER = "moorage-explain"
_ABSENT = "nothing"


class Change(msgspec.Struct, frozen=True, rename="camel"):
    """One field of the spec, by its path with dots."""

    field: str
    before: Any
    after: Any


class Foreseen(msgspec.Struct, frozen=True, rename="camel"):
    """What would become of one object; `refused` are the API server's words where it would not take the change."""

    kind: str
    namespace: str
    name: str
    changes: tuple[Change, ...]
    refused: str = ""
    follows: tuple[screen_rows.Item, ...] = ()
    foretold: bool = True  # what follows can be said of this kind

    @property
    def exit_code(self) -> int:
        """0 it would be done, 1 something stands in its way, 2 it is refused."""
        if self.refused:
            return 2
        return 0 if all(item.good for item in self.follows) else 1


def patch(given: Sequence[str]) -> dict[str, Any]:
    """A merge patch from `spec.FIELD=VALUE` words, each value as in YAML. Raises BadParameter."""
    made: dict[str, Any] = {}
    for each in given:
        path, equals, value = each.partition("=")
        names = path.split(".")
        if not equals or names[0] != "spec" or len(names) < 2 or not all(names):
            raise click.BadParameter(f"{each!r} is not spec.FIELD=VALUE", param_hint="--if")
        inside = made
        for name in names[:-1]:
            inside = inside.setdefault(name, {})
            if not isinstance(inside, dict):
                raise click.BadParameter(f"{path} is inside of what another --if gives", param_hint="--if")
        try:
            inside[names[-1]] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise click.BadParameter(f"{value!r} is no value: {error}", param_hint="--if") from error
    return made


async def foreseen(wanted: lookup.Wanted, given: Sequence[str]) -> Foreseen:
    """Raises NotThere, KubeError or ClickException."""
    described, body = wanted.kinds[0], patch(given)
    async with connection.connected(wanted.kubeconfig, wanted.context) as (client, own):
        namespace = wanted.namespace or own
        now = await lookup.read(client, described.resource, namespace, wanted.name)
        changes = tuple(_change(now, each.partition("=")[0], body) for each in given)
        told = Foreseen(described.resource.kind, namespace, wanted.name, changes)
        try:
            then = await client.patch_merge(
                described.resource, namespace, wanted.name, body, field_manager=_MANAGER, dry_run=True
            )
        except errors.Forbidden as error:
            said = f"a dry run needs the right to patch {described.resource.plural} in namespace {namespace}"
            raise connection.Untold(f"{error}; {said}") from error
        except errors.Invalid as error:
            return msgspec.structs.replace(told, refused=error.status.message)
        if described.foresee is None:
            return msgspec.structs.replace(told, foretold=False)
        follows = described.foresee(now, then, await described.find(client, now))
        return msgspec.structs.replace(told, follows=tuple(follows))


def said(it: Foreseen, paint: text.Paint) -> str:
    """For people."""
    changes = ", ".join(
        f"{each.field} were {_word(each.after)} in place of {_word(each.before)}" for each in it.changes
    )
    lines = [f"{it.kind} {it.namespace}/{it.name}, if {changes}"]
    if it.refused:
        return "\n".join(
            [*lines, _line(screen_rows.Item(f"the API server refuses it: {it.refused}", good=False), paint)]
        )
    lines.append(
        _line(screen_rows.Item("the API server takes it; this was a dry run, and nothing is changed", good=True), paint)
    )
    lines += [_line(each, paint) for each in it.follows]
    if not it.foretold:
        pause = f"kubectl annotate {it.kind.lower()} {it.name} -n {it.namespace} {common_status.PAUSED}=true"
        lines.append(f"  What moorage would do first it says of an object that is paused: {pause}; then change it.")
    elif not it.follows:
        lines.append("  Nothing restarts, comes or leaves for it.")
    return "\n".join(lines)


def _line(item: screen_rows.Item, paint: text.Paint) -> str:
    return f"  {paint('✓', 'green') if item.good else paint('✗', 'red')} {item.text}"


def _change(now: Mapping[str, Any], path: str, body: Mapping[str, Any]) -> Change:
    return Change(path, _at(now, path), _at(body, path))


def _at(tree: Any, path: str) -> Any:
    for name in path.split("."):
        tree = tree.get(name) if isinstance(tree, Mapping) else None
    return tree


def _word(value: Any) -> str:
    return _ABSENT if value is None else msgspec.json.encode(value).decode()
