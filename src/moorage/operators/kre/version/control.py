"""What moorage does for a RuntimeVersion, step by step. Pure: read top to bottom.

First what holds whether it is to run or not; then how it starts, or, with `spec.running: false`, how it stops
(`stopping`). Nothing is made before the graph is sound, and nothing comes in before all that should hear it is there:
NATS keeps a message for those alone who have a consumer by then. What a change leaves behind goes last, when nobody
uses it any more.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import msgspec

from moorage.children import objects, readiness
from moorage.operators import steps
from moorage.operators.kre import kinds
from moorage.operators.kre.reasons import VersionReason as Reason
from moorage.runtime import decision, freshness
from moorage.runtime.decision import DONE, Act, Blocked, Verdict, Wait

from . import stopping, streams
from .observation import NatsSeen, ObjectsSeen, Seen

MINUTE = 60.0
MADE_TOGETHER = MINUTE
"""Within which what is applied together is all there."""

START_WITHIN = 10 * MINUTE
ENDING_WITHIN = 3 * MINUTE
"""Seconds that pods get to end, of which they have at most one minute from the kubelet."""


def namespace_is_allowed(seen: Seen) -> Verdict:
    """Where Runtimes may be."""
    if seen.allowed:
        return DONE
    said = f"namespace {seen.meta.namespace} may hold no Runtime, and so no version of one"
    return Blocked(Reason.NAMESPACE_NOT_ALLOWED, said, Reason.NAMESPACE_NOT_ALLOWED.next)


def finalizer_is_set(seen: Seen) -> Verdict:
    """Before the first outside effect."""
    why = "streams and stores may not be left behind when it is deleted"
    return steps.finalizer_is_set(seen.meta, kinds.VERSION_FINALIZER, Reason.TAKING_CARE, why)


def retry_is_honoured(seen: Seen) -> Verdict:
    """A new value of moorage.dev/reconcile-at asks for a fresh look."""
    return steps.retry_is_honoured(seen.meta, seen.status, Reason.RETRYING, "it is looked at afresh, as was asked for")


def runtime_is_clear(seen: Seen) -> Verdict:
    """The named Runtime, or the only one in the namespace; and always the one that it was made in."""
    if isinstance(seen.runtimes, freshness.Failed):
        return decision.unknown(Reason.RUNTIME_NOT_FOUND, seen.runtimes, "runtime")
    found = seen.runtimes.value
    if len(found) > 1:
        several = steps.some(each.name for each in found)
        fix = "set spec.runtimeRef.name"
        return Blocked(Reason.AMBIGUOUS_RUNTIME, f"there are several Runtimes in this namespace: {several}", fix)
    if not found:
        return _no_runtime(seen)
    if seen.status.made and seen.status.runtime not in ("", found[0].name):
        said = f"it was made in Runtime {seen.status.runtime}, and now means Runtime {found[0].name}"
        return Blocked(Reason.MADE_ELSEWHERE, said, "make a new RuntimeVersion for the other, and delete this one")
    return DONE


def _no_runtime(seen: Seen) -> Wait:
    name = seen.spec.runtime_ref.name if seen.spec.runtime_ref else ""
    there = steps.some(seen.others)
    said = f"there is no Runtime {name}".rstrip() + " in this namespace" + (f", but {there}" if there else "")
    make = f"create Runtime {name}" if name else "create one"
    fix = f"correct spec.runtimeRef.name to {there}, or {make}" if there else make
    return Wait(Reason.RUNTIME_NOT_FOUND, said, on="runtime", within=MADE_TOGETHER, fix=fix)


def name_is_free(seen: Seen) -> Verdict:
    """Of several of one name the oldest has it: all that is made bears that name."""
    if not seen.older:
        return DONE
    said = f"RuntimeVersion {seen.older}, which is older, is version {seen.spec.version} too"
    return Blocked(Reason.VERSION_TAKEN, said, "delete one of the two, or make this one anew with another spec.version")


def graph_is_sound(seen: Seen) -> Verdict:
    """Before anything is made."""
    if seen.spec.too_large:
        return Blocked(Reason.GRAPH_BROKEN, seen.spec.too_large, "split the version")
    errors = seen.spec.told.errors
    if not errors:
        return DONE
    (said, fix), more = errors[0], len(errors) - 1
    return Blocked(Reason.GRAPH_BROKEN, f"{said}; and {more} more" if more else said, fix)


# --- steps of a version that is to run --------------------------------------------------------------------------------


def to_run(step: Callable[[Seen], Verdict]) -> Callable[[Seen], Verdict]:
    """A step that is none of a version that is to stand still."""

    @functools.wraps(step)
    def stepped(seen: Seen) -> Verdict:
        return step(seen) if seen.spec.running else DONE

    return stepped


@to_run
def runtime_is_ready(seen: Seen) -> Verdict:
    """All that a version needs is the Runtime's; one that runs already is not held up by it."""
    runtime = seen.runtime
    if runtime is not None and not runtime.deleting and (runtime.ready or seen.status.made):
        return DONE
    name = runtime.name if runtime else ""
    why = "is being deleted" if runtime and runtime.deleting else "is not Ready"
    return Wait(Reason.RUNTIME_NOT_READY, f"Runtime {name} {why}", on="runtime", within=30 * MINUTE)


