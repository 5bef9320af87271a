"""What is shown of a RuntimeVersion."""

from __future__ import annotations

from moorage.operators.kre.version import screen
from moorage.runtime.reporting.screen_rows import Item, Row


def test_phase_and_each_workflow_by_its_nodes() -> None:
    """The entrypoint first; who is not well with its own words."""
    nodes = [
        {"workflow": "greet", "name": "first", "state": "STARTED", "ready": 1, "wanted": 1},
        {
            "workflow": "greet",
            "name": "last",
            "state": "ERROR",
            "ready": 0,
            "wanted": 2,
            "restarts": 3,
            "message": "no",
        },
        {"workflow": "", "name": "entrypoint", "state": "STARTING", "wanted": 1},
    ]
    status = {"phase": "ERROR", "runtime": "demo", "nodes": nodes, "missingConfig": ["A", "B"]}

    assert [
        Row("Phase", "ERROR"),
        Row("Runtime", "demo"),
        Row("Entrypoint", "0 of 1 ready", (Item("entrypoint  STARTING  0 of 1", good=False),)),
        Row(
            "Workflow greet",
            "1 of 2 ready",
            (Item("first  STARTED  1 of 1", good=True), Item("last  ERROR  0 of 2  3 restarts  no", good=False)),
        ),
        Row("Without a value", "A, B"),
    ] == list(screen.rows(status))


def test_of_what_was_never_looked_at_nothing_is_shown() -> None:
    """As of a status that is empty."""
    assert [] == list(screen.rows({}))
