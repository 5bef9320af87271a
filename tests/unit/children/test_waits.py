"""What lies behind a wait: the cause that most needs somebody, or what a person can do once it takes too long."""

from __future__ import annotations

import pytest

from moorage.children import parts, waits
from moorage.children import reasons as object_reasons
from moorage.runtime import decision
from moorage.runtime.decision import DONE, Verdict, Wait
from tests.unit.children import depots
from tests.unit.children.depots import pod

R = depots.Reason
Pods = tuple[parts.PodSeen, ...]


def one(verdict: Verdict, *pods: parts.PodSeen) -> Verdict:
    """What the step says that would say this."""

    def step(_: Pods) -> Verdict:
        """Its words."""
        return verdict

    (told,) = waits.told((step,), lambda it: it, about_pods={R.ROLLING}, ending={R.ENDING})
    assert ("step", "Its words.") == (told.__name__, told.__doc__), "by these it is shown"
    return told(pods)


def wait(reason: decision.Reason, fix: str = "") -> Wait:
    return Wait(reason, "m", on="pod", within=1.0, fix=fix)


@pytest.mark.parametrize("causes", [("Starting", "ImagePull", "CrashLoop"), ("ImagePull", "", "ProbeFailing")])
def test_a_wait_for_pods_bears_the_cause_that_most_needs_somebody(causes: tuple[str, ...]) -> None:
    """As the reason that it is, which knows what comes next."""
    verdict = one(wait(R.ROLLING), *(pod(n, cause=cause) for n, cause in enumerate(causes)))

    assert isinstance(verdict, Wait)
    assert object_reasons.PodReason.IMAGE_PULL is verdict.cause


def test_a_cause_that_nobody_has_ranked_comes_last() -> None:
    assert "ImagePull" == waits.cause([pod(0, cause="Odd"), pod(1, cause="ImagePull")])
    assert "Odd" == waits.cause([pod(0), pod(1, cause="Odd")])
    assert "" == waits.cause([pod(0)])


def test_what_does_not_end_is_a_persons_business_after_its_time() -> None:
    """Unless the step itself knows better what to do."""
    verdict, own = one(wait(R.ENDING)), one(wait(R.ENDING, "ask the owner"))

    assert isinstance(verdict, Wait)
    assert isinstance(own, Wait)
    assert (waits.LET_GO, "ask the owner") == (verdict.fix, own.fix)


@pytest.mark.parametrize("reason", [R.ROLLING, R.ENDING, R.HELD])
def test_a_pod_that_only_a_person_gets_on_is_not_waited_for(reason: decision.Reason) -> None:
    """Whatever is waited for, if it is this pod; of another's trouble nothing is said."""
    stuck = pod(1, cause="NodeDown", trouble="node n1 is silent", fix="taint it")
    about = Wait(reason, "d-1 (node n1 is silent) is awaited", on="pod", within=1.0)

    verdict = one(about, pod(0), stuck)

    assert isinstance(verdict, decision.Blocked)
    assert object_reasons.PodReason.NODE_DOWN is verdict.reason
    assert (about.message, "taint it") == (verdict.message, verdict.fix)
    assert isinstance(one(wait(reason), stuck), Wait)


@pytest.mark.parametrize(
    "verdict",
    [DONE, wait(R.HELD), decision.Blocked(R.STALLED, "m", "f"), decision.Act(R.ROLLING, "m", ())],
    ids=["done", "a wait for something else", "blocked", "an act"],
)
def test_other_verdicts_stay_as_they_are(verdict: Verdict) -> None:
    assert verdict == one(verdict, pod(0, cause="ImagePull"))


def test_pods_are_named_with_what_is_wrong_with_each() -> None:
    there = {"d-0": pod(0), "d-1": pod(1, trouble="no node fits")}

    assert "d-0, d-1 (no node fits), d-2 (it has no pod)" == waits.each(
        ("d-0", "d-1", "d-2"), lambda name: waits.of_pod(there.get(name))
    )
    assert "the quota is used up" == waits.of_pod(None, "the quota is used up")
    assert "no node fits" == waits.of_pod(there["d-1"], "the quota is used up")
