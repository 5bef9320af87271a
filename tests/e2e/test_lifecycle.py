"""A Collector from its first apply to its end, as a user sees it."""

from __future__ import annotations

import json

from . import conftest, tools, trouble


def test_a_collector_is_released_and_leaves_nothing_behind(collector: conftest.Make, moorage: tools.Cluster) -> None:
    """kubectl wait, helm list and helm history see it; after its deletion the tenant's namespace is as before."""
    one = collector()

    moorage.kubectl("wait", f"collector/{one.name}", "--for=condition=Ready", tools.HANGS)

    listed = json.loads(moorage.helm("list", "-A", "-o", "json"))
    assert one.release in [release["name"] for release in listed if release["namespace"] == one.tenant]
    assert ["deployed"] == [revision["status"] for revision in one.history()]
    pods = moorage.items("pods", "-n", one.tenant)
    assert ["Running"] == [pod["status"]["phase"] for pod in pods]

    one.delete()

    assert [] == one.leftovers()
    assert moorage.get("namespace", one.tenant)["metadata"]["annotations"]["moorage.dev/collectors-from"] == "default"


def test_an_edit_rolls_the_pods_once_and_the_same_again_does_nothing(
    collector: conftest.Make, moorage: tools.Cluster, account: str
) -> None:
    """One edit is one revision and one roll; a second apply of the same makes no write at all."""
    one = collector({"replicas": 1})
    one.wait_ready()
    changed = tools.configuration({"config": {"exporters": {"debug": {"verbosity": "basic"}}}})

    one.edit(collector={"configuration": changed})
    one.wait_ready()

    assert 2 == len(one.history())
    assert 2 == len(moorage.items("replicasets", "-n", one.tenant))

    before = tools.quiet(account)  # the pods of before go a moment later, and are told of
    one.edit(collector={"configuration": changed})
    trouble.looked_at_again(one)

    assert [] == tools.writes(tools.audit(before), account)
    assert 2 == len(one.history())
