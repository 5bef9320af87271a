"""Messages keep helm's words and lose the values."""

from __future__ import annotations

import pytest

from moorage.helm import failures

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
