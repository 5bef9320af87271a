"""Live looks for one pass: whose words are told in whose status."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from moorage.helm import live_looks, release_request, release_sources
from moorage.runtime import freshness

POD = {"metadata": {"name": "web-0"}, "status": {"containerStatuses": [{"name": "main", "restartCount": 2}]}}


class Logs:
    """A source of last lines that remembers what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str, int]] = []

    def read(self, key: tuple[str, str, str, int], _: Any) -> freshness.Observed[str]:
        self.asked.append(key)
        return freshness.Fresh("the disk is on fire")


@pytest.mark.parametrize(
    ("namespace", "words", "asked"),
    [
        ("acme", "its last words: the disk is on fire", [("acme", "web-0", "main", 2)]),
        ("sales", "its words: kubectl logs -n acme web-0 -c main --previous", []),
    ],
)
def test_a_tenants_log_is_quoted_in_its_own_namespace_alone(namespace: str, words: str, asked: list[Any]) -> None:
    """Elsewhere others read: they are told where the words are, which their own rights decide on."""
    logs = Logs()
    request = SimpleNamespace(
        key="k", owner=SimpleNamespace(namespace=namespace), target=SimpleNamespace(namespace="acme")
    )
    sources = cast("release_sources.Lookups", SimpleNamespace(last_words=logs))
    around = live_looks.Around(sources, cast("release_request.Request", request))
    looks = live_looks.Looks(
        sources, cast("release_request.Request", request), cast("Any", None), cast("Any", None), around
    )
    view = cast("Any", SimpleNamespace(namespace="acme", pods=SimpleNamespace(get=lambda *_: POD)))

    assert words == looks.last_words(view, "web-0", "main", previous=True)
    assert asked == logs.asked
