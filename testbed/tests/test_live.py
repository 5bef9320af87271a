"""A whole testbed of its own, beside any other: pods, volumes, DNS, healing, and that nothing of it stays behind."""

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tb import cgroups, containers, nodes, parts, process, settings
from tb.settings import Settings

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("containerd"), reason="needs root and containerd; `testbed deps` installs it"
)
HERE = Path(__file__).resolve().parent
TOOL = HERE.parent / "testbed"
INDEX = 7
WITHIN = 300
"""Seconds after which what was waited for counts as never coming; a busy machine is slow."""

ASK = """
import time, urllib.request
# A pod is Ready a moment before its service and the cluster's DNS know.
def ask(url):
    until = time.monotonic() + 120
    while True:
        try:
            return urllib.request.urlopen(url, timeout=5).status
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)
"""
IN_THE_POD = f"""{ASK}
print(ask("http://web.default.svc.cluster.local"))
"""


NAMES = ["node-0", "node-1", "node-2"]
FROM_POD_TO_POD = f"""{ASK}
for name in ("spread-0", "spread-1", "spread-2"):
    print(ask("http://" + name + ".spread.default.svc.cluster.local:8080"))
"""
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
POLICY = """
apiVersion: admissionregistration.k8s.io/v1beta1
kind: MutatingAdmissionPolicy
metadata: {name: labelled}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}]
  reinvocationPolicy: Never
  mutations:
    - patchType: ApplyConfiguration
      applyConfiguration:
        expression: 'Object{metadata: Object.metadata{labels: Object.metadata.labels{by: "others"}}}'
---
apiVersion: admissionregistration.k8s.io/v1beta1
kind: MutatingAdmissionPolicyBinding
metadata: {name: labelled}
spec: {policyName: labelled}
"""


def run(place: Settings, *words: str, text: str = "") -> "subprocess.CompletedProcess[str]":
    command = [TOOL, "--state", place.state, "--index", str(place.index), *words]
    return subprocess.run(command, capture_output=True, text=True, input=text)


def tool(place: Settings, *words: str, text: str = "") -> str:
    done = run(place, *words, text=text)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def kubectl(place: Settings, *words: str, text: str = "") -> str:
    return tool(place, "shell", "kubectl", *words, text=text)