@to_run
def config_is_complete(seen: Seen) -> Verdict:
    """Each key has a value."""
    if isinstance(seen.inputs, freshness.Failed):
        return decision.unknown(Reason.CONFIG_UNKNOWN, seen.inputs, "inputs")
    missing = seen.inputs.value.missing
    if not missing:
        return DONE
    said = steps.some(f"config key {name} has no value{f': {why}' if why else ''}" for name, why in missing.items())
    return Blocked(Reason.CONFIG_MISSING, said, "give each a value in spec.config, or make what its valueFrom names")


@to_run
def files_are_there(seen: Seen) -> Verdict:
    """Those of the nodes, and the description of the service."""
    files = seen.spec.files
    if files is not None and files.object is not None and not seen.fetcher:
        said = "spec.files names an object of the Runtime's store, and moorage has no image that brings it to nodes"
        fix = "have moorage's administrator set systems.kre.versions.images.fetcher, or take another of spec.files"
        return Blocked(Reason.FILES_WRONG, said, fix)
    given = freshness.value_of(seen.inputs)
    if given is None:
        return DONE
    if wrong := given.files or given.proto:
        field = "spec.files.configMapRef" if given.files else "spec.entrypoint.proto.configMapRef"
        return Blocked(Reason.FILES_WRONG, wrong, f"make it, or correct {field}")
    return DONE


@to_run
def credentials_are_there(seen: Seen) -> Verdict:
    """By which the version's containers reach mongo."""
    given = freshness.value_of(seen.inputs)
    if given is None or not given.secret:
        return DONE
    return Wait(Reason.CREDENTIALS_WRONG, given.secret, on="inputs", within=5 * MINUTE)


@to_run
def nothing_is_foreign(seen: Seen) -> Verdict:
    """What bears a name that is needed, and no mark of this version, is left alone."""
    if isinstance(seen.nats, freshness.Failed):
        return decision.unknown(Reason.NATS_UNREACHABLE, seen.nats, "nats")
    there = seen.nats.value.streams
    foreign = [each.id for each in seen.wanted if each.name in there and there[each.name].mark != seen.meta.name]
    if not foreign:
        return DONE
    said = f"NATS has {steps.some(foreign)}, which moorage did not make for this version"
    return Blocked(Reason.FOREIGN_STREAM, said, "remove it in NATS if nobody needs it, or take another spec.version")


@to_run
def nats_has_all(seen: Seen) -> Verdict:
    """Streams with their consumers, object stores and buckets: made, or changed in place, before who uses them."""
    there = freshness.value_of(seen.nats) or NatsSeen()
    calls: list[decision.Call] = []
    what = []
    for each in seen.wanted:
        mine = _missing(each, there)
        calls += mine
        what += [each.id] if mine else []
    if not calls:
        return DONE
    if isinstance(seen.nats, freshness.Stale):
        return _asked_anew(seen.nats.why)
    return Act(Reason.MAKING_STREAMS, f"made in NATS: {steps.some(what)}", (*_note(seen), *calls))


def _missing(each: streams.Wanted, there: NatsSeen) -> list[decision.Call]:
    live, calls = there.streams.get(each.name), []
    config = each.config if live is None else streams.widened(each.config, live)
    wrong = () if live is None else streams.differs(config, live)
    if live is None or wrong:
        why = f"its {', '.join(wrong)} is not as the version says" if wrong else "it is not there"
        args = {"name": each.name, "subjects": config["subjects"]}
        calls.append(decision.Call(why=why, operation="nats.put_stream", args=args))
    known = there.consumers.get(each.name, {})
    for name, consumer in each.consumers.items():
        found = known.get(name)
        if found is None or (found.mark and found.ack_wait != consumer["ack_wait"]):
            args = {"stream": each.name, "name": name}
            calls.append(decision.Call(why="a node reads by it", operation="nats.put_consumer", args=args))
    return calls


def _asked_anew(why: str) -> Wait:
    said = f"what NATS has is asked anew: {why}"
    return Wait(Reason.NATS_UNREACHABLE, said, on="nats", within=2 * MINUTE, unseen=True)


def _note(seen: Seen) -> tuple[decision.Remember, ...]:
    """That something is made there is written down first, so that a deletion looks for it."""
    if seen.status.made or seen.runtime is None:
        return ()
    fields = {"made": True, "runtime": seen.runtime.name}
    return (decision.Remember(why="from here on something of it is in NATS", fields=fields),)


