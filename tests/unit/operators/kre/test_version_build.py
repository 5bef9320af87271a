"""The objects of a version: the product's names, labels, environment and volumes, under restricted Pod Security."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moorage.api import builtin, meta
from moorage.operators.kre import config, kinds, names
from moorage.operators.kre.version import build, types
from moorage.operators.kre.version.wanted import Wanted

from . import versions
from .versions import STREAM

META = meta.ObjectMeta(name="one", namespace="ns", uid="u-one")
IMAGES = config.Images(fetcher="a/fetcher:1")


def wanted(runtime: str = "demo", inputs: str = "i", images: config.Images = IMAGES, **changed: Any) -> Wanted:
    return Wanted(META, versions.spec(**changed), runtime, images, inputs)


def made(it: Wanted) -> dict[str, dict[str, Any]]:
    return {each.id: each.body for each in build.children(it)}


def pod(it: Wanted, name: str) -> dict[str, Any]:
    found: dict[str, Any] = made(it)[f"Deployment/{name}"]["spec"]["template"]["spec"]
    return found


def env(container: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each.get("value", json.dumps(each.get("valueFrom"))) for each in container.get("env", ())}


def nodes(*rows: dict[str, Any], **flow: Any) -> dict[str, Any]:
    """A workflow of these nodes, which are "last" otherwise."""
    plain = {"name": "last", "image": "a/b:1", "src": "a.py", "subscriptions": ["entrypoint"]}
    full = [plain | row for row in rows]
    return {
        "workflows": [{"name": "greet", "entrypoint": "Greet", "exitpoint": full[-1]["name"], "nodes": full} | flow]
    }


def everything() -> list[Wanted]:
    """Each way to have files, and what may be in a node."""
    digest = f"sha256:{'0' * 64}"
    ways: list[dict[str, Any]] = [
        {},
        {"files": {"configMapRef": {"name": "f"}}},
        {"files": {"image": "a/files:1"}},
        {"files": {"downloader": "a/downloader:1"}},
        {"files": {"object": {"key": "v1.krt", "digest": digest}}},
        nodes({"gpu": True, "resources": {"limits": {"memory": "1Gi"}}, "env": [{"name": "A", "value": "b"}]}),
        {"entrypoint": {"proto": {"configMapRef": {"name": "p", "key": "a.proto"}}, "image": "a/b:1"}},
    ]
    return [wanted(**way) for way in ways] + [wanted(images=config.Images(fluent_bit="", web=""))]


def test_objects_are_those_of_the_product() -> None:
    """By their names; all are owned, and bear what they are found by."""
    found = made(wanted())

    assert [
        *("ConfigMap/demo-v1-krt-conf", "ConfigMap/demo-v1-conf-files", "Secret/demo-v1-mongo"),
        *("Deployment/demo-v1-greet-first", "Deployment/demo-v1-greet-last"),
        *("Deployment/demo-v1-entrypoint", "Service/demo-v1-entrypoint"),
    ] == list(found)
    for body in found.values():
        common = {"runtime-id": "demo", "version-name": "v1", kinds.OF_VERSION: "one"}
        assert common.items() <= body["metadata"]["labels"].items()
        assert [("RuntimeVersion", "one", "u-one", True)] == [
            (it["kind"], it["name"], it["uid"], it["controller"]) for it in body["metadata"]["ownerReferences"]
        ]


def test_labels_are_the_product_s() -> None:
    """By them nodes are selected, and the entrypoint is served."""
    found = made(wanted())
    node = found["Deployment/demo-v1-greet-first"]
    entrance = found["Deployment/demo-v1-entrypoint"]
    service = found["Service/demo-v1-entrypoint"]["spec"]

    labels = {"type": "node", "node-name": "first", "node-id": "demo-v1-greet-first"}
    assert labels.items() <= node["spec"]["selector"]["matchLabels"].items()
    for each in (node, entrance):
        template = each["spec"]["template"]["metadata"]["labels"]
        assert each["spec"]["selector"]["matchLabels"].items() <= template.items()
        assert "one" == template[kinds.OF_VERSION]
    assert service["selector"].items() <= entrance["spec"]["template"]["metadata"]["labels"].items()
    assert {"grpc": (9000, 9000), "web": (80, 8080)} == {
        it["name"]: (it["port"], it["targetPort"]) for it in service["ports"]
    }


def test_pods_of_two_nodes_and_of_two_versions_are_told_apart() -> None:
    """No selector takes another's pods."""
    found = [
        it.body["spec"]
        for each in (wanted(), wanted(version="v2"))
        for it in build.children(each)
        if it.resource == kinds.DEPLOYMENT
    ]
    for one in found:
        taken = [
            other
            for other in found
            if one["selector"]["matchLabels"].items() <= other["template"]["metadata"]["labels"].items()
        ]
        assert [one] == taken


