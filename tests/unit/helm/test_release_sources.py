"""What a source makes of helm's failures."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from moorage.api import builtin, meta
from moorage.helm import observation, release_sources
from moorage.helm import reasons as helm_reasons
from moorage.helm.parsing import aside
from moorage.helm.runs import binary, failures
from moorage.kube import discovery, errors
from moorage.runtime import cancellation, decision, freshness, source
from tests.unit.runtime import fake_api

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
    key = release_sources.RenderKey("c", "v", observation.Target("r", "n"), "", {}, Path("x"), reads_capabilities=True)

    with pytest.raises(source.SourceError) as found:
        await one._template(key)

    assert (reason, transient) == (found.value.reason, found.value.transient)
    assert found.value.reason is reason


class Counting(discovery.Discovery):
    """Tells what is served, and counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    async def capabilities(self) -> discovery.Capabilities:
        number = self.asked = self.asked + 1
        await asyncio.sleep(0)
        return discovery.Capabilities(f"v1.35.{number}", ("v1",))


class Rendering:
    """Renders to the version that it is told of."""

    async def template(self, *given: Any, **_: Any) -> str:
        return str(given[4].kube_version)


@pytest.mark.parametrize(("reads", "asked"), [(True, 3), (False, 1)])
async def test_many_renders_ask_once_what_is_served_unless_the_chart_asks_for_it(reads: bool, asked: int) -> None:
    """What a chart's templates may ask for is asked anew, as it is rendered anew when that has changed."""
    served = Counting()
    given: Any = dict.fromkeys(("client", "store", "chart_source", "work"))
    one = release_sources.Lookups(
        served=served, helm=cast("Any", Rendering()), enqueue=lambda _: None, user=str, **given
    )
    keys = [
        release_sources.RenderKey(
            "c", str(n), observation.Target("r", "n"), "", {}, Path("x"), reads_capabilities=reads
        )
        for n in range(3)
    ]

    rendered = await asyncio.gather(*(one._template(key) for key in keys))

    assert asked == served.asked
    assert {f"v1.35.{number + 1}" for number in range(asked)} == set(rendered)


class Live:
    """Has no object at first, and then a spoilt one, though its version is the same."""

    def __init__(self) -> None:
        self.asked = 0

    def as_(self, _: str) -> Live:
        return self

    async def get(self, *_: Any) -> dict[str, Any]:
        self.asked += 1
        if self.asked == 1:
            raise errors.NotFound("it", errors.Status(404, "NotFound"))
        return {"data": {"a": "spoilt"}}


async def test_an_object_that_was_not_found_for_a_moment_is_looked_at_again() -> None:
    """The watch has it: that it is as it should be was not seen, and must not be taken for so for ever."""
    given: Any = dict.fromkeys(("served", "helm", "store", "chart_source"))
    work = aside.Aside()
    one = release_sources.Lookups(client=cast("Any", Live()), enqueue=lambda _: None, user=str, work=work, **given)
    ref = meta.ObjectRef("v1", "ConfigMap", "n", "it")
    record = release_sources.RecordKey("n", "r", "1")
    key = release_sources.DriftKey(ref, builtin.CONFIG_MAP, "7", record, 0.0, {"data": {"a": "b"}})
    try:
        await fake_api.until(lambda: ("data.a",) == freshness.value_of(one.drift.read(key, "reader")))
    finally:
        await cancellation.stopped(one.drift, work)


async def _nothing(_: str) -> binary.Capabilities:
    return binary.Capabilities()
