"""What holds without asking: a member's own word by its scripts, whose pods are believed, whose the template is."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import yaml

from moorage.api import builtin, common_status, meta
from moorage.children import reading
from moorage.kube import errors
from moorage.operators.xsld import names
from moorage.operators.xsld.cache import build
from tests.api.faults import waiting

from . import bench
from .bench import said


async def made(site: bench.Site, size: int, **spec: Any) -> bench.Operator:
    """A cache that stands."""
    operator = site.operator()
    await site.make_cache(size=size, **spec)
    await site.ready()
    return operator


async def alone(site: bench.Site) -> str:
    """Who is said to be the whole group."""
    found = await site.get(builtin.CONFIG_MAP, "cache-scripts")
    return str(found["data"][build.ALONE]) if found else ""


async def annotate(site: bench.Site, value: str | None) -> None:
    await site.patch(names.CACHE, "cache", {"metadata": {"annotations": {common_status.PAUSED: value}}})


async def test_the_first_member_may_serve_alone_until_another_joins_and_again_when_it_is_left(site: bench.Site) -> None:
    await made(site, 1)
    assert "cache-0" == await alone(site)
    assert 0 == await site.node.script("cache-0", "probe.sh")

    await site.change(size=2)
    await site.ready()
    assert "" == await alone(site)
    assert [0, 0] == [await site.node.script(pod, "probe.sh") for pod in ("cache-0", "cache-1")]

    await site.change(size=1)
    await site.ready()
    assert "cache-0" == await alone(site)
    assert 0 == await site.node.script("cache-0", "probe.sh")


async def test_a_first_member_that_comes_back_blank_serves_nobody_and_its_copy_takes_over_at_once(
    site: bench.Site,
) -> None:
    await made(site, 3, derbyReplication={"failoverSeconds": 900})
    copy = (await site.cache()).status.replication.slave
    await annotate(site, "true")
    old = site.node.pod("cache-0").address
    await site.delete(builtin.VOLUME_CLAIM, "vol-cache-0")
    await site.delete(builtin.POD, "cache-0")

    async def is_blank() -> bool:
        container = next((it for it in site.node.containers if it.name == "cache-0" and it.address != old), None)
        try:
            return container is not None and ["cache-0"] == list(await site.members())
        except (OSError, AssertionError):
            return False

    await site.until(is_blank)
    assert 1 == await site.node.script("cache-0", "probe.sh")
    assert 0 == await site.node.script("cache-1", "probe.sh")
    await annotate(site, None)

    async def taken_over() -> bool:
        return copy == (await site.cache()).status.primary

    await site.until(taken_over)
    await site.ready()
    assert 0 == await site.node.script("cache-0", "probe.sh")


async def test_a_server_that_was_stopped_is_told_by_both_probes_and_leaves_nothing_behind(site: bench.Site) -> None:
    """The kernel goes on to accept connections for it."""
    await made(site, 2)
    container = site.node.pod("cache-1")
    assert container.process is not None
    for name in ("probe.sh", "alive.sh"):
        assert 0 == await site.node.script("cache-1", name)
    container.process.send_signal(signal.SIGSTOP)
    try:
        for name in ("probe.sh", "alive.sh"):
            assert 1 == await site.node.script("cache-1", name, XSLD_ANSWER_SECONDS="1")
        await waiting.until(lambda: not asking(), within=10.0)  # `timeout` ends with what it kills, not after it
    finally:
        container.process.send_signal(signal.SIGCONT)
    for name in ("probe.sh", "alive.sh"):
        assert 0 == await site.node.script("cache-1", name)


def asking() -> list[str]:
    """Tools that still ask the server of cache-1."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            words = (process / "cmdline").read_bytes().decode() if process.name.isdecimal() else ""
            state = (process / "stat").read_text().rpartition(")")[2].split()[0] if words else "Z"
        except OSError:
            continue
        if words.split("\0")[0].endswith("scripts-cache-1/ij") and state != "Z":
            found.append(process.name)
    return found


async def test_a_pod_with_the_caches_labels_gets_no_password_and_is_not_believed(site: bench.Site) -> None:
    """Whoever may make pods in the namespace can set any label."""
    env = {"LICENSE": "accept", "MEMBER_NAME": "evil", "SECRET_KEY": bench.SECRET, "XSADMIN_PWD": bench.PASSWORD}
    container = {
        "name": "xsld",
        "image": "ibmcom/xsld:8613",
        "env": [{"name": name, "value": value} for name, value in env.items()],
    }
    labels = {"app": "cache", build.LABEL: "cache", "controller-revision-hash": "old"}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "evil", "labels": labels},
        "spec": {"containers": [container], "nodeSelector": {"members": site.node.name}},
    }
    await site.client.create(builtin.POD, site.namespace, body, field_manager="user")
    await made(site, 2)

    asked = [each["path"] for each in await site.trace("evil")]
    assert [] == asked
    assert "evil" in await site.pods(), "nor is it replaced as if it were one of ours"
    assert ["cache-0", "cache-1"] == [it.name for it in (await site.cache()).status.member_statuses]
    found = await site.get(names.CACHE, "cache")
    assert found is not None
    assert "CertificatesNotVerified" == said(found, "TransportVerified").reason


