"""Releases whose pods, hooks or quotas go wrong: the words a user sees, what is rolled back, and that it heals."""

from __future__ import annotations

from typing import Any

from . import conftest, tools, trouble

Make = conftest.Make

TRICKY = {"chart": "tricky", "cluster": "registry"}
SOON = {"readyTimeoutSeconds": 10}
PROBED = "readiness probe has not passed"
"""How it is told of a pod that runs and is not ready; before it runs other words come."""


def test_a_pod_quota_is_told_in_its_own_words_and_raising_it_heals(collector: Make, moorage: tools.Cluster) -> None:
    """The Deployment is made, its pods can't be."""
    tenant = trouble.tenant(moorage, trouble.own("QuotaOfPods"), objects=(trouble.quota("few", pods="0"),))
    one = collector(trouble.pod(), **TRICKY, tenant=tenant)

    message = one.wait_reason("Quota")

    assert "Deployment tricky-main: " in message
    assert "its pods can't be created: " in message
    assert "exceeded quota: few, requested: pods=1, used: pods=0, limited: pods=0" in message
    moorage.kubectl("patch", "quota", "few", "-n", one.tenant, "--type=merge", "-p", '{"spec":{"hard":{"pods":"5"}}}')
    one.wait_ready()
    assert len(one.history()) == 1


def test_a_quota_that_makes_helm_fail_is_waited_for(collector: Make, moorage: tools.Cluster) -> None:
    """Helm can't make an object; it is tried again with growing delays, and at once when asked for."""
    tenant = trouble.tenant(
        moorage, trouble.own("QuotaOfObjects"), objects=(trouble.quota("none", count_services="0"),)
    )
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "one-too-many"},
        "spec": {"clusterIP": "None", "ports": [{"port": 80}]},
    }
    one = collector({"objects": [service]}, **TRICKY, tenant=tenant)

    message = one.wait_reason("Quota")

    assert (
        "exceeded quota: none, requested: count/services=1, used: count/services=0, limited: count/services=0"
        in message
    )
    assert "tried again at " in message
    assert one.condition("Stalled")["status"] == "False"
    hard = '{"spec":{"hard":{"count/services":"5"}}}'
    moorage.kubectl("patch", "quota", "none", "-n", one.tenant, "--type=merge", "-p", hard)
    one.wait_ready()


def test_a_quota_that_keeps_helm_from_recording_is_waited_for(collector: Make, moorage: tools.Cluster) -> None:
    """Without its record nothing of the release is made."""
    tenant = trouble.tenant(moorage, trouble.own("QuotaOfSecrets"), objects=(trouble.quota("none", count_secrets="0"),))
    one = collector({}, **TRICKY, tenant=tenant)

    message = one.wait_reason("Quota")

    assert "exceeded quota: none, requested: count/secrets=1" in message
    trouble.nothing_was_made(one)
    moorage.kubectl("delete", "quota", "none", "-n", one.tenant)
    one.wait_ready()


def test_a_quota_that_refuses_the_claim_is_told(collector: Make, moorage: tools.Cluster) -> None:
    """The very first object that moorage makes in a namespace."""
    tenant = trouble.tenant(
        moorage, trouble.own("QuotaOfClaims"), objects=(trouble.quota("none", count_configmaps="0"),)
    )
    one = collector({}, **TRICKY, tenant=tenant)

    message = one.wait_reason("Forbidden")

    assert "exceeded quota: none, requested: count/configmaps=1" in message
    moorage.kubectl("delete", "quota", "none", "-n", one.tenant)
    one.wait_ready()


def test_an_image_that_cant_be_pulled_is_named_and_the_right_one_heals(collector: Make) -> None:
    """The first release of all: there is nothing to roll back to, and a new spec goes out at once."""
    one = collector(trouble.pod(image="moorage.invalid/nosuch:1"), **TRICKY)

    message = one.wait_reason("ImagePull")

    assert "container main: " in message
    assert "of moorage.invalid/nosuch:1: " in message
    one.edit(collector={"configuration": tools.configuration(trouble.pod())})
    one.wait_ready()


def test_a_crash_loop_is_told_with_the_place_of_its_words(collector: Make) -> None:
    """The log is the tenant's, and the Collector's readers are others: they are told where it can be read."""
    one = collector(trouble.pod("print('all is well'); print('the disk is on fire'); exit(3)"), **TRICKY)

    message = one.wait_reason("CrashLoop")

    assert "container main ends with exit code 3 each time it is started" in message
    assert f"its words: kubectl logs -n {one.tenant} " in message
    assert message.endswith("-c main --previous")
    assert "fire" not in message


def test_a_pod_that_fits_no_node_is_told_in_the_schedulers_words(collector: Make, moorage: tools.Cluster) -> None:
    """A node selector that no node has; of several nodes all but one are kept for other tests."""
    nodes = len(moorage.items("nodes"))
    one = collector(trouble.pod(nodeSelector={"moon": "full"}), **TRICKY)

    message = one.wait_reason("Unschedulable")

    said = f"can't be scheduled: 0/{nodes} nodes are available: 1 node(s) didn't match Pod's node affinity/selector"
    assert said in message


