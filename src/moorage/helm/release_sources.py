"""The sources of a helm engine: charts, renders, records, secrets' drift, leftovers, kinds and log lines.

Each is fetched off the workers' path, under a deadline, by a key that names exactly what was asked; see
`runtime.source`. They write nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from moorage.api import builtin, comparison, conditions, meta
from moorage.children import object_events
from moorage.kube import client as kube_client
from moorage.kube import discovery, errors
from moorage.runtime import freshness, source

from . import observation
from .charts import resolver, values
from .charts.chart_archive import Contents
from .parsing import aside, helm_yaml, jobs
from .reasons import Reason
from .release import drift, manifest, records
from .runs import binary, failures, redaction

T = TypeVar("T")

RENDERS = 3  # helm processes at a time that render, one for each tenant
CAPABILITIES_EVERY = 300.0
LEFTOVERS_EVERY = 2.0
ABSENCE_EVERY = 30.0
UNSERVED_EVERY = 15.0
AROUND_EVERY = 30.0
EVENTS_AT_ONCE, MAX_EVENTS = 100, 1000  # of one namespace; of more, the rest is not looked at
RIGHTS_EVERY = 60.0
BOUND_WITHIN = (0.0, 0.5, 1.0, 2.0)
"""Seconds between looks until what was bound just now must be known to all."""


class SecretView(msgspec.Struct, frozen=True):
    """A Secret with its data, read live and never cached."""

    metadata: meta.ObjectMeta
    data: dict[str, str] = {}


class Loaded(msgspec.Struct, frozen=True):
    """A release record with its objects. They stay here, with what may be secret of them and of the values."""

    seen: observation.RecordSeen
    objects: dict[meta.ObjectRef, dict[str, Any]]
    secrets: redaction.Secrets = {}

    @property
    def names(self) -> frozenset[str]:
        """By which words say what they are about."""
        return frozenset(ref.name for ref in self.objects)


class AtHand(msgspec.Struct, frozen=True):
    """A chart in the local cache, with what must be known of its content."""

    chart: observation.ChartSeen
    archive: Path
    contents: Contents


@dataclasses.dataclass(frozen=True)
class RenderKey:
    """What is rendered. Two keys are equal when their digests are; values and archive only travel along."""

    chart: str
    values_digest: str
    target: observation.Target
    capabilities: str
    values: Mapping[str, Any] = dataclasses.field(compare=False, repr=False)
    archive: Path = dataclasses.field(compare=False)
    reads_capabilities: bool = dataclasses.field(compare=False)
    is_upgrade: bool = False  # only where a template may ask for it


@dataclasses.dataclass(frozen=True)
class RecordKey:
    """One state of one release record."""

    namespace: str
    secret: str
    resource_version: str
    installed: bool = True  # a revision of the release was deployed


@dataclasses.dataclass(frozen=True)
class DriftKey:
    """One state of one object, to be compared with one state of its record."""

    ref: meta.ObjectRef
    resource: meta.Resource
    resource_version: str  # as the watch has it; empty when it has none
    record: RecordKey
    since: float  # when the record's revision was deployed, in epoch seconds
    wanted: dict[str, Any] = dataclasses.field(compare=False, repr=False)


@dataclasses.dataclass(frozen=True)
class CompareKey:
    """One state of one object as the watch has it, to be compared with one state of its record."""

    ref: meta.ObjectRef
    resource_version: str
    record: RecordKey
    wanted: dict[str, Any] = dataclasses.field(compare=False, repr=False)
    live: dict[str, Any] = dataclasses.field(compare=False, repr=False)


@dataclasses.dataclass(frozen=True)
class RightsKey:
    """What helm must be able to make in a namespace."""

    namespace: str
    resources: tuple[meta.Resource, ...]


@dataclasses.dataclass(frozen=True)
class LeftoverKey:
    """Objects of a release that should be gone."""

    target: observation.Target
    items: tuple[manifest.InventoryItem, ...]
    since: str  # creation of the claim (RFC 3339): what is older was not made by the release


class Around(msgspec.Struct, frozen=True):
    """What is around the objects of a namespace and says why they are not ready: warnings, and claims."""

    events: tuple[dict[str, Any], ...] = ()
    claims: tuple[dict[str, Any], ...] = ()


STILL_THERE = freshness.Failed("StillThere", "the object is there, though the watch does not have it")
"""What `removed` says of an object that has not gone."""


class Lookups:
    """All sources of one engine."""

    def __init__(
        self,
        client: kube_client.Client,
        served: discovery.Discovery,
        helm: binary.Helm,
        store: resolver.Charts,
        chart_source: Callable[[str], Awaitable[resolver.ChartSource]],
        enqueue: Callable[[Hashable], None],
        user: Callable[[str], str],
        work: aside.Aside,
        place: Callable[[str], str] = str,
    ) -> None:
        """`place` says in words what the name of a chart's source stands for."""
        self._client, self._helm, self._store, self._chart_source = client, helm, store, chart_source
        self._user = user
        self._aside = work
        self._discovery = served
        self._asking = asyncio.Lock()
        self._asked: tuple[float, binary.Capabilities] | None = None
        self.chosen = source.Source(
            "chart",
            self._choose,
            enqueue,
            deadline=120,
            group=lambda wanted: wanted.source,
            place=lambda wanted: place(wanted.source),
        )
        self.pinned = source.Source(
            "chart", self._fetch, enqueue, deadline=120, group=lambda key: key[0], place=lambda key: place(key[0])
        )
        self.rendered = source.Source(
            "render",
            self._render,
            enqueue,
            deadline=60,
            concurrency=1,
            group=lambda key: key.target.namespace,
            together=RENDERS,
            every=self._rendered_again,
        )
        self.records = source.Source(
            "record", self._record, enqueue, concurrency=2, group=lambda key: key.namespace, together=8
        )
        self.drift = source.Source("object", self._drift, enqueue, group=_namespace, together=8)
        self.unseen = source.Source("object", self._unseen, enqueue, every=ABSENCE_EVERY, group=_namespace, together=8)
        self.compared = source.Source("comparison", self._compare, enqueue, group=lambda key: key.ref.namespace)
        self.removed = source.Source("object", self._removed, enqueue, group=_namespace, together=8)
        self.around = source.Source(
            "events",
            self._around,
            enqueue,
            every=AROUND_EVERY,
            concurrency=1,
            group=lambda namespace: namespace,
            together=4,
        )
        self.leftovers = source.Source("leftovers", self._leftovers, enqueue, every=LEFTOVERS_EVERY)
        self.kinds = source.Source("kind", self._kind, enqueue, backoff=(1.0, 30.0))
        self.capabilities = source.Source("capabilities", self._capabilities, enqueue, every=CAPABILITIES_EVERY)
        self.rights = source.Source("rights", self._missing_rules, enqueue, every=self._asked_again)
        self.last_words = source.Source("log", self._last_words, enqueue)

    @property
    def all(self) -> tuple[source.Source[Any, Any], ...]:
        """Every source, for forgetting and stopping."""
        return (
            self.chosen,
            self.pinned,
            self.rendered,
            self.records,
            self.drift,
            self.unseen,
            self.compared,
            self.removed,
            self.around,
            self.leftovers,
            self.kinds,
            self.capabilities,
            self.rights,
            self.last_words,
        )

    def _within(self, namespace: str) -> kube_client.Client:
        """What reads in a release's namespace and nowhere else, wherever a record or a claim may point to."""
        return self._client.as_(self._user(namespace))

    # --- charts ----------------------------------------------------------------------------------

    async def _choose(self, wanted: observation.Wanted) -> AtHand:
        try:
            where = await self._chart_source(wanted.source)
            return _at_hand(await self._store.resolve(where, wanted.name, wanted.constraint, self._needed()))
        except resolver.ChartError as error:
            raise _chart_error(error) from error

    async def _fetch(self, key: tuple[str, observation.ChartSeen]) -> AtHand:
        where, pinned = key
        try:
            place = await self._chart_source(where)
            return _at_hand(await self._store.fetch(place, pinned.name, pinned.version, pinned.digest, self._needed()))
        except resolver.ChartError as error:
            raise _chart_error(error) from error

    def _needed(self) -> frozenset[str]:
        """Charts that somebody has at hand, and so may give to helm at any time."""
        return frozenset(it.chart.digest for each in (self.chosen, self.pinned) for it in each.known())

    # --- renders ---------------------------------------------------------------------------------

    async def _render(self, key: RenderKey) -> observation.RenderSeen:
        found = await self._read_render(key)
        parsed = found.manifest
        kinds_of = await self._kinds_of(parsed)
        hooks = tuple(hook.object for hook in parsed.hooks)
        unserved = {asked: await self._others(*asked) for asked, resource in kinds_of.items() if resource is None}
        problems = manifest.problems(
            (*parsed.objects, *hooks),
            key.target.namespace,
            _scopes(kinds_of),
            lambda api_version, kind: unserved.get((api_version, kind), ()),
        )
        inventory = manifest.inventory(parsed.objects, parsed.hooks, key.target.namespace, _scopes(kinds_of))
        return observation.RenderSeen(
            await self._digest(key, found),
            () if problems else inventory,
            problems,
            tuple(sorted({resource for resource in kinds_of.values() if resource is not None})),
        )

    async def _digest(self, key: RenderKey, found: jobs.Rendered) -> str:
        """The same for an install and the upgrades after it: what was released is not released again for that."""
        parts = [key.chart, key.values_digest, key.target.namespace, key.target.release]
        if key.reads_capabilities:
            of_install = dataclasses.replace(key, is_upgrade=False)
            first = await self._read_render(of_install) if key.is_upgrade else found
            if (await self._read_render(of_install)).digest == first.digest:
                parts.append(first.digest)
        return values.digest(parts).removeprefix("sha256:")[:40]

    async def _read_render(self, key: RenderKey) -> jobs.Rendered:
        text = await self._template(key)
        try:
            return await self._work(key.target.namespace, jobs.rendered, text)
        except (manifest.ManifestError, helm_yaml.TooLarge) as error:
            raise source.SourceError(Reason.RENDER_FAILED, str(error), transient=False) from error

    def _rendered_again(self, key: RenderKey) -> float | None:
        found = freshness.value_of(self.rendered.peek(key))
        return UNSERVED_EVERY if found is not None and found.passing else None

    async def _template(self, key: RenderKey) -> str:
        read = key.reads_capabilities
        capabilities = await (self._capabilities("") if read else self._capabilities_lately())
        try:
            return await self._helm.template(
                key.archive,
                key.values,
                key.target.release,
                key.target.namespace,
                capabilities,
                is_upgrade=key.is_upgrade,
            )
        except binary.HelmFailed as error:
            reason, transient = _RENDER_REASONS.get(error.kind, (error.kind, error.kind.transient))
            raise source.SourceError(reason, str(error), transient=transient) from error

    async def _capabilities(self, _: str) -> binary.Capabilities:
        found = await self._discovery.capabilities()
        return binary.Capabilities(found.version, tuple(found.api_versions))

    async def _capabilities_lately(self) -> binary.Capabilities:
        """As they were within CAPABILITIES_EVERY: for a chart that reads none, and has only its `kubeVersion` judged.

        Many releases that are rendered at once ask together.
        """
        async with self._asking:
            if self._asked is None or time.monotonic() - self._asked[0] >= CAPABILITIES_EVERY:
                self._asked = time.monotonic(), await self._capabilities("")
            return self._asked[1]

    async def _kinds_of(self, parsed: manifest.Manifest) -> dict[tuple[str, str], meta.Resource | None]:
        """How each kind of the manifest is served, asked of the API server beforehand; None where it is not."""
        known: dict[tuple[str, str], meta.Resource | None] = {}
        for body in (*parsed.objects, *(hook.object for hook in parsed.hooks)):
            asked = str(body.get("apiVersion", "")), str(body.get("kind", ""))
            if asked not in known:
                known[asked] = await self._resource(*asked)
        return known

    async def _resource(self, api_version: str, kind: str) -> meta.Resource | None:
        try:
            return await self._discovery.resource(api_version, kind)
        except errors.NotFound:
            return None

    async def _others(self, api_version: str, kind: str) -> tuple[str, ...]:
        """In which other versions the kind is served."""
        versions = await self._discovery.versions(api_version.rpartition("/")[0])
        return tuple([other for other in versions if await self._resource(other, kind) is not None])

    async def _kind(self, key: tuple[str, str]) -> meta.Resource:
        """How recorded objects can be reached: their version may have gone, and so may the whole kind."""
        api_version, kind = key
        self._discovery.invalidate(api_version.rpartition("/")[0])
        try:
            return await self._discovery.served(api_version, kind)
        except errors.NotFound as error:
            message = f"the cluster no longer serves {kind} in {api_version}, nor in any other version"
            raise source.SourceError(failures.FailureKind.UNKNOWN_KIND, message, transient=False) from error

    # --- rights ----------------------------------------------------------------------------------

    async def _missing_rules(self, key: RightsKey) -> tuple[str, ...]:
        """The rules without which helm fails; looked at some times, as a binding made just now counts a bit later."""
        missing: tuple[str, ...] = ()
        for pause in BOUND_WITHIN:
            await asyncio.sleep(pause)
            missing = await self._missing(key)
            if not missing:
                break
        return missing

    async def _missing(self, key: RightsKey) -> tuple[str, ...]:
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectRulesReview",
            "spec": {"namespace": key.namespace},
        }
        told = (await self._within(key.namespace).review(review)).get("status") or {}
        if told.get("incomplete"):
            return ()  # an authorizer that doesn't list its rules; helm's own words will do
        rules = told.get("resourceRules") or ()
        lacking = sorted({(r.group, r.plural) for r in key.resources if not _may(rules, r.group, r.plural)})
        return tuple(failures.rule(group, plural) for group, plural in lacking)

    def _asked_again(self, key: RightsKey) -> float | None:
        return RIGHTS_EVERY if freshness.value_of(self.rights.peek(key)) else None

    # --- records and live objects ----------------------------------------------------------------

    async def _record(self, key: RecordKey) -> Loaded:
        secret = await self._within(key.namespace).get(builtin.SECRET, key.namespace, key.secret, as_=SecretView)
        try:
            revision = records.Revision.from_metadata(secret.metadata)
            kept = await self._work(key.namespace, jobs.record, secret.data.get("release", ""))
        except (records.RecordError, manifest.ManifestError, helm_yaml.TooLarge) as error:
            message = f"release record {key.secret} in namespace {key.namespace} can't be read: {error}"
            raise source.SourceError(Reason.RECORD_BROKEN, message, transient=False) from error
        record, parsed = kept.record, kept.manifest
        is_namespaced = _scopes(await self._kinds_of(parsed))
        objects = {manifest.ref(body, key.namespace, is_namespaced): body for body in parsed.objects}
        named = manifest.inventory(parsed.objects, parsed.hooks, key.namespace, is_namespaced)
        outside = tuple(str(item.ref) for item in named if not _is_inside(item.ref, key.namespace))
        failed = record.status == "failed"
        told = observation.RecordSeen(
            secret=key.secret,
            uid=secret.metadata.uid,
            resource_version=secret.metadata.resource_version,
            revision=record.revision,
            status=record.status,
            description=failures.shorten(kept.said),
            digest=revision.labels.get(observation.DIGEST_LABEL, ""),
            attempt=revision.labels.get(observation.ATTEMPT_LABEL, ""),
            # a later one is of a clock that is wrong, or of somebody who wrote it: nothing is to wait for it
            updated=min(time.time(), conditions.epoch(record.last_deployed) if record.last_deployed else 0.0),
            modified=min(time.time(), _modified(secret.metadata)),
            inventory=tuple(item for item in named if _is_inside(item.ref, key.namespace)),
            outside=outside,
            failure=failures.classify(record.description, key.namespace).word if failed else "",
            installed=key.installed,
        )
        return Loaded(
            told, {ref: body for ref, body in objects.items() if _is_inside(ref, key.namespace)}, kept.secrets
        )

    async def _drift(self, key: DriftKey) -> tuple[str, ...]:
        """By a live read: the watch may not have seen yet what helm wrote, and shows no Secret's data at all."""
        try:
            live = await self._within(key.record.namespace).get(key.resource, key.ref.namespace, key.ref.name)
        except errors.NotFound as error:  # the watch will tell of it; if it does not, this was no answer to stay with
            raise source.SourceError("NotFound", f"{key.ref} is not there, though the watch has it") from error
        return await self._differing(key, live)

    async def _unseen(self, key: DriftKey) -> tuple[str, ...]:
        """What is wrong with an object that the watch doesn't have: it is gone, or has lost the label it is seen by."""
        try:
            live = await self._within(key.record.namespace).get(key.resource, key.ref.namespace, key.ref.name)
        except errors.NotFound:
            return (comparison.THE_OBJECT,)
        return await self._differing(key, live)

    async def _compare(self, key: CompareKey) -> tuple[str, ...]:
        """As the watch has it."""
        return await self._differing(key, key.live)

    async def _differing(self, key: DriftKey | CompareKey, live: dict[str, Any]) -> tuple[str, ...]:
        try:
            return await self._work(key.ref.namespace, jobs.differing, key.wanted, live, ())
        except helm_yaml.TooLarge as error:
            raise source.SourceError("TooLarge", f"{key.ref} can't be compared: {error}", transient=False) from error

    async def _work(self, owner: str, job: Callable[..., T], *args: Any) -> T:
        try:
            return await self._aside.run(owner, job, *args)
        except aside.AsideError as error:
            raise source.SourceError("Unavailable", str(error)) from error

    async def _removed(self, key: DriftKey) -> str:
        """Of a Job that goes when it has ended: it is gone by a live read. Why it failed, if that is still told."""
        client = self._within(key.record.namespace)
        try:
            await client.get(key.resource, key.ref.namespace, key.ref.name, as_=meta.Partial, metadata_only=True)
        except errors.NotFound:
            job = {"kind": "Job", "metadata": {"name": key.ref.name}}
            said = object_events.about(job, await self._warnings(client, key.ref.namespace), *_JOB_FAILED)
            since = conditions.timestamp(key.since)
            return next((object_events.words(event) for event in said if object_events.when(event) >= since), "")
        raise source.SourceError(STILL_THERE.reason, STILL_THERE.message)

    async def _around(self, namespace: str) -> Around:
        """Once per namespace, while something there is not ready."""
        client = self._within(namespace)
        events = await self._warnings(client, namespace)
        claims: list[dict[str, Any]] = []
        with contextlib.suppress(errors.Forbidden):
            claims = (await client.list(builtin.VOLUME_CLAIM, namespace)).items
        return Around(events, tuple(claims))

    @staticmethod
    async def _warnings(client: kube_client.Client, namespace: str) -> tuple[dict[str, Any], ...]:
        found: list[dict[str, Any]] = []
        with contextlib.suppress(errors.Forbidden):
            async for page in client.pages(builtin.EVENT, namespace, fields="type=Warning", limit=EVENTS_AT_ONCE):
                if page.first:
                    found.clear()
                found.extend(page.items)
                if len(found) >= MAX_EVENTS:
                    break
        return tuple(found)

    async def _leftovers(self, key: LeftoverKey) -> tuple[observation.Leftover, ...]:
        found: list[observation.Leftover] = []
        for item in key.items:
            try:
                self._discovery.invalidate(item.ref.group)  # what can't be reached by an old version is not gone
                resource = await self._discovery.served(item.ref.api_version, item.ref.kind)
                live = await self._within(key.target.namespace).get(
                    resource, item.ref.namespace, item.ref.name, as_=meta.Partial, metadata_only=True
                )
            except errors.NotFound:
                continue  # the object, or its whole kind, is gone
            except errors.Forbidden as error:
                raise _refused(error, key.target.namespace) from error
            if _belongs(live.metadata, item, key):
                ref = msgspec.structs.replace(item.ref, uid=live.metadata.uid)
                found.append(_left(live.metadata, ref, resource))
        return tuple(found)

    async def _last_words(self, key: tuple[str, str, str, int]) -> str:
        """A log that the kubelet is just rotating, or has not opened yet, is asked for again."""
        namespace, pod, container, _restarts = key
        for previous in (True, False):
            try:
                text = await self._within(namespace).logs(
                    namespace, pod, container=container, previous=previous, tail=1
                )
            except errors.ApiError:
                continue
            if text.strip() and not text.startswith(_NO_LOG):
                return text.strip().splitlines()[-1][:500]
        raise source.SourceError("NoLog", f"container {container} of pod {pod} has left no log yet")


