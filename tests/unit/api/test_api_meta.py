"""References and resources."""

from __future__ import annotations

import pytest

from moorage.api import builtin, meta


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("plain", "plain"),
        ("system:node.one", "system:node.one"),
        ("../../b/secrets/x", "%2E%2E%2F%2E%2E%2Fb%2Fsecrets%2Fx"),
        ("..", "%2E%2E"),
        (".", "%2E"),
        ("a/b", "a%2Fb"),
        ("%2e%2e", "%252e%252e"),
    ],
)
def test_a_name_is_one_part_of_a_path_whatever_is_in_it(name: str, path: str) -> None:
    """Names come from records that tenants write: none leads to another place. One that would, no object has."""
    assert meta.can_name(name) == (name == path)
    assert f"/api/v1/namespaces/a/secrets/{path}" == builtin.SECRET.path("a", name)
    assert f"/api/v1/namespaces/{path}/secrets/x" == builtin.SECRET.path(name, "x")
