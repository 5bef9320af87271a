"""The pods of all installations, as they tell of themselves: watched in their namespaces, and asked by a source.

Asked is who is managed by a StatefulSet that the installation manages, and nobody else. Nothing is sent to them but a
proof that it is the installation's operator that asks; and an agent is believed by its own proof alone.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from moorage.api import builtin, meta, proof
from moorage.children import owners, reading
from moorage.children.live import views
from moorage.kube.informers import informer
from moorage.operators import asking
from moorage.runtime import freshness, kind, namespace_watches, source

from . import answers, config, names, tokens, types

Object = dict[str, Any]
Place = tuple[str, str]
"""(namespace, name) of an installation."""

Find = Callable[[str, str], types.Community | None]


class Asks(Protocol):
    """How a pod is asked; see `asking.Http`."""

    async def get(self, address: str, port: int, path: str) -> tuple[int, bytes]:
        """(status, answer). Raises AskError."""

    async def exchange(
        self, address: str, port: int, path: str, headers: Mapping[str, str]
    ) -> tuple[int, bytes, Mapping[str, str]]:
        """(status, answer, headers of the answer). Raises AskError."""


POLL_LIMIT = 20.0
"""Seconds that one look at all pods of an installation may take."""

OTHERS = (builtin.SERVICE, builtin.DISRUPTION_BUDGET, builtin.INGRESS)
WATCHED = (builtin.STATEFUL_SET, builtin.POD, builtin.VOLUME_CLAIM, *OTHERS)


class View(views.View):
    """What there is of installations in a namespace. Of Secrets those with a document are read, and no others."""

    documents: informer.Informer[Object]

    def __init__(self, world: kind.World, namespace: str, user: str) -> None:
        super().__init__(world, namespace, user, label=names.LABEL, resources=WATCHED)
        self.documents = self.open(builtin.SECRET, dict, labels=names.CONFIGURATION)

    def look_for_monitors(self, *, served: bool) -> None:
        """ServiceMonitors are watched while the API server knows them; what else there is does not wait for them."""
        known = self.objects.get(names.SERVICE_MONITOR)
        if served and known is None:
            self.objects[names.SERVICE_MONITOR] = self._labelled(names.SERVICE_MONITOR)
        elif not served and known is not None:
            self.drop(self.objects.pop(names.SERVICE_MONITOR))

    @property
    def monitored(self) -> bool:
        """Whether it is known which ServiceMonitors there are."""
        known = self.objects.get(names.SERVICE_MONITOR)
        return known is not None and known.synced

    @property
    def others(self) -> tuple[meta.Resource, ...]:
        """Kinds of which it is known what there is, beside those of pods."""
        return (*OTHERS, names.SERVICE_MONITOR) if self.monitored else OTHERS

    @property
    def unsynced(self) -> list[informer.Informer[Any]]:
        """See the base."""
        return [each for each in super().unsynced if each is not self.objects.get(names.SERVICE_MONITOR)]

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
        http: Asks,
    ) -> None:
        self._settings, self._watches, self._find, self._http = settings, watches, find, http
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
        token = tokens.of(view.documents.get(place[0], names.agent_token(place[1])), obj.metadata)
        asked = [
            self._one(pod, role, token)
            for role in (names.MASTER, names.REST)
            for pod in view.managed(place[1], obj.metadata.uid, workload_of(role, place[1]))
            if reading.address(pod)
        ]
        return tuple(await asyncio.gather(*asked))

    async def _one(self, pod: Object, role: str, token: str) -> answers.Told:
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        agent, server = await asyncio.gather(self._agent(pod, name, token), self._server(pod, role))
        return answers.Told(
            name,
            uid,
            agent=None if isinstance(agent, str) else agent,
            server=None if isinstance(server, str) else server,
            fault=agent if isinstance(agent, str) else "",
            server_fault=server if isinstance(server, str) else "",
        )

    async def _agent(self, pod: Object, name: str, token: str) -> answers.Agent | str:
        """What it tells, if both prove that they have the token."""
        if not token:
            return "it is not asked before the installation has a token; moorage makes it"
        said, nonce = self._settings.dialect, secrets.token_hex(16)
        asks = {proof.ASKED: proof.question(token, name, time.time(), nonce)}
        try:
            status, text, headers = await self._http.exchange(
                reading.address(pod), said.ports.agent, said.paths.health, asks
            )
            if status == 401:
                return answers.words(f"it refuses to tell: {text[:300].decode(errors='replace')}")
            if status != 200:
                return f"it answers with HTTP {status}"
            proof.check(token, name, nonce, text, headers.get(proof.TOLD, ""))
            return answers.agent(text, name, said.health)
        except (asking.AskError, answers.AnswerError, proof.ProofError) as error:
            return answers.words(str(error))

    async def _server(self, pod: Object, role: str) -> answers.Server | str | None:
        """Of a REST server; one that is not well says so with another status, and the same answer."""
        if role != names.REST:
            return None
        said = self._settings.dialect
        where, port, paths = reading.address(pod), said.ports.rest, said.paths
        try:
            (_, about), (_, status) = await asyncio.gather(
                self._http.get(where, port, paths.context + paths.about),
                self._http.get(where, port, paths.context + paths.status),
            )
            return answers.server(about, status, said.about)
        except (asking.AskError, answers.AnswerError) as error:
            return answers.words(str(error))
