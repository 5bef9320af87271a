"""What is changed by hand is put right: one write for each change, without a new revision, and nothing else touched."""

from __future__ import annotations

import base64
import bisect
import collections
import json
import os
import random
import time
from typing import Any

import pytest

from . import conftest, leaves, tools

SEED = int(os.environ.get("MOORAGE_TEST_SEED", "0")) or random.SystemRandom().randrange(2**32)
SLICE = 12
"""Leaves of each chart that the everyday run edits; the campaign edits all."""

REFUSALS = ("immutable", "forbidden", "invalid", "must", "not found", "may not", "unsupported value", "unknown")
"""How the API server says that a user can't make an edit; anything else is a fault of the test."""


class Release:
    """The objects of one Collector's release, edited as a user would."""

    def __init__(self, one: tools.Collector, account: str) -> None:
        self.one, self.cluster, self.account = one, one.cluster, account
        manifest = self.cluster.helm("get", "manifest", one.release, "-n", one.tenant)
        self.objects = leaves.objects(manifest)
        self.revisions = len(one.history())

    def live(self, kind: str, name: str) -> Any:
        """The object as it is, or None."""
        return self.cluster.get(kind.lower(), name, "-n", self.one.tenant)

    def rendered(self, leaf: leaves.Leaf) -> Any:
        """The leaf's object as the chart renders it, a Secret with all in data."""
        body = next(b for b in self.objects if (b["kind"], b["metadata"]["name"]) == (leaf.kind, leaf.name))
        plain = {name: base64.b64encode(text.encode()).decode() for name, text in body.get("stringData", {}).items()}
        return body | {"data": body["data"] | plain} if plain else body

    def patch(self, kind: str, name: str, *ops: dict[str, Any]) -> Any:
        """`kubectl patch --type=json`; returns the object after it. Raises tools.Failed."""
        where = ["-n", self.one.tenant, "--type=json", "-o", "json"]
        return json.loads(self.cluster.kubectl("patch", kind.lower(), name, *where, "-p", json.dumps(ops)))

    def written(self, mark: int) -> list[dict[str, Any]]:
        """What the operator wrote since, Collectors and events aside, and what was refused as it came too late.

        What a write has done can be seen a moment before the write is in the log: settle, or wait for it.
        """
        accepted = [entry for entry in tools.audit(mark) if entry["responseStatus"]["code"] < 400]
        return tools.outside(tools.writes(accepted, self.account))

    def writes(self, mark: int) -> list[str]:
        """The same, as people read it."""
        return tools.told(self.written(mark))

    def settle(self) -> int:
        """Wait until the operator is at rest."""
        return tools.quiet(self.account)

    def has_no_new_revision(self) -> bool:
        """No helm run was needed."""
        return len(self.one.history()) == self.revisions


@pytest.fixture
def kinds(collector: conftest.Make, account: str) -> Release:
    """A release with an object of each kind that moorage may make."""
    one = collector(chart="kinds", cluster="registry")
    one.wait_ready()
    return Release(one, account)


def test_each_deleted_child_comes_back(kinds: Release) -> None:
    """By one write, in a form that helm goes on from."""
    mark = kinds.settle()
    for body in kinds.objects:
        kind, name = body["kind"], body["metadata"]["name"]
        uid = kinds.live(kind, name)["metadata"]["uid"]
        kinds.cluster.kubectl("delete", kind.lower(), name, "-n", kinds.one.tenant, "--wait=false")

        def anew(kind: str = kind, name: str = name, uid: str = uid) -> bool:
            found = kinds.live(kind, name)
            return bool(found) and found["metadata"]["uid"] != uid

        tools.wait(f"{kind} {name} comes back", anew)
    kinds.settle()

    counted = collections.Counter(kinds.writes(mark))
    print(f"\n{len(kinds.objects)} children deleted, writes: {dict(counted)}")
    assert {1} == set(counted.values())
    assert len(kinds.objects) == counted.total()
    assert kinds.has_no_new_revision()

    kinds.one.edit(collector={"configuration": tools.configuration({"replicas": 0, "more": "values"})})
    tools.wait("the next upgrade", lambda: len(kinds.one.history()) == kinds.revisions + 1)
    kinds.one.wait_ready()
    assert "deployed" == kinds.one.history()[-1]["status"]


