"""Children are judged as the operator judges them."""

from __future__ import annotations

from moorage.api import meta
from moorage.view import children

from . import objects

REF = meta.ObjectRef("apps/v1", "Deployment", "acme", "web")


def test_a_ready_child_needs_no_words() -> None:
    """The mark says it."""
    assert ("True", "", "") == _told(children.of(REF, objects.deployment(1), ()))


def test_a_child_that_is_gone_says_so() -> None:
    """Deleted by hand."""
    assert ("False", "NotFound") == _told(children.of(REF, None, ()))[:2]


def test_its_pods_tell_why_it_is_not_ready() -> None:
    """Those that its selector names, and no others."""
    pods = [objects.pod(app="web"), objects.pod(app="other")]

    state, reason, message = _told(children.of(REF, objects.deployment(0), pods[:1]))

    assert ("False", "ImagePull") == (state, reason)
    assert "no such image" in message
    assert "ImagePull" != children.of(REF, objects.deployment(0), pods[1:]).reason


def test_a_secret_is_named_and_not_read() -> None:
    """Neither ready nor not."""
    assert "Unknown" == children.unread(REF).ready


def _told(child: object) -> tuple[str, str, str]:
    return child.ready, child.reason, child.message
