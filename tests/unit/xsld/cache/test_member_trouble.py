"""What lies behind a wait for members."""

from __future__ import annotations

import msgspec
import pytest

from moorage.children import reasons as object_reasons
from moorage.children import waits
from moorage.operators.xsld.cache import control, member_trouble, observation
from moorage.runtime import decision, freshness
from moorage.runtime.reconcile import status
from tests.unit.xsld.states import It, ago, cache


def troubled(seen: observation.Seen, *causes: str) -> observation.Seen:
    """The same with these causes, pod by pod."""
    pods = tuple(
        msgspec.structs.replace(pod, cause=cause, trouble=f"pod {pod.name}: {cause}")
        for pod, cause in zip(seen.there.pods, causes, strict=False)
    )
    objects = msgspec.structs.replace(seen.there, pods=pods)
    return msgspec.structs.replace(seen, objects=freshness.Fresh(objects))


@pytest.mark.parametrize("causes", [("Starting", "ImagePull", "CrashLoop"), ("ImagePull", "", "ProbeFailing")])
def test_a_wait_for_members_says_what_their_pods_need(causes: tuple[str, ...]) -> None:
    """An image that can't be pulled needs a person from the first moment on, whoever waits for the pod."""
    seen = troubled(cache().off(0, 1, 2).seen, *causes)

    made = decision.decide(seen, steps=member_trouble.told(control.STEPS))
    stands = status.standing(made, ())

    assert isinstance(made.standing.verdict, decision.Wait)  # type: ignore[union-attr]
    assert object_reasons.PodReason.IMAGE_PULL is stands.cause
    assert object_reasons.PodReason.IMAGE_PULL.next == stands.next


STUCK = {"deleting": True, "running": False, "cause": "NodeDown", "trouble": "node n1 is silent", "fix": "taint it"}


@pytest.mark.parametrize(
    ("it", "step"),
    [
        (cache().off(2).pod(2, **STUCK), "members_are_online"),
        (cache().off(0).pod(0, **STUCK), "primary_leads"),
        (cache(derbyReplication={"mode": "Disabled"}).primary(0).off(0).pod(0, **STUCK), "primary_leads"),
    ],
    ids=["a member", "the primary, of which there is a copy", "the primary, of which there is none"],
)
def test_who_is_stuck_on_a_lost_node_is_a_persons_business(it: It, step: str) -> None:
    """Nothing comes by itself, and the status says what is to be done; it stands so however long it takes."""
    made = decision.decide(it.stands(step, age=10_000.0).seen, steps=member_trouble.told(control.STEPS))

    assert made.standing is not None
    assert isinstance(made.standing.verdict, decision.Blocked)
    assert (step, object_reasons.PodReason.NODE_DOWN) == (made.standing.name, made.standing.verdict.reason)
    assert "node n1 is silent" in made.standing.verdict.message
    assert "taint it" == made.standing.verdict.fix


def test_a_wait_for_another_is_none_of_the_stuck_ones() -> None:
    """Who is missing beside it comes by itself, and then the rest is looked at."""
    seen = cache().off(0).pod(2, **STUCK).seen
    made = decision.decide(seen, steps=member_trouble.told(control.STEPS))

    assert isinstance(made.standing.verdict, decision.Wait)  # type: ignore[union-attr]
    assert "c-0" in made.standing.verdict.message  # type: ignore[union-attr]


def test_a_wait_without_trouble_says_its_own() -> None:
    """Nothing is known but that a member is off."""
    stands = status.standing(decision.decide(cache().off(2).seen, steps=member_trouble.told(control.STEPS)), ())

    assert not stands.cause
    assert stands.next


def test_steps_keep_their_names_and_their_words() -> None:
    """By these they are shown."""
    shown = [(step.__name__, step.__doc__) for step in member_trouble.told(control.STEPS)]

    assert [(step.__name__, step.__doc__) for step in control.STEPS] == shown


def test_what_does_not_end_is_a_persons_business_after_its_time() -> None:
    """A finalizer, or a node that is gone, passes by nobody's waiting."""
    leaving = cache().object(deletion_timestamp=ago(1000)).but(workload=None).seen
    made = decision.decide(leaving, steps=member_trouble.told(control.DELETION_STEPS))

    assert "Removing" == made.standing.verdict.reason  # type: ignore[union-attr]
    assert waits.LET_GO == status.standing(made, ()).fix
