"""What the three kinds share: the watches of a namespace, the credentials, and the group as its members tell of it.

It observes pods, Secrets and admin APIs, and carries out what is asked of a group. Credentials stay in here: what comes
out is whether they are sound. It decides nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Hashable
from typing import Any

import msgspec

from moorage.api import builtin, conditions
from moorage.children import ordinals, reading
from moorage.children.live import surroundings, views
from moorage.kube import client as kube_client
from moorage.operators import accounts, named_data
from moorage.runtime import cancellation, decision, freshness, kind, namespace_watches, reasons, source

from . import config
from .cache import build, types
from .group import admin, answers
from .reasons import Reason

Place = tuple[str, str]
"""(namespace, name) of a cache."""

SECRETS_EVERY = 30.0
"""Seconds between looks at Secrets and scripts that are the user's own, and so not watched."""

POLL_LIMIT = 20.0

DIFFERS = "differs"
"""What is told of a Secret of ours that holds other values than the spec."""

_REF = "spec.credentialsSecretRef"
_SCRIPT = "spec.entrypointConfigMap"

OTHERS = (builtin.SECRET, builtin.CONFIG_MAP, builtin.SERVICE, builtin.DISRUPTION_BUDGET)
"""What is made for a cache beside its StatefulSet."""

WATCHED = (builtin.STATEFUL_SET, builtin.POD, builtin.VOLUME_CLAIM, *OTHERS)
"""What there is of caches in a namespace."""


class Given(msgspec.Struct, frozen=True):
    """Where a spec says that the credentials are. Another spec is another: nothing that was read for it holds here."""

    place: Place
    print: str  # of the fields, which may be the credentials themselves


def given(obj: types.XsldCache) -> Given:
    """What `Groups.credentials` is asked by."""
    spec = obj.spec
    fields = msgspec.json.encode((spec.admin_pwd, spec.secret_key, spec.credentials_secret_ref, spec.tls))
    return Given(obj.metadata.key, hashlib.blake2b(fields, digest_size=16).hexdigest())


Find = Callable[[str, str], types.XsldCache | None]


