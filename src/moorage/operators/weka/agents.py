"""Containers and clusters as they tell of themselves: asked, and told, by exec of the tool in their pods.

It observes by polls, with a deadline each, and carries out orders; after each order what was heard before is outdated.
A pod is asked only if the WekaContainer of its name manages it. It decides nothing, and no secret passes through here.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import secrets
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import msgspec

from moorage.api import builtin
from moorage.children import apply, bodies, owners
from moorage.kube import client as kube_client
from moorage.kube import errors
from moorage.operators import accounts
from moorage.runtime import cancellation, decision, freshness, kind, namespace_watches, source

from . import answers, config, names
from .cluster import types as cluster_types
from .container import build
from .container import types as container_types

Place = tuple[str, str]
"""(namespace, name)."""

A = TypeVar("A")

POLL_LIMIT = 60.0
EXEC_LIMIT = 28.0
"""Seconds for one question or order; the tool itself gives up before."""

ASKED_AT_ONCE = 3
"""Containers that one poll of a cluster asks, at most."""

MISSES = 3
"""Polls of a cluster in a row that nobody answers, after which what it said before counts no more."""


class View(namespace_watches.View):
    """What there is of Weka in one namespace, beside its own kinds; of Secrets the metadata alone."""

    def __init__(self, world: kind.World, namespace: str, user: str) -> None:
        super().__init__(world, namespace, user)
        self.pods = self.open(builtin.POD, dict, labels=names.CONTAINER_NAME)
        self.operation_pods = self.open(builtin.POD, dict, labels=names.OPERATION_NAME)
        self.scripts = self.open(builtin.CONFIG_MAP, dict, name=names.SCRIPTS)
        self.secrets = self.open(builtin.SECRET, dict, labels="app=weka", metadata_only=True)

    def pod(self, obj: container_types.WekaContainer) -> dict[str, Any] | None:
        """The pod of that container: of its name, and managed by it."""
        found: dict[str, Any] | None = self.pods.get(self.namespace, obj.metadata.name)
        return found if found is not None and owners.is_controlled(found, obj.metadata.uid) else None

    @property
    def scripts_uid(self) -> str:
        """The uid of the ConfigMap with what runs in pods; empty: there is none."""
        found = self.scripts.get(self.namespace, names.SCRIPTS)
        return str(found["metadata"]["uid"]) if found else ""

    def secret(self, name: str) -> str:
        """The uid of that Secret."""
        found = self.secrets.get(self.namespace, name)
        return str(found["metadata"]["uid"]) if found else ""


class Agents:
    """Everything that is known of containers and clusters from inside, and done to them."""

    def __init__(
        self,
        world: kind.World,
        settings: config.Config,
        rights: accounts.Rights,
        container: Callable[[str, str], container_types.WekaContainer | None],
        members: Callable[[Place], Iterable[container_types.WekaContainer]],
    ) -> None:
        """`members` are the containers of the WekaCluster at a place."""
        self._world, self._settings, self._rights = world, settings, rights
        self._container, self._members = container, members
        self._busy: set[Place] = set()  # containers and clusters that are not ready
        self._running: dict[Place, str] = {}  # by container: what ran when it was looked at last
        self._misses: dict[Place, int] = {}  # by cluster: polls in a row that nobody answered
        self._empty: set[Place] = set()  # clusters of which no container runs
        self.watches = namespace_watches.Watches(
            lambda namespace: View(world, namespace, rights.user(namespace)),
        )
        self.locals = source.Source[Place, answers.Local](
            "container",
            self._look,
            world.enqueue,
            every=lambda place: self._pace(place, settings.poll.container_seconds),
            deadline=POLL_LIMIT,
            concurrency=64,
            backoff=(1.0, 30.0),
        )
        self.clusters = source.Source[Place, answers.Cluster](
            "cluster",
            self._look_at_cluster,
            world.enqueue,
            every=lambda place: self._pace(place, settings.poll.idle_seconds),
            deadline=POLL_LIMIT,
            concurrency=16,
            backoff=(1.0, 30.0),
        )
        self.logins = source.Source[Place, str](  # Secrets that specs name, which are nobody's to watch
            "login", self._named_secret, world.enqueue, every=30.0, concurrency=8
        )

    async def stop(self) -> None:
        """Close everything."""
        await cancellation.stopped(self.locals, self.clusters, self.logins, self.watches)

    def within(self, namespace: str) -> kube_client.Client:
        """What acts in that namespace and nowhere else."""
        return self._world.client.as_(self._rights.user(namespace))

    def forget(self, place: Place, reader: kind.Key) -> None:
        """Somebody is gone."""
        for each in (self.locals, self.clusters, self.logins):
            each.forget(reader)
        self.watches.leave(reader)
        self._busy.discard(place)
        self._running.pop(place, None)
        self._misses.pop(place, None)
        self._empty.discard(place)

    def set_pace(self, place: Place, *, busy: bool) -> None:
        """How often it is asked; what is to be asked more often than before is asked at once."""
        if busy and place not in self._busy:
            self._busy.add(place)
            self.locals.refresh(place)
            self.clusters.refresh(place)
        elif not busy:
            self._busy.discard(place)

    def _pace(self, place: Place, idle: float) -> float:
        return self._settings.poll.busy_seconds if place in self._busy else idle

    # --- what is known -------------------------------------------------------------------------------------------

    def local(self, obj: container_types.WekaContainer, reader: kind.Key) -> freshness.Observed[answers.Local]:
        """A container by its own word. One that has begun to run, or was started again, is asked at once."""
        place, run = obj.metadata.key, self._run_of(obj)
        before, self._running[place] = self._running.get(place, run), run
        if run and run != before:
            self.locals.refresh(place)
        return self.locals.read(place, reader)

    def cluster(self, place: Place, reader: kind.Key) -> freshness.Observed[answers.Cluster]:
        """A cluster by its own word; nobody is asked while none of its containers runs."""
        if not any(self._uid(it) for it in self._members(place)):
            self._empty.add(place)
            return freshness.Failed("NoContainer", f"no container of {place[1]} runs")
        if place in self._empty:
            self._empty.discard(place)
            self.clusters.refresh(place)
        return self.clusters.read(place, reader)

    # --- questions -----------------------------------------------------------------------------------------------

    async def ask(self, namespace: str, pod: str, what: str, args: dict[str, Any], as_: type[A]) -> A:
        """What the tool in that pod prints. Raises what the client raises, and AnswerError."""
        command = ["python3", f"{build.FOLDER}/{build.TOOL}", what, msgspec.json.encode(args).decode()]
        client = self.within(namespace)
        done = await client.exec(namespace, pod, command, names.POD_CONTAINER, timeout=EXEC_LIMIT)
        if done.code:
            raise answers.AnswerError(f"the tool ended with {done.code}: {done.stderr.strip()[-300:]}")
        return answers.read(done.stdout, as_)

    def _uid(self, obj: container_types.WekaContainer | None) -> str:
        """The uid of the container's pod, if that runs."""
        return self._run_of(obj).partition(" ")[0]

    def _run_of(self, obj: container_types.WekaContainer | None) -> str:
        """The uid of the container's pod, and since when that runs; empty where it does not."""
        view = self.watches.peek(obj.metadata.namespace) if obj is not None else None
        pod = view.pod(obj) if view is not None and obj is not None else None
        stated = ((pod.get("status") or {}).get("containerStatuses") or ()) if pod is not None else ()
        running = [it["state"]["running"] for it in stated if "running" in (it.get("state") or {})]
        return f"{pod['metadata']['uid']} {(running[0] or {}).get('startedAt', '')}" if pod and running else ""

    async def _look(self, place: Place) -> answers.Local:
        uid = self._uid(self._container(*place))
        if not uid:
            raise source.SourceError("NoPod", f"{place[1]} has no pod that runs")
        found = await self._asked(place, "local", answers.Local)
        if found.pod != uid:
            raise source.SourceError("OtherPod", f"another pod than that of {place[1]} answered")
        return found

    async def _look_at_cluster(self, place: Place) -> answers.Cluster:
        """What it said last counts until nobody has answered for a few polls."""
        self._misses[place] = missed = self._misses.get(place, 0) + 1
        try:
            async with asyncio.timeout(POLL_LIMIT - 1.0):
                found = await self._by_any(place)
        except TimeoutError as error:
            said = f"cluster {place[1]} gave no answer within {POLL_LIMIT:g} s"
            raise source.SourceError("TimedOut", said, transient=missed < MISSES) from error
        except source.SourceError as error:
            raise source.SourceError(error.reason, error.message, transient=missed < MISSES) from error
        self._misses.pop(place, None)
        return found

    async def _by_any(self, place: Place) -> answers.Cluster:
        """By the first of a few that is part of a cluster; an empty answer where all of them are part of none."""
        able = [it for it in self._members(place) if self._uid(it)]
        if not able:
            raise source.SourceError("NoContainer", f"no container of {place[1]} runs")
        able.sort(key=lambda it: (not it.status.cluster_id, it.metadata.deleting, it.spec.mode, it.metadata.name))
        said = ""
        for it in able[:ASKED_AT_ONCE]:
            try:
                found = await self._asked(it.metadata.key, "cluster", answers.Cluster)
            except source.SourceError as error:
                said = error.message
                continue
            if found.guid:
                return found
            if found.fault:
                said = f"{it.metadata.name}: {found.message}"
        if said:
            raise source.SourceError("Unavailable", said)
        return answers.Cluster()

    async def _asked(self, place: Place, what: str, as_: type[A]) -> A:
        try:
            return await self.ask(*place, what, {}, as_)
        except answers.AnswerError as error:
            raise source.SourceError("Unreadable", f"{place[1]}: {error}") from error
        except errors.KubeError as error:
            raise source.SourceError("Unavailable", f"{place[1]}: {error}") from error

    async def _named_secret(self, place: Place) -> str:
        try:
            found = await self.within(place[0]).get(builtin.SECRET, *place)
        except errors.NotFound:
            return ""
        return str(found["metadata"]["uid"])

    # --- orders --------------------------------------------------------------------------------------------------

    async def tell(
        self,
        place: Place,
        cluster: Place | None,
        order: str,
        args: dict[str, Any],
        refused: decision.Reason,
        uid: str = "",
        *,
        changes_it: bool = True,
    ) -> decision.Outcome:
        """Give one order to one container; with `uid`, to that pod of it alone. `refused`: why, where it says no.

        `changes_it`: the container itself is another one after it, so that it is asked anew.
        """
        live = self._uid(self._container(*place))
        if not live or (uid and live != uid):
            return decision.Conflict(f"{place[1]} has another pod by now, or none")
        try:
            done = await self.ask(*place, order, args, answers.Done)
        except answers.AnswerError as error:
            return decision.Unknown(f"{order} at {place[1]}: {error}")
        finally:
            why = f"{order} was told"
            if changes_it:
                self.locals.outdate(place, why)
            if cluster is not None:
                self.clusters.outdate(cluster, why)
        if done.fault == "Refused":
            return decision.Refused(refused, f"{order} at {place[1]}: {done.message}")
        return decision.Unknown(f"{order} at {place[1]}: {done.message}") if done.fault else decision.Ok()

    async def tell_cluster(
        self, cluster: Place, order: str, args: dict[str, Any], refused: decision.Reason, but: str = ""
    ) -> decision.Outcome:
        """Give one order to a cluster, by one of its containers; by that called `but` only if there is no other."""
        able = [it for it in self._members(cluster) if it.status.cluster_id and self._uid(it)]
        if not able:
            return decision.Conflict(f"no container of {cluster[1]} runs")
        via = min(able, key=lambda it: (it.metadata.name == but, it.metadata.deleting, it.spec.mode, it.metadata.name))
        return await self.tell(via.metadata.key, cluster, order, args, refused, changes_it=False)

    async def make_login(self, obj: cluster_types.WekaCluster, named: str) -> decision.Outcome:
        """The operator's login and the people's, each made once; what is there stays as it is."""
        password = await self._kept(obj, named, "user-password") or secrets.token_urlsafe(24)
        if not named:
            own = {
                "username": "admin",
                "password": secrets.token_urlsafe(24),
                "join-secret": secrets.token_urlsafe(48),
                "org": "Root",
                "user-password": password,
            }
            with contextlib.suppress(errors.AlreadyExists):
                await self._make_secret(obj, names.operator_secret(obj.metadata.uid), own)
            password = await self._kept(obj, named, "user-password") or password
        people = {"username": names.user_secret(obj.metadata.name), "password": password, "org": "Root"}
        with contextlib.suppress(errors.AlreadyExists):
            await self._make_secret(obj, names.user_secret(obj.metadata.name), people)
        return decision.Ok()

    async def _kept(self, obj: cluster_types.WekaCluster, named: str, key: str) -> str:
        """What the operator's login has under that key already, so that both Secrets fit together after a kill."""
        namespace = obj.metadata.namespace
        name = named or names.operator_secret(obj.metadata.uid)
        try:
            found = await self.within(namespace).get(builtin.SECRET, namespace, name)
        except errors.NotFound:
            return ""
        text = (found.get("data") or {}).get(key, "")
        return base64.b64decode(text).decode(errors="replace") if isinstance(text, str) else ""

    async def _make_secret(self, obj: cluster_types.WekaCluster, name: str, texts: dict[str, str]) -> None:
        owner = names.CLUSTER.ref(*obj.metadata.key, obj.metadata.uid)
        labels = {**names.APP, names.CLUSTER_ID: obj.metadata.uid, "app.kubernetes.io/managed-by": "moorage"}
        data = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
        body = bodies.owned(builtin.SECRET, name, owner, {"type": "Opaque", "data": data}, labels=labels)
        del body["metadata"]["annotations"][apply.STAMP]  # of a body that is secret it would tell something
        namespace = obj.metadata.namespace
        async with self._world.own_write(builtin.SECRET, namespace, name) as own:
            made = await self.within(namespace).create(
                builtin.SECRET,
                namespace,
                body,
                field_manager=decision.FIELD_MANAGER,
                as_=msgspec.Raw,
                timeout=self._world.gate.timeout(15.0),
            )
            own.took(made)
