"""The GridTemplate as the runtime runs it. It reads the hub of the caches' kind, and asks the group's primary."""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Any

from moorage.api import kinds
from moorage.kube import cache as kube_cache
from moorage.kube import errors
from moorage.operators.xsld import config, names
from moorage.operators.xsld import hub as hubs
from moorage.operators.xsld.cache import kind as cache_kind
from moorage.operators.xsld.cache import types as cache_types
from moorage.runtime import decision, kind, observed, source

from . import control, types


class _SourceError(Exception):
    """The documents can't be read; the message says why."""


class TemplateKind(kind.Kind[types.GridTemplate, control.Seen]):
    """GridTemplates. Starts after the caches' kind, whose watches and polls it reads."""

    resource = names.TEMPLATE
    model = types.GridTemplate
    finalizer = names.TEMPLATE_FINALIZER
    ready_facts = control.READY_FACTS
    steps = control.STEPS
    farewell = control.FAREWELL
    facts = control.FACTS

    def __init__(self, settings: config.Config, caches: cache_kind.CacheKind) -> None:
        self._settings, self._caches, self.resync = settings, caches, settings.resync_seconds

    async def start(self, world: kind.World) -> None:
        """See `Kind.start`."""
        self._world = world
        self.operations = {"upload": self._upload, "remove": self._remove}
        self._documents = source.Source[tuple[str, str], control.Documents](
            "template's documents", self._look, world.enqueue, every=hubs.SECRETS_EVERY, concurrency=16
        )
        for cache in self._caches.caches:
            cache.subscribe(self._on_cache)
        for own in self.caches:
            own.subscribe(self._on_template)

    async def stop(self) -> None:
        """See `Kind.stop`."""
        await self._documents.stop()

    def lane(self, obj: types.GridTemplate) -> str:
        """That of the group."""
        found = self._caches.meant(obj.metadata.namespace, obj.spec.cache_ref)
        return names.lane(*found[0].metadata.key) if len(found) == 1 else ""

    def forget(self, namespace: str, name: str) -> None:
        """See `Kind.forget`."""
        self._caches.hub.polls.forget(self.key(namespace, name))
        self._documents.forget(self.key(namespace, name))

    def observe(self, obj: types.GridTemplate, now: float) -> control.Seen:
        """See `Kind.observe`."""
        found, key = self._caches.meant(obj.metadata.namespace, obj.spec.cache_ref), self.key(*obj.metadata.key)
        polled: observed.Observed[Any] = observed.not_yet("group")
        if len(found) == 1:
            polled = self._caches.hub.polls.read(found[0].metadata.key, key)
            self._caches.hub.polls.forget(key, keep=(found[0].metadata.key,))
        return control.Seen(
            meta=obj.metadata.without_last_applied(),
            spec=obj.spec,
            status=obj.status,
            busy=self._settings.poll.busy_seconds,
            template=obj.template,
            documents=self._documents.read(obj.metadata.key, key),
            caches=self._caches.seen(found),
            polled=polled,
        )

    def report(self, seen: control.Seen, _: decision.StepTaken | None) -> dict[str, Any]:
        """See `Kind.report`."""
        return control.report(seen)

    def _on_cache(self, change: kube_cache.Change[cache_types.XsldCache]) -> None:
        found = change.new or change.old
        for obj in self.items():
            if found is not None and obj.metadata.namespace == found.metadata.namespace:
                self._world.enqueue(self.key(*obj.metadata.key))

    def _on_template(self, change: kube_cache.Change[types.GridTemplate]) -> None:
        old, new = change.old, change.new
        if old is not None and new is not None and old.spec != new.spec:
            self._documents.outdate(new.metadata.key, "the spec has changed")

    # --- the documents ---------------------------------------------------------------------------------------------

    async def _look(self, key: tuple[str, str]) -> control.Documents:
        obj = self.find(*key)
        if obj is None:
            raise source.SourceError("Gone", "the template is gone")
        try:
            grid, deployment = await self._read(obj)
        except _SourceError as error:
            return control.Documents(fault=str(error))
        text = f"{obj.spec.description}\0{grid}\0{deployment}"
        return control.Documents(hashlib.blake2b(text.encode(), digest_size=12).hexdigest())

    async def _read(self, obj: types.GridTemplate) -> tuple[str, str]:
        given = obj.spec.source
        if given.inline is not None:
            return given.inline.object_grid_xml, given.inline.deployment_xml
        resource = kinds.CONFIG_MAP if given.config_map_ref else kinds.SECRET
        ref = given.config_map_ref or given.secret_ref
        if ref is None:
            raise _SourceError("spec.source names nothing")
        said = f"{resource.kind} {ref.name}"
        try:
            data = (await self._world.client.get(resource, obj.metadata.namespace, ref.name)).get("data") or {}
        except errors.NotFound:
            raise _SourceError(f"there is no {said}") from None
        found = []
        for name in (ref.object_grid_key, ref.deployment_key):
            if name not in data:
                raise _SourceError(f"{said} has no key {name}")
            try:
                text = data[name] if resource == kinds.CONFIG_MAP else base64.b64decode(data[name]).decode()
            except (binascii.Error, UnicodeDecodeError):
                raise _SourceError(f"key {name} of {said} is no text") from None
            found.append(text)
        return found[0], found[1]

    # --- what is done to the group ---------------------------------------------------------------------------------

    async def _upload(self, obj: types.GridTemplate, args: dict[str, Any]) -> decision.Outcome:
        try:
            grid, deployment = await self._read(obj)
        except _SourceError as error:
            return decision.Conflict(str(error))
        body = {"description": obj.spec.description, "objectGridXml": grid, "deploymentXml": deployment}
        digest = str(args["digest"])

        async def send() -> decision.Outcome:
            await self._ask(obj, "PUT", body)
            return decision.Ok({"hash": digest, "refused": "", "refusedHash": ""})

        def refused(words: str) -> decision.Outcome:
            return decision.Ok({"refused": words, "refusedHash": digest})

        return await self._caches.hub.attempt(send(), refused)

    async def _remove(self, obj: types.GridTemplate, _: dict[str, Any]) -> decision.Outcome:
        async def send() -> decision.Outcome:
            await self._ask(obj, "DELETE", None)
            return decision.Ok()

        return await self._caches.hub.attempt(send(), lambda words: decision.Refused("NotDeleted", words))

    async def _ask(self, obj: types.GridTemplate, method: str, body: Any) -> Any:
        found = self._caches.meant(obj.metadata.namespace, obj.spec.cache_ref)
        if len(found) != 1:
            raise LookupError("the cache is not clear")
        path = self._settings.dialect.paths.template.format(name=obj.template)
        return await self._caches.hub.ask(found[0].metadata.key, found[0].status.primary, method, path, body)