def test_a_failing_hook_is_not_tried_in_a_loop(collector: Make, moorage: tools.Cluster) -> None:
    """What failed is left alone until the spec changes or a fresh try is asked for."""
    hook = {"event": "pre-install,pre-upgrade", "run": "import os; exit(int(os.environ.get('CODE', '7')))"}
    one = collector({"hook": hook}, **TRICKY)

    message = one.wait_reason("UpgradeFailed")

    failed = f"resource Job/{one.tenant}/tricky-main-hook not ready. status: Failed, message: Job Failed"
    assert message.startswith(f"HookFailed: helm install: failed pre-install: {failed}")
    assert "see why the hook failed" in message
    assert "moorage.dev/reconcile-at" in message
    assert one.condition("Stalled")["status"] == "True"
    trouble.looked_at_again(one)
    assert [each["status"] for each in one.history()] == ["failed"]

    moorage.apply(trouble.config_map("hook-says", {"CODE": "0"}, namespace=one.tenant))
    one.annotate(reconcile_at="now")
    one.wait_ready()
    trouble.looked_at_again(one)
    assert len(one.history()) == 2


def test_an_immutable_field_is_refused_and_the_good_revision_comes_back(collector: Make) -> None:
    """The API server refuses the upgrade; what ran goes on running all the while."""
    one = collector(trouble.pod(labels={"colour": "blue"}), **TRICKY)
    one.wait_ready()
    pods = _pods(one)

    one.edit(collector={"configuration": tools.configuration(trouble.pod(labels={"colour": "red"}))})

    message = one.wait_reason("UpgradeFailed")
    assert message.startswith("Immutable: helm upgrade: ")
    assert "spec.selector" in message
    assert "field is immutable" in message
    assert "; revision 1 was restored" in message
    trouble.looked_at_again(one)
    assert [each["status"] for each in one.history()] == ["superseded", "failed", "deployed"]
    trouble.untouched(one, revisions=3)
    assert _pods(one) == pods

    one.edit(collector={"configuration": tools.configuration(trouble.pod(labels={"colour": "blue"}))})
    one.wait_ready()
    assert _pods(one) == pods
    trouble.looked_at_again(one)
    assert len(one.history()) == 3, "what was restored is what is wanted now"


def test_an_upgrade_that_never_gets_ready_is_rolled_back_once(collector: Make) -> None:
    """After readyTimeoutSeconds; then it is left alone until the spec changes."""
    one = collector(trouble.pod(), **TRICKY)
    one.wait_ready()

    one.edit(collector={"configuration": tools.configuration(_never_ready())})
    tools.wait("its pod runs", lambda: PROBED in str(one.condition("Ready").get("message")))
    one.edit(policy=SOON)  # from now on, as it may take longer until a pod runs

    message = one.wait_reason("UpgradeFailed")
    assert "Deployment tricky-main: " in message
    assert PROBED in message
    assert "; revision 1 was restored" in message
    assert [each["status"] for each in one.history()] == ["superseded", "superseded", "deployed"]
    tools.wait("the restored pods are available", lambda: one.condition("Available").get("status") == "True")
    trouble.looked_at_again(one)
    assert len(one.history()) == 3

    later = {"readyTimeoutSeconds": 300}
    one.edit(collector={"configuration": tools.configuration(trouble.pod(replicas=2))}, policy=later)
    one.wait_ready()
    assert len(one.history()) == 4


def test_an_upgrade_that_never_gets_ready_is_kept_when_asked(collector: Make) -> None:
    """onFailure: Keep leaves it as it is and says why, and that it is late."""
    one = collector(trouble.pod(), **TRICKY, policy=SOON | {"onFailure": "Keep"})
    one.wait_ready()

    one.edit(collector={"configuration": tools.configuration(_never_ready())})

    message = tools.wait("the wait is overdue, and its pod runs", lambda: _overdue(one))
    assert "overdue: expected within 10 s" in message
    assert [each["status"] for each in one.history()] == ["superseded", "deployed"]
    one.edit(collector={"configuration": tools.configuration(trouble.pod())})
    one.wait_ready()


def test_rollbacks_reach_the_good_revision_with_the_shortest_history(collector: Make) -> None:
    """Each failure and each rollback is a revision of its own; helm drops the oldest."""
    one = collector(trouble.pod(labels={"colour": "blue"}), **TRICKY, policy=SOON | {"historyLimit": 2})
    one.wait_ready()

    for colour in ("red", "green"):
        one.edit(collector={"configuration": tools.configuration(trouble.pod(labels={"colour": colour}))})
        generation = one.object()["metadata"]["generation"]
        tools.wait(f"{colour} is rolled back", lambda generation=generation: _restored(one, generation))

        trouble.looked_at_again(one, times=1)
        assert one.history()[-1]["status"] == "deployed"
        assert one.condition("Available")["status"] == "True"


def _never_ready() -> dict[str, Any]:
    return trouble.pod(readyFile=trouble.NEVER_READY)


def _overdue(one: tools.Collector) -> str:
    message = str(one.condition("Ready").get("message"))
    return message if "overdue" in message and PROBED in message else ""


def _restored(one: tools.Collector, generation: int) -> bool:
    ready = one.condition("Ready")
    seen = ready["observedGeneration"] == generation and ready["reason"] == "UpgradeFailed"
    return seen and "was restored" in ready["message"]


def _pods(one: tools.Collector) -> list[str]:
    return [pod["metadata"]["uid"] for pod in one.cluster.items("pods", "-n", one.tenant)]