def ip(place: Settings, *words: str) -> str:
    command = place.inside(["ip", *words])
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def until(what: str, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come"
        time.sleep(0.2)


def where(place: Settings) -> dict[str, str]:
    """The node of each pod of the StatefulSet `spread`."""
    path = "jsonpath={range .items[*]}{.metadata.name} {.spec.nodeName} {end}"
    words = kubectl(place, "get", "pods", "-l", "app=spread", "-o", path).split()
    return dict(zip(words[::2], words[1::2], strict=True))


def on(place: Settings, node: str) -> list[str]:
    return [pod for pod, its in where(place).items() if its == node]


@pytest.fixture(scope="module")
def place() -> Iterator[Settings]:
    with tempfile.TemporaryDirectory() as folder:
        made = settings.resolve(folder, INDEX, dict(os.environ))
        try:
            tool(made, "up", "--level", "api")
            yield made
        finally:
            tool(made, "down")


def test_raising_the_level_keeps_what_runs(place: Settings) -> None:
    before = process.recorded(place, "apiserver")
    tool(place, "up", "--level", "node")
    assert process.recorded(place, "apiserver") == before
    assert "Ready" in kubectl(place, "get", "nodes")


def test_a_pod_writes_to_its_volume_and_is_found_by_name(place: Settings) -> None:
    image = place.state / "example.tar"
    tool(place, "image", "build", str(HERE / "example.toml"), "-o", str(image))
    tool(place, "load", str(image))
    kubectl(place, "apply", "-f", str(HERE / "example.json"))
    kubectl(place, "wait", "--for=condition=Ready", "pod/example", f"--timeout={WITHIN}s")
    assert "the API server is at 10.96.0.1" in kubectl(place, "logs", "example")
    assert kubectl(place, "exec", "example", "--", "python3", "-c", IN_THE_POD).strip() == "200"
    (written,) = (place.data / "volumes").glob("*/written")
    assert written.stat().st_uid == 65532


def test_pods_keep_the_node_s_address_whoever_comes_and_goes(place: Settings) -> None:
    def address() -> str:
        return ip(place, "link", "show", "dev", place.bridge).split("link/ether ")[1].split()[0]

    before = address()
    ip(place, "link", "add", "lowest", "address", "02:00:00:00:00:01", "type", "veth", "peer", "name", "other")
    try:
        ip(place, "link", "set", "lowest", "master", place.bridge)
        assert address() == before
    finally:
        ip(place, "link", "delete", "lowest")
    assert address() == before


def test_a_volume_grows(place: Settings) -> None:
    more = json.dumps({"spec": {"resources": {"requests": {"storage": "2Gi"}}}})
    kubectl(place, "patch", "pvc", "example", "--patch", more)
    kubectl(place, "wait", "--for=jsonpath={.status.capacity.storage}=2Gi", "pvc/example", f"--timeout={WITHIN}s")


def test_up_heals_a_killed_api_server(place: Settings) -> None:
    tool(place, "kill", "apiserver")
    tool(place, "up")
    assert "example" in kubectl(place, "get", "pods")


def test_a_registry_serves_over_verified_tls(place: Settings) -> None:
    address = tool(place, "registry", "up", "--port", "5443", "--tls").strip()
    answer = subprocess.run(
        ["openssl", "s_client", "-connect", address, "-CAfile", place.state / "ca.crt", "-verify_return_error"],
        input="",
        capture_output=True,
        text=True,
    )
    assert "Verify return code: 0 (ok)" in answer.stdout


def test_what_others_change_on_the_way_in_can_be_tried(place: Settings) -> None:
    words = ["create", "configmap", "mutated", "--dry-run=server", "-o", "jsonpath={.metadata.labels.by}"]
    kubectl(place, "apply", "-f", "-", text=POLICY)
    # The API server takes a moment to hear of a policy.
    until("a label of the policy", lambda: kubectl(place, *words) == "others")
    kubectl(place, "delete", "-f", "-", text=POLICY)


def test_nodes_join_a_running_testbed_with_its_images(place: Settings) -> None:
    """One pod on each by anti-affinity, all on the same port of their node, and each finds the others by name."""
    tool(place, "up", "--nodes", "3")
    kubectl(place, "apply", "-f", str(HERE / "three-nodes.json"))
    kubectl(place, "rollout", "status", "statefulset/spread", f"--timeout={WITHIN}s")
    assert sorted(where(place).values()) == NAMES
    for pod in where(place):
        assert kubectl(place, "exec", pod, "--", "python3", "-c", FROM_POD_TO_POD).split() == ["200", "200", "200"]
    assert "example" in kubectl(place, "get", "pods")


def test_an_image_is_loaded_on_every_node(place: Settings) -> None:
    spec = place.state / "second.toml"
    spec.write_text('name = "testbed.local/second:1"\n')
    tool(place, "image", "build", str(spec), "-o", str(place.state / "second.tar"))
    tool(place, "load", str(place.state / "second.tar"))
    for node in nodes.all_of(settings.resolve(str(place.state), None, {})):
        assert "testbed.local/second:1" in containers.images(node)


def test_a_stopped_node_keeps_its_pod_s_name_until_it_is_out_of_service(place: Settings) -> None:
    """All its processes are gone; a StatefulSet's pod is told to go, and nobody can say that it has ended."""
    (pod,) = on(place, "node-2")
    node = nodes.find(settings.resolve(str(place.state), None, {}), "node-2")
    assert cgroups.members_of(node)
    tool(place, "node", "stop", "node-2")
    assert parts.processes(node) == []
    kubectl(place, "wait", "node/node-2", "--for=condition=Ready=Unknown", f"--timeout={WITHIN}s")
    kubectl(place, "wait", f"pod/{pod}", "--for=jsonpath={.metadata.deletionTimestamp}", f"--timeout={WITHIN}s")
    uid = kubectl(place, "get", "pod", pod, "-o", "jsonpath={.metadata.uid}")
    kubectl(place, "taint", "node", "node-2", OUT_OF_SERVICE)
    # Between the two there is none of the name.
    words = ["get", "pod", pod, "--ignore-not-found", "-o", "jsonpath={.metadata.uid}"]
    until("another pod of the name", lambda: kubectl(place, *words) not in ("", uid))
    tool(place, "node", "start", "node-2")
    kubectl(place, "taint", "node", "node-2", f"{OUT_OF_SERVICE}-")
    kubectl(place, "rollout", "status", "statefulset/spread", f"--timeout={WITHIN}s")
    assert on(place, "node-2") == [pod]


def test_a_node_that_is_cut_off_runs_on_alone(place: Settings) -> None:
    node = nodes.find(settings.resolve(str(place.state), None, {}), "node-1")
    before = cgroups.members_of(node)
    tool(place, "node", "partition", "node-1")
    assert run(place, "shell", "kubectl", "get", "--raw", "/api/v1/nodes/node-1/proxy/healthz").returncode != 0
    kubectl(place, "wait", "node/node-1", "--for=condition=Ready=Unknown", f"--timeout={WITHIN}s")
    assert cgroups.members_of(node) == before
    tool(place, "node", "heal", "node-1")
    kubectl(place, "wait", "node/node-1", "--for=condition=Ready", f"--timeout={WITHIN}s")
    kubectl(place, "rollout", "status", "statefulset/spread", f"--timeout={WITHIN}s")


def test_a_frozen_node_stands_still(place: Settings) -> None:
    node = nodes.find(settings.resolve(str(place.state), None, {}), "node-1")
    tool(place, "node", "freeze", "node-1")
    assert all(process.suspended(one) for one in parts.processes(node))
    assert run(place, "status").stdout.count("frozen") == len(parts.OF_NODE)
    tool(place, "node", "thaw", "node-1")
    assert not any(process.suspended(one) for one in parts.processes(node))
    kubectl(place, "rollout", "status", "statefulset/spread", f"--timeout={WITHIN}s")


def test_the_control_plane_s_own_node_is_not_cut_off(place: Settings) -> None:
    assert "shares its network with the control plane" in run(place, "node", "partition", "node-0").stderr


def test_down_leaves_nothing(place: Settings) -> None:
    """After a crash, and with a node in every bad state."""
    tool(place, "node", "freeze", "node-1")
    tool(place, "node", "partition", "node-2")
    tool(place, "kill", "containerd")
    tool(place, "down")
    assert process.marked(place.state) == []
    assert not list(Path("/run/netns").glob(f"{place.name}*"))
    assert str(place.state) not in Path("/proc/self/mountinfo").read_text()
    assert not list(Path("/sys/fs/cgroup").glob(f"**/*{place.name}"))
    assert not Path(f"/sys/class/net/{place.outer_link}").exists()
    assert not place.data.exists()
    assert not list(Path("/var/lib/cni/results").glob(f"{place.name}-*"))