POLICY = meta.Resource(
    "admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", namespaced=False
)
BINDING = meta.Resource(
    "admissionregistration.k8s.io",
    "v1",
    "ValidatingAdmissionPolicyBinding",
    "validatingadmissionpolicybindings",
    namespaced=False,
)


async def test_the_policy_of_the_guide_keeps_the_label_for_members(site: bench.Site) -> None:
    guide = (Path(__file__).parents[3] / "docs" / "xsld.md").read_text()
    (text,) = (block for block in guide.split("```yaml\n") if "members-are-made-by-statefulsets" in block)
    policy = yaml.safe_load(text.partition("```")[0])
    name = policy["metadata"]["name"] = f"members-{site.namespace}"
    here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": site.namespace}}}
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"], "matchResources": here},
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "x", "image": "x"}]}}

    async def refused(**labels: str) -> bool:
        body = {**pod, "metadata": {"name": "theirs", "labels": labels}}
        try:
            await site.client.create(builtin.POD, site.namespace, body, field_manager="user", dry_run=True)
        except errors.ApiError as error:
            return "is for members of XSLD caches" in str(error)
        return False

    try:
        await site.client.create(POLICY, "", policy, field_manager="test")
        await site.client.create(BINDING, "", binding, field_manager="test")
        await site.until(lambda: refused(**{build.LABEL: "cache"}))
        assert not await refused(app="cache")
        await made(site, 1)  # its StatefulSet may
        await site.patch(builtin.POD, "cache-0", {"metadata": {"annotations": {"a": "b"}}})
        assert "b" == ((await site.get(builtin.POD, "cache-0")) or {})["metadata"]["annotations"]["a"]
    finally:
        await site.client.delete(BINDING, "", name, propagation="Background")
        await site.client.delete(POLICY, "", name, propagation="Background")


async def test_what_is_put_into_the_template_by_hand_is_taken_out_and_replaces_nobody(site: bench.Site) -> None:
    await made(site, 2)
    before = {pod: site.node.pod(pod).address for pod in ("cache-0", "cache-1")}
    template = {
        "metadata": {"labels": {"mine": "x"}},
        "spec": {"hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a"]}]},
    }
    await site.patch(builtin.STATEFUL_SET, "cache", {"spec": {"template": template}})

    async def is_out() -> bool:
        found = await site.get(builtin.STATEFUL_SET, "cache")
        assert found is not None
        there = found["spec"]["template"]
        current = found["status"].get("observedGeneration") == found["metadata"]["generation"]
        return current and "mine" not in there["metadata"]["labels"] and not there["spec"].get("hostAliases")

    await site.until(is_out)
    found = await site.ready()
    assert "Stands" == said(found, "Updating").reason
    assert before == {pod: site.node.pod(pod).address for pod in ("cache-0", "cache-1")}


async def test_a_restart_that_is_asked_for_replaces_one_member_after_another(site: bench.Site) -> None:
    """`kubectl rollout restart statefulset`."""
    await made(site, 2)
    before = {pod: site.node.pod(pod).address for pod in ("cache-0", "cache-1")}
    annotations = {reading.RESTARTED: "2026-01-01T00:00:00Z"}
    await site.patch(builtin.STATEFUL_SET, "cache", {"spec": {"template": {"metadata": {"annotations": annotations}}}})

    async def restarted() -> bool:
        now = {it.name: it.address for it in site.node.containers if not it.deleted.is_set()}
        return now.keys() == before.keys() and all(now[pod] != before[pod] for pod in before)

    await site.until(restarted)
    assert 2 == (await site.ready())["status"]["online"]


async def test_a_statefulset_that_is_made_anew_around_its_pods_is_no_outage(site: bench.Site) -> None:
    """As for a field that can't be changed in place. In between its pods are nobody's, and nobody is asked."""
    await made(site, 2)
    before = {pod: site.node.pod(pod).address for pod in ("cache-0", "cache-1")}
    since = said(await site.ready(), "Available").last_transition_time
    old = await site.get(builtin.STATEFUL_SET, "cache")
    assert old is not None
    await site.client.delete(builtin.STATEFUL_SET, site.namespace, "cache", propagation="Orphan")

    async def is_new() -> bool:
        found = await site.get(builtin.STATEFUL_SET, "cache")
        pods = (await site.client.list(builtin.POD, site.namespace)).items
        owners = {ref["uid"] for pod in pods for ref in pod["metadata"].get("ownerReferences") or ()}
        return (
            found is not None
            and found["metadata"]["uid"] != old["metadata"]["uid"]
            and owners == {found["metadata"]["uid"]}
        )

    await site.until(is_new)
    found = await site.ready()
    assert 2 == found["status"]["online"]
    assert before == {pod: site.node.pod(pod).address for pod in ("cache-0", "cache-1")}
    assert ("True", since) == (said(found, "Available").status, said(found, "Available").last_transition_time)