@pytest.mark.parametrize("it", everything(), ids=range(8))
def test_pods_are_admitted_under_restricted_security_and_have_no_rights(it: Wanted) -> None:
    """Each container of each pod, those that come first too."""
    for body in made(it).values():
        if body["kind"] != "Deployment":
            continue
        spec = body["spec"]["template"]["spec"]
        assert False is spec["automountServiceAccountToken"]
        assert "serviceAccountName" not in spec
        assert (True, "RuntimeDefault") == (
            spec["securityContext"]["runAsNonRoot"],
            spec["securityContext"]["seccompProfile"]["type"],
        )
        assert {"emptyDir", "configMap"} >= {key for each in spec["volumes"] for key in each} - {"name"}
        own = [*spec["containers"], *spec.get("initContainers", ())]
        assert [{"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}] * len(own) == [
            each["securityContext"] for each in own
        ]
        assert len(own) == len({each["name"] for each in own})
        assert all(each["image"] and len(each["name"]) <= names.LONGEST for each in own)
        volumes = {each["name"] for each in spec["volumes"]}
        assert {mount["name"] for each in own for mount in each["volumeMounts"]} <= volumes


def test_nodes_find_the_product_s_environment() -> None:
    """All that its runners read."""
    main = pod(wanted(), "demo-v1-greet-last")["containers"][0]
    found = env(main)

    assert {
        "KRT_RUNTIME_ID": "demo",
        "KRT_VERSION_ID": "one",
        "KRT_VERSION": "v1",
        "KRT_INFLUX_URI": "http://kre-influxdb:8086",
        "KRT_NATS_SERVER": "kre-nats:4222",
        "KRT_MONGO_DB_NAME": "data",
        "KRT_MONGO_BUCKET": "krt",
        "KRT_BASE_PATH": "/krt-files",
        "KRT_WORKFLOW_ID": "greet",
        "KRT_WORKFLOW_NAME": "greet",
        "KRT_NODE_ID": "demo-v1-greet-last",
        "KRT_NODE_NAME": "last",
        "KRT_HANDLER_PATH": "last.py",
        "KRT_NATS_MONGO_WRITER": "mongo_writer_data.demo",
        "KRT_NATS_STREAM": STREAM,
        "KRT_IS_EXITPOINT": "true",
        "KRT_NATS_OUTPUT": f"{STREAM}.last",
        "KRT_NATS_INPUTS": f"{STREAM}.first",
        "KRT_NATS_KEY_VALUE_STORE_PROJECT": "key-store_demo_v1",
        "KRT_NATS_KEY_VALUE_STORE_WORKFLOW": "key-store_demo_v1_greet",
        "KRT_NATS_KEY_VALUE_STORE_NODE": "key-store_demo_v1_greet_last",
        "KRT_NATS_OBJECT_STORE": "demo_v1_greet_models",
        "KRT_JS_REQUEST_TIMEOUT": "5",
        "KRT_MONGO_URI": '{"secretKeyRef": {"name": "demo-v1-mongo", "key": "uri"}}',
    } == found
    assert [{"configMapRef": {"name": "demo-v1-krt-conf"}}] == main["envFrom"]
    assert ("demo-v1-greet-last", "a/b:1", "IfNotPresent") == (main["name"], main["image"], main["imagePullPolicy"])
    assert {"/krt-files", "/var/log/app"} == {mount["mountPath"] for mount in main["volumeMounts"]}
    first = env(pod(wanted(), "demo-v1-greet-first")["containers"][0])
    assert ("false", None) == (first["KRT_IS_EXITPOINT"], first.get("KRT_NATS_OBJECT_STORE"))


def test_the_entrypoint_finds_where_to_write_and_to_read() -> None:
    """By a file; beside it the service's description is served."""
    spec = pod(wanted(), "demo-v1-entrypoint")
    main, shipper, web = spec["containers"]
    found = env(main)

    assert ("v1", "fluent-bit", "v1-web") == (main["name"], shipper["name"], web["name"])
    assert {"entrypoint"} == {found[f"KRT_{part}"] for part in ("WORKFLOW_ID", "WORKFLOW_NAME", "NODE_ID", "NODE_NAME")}
    assert ("/src/conf/nats_subject.json", "30") == (found["KRT_NATS_SUBJECTS_FILE"], found["KRT_REQUEST_TIMEOUT"])
    files = made(wanted())["ConfigMap/demo-v1-conf-files"]["data"]
    assert {
        "Greet": {"stream": STREAM, "input_subject": f"{STREAM}.last", "output_subject": f"{STREAM}.entrypoint"}
    } == json.loads(files["nats_subject.json"])
    assert {
        "default.conf",
        "nats_subject.json",
        "parsers.conf",
        "fluent-bit.conf",
        "public_input.proto",
    } == files.keys()
    assert "    Tag               mongo_writer_logs.demo\n" in files["fluent-bit.conf"]
    assert {"name": "demo-v1-conf-files", "items": [{"key": "public_input.proto", "path": "public_input.proto"}]} == (
        next(each["configMap"] for each in spec["volumes"] if each["name"] == "proto")
    )


def test_only_what_is_theirs_can_be_written() -> None:
    """Files and logs; configuration and description come from elsewhere."""
    for each in pod(wanted(), "demo-v1-entrypoint")["containers"]:
        writable = {mount["name"] for mount in each["volumeMounts"] if not mount.get("readOnly")}
        assert writable == ({"krt-files", "logs"} if each["name"] == "v1" else set())


def test_containers_beside_can_be_left_out() -> None:
    """Where an administrator has no such image."""
    it = wanted(images=config.Images(fluent_bit="", web=""))

    assert ["v1"] == [each["name"] for each in pod(it, "demo-v1-entrypoint")["containers"]]
    assert {"default.conf", "nats_subject.json", "public_input.proto"} == (
        made(it)["ConfigMap/demo-v1-conf-files"]["data"].keys()
    )


def test_a_version_of_the_name_of_the_container_beside_it() -> None:
    """Two containers of one pod never have one name."""
    own = [each["name"] for each in pod(wanted(version="fluent-bit"), "demo-fluent-bit-entrypoint")["containers"]]

    assert len(own) == len(set(own))


def test_a_gpu_is_asked_for_and_its_nodes_are_chosen() -> None:
    """Beside what the node asks for itself."""
    spec = pod(wanted(**nodes({"gpu": True, "resources": {"limits": {"memory": "1Gi"}}})), "demo-v1-greet-last")

    assert {"limits": {"memory": "1Gi", "nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}} == (
        spec["containers"][0]["resources"]
    )
    assert {"konstellation.io/gpu": "true"} == spec["nodeSelector"]
    assert {("konstellation.io/gpu", "Exists", "NoSchedule"), ("nvidia.com/gpu", "Exists", "NoSchedule")} == {
        (each["key"], each["operator"], each["effect"]) for each in spec["tolerations"]
    }


def test_config_keys_are_found_wherever_their_values_are() -> None:
    """In clear in a ConfigMap; others by reference, and never a copy of them. What is ours can't be said otherwise."""
    keys = [
        {"name": "PLAIN", "value": "v"},
        {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        {"name": "MAP", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}},
        {"name": "EMPTY"},
    ]
    own = [{"name": "KRT_VERSION", "value": "mine"}, {"name": "OWN", "value": "o"}]
    it = wanted(config=keys, **nodes({"env": own}))
    found = env(pod(it, "demo-v1-greet-last")["containers"][0])

    assert {"PLAIN": "v"} == made(it)["ConfigMap/demo-v1-krt-conf"]["data"]
    assert '{"secretKeyRef": {"name": "s", "key": "k"}}' == found["SECRET"]
    assert '{"configMapKeyRef": {"name": "m", "key": "k"}}' == found["MAP"]
    assert ("v1", "o", None) == (found["KRT_VERSION"], found["OWN"], found.get("EMPTY"))


@pytest.mark.parametrize(
    ("files", "volume", "image", "command"),
    [
        (None, {"emptyDir": {}}, None, None),
        ({"configMapRef": {"name": "f"}}, {"configMap": {"name": "f"}}, None, None),
        ({"image": "a/files:1"}, {"emptyDir": {}}, "a/files:1", ["cp", "-R", "/krt-files/.", "/to/"]),
        ({"downloader": "a/down:1"}, {"emptyDir": {}}, "a/down:1", None),
        ({"object": {"key": "v1.krt", "digest": f"sha256:{'0' * 64}"}}, {"emptyDir": {}}, "a/fetcher:1", None),
    ],
)
def test_files_come_from_where_the_spec_says(
    files: dict[str, Any] | None, volume: dict[str, Any], image: str | None, command: list[str] | None
) -> None:
    """Before the node starts."""
    spec = pod(wanted(**({"files": files} if files else {})), "demo-v1-greet-first")
    first = next(iter(spec.get("initContainers", ())), {})

    assert {"name": "krt-files", **volume} == spec["volumes"][0]
    assert (image, command) == (first.get("image"), first.get("command"))
    if files and "object" in files:
        assert {
            "KRT_FILES_ENDPOINT": "http://kre-minio:9000",
            "KRT_FILES_BUCKET": "krt",
            "KRT_FILES_OBJECT": "v1.krt",
            "KRT_FILES_DIGEST": f"sha256:{'0' * 64}",
            "KRT_BASE_PATH": "/krt-files",
            "KRT_FILES_ACCESS_KEY": '{"secretKeyRef": {"name": "kre-credentials-in-use", "key": "minioAccessKey"}}',
            "KRT_FILES_SECRET_KEY": '{"secretKeyRef": {"name": "kre-credentials-in-use", "key": "minioSecretKey"}}',
        } == env(first)


def test_a_change_of_what_pods_read_rolls_them_and_nothing_else_does() -> None:
    """Config, files and what others hold; by a digest on the template."""

    def templates(it: Wanted) -> list[dict[str, Any]]:
        return [body["spec"]["template"] for body in made(it).values() if body["kind"] == "Deployment"]

    first = templates(wanted())
    assert first == templates(wanted(description="new words"))
    changes = [wanted(inputs="j"), wanted(config=[{"name": "GREETING", "value": "hi"}])]
    changes.append(wanted(entrypoint={"proto": {"inline": "service B {}"}, "image": "a/entrypoint:1"}))
    for each in changes:
        assert not [one for one, other in zip(first, templates(each), strict=True) if one == other]


def test_nothing_secret_is_in_a_body() -> None:
    """The Secret is filled in when it is sent, and made anew when the credentials change."""
    secret = next(each for each in build.children(wanted()) if each.resource == builtin.SECRET)
    other = next(each for each in build.children(wanted(inputs="j")) if each.resource == builtin.SECRET)

    assert ("mongo", False) == (secret.fill, "data" in secret.body)
    assert secret.body != other.body


def test_names_fit_and_never_clash() -> None:
    """Of the longest parts that there can be, and of such as differ in where their dashes are."""
    long = nodes({"name": "n" * 19}, {"name": "m" * 19, "subscriptions": ["n" * 19]}, name="w" * 19)
    plain = {"image": "a/b:1", "src": "a.py", "subscriptions": ["entrypoint"]}
    flows = [
        {"name": "a-b", "entrypoint": "A", "exitpoint": "c", "nodes": [{"name": "c", **plain}]},
        {"name": "a", "entrypoint": "B", "exitpoint": "b-c", "nodes": [{"name": "b-c", **plain}]},
    ]
    for it in (wanted("r" * 40, version="v" * 19, **long), wanted(workflows=flows)):
        own = [each.id for each in build.children(it)]
        labels = [value for each in made(it).values() for value in each["metadata"]["labels"].values()]

        assert len(own) == len(set(own))
        assert names.LONGEST >= max(len(each.partition("/")[2]) for each in own)
        assert names.LONGEST >= max(map(len, labels))


def test_what_is_published_is_the_runtime_s_and_leads_to_the_version() -> None:
    """It outlives versions, so it is not theirs."""
    owner = kinds.RUNTIME.ref("ns", "demo", "u-demo")
    one, other = (build.active(wanted(version=name), owner).body for name in ("v1", "v2"))

    assert "demo-active-entrypoint" == one["metadata"]["name"] == other["metadata"]["name"]
    assert ["u-demo"] == [it["uid"] for it in one["metadata"]["ownerReferences"]]
    assert {"type": "entrypoint", "runtime-id": "demo", "version-name": "v1"} == one["spec"]["selector"]
    assert "v2" == other["spec"]["selector"]["version-name"]


def test_a_row_s_nodes_are_those_of_the_spec() -> None:
    """Version 1 of the format."""
    rows = [{"name": name, "image": f"a/{name}:1", "src": "a.py"} for name in ("x", "y")]
    it = wanted(nodes=rows, workflows=[{"name": "greet", "entrypoint": "Greet", "sequential": ["x", "y"]}])

    assert "a/y:1" == pod(it, "demo-v1-greet-y")["containers"][0]["image"]
    assert {"x", "y"} == types.RuntimeVersionSpec.nodes_of(it.spec, "greet").keys()