def _objects(seen: Seen) -> ObjectsSeen:
    return freshness.value_of(seen.objects) or ObjectsSeen()


@to_run
def objects_are_right(seen: Seen) -> Verdict:
    """What is missing or differs is applied; the entrance last, when all that it leads to is meant."""
    children = _objects(seen).children
    if children is None:
        return Wait(Reason.OBJECTS_UNKNOWN, "what is to be made is not known yet", on="inputs", within=2 * MINUTE)
    if (wrong := objects.are_right(children, Reason.APPLYING)) is not DONE:
        return wrong
    return objects.have_ended(children, Reason.APPLYING)


@to_run
def calls_are_led(seen: Seen) -> Verdict:
    """Of what is published the Service leads here, by one write, once all is ready; of what is not it leads away.

    One that led here already is put right whatever nodes do, unless another version stands in.
    """
    active = seen.active
    if not (seen.published or seen.stands_in):
        runtime = seen.runtime
        return stopping.unpublished(seen) if seen.serving and runtime and not runtime.published else DONE
    if active.wanted is None or seen.yields:
        return DONE
    if not (seen.whole or seen.serving or seen.status.published):
        return DONE
    pair = ((active.wanted, active.child),)
    if (wrong := objects.are_right(pair, Reason.PUBLISHING)) is not DONE:
        return wrong
    return objects.have_ended(pair, Reason.SERVICE_ENDING)


@to_run
def nodes_are_ready(seen: Seen) -> Verdict:
    """All of them and the entrypoint; the one that most needs someone's doing is told with its own words."""
    verdict = readiness.are_ready(_objects(seen).nodes, within=START_WITHIN)
    if not isinstance(verdict, Wait):
        return verdict
    fix = "correct what the message says; what runs is left for a look, and spec.running=false stops it"
    return msgspec.structs.replace(verdict, fix=fix)


@to_run
def surplus_leaves(seen: Seen) -> Verdict:
    """A node that left the version takes its Deployment along, then its consumers, then its subjects.

    It stays as long as pods from before run: what they have begun, an entrypoint's calls too, takes its way through it.
    """
    surplus = _objects(seen).surplus
    former = [str(each) for each in _objects(seen).nodes if each.former]
    if former and any(not each.deleting for each in surplus):
        said = f"{steps.some(each.id for each in surplus)}: needed by pods of before, of {steps.some(former)}"
        return Wait(Reason.NODE_LEAVING, said, on="pods", within=ENDING_WITHIN, fix="see why these pods do not end")
    if (leaving := stopping.leave(seen, surplus, Reason.NODE_LEAVING, "the version no longer has it")) is not DONE:
        return leaving
    calls, what = _left_in_nats(seen)
    if not calls:
        return DONE
    if isinstance(seen.nats, freshness.Stale):
        return _asked_anew(seen.nats.why)
    return Act(Reason.NODE_LEAVING, f"no longer asked for in NATS: {steps.some(what)}", tuple(calls))


def _left_in_nats(seen: Seen) -> tuple[list[decision.Call], list[str]]:
    there = freshness.value_of(seen.nats) or NatsSeen()
    wanted = {each.name: each for each in seen.wanted}
    calls, what = [], []
    for each in wanted.values():
        for name, consumer in there.consumers.get(each.name, {}).items():
            if name not in each.consumers and consumer.mark == seen.meta.name:
                args = {"stream": each.name, "name": name}
                calls.append(decision.Call(why="nobody reads by it", operation="nats.drop_consumer", args=args))
                what.append(f"consumer {name}")
    for name, live in seen.mine.items():
        if name in wanted and live.subjects > frozenset(wanted[name].config["subjects"]):
            args = {"name": name, "subjects": wanted[name].config["subjects"]}
            calls.append(decision.Call(why="nobody writes there", operation="nats.put_stream", args=args))
            what.append(f"subjects of {wanted[name].id}")
        elif name not in wanted and streams.kind_of(name)[0] == streams.STREAM:  # stores keep what nodes left in them
            calls.append(decision.Call(why="no node uses it", operation="nats.drop_stream", args={"name": name}))
            what.append(f"stream {name}")
    return calls, what


STEPS: tuple[Callable[[Seen], Verdict], ...] = (
    namespace_is_allowed,
    finalizer_is_set,
    retry_is_honoured,
    runtime_is_clear,
    name_is_free,
    graph_is_sound,
    stopping.rights_are_bound,
    stopping.objects_are_known,
    stopping.what_was_made_is_noted,
    *stopping.STEPS,
    runtime_is_ready,
    config_is_complete,
    files_are_there,
    credentials_are_there,
    nothing_is_foreign,
    nats_has_all,
    objects_are_right,
    calls_are_led,
    nodes_are_ready,
    surplus_leaves,
)

DELETION_STEPS = stopping.DELETION_STEPS
