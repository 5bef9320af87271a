"""A RuntimeVersion's definition and what is made of one, in a real API server: accepted, refused, admitted."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import yaml

from conftest import defined, restricted
from moorage.api import meta
from moorage.operators.kre import config, kinds
from moorage.operators.kre.version import build, types
from moorage.operators.kre.version.wanted import Wanted

if TYPE_CHECKING:
    from conftest import Cluster

pytestmark = pytest.mark.api

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples/kre/runtimeversion.yaml"
SPEC: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text())["spec"]
DIGEST = f"sha256:{'0' * 64}"


@pytest.fixture(scope="module", autouse=True)
def definition(cluster: Cluster) -> None:
    """The kind is served."""
    defined(cluster, "kre")


@pytest.fixture
def place(cluster: Cluster, tag: str) -> Iterator[str]:
    """A namespace that takes only restricted pods."""
    yield from restricted(cluster, tag, "runtimeversions")


def version(place: str, spec: dict[str, Any], name: str = "greeter") -> dict[str, Any]:
    metadata = {"name": name, "namespace": place}
    return {"apiVersion": "kre.konstellation.io/v1alpha1", "kind": "RuntimeVersion", "metadata": metadata, "spec": spec}


def changed(path: str, value: Any) -> dict[str, Any]:
    """The example with that there; None: without it."""
    spec = copy.deepcopy(SPEC)
    *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    at: Any = spec
    for part in way:
        at = at[part]
    if value is None:
        del at[last]
    else:
        at[last] = value
    return spec


@pytest.mark.parametrize("how", ["--server-side=false", "--server-side"])
def test_the_example_is_accepted_whole(cluster: Cluster, place: str, how: str) -> None:
    """Strictly: a field that the definition lacks is an error, not a warning."""
    cluster.must(
        cluster.kubectl("-n", place, "apply", "--dry-run=server", "--validate=strict", how, "-f", str(EXAMPLE))
    )


NODE = {"name": "hello", "image": "a/b:1", "src": "a.py"}
ROW = {"name": "row", "entrypoint": "Row", "sequential": ["hello"]}
FLOW = SPEC["workflows"][0]

REFUSED: list[tuple[dict[str, Any], str]] = [
    (changed("version", "active"), "version can't be 'active'"),
    (changed("version", "Greeter"), "spec.version"),
    (changed("version", "a" * 20), "spec.version"),
    (changed("entrypoint.proto", {}), "give either inline or configMapRef"),
    (
        changed("entrypoint.proto.configMapRef", {"name": "a", "key": "b"}),
        "give either inline or configMapRef",
    ),
    (
        changed("config.0.valueFrom", {"secretKeyRef": {"name": "a", "key": "b"}}),
        "give value or valueFrom, but not both",
    ),
    (changed("config.0", {"name": "GREETING", "valueFrom": {}}), "give either configMapKeyRef or secretKeyRef"),
    (changed("config.0.name", "greeting"), "spec.config[0].name"),
    (changed("files.image", "a/b:1"), "give exactly one of object, configMapRef, image and downloader"),
    (changed("files", {"image": " a/b:1"}), "spec.files.image"),
    (changed("files", {"downloader": "A/B"}), "spec.files.downloader"),
    (changed("files", {}), "give exactly one of object, configMapRef, image and downloader"),
    (changed("files", {"object": {"key": "a", "digest": "md5:1"}}), "spec.files.object.digest"),
    (changed("workflows", []), "spec.workflows"),
    (changed("workflows", [FLOW, {**FLOW, "name": "other"}]), "each workflow needs an entrypoint of its own"),
    (changed("workflows", [FLOW, FLOW]), "Duplicate value"),
    (changed("workflows.0.exitpoint", "nobody"), "exitpoint must be the name of one of the workflow's nodes"),
    (changed("workflows.0.exitpoint", None), "exitpoint must be the name of one of the workflow's nodes"),
    (changed("workflows.0.nodes.0.subscriptions", None), "each node needs subscriptions"),
    (changed("workflows.0.nodes.0.name", "entrypoint"), "is by what nodes subscribe to what comes in"),
    (changed("workflows.0.nodes.0.src", "../a.py"), "src must be below krt.yml"),
    (changed("workflows.0.nodes.0.replicas", 0), "spec.workflows[0].nodes[0].replicas"),
    (changed("workflows.0.nodes.0.image", "No Image"), "spec.workflows[0].nodes[0].image"),
    (changed("workflows.0.sequential", ["hello"]), "give either nodes with their subscriptions, or sequential"),
    (changed("workflows", [ROW]), "each name in sequential must be that of one of spec.nodes"),
]


@pytest.mark.parametrize(("spec", "word"), REFUSED, ids=[f"{n}-{word[:30]}" for n, (_, word) in enumerate(REFUSED)])
def test_what_is_refused_says_why(cluster: Cluster, place: str, spec: dict[str, Any], word: str) -> None:
    """At admission, by the field."""
    done = cluster.kubectl("create", "--dry-run=server", body=version(place, spec))

    assert done.returncode != 0
    assert word in done.stderr


@pytest.mark.parametrize(
    "spec",
    [
        {**changed("workflows", [ROW]), "nodes": [NODE]},
        changed("files", {"object": {"key": "v1.krt", "digest": DIGEST}}),
        changed("files", None),
        changed("config.0", {"name": "GREETING"}),
    ],
)
def test_what_is_accepted(cluster: Cluster, place: str, spec: dict[str, Any]) -> None:
    """Version 1 of the format, too; and what may come later."""
    cluster.must(cluster.kubectl("create", "--dry-run=server", "--validate=strict", body=version(place, spec)))


def test_a_name_that_is_no_label_is_refused(cluster: Cluster, place: str) -> None:
    """It marks all that is made."""
    done = cluster.kubectl("create", "--dry-run=server", body=version(place, SPEC, "a" * 64))

    assert "metadata.name marks all that is made" in done.stderr


CHANGES: list[tuple[dict[str, Any], str]] = [
    # change, and what is said; nothing for what is accepted
    ({"running": False}, ""),
    ({"description": "other"}, ""),
    ({"version": "greeter-v2"}, "version can't be changed, as it names all that is made"),
    ({"runtimeRef": {"name": "other"}}, "runtimeRef can't be changed once it is set"),
    ({"runtimeRef": None}, "runtimeRef can't be changed once it is set"),
]


@pytest.mark.parametrize(("change", "word"), CHANGES, ids=[json.dumps(change) for change, _ in CHANGES])
def test_what_may_change(cluster: Cluster, place: str, change: dict[str, Any], word: str) -> None:
    """What it is called stays."""
    cluster.must(cluster.kubectl("create", body=version(place, {**SPEC, "runtimeRef": {"name": "demo"}})))
    patch = ("-n", place, "patch", "runtimeversion", "greeter", "--type=merge", "--dry-run=server")
    done = cluster.kubectl(*patch, "-p", json.dumps({"spec": change}))

    assert bool(word) == (done.returncode != 0), done.stderr
    assert word in done.stderr


WAYS: list[dict[str, Any]] = [
    SPEC,
    changed("files", {"image": "a/b:1"}),
    changed("files", {"object": {"key": "v1.krt", "digest": DIGEST}}),
    changed("workflows.0.nodes.0.gpu", True),
]


@pytest.mark.parametrize("spec", WAYS, ids=["files", "image", "object", "gpu"])
def test_what_is_made_of_it_is_accepted_and_its_pods_are_admitted(
    cluster: Cluster, place: str, spec: dict[str, Any]
) -> None:
    """Strictly, and by restricted Pod Security."""
    of = meta.ObjectMeta(name="greeter", namespace=place, uid="00000000-0000-0000-0000-000000000000")
    given = msgspec.convert(spec, types.RuntimeVersionSpec)
    wanted = Wanted(of, given, "demo", config.Images(fetcher="a/fetcher:1"))
    active = build.active(wanted, kinds.RUNTIME.ref(place, "demo", of.uid))
    for each in (*build.children(wanted), active):
        said = cluster.kubectl("create", "--dry-run=server", "--validate=strict", body=each.body)
        cluster.must(said)
        assert "would violate PodSecurity" not in said.stderr
        if each.resource == kinds.DEPLOYMENT:
            template = each.body["spec"]["template"]
            metadata = {"name": "trial", "namespace": place, "labels": template["metadata"]["labels"]}
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
            cluster.must(cluster.kubectl("create", "--dry-run=server", body=pod))
