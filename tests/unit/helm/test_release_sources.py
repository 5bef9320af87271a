"""What a source makes of helm's failures."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from moorage.helm import observation, release_sources
from moorage.helm import reasons as helm_reasons
from moorage.helm.runs import binary, failures
from moorage.runtime import decision, source

K, R = failures.FailureKind, helm_reasons.Reason


class Helm:
    """Fails so."""

    def __init__(self, kind: failures.FailureKind) -> None:
        self._kind = kind

    async def template(self, *_: Any, **__: Any) -> str:
        raise failures.HelmFailed(self._kind, "words", command="template")


@pytest.mark.parametrize(
    ("kind", "reason", "transient"),
    [
        (K.INVALID, K.INVALID, False),
        (K.SCHEMA_VIOLATION, R.SCHEMA_VIOLATION, False),
        (K.OTHER, R.RENDER_FAILED, False),
        (K.NO_SPACE, K.NO_SPACE, True),
        (K.BINARY_MISSING, K.BINARY_MISSING, False),
    ],
)
async def test_a_render_that_fails_for_good_is_no_passing_trouble(
    kind: failures.FailureKind, reason: decision.Reason, transient: bool
) -> None:
    """What can't heal without a change is Blocked; each bears a reason that says who must change it."""
    one = release_sources.Lookups.__new__(release_sources.Lookups)
    one._helm = cast("Any", Helm(kind))
    one._capabilities = cast("Any", _nothing)  # type: ignore[method-assign]
    key = release_sources.RenderKey("c", "v", observation.Target("r", "n"), "", {}, Path("x"), reads_capabilities=False)

    with pytest.raises(source.SourceError) as found:
        await one._template(key)

    assert (reason, transient) == (found.value.reason, found.value.transient)
    assert found.value.reason is reason


async def _nothing(_: str) -> binary.Capabilities:
    return binary.Capabilities()