class Groups:
    """Everything that is known of the groups, and done to them."""

    def __init__(self, world: kind.World, settings: config.Config, rights: accounts.Rights, find: Find) -> None:
        self.world, self.settings, self._rights, self.find = world, settings, rights, find
        self.watches = namespace_watches.Watches(
            lambda namespace: views.View(world, namespace, rights.user(namespace), label=build.LABEL, resources=WATCHED)
        )
        self._admins: dict[Place, tuple[str, admin.Admin]] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._paces = source.Paces[Place](settings.poll.idle_seconds)
        self._unsent: set[Hashable] = set()
        self._changed: dict[Place, float] = {}  # when the Secret with the credentials did last, as read last
        self.polls = source.Source[Place, answers.Polled](
            "group",
            self.poll,
            world.enqueue,
            every=self._paces.of,
            deadline=POLL_LIMIT,
            concurrency=256,
            backoff=(1.0, 30.0),
        )
        self.credentials = source.Source[Given, str](
            "credentials", self._look_at_credentials, world.enqueue, every=SECRETS_EVERY, concurrency=32
        )
        self.entrypoints = source.Source[tuple[str, str], str](  # by namespace and ConfigMap
            "entrypoint", self._entrypoint, world.enqueue, every=SECRETS_EVERY, concurrency=32
        )
        self.around = surroundings.Surroundings(world, self.within)
        self.operations: dict[str, kind.Operation[types.XsldCache]] = {"submit": self._submit, "cancel": self._cancel}

    def within(self, namespace: str) -> kube_client.Client:
        """What acts in that namespace and nowhere else."""
        return self.world.client.as_(self._rights.user(namespace))

    @property
    def _sources(self) -> tuple[source.Source[Any, Any], ...]:
        return self.polls, self.credentials, self.entrypoints, *self.around.all

    async def stop(self) -> None:
        """Close everything."""
        closing = (*self._closing, *(it.close() for _, it in self._admins.values()))
        await cancellation.ended(*closing, cancellation.stopped(*self._sources, self.watches))

    def forget(self, place: Place, reader: kind.Key) -> None:
        """The cache is gone."""
        for each in self._sources:
            each.forget(reader)
        self.watches.leave(reader)
        self._paces.forget(place)
        self._unsent.discard(place)
        self._changed.pop(place, None)
        self._drop(place)

    def leave(self, reader: kind.Key) -> None:
        """What lived in a group is gone."""
        self.polls.forget(reader)
        self._unsent.discard(reader)

    def set_pace(self, place: Place, seconds: float) -> None:
        """How often the group is asked; a group that is to be asked more often than before is asked at once."""
        self._paces.set(place, seconds, self.polls)

    # --- credentials ---------------------------------------------------------------------------------------------

    async def _look_at_credentials(self, given: Given) -> str:
        """What is wrong with them, or an empty string. What is right is kept for requests."""
        place = given.place
        obj = self._object(place)
        secret, admin_key, secret_key = build.Wanted(
            *place, obj.metadata.uid, obj.spec, self.settings.dialect
        ).credentials
        generated = obj.spec.credentials_secret_ref is None
        live_secret = await named_data.read(self.within(place[0]), builtin.SECRET, place[0], secret)
        self._changed[place] = _changed(live_secret)
        found = _texts(live_secret)
        if found is None and not generated:
            return f"there is no Secret {secret}, which {_REF} names"
        live = [(found or {}).get(admin_key), (found or {}).get(secret_key)]
        wanted = [obj.spec.admin_pwd, obj.spec.secret_key] if generated else live
        fields = ("adminPwdKey", "secretKeyKey")
        for field, key, text in zip(fields, (admin_key, secret_key), wanted, strict=True):
            if text is None:
                return f"Secret {secret} has no key {key}, which {_REF}.{field} names"
            if fault := types.password_fault(text):
                return f"{key} of Secret {secret} of {_REF}: {fault}"
        ca: str | None = None
        if name := obj.spec.tls.ca_secret_ref:
            given_ca = await self._secret(place[0], name)
            if given_ca is None:
                return f"there is no Secret {name}, which spec.tls.caSecretRef names"
            ca = given_ca.get("ca.crt")
            if ca is None:
                return f"Secret {name} of spec.tls.caSecretRef has no key ca.crt"
        try:
            self._use(place, admin.Credentials(str(wanted[0]), str(wanted[1])), ca, obj.spec.tls)
        except ValueError as error:
            return f"Secret {obj.spec.tls.ca_secret_ref} of spec.tls.caSecretRef: {error}"
        return DIFFERS if live != wanted else ""

    async def _secret(self, namespace: str, name: str) -> dict[str, str] | None:
        return _texts(await named_data.read(self.within(namespace), builtin.SECRET, namespace, name))

    def credentials_since(self, place: Place) -> float:
        """Since when the Secret holds what it holds (epoch seconds); 0 while that is not known."""
        return self._changed.get(place, 0.0)

    def _use(self, place: Place, credentials: admin.Credentials, ca: str | None, tls: types.Tls) -> None:
        text = f"{credentials.admin_pwd}\0{credentials.secret_key}\0{ca}\0{tls.insecure_skip_verify}"
        print_ = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
        if place in self._admins and self._admins[place][0] == print_:
            return
        context = admin.tls(ca.encode() if ca else None, verify=tls.verified)
        self._drop(place)
        self._admins[place] = print_, admin.Admin(self.settings.dialect, credentials, context)
        self.polls.refresh(place)

    def _drop(self, place: Place) -> None:
        _, old = self._admins.pop(place, ("", None))
        if old is not None:
            task = asyncio.get_running_loop().create_task(old.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    def _object(self, place: Place) -> types.XsldCache:
        found = self.find(*place)
        if found is None:
            raise source.SourceError("Gone", "the cache is gone")
        return found

    async def _entrypoint(self, key: tuple[str, str]) -> str:
        """The user's script, never empty. Raises SourceError for one that is not there."""
        namespace, name = key
        found = await named_data.read(self.within(namespace), builtin.CONFIG_MAP, namespace, name)
        if found is None:
            raise source.SourceError("Missing", f"there is no ConfigMap {name}, which {_SCRIPT} names", transient=False)
        script = (found.get("data") or {}).get("entrypoint.sh")
        if not script:
            raise source.SourceError(
                "Missing", f"ConfigMap {name} of {_SCRIPT} has no key entrypoint.sh", transient=False
            )
        return str(script)

    # --- the group -----------------------------------------------------------------------------------------------

    async def poll(self, place: Place) -> answers.Polled:
        """Ask every pod of the cache that has an address, now. Raises SourceError where that can't be done yet."""
        obj = self._object(place)
        view = self.watches.peek(place[0])
        if place not in self._admins or view is None or view.unsynced:
            raise self._not_asked(obj)
        targets = self._targets(place)
        if not targets and any(reading.address(pod) for pod in view.pods_of(place[1])):
            said = f"no pod with an address belongs to StatefulSet {place[1]} of this cache"
            raise source.SourceError("NotOurs", f"{said}; nobody else is asked")
        asker = self._admins[place][1]
        remembered = [member.name for member in obj.status.member_statuses]
        current = obj.status.current_task
        follow = (current.endpoint, current.id) if current is not None and current.id else None
        primary = obj.status.primary_of(place[1])
        polled = await asker.polled(targets, follow=follow, remembered=remembered, primary=primary)
        if polled.rejected:
            self.credentials.refresh(given(obj))
        return polled

    async def look(self, place: Place) -> answers.Polled:
        """The same right before an act: where nobody can be asked, nobody says that it may be done."""
        try:
            return await self.poll(place)
        except source.SourceError:
            return answers.Polled()

    def _not_asked(self, obj: types.XsldCache) -> source.SourceError:
        """Why nobody was asked so far: nothing is known by that, least of all that nobody answers."""
        fault = freshness.value_of(self.credentials.peek(given(obj)))
        if fault and fault != DIFFERS:
            return source.SourceError("NoCredentials", f"the group can't be asked: {fault}")
        return source.SourceError(freshness.NOT_YET, freshness.not_yet(self.polls.name).message)

    def may_ask(self, place: Place) -> None:
        """What was missing to ask the group is there now."""
        if place in self._admins:
            self.polls.refresh(place)

    def _targets(self, place: Place) -> list[admin.Target]:
        """Whom the password is sent to: by ownership, from the cache to its StatefulSet to its pods."""
        namespace, name = place
        view, obj = self.watches.peek(namespace), self.find(*place)
        pods = view.members_of(name, obj.metadata.uid) if view and obj else []
        return [
            admin.Target(it["metadata"]["name"], it["metadata"]["uid"], address, self._host(place, it))
            for it in pods
            if (address := reading.address(it))
        ]

    @staticmethod
    def _host(place: Place, pod: dict[str, Any]) -> str:
        namespace, name = place
        return f"{pod['metadata']['name']}.{name}.{namespace}.svc"

    def target(self, place: Place, pod: str) -> admin.Target:
        """Where that pod is asked. Raises LookupError when it has no address."""
        found = next((target for target in self._targets(place) if target.pod == pod), None)
        if found is None:
            raise LookupError(f"{pod} has no address")
        return found

    async def ask(self, place: Place, pod: str, method: str, path: str, body: Any = None) -> Any:
        """One request that changes something, to one pod; whatever comes of it, what was known is outdated.

        Raises AdminError and LookupError.
        """
        if place not in self._admins:
            raise LookupError("the credentials are not known yet")
        try:
            return await self._admins[place][1].call(self.target(place, pod), method, path, body)
        finally:
            self.polls.outdate(place, f"{method} {path}")

    async def ask_primary(self, cache: types.XsldCache, method: str, path: str, body: Any = None) -> Any:
        """The same to who is the primary of that cache, as far as its status names one of its own pods."""
        return await self.ask(cache.metadata.key, cache.status.primary_of(cache.metadata.name), method, path, body)

    @staticmethod
    def number(answer: Any) -> int:
        """The task's id. Raises AdminError for an answer without one: something may have begun."""
        try:
            return answers.task_id(answer)
        except ValueError as error:
            raise admin.AdminError(answers.Fault.MALFORMED, str(error), maybe=True) from error

    async def attempt(
        self, whose: Hashable, work: Awaitable[decision.Outcome], refused: Callable[[str], decision.Outcome]
    ) -> decision.Outcome:
        """What came of a request that changes something. `refused` says what a refusal that stays leads to."""
        outcome = await self._attempt(work, refused)
        if isinstance(outcome, decision.Refused | decision.Conflict):
            self._unsent.add(whose)
        else:
            self._unsent.discard(whose)
        return outcome

    def unsent(self, whose: Hashable) -> bool:
        """Whether its last request was certainly not carried out. A memory that only saves waiting."""
        return whose in self._unsent

    @staticmethod
    async def _attempt(
        work: Awaitable[decision.Outcome], refused: Callable[[str], decision.Outcome]
    ) -> decision.Outcome:
        try:
            return await work
        except LookupError as error:
            return decision.Refused(reasons.Reason.NOT_SENT, str(error))
        except admin.AdminError as error:
            if error.maybe:
                return decision.Unknown(error.words)
            if error.status == 409:
                return decision.Conflict(error.words)
            if error.fault is not None:
                return decision.Refused(error.fault.value, error.words)
            return refused(error.words)

    async def _submit(self, obj: types.XsldCache, args: dict[str, Any]) -> decision.Outcome:
        current = msgspec.convert(args, types.CurrentTask)

        async def send() -> decision.Outcome:
            body = self._command(obj, current)
            answer = await self.ask(obj.metadata.key, current.endpoint, "POST", self.settings.dialect.paths.tasks, body)
            number = self.number(answer)
            return decision.Ok({"currentTask": msgspec.to_builtins(msgspec.structs.replace(current, id=number))})

        def refused(words: str) -> decision.Outcome:
            return decision.Ok({"currentTask": msgspec.to_builtins(msgspec.structs.replace(current, refused=words))})

        return await self.attempt(obj.metadata.key, send(), refused)

    def _command(self, obj: types.XsldCache, current: types.CurrentTask) -> dict[str, Any]:
        said, place = self.settings.dialect, obj.metadata.key
        keys = said.parameters
        match current.command:
            case "Join":
                chief = self.target(place, obj.status.primary_of(obj.metadata.name))
                host = said.join_host.format(
                    pod=chief.pod, service=obj.metadata.name, namespace=obj.metadata.namespace, address=chief.address
                )
                catalog = ordinals.of(obj.metadata.name, current.target) < obj.spec.catalogs
                command = said.commands.join
                parameters = {
                    keys.secret_key: self._admins[place][1].secret_key,
                    keys.member: current.target,
                    keys.host: host,
                    keys.catalog: "true" if catalog else "false",
                }
            case "Leave":
                command, parameters = said.commands.leave, {keys.member: current.target}
            case "Replicate":
                command = said.commands.replicate
                parameters = {keys.master: current.endpoint, keys.slave: current.target}
            case _:
                command, parameters = said.commands.failover, {keys.new_master: current.target}
        return {
            "command": command,
            "description": f"moorage {current.intent}: {current.command} {current.target}",
            "parameters": parameters,
        }

    async def _cancel(self, obj: types.XsldCache, args: dict[str, Any]) -> decision.Outcome:
        path = self.settings.dialect.paths.task_cancel.format(id=args["id"])

        async def send() -> decision.Outcome:
            await self.ask(obj.metadata.key, str(args["endpoint"]), "PUT", path)
            return decision.Ok()

        return await self._attempt(send(), lambda words: decision.Refused(Reason.NOT_CANCELLED, words))


KUBELET_LAG = 10.0
"""Seconds for which a kubelet may give a container what a Secret held before it was changed."""


def _texts(secret: dict[str, Any] | None) -> dict[str, str] | None:
    return None if secret is None else named_data.texts(builtin.SECRET, secret)


def _changed(secret: dict[str, Any] | None) -> float:
    """When its data was changed last, by what the API server notes of its fields; 0 where there is nothing to tell."""
    if secret is None:
        return 0.0
    made = secret["metadata"].get("creationTimestamp") or ""
    last = max(made, named_data.changed(secret))
    if not last:
        return 0.0
    return conditions.epoch(last) + (KUBELET_LAG if last > made else 0.0)
