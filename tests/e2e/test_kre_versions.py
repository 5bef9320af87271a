"""KRE versions with running pods: a call returns what both nodes made of it, and so on through a version's life.

What runs in the pods is of `images/kre`: an entrypoint and a runner that do as the product's do, on NATS itself. All
versions but one are applied at once, and what takes long is begun by one test and looked at by a later one: each test
goes on from the end of the one before.
"""

from __future__ import annotations

import collections
import functools
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymongo
import pymongo.errors
import pytest

from . import runtimes, tools, versions

ACTIVE = "demo-active-entrypoint"
PUBLISHED = f"{ACTIVE}:9000"
LOAD = 50 * 60
"""Calls, 50 a second, while what is published is switched there and back twice."""

LATER = "--wait=false"
"""Of a deletion whose end is looked at when all others are gone too."""

BAD = "async def default_handler(ctx, data):\n    raise ValueError('no name')\n"
SLOW = """
import asyncio
from public_input_pb2 import Request, Response

async def default_handler(ctx, data):
    request = Request()
    data.Unpack(request)
    await asyncio.sleep(2)
    await ctx.send_output(Response(message=f"at last, {request.name}"))
"""


@pytest.fixture(scope="module")
def runtime(kre: tools.Cluster) -> Iterator[runtimes.Runtime]:
    """A small Runtime with a host, Ready, and what its nodes run."""
    one = runtimes.Runtime(kre, "kre-versions")
    one.apply(**runtimes.SMALL, domain="kre.example", reclaim="Delete")
    one.kubectl("create", "configmap", "greeter-src", f"--from-file={versions.SOURCES}")
    try:
        one.ready()
        yield one
    finally:
        print(kre.kubectl("get", "runtimes,runtimeversions,deploy,pods,svc,ingress", "-n", one.namespace, "-o", "wide"))
        print(kre.kubectl("get", "events", "-n", one.namespace, "--sort-by=.lastTimestamp", check=False))
        unpublished = ("--type=merge", "-p", '{"spec": {"publishedVersion": ""}}')  # what is published would stay
        kre.kubectl("patch", "runtime", "demo", "-n", one.namespace, *unpublished, check=False)
        kre.kubectl("delete", "runtimeversions", "--all", "-n", one.namespace, tools.HANGS, check=False)
        one.delete()
        kre.kubectl("delete", "namespace", one.namespace, tools.HANGS)


@pytest.fixture(scope="module")
def caller(runtime: runtimes.Runtime) -> versions.Caller:
    """A client."""
    return versions.Caller(runtime)


@pytest.fixture(scope="module")
def applied(runtime: runtimes.Runtime) -> dict[str, versions.Version]:
    """All versions but the one that is pushed, by the version's name: they come up beside one another."""
    own = {path.name: path.read_text() for path in versions.SOURCES.glob("*.py")}
    sources = {"fragile-src": own, "bad-src": own | {"hello.py": BAD}, "slow-src": own | {"hello.py": SLOW}}
    runtime.cluster.apply(*(config_map(runtime, name, files) for name, files in sources.items()))
    made = {}
    for name, version, greeting, files in (
        ("greeter", "greeter-v1", "hello", "greeter-src"),
        ("greeter-two", "greeter-v2", "good day", "greeter-src"),
        *((name, name, "hello", f"{name}-src") for name in ("fragile", "bad", "slow")),
    ):
        made[version] = versions.Version(runtime, name, version)
        made[version].make(greeting, files={"configMapRef": {"name": files}})
    return made


@pytest.fixture(scope="module")
def first(applied: dict[str, versions.Version]) -> versions.Version:
    """The example."""
    return applied["greeter-v1"]


@pytest.fixture(scope="module")
def second(applied: dict[str, versions.Version]) -> versions.Version:
    """Another version beside it."""
    return applied["greeter-v2"]


@pytest.fixture(scope="module")
def fragile(applied: dict[str, versions.Version]) -> versions.Version:
    """One whose files somebody takes away."""
    return applied["fragile"]


@pytest.fixture(scope="module")
def bad(applied: dict[str, versions.Version]) -> versions.Version:
    """One of whose nodes fails at each message."""
    return applied["bad"]