def _at_hand(found: resolver.Chart) -> AtHand:
    return AtHand(observation.ChartSeen(found.name, found.version, found.digest), found.archive, found.contents)


def _namespace(key: DriftKey) -> str:
    return key.ref.namespace


_JOB_FAILED = ("BackoffLimitExceeded", "DeadlineExceeded", "PodFailurePolicy", "FailedIndexes")
"""The reasons of events by which the Job controller says that a Job has failed."""


def _scopes(kinds_of: dict[tuple[str, str], meta.Resource | None]) -> manifest.IsNamespaced:
    """Whether each of the kinds is namespaced."""

    def is_namespaced(api_version: str, kind: str) -> bool | None:
        found = kinds_of.get((api_version, kind))
        return found.namespaced if found is not None else None

    return is_namespaced


def _may(rules: Iterable[Mapping[str, Any]], group: str, plural: str) -> bool:
    """Whether the rules of an account let it do with all objects of a resource what helm does."""
    lacking = set(_HELM_VERBS)
    for rule in rules:
        groups, resources = rule.get("apiGroups") or (), rule.get("resources") or ()
        if {group, "*"} & set(groups) and {plural, "*"} & set(resources) and not rule.get("resourceNames"):
            verbs = set(rule.get("verbs") or ())
            lacking -= lacking if "*" in verbs else verbs
    return not lacking


