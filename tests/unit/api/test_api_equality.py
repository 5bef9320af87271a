"""Forms of a value that the API server takes for the same, by place."""

from __future__ import annotations

import pytest

from moorage.api import equality


@pytest.mark.parametrize(
    ("path", "left", "right", "same"),
    [
        (("spec", "resources", "limits", "cpu"), "1000m", "1", True),
        (("spec", "resources", "limits", "cpu"), 1, "1", True),
        (("spec", "resources", "limits", "memory"), "1Gi", "1024Mi", True),
        (("spec", "resources", "limits", "memory"), "1e3", "1k", True),
        (("spec", "resources", "limits", "memory"), "1G", "1Gi", False),
        (("spec", "ports", "targetPort"), "80", 80, True),
        (("spec", "ports", "targetPort"), "http", 80, False),
        (("spec", "interval"), "60m", "1h0m0s", True),
        (("spec", "x"), 1, 1.0, True),
        (("spec", "x"), True, 1, False),
        (("spec", "x"), "true", True, False),
        (("data", "x"), "60m", "1h", False),
        (("data", "x"), "YQ==", "Y Q==", False),
        (("data", "x"), "Y Q==", "YQ==", True),
        (("metadata", "annotations", "x"), "60m", "1h", False),
        (("spec", "containers", "args"), "60m", "1h", False),
        (("spec", "containers", "env", "value"), "1000m", "1", False),
    ],
)
def test_forms(path, left, right, same):
    assert equality.same(path, left, right) is same
