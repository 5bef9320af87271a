"""XSLD caches with running pods: the hello example as a new user has it, then what is done to it in its life."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from . import caches, tools
from .caches import WITHIN

HELLO = tools.ROOT / "examples" / "xsldcache" / "hello.yaml"
OF_HELLO = "xsld.ibm.com/cache=hello"
LAST_POLL = "moorage_xsld_last_poll_timestamp_seconds"


@pytest.fixture(scope="module")
def hello(moorage: tools.Cluster) -> Iterator[tools.Cluster]:
    """The hello example, Ready; the tests of this module go on from one another's end."""
    moorage.kubectl("apply", "-f", str(HELLO))
    try:
        moorage.kubectl("wait", "xsldcache/hello", "--for=condition=Available", f"--timeout={WITHIN:g}s")
        moorage.kubectl("wait", "datagrid/greetings", "--for=condition=Ready", f"--timeout={WITHIN:g}s")
        yield moorage
    finally:
        print(moorage.kubectl("get", "xsldcache,datagrid,pod,pvc", "-o", "wide", check=False))
        print(moorage.kubectl("get", "xsldcache/hello", "-o", "jsonpath={.status}", check=False))
        moorage.kubectl("delete", "-f", str(HELLO), "--ignore-not-found", tools.HANGS)


def settled(cluster: tools.Cluster, members: int) -> dict[str, Any] | None:
    """The status once the cache is Ready with so many members."""
    return caches.Cache(cluster, "hello").settled(members)


@contextlib.contextmanager
def forwarded(cluster: tools.Cluster, port: int) -> Iterator[str]:
    """A port of the client Service, as an address of this host."""
    environment = os.environ | {"KUBECONFIG": str(cluster.kubeconfig), "PATH": f"{tools.BIN}:{os.environ['PATH']}"}
    command = ["kubectl", "port-forward", "service/hello-client", f":{port}"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()  # Forwarding from 127.0.0.1:41234 -> 9444
        if not line:
            raise tools.Failed("kubectl port-forward has ended")
        yield f"https://127.0.0.1:{line.split()[2].rpartition(':')[2]}"
    finally:
        process.terminate()
        process.communicate()


def entry(cluster: tools.Cluster, method: str, key: str, value: Any = None) -> Any:
    """One entry of the grid, through the client Service. Raises Failed."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    login = base64.b64encode(f"xsadmin:{caches.PASSWORD}".encode()).decode()
    headers = {"Authorization": f"Basic {login}", "Content-Type": "application/json"}
    with forwarded(cluster, 9444) as address:
        url = f"{address}/wxsdata/v1/grids/greetings/greetings.LUT.O/{key}"
        body = None if value is None else json.dumps(value).encode()
        request = urllib.request.Request(url, data=body, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, context=context, timeout=20) as answer:
                text = answer.read().decode()
        except (OSError, http.client.HTTPException) as error:
            raise tools.Failed(f"{method} {url}: {error}") from error
    return json.loads(text) if text else None


def wait_first(cluster: tools.Cluster) -> None:
    """The entry that the first test wrote can be read; who changes the group waits until clients are served again."""
    found = tools.wait("the first entry is found", lambda: entry(cluster, "GET", "first"))
    assert {"hello": "world"} == found


def test_two_members_serve_a_grid(hello: tools.Cluster) -> None:
    said = tools.wait("Ready with two members", lambda: settled(hello, 2), within=WITHIN)
    assert ["hello-0", "hello-1"] == [member["name"] for member in said["memberStatuses"]]
    assert ["greetings"] == said["grids"]
    tools.wait("an entry is written", lambda: [entry(hello, "POST", "first", {"hello": "world"})])
    wait_first(hello)
    shown = hello.run(sys.executable, "-m", "moorage", "status", "xsldcache/hello", "-n", "default", check=False)
    assert "hello-1" in shown
    assert "2 of 2 online" in shown


@pytest.mark.parametrize("seconds", [30, pytest.param(300, marks=pytest.mark.campaign)])
def test_at_rest_it_is_asked_and_nothing_is_written(hello: tools.Cluster, account: str, seconds: int) -> None:
    """When the group was last asked is a metric, so that asking costs the API server nothing."""
    tools.wait("Ready with two members", lambda: settled(hello, 2), within=WITHIN)
    pod = tools.operators(hello)[0]["metadata"]["name"]
    mark, begun = tools.quiet(account, for_seconds=5.0), time.monotonic()
    polls: set[float] = set()

    def over() -> bool:
        polls.add(tools.metrics(hello, pod)[f'{LAST_POLL}{{name="hello",namespace="default"}}'])
        return time.monotonic() - begun >= seconds

    tools.wait(f"{seconds} s", over, within=seconds + 60.0, every=1.0)
    written = tools.told(tools.writes(tools.audit(mark), account))
    print(f"{len(polls)} polls over {seconds} s, {len(written)} writes")
    assert [] == written
    assert len(polls) >= seconds / 10


def test_a_pod_that_is_rescheduled_keeps_its_place(hello: tools.Cluster) -> None:
    """Its address changes, and the record in the group with it, by the wrapper around the image's entrypoint."""
    before = hello.get("pod", "hello-1")["status"]["podIP"]
    hello.kubectl("delete", "pod", "hello-1", "--wait=true")

    def back() -> dict[str, Any] | None:
        said = settled(hello, 2)
        member = said["memberStatuses"][1] if said else {}
        return said if said and member["registeredIP"] == member["podIP"] != before else None

    tools.wait("hello-1 back under its new address", back, within=WITHIN)
    wait_first(hello)


def test_up_by_kubectl_scale_and_down(hello: tools.Cluster) -> None:
    hello.kubectl("scale", "xsldcache/hello", "--replicas=3")
    tools.wait("Ready with three members", lambda: settled(hello, 3), within=WITHIN)
    hello.kubectl("scale", "xsldcache/hello", "--replicas=2")
    tools.wait("Ready with two members", lambda: settled(hello, 2), within=WITHIN)
    tools.wait("the third volume is gone", lambda: hello.get("pvc", "vol-hello-2") is None)
    wait_first(hello)


def test_volumes_grow(hello: tools.Cluster) -> None:
    """In place: the same claims, and no member is touched."""
    before = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in hello.items("pods", "-l", OF_HELLO)}
    hello.kubectl("patch", "xsldcache/hello", "--type=merge", "-p", '{"spec": {"storage": {"size": "150Mi"}}}')

    def grown() -> bool:
        claims = hello.items("pvc", "-l", OF_HELLO)
        return ["150Mi", "150Mi"] == [claim["status"]["capacity"]["storage"] for claim in claims]

    tools.wait("both volumes have 150Mi", grown, within=WITHIN)
    tools.wait("Ready with two members", lambda: settled(hello, 2), within=WITHIN)
    assert before == {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in hello.items("pods", "-l", OF_HELLO)}