_HELM_VERBS = ("get", "list", "watch", "create", "patch", "delete")
_NO_LOG = ("unable to retrieve container logs", "failed to try resolving symlinks")
"""What the kubelet writes in place of a log that is not there, with status 200."""


def _is_inside(ref: meta.ObjectRef, namespace: str) -> bool:
    """What a record names beyond its namespace is not believed: who may write Secrets there could have put it in."""
    return ref.namespace == namespace


def _modified(metadata: meta.ObjectMeta) -> float:
    """Helm's own time of its last write, in epoch seconds."""
    text = metadata.labels.get("modifiedAt") or metadata.labels.get("createdAt") or "0"
    return float(text) if text.isdecimal() else 0.0


def _left(live: meta.ObjectMeta, ref: meta.ObjectRef, resource: meta.Resource) -> observation.Leftover:
    ending = live.deletion_timestamp or ""
    return observation.Leftover(
        ref, resource, live.resource_version, live.deleting, ending, live.finalizers if ending else ()
    )


def _refused(error: errors.Forbidden, namespace: str) -> source.SourceError:
    """A read for which the account has no rights, and which rule it lacks."""
    refusal = failures.refusal(error.status.message)
    rule = f"; the account has no rights by {refusal.rule}" if refusal is not None else ""
    kind = failures.classify(error.status.message, namespace)
    return source.SourceError(kind, f"{error.status.message}{rule}", transient=False)


