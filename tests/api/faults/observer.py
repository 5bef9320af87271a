"""What an outsider sees of a run: every object of some kinds, from its making to its end, by a watch of its own.

Its transport is never harmed. What differs from run to run (uids, versions, times, the namespace's name) is masked.
"""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from moorage.api import meta
from moorage.kube import client as kube_client
from moorage.kube import errors
from moorage.kube.informers import informer

from . import waiting

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+\d\d:\d\d)")
_FOREIGN = ("kube-root-ca.crt", "default")
"""What controllers put into every namespace."""

_DROPPED = (
    "resourceVersion",
    "managedFields",
    "moorage.dev/applied",
)  # the last: a digest of a body with its namespace

State = dict[str, Any]
"""`Kind name` -> the object, masked."""


class Observer:
    """Watches `counted` kinds in the namespaces of one run."""

    def __init__(self, client: kube_client.Client, namespaces: Iterable[str], counted: Iterable[meta.Resource]) -> None:
        self._client = client
        self._caches = informer.Informers(client)
        self._watched: list[informer.Informer[meta.Partial]] = []
        self._seen: set[tuple[str, str]] = set()
        self.made: Counter[str] = Counter()
        self.removed: Counter[str] = Counter()
        for resource in counted:
            for namespace in namespaces:
                cache = self._caches.watch(resource, meta.Partial, namespace=namespace, metadata_only=True)
                cache.subscribe(lambda change, kind=resource.kind: self._on_change(kind, change))  # type: ignore[misc]
                self._watched.append(cache)

    async def start(self) -> None:
        """Return when nothing can be missed any more."""
        for cache in self._watched:
            await cache.wait_synced(waiting.PATIENCE)

    async def stop(self) -> None:
        """Let go."""
        await self._caches.stop()

    def _on_change(self, kind: str, change: informer.Change[meta.Partial]) -> None:
        old, new = change.old, change.new
        if new is not None and (kind, new.metadata.uid) not in self._seen:
            self._seen.add((kind, new.metadata.uid))
            self.made[f"{kind} {new.metadata.name}"] += 1
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self.removed[f"{kind} {old.metadata.name}"] += 1

    @property
    def has_orphans(self) -> bool:
        """Whether the garbage collector is still to remove something: its owner is of a counted kind, and gone."""
        kinds = {cache.scope.resource.kind for cache in self._watched}
        there = [it.metadata for cache in self._watched for it in cache.items()]
        uids = {it.uid for it in there}
        return any(owner.kind in kinds and owner.uid not in uids for it in there for owner in it.owner_references)

    async def caught_up(self) -> None:
        """Return when its watches have all that the server has, so that its counts are whole."""

        async def same() -> bool:
            for cache in self._watched:
                scope = cache.scope
                live = await self._client.list(scope.resource, scope.namespace, as_=meta.Partial, metadata_only=True)
                if {it.metadata.uid for it in live.items} != {it.metadata.uid for it in cache.items()}:
                    return False
            return True

        await waiting.until(same)


async def state(
    client: kube_client.Client,
    resources: Iterable[meta.Resource],
    namespaces: Iterable[str],
    *,
    ignore: Iterable[str] = (),
    masked: Sequence[str] = (),
) -> State:
    """All objects of these kinds as they are now, without the fields `ignore`, and texts without what is `masked`."""
    found: State = {}
    names = list(namespaces)
    for resource in resources:
        for number, namespace in enumerate(names):
            try:
                listing = await client.list(resource, namespace)
            except errors.NotFound:
                continue
            for body in listing.items:
                if body["metadata"]["name"] in _FOREIGN:
                    continue
                where = f"{number}/" if number else ""
                key = f"{resource.kind} {where}{body['metadata']['name']}"
                _ignore(resource.kind, body, ignore)
                found[key] = mask(body, names, masked)
    return found


def without(found: State, ignore: Iterable[str]) -> State:
    """The same state without these fields."""
    rest = copy.deepcopy(found)
    for key, body in rest.items():
        _ignore(key.split()[0], body, ignore)
    return mask(rest, ())


def _ignore(kind: str, body: dict[str, Any], paths: Iterable[str]) -> None:
    for path in paths:
        of, _, field = path.partition(".")
        if of == kind:
            _drop(body, field.split("."))


def _drop(body: Any, path: list[str]) -> None:
    """Take a field away; `*` means all entries of a list or a mapping."""
    first, *rest = path
    inside = list(body) if first == "*" and isinstance(body, list) else []
    if first == "*" and isinstance(body, dict):
        inside = list(body.values())
    elif isinstance(body, dict) and first in body:
        if not rest:
            del body[first]
            return
        inside = [body[first]]
    for each in inside:
        if rest:
            _drop(each, rest)


def mask(value: Any, namespaces: Sequence[str], patterns: Sequence[str] = ()) -> Any:
    """The same without what differs from run to run; what is empty is the same as nothing."""
    if isinstance(value, dict):
        kept = {key: mask(each, namespaces, patterns) for key, each in value.items() if key not in _DROPPED}
        return {key: each for key, each in kept.items() if each not in ("", {}, [])}
    if isinstance(value, list):
        return [mask(each, namespaces, patterns) for each in value]
    if isinstance(value, str):
        text = _TIME.sub("TIME", _UID.sub("UID", value))
        for number, name in reversed(list(enumerate(namespaces))):
            text = text.replace(name, f"NAMESPACE{number}")
        for pattern in patterns:
            text = re.sub(pattern, "MASKED", text)
        return text
    return value


def differences(wanted: Any, found: Any, where: str = "") -> list[str]:
    """Where two states differ, in words."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        keys = sorted(wanted.keys() | found.keys())
        return [each for key in keys for each in differences(wanted.get(key), found.get(key), f"{where}.{key}")]
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        pairs = enumerate(zip(wanted, found, strict=True))
        return [each for number, (one, two) in pairs for each in differences(one, two, f"{where}[{number}]")]
    return [] if wanted == found else [f"{where.strip('.')}: {wanted!r} became {found!r}"]


def holds(part: Any, whole: Any) -> bool:
    """Whether everything in `part` is so in `whole`."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(holds(each, whole.get(key)) for key, each in part.items())
    return bool(part == whole)