@pytest.fixture(scope="module")
def slow(applied: dict[str, versions.Version]) -> versions.Version:
    """One of whose nodes takes its time."""
    return applied["slow"]


@pytest.fixture(scope="module")
def pushed(runtime: runtimes.Runtime) -> versions.Version:
    """One that is there once it is pushed."""
    return versions.Version(runtime, "pushed", "pushed")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its `.krt` file."""
    return versions.packed(tmp_path_factory.mktemp("krt"), "pushed")


def config_map(runtime: runtimes.Runtime, name: str, files: dict[str, str]) -> dict[str, Any]:
    """Files of nodes."""
    metadata = {"name": name, "namespace": runtime.namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": files}


def backend(runtime: runtimes.Runtime) -> str:
    """Where the Runtime's Ingress leads."""
    rules = runtime.cluster.get("ingress", "kre-entrypoint", "-n", runtime.namespace)["spec"]["rules"]
    return str(rules[0]["http"]["paths"][0]["backend"]["service"]["name"])


def led_to(runtime: runtimes.Runtime) -> str | None:
    """The version that the Service of what is published leads to; None without such a Service."""
    found = runtime.cluster.get("service", ACTIVE, "-n", runtime.namespace)
    return str(found["spec"]["selector"]["version-name"]) if found else None


def broken(calls: list[versions.Call]) -> list[versions.Call]:
    """Those that failed."""
    return [each for each in calls if each.error]


def test_a_call_returns_what_both_nodes_made_of_it(first: versions.Version, caller: versions.Caller) -> None:
    """By the version's own Service, as nothing is published yet."""
    said = first.ready()
    answer = caller.call(first.service)

    assert "hello you! Nice to meet you." == answer.said
    assert "greeter-v1" == answer.version
    assert ("STARTED", 3, 3) == (said["phase"], said["ready"], said["nodeCount"])
    assert {"entrypoint": 1, "friendly": 1, "hello": 2} == {each["name"]: each["ready"] for each in said["nodes"]}
    assert ["demo_greeter-v1_Greet"] == said["streams"]


def test_people_see_it(first: versions.Version) -> None:
    shown = first.cluster.run(
        sys.executable, "-m", "moorage", "status", "runtimeversion/greeter", "-n", first.namespace
    )

    assert "STARTED" in shown
    assert "hello  STARTED  2 of 2" in shown


def test_it_is_published_by_the_runtime(
    runtime: runtimes.Runtime, first: versions.Version, caller: versions.Caller
) -> None:
    """One Service leads to it, and the Runtime's Ingress leads there."""
    assert led_to(runtime) is None
    assert "kre-default-backend" == backend(runtime)
    runtime.edit(publishedVersion="greeter-v1")

    assert first.phase("PUBLISHED")["published"]
    assert ("greeter-v1", "hello you! Nice to meet you.") == (
        (answer := caller.call(PUBLISHED)).version,
        answer.said,
    )
    tools.wait("the Ingress leads there", lambda: backend(runtime) == ACTIVE, within=runtimes.WITHIN)
    runtime.ready()


def test_at_rest_nothing_is_written(
    runtime: runtimes.Runtime, applied: dict[str, versions.Version], account: str
) -> None:
    """Five versions, while all that is looked at by the clock is looked at twice."""
    runtime.ready()
    for each in applied.values():
        each.ready()
    mark = tools.quiet(account, for_seconds=12.0)

    assert [] == tools.told(tools.writes(tools.audit(mark), account))


def test_another_version_takes_over_without_a_call_lost(
    runtime: runtimes.Runtime, first: versions.Version, second: versions.Version, caller: versions.Caller
) -> None:
    """There and back again: who connects gets to what is published now, and who stays connected does by the next one.

    The one calls by a connection for each call; the other's has an age.
    """

    def publish(version: str) -> None:
        runtime.edit(publishedVersion=version)
        told, before = time.monotonic(), len(anew)
        tools.wait(f"{version} answers", lambda: version in {each.version for each in anew[before:]})
        print(f"{version} answers {time.monotonic() - told:.1f} s after it was published")
        several(anew)

    with caller.calling(PUBLISHED, "-anew") as anew, caller.calling(PUBLISHED, rate=20) as staying:
        several(anew)
        several(staying)
        publish("greeter-v2")
        tools.wait("the old connection's age ends", lambda: staying[-1].version == "greeter-v2")
        publish("greeter-v1")
    greetings = {"greeter-v1": "hello you! Nice to meet you.", "greeter-v2": "good day you! Nice to meet you."}

    assert [] == broken(anew + staying)
    assert all(greetings[each.version] == each.said for each in anew + staying)
    assert "greeter-v1" == min(staying, key=lambda it: it.begun).version
    assert ["greeter-v1", "greeter-v2", "greeter-v1"] == turns(anew)
    assert first.phase("PUBLISHED")["published"]
    assert not second.phase("STARTED")["published"]


