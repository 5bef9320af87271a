"""Owned objects are ready, or the one is named that most needs somebody."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.api import meta
from moorage.children import readiness
from moorage.children import reasons as object_reasons
from moorage.runtime.decision import Blocked
from tests.unit import verdicts
from tests.unit.verdicts import SETTLED, Blocks, Waits


class Front(msgspec.Struct, frozen=True):
    """A Deployment as somebody judged it."""

    name: str
    ready: bool = False
    reason: str = "PodsNotReady"
    message: str = "0 of 1 replicas are ready"
    fix: str = ""

    @property
    def ref(self) -> meta.ObjectRef:
        return meta.ObjectRef("apps/v1", "Deployment", "ns", self.name)


READY = Front("a", ready=True, reason="", message="")
PLAIN = Front("b")
BROKEN = Front("c", reason="ImagePull", message="no such image")
PAUSED = Front("d", reason="RolloutPaused", message="its rollout is paused")
RUNNING = Front("e", reason="JobRunning", message="1 pods run")
LOST = Front("g", reason="NodeDown", message="node n1 does not answer", fix="bring node n1 back")
OWN = Front("f", reason="WordOfItsOwn", message="not yet")

WEAKEST: dict[str, tuple[tuple[Front, ...], Front | None]] = {
    "there is none": ((), None),
    "all are ready": ((READY,), None),
    "the first": ((READY, PLAIN, OWN), PLAIN),
    "one that needs somebody before one that does not": ((PLAIN, BROKEN), BROKEN),
    "what is nobody's fault comes last": ((PAUSED, RUNNING, PLAIN), PLAIN),
    "a pause before a job": ((RUNNING, PAUSED), PAUSED),
}


@pytest.mark.parametrize(("there", "expected"), WEAKEST.values(), ids=WEAKEST)
def test_which_is_spoken_of(there: tuple[Front, ...], expected: Front | None) -> None:
    assert expected == readiness.weakest(there)


@pytest.mark.parametrize(
    ("there", "shape", "says"),
    [
        pytest.param((READY,), SETTLED, "", id="all are ready"),
        pytest.param(
            (READY, BROKEN),
            Waits("ImagePull", "children", 300.0, again=5.0),
            "Deployment c: no such image",
            id="one is not",
        ),
        pytest.param((OWN,), Waits("WordOfItsOwn", "children", 300.0, again=5.0), "not yet", id="by words of its own"),
        pytest.param((PAUSED,), Blocks("RolloutPaused"), "Deployment d: its rollout is paused", id="it is paused"),
        pytest.param(
            (LOST,), Blocks("NodeDown"), "Deployment g: node n1 does not answer", id="only a person gets it on"
        ),
    ],
)
def test_they_are_awaited(there: tuple[Front, ...], shape: verdicts.Shape, says: str) -> None:
    verdicts.same(readiness.are_ready(there, within=300.0, again=5.0), shape, says)


def test_the_reason_is_one_that_knows_what_comes_next() -> None:
    verdict: Any = readiness.are_ready([BROKEN], within=300.0)

    assert object_reasons.PodReason.IMAGE_PULL is verdict.reason
    assert 0.0 == verdict.again


def test_who_paused_a_rollout_is_told_how_to_resume_it() -> None:
    verdict = readiness.are_ready([PAUSED], within=300.0)

    assert isinstance(verdict, Blocked)
    assert "kubectl rollout resume deployment d" == verdict.fix


def test_what_a_person_must_do_is_said_in_the_objects_own_words() -> None:
    verdict = readiness.are_ready([LOST], within=300.0)

    assert isinstance(verdict, Blocked)
    assert "bring node n1 back" == verdict.fix
