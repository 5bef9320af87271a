"""Objects beside a workload: what is missing or differs is written once, what nobody asks for goes."""

from __future__ import annotations

import pytest

from moorage.api import builtin
from moorage.children import apply, objects, parts
from moorage.runtime import decision
from tests.unit import verdicts
from tests.unit.children import depots
from tests.unit.children.depots import CONFIG, SECRET, SERVICE, good, missing
from tests.unit.verdicts import SETTLED, Waits, acts

R = depots.Reason
RIGHT: dict[str, tuple[tuple[parts.Pair, ...], verdicts.Shape, str]] = {
    # id: (what is wanted and what there is, the verdict, its words)
    "nothing is wanted": ((), SETTLED, ""),
    "all are as they should be": ((good(CONFIG), good(SERVICE)), SETTLED, ""),
    "one is missing": (
        (good(CONFIG), missing(SERVICE)),
        acts("Applying", "apply Service/d new if name_is_free Service d"),
        "put right: Service/d (missing)",
    ),
    "one is secret: it is filled in later": (
        (missing(SECRET),),
        acts("Applying", "apply Secret/d-key new with key if name_is_free Secret d-key"),
        "",
    ),
    "the spec has changed": (
        (good(CONFIG, differs=(apply.STAMP,)),),
        acts("Applying", "apply ConfigMap/d-config uid-ConfigMap/d-config"),
        "ConfigMap/d-config (outdated)",
    ),
    "somebody has changed it": (
        (good(CONFIG, differs=("data.a", "data.b")),),
        acts("Applying", "apply ConfigMap/d-config uid-ConfigMap/d-config"),
        "ConfigMap/d-config (changed at data.a, data.b)",
    ),
    "of many changes some are told": (
        (good(CONFIG, differs=tuple("abcdefg")),),
        acts("Applying", "apply ConfigMap/d-config uid-ConfigMap/d-config"),
        "(changed at a, b, c, d, e)",
    ),
    "two at once": (
        (missing(CONFIG), missing(SERVICE)),
        acts(
            "Applying",
            "apply ConfigMap/d-config new if name_is_free ConfigMap d-config",
            "apply Service/d new if name_is_free Service d",
        ),
        "ConfigMap/d-config (missing), Service/d (missing)",
    ),
    "what is being deleted is left alone": ((good(CONFIG, deleting=True, differs=("data.a",)),), SETTLED, ""),
}


@pytest.mark.parametrize(("children", "shape", "says"), RIGHT.values(), ids=RIGHT)
def test_what_is_wanted_is_there(children: tuple[parts.Pair, ...], shape: verdicts.Shape, says: str) -> None:
    verdicts.same(objects.are_right(children, R.APPLYING), shape, says)


def test_what_is_written_anew_is_the_incarnation_that_was_seen() -> None:
    """An apply by name alone would make anew what was deleted meanwhile."""
    verdict = objects.are_right([good(CONFIG, differs=("data.a",))], R.APPLYING)

    assert isinstance(verdict, decision.Act)
    (write,) = verdict.actions
    assert isinstance(write, decision.Apply)
    assert ("uid-ConfigMap/d-config", {"a": "1"}) == (write.body["metadata"]["uid"], write.body["data"])
    assert "ConfigMap/d-config is changed at data.a" == write.why


@pytest.mark.parametrize(
    ("children", "shape", "says"),
    [
        pytest.param((good(CONFIG), missing(SERVICE)), SETTLED, "", id="nothing ends"),
        pytest.param(
            (good(CONFIG, deleting=True), good(SERVICE, deleting=True)),
            Waits("Ending", "child", 600.0),
            "ConfigMap/d-config, Service/d is being deleted",
            id="two end",
        ),
    ],
)
def test_the_end_of_what_somebody_deletes_is_awaited(
    children: tuple[parts.Pair, ...], shape: verdicts.Shape, says: str
) -> None:
    verdicts.same(objects.have_ended(children, R.ENDING), shape, says)


EXTRA = parts.SurplusSeen(builtin.SERVICE, "d-old", "uid-old")
ENDS = parts.SurplusSeen(builtin.CONFIG_MAP, "d-odd", "uid-odd", deleting=True)


@pytest.mark.parametrize(
    ("surplus", "shape", "says"),
    [
        pytest.param((), SETTLED, "", id="there is none"),
        pytest.param((ENDS,), SETTLED, "", id="it ends already"),
        pytest.param(
            (ENDS, EXTRA),
            acts("Surplus", "delete Service/d-old uid-old"),
            "no longer asked for: Service/d-old",
            id="one is left",
        ),
    ],
)
def test_what_nobody_asks_for_goes(surplus: tuple[parts.SurplusSeen, ...], shape: verdicts.Shape, says: str) -> None:
    verdict = objects.surplus_goes(surplus, "ns", R.SURPLUS)

    verdicts.same(verdict, shape, says)
    if isinstance(verdict, decision.Act):
        assert ["ns"] == [action.ref.namespace for action in verdict.actions if isinstance(action, decision.Delete)]


def test_what_should_be_gone_is_told_with_what_holds_it() -> None:
    verdicts.same(objects.are_gone([], R.SURPLUS), SETTLED)
    verdicts.same(
        objects.are_gone(["d-3 (its node is away)", "Service/d-old"], R.SURPLUS),
        Waits("Surplus", "surplus", 600.0),
        "should be gone, and is there still: d-3 (its node is away), Service/d-old",
    )


def test_an_object_that_is_let_go_of_has_no_owner() -> None:
    """So garbage collection leaves it, as it is by uid the one that was seen."""
    patch = objects.let_go(builtin.SERVICE, depots.KEY, "uid-1", "it stays")

    assert "patch Service/d uid-1 /metadata/ownerReferences=[]" == verdicts.short(patch)
    assert ("ns", "it stays") == (patch.ref.namespace, patch.why)
