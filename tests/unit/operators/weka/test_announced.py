"""WekaClients and WekaPolicies: each is told that nothing is done for it, and nothing else happens."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api import meta
from moorage.operators.weka.announced import kind, types
from moorage.runtime import decision
from moorage.runtime.decision import Blocked

METADATA = meta.ObjectMeta(name="a", namespace="ns", uid="u")
CLIENT = types.WekaClient(METADATA, types.WekaClientSpec(image="registry.example/weka:4.4.1"))
POLICY = types.WekaPolicy(METADATA, types.WekaPolicySpec(type="sign-drives"))


@pytest.mark.parametrize(
    ("of", "obj", "said"),
    [(kind.ClientKind(), CLIENT, "WekaClient a"), (kind.PolicyKind(), POLICY, "WekaPolicy a")],
)
def test_it_is_told_and_nothing_is_done(of: Any, obj: Any, said: str) -> None:
    seen = of.observe(obj, 0.0)
    made = decision.decide(seen, steps=of.steps, facts=of.facts, report=of.report)

    assert made.standing is not None
    assert isinstance(found := made.standing.verdict, Blocked)
    assert f"{said} is taken, and moorage does nothing for it yet" == found.message
    assert (True, ()) == (decision.warns(found.reason), made.acts)
    assert {"status": "NotRun"} == made.report
