"""What helm's runs hand on when they fail: the kind of the failure, and words without secrets."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from moorage.api import builtin, meta
from moorage.helm import observation, operations, release_sources
from moorage.helm.parsing import aside
from moorage.helm.runs import binary, failures
from moorage.kube import client as kube_client
from moorage.kube import errors
from moorage.runtime import decision

from . import release_states

TARGET = observation.Target("web", "acme")


def record(config: dict[str, Any], manifest: str = "", own: dict[str, Any] | None = None) -> str:
    """A record as the API server gives it."""
    body = {"name": "web", "version": 1, "config": config, "chart": {"values": own or {}}, "manifest": manifest}
    packed = base64.b64encode(gzip.compress(json.dumps(body).encode()))
    return base64.b64encode(packed).decode()


GENERATED = """
apiVersion: v1
kind: Secret
metadata: {name: db}
stringData: {password: made-by-the-chart}
"""
RECORDS = {
    "sh.helm.release.v1.web.v2": record({"password": "of-the-target"}),
    "sh.helm.release.v1.web.v5": record({}, GENERATED, {"smtp": {"token": "of-the-chart"}}),
}
SAID = "refused: of-the-target, known-before, made-by-the-chart, of-the-chart of web"


class Client:
    """Knows these records."""

    user = "u"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def as_(self, _: str) -> Client:
        return self

    async def get(self, _: meta.Resource, __: str, name: str, **___: Any) -> release_sources.SecretView:
        self.asked.append(name)
        if name not in RECORDS:
            raise errors.NotFound(name, errors.Status(404, "NotFound"))
        return release_sources.SecretView(meta.ObjectMeta(name=name), {"release": RECORDS[name]})

    async def list(self, *_: Any, **__: Any) -> kube_client.Listing[meta.Partial]:
        return kube_client.Listing([], "1")


class Helm:
    """Fails with words that quote everything."""

    async def _fail(self, *_: Any, **__: Any) -> binary.Done:
        raise failures.HelmFailed(failures.FailureKind.INVALID, SAID, command="x")

    upgrade_install = rollback = uninstall = _fail


def made(client: Client | None = None) -> operations.Operations:
    """Operations on a release of revision 4."""
    before = release_states.record(revision=4)
    loaded = release_sources.Loaded(before, {}, {"known-before": "values: p"})
    job = operations.Job(
        TARGET, observation.Policy(), builtin.SECRET.ref("acme", "x"), {}, cast("Any", "chart"), loaded
    )
    world = cast("Any", SimpleNamespace(client=client or Client(), gate=SimpleNamespace(timeout=None)))
    return operations.Operations(
        world, cast("Any", None), cast("Any", Helm()), lambda _: job, lambda _: "", aside.Aside()
    )


Do = Callable[[operations.Operations], Awaitable[decision.Outcome]]
WAYS: dict[str, tuple[Do, str]] = {
    "upgrade": (
        lambda r: r.upgrade(None, {"attempt": "a", "digest": "d"}),
        "refused: of-the-target, (values: p), (Secret db: password), (chart: smtp.token) of web",
    ),
    "rollback": (
        lambda r: r.rollback(None, {"attempt": "a", "to": 2}),
        "refused: (values: password), (values: p), (Secret db: password), (chart: smtp.token) of web",
    ),
    "uninstall": (
        lambda r: r.uninstall(None, {"attempt": "a"}),
        "refused: of-the-target, (values: p), (Secret db: password), (chart: smtp.token) of web",
    ),
}


@pytest.mark.parametrize(("do", "words"), WAYS.values(), ids=WAYS)
async def test_a_failure_tells_nothing_of_the_records_that_it_worked_with(do: Do, words: str) -> None:
    """The one before it, the one that a rollback goes to, and the one that it has made itself."""
    assert decision.Refused(failures.FailureKind.INVALID, f"helm x: {words}") == await do(made())


class Missing(Client):
    """Records go, or their namespace has gone, while they are looked for."""

    def __init__(self, said: str) -> None:
        super().__init__()
        self._said = said

    async def list(self, *_: Any, **__: Any) -> kube_client.Listing[meta.Partial]:
        raise errors.NotFound("list Secret acme", errors.Status(404, "NotFound", self._said))


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ('secrets "sh.helm.release.v1.web.v4" not found', failures.FailureKind.CONFLICT),
        ("details withheld, as they may quote secret data", failures.FailureKind.CONFLICT),
        ('namespaces "acme" not found', failures.FailureKind.NO_NAMESPACE),
    ],
)
@pytest.mark.parametrize("way", WAYS)
async def test_a_record_that_goes_meanwhile_is_no_lack_of_a_chart(way: str, said: str, kind: str) -> None:
    """Helm was not begun, and it is tried again: nobody has to correct a name or a version."""
    found = await WAYS[way][0](made(Missing(said)))

    assert isinstance(found, decision.Refused)
    assert (kind, failures.Cure.TIME) == (found.reason, failures.cure(found.reason))


@pytest.mark.parametrize(("way", "revisions"), [("upgrade", {5}), ("rollback", {2, 5}), ("uninstall", {5})])
async def test_only_records_of_revisions_that_there_may_be_are_read(way: str, revisions: set[int]) -> None:
    """The one that a run goes back to, if it does, and after a failure the one that it may have made."""
    client = Client()
    await WAYS[way][0](made(client))

    asked = {name for name in client.asked if name.startswith("sh.helm.release")}
    assert {f"sh.helm.release.v1.web.v{revision}" for revision in revisions} == asked