def test_a_drain_takes_one_member_at_a_time(hello: tools.Cluster) -> None:
    """On the only node the first that goes finds no other place, and the budget holds the second."""
    node = hello.get("nodes")["items"][0]["metadata"]["name"]
    flags = ["--pod-selector", OF_HELLO, "--delete-emptydir-data", "--ignore-daemonsets", "--timeout=60s"]
    try:
        told = hello.kubectl("drain", node, *flags, check=False)
        alive = [
            pod
            for pod in hello.items("pods", "-l", OF_HELLO)
            if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
        ]
    finally:
        hello.kubectl("uncordon", node)
    assert "violate the pod's disruption budget" in told
    assert 1 == len(alive)
    tools.wait("Ready with two members", lambda: settled(hello, 2), within=WITHIN)


def test_a_member_that_fits_on_no_node_is_told(moorage: tools.Cluster) -> None:
    """Required anti-affinity, and one node."""
    cache = caches.Cache(moorage, "apart")
    cache.apply(size=2, pod={"antiAffinity": "Required"})
    try:

        def is_told() -> bool:
            ready = next((c for c in cache.status().get("conditions") or () if c["type"] == "Ready"), {})
            return "can't be scheduled" in ready.get("message", "") and "anti-affinity" in ready.get("message", "")

        tools.wait("why one of the two does not join", is_told, within=WITHIN)
    finally:
        cache.remove()


def test_an_image_rolls_without_losing_an_entry(hello: tools.Cluster) -> None:
    hello.kubectl("patch", "xsldcache/hello", "--type=merge", "-p", '{"spec": {"image": "ibmcom/xsld:8614"}}')

    def rolled() -> dict[str, Any] | None:
        said = settled(hello, 2)
        images = {member["image"] for member in said["memberStatuses"]} if said else set()
        return said if images == {"ibmcom/xsld:8614"} else None

    tools.wait("all members of the new image", rolled, within=WITHIN)
    wait_first(hello)


def test_deleted_nothing_is_left(hello: tools.Cluster) -> None:
    hello.kubectl("delete", "-f", str(HELLO), tools.HANGS)
    owned = ("statefulset", "service", "configmap", "pod", "pvc", "poddisruptionbudget", "rolebinding/moorage-xsld")

    def gone() -> bool:
        labelled = [hello.items(kind, "-l", "xsld.ibm.com/cache=hello") for kind in owned[:-1]]
        return not any(labelled) and hello.get("rolebinding", "moorage-xsld") is None

    tools.wait("everything is gone", gone)
