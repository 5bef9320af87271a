"""The pods of all installations, as they tell of themselves: watched in their namespaces, and asked by a source.

Asked is who is managed by a StatefulSet that the installation manages, and nobody else. Nothing is sent to them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from moorage.api import builtin
from moorage.children import owners, reading
from moorage.children.live import views
from moorage.kube.informers import informer
from moorage.operators import asking
from moorage.runtime import freshness, kind, namespace_watches, source

from . import answers, config, names, types

Object = dict[str, Any]
Place = tuple[str, str]
"""(namespace, name) of an installation."""

Find = Callable[[str, str], types.Community | None]
Get = Callable[[str, int, str], Awaitable[tuple[int, bytes]]]
"""(address, port, path) to (status, answer); raises `asking.AskError`."""

POLL_LIMIT = 20.0
"""Seconds that one look at all pods of an installation may take."""

OTHERS = (builtin.SERVICE, builtin.DISRUPTION_BUDGET)
WATCHED = (builtin.STATEFUL_SET, builtin.POD, builtin.VOLUME_CLAIM, *OTHERS)


class View(views.View):
    """What there is of installations in a namespace. Of Secrets those with a document are read, and no others."""

    documents: informer.Informer[Object]

    def __init__(self, world: kind.World, namespace: str, user: str) -> None:
        super().__init__(world, namespace, user, label=names.LABEL, resources=WATCHED)
        self.documents = self.open(builtin.SECRET, dict, labels=names.CONFIGURATION)

    def pods_named(self, owner: str, workload: str) -> list[Object]:
        """Pods of a StatefulSet of that name, and such as it will take for its own."""
        return [pod for pod in self.of(builtin.POD, owner) if owners.may_be_of(pod, workload)]

    def managed(self, owner: str, uid: str, workload: str) -> list[Object]:
        """Pods of the very StatefulSet of that name that the installation with that uid manages."""
        live = self.objects[builtin.STATEFUL_SET].get(self.namespace, workload)
        if live is None or not owners.is_controlled(live, uid):
            return []
        mine = live["metadata"]["uid"]
        return [pod for pod in self.pods_named(owner, workload) if owners.is_controlled(pod, mine)]


def workload_of(role: str, name: str) -> str:
    """The StatefulSet of a role."""
    return names.rest(name) if role == names.REST else names.master(name)


class Members:
    """What the pods of all installations told."""

    def __init__(
        self,
        world: kind.World,
        settings: config.Config,
        watches: namespace_watches.Watches[View],
        find: Find,
        get: Get,
    ) -> None:
        self._settings, self._watches, self._find, self._get = settings, watches, find, get
        self._paces = source.Paces[Place](settings.poll.idle_seconds)
        self.source = source.Source[Place, tuple[answers.Told, ...]](
            "members",
            self.ask,
            world.enqueue,
            every=self._paces.of,
            deadline=POLL_LIMIT,
            concurrency=64,
            backoff=(1.0, 15.0),
        )

    async def stop(self) -> None:
        """End all asking."""
        await self.source.stop()

    def forget(self, place: Place, reader: kind.Key) -> None:
        """The installation is gone."""
        self.source.forget(reader)
        self._paces.forget(place)

    def set_pace(self, place: Place, *, busy: bool) -> None:
        """How often they are asked; at once where it is to be more often than before."""
        poll = self._settings.poll
        self._paces.set(place, poll.busy_seconds if busy else poll.idle_seconds, self.source)

    def may_ask(self, place: Place) -> None:
        """What was missing to ask is there now, for who was not asked so far."""
        if freshness.is_unseen(self.source.peek(place)):
            self.source.refresh(place)

    async def ask(self, place: Place) -> tuple[answers.Told, ...]:
        """All pods with an address, now. Raises SourceError where that can't be done yet."""
        obj, view = self._find(*place), self._watches.peek(place[0])
        if obj is None or view is None or view.unsynced:
            raise source.SourceError(freshness.NOT_YET, freshness.not_yet(self.source.name).message)
        asked = [
            self._one(pod, role)
            for role in (names.MASTER, names.REST)
            for pod in view.managed(place[1], obj.metadata.uid, workload_of(role, place[1]))
            if reading.address(pod)
        ]
        return tuple(await asyncio.gather(*asked))

    async def _one(self, pod: Object, role: str) -> answers.Told:
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        agent, server = await asyncio.gather(self._agent(pod, name), self._server(pod, role))
        return answers.Told(
            name,
            uid,
            agent=None if isinstance(agent, str) else agent,
            server=None if isinstance(server, str) else server,
            fault=agent if isinstance(agent, str) else "",
            server_fault=server if isinstance(server, str) else "",
        )

    async def _agent(self, pod: Object, name: str) -> answers.Agent | str:
        said = self._settings.dialect
        try:
            status, text = await self._get(reading.address(pod), said.ports.agent, said.paths.health)
            if status != 200:
                return f"it answers with HTTP {status}"
            return answers.agent(text, name, said.health)
        except (asking.AskError, answers.AnswerError) as error:
            return answers.words(str(error))

    async def _server(self, pod: Object, role: str) -> answers.Server | str | None:
        """Of a REST server; one that is not well says so with another status, and the same answer."""
        if role != names.REST:
            return None
        said = self._settings.dialect
        where, port, paths = reading.address(pod), said.ports.rest, said.paths
        try:
            (_, about), (_, status) = await asyncio.gather(
                self._get(where, port, paths.context + paths.about),
                self._get(where, port, paths.context + paths.status),
            )
            return answers.server(about, status, said.about)
        except (asking.AskError, answers.AnswerError) as error:
            return answers.words(str(error))
