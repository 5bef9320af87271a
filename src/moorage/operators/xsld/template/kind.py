"""The GridTemplate as the runtime runs it. It reads what the caches' kind knows of groups, and asks the primary."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from moorage.api import builtin
from moorage.operators import named_data
from moorage.operators.xsld import group_access, names
from moorage.operators.xsld.reasons import Reason
from moorage.operators.xsld.within_cache import common_kind
from moorage.runtime import decision, kind, source

from . import control, types


class _SourceError(Exception):
    """The documents can't be read; the message says why."""


class TemplateKind(common_kind.DependentKind[types.GridTemplate, control.Seen]):
    """GridTemplates."""

    resource = names.TEMPLATE
    model = types.GridTemplate
    finalizer = names.TEMPLATE_FINALIZER
    ready_facts = control.READY_FACTS
    steps = control.STEPS
    deletion_steps = control.DELETION_STEPS
    facts = control.FACTS

    async def start(self, world: kind.World) -> None:
        """See `Kind.start`."""
        self.operations = {"upload": self._upload, "remove": self._remove}
        self._documents = source.Source[tuple[str, str, str], control.Documents](
            "template's documents", self._look, world.enqueue, every=group_access.SECRETS_EVERY, concurrency=16
        )
        await super().start(world)

    async def stop(self) -> None:
        """See `Kind.stop`."""
        await self._documents.stop()

    def forget(self, namespace: str, name: str) -> None:
        """See `Kind.forget`."""
        super().forget(namespace, name)
        self._documents.forget(self.key(namespace, name))

    def observe(self, obj: types.GridTemplate, now: float) -> control.Seen:
        """See `Kind.observe`."""
        caches, polled = self._told(obj)
        # by the spec: what another one named is not the documents of this one, not even for a moment
        documents, key = (*obj.metadata.key, _print(obj.spec)), self.key(*obj.metadata.key)
        return control.Seen(
            meta=obj.metadata.without_last_applied(),
            spec=obj.spec,
            status=obj.status,
            busy=self._settings.poll.busy_seconds,
            template=obj.server_name,
            documents=self._documents.follow(documents, key),
            caches=caches,
            others=self._others(obj),
            elsewhere=self._elsewhere(obj),
            older=self._older(obj),
            polled=polled,
        )

    def report(self, seen: control.Seen, _: decision.StepTaken | None) -> dict[str, Any]:
        """See `Kind.report`."""
        return control.report(seen)

    # --- the documents ---------------------------------------------------------------------------------------------

    async def _look(self, key: tuple[str, str, str]) -> control.Documents:
        obj = self.find(*key[:2])
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
        resource = builtin.CONFIG_MAP if given.config_map_ref else builtin.SECRET
        ref = given.config_map_ref or given.secret_ref
        if ref is None:
            raise _SourceError("spec.source names nothing")
        said = f"{resource.kind} {ref.name}"
        namespace, keys = obj.metadata.namespace, (ref.object_grid_key, ref.deployment_key)
        found = await named_data.read(self._caches.groups.within(namespace), resource, namespace, ref.name)
        if found is None:
            raise _SourceError(f"there is no {said}")
        for key in keys:
            if fault := named_data.fault(resource, found, key):
                raise _SourceError(f"{said}: {fault}")
        texts = named_data.texts(resource, found)
        return texts[keys[0]], texts[keys[1]]

    # --- what is done to the group ---------------------------------------------------------------------------------

    async def _upload(self, obj: types.GridTemplate, args: dict[str, Any]) -> decision.Outcome:
        if taken := self._taken(obj):
            return taken
        try:
            grid, deployment = await self._read(obj)
        except _SourceError as error:
            return decision.Conflict(str(error))
        said = self._settings.dialect.template
        body = {said.description: obj.spec.description, said.object_grid: grid, said.deployment: deployment}
        digest = str(args["digest"])

        async def send() -> decision.Outcome:
            await self._ask(obj, said.method, body)
            return decision.Ok({"hash": digest, "refused": "", "refusedHash": ""})

        def refused(words: str) -> decision.Outcome:
            return decision.Ok({"refused": words, "refusedHash": digest})

        return await self._caches.groups.attempt(self.key(*obj.metadata.key), send(), refused)

    async def _remove(self, obj: types.GridTemplate, _: dict[str, Any]) -> decision.Outcome:
        if taken := self._taken(obj):
            return taken

        async def send() -> decision.Outcome:
            await self._ask(obj, "DELETE", None)
            return decision.Ok()

        return await self._caches.groups.attempt(
            self.key(*obj.metadata.key), send(), lambda words: decision.Refused(Reason.NOT_DELETED, words)
        )

    async def _ask(self, obj: types.GridTemplate, method: str, body: Any) -> Any:
        cache = self._the_cache(obj)
        if cache is None:
            raise LookupError("the cache is not clear")
        path = self._settings.dialect.paths.template.format(name=obj.server_name)
        return await self._caches.groups.ask_primary(cache, method, path, body)


def _print(spec: types.GridTemplateSpec) -> str:
    return hashlib.blake2b(msgspec.json.encode((spec.description, spec.source)), digest_size=16).hexdigest()
