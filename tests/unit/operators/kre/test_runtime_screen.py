"""What is on the screen of a Runtime."""

from __future__ import annotations

from typing import Any

from moorage.operators.kre.runtime import screen
from moorage.runtime.reporting import screen_rows


def rows(**status: Any) -> dict[str, screen_rows.Row]:
    """By label."""
    return {row.label: row for row in screen.rows(status)}


def test_each_server_is_shown_by_its_pods_and_by_its_own_word() -> None:
    """A pod that is ready says little of a cluster."""
    shown = rows(
        phase="CREATING",
        components=[
            {"name": "mongo", "ready": 1, "wanted": 1},
            {"name": "nats", "ready": 2, "wanted": 2},
            {"name": "minio", "wanted": 1, "message": "pod kre-minio-0: no such image"},
            {"name": "chronograf", "ready": 1, "wanted": 1},
        ],
        conditions=[
            {"type": "MongoReady", "status": "True"},
            {"type": "NatsReady", "status": "False", "message": "NATS has no leader that answers"},
        ],
        release={"name": "kre", "namespace": "ns", "revision": 1, "status": "deployed"},
    )

    assert "CREATING" == shown["Phase"].text
    assert "3 of 4 ready" == shown["Servers"].text
    assert (
        screen_rows.Item("mongo  1 of 1", good=True),
        screen_rows.Item("nats  2 of 2  NATS has no leader that answers", good=False),
        screen_rows.Item("minio  0 of 1  pod kre-minio-0: no such image", good=False),
        screen_rows.Item("chronograf  1 of 1", good=True),
    ) == shown["Servers"].items
    assert "ns/kre  revision 1 deployed" == shown["Release"].text


def test_before_anything_is_known_there_is_a_place_for_objects() -> None:
    assert {screen_rows.OBJECTS} == rows().keys()
