"""What may not be laid over a StatefulSet: what holds it together, what pods may not have, what is no template."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.operators.opencga.wanted import overrides

EMPTY = len('{"template":{"metadata":{"annotations":{"a":""}}}}')
OWN = frozenset({"opencga-rest", "opencga-agent", "opencga-posthook"})


def fault(**fields: Any) -> str:
    return overrides.fault(fields, 3, OWN, "data-volume")


def pod(**fields: Any) -> str:
    return fault(template={"spec": fields})


def container(**fields: Any) -> str:
    return pod(containers=[{"name": "opencga-rest", **fields}])


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (fault(selector={}), "selector can't be set"),
        (fault(serviceName="x"), "serviceName can't be set"),
        (fault(updateStrategy={}), "updateStrategy can't be set"),
        (fault(template={"metadata": {"annotations": {"a": "x" * 70_000}}}), "bytes, and may have 65536"),
        (fault(replicas=2), "replicas is 2, and spec.members is 3"),
        (fault(replicas="3"), "replicas is '3'"),
        (fault(template=[]), "Expected `object`, got `array`"),
        (fault(template={"spec": "x"}), "$.template.spec"),
        (fault(template={"metadata": {"labels": {"a": 1}}}), "$.template.metadata.labels"),
        (pod(containers="x"), "$.template.spec.containers"),
        (pod(containers=[{"image": "x"}]), "missing required field `name`"),
        (container(env=["x"]), "$.template.spec.containers[0].env[0]"),
        (container(resources={"limits": "x"}), "$.template.spec.containers[0].resources.limits"),
        (container(readinessProbe={"periodSeconds": "often"}), "containers[0].readinessProbe.periodSeconds"),
        (container(readinessProbe=[]), "containers[0].readinessProbe"),
        (container(volumeMounts=[{"name": "a"}]), "missing required field `mountPath`"),
        (pod(hostNetwork=True), "template.spec.hostNetwork can't be set"),
        (pod(hostPID=True), "hostPID"),
        (pod(hostIPC=True), "hostIPC"),
        (pod(shareProcessNamespace=True), "shareProcessNamespace"),
        (pod(automountServiceAccountToken=True), "no token of the API server"),
        (pod(securityContext={"runAsUser": 0}), "template.spec.securityContext.runAsUser can't be 0"),
        (pod(securityContext={"runAsNonRoot": False}), "runAsNonRoot can't be false"),
        (pod(securityContext={"seccompProfile": {"type": "Unconfined"}}), "Unconfined"),
        (pod(volumes=[{"name": "a", "hostPath": {"path": "/"}}]), "volumes[0] is of a kind that pods may not have"),
        (pod(volumes=[{"name": "a", "projected": {}}]), "projected"),
        (pod(volumes=[{"name": "a", "nfs": {}, "emptyDir": {}}]), "nfs"),
        (container(securityContext={"privileged": True}), "containers[0].securityContext.privileged can't be true"),
        (container(securityContext={"allowPrivilegeEscalation": True}), "allowPrivilegeEscalation"),
        (container(securityContext={"capabilities": {"add": ["SYS_ADMIN"]}}), "only have NET_BIND_SERVICE"),
        (container(securityContext={"procMount": "Unmasked"}), "procMount"),
        (container(ports=[{"hostPort": 80}]), "containers[0].ports can't have a hostPort"),
        (pod(initContainers=[{"name": "x"}]), "initContainers[0] is named 'x', which is none of opencga-agent"),
        (
            pod(initContainers=[{"name": "x", "image": "x", "securityContext": {"privileged": True}}]),
            "initContainers[0]",
        ),
        (
            pod(volumes=[{"name": "a", "nfs": {}, "hostPath": {}}]),
            "volumes[0] is of a kind that pods may not have: hostPath",
        ),
        (fault(**{"x" * 101: 1}), f"{'x' * 100} can't be set"),
        (pod(ephemeralContainers=[]), "ephemeralContainers can't be set"),
        (fault(volumeClaimTemplates=[{"metadata": {"name": "more"}}]), "volumeClaimTemplates[0] names no size"),
        (fault(volumeClaimTemplates=[{"spec": {}}]), "missing required field `metadata`"),
        (
            fault(
                volumeClaimTemplates=[
                    {"metadata": {"name": "a"}, "spec": {"resources": {"requests": {"storage": "x"}}}}
                ]
            ),
            "regex",
        ),
    ],
)
def test_what_is_refused(said: str, words: str) -> None:
    """In words that name the place."""
    assert words in said


@pytest.mark.parametrize(
    "said",
    [
        fault(),
        fault(replicas=3, minReadySeconds=5),
        fault(template={"metadata": {"annotations": {"a": "x" * (overrides.MOST_BYTES - EMPTY)}}}),
        pod(nodeSelector={"a": "b"}, hostNetwork=False),
        container(securityContext={"capabilities": {"add": ["NET_BIND_SERVICE"]}, "procMount": "Default"}),
        container(image="own:1", ports=[{"containerPort": 1}]),
        container(readinessProbe={"failureThreshold": 40, "exec": {"command": ["x"]}}),
        pod(containers=[{"name": "more", "image": "x"}], volumes=[{"name": "a", "secret": {"secretName": "s"}}]),
        fault(volumeClaimTemplates=[{"metadata": {"name": "data-volume"}}]),
    ],
)
def test_what_is_taken(said: str) -> None:
    """All that restricted Pod Security takes."""
    assert "" == said


def test_what_has_no_value_leaves_what_is_there() -> None:
    """Lists of named things by name, in the order of ours; others as they are laid over."""
    base = {"a": 1, "env": [{"name": "x", "value": "1"}, {"name": "y", "value": "2"}], "args": ["one"]}
    over = {"a": None, "env": [{"name": "z", "value": "3"}, {"name": "x", "value": "9"}], "args": ["two"], "b": {}}

    assert {
        "a": 1,
        "b": {},
        "args": ["two"],
        "env": [{"name": "x", "value": "9"}, {"name": "y", "value": "2"}, {"name": "z", "value": "3"}],
    } == overrides.merged(base, over)


def test_another_kind_of_volume_takes_the_place_of_the_one_before() -> None:
    """Two kinds at once are none; of the same kind both say something."""
    own = [{"name": "tmp", "emptyDir": {"medium": "Memory"}}, {"name": "conf", "emptyDir": {"medium": "Memory"}}]
    over = [{"name": "tmp", "configMap": {"name": "c"}}, {"name": "conf", "emptyDir": {"sizeLimit": "1Mi"}}]

    assert [
        {"name": "tmp", "configMap": {"name": "c"}},
        {"name": "conf", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
    ] == overrides.merged(own, over, "volumes")


@pytest.mark.parametrize(
    ("base", "over"),
    [
        ({"a": 1}, ["x"]),
        (["x"], {"a": 1}),
        ("text", [{"name": "x"}]),
        ([{"name": "x"}], "text"),
        ([{"name": "x"}], [{"name": "y"}, {"value": "nobody's"}]),
        ([{"name": "x"}, {"value": "nobody's"}], [{"name": "y"}]),
        ([{"name": "x"}], [{"name": 7}]),
        ([{"name": "x"}], ["x"]),
        ([{"name": "x"}], 7),
    ],
)
def test_what_is_of_another_form_is_as_it_is_laid_over(base: Any, over: Any) -> None:
    """Also where things have names, and not all of them: nobody knows which is meant."""
    assert {"env": over} == overrides.merged({"env": base}, {"env": over})
