"""What is done for a Collector around its release: tenant's namespace, rights, and leaving."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.api import meta
from moorage.helm import observation as helm_observation
from moorage.helm import release_status
from moorage.operators import accounts
from moorage.operators.collector import build, control, types
from moorage.runtime import decision, freshness, tasks
from tests.unit.helm import release_states as states

RIGHTS = accounts.Rights("collector", "moorage-system", "moorage-accounts", "moorage-collector-tenant")
TENANT = control.TenantSeen("ns-uid", False, ("default",))
BINDING = accounts.BindingSeen("rb-uid", "5", role=True, subject=True)
FACTS = ("tenant", "binding")


def seen(**changes: Any) -> control.Seen:
    """A settled Collector default/one of tenant Acme; changes as for `release_states.settled`."""
    whole = control.Seen(
        meta=meta.ObjectMeta(name="one", namespace="default", uid="uid-1", finalizers=(types.FINALIZER,)),
        spec=types.CollectorSpec(types.CollectorRef("collector"), types.Tenant("Acme", "main")),
        rights=RIGHTS,
        namespace_labels={"pod-security.kubernetes.io/enforce": "restricted"},
        configuration=freshness.Fresh(""),
        tenant=freshness.Fresh(TENANT),
        binding=freshness.Fresh(BINDING),
        neighbours=0,
        release=states.settled(),
    )
    known = (freshness.Fresh, freshness.Failed)
    wrapped = {k: freshness.Fresh(v) if k in FACTS and not isinstance(v, known) else v for k, v in changes.items()}
    return msgspec.structs.replace(whole, **wrapped)


def outcome(it: control.Seen, steps: Any = control.STEPS) -> tuple[str, str, list[decision.Action]]:
    """Standing step, reason, and all actions."""
    made = decision.decide(it, steps=steps)
    actions = [action for act in made.acts for action in act.actions]
    if made.standing is None:
        return "", "", actions
    return made.standing.name, str(made.standing.verdict.reason), actions  # type: ignore[union-attr]


def test_a_settled_collector_needs_nothing() -> None:
    assert ("", "", []) == outcome(seen())


def test_a_bad_configuration_is_refused_before_anything_is_touched() -> None:
    fault = freshness.Fresh("byte 3: '*'")
    step, reason, actions = outcome(seen(configuration=fault, meta=meta.ObjectMeta(name="one")))

    assert ("configuration_is_sound", "InvalidConfiguration", []) == (step, reason, actions)


def test_a_configuration_that_is_not_read_yet_is_waited_for_quietly_and_one_that_takes_long_is_told() -> None:
    unread = control.configuration_is_sound(seen(configuration=freshness.not_yet("configuration")))
    slow = control.configuration_is_sound(seen(configuration=freshness.Failed("NoAnswer", "it takes long")))

    assert isinstance(unread, decision.Wait)
    assert isinstance(slow, decision.Wait)
    assert (("ReadingConfiguration", True), False) == ((unread.reason, unread.unseen), slow.unseen)


def test_a_registry_that_does_not_answer_is_named_and_a_record_that_nobody_can_read_needs_a_person() -> None:
    silent = freshness.Failed("NoAnswer", "chart registry oci://r/charts has given no answer since 12:00")
    broken = freshness.Failed("RecordBroken", "release record x can't be read: not gzip", transient=False)
    release = msgspec.structs.replace(states.settled(), chart=silent, released_before=False)

    waits = decision.decide(seen(release=release), steps=control.STEPS).standing
    assert waits is not None
    assert isinstance(waits.verdict, decision.Wait)
    assert ("ChartUnreachable", silent.message, False) == (
        str(waits.verdict.reason),
        waits.verdict.message,
        waits.verdict.unseen,
    )
    for steps in (control.STEPS, control.DELETION_STEPS):
        unread = msgspec.structs.replace(states.settled(), record=broken)
        blocked = decision.decide(seen(release=unread), steps=steps).standing
        assert blocked is not None
        assert isinstance(blocked.verdict, decision.Blocked)
        assert "RecordBroken" == str(blocked.verdict.reason)


def test_the_finalizer_comes_before_the_first_outside_effect() -> None:
    bare = seen(meta=meta.ObjectMeta(name="one", namespace="default"), tenant=None, binding=None)

    step, _, actions = outcome(bare)

    assert "finalizer_is_set" == step
    assert [decision.EditFinalizer] == [type(action) for action in actions]


def test_an_absent_namespace_is_created_and_admits_the_collectors_own() -> None:
    step, _, (create,) = outcome(seen(tenant=None))

    assert "tenant_admits" == step
    assert isinstance(create, decision.Create)
    metadata = create.body["metadata"]
    assert ("acme", {build.ADMITS: "default"}) == (metadata["name"], metadata["annotations"])
    assert "restricted" == metadata["labels"]["pod-security.kubernetes.io/enforce"]


@pytest.mark.parametrize("reference", ["kube-system", "Kube-Public", "moorage-system"])
def test_some_namespaces_are_no_tenants(reference: str) -> None:
    spec = types.CollectorSpec(types.CollectorRef("collector"), types.Tenant(reference, "main"))

    assert ("tenant_admits", "ForbiddenNamespace", []) == outcome(seen(spec=spec))


def test_an_existing_namespace_decides_for_itself() -> None:
    neighbours = control.TenantSeen("ns-uid", False, ("elsewhere",))

    assert ("tenant_admits", "NotAdmitted", []) == outcome(seen(tenant=neighbours))
    assert "" == outcome(seen(tenant=control.TenantSeen("ns-uid", False, ("elsewhere", "default"))))[0]


def test_nothing_is_made_in_a_namespace_that_is_ending() -> None:
    step, reason, actions = outcome(seen(tenant=control.TenantSeen("ns-uid", True, ("default",))))

    assert ("tenant_admits", "NamespaceEnding", []) == (step, reason, actions)


@pytest.mark.parametrize("binding", [None, accounts.BindingSeen("rb-uid", "5", role=True, subject=False)])
def test_missing_or_altered_rights_are_bound(binding: accounts.BindingSeen | None) -> None:
    step, _, (apply,) = outcome(seen(binding=binding))

    assert "rights_are_bound" == step
    assert isinstance(apply, decision.Apply)
    assert RIGHTS.cluster_role == apply.body["roleRef"]["name"]


# --- leaving


def leave(**changes: Any) -> tuple[str, list[str]]:
    step, _, actions = outcome(seen(**changes), control.DELETION_STEPS)
    return step, [type(action).__name__ for action in actions]


def test_with_the_namespace_all_is_gone() -> None:
    assert ("tenant_is_there", ["EditFinalizer"]) == leave(tenant=None, binding=None)


def test_a_namespace_that_is_ending_is_waited_for() -> None:
    assert ("tenant_is_there", []) == leave(tenant=control.TenantSeen("u", True, ()))


@pytest.mark.parametrize("steps", [control.STEPS, control.DELETION_STEPS])
def test_a_namespace_that_does_not_end_is_told_with_its_own_words(steps: Any) -> None:
    """What it waits for itself is one object away."""
    ending = control.TenantSeen("u", True, ("default",), "Some resources are remaining: pods. has 1 resource instances")
    standing = decision.decide(seen(tenant=ending), steps=steps).standing

    assert standing is not None
    assert isinstance(standing.verdict, decision.Wait)
    assert "is being deleted: Some resources are remaining: pods." in standing.verdict.message


def test_a_collector_that_was_never_admitted_may_go() -> None:
    refused = control.TenantSeen("u", False, ())
    nothing = states.nothing(claim=freshness.Failed(helm_observation.NO_RIGHTS, "none"))

    assert ("never_admitted_may_go", ["EditFinalizer"]) == leave(tenant=refused, binding=None, release=nothing)


def test_rights_that_were_taken_away_are_bound_again_to_leave() -> None:
    assert ("rights_are_bound_to_leave", ["Apply"]) == leave(binding=None)


def test_a_namespace_that_admits_no_longer_blocks_and_says_how_to_go_on() -> None:
    released = states.settled(
        status=release_status.HelmStatus(release=release_status.ReleaseStatus("collector-main", "acme", 1))
    )
    it = seen(tenant=control.TenantSeen("u", False, ()), binding=None, release=released)

    made = decision.decide(it, steps=control.DELETION_STEPS)

    verdict = made.standing.verdict  # type: ignore[union-attr]
    assert isinstance(verdict, decision.Blocked)
    assert "moorage.dev/on-delete=Orphan" in verdict.fix


def test_the_last_collector_of_a_tenant_gives_the_rights_back() -> None:
    empty = states.settled(record=None)

    assert ("owner_may_go", ["Delete", "Delete", "EditFinalizer"]) == leave(release=empty)
    assert ("owner_may_go", ["Delete", "EditFinalizer"]) == leave(release=empty, neighbours=1)


def test_rights_bound_again_by_an_interrupted_farewell_are_given_back() -> None:
    assert ("claim_is_known", ["Delete", "EditFinalizer"]) == leave(release=states.settled(claim=None))


def test_a_collector_in_a_namespace_that_ends_with_it_does_not_wait_for_its_end() -> None:
    ending = control.TenantSeen("ns-uid", True, ("acme",))
    inside = meta.ObjectMeta(name="one", namespace="acme", uid="uid-1", finalizers=(types.FINALIZER,))

    made = decision.decide(seen(tenant=ending, meta=inside, binding=None), steps=control.DELETION_STEPS)

    (finalizer,) = made.acts[0].actions
    assert isinstance(finalizer, decision.EditFinalizer)
    assert ["namespace_is_ending"] == [guard.check for guard in finalizer.require]
    assert ("tenant_is_there", []) == leave(tenant=ending)


def test_nothing_is_read_in_the_namespace_after_the_rights_went() -> None:
    made = decision.decide(seen(release=states.settled(claim=None)), steps=control.DELETION_STEPS)
    unbind, finalizer = made.acts[0].actions

    assert ["claim_is_not_mine"] == [guard.check for guard in unbind.require]
    assert () == finalizer.require


def test_one_of_two_that_leave_at_once_knows_that_it_is_the_last() -> None:
    made = decision.decide(seen(release=states.settled(claim=None), neighbours=1), steps=control.DELETION_STEPS)
    (finalizer,) = made.acts[0].actions

    assert ["claim_is_not_mine", "others_stay"] == [guard.check for guard in finalizer.require]


def test_an_orphaning_collector_gives_the_rights_back_too() -> None:
    orphan = states.settled(policy=helm_observation.Policy(orphan=True))

    assert ("orphaning_is_honoured", ["Delete", "Delete", "EditFinalizer"]) == leave(release=orphan)


def test_nothing_is_given_up_while_helm_still_removes_it() -> None:
    """The uninstall would go on in what is nobody's by then."""
    running = tasks.Running("release.uninstall", states.NOW)
    orphan = states.settled(policy=helm_observation.Policy(orphan=True), task=running)

    assert ("no_helm_runs", []) == leave(release=orphan)


def test_the_rights_stay_until_what_an_uninstall_left_is_put_right() -> None:
    """It is put right with them."""
    begun = states.settled(policy=helm_observation.Policy(orphan=True), record=states.record(status="uninstalling"))

    assert ("orphaning_is_honoured", ["Call", "Call"]) == leave(release=begun)


def test_a_fresh_try_can_be_asked_for_on_the_way_out() -> None:
    """As of a hook that was mended."""
    asked = states.settled(reconcile_at="now")

    assert ("retry_is_heard", ["Remember"]) == leave(release=asked)


# --- observations


def test_an_observation_can_be_saved_and_decides_the_same_again() -> None:
    for it in (seen(), seen(tenant=None), seen(release=states.nothing()), seen(binding=freshness.not_yet("rights"))):
        again = msgspec.json.decode(msgspec.json.encode(it), type=control.Seen)

        assert it == again
        assert decision.decide(it, steps=control.STEPS) == decision.decide(again, steps=control.STEPS)
