"""Messages keep helm's words and lose the values."""

from __future__ import annotations

import pytest

from moorage.helm.runs import failures

K = failures.FailureKind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('Error: UPGRADE FAILED: secrets is forbidden: User "u" cannot create resource "secrets"', K.FORBIDDEN),
        ('pods "x" is forbidden: exceeded quota: q, requested: pods=1', K.QUOTA),
        ("release: already exists: another operation (install/upgrade/rollback) is in progress", K.PENDING),
        ("Error: release: not found", K.NOT_FOUND),
        (
            "Error: Kubernetes cluster unreachable: the server has asked for the client to provide credentials",
            K.UNAUTHORIZED,
        ),
        (
            'StatefulSet.apps "x" is invalid: spec: Forbidden: updates to statefulset spec for fields other than',
            K.IMMUTABLE,
        ),
        ('admission webhook "x" denied the request: no', K.DENIED),
        ('failed calling webhook "x": context deadline exceeded', K.WEBHOOK_DOWN),
        ("Error: failed pre-install: 1 error occurred: timed out waiting for the condition", K.HOOK_FAILED),
        ("unable to create new content in namespace ns because it is being terminated", K.NAMESPACE_ENDING),
        ("write /tmp/x: no space left on device", K.NO_SPACE),
        ("tls: failed to verify certificate: x509: certificate signed by unknown authority", K.TLS),
        ("etcdserver: request timed out", K.NOT_REACHABLE),
        ("something else", K.OTHER),
    ],
)
def test_classify(text, kind):
    assert failures.classify(text) is kind


def test_words_have_no_log_lines_and_no_prefix():
    text = (
        'level=WARN msg="unable to find exact version"\n'
        "W1128 00:01:59.1 123 warnings.go:70] would violate PodSecurity\n"
        "Error: UPGRADE FAILED: it broke\n  in two lines\n"
    )
    assert failures.words(text) == "it broke\n  in two lines"
    assert failures.warnings(text) == ("unable to find exact version", "would violate PodSecurity")
    assert len(failures.shorten("x" * 9000)) == failures.MAX_WORDS


@pytest.mark.parametrize(
    ("where", "kind"),
    [
        ('in the namespace "acme"', K.FORBIDDEN),
        ('in the namespace "other"', K.OUTSIDE),
        ("at the cluster scope", K.OUTSIDE),
    ],
)
@pytest.mark.parametrize(
    "around",
    ["{}", "failed pre-install: {}", 'template: a:1:3: executing "a" at <lookup "v1">: error calling lookup: {}'],
)
def test_rights_are_missing_inside_and_never_given_outside(where: str, kind: K, around: str) -> None:
    """Whether an object, a hook or a lookup asks for them."""
    said = around.format(f'x "n" is forbidden: User "u" cannot get resource "configmaps" in API group "g" {where}')

    assert failures.classify(said, "acme") is kind
    assert failures.classify(said) is K.FORBIDDEN


def test_a_refusal_says_which_rule_is_missing() -> None:
    """As it is written in a role, without the subresource."""
    said = 'User "u" cannot patch resource "roles/status" in API group "rbac" in the namespace "acme"'

    found = failures.refusal(said)

    assert found is not None
    assert not found.outside("acme")
    verbs = "[get, list, watch, create, update, patch, delete]"
    assert f'{{apiGroups: ["rbac"], resources: [roles], verbs: {verbs}}}' == found.rule
    assert failures.refusal("no such thing") is None


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("metadata.managedFields must be nil", K.INVALID),
        ("failed to delete release: odd", K.NOT_REMOVED),
        ("resource Job/ns/bye not ready. status: Failed, message: Job Failed. failed: 1/1", K.HOOK_FAILED),
        ("interrupted: no helm is at work that would end it", K.KILLED),
    ],
)
def test_more_of_helms_words(text: str, kind: K) -> None:
    """Seen on the real binary."""
    assert failures.classify(text, "ns") is kind
