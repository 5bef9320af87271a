"""Each class of failure comes to an end: it is told by its cause, not tried for ever, and a deletion goes through."""

from __future__ import annotations

import base64
import os

from moorage.api import builtin

from .conftest import CONFIG, JOB, Bench


def hook(name: str, events: str, policy: str = "") -> str:
    """A Job that is a hook; the test says how it ends, and no controller of the cluster."""
    notes = {"helm.sh/hook": events} | ({"helm.sh/hook-delete-policy": policy} if policy else {})
    return (
        "apiVersion: batch/v1\nkind: Job\n"
        f"metadata: {{name: {name}, annotations: {notes}}}\n"
        "spec:\n  managedBy: example.com/test\n"
        "  template: {spec: {restartPolicy: Never, containers: [{name: c, image: 'i{{ .Values.v }}'}]}}\n"
    )


async def test_kinds_without_rights_are_told_by_their_rule_and_the_collector_can_go(bench: Bench) -> None:
    """Nothing was installed: no record, no object, and nothing that could keep a deletion."""
    role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: reader}\nrules: []\n"
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}\n"
    bench.chart(CONFIG, role, pod)
    await bench.apply({"v": 1})

    message = await bench.until("Forbidden", "Stalled")

    assert '{apiGroups: ["rbac.authorization.k8s.io"], resources: [roles], verbs: [' in message
    assert 'apiGroups: [""], resources: [pods]' in message
    assert "extraTenantRules" in message
    assert {} == await bench.records()
    await bench.delete()
    await bench.gone()


PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]}
POD = (
    "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"
    "spec: {automountServiceAccountToken: false, containers: [{name: c, image: i}]}\n"
)


async def test_what_can_not_be_deleted_is_named_with_its_rule(bench: Bench) -> None:
    """Helm says only that it could not; with the rule it can, and with it gone by other hands too."""
    await bench.allow(PODS)
    bench.chart(CONFIG, POD)
    await bench.service_account()
    await bench.apply({"v": 1})
    await bench.until("Released", "Released")
    await bench.withdraw()
    await bench.delete()

    message = await bench.until("Forbidden")

    assert "failed to delete release: odd-it: pods" in message
    assert 'the account has no rights by {apiGroups: [""], resources: [pods], verbs: [' in message
    await bench.client.delete(builtin.POD, bench.tenant, "p", propagation="Background", grace=0)
    await bench.annotate(reconcile_at="now")
    await bench.gone()
    assert {} == await bench.records()


async def test_a_pre_delete_hook_that_fails_is_named_and_passed_by(bench: Bench) -> None:
    """The way out is an annotation; the hook's Job goes too."""
    bench.chart(CONFIG, hook("bye", "pre-delete"))
    await bench.apply({"v": 1})
    await bench.until("Ready")
    await bench.delete()
    await bench.job("bye", "Failed")

    message = await bench.until("HookFailed", "Stalled")

    assert "/bye not ready. status: Failed" in message
    assert "moorage.dev/on-delete=NoHooks" in message
    await bench.annotate(on_delete="NoHooks")
    await bench.gone()
    assert await bench.find(JOB, "bye") is None
    assert await bench.find(builtin.CONFIG_MAP, "main") is None


async def test_an_uninstall_that_was_given_up_leaves_a_deployed_release_without_the_hooks_job(bench: Bench) -> None:
    """Orphan after a hook has failed: the record no longer says that it is being uninstalled."""
    bench.chart(CONFIG, hook("bye", "pre-delete"))
    await bench.apply({"v": 1})
    await bench.until("Ready")
    await bench.delete()
    await bench.job("bye", "Failed")
    await bench.until("HookFailed", "Stalled")
    assert {"1": "uninstalling"} == await bench.records()

    await bench.annotate(on_delete="Orphan")
    await bench.gone()

    assert {"1": "deployed"} == await bench.records()
    assert await bench.find(JOB, "bye") is None
    assert await bench.find(builtin.CONFIG_MAP, "main") is not None


async def test_what_lookup_renders_whole_is_no_endless_try_and_the_good_values_come_back(bench: Bench) -> None:
    """A failed revision once, and the good one again, without what its template would find now."""
    live = (
        '{{ with lookup "v1" "Secret" .Release.Namespace "boot" }}{{ toYaml . }}\n{{ else }}\n'
        "apiVersion: v1\nkind: Secret\nmetadata: {name: boot}\nstringData: {pw: fresh}\n{{ end }}"
    )
    bench.chart(CONFIG, live)
    await bench.apply({"v": 1}, onFailure="Keep")
    await bench.until("Ready")

    await bench.apply({"v": 2}, onFailure="Keep")
    message = await bench.until("UpgradeFailed", "Stalled")

    assert "managedFields must be nil" in message
    assert {"1": "deployed", "2": "failed"} == await bench.records()
    await bench.apply({"v": 1}, onFailure="Keep")
    await bench.until("Ready")
    assert "deployed" == (await bench.records())["3"]
    found = await bench.client.get(builtin.CONFIG_MAP, bench.tenant, "main")
    assert {"v": "1"} == found["data"]


