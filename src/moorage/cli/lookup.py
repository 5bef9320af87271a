"""Finds what the user named, and all that a screen about it needs. The one place of `status` that does I/O.

What the user may not read (events, the tenant's namespace) is left out, and the screen says less.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from moorage import operators
from moorage.api import builtin, meta
from moorage.kube import client as kube_client
from moorage.kube import discovery, errors
from moorage.operators import system
from moorage.runtime.reporting import screen_rows
from moorage.view import children, model, operator_state

from . import connection, suggestions


class NotThere(Exception):  # noqa: N818 - what happened
    """There is no such object; the message says what there is."""


@dataclasses.dataclass(frozen=True)
class Wanted:
    """What is looked at. Without a name: all objects of the kinds."""

    kinds: Sequence[system.Described]
    name: str
    namespace: str
    kubeconfig: Path | None
    context: str | None


def described() -> list[system.Described]:
    """Every kind, as people's tools need it."""
    return [each for of in operators.SYSTEMS.values() for each in of.described]


def wanted(target: str, namespace: str, kubeconfig: Path | None, context: str | None) -> Wanted:
    """KIND, KIND/NAME or nothing, read. Raises ClickException for a kind that there isn't."""
    every = described()
    kind, slash, name = target.partition("/")
    if slash and not name:
        raise click.UsageError(f"{target!r} names no object; write {kind}/NAME")
    if not kind:
        return Wanted(every, "", namespace, kubeconfig, context)
    by_word = {word: each for each in every for word in _words(each.resource)} | _only()
    found = by_word.get(kind.lower()) or _by_short_name(kind.lower())
    if found is None:
        raise click.UsageError(suggestions.unknown("kind", kind, {each.resource.kind for each in every}))
    return Wanted([found], name, namespace, kubeconfig, context)


def one(target: str, namespace: str, kubeconfig: Path | None, context: str | None) -> Wanted:
    """KIND/NAME, read. Raises ClickException for what names no object."""
    found = wanted(target, namespace, kubeconfig, context)
    if not found.name:
        raise click.UsageError(f"name one object, such as {found.kinds[0].resource.kind.lower()}/NAME")
    return found


def _only() -> dict[str, system.Described]:
    """A system that has one kind is a word for it."""
    return {name: of.described[0] for name, of in operators.SYSTEMS.items() if len(of.described) == 1}


def _words(resource: meta.Resource) -> set[str]:
    return {resource.kind.lower(), resource.plural, f"{resource.plural}.{resource.group}"}


def _by_short_name(word: str) -> system.Described | None:
    """Definitions are large, so that they are made for this alone."""
    for of in operators.SYSTEMS.values():
        for definition in of.definitions():
            spec: Any = definition["spec"]
            if word in spec["names"].get("shortNames", ()):
                of_kind = {(each.resource.group, each.resource.plural): each for each in of.described}
                return of_kind.get((spec["group"], spec["names"]["plural"]))
    return None


class Found(NamedTuple):
    """What is to be shown."""

    views: list[model.ObjectView]
    operator: operator_state.Operator
    missing: tuple[str, ...] = ()  # kinds whose definition is not installed


async def find(what: Wanted) -> Found:
    """The views of what is wanted. Raises NotThere, KubeError or ClickException."""
    async with connection.connected(what.kubeconfig, what.context) as (client, own):
        seen = await _operator(client)
        if what.name:
            return Found([await _one(client, what.kinds[0], what.namespace or own, what.name, seen)], seen)
        views: list[model.ObjectView] = []
        missing: list[str] = []
        for described in what.kinds:
            try:
                found = await client.list(described.resource, what.namespace)
            except errors.NotFound:  # a system that is switched off has no definition
                missing.append(described.resource.kind)
                continue
            views += [model.of(described, obj, seen=seen) for obj in found.items]
        if len(missing) == len(what.kinds):
            raise NotThere(_uninstalled(missing))
        return Found(views, seen, tuple(missing))