@pytest.mark.parametrize(
    ("chart", "place"), [pytest.param("collector", "", id="collector"), pytest.param("kinds", "registry", id="kinds")]
)
@pytest.mark.parametrize(
    "most", [pytest.param(SLICE, id="slice"), pytest.param(0, id="all", marks=pytest.mark.campaign)]
)
def test_each_edited_leaf_is_put_right(
    collector: conftest.Make, account: str, chart: str, place: str, most: int
) -> None:
    """Each leaf that the API lets a user change, one by one; those that it doesn't are listed with its words.

    One write each; two where the leaf is the key of a list's element: what it was renamed to is taken over first.
    """
    values = {"serviceAccount": {"create": True}, "pdb": {"enabled": True}, "networkPolicy": {"enabled": True}}
    one = collector(values if chart == "collector" else {}, chart=chart, cluster=place)
    one.wait_ready()
    release = Release(one, account)
    every = [leaf for body in release.objects for leaf in leaves.of(body)]
    chosen = random.Random(SEED).sample(every, most) if most else every
    print(f"\n{len(chosen)} of {len(every)} leaves of {chart}, MOORAGE_TEST_SEED={SEED}")
    mark, edits, wrong = release.settle(), list[tuple[float, leaves.Leaf]](), []
    for leaf in chosen:
        begun = time.time()
        if refusal := _edit(release, leaf):
            print(f"  not edited: {leaf}: {refusal}")
            continue
        try:
            tools.wait(f"{leaf} is put right", lambda leaf=leaf: _is_right(release, leaf))
        except AssertionError as error:
            wrong.append(str(error))
            break  # what is not put right disturbs the next
        edits.append((begun, leaf))
        if leaf.is_key:
            release.settle()  # its second write may put the next edit right as well
    release.settle()
    written = release.written(mark)
    print(f"  {len(edits)} edited and put right by {len(written)} writes")
    assert [] == wrong
    caused = collections.defaultdict[int, list[str]](list)  # by each edit, and until the next
    for entry in written:
        caused[bisect.bisect([begun for begun, _ in edits], tools.when(entry)) - 1] += tools.told([entry])
    for number, (_, leaf) in enumerate(edits):
        if not 1 <= len(caused[number]) <= (2 if leaf.is_key else 1):
            wrong.append(f"{leaf}: {len(caused[number])} writes: {caused[number]}")
    assert [] == wrong
    assert [] == caused[-1], "written before anything was edited"
    assert release.has_no_new_revision()


def _edit(release: Release, leaf: leaves.Leaf) -> str:
    """Give the leaf another value; returns why that can't be done, if it can't."""
    before = release.live(leaf.kind, leaf.name)
    try:
        path = leaves.place(release.rendered(leaf), before, leaf.path)
        value = leaves.value_at(before, path)
    except LookupError:
        return "the server does not store it"
    said = ""
    for other in leaves.another(leaf, value):
        try:
            after = release.patch(leaf.kind, leaf.name, {"op": "replace", "path": leaves.pointer(path), "value": other})
        except tools.Failed as error:
            said = " ".join(str(error).split())[-200:]
            assert any(word in str(error).lower() for word in REFUSALS), said  # noqa: PT017
            continue
        unchanged = after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
        return "the server keeps its value" if unchanged else ""
    return f"refused: {said}"


def _is_right(release: Release, leaf: leaves.Leaf) -> bool:
    """The leaf has its rendered value again."""
    body, live = release.rendered(leaf), release.live(leaf.kind, leaf.name)
    try:
        found = leaves.value_at(live, leaves.place(body, live, leaf.path))
    except LookupError:
        return False
    return str(found) == str(leaves.value_at(body, leaf.path))