async def test_an_install_that_failed_is_an_install_again(bench: Bench) -> None:
    """Its hooks run, and what the first try has made stays: a claim with data above all."""
    claim = (
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\n"
        "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
    )
    bench.chart(CONFIG, claim, hook("seed", "post-install", "hook-succeeded"))
    await bench.apply({"v": 1}, readyTimeoutSeconds=10)
    await bench.job("seed", "Failed")
    await bench.until("UpgradeFailed", "Stalled")
    before, failed = await bench.find(builtin.VOLUME_CLAIM, "data"), await bench.find(JOB, "seed")
    assert before is not None
    assert failed is not None

    await bench.apply({"v": 2}, readyTimeoutSeconds=10)
    await bench.made_anew(JOB, "seed", failed.uid)
    await bench.job("seed", "Complete")
    await bench.until("Released", "Released")

    after = await bench.find(builtin.VOLUME_CLAIM, "data")
    assert after is not None
    assert before.uid == after.uid
    assert {"1": "failed", "2": "deployed"} == await bench.records()
    assert await bench.find(JOB, "seed") is None


async def test_an_object_that_reaches_outside_on_upgrade_is_seen_before_it_is_made(bench: Bench) -> None:
    """Rendered is what will be done: the first install has no such object."""
    outside = (
        "{{ if .Release.IsUpgrade }}\napiVersion: v1\nkind: ConfigMap\n"
        "metadata: {name: sneaked, namespace: default}\n{{ end }}\n"
    )
    bench.chart(CONFIG, outside)
    await bench.apply({"v": 1})

    message = await bench.until("ReachesOutside", "Stalled")

    assert "ConfigMap sneaked is meant for namespace default" in message
    assert {"1": "deployed"} == await bench.records()


async def test_templates_in_values_reach_nowhere_either(bench: Bench) -> None:
    """What they make appears only when helm runs; the server says no, and nothing is tried again."""
    bench.chart(CONFIG, "{{ range .Values.extra }}\n---\n{{ tpl . $ }}\n{{ end }}\n")
    own = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "there"}}
    await bench.client.create(builtin.CONFIG_MAP, bench.tenant, own, field_manager="test")
    extra = (
        '{{ if lookup "v1" "ConfigMap" .Release.Namespace "there" }}\napiVersion: v1\nkind: ConfigMap\n'
        "metadata: {name: sneaked, namespace: default}\n{{ end }}\n"
    )
    await bench.apply({"v": 1, "extra": [extra]})

    message = await bench.until("ReachesOutside", "Stalled")

    assert 'in the namespace "default"' in message
    assert {} == await bench.records()


async def test_a_lookup_outside_is_told_as_reaching_outside(bench: Bench) -> None:
    """The API server says no; it isn't tried again, and no rule is asked for."""
    bench.chart(CONFIG, '{{ if lookup "v1" "ConfigMap" "kube-system" "x" }}\nunused: true\n{{ end }}\n')
    await bench.apply({"v": 1})

    message = await bench.until("ReachesOutside", "Stalled")

    assert 'in the namespace "kube-system"' in message
    assert "extraTenantRules" not in message
    assert {} == await bench.records()
    await bench.delete()
    await bench.gone()


async def test_a_hook_that_does_not_end_is_named_with_its_pods_trouble_while_it_runs_and_after(bench: Bench) -> None:
    """Its limit is the user's, as helm's --timeout is."""
    bench.chart(CONFIG, hook("seed", "pre-install"))
    await bench.apply({"v": 1}, hookTimeoutSeconds=10)
    await bench.pod_that_can_not_pull("seed")

    running = await bench.until("ImagePull")

    assert "helm is at work: install; hook Job seed: pod seed-x, container c: ImagePullBackOff of i1" in running
    message = await bench.until("UpgradeFailed", "Stalled")
    assert "resource Job/" in message
    assert "hook Job seed: pod seed-x, container c: ImagePullBackOff of i1" in message


async def test_what_can_not_be_changed_is_told_by_what_was_changed(bench: Bench) -> None:
    """The server lists what may be changed, and not what was."""
    template = (
        "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\nspec:\n  serviceName: {{ .Values.v }}\n"
        "  selector: {matchLabels: {app: db}}\n  template:\n    metadata: {labels: {app: db}}\n"
        "    spec: {containers: [{name: c, image: i}]}\n"
    )
    bench.chart(template)
    await bench.apply({"v": "one"})
    await bench.until("Released", "Released")

    await bench.apply({"v": "two"}, onFailure="Keep")
    message = await bench.until("UpgradeFailed", "Stalled")

    assert "updates to statefulset spec for fields other than" in message
    assert "; changed is spec.serviceName" in message


async def test_a_record_that_is_too_large_is_told_with_sizes(bench: Bench) -> None:
    """Chart and values are what its author can make smaller."""
    bench.chart(CONFIG)
    await bench.apply({"v": base64.b64encode(os.urandom(520_000)).decode()})

    message = await bench.until("UpgradeFailed", "Stalled")

    assert "RecordTooLarge: chart (" in message
    assert "bytes, packed) and values (" in message
    assert "1048576 bytes" in message


async def test_a_release_of_hooks_alone_is_ready(bench: Bench) -> None:
    """It has no objects that could be missing."""
    bench.chart(hook("only", "post-install"))
    await bench.apply({"v": 1})
    await bench.job("only")

    await bench.until("Ready")

    await bench.delete()
    await bench.gone()
    assert await bench.find(JOB, "only") is None


async def test_an_object_that_is_rendered_twice_or_without_a_name_is_the_charts_fault(bench: Bench) -> None:
    """And reaches nowhere."""
    bench.chart(CONFIG, CONFIG, "apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: some-}\n")
    await bench.apply({"v": 1})

    message = await bench.until("ChartInvalid", "Stalled")

    assert "ConfigMap main is rendered more than once" in message
    assert "has no metadata.name, but generateName some-" in message
