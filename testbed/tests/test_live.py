"""A whole testbed of its own, beside any other: pods, volumes, DNS, healing, and that nothing of it stays behind."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tb import process, settings
from tb.settings import Settings

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("containerd"), reason="needs root and containerd; `testbed deps` installs it"
)
HERE = Path(__file__).resolve().parent
TOOL = HERE.parent / "testbed"
INDEX = 7
IN_THE_POD = """
import time, urllib.request
# A pod is Ready a moment before its service knows.
for attempt in range(50):
    try:
        print(urllib.request.urlopen("http://web.default.svc.cluster.local", timeout=5).status)
        break
    except OSError:
        time.sleep(0.2)
"""


def tool(place: Settings, *words: str) -> str:
    command = [TOOL, "--state", place.state, "--index", str(place.index), *words]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def kubectl(place: Settings, *words: str) -> str:
    return tool(place, "shell", "kubectl", *words)


def ip(place: Settings, *words: str) -> str:
    command = place.inside(["ip", *words])
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


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
    kubectl(place, "wait", "--for=condition=Ready", "pod/example", "--timeout=60s")
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
    kubectl(place, "wait", "--for=jsonpath={.status.capacity.storage}=2Gi", "pvc/example", "--timeout=30s")


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


def test_down_leaves_nothing(place: Settings) -> None:
    tool(place, "kill", "containerd")
    tool(place, "down")
    assert process.marked(place.state) == []
    assert not place.namespace_path.exists()
    assert str(place.state) not in Path("/proc/self/mountinfo").read_text()
    assert not list(Path("/sys/fs/cgroup").glob(f"**/{place.name}"))
    assert not Path(f"/sys/class/net/{place.outer_link}").exists()
    assert not place.data.exists()
    assert not list(Path("/var/lib/cni/results").glob(f"{place.name}-*"))