def test_foreign_fields_survive_repairs_and_upgrades(kinds: Release) -> None:
    """Labels, annotations, keys and fields that the chart says nothing about are others' business."""
    mark = kinds.settle()
    foreign = [
        ("ConfigMap", "/metadata/labels/example.org~1owner", "somebody"),
        ("ConfigMap", "/data/extra", "kept"),
        ("Service", "/metadata/annotations/example.org~1note", "kept"),
        ("Secret", "/data/extra", base64.b64encode(b"kept").decode()),
        (
            "Deployment",
            "/spec/template/metadata/annotations/kubectl.kubernetes.io~1restartedAt",
            "2026-01-01T00:00:00Z",
        ),
        ("Deployment", "/spec/progressDeadlineSeconds", 321),
    ]
    name = kinds.one.release
    for kind, pointer, value in foreign:
        kinds.patch(kind, name, {"op": "add", "path": pointer, "value": value})
    kinds.settle()
    assert [] == kinds.writes(mark)

    label = "app.kubernetes.io/managed-by=Me"  # by which moorage watches for it
    for kind in ("ConfigMap", "Service", "Secret", "Deployment"):
        kinds.cluster.kubectl("label", kind.lower(), name, "-n", kinds.one.tenant, "--overwrite", label)
    tools.wait("four repairs", lambda: len(kinds.writes(mark)) >= 4)
    kinds.settle()
    assert [1] * 4 == list(collections.Counter(kinds.writes(mark)).values())

    kinds.one.edit(collector={"configuration": tools.configuration({"more": "values"})})
    tools.wait("the next upgrade", lambda: len(kinds.one.history()) == kinds.revisions + 1)
    kinds.one.wait_ready()
    for kind, pointer, value in foreign:
        path = [part.replace("~1", "/") for part in pointer.split("/")[1:]]
        assert value == leaves.value_at(kinds.live(kind, name), tuple(path)), f"{kind} {pointer}"


def test_an_edited_secret_is_restored_though_its_data_is_not_watched(kinds: Release) -> None:
    """By a live read at each change of its metadata; the values of the edit are seen nowhere."""
    mark = kinds.settle()
    secret = "c3VwZXItc2VjcmV0"
    kinds.patch("Secret", kinds.one.release, {"op": "replace", "path": "/data/encoded", "value": secret})

    tools.wait("the Secret", lambda: kinds.live("Secret", kinds.one.release)["data"]["encoded"] == "aGVsbG8=")

    kinds.settle()
    assert [f"patch secrets {kinds.one.tenant}/{kinds.one.release}"] == kinds.writes(mark)
    assert kinds.has_no_new_revision()
    events = kinds.cluster.kubectl("get", "events", "-A", "-o", "yaml")
    status = kinds.cluster.kubectl("get", "collector", kinds.one.name, "-o", "yaml")
    log = kinds.cluster.kubectl("logs", "-n", tools.NAMESPACE, "deploy/moorage", "--tail=200")
    for told in (events, status, log):
        assert secret not in told
        assert "super-secret" not in told


def test_an_autoscaler_is_left_alone(collector: conftest.Make, account: str) -> None:
    """Replicas that an autoscaler set stay, through a repair of the object and through an upgrade."""
    one = collector({"replicas": 1, "autoscale": True}, chart="kinds", cluster="registry")
    tools.wait("the release", lambda: one.history() and one.history()[-1]["status"] == "deployed")
    release = Release(one, account)

    def replicas() -> int:
        return int(release.live("Deployment", one.release)["spec"]["replicas"])

    tools.wait("the autoscaler", lambda: replicas() == 2)
    mark = release.settle()
    assert 2 == replicas()

    release.patch("Deployment", one.release, {"op": "replace", "path": "/spec/minReadySeconds", "value": 9})
    tools.wait("repair", lambda: release.live("Deployment", one.release)["spec"]["minReadySeconds"] == 1)
    release.settle()
    assert 2 == replicas()
    assert [f"patch deployments {one.tenant}/{one.release}"] == release.writes(mark)

    release.cluster.kubectl("delete", "hpa", one.release, "-n", one.tenant)
    tools.wait("the autoscaler is put back", lambda: release.live("HorizontalPodAutoscaler", one.release))
    assert 2 == replicas()

    one.edit(collector={"configuration": tools.configuration({"replicas": 1, "autoscale": True, "more": "x"})})
    tools.wait("the upgrade", lambda: [e["status"] for e in one.history()[-2:]] == ["superseded", "deployed"])
    assert 2 == replicas()