def _belongs(live: meta.ObjectMeta, item: manifest.InventoryItem, key: LeftoverKey) -> bool:
    """Positive evidence that the release made it: helm's mark, or for a hook, which has none, its age."""
    marked = live.annotations.get(drift.RELEASE_NAME)
    if marked is not None:
        return marked == key.target.release and live.annotations.get(drift.RELEASE_NAMESPACE) == key.target.namespace
    return item.hook and live.creation_timestamp >= key.since


_RENDER_REASONS: dict[failures.FailureKind, tuple[str, bool]] = {
    failures.FailureKind.SCHEMA_VIOLATION: (Reason.SCHEMA_VIOLATION, False),
    failures.FailureKind.RENDER: (Reason.RENDER_FAILED, False),
    failures.FailureKind.CHART_INVALID: (Reason.CHART_INVALID, False),
    failures.FailureKind.OTHER: (Reason.RENDER_FAILED, False),
}
"""What has another name when rendering; everything else bears its own, and may pass or not as its kind says."""

_CHART_REASONS: tuple[tuple[type[Exception], Reason], ...] = (
    (resolver.ChartNotFound, Reason.CHART_NOT_FOUND),
    (resolver.NoVersionMatches, Reason.CHART_NOT_FOUND),
    (resolver.DigestMismatch, Reason.DIGEST_MISMATCH),
    (resolver.SourceUnreachable, Reason.CHART_UNREACHABLE),
)


def _chart_error(error: resolver.ChartError) -> source.SourceError:
    reason = next((word for of, word in _CHART_REASONS if isinstance(error, of)), Reason.CHART_INVALID)
    return source.SourceError(reason, str(error), transient=reason is Reason.CHART_UNREACHABLE)
