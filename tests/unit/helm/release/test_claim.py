"""The claim: what is believed of one, as it lies in a tenant's hands."""

from __future__ import annotations

import msgspec
import pytest

from moorage.api import meta
from moorage.helm import observation
from moorage.helm.reasons import Reason
from moorage.helm.release import claim, manifest
from moorage.runtime import decision, freshness
from tests.unit.helm import release_states as states

DIGEST = f"sha256:{'a' * 64}"
PIN = observation.Pin(states.WANTED, observation.ChartSeen("collector", "1.0.0", DIGEST))


def written(**data: str) -> claim.ClaimObject:
    """As moorage writes it, with changes by somebody else."""
    body = claim.body(states.TARGET, states.OWNER)
    metadata = meta.ObjectMeta(name=body["metadata"]["name"], namespace="acme", uid="u", resource_version="7")
    whole = {
        **body["data"],
        "inventory": manifest.dump_inventory(states.INVENTORY),
        "chart": msgspec.json.encode(PIN).decode(),
    }
    return claim.ClaimObject(metadata, whole | data)


def test_what_was_written_is_read() -> None:
    found = claim.read(written())

    assert (states.OWNER, states.INVENTORY, PIN) == (found.owner, found.inventory, found.pin)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"inventory": '[["v1","Secret","other","s",""]]'}, "Secret other/s, which is not in namespace acme"),
        ({"inventory": '[["v1","Namespace","","other",""]]'}, "Namespace other, which is not in namespace acme"),
        ({"inventory": "[[1]]"}, "not an inventory"),
        ({"inventory": "nonsense"}, "not an inventory"),
        ({"owner": "nonsense"}, "malformed"),
        ({"owner": "{}"}, "missing required field"),
        ({"chart": "{}"}, "missing required field"),
        (
            {
                "chart": msgspec.json.encode(
                    observation.Pin(states.WANTED, observation.ChartSeen("../x", "1.0.0", DIGEST))
                ).decode()
            },
            "it pins ../x",
        ),
        (
            {
                "chart": msgspec.json.encode(
                    observation.Pin(states.WANTED, observation.ChartSeen("collector", "1", "../x"))
                ).decode()
            },
            "it pins collector ../x",
        ),
    ],
)
def test_what_moorage_would_not_have_written_is_not_believed(data: dict[str, str], words: str) -> None:
    with pytest.raises(manifest.ManifestError) as refused:
        claim.read(written(**data))

    assert words in str(refused.value)


def test_one_that_was_edited_waits_for_a_person_and_one_not_seen_does_not() -> None:
    broken = claim.unread(states.TARGET, freshness.Failed(claim.BROKEN, "it lists too much", transient=False))
    unseen = claim.unread(states.TARGET, freshness.not_yet("claims"))

    assert isinstance(broken, decision.Blocked)
    assert (Reason.CLAIM_BROKEN, "it lists too much") == (broken.reason, broken.message)
    assert "ConfigMap release.collector-main in namespace acme" in broken.fix
    assert isinstance(unseen, decision.Wait)