def _uninstalled(kinds_: Sequence[str]) -> str:
    """What to do where there is no definition."""
    systems = {name for name, of in operators.SYSTEMS.items() for each in of.described if each.resource.kind in kinds_}
    switches = ", ".join(f"systems.{name}.enabled=true" for name in sorted(systems))
    what = f"this cluster has no definition of {', '.join(kinds_)}"
    return f"{what}: install moorage's chart, charts/moorage, with {switches}"


async def _operator(client: kube_client.Client) -> operator_state.Operator:
    """Who looks after the objects, as far as the user may know."""
    with contextlib.suppress(errors.ApiError):
        leases = (await client.list(builtin.LEASE, "", labels="app.kubernetes.io/name=moorage")).items
        return operator_state.of(leases, time.time())
    return operator_state.UNKNOWN


async def _one(
    client: kube_client.Client, described: system.Described, namespace: str, name: str, seen: operator_state.Operator
) -> model.ObjectView:
    obj = await read(client, described.resource, namespace, name)
    events = await _events(client, namespace, obj["metadata"]["uid"])
    return model.of(described, obj, events, await _children(client, described, obj), seen)


async def read(client: kube_client.Client, resource: meta.Resource, namespace: str, name: str) -> dict[str, Any]:
    """The object. Raises NotThere, or KubeError."""
    try:
        return await client.get(resource, namespace, name)
    except errors.NotFound as error:
        raise NotThere(await _instead(client, resource, namespace, name)) from error


async def _instead(client: kube_client.Client, resource: meta.Resource, namespace: str, name: str) -> str:
    """What to say when there is no such object: where one of that name is, or what was meant."""
    what = f"{resource.kind.lower()} {name!r} in namespace {namespace}"
    try:
        found = (await client.list(resource, "")).items
    except errors.NotFound:
        return _uninstalled([resource.kind])
    except errors.ApiError:
        return f"there is no {what}; is the name right, and its namespace (-n)?"
    at = [(each["metadata"]["namespace"], each["metadata"]["name"]) for each in found]
    elsewhere = sorted(ns for ns, other in at if other == name)
    if elsewhere:
        return f"there is no {what}, but one in {', '.join(elsewhere)}: add -n {elsewhere[0]}"
    guess = suggestions.nearest(name, [other for _, other in at])
    if guess:
        where = next(ns for ns, other in at if other == guess)
        return f"there is no {what}; did you mean {guess}{'' if where == namespace else f' -n {where}'}?"
    return f"there is no {what}" + ("; `moorage status` lists all" if at else f", nor any other {resource.kind}")


async def _events(client: kube_client.Client, namespace: str, uid: str) -> Sequence[dict[str, Any]]:
    with contextlib.suppress(errors.ApiError):
        return (await client.list(builtin.EVENT, namespace, fields=f"regarding.uid={uid}")).items
    return ()


async def _children(
    client: kube_client.Client, described: system.Described, obj: dict[str, Any]
) -> tuple[model.ChildView, ...]:
    """What the object owns, as it is now."""
    found = await described.find(client, obj)
    known = discovery.Discovery(client)
    return tuple([await _child(client, known, ref, found) for ref in found.refs])


async def _child(
    client: kube_client.Client,
    known: discovery.Discovery,
    ref: meta.ObjectRef,
    found: screen_rows.Owned,
) -> model.ChildView:
    if ref in found.live:
        return children.of(ref, found.live[ref], ())
    if ref.kind == builtin.SECRET.kind and not ref.group:
        return children.unread(ref)
    try:
        resource = await known.resource(ref.api_version, ref.kind)
        live = await client.get(resource, ref.namespace, ref.name)
    except errors.NotFound:
        return children.of(ref, None, ())
    except errors.ApiError as error:
        return children.unknown(ref, str(error))
    return children.of(ref, live, found.pods)


def hint(error: errors.KubeError) -> str:
    """What to do about a failed request, where that can be told."""
    match error:
        case errors.Forbidden():
            return "; ask for the role view in that namespace, which the chart extends by moorage's kinds"
        case errors.NotFound():
            return "; is moorage installed here? kubectl get crd -l app.kubernetes.io/name=moorage"
        case errors.TransportError():
            return "; is the cluster up, and the right context chosen?"
    return ""