def test_what_a_person_scales_stays(kinds: Release) -> None:
    """As with an autoscaler, also through a repair of the object."""
    one, mark = kinds.one, kinds.settle()
    scale = ("scale", "statefulset", one.release, "-n", one.tenant)
    partition = "/spec/updateStrategy/rollingUpdate/partition"

    kinds.cluster.kubectl(*scale, "--replicas=1")
    kinds.patch("StatefulSet", one.release, {"op": "replace", "path": partition, "value": 3})
    tools.wait(
        "repair",
        lambda: kinds.live("StatefulSet", one.release)["spec"]["updateStrategy"]["rollingUpdate"]["partition"] == 0,
    )
    kinds.settle()

    assert 1 == kinds.live("StatefulSet", one.release)["spec"]["replicas"]
    assert [f"patch statefulsets {one.tenant}/{one.release}"] == kinds.writes(mark)
    kinds.cluster.kubectl(*scale, "--replicas=0")


def test_drift_off_reports_and_does_not_write(collector: conftest.Make, account: str) -> None:
    """Drifted=True names the object; with Enforce it is put right."""
    one = collector(chart="plain", cluster="registry", policy={"drift": "Off"})
    one.wait_ready()
    release = Release(one, account)
    mark = release.settle()

    release.patch("ConfigMap", one.release, {"op": "replace", "path": "/data/word", "value": "mine"})
    tools.wait("Drifted=True", lambda: one.condition("Drifted").get("status") == "True")

    assert one.release in one.condition("Drifted")["message"]
    release.settle()
    assert [] == release.writes(mark)
    assert "mine" == release.live("ConfigMap", one.release)["data"]["word"]

    one.edit(policy={"drift": "Enforce"})
    tools.wait("repair", lambda: release.live("ConfigMap", one.release)["data"]["word"] == "hello")
    tools.wait("Drifted=False", lambda: one.condition("Drifted").get("status") == "False")
    assert release.has_no_new_revision()


@pytest.mark.parametrize("by_hand", ["rollback", "upgrade", "uninstall"])
def test_a_release_changed_by_hand_is_put_right(collector: conftest.Make, account: str, by_hand: str) -> None:
    """What a user did with helm is one more revision; moorage's next one puts the spec in force again."""
    one = collector({"word": "first"}, chart="plain", cluster="registry")
    one.wait_ready()
    one.edit(collector={"configuration": tools.configuration({"word": "second"})})
    tools.wait("the second revision", lambda: len(one.history()) == 2)
    one.wait_ready()
    release = Release(one, account)
    release.settle()
    command = {
        "rollback": ["rollback", one.release, "1"],
        "upgrade": ["upgrade", one.release, str(conftest.CHARTS / "plain"), "--reuse-values", "--set", "word=third"],
        "uninstall": ["uninstall", one.release],
    }[by_hand]

    one.cluster.helm(*command, "-n", one.tenant)

    def right() -> bool:
        live = release.live("ConfigMap", one.release)
        return bool(live) and live["data"]["word"] == "second" and one.condition("Ready").get("status") == "True"

    tools.wait("the spec in force", right)
    release.settle()
    assert right()
    assert "False" == one.condition("Drifted")["status"]
    assert (1 if by_hand == "uninstall" else 4) == len(one.history())
    assert "deployed" == one.history()[-1]["status"]
