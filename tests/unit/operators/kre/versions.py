"""A RuntimeVersion of two nodes, and what it comes to."""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.operators.kre.version import types

SPEC: dict[str, Any] = {
    "version": "v1",
    "entrypoint": {"proto": {"inline": "service A {}"}, "image": "a/entrypoint:1"},
    "config": [{"name": "GREETING", "value": "hello"}],
    "workflows": [
        {
            "name": "greet",
            "entrypoint": "Greet",
            "exitpoint": "last",
            "nodes": [
                {"name": "first", "image": "a/b:1", "src": "first.py", "subscriptions": ["entrypoint"]},
                {
                    "name": "last",
                    "image": "a/b:1",
                    "src": "last.py",
                    "replicas": 2,
                    "subscriptions": ["first"],
                    "objectStore": {"name": "models"},
                },
            ],
        }
    ],
}
STREAM = "demo_v1_Greet"


def spec(**changed: Any) -> types.RuntimeVersionSpec:
    """It, with that changed."""
    return msgspec.convert({**SPEC, **changed}, types.RuntimeVersionSpec)