@pytest.mark.campaign
def test_two_switches_back_and_forth_under_load(
    runtime: runtimes.Runtime, first: versions.Version, second: versions.Version, caller: versions.Caller
) -> None:
    """A minute and more of 50 calls a second by a connection each, and of 20 by one: none fails, each says its version.

    Who connects anew gets to what was published within two seconds.
    """
    runtime.edit(publishedVersion="greeter-v1")
    first.phase("PUBLISHED")
    second.phase("STARTED")
    took = []
    with caller.calling(PUBLISHED, "-anew") as anew, caller.calling(PUBLISHED, rate=20) as staying:
        several(anew)
        for version in ["greeter-v2", "greeter-v1"] * 2:
            runtime.edit(publishedVersion=version)
            told, before = time.time(), len(anew)
            answered = functools.partial(led, anew, before, version)
            tools.wait(f"{version} answers", answered)
            took.append(answered()[0].begun - told)
            several(anew, LOAD // 4)
    share = collections.Counter(each.version for each in anew + staying)
    print(f"{len(anew)} calls by a connection each, {len(staying)} by one: {share}; switched after {took} s")

    assert [] == broken(anew + staying)
    assert {"greeter-v1", "greeter-v2"} == set(share)
    assert ["greeter-v1", "greeter-v2"] * 2 + ["greeter-v1"] == turns(anew)
    assert max(took) < 2


@pytest.mark.campaign
def test_config_changes_under_load_where_each_node_has_two_pods(
    second: versions.Version, caller: versions.Caller
) -> None:
    """No call is lost, and each is answered by the old greeting or the new one."""
    doubled = versions.workflows()
    for node in doubled[0]["nodes"]:
        node["replicas"] = 2
    second.make("good day", workflows=doubled)
    second.ready()
    with caller.calling(second.service, "-anew") as calls:
        several(calls)
        second.make("good night", workflows=doubled)
        second.ready()
        several(calls)
    second.make("good day")
    second.ready()

    assert [] == broken(calls)
    assert {f"{greeting} you! Nice to meet you." for greeting in ("good day", "good night")} == {
        each.said for each in calls
    }
    print(f"{len(calls)} calls, none lost")


def led(calls: list[versions.Call], since: int, version: str) -> list[versions.Call]:
    """Those after the first `since` that this version answered, in the order in which they began."""
    return sorted((each for each in calls[since:] if each.version == version), key=lambda it: it.begun)


def several(calls: list[versions.Call], many: int = 100) -> None:
    """Wait until so many more calls have ended."""
    before = len(calls)
    tools.wait(f"{many} calls are made", lambda: len(calls) >= before + many)


def turns(calls: list[versions.Call]) -> list[str]:
    """Who answered one after another: who connects when a version has answered gets to it, until the next has."""
    found: list[str] = []
    ended = 0.0
    for each in sorted(calls, key=lambda it: it.begun):
        if each.begun > ended and (not found or found[-1] != each.version):
            found.append(each.version)
            ended = each.begun + each.seconds
    return found


def test_a_node_that_fails_is_told_to_the_caller(bad: versions.Version, caller: versions.Caller) -> None:
    """Its words, in place of an answer."""
    bad.ready()
    with caller.calling(bad.service, rate=5) as calls:
        several(calls, 3)

    assert all("node hello failed: ValueError('no name')" in each.error for each in calls)
    bad.delete(LATER)


def test_a_stop_lets_nodes_take_what_is_there(
    runtime: runtimes.Runtime, slow: versions.Version, caller: versions.Caller
) -> None:
    """Whoever called gets the answer; that all is gone then, a test below looks at."""
    slow.ready()
    with caller.calling(slow.service, rate=3) as calls:  # more than its nodes can
        tools.wait("messages wait for a node", lambda: waiting(runtime, slow) > 3)
        told = time.time()
        slow.edit(running=False)
        slow.phase("STOPPING")
    before = [each for each in calls if each.begun < told]

    assert [] == broken(before)
    assert len(before) > 3


def waiting(runtime: runtimes.Runtime, one: versions.Version) -> int:
    """Messages that nodes have not taken, or not answered for."""
    found = runtime.jetstream(f"CONSUMER.LIST.demo_{one.version}_Greet").get("consumers") or ()
    return sum(int(each["num_pending"]) + int(each["num_ack_pending"]) for each in found)


def test_config_changes_and_a_node_joins_and_leaves_without_a_call_lost(
    runtime: runtimes.Runtime, first: versions.Version, caller: versions.Caller
) -> None:
    """In place: pods are replaced, each when the next is ready, and who is to read is there before who writes.

    What nobody uses any more goes last, with its consumer.
    """
    flows = versions.workflows()
    (flow,) = flows
    *_, last = flow["nodes"]
    more = {**last, "name": "again", "subscriptions": ["friendly"]}
    longer = [{**flow, "exitpoint": "again", "nodes": [*flow["nodes"], more]}]
    before = {name for name in runtime.pods() if name.startswith("demo-greeter-v1-")}
    once, twice = "good morning you! Nice to meet you.", "good morning you! Nice to meet you.! Nice to meet you."
    with caller.calling(PUBLISHED, "-anew", rate=25) as calls:
        several(calls, 50)
        first.make("good morning", workflows=longer)
        first.ready()
        tools.wait(twice, lambda: caller.call(PUBLISHED).said == twice)
        replaced = before - set(runtime.pods())
        first.edit(workflows=flows)
        first.ready()
        tools.wait(once, lambda: caller.call(PUBLISHED).said == once)
    known = {said.replace("good morning", greeting) for said in (once, twice) for greeting in ("hello", "good morning")}

    assert [] == broken(calls)
    assert {once.replace("good morning", "hello"), twice, once} <= {each.said for each in calls} <= known
    assert 4 == len(before)
    assert before == replaced
    assert [] == [name for name in first.objects() if "again" in name]
    assert ["friendly", "hello"] == sorted({each.rpartition("-")[2] for each in first.consumers()})


def test_what_has_stopped_has_nothing_left_but_its_buckets(slow: versions.Version) -> None:
    """And it is to run again, which the last test of it looks at."""
    slow.phase("STOPPED")

    assert [] == slow.objects()
    assert [f"KV_key-store_demo_slow{each}" for each in ("", "_greet", "_greet_friendly", "_greet_hello")] == (
        slow.streams()
    )
    slow.edit(running=True)


def test_a_krt_file_becomes_a_version_that_answers(
    runtime: runtimes.Runtime, pushed: versions.Version, archive: Path, caller: versions.Caller
) -> None:
    """Pushed by one command; a second push of the same changes nothing."""
    begun = time.monotonic()
    said = push(runtime, archive, "-c", "GREETING=welcome")

    assert "RuntimeVersion pushed is applied" in said
    assert "welcome you! Nice to meet you." == caller.call(pushed.service).said
    print(f"\n{time.monotonic() - begun:.1f} s from the push to the first answer")
    again = push(runtime, archive)
    assert "is in the store of Runtime demo already" in again
    assert "GREETING is as in pushed" in again
    assert 1 == pushed.ready()["observedGeneration"]
    pushed.edit(files={"object": {"digest": f"sha256:{'0' * 64}"}})


def push(runtime: runtimes.Runtime, file: Path, *more: str) -> str:
    """What `moorage krt push` says."""
    command = (sys.executable, "-m", "moorage", "krt", "push", str(file), "-n", runtime.namespace, *more)
    return runtime.cluster.run(*command)


def test_what_had_stopped_is_as_it_was(slow: versions.Version, caller: versions.Caller) -> None:
    slow.ready()

    assert "at last, you! Nice to meet you." == caller.call(slow.service).said
    slow.delete(LATER)


def test_nats_ends_and_all_goes_on(runtime: runtimes.Runtime, first: versions.Version, caller: versions.Caller) -> None:
    """What is in its streams is on its volume; nodes and entrypoint connect anew by themselves."""
    pods, before = runtime.pods(), first.streams()
    runtime.kubectl("delete", "pod", "kre-nats-0")
    runtime.ready()

    assert "greeter-v1" == caller.call(PUBLISHED).version
    first.ready()
    assert before == first.streams()
    mine = {name: uid for name, uid in pods.items() if name.startswith("demo-greeter-v1-")}
    assert mine.items() <= runtime.pods().items()


def test_a_pod_of_a_node_that_ends_is_made_anew(
    runtime: runtimes.Runtime, first: versions.Version, caller: versions.Caller
) -> None:
    before = runtime.pods()
    gone = next(name for name in before if "-friendly-" in name and name.startswith("demo-greeter-v1-"))
    runtime.kubectl("delete", "pod", gone)
    first.ready()

    assert "good morning you! Nice to meet you." == caller.call(PUBLISHED).said
    assert gone not in runtime.pods()


def test_passwords_change_at_their_servers_first(
    runtime: runtimes.Runtime, first: versions.Version, caller: versions.Caller
) -> None:
    """By one write of the Secret: mongo and MinIO take the new ones and no others, and then nodes are given them."""
    before, pods = runtime.credentials(), runtime.pods()
    changed = {"mongoPassword": "of-this-day", "minioSecretKey": "of-this-day"}
    runtime.kubectl("patch", "secret", "kre-credentials", "-p", json.dumps({"stringData": changed}))

    tools.wait("they are in use", lambda: changed.items() <= runtime.in_use().items(), within=runtimes.WITHIN)
    with runtime.mongo() as mongo:
        assert 1 == mongo.admin.command("ping")["ok"]
    with pytest.raises(pymongo.errors.OperationFailure), runtime.mongo(before) as mongo:
        mongo.admin.command("ping")
    tools.wait(
        "MinIO is another pod, and so is a node",
        lambda: (
            not pods.items() & {it for it in runtime.pods().items() if it[0] == "kre-minio-0"}
            and "of-this-day" in first.mongo_uri()
        ),
        within=runtimes.WITHIN,
    )
    runtime.ready()
    first.ready()
    after = runtime.pods()
    assert pods["kre-mongo-0"] == after["kre-mongo-0"]
    assert not [name for name in pods if name.startswith("demo-greeter-v1-") and name in after]
    assert "good morning you! Nice to meet you." == caller.call(PUBLISHED).said


def test_nodes_get_the_archive_that_is_meant_or_do_not_start(
    runtime: runtimes.Runtime, pushed: versions.Version, archive: Path, caller: versions.Caller
) -> None:
    """The one before answers meanwhile; another push puts it right."""
    tools.wait("nodes tell of the archive", lambda: wrong_archive(pushed), within=runtimes.WITHIN)
    pushed.phase("ERROR")

    assert "welcome you! Nice to meet you." == caller.call(pushed.service).said
    push(runtime, archive)
    pushed.ready()
    pushed.delete(LATER)


def wrong_archive(one: versions.Version) -> bool:
    """Whether a node says that it got another archive than the one that is meant."""
    nodes: list[dict[str, Any]] = (one.object() or {})["status"].get("nodes") or []
    if any("is another archive" in each.get("message", "") for each in nodes):
        return True
    raise tools.Failed(str(nodes))


def test_the_version_before_stands_in_for_one_that_breaks(
    runtime: runtimes.Runtime, first: versions.Version, fragile: versions.Version, caller: versions.Caller
) -> None:
    """Where that is asked for; until it is whole again. Both ends tell of it."""
    sources = runtime.cluster.get("configmap", "fragile-src", "-n", runtime.namespace)["data"]
    fragile.ready()
    runtime.edit(publishedVersion="fragile", publishOnFailure="Previous")
    try:
        tools.wait("it is known what was published before", lambda: published(runtime) == ("fragile", "greeter-v1"))
        runtime.kubectl("delete", "configmap", "fragile-src")
        runtime.kubectl("delete", "pod", "-l", "version-name=fragile,node-name=friendly")

        tools.wait("the one before stands in", lambda: led_to(runtime) == "greeter-v1", within=runtimes.WITHIN)
        assert "greeter-v1" == caller.call(PUBLISHED).version
        tells(runtime, "Published", "False", "there is no ConfigMap fragile-src")
        tells(first, "Published", "True", "in place of version fragile")

        runtime.cluster.apply(config_map(runtime, "fragile-src", sources))
        runtime.kubectl("delete", "pod", "-l", "version-name=fragile,node-name=friendly")  # who waits long looks seldom
        tools.wait("it is led to again", lambda: led_to(runtime) == "fragile", within=runtimes.WITHIN)
        assert "fragile" == caller.call(PUBLISHED).version
    finally:
        runtime.edit(publishedVersion="greeter-v1", publishOnFailure=None)
        first.phase("PUBLISHED")
        fragile.delete(LATER)


def published(runtime: runtimes.Runtime) -> tuple[str, str]:
    """What the Runtime's status tells: the version that is published, and the one before."""
    said = (runtime.object() or {})["status"]
    return said.get("publishedVersion", ""), said.get("previousVersion", "")


def tells(of: runtimes.Resource, kind: str, status: str, words: str) -> None:
    """Wait until a condition of it says so."""

    def said() -> bool:
        found: list[dict[str, Any]] = (of.object() or {})["status"]["conditions"]
        one = next((each for each in found if each["type"] == kind), {})
        if one.get("status") == status and words in one.get("message", ""):
            return True
        raise tools.Failed(f"{one.get('status')} {one.get('reason')}: {one.get('message')}")

    tools.wait(f"{kind} of {of.name} says {words!r}", said, within=runtimes.WITHIN)


def test_what_is_published_does_not_stop(first: versions.Version, caller: versions.Caller) -> None:
    """The Runtime must publish something else first, or nothing."""
    first.edit(running=False)

    assert "version greeter-v1 is published by Runtime demo" in first.stopped("Published")
    assert "greeter-v1" == caller.call(PUBLISHED).version
    first.edit(running=True)
    first.ready()


def test_nothing_is_published_any_more(
    runtime: runtimes.Runtime, first: versions.Version, caller: versions.Caller
) -> None:
    """The Service goes, and the Ingress leads to the page that says so; the version runs on."""
    runtime.edit(publishedVersion=None)

    assert not first.phase("STARTED")["published"]
    assert led_to(runtime) is None
    tools.wait(
        "the Ingress leads to the page", lambda: backend(runtime) == "kre-default-backend", within=runtimes.WITHIN
    )
    assert "greeter-v1" == caller.call(first.service).version


def test_a_version_that_is_deleted_leaves_nothing(
    applied: dict[str, versions.Version],
    first: versions.Version,
    second: versions.Version,
    pushed: versions.Version,
    caller: versions.Caller,
) -> None:
    """Neither in Kubernetes nor in NATS, and nor do those that were before; the one that stays answers all the time."""
    others = [pushed, *(each for each in applied.values() if each is not first)]
    with caller.calling(first.service, "-anew") as calls:
        several(calls)
        second.delete()
        several(calls)
    for each in others:
        tools.wait(f"{each.name} is gone", lambda each=each: each.object() is None, within=runtimes.WITHIN)  # type: ignore[misc]

    assert [(each.name, [], []) for each in others] == [(each.name, each.objects(), each.streams()) for each in others]
    assert [] == broken(calls)
    assert "demo_greeter-v1_Greet" in first.streams()


def test_the_runtime_s_deletion_waits_for_its_versions(
    runtime: runtimes.Runtime, first: versions.Version, caller: versions.Caller
) -> None:
    """It names them; they go by themselves, and then all of it does."""
    runtime.delete("--wait=false")

    assert "RuntimeVersion greeter runs in this Runtime" in runtime.stopped("VersionsStay")
    assert "greeter-v1" == caller.call(first.service).version
    first.delete()
    assert [] == first.objects()
    runtime.kubectl("wait", "runtime/demo", "--for=delete", tools.HANGS)
    sources = [f"configmap/{name}-src" for name in ("greeter", "fragile", "bad", "slow")]
    runtime.kubectl("delete", "pod/caller", *sources, "--ignore-not-found")
    runtime.nothing_is_left()
