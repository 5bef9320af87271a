"""What is decided for an installation: each step, verdict and reason, by tables."""

from __future__ import annotations

import msgspec
import pytest

from moorage.api import builtin
from moorage.children import apply, parts
from moorage.operators import accounts
from moorage.operators.opencga import answers, control, names, objects, observation
from moorage.operators.opencga.reasons import Reason
from moorage.operators.opencga.wanted import automation
from moorage.runtime import decision, freshness
from tests.unit import verdicts
from tests.unit.opencga import states
from tests.unit.opencga.states import MASTER, NOW, asleep, demo, fresh
from tests.unit.verdicts import SETTLED, Blocks, Row, Waits, acts

DOWN = freshness.Failed("Down", "the server is down")
NOT_YET = freshness.not_yet("it")
STARTUP, STEP, MIGRATION, GATED = 900.0, 1800.0, 43200.0, 1800.0
SURPLUS = parts.SurplusSeen(builtin.SERVICE, "demo-old", "svc-uid")
DEAD = {"revision": "old", "came_up": False, "ready": False}
LOGS = "kubectl logs"


def row(it: states.It, step: str, shape: verdicts.Shape, says: str = "") -> Row:
    return Row(it.seen, step, shape, says)


def waits(reason: str, on: str, within: float) -> Waits:
    return Waits(reason, on, within, again=states.BUSY)


def unknown(reason: str, on: str, *, unseen: bool = False) -> Waits:
    return Waits(reason, on, 120.0, again=0.0 if unseen else 5.0, unseen=unseen)


def secrets(fault: str, fix: str = "make it") -> freshness.Fresh[observation.SecretsSeen]:
    return freshness.Fresh(observation.SecretsSeen(fault, fix))


def upgrade() -> states.It:
    """The spec names a later version; the MASTER's StatefulSet has it, REST's stays."""
    return demo(version="5.0.1")


def migrated() -> states.It:
    """The catalog is of the later version, so that REST members are to follow."""
    return upgrade().says(catalog_version="5.0.1").says_(MASTER, catalog="5.0.1")


def forbidding(step: str = "WaitStopped", mode: str = "Offline", **changes: object) -> states.It:
    """The MASTER is about to migrate, by a migration that forbids the old version."""
    it = upgrade().wants(upgrade={"migration": mode})
    return it.says_(MASTER, move="Migrate", step=step, since=NOW - 60.0, in_goal=False, **changes)


def all_stopped(it: states.It, *names: str) -> states.It:
    """REST servers have stopped for a migration."""
    it = it.says(stopped_for="5.0.1")
    for name in names:
        it = it.says_(name, move="Migrate", step="WaitMigrated", since=NOW - 30.0, in_goal=False)
    return it


MEMBERS = ("demo-0", "demo-1", "demo-2")
DISABLED = {"processes": [{"name": "demo-1", "disabled": True}]}


PLACE: dict[str, Row] = {
    "all is well": row(demo(), "", SETTLED),
    "a namespace that may hold none": row(
        demo().object(finalizers=()).fact(allowed=False, binding=DOWN, secrets=DOWN),
        "namespace_is_allowed",
        Blocks("NamespaceNotAllowed"),
        "namespace ns may hold no OpenCGA",
    ),
    "no finalizer": row(
        demo().object(finalizers=("x/y",)).fact(binding=freshness.Fresh(None)),
        "finalizer_is_set",
        acts("TakingCare", "finalizer on"),
    ),
    "rights are not looked at yet": row(
        demo().fact(binding=NOT_YET), "rights_are_bound", unknown("Binding", "binding", unseen=True)
    ),
    "no rights": row(
        demo().fact(binding=freshness.Fresh(None)),
        "rights_are_bound",
        acts("Binding", "apply RoleBinding/moorage-opencga new"),
    ),
    "altered rights": row(
        demo().fact(binding=freshness.Fresh(accounts.BindingSeen("u", "1", role=False, subject=True))),
        "rights_are_bound",
        acts("Binding", "delete RoleBinding/moorage-opencga u", "apply RoleBinding/moorage-opencga new"),
    ),
    "a fresh try is asked for": row(
        demo().object(annotations={"moorage.dev/reconcile-at": "2"}),
        "retry_is_honoured",
        acts("Retrying", "remember reconciledAt"),
    ),
}

GIVEN: dict[str, Row] = {
    "a password in a free tree": row(
        demo(additionalOpenCGAConfig={"email.password": "x"}),
        "spec_is_sound",
        Blocks("SpecUnsound"),
        "spec.additionalOpenCGAConfig has a value at email.password",
    ),
    "another number of replicas laid over": row(
        demo(statefulSet={"spec": {"replicas": 5}}),
        "spec_is_sound",
        Blocks("SpecUnsound"),
        "spec.statefulSet.spec: replicas is 5, and spec.members is 3",
    ),
    "no database": row(
        demo(database={}), "database_is_given", Blocks("DatabaseMissing"), "spec.database.hosts names no database"
    ),
    "another's catalog": row(
        demo().fact(catalog_of="first"),
        "catalog_is_its_own",
        Blocks("CatalogTaken"),
        "OpenCGACommunity first has its catalog in the databases of spec.database.hosts that begin with opencga too",
    ),
    "back before a migration": row(
        demo(version="4.9.9"),
        "version_may_change",
        Blocks("Downgrade"),
        "spec.version is 4.9.9, and the catalog was migrated to 5.0.0",
    ),
    "versions are numbers, and no texts": row(
        demo(version="5.0.10").says(catalog_version="5.0.9"),
        "catalog_is_migrated",
        Waits("Migrating", "agents", MIGRATION, again=states.BUSY),
    ),
    "Secrets are not looked at yet": row(
        demo().fact(secrets=NOT_YET), "secrets_are_given", unknown("SecretsUnknown", "secrets", unseen=True)
    ),
    "Secrets can't be looked at": row(
        demo().fact(secrets=DOWN), "secrets_are_given", unknown("SecretsUnknown", "secrets"), "the server is down"
    ),
    "a Secret that is missing": row(
        demo().fact(secrets=secrets("there is no Secret x")),
        "secrets_are_given",
        Blocks("SecretInvalid"),
        "there is no Secret x",
    ),
    "objects are not looked at yet": row(
        demo().fact(objects=NOT_YET), "cluster_is_known", unknown("ClusterUnknown", "objects", unseen=True)
    ),
}

OBJECTS: dict[str, Row] = {
    "Services are missing": row(
        demo().but(children={"Service/demo-svc": apply.Child(), "Service/demo-rest": apply.Child()}),
        "children_exist",
        acts(
            "Applying",
            "apply Service/demo-svc new if name_is_free Service demo-svc",
            "apply Service/demo-rest new if name_is_free Service demo-rest",
        ),
    ),
    "no token": row(
        demo().but(token=apply.Child()),
        "token_is_there",
        acts("MakingToken", "token.make if name_is_free Secret demo-agent-password"),
        "Secret demo-agent-password gets a token",
    ),
    "a token that somebody has spoilt": row(
        demo().but(token=apply.Child("uid-token", differs=("data.password",))),
        "token_is_there",
        acts("MakingToken", "token.make if name_is_free Secret demo-agent-password"),
    ),
    "a token that somebody deletes": row(
        demo().but(token=apply.Child("uid-token", deleting=True)),
        "children_stay",
        Waits("ChildEnding", "child", 600.0),
        "Secret/demo-agent-password is being deleted",
    ),
    "the first document": row(
        demo().says(configuration_version=0).but(published=automation.Published(-1), document=apply.Child()),
        "configuration_is_published",
        acts("Publishing", "apply Secret/demo-config new if name_is_free Secret demo-config"),
        "version 1 of the configuration, for the MASTER and 3 REST members",
    ),
    "another content": row(
        demo().but(published=automation.Published(7, "another")),
        "configuration_is_published",
        acts("Publishing", "apply Secret/demo-config uid-document"),
        "version 8 of",
    ),
    "a document that somebody has put back": row(
        demo()
        .says(configuration_version=9, configuration_digest="x")
        .but(published=automation.Published(3, "another")),
        "configuration_is_published",
        acts("Publishing", "apply Secret/demo-config uid-document"),
        "version 10 of",
    ),
    "the same content keeps its version, though its Secret is touched": row(
        demo().but(document=apply.Child("uid-document", differs=("metadata.labels",))),
        "configuration_is_published",
        acts("Publishing", "apply Secret/demo-config uid-document"),
        "version 7 of",
    ),
    "no MASTER": row(
        demo().but(master=None),
        "master_is_right",
        acts("Creating", "apply StatefulSet/demo-client new if name_is_free StatefulSet demo-client"),
    ),
    "the MASTER's StatefulSet ends": row(
        demo().but(master=msgspec.structs.replace(states.workload(1), child=apply.Child("u", deleting=True))),
        "master_is_right",
        Waits("ChildEnding", "child", 600.0),
    ),
    "somebody has made more MASTERs": row(
        demo().but(master=msgspec.structs.replace(states.workload(3, "m"), child=apply.Child("m", differs=("spec",)))),
        "master_is_right",
        acts(
            "Resizing",
            "apply StatefulSet/demo-client m if member_has_left demo-client-1 if member_has_left demo-client-2",
        ),
    ),
    "a claim template that can't be changed in place": row(
        demo().but(live=msgspec.structs.replace(states.workload(3), fixed=("spec.volumeClaimTemplates",))),
        "members_are_right",
        acts("ReplacingWorkload", "delete StatefulSet/demo sts-uid orphan"),
    ),
    "no REST members: all at once": row(
        demo().but(live=None).no_pod("demo-0", "demo-1", "demo-2"),
        "members_are_right",
        acts("Creating", "apply StatefulSet/demo new if name_is_free StatefulSet demo"),
        "made with 3 pods",
    ),
    "one more at a time": row(
        demo().wants(members=6),
        "members_are_right",
        acts("Resizing", "apply StatefulSet/demo sts-uid"),
        "from 3 to 4 pods",
    ),
    "no other one before the last has applied the document": row(
        demo().wants(members=6).behind("demo-2"),
        "members_apply_configuration",
        waits("ApplyingConfiguration", "agents", STEP),
        "demo-2 has version 1 of the configuration, 7 is wanted: Start, WaitPing",
    ),
    "no other one before the last is ready": row(
        demo().wants(members=6).pod("demo-1", ready=False, trouble="it starts"),
        "all_is_well",
        waits("MembersNotReady", "pod", STARTUP),
        "demo-1 (it starts)",
    ),
    "one less: its place goes first": row(
        demo().wants(members=1).but(published=automation.Published(7, "of three")),
        "configuration_is_published",
        acts("Publishing", "apply Secret/demo-config uid-document"),
        "version 8 of the configuration, for the MASTER and 2 REST members",
    ),
    "one less: then its pod": row(
        demo().wants(members=1),
        "members_are_right",
        acts("Resizing", "apply StatefulSet/demo sts-uid if member_has_left demo-2"),
        "from 3 to 2 pods",
    ),
    "a dead pod of an old template": row(
        demo().pod("demo-1", **DEAD),
        "failing_pods_are_replaced",
        acts("ReplacingDeadPod", "delete Pod/demo-1 uid-demo-1 if pod_is_expendable demo-1 uid-demo-1"),
    ),
    "a dead MASTER of an old template": row(
        demo().pod(MASTER, **DEAD),
        "failing_pods_are_replaced",
        acts("ReplacingDeadPod", f"delete Pod/{MASTER} uid-{MASTER} if pod_is_expendable {MASTER} uid-{MASTER}"),
    ),
    "not a MASTER that installs the catalog": row(
        fresh().pod(MASTER, revision="old"),
        "master_is_replaced",
        waits("UpdateWaits", "agents", MIGRATION),
        f"{MASTER} is at CatalogInstall, and is replaced after that",
    ),
    "volumes that are too small": row(
        demo(volumes={"data": {"size": "20G"}})
        .volume("demo-0", size="10G")
        .volume("demo-1", size="20G")
        .volume("demo-2", size="20G")
        .volume(MASTER, size="20G"),
        "volumes_grow",
        acts(
            "GrowingVolumes",
            "patch PersistentVolumeClaim/data-volume-demo-0 pvc-demo-0 /spec/resources/requests/storage=19531250Ki",
        ),
    ),
    "volumes that can't grow": row(
        demo(volumes={"data": {"size": "20G"}}).volume("demo-0", expandable=False),
        "volumes_grow",
        Blocks("VolumeCannotGrow"),
        "data-volume-demo-0",
    ),
    "the volume of one that has left is kept": row(demo().volume("demo-3"), "", SETTLED),
    "the volume of one that has left": row(
        demo(volumes={"data": {"reclaimOnScaleDown": "Delete"}}).volume("demo-3"),
        "volumes_are_reclaimed",
        acts("ClearingVolume", "delete PersistentVolumeClaim/data-volume-demo-3 pvc-demo-3 if member_has_left demo-3"),
    ),
    "the volume of one whose pod is still there": row(
        demo(volumes={"data": {"reclaimOnScaleDown": "Delete"}}).volume("demo-3").pod("demo-3", deleting=True),
        "surplus_is_gone",
        Waits("SurplusStays", "surplus", 600.0),
        "demo-3",
    ),
    "what nobody asks for": row(
        demo().but(surplus=(SURPLUS,)), "surplus_objects_go", acts("SurplusObject", "delete Service/demo-old svc-uid")
    ),
    "what somebody deletes": row(
        demo().but(children={"Service/demo-svc": apply.Child("u", deleting=True)}),
        "children_stay",
        Waits("ChildEnding", "child", 600.0),
    ),
    "a template that its controller has not looked at": row(
        demo().but(live=msgspec.structs.replace(states.workload(3), revision="")),
        "templates_are_known",
        Waits("Creating", "workload", 300.0, unseen=True),
    ),
    "the MASTER's template that its controller has not looked at": row(
        demo().but(master=msgspec.structs.replace(states.workload(1), revision="")),
        "templates_are_known",
        Waits("Creating", "workload", 300.0, unseen=True),
    ),
}

CATALOG: dict[str, Row] = {
    "agents were not asked": row(
        demo().fact(told=NOT_YET), "agents_are_asked", unknown("MembersUnknown", "agents", unseen=True)
    ),
    "agents could not be asked anew": row(
        demo().fact(told=freshness.Stale((), 0.0, "it took too long")),
        "agents_are_asked",
        Waits("MembersUnknown", "agents", 120.0, again=states.BUSY, unseen=True),
        "it took too long",
    ),
    "the MASTER installs": row(
        fresh(),
        "catalog_is_installed",
        waits("InstallingCatalog", "agents", MIGRATION),
        f"{MASTER} installs the catalog: CatalogInstall, WaitMongo",
    ),
    "the MASTER has no pod": row(
        fresh().no_pod(MASTER),
        "catalog_is_installed",
        waits("InstallingCatalog", "agents", STARTUP),
        f"{MASTER} (it has no pod) installs the catalog",
    ),
    "the MASTER's agent is silent": row(
        fresh().says_(MASTER, fault="no answer within 5 s"),
        "catalog_is_installed",
        waits("InstallingCatalog", "agents", STARTUP),
        f"{MASTER} (its agent: no answer within 5 s)",
    ),
    "what another incarnation told counts for nothing": row(
        fresh().says_(MASTER, uid="before", installed=True, catalog="5.0.0"),
        "catalog_is_installed",
        waits("InstallingCatalog", "agents", STARTUP),
        "its agent was not asked yet",
    ),
    "the catalog can't be installed": row(
        fresh().says_(MASTER, error="another password"),
        "catalog_is_installed",
        Blocks("CatalogFailed"),
        f"{MASTER}: another password",
    ),
    "the MASTER fails before that": row(
        fresh().says_(MASTER, move="RenderConfig", error="no space"),
        "catalog_is_installed",
        Blocks("MemberFailed"),
        "no space",
    ),
    "installed, of the wanted version": row(
        fresh().says_(MASTER, installed=True, catalog="5.0.0"),
        "catalog_is_migrated",
        acts("Migrated", "remember catalogVersion"),
        "version 5.0.0",
    ),
    "installed, of a version that nobody wants": row(
        fresh().says_(MASTER, installed=True, catalog="9.9.9"),
        "catalog_is_migrated",
        waits("Migrating", "agents", MIGRATION),
    ),
    "an upgrade: the MASTER's pod first": row(
        upgrade().pod(MASTER, revision="old"),
        "master_is_replaced",
        acts("ReplacingMaster", f"evict {MASTER} uid-{MASTER} if master_is_idle {MASTER}"),
    ),
    "an upgrade: the MASTER's pod ends": row(
        upgrade().pod(MASTER, revision="old", deleting=True),
        "master_is_replaced",
        waits("ReplacingMaster", "pod", STARTUP),
    ),
    "not a MASTER that migrates": row(
        upgrade().pod(MASTER, revision="old").says_(MASTER, move="Migrate", step="Run", since=NOW - 60.0),
        "master_is_replaced",
        waits("UpdateWaits", "agents", MIGRATION),
    ),
    "a MASTER whose migration has failed": row(
        upgrade().pod(MASTER, revision="old").says_(MASTER, move="Migrate", step="Run", error="no memory"),
        "master_is_replaced",
        acts("ReplacingMaster", f"evict {MASTER} uid-{MASTER} if master_is_idle {MASTER}"),
    ),
    "a MASTER that has migrated for too long": row(
        upgrade().pod(MASTER, revision="old").says_(MASTER, move="Migrate", step="Run", since=NOW - MIGRATION - 1.0),
        "master_is_replaced",
        acts("ReplacingMaster", f"evict {MASTER} uid-{MASTER} if master_is_idle {MASTER}"),
    ),
    "an upgrade: the MASTER migrates, and REST stays": row(
        upgrade().says_(MASTER, move="Migrate", step="Run", since=NOW - 60.0),
        "catalog_is_migrated",
        waits("Migrating", "agents", MIGRATION),
        f"{MASTER} migrates the catalog to 5.0.1: Migrate, Run",
    ),
    "a migration fails": row(
        upgrade().says_(MASTER, move="Migrate", step="Run", error="duplicate key"),
        "catalog_is_migrated",
        Blocks("MigrationFailed"),
        "duplicate key",
    ),
    "a backup is made first": row(
        upgrade().says_(MASTER, move="Backup", step="WaitCommand", since=NOW - 60.0),
        "catalog_is_migrated",
        waits("Migrating", "agents", MIGRATION),
        f"{MASTER} makes a backup before it migrates the catalog to 5.0.1: Backup, WaitCommand",
    ),
    "not a MASTER that makes a backup": row(
        upgrade().pod(MASTER, revision="old").says_(MASTER, move="Backup", step="WaitCommand", since=NOW - 60.0),
        "master_is_replaced",
        waits("UpdateWaits", "agents", MIGRATION),
    ),
    "a backup fails": row(
        upgrade().says_(MASTER, move="Backup", step="Failed", error="the backup failed: disk full"),
        "catalog_is_migrated",
        Blocks("BackupFailed"),
        f"{MASTER}: the backup failed: disk full",
    ),
    "a backup fails while REST servers are stopped": row(
        all_stopped(forbidding(), *MEMBERS).says_(MASTER, move="Backup", step="Failed", error="disk full"),
        "catalog_is_migrated",
        Blocks("BackupFailed"),
        f"{MASTER}: disk full; REST servers stay stopped",
    ),
    "an upgrade: the catalog is migrated": row(
        upgrade().says_(MASTER, catalog="5.0.1"),
        "catalog_is_migrated",
        acts("Migrated", "remember catalogVersion"),
        "version 5.0.1",
    ),
    "a database that was put back to an older state": row(
        migrated().says_(MASTER, catalog="5.0.0"),
        "catalog_is_migrated",
        waits("Migrating", "agents", MIGRATION),
    ),
    "a migration that forbids the old version, and nobody has allowed that": row(
        forbidding("Held", "Auto", error="the old version may not touch the catalog during b: set it"),
        "catalog_is_migrated",
        Blocks("MigrationHeld"),
        f"{MASTER}: the old version may not touch the catalog during b: set it",
    ),
    "REST servers are to be stopped for a migration": row(
        forbidding(),
        "catalog_is_migrated",
        acts("Stopping", "remember stoppedFor"),
        f"REST servers are stopped while {MASTER} migrates the catalog to 5.0.1",
    ),
    "not without leave": row(
        forbidding(mode="Auto"), "catalog_is_migrated", waits("Migrating", "agents", MIGRATION), "WaitStopped"
    ),
    "not while a member leaves": row(
        forbidding().pod("demo-3", deleting=True),
        "catalog_is_migrated",
        waits("Stopping", "pod", STARTUP),
        "demo-3",
    ),
    "not while one member less is wanted": row(
        forbidding().wants(members=2).but(document=apply.Child("uid-document")).says_("demo-2").fact(),
        "members_are_right",
        acts("Resizing", "apply StatefulSet/demo sts-uid if member_has_left demo-2"),
    ),
    "some have stopped for a migration": row(
        all_stopped(forbidding(), "demo-0").says_("demo-1", fault="no answer within 5 s"),
        "catalog_is_migrated",
        waits("Migrating", "agents", MIGRATION),
        f"{MASTER} migrates the catalog to 5.0.1 once these have stopped: "
        "demo-1 (its agent: no answer within 5 s), demo-2: Migrate, WaitStopped",
    ),
    "who is switched off has stopped for a migration too": row(
        all_stopped(forbidding("WaitCommand").wants(automationConfig=DISABLED), "demo-0", "demo-2").says_(
            "demo-1", in_goal=True, server=None
        ),
        "catalog_is_migrated",
        waits("Migrating", "agents", MIGRATION),
        f"{MASTER} migrates the catalog to 5.0.1, while all REST servers are stopped: Migrate, WaitCommand",
    ),
    "all have stopped for a migration": row(
        all_stopped(forbidding("WaitCommand"), *MEMBERS),
        "catalog_is_migrated",
        waits("Migrating", "agents", MIGRATION),
        f"{MASTER} migrates the catalog to 5.0.1, while all REST servers are stopped: Migrate, WaitCommand",
    ),
    "the MASTER is lost meanwhile": row(
        all_stopped(forbidding("WaitCommand"), *MEMBERS).no_pod(MASTER),
        "catalog_is_migrated",
        waits("Migrating", "agents", STARTUP),
        f"{MASTER} (it has no pod) migrates the catalog to 5.0.1, while all REST servers are stopped",
    ),
    "a migration fails while they are stopped": row(
        all_stopped(forbidding("Failed", error="no memory"), *MEMBERS),
        "catalog_is_migrated",
        Blocks("MigrationFailed"),
        f"{MASTER}: no memory; REST servers stay stopped, as it forbids the old version",
    ),
    "migrated while they are stopped": row(
        all_stopped(upgrade().says_(MASTER, catalog="5.0.1"), *MEMBERS),
        "catalog_is_migrated",
        acts("Migrated", "remember catalogVersion no-stoppedFor"),
    ),
    "back to the old version while nothing is migrated": row(demo(version="5.0.0"), "", SETTLED),
}

ROLLING: dict[str, Row] = {
    "the highest of an old template goes first": row(
        migrated().pod("demo-0", revision="old").pod("demo-1", revision="old"),
        "members_roll",
        acts("Updating", "evict demo-1 uid-demo-1 if others_are_ready demo-1"),
    ),
    "one that is not ready goes before": row(
        migrated().pod("demo-0", revision="old", ready=False).pod("demo-1", revision="old"),
        "members_roll",
        acts("Updating", "evict demo-0 uid-demo-0 if others_are_ready demo-0"),
    ),
    "nobody while another is away": row(
        migrated().pod("demo-0", revision="old").pod("demo-1", revision="new").no_pod("demo-2"),
        "members_roll",
        waits("UpdateWaits", "pod", GATED),
        "demo-2 (it has no pod) not ready; demo-0 is not replaced meanwhile",
    ),
    "nobody while the budget lets nobody go": row(
        migrated().pod("demo-0", revision="old").but(disruptions=0),
        "members_roll",
        waits("UpdateWaits", "budget", GATED),
    ),
    "one ends": row(
        migrated().pod("demo-0", revision="old", deleting=True).pod("demo-1", revision="old"),
        "members_roll",
        waits("Updating", "pod", STARTUP),
    ),
    "a new one is to come back": row(
        migrated().pod("demo-0", revision="old").pod("demo-2", ready=False, since=NOW - 60.0, trouble="it starts"),
        "new_members_are_back",
        waits("Updating", "pod", STARTUP),
        "demo-2 is to come back: it starts; then demo-0 is replaced",
    ),
    "a new one does not come back": row(
        migrated().pod("demo-0", revision="old").pod("demo-2", ready=False, since=NOW - STARTUP - 1.0),
        "new_members_are_back",
        Blocks("UpdateStalled"),
        "demo-2 did not come back within 900 s",
    ),
}

GOAL: dict[str, Row] = {
    "an agent fails": row(
        demo().says_("demo-1", error="no space left"),
        "members_apply_configuration",
        Blocks("MemberFailed"),
        "demo-1: no space left",
    ),
    "an agent is silent": row(
        demo().says_("demo-1", fault="it answers with HTTP 500"),
        "members_apply_configuration",
        waits("MemberSilent", "agents", STARTUP),
        "demo-1 (its agent: it answers with HTTP 500)",
    ),
    "who has waited longest is named": row(
        demo().behind("demo-0", since=NOW - 30.0).behind("demo-2", since=NOW - 300.0),
        "members_apply_configuration",
        waits("ApplyingConfiguration", "agents", STEP),
        "demo-2 has version 1 of the configuration, 7 is wanted, and 1 more: Start, WaitPing",
    ),
    "nothing was ever applied": row(
        demo().says_("demo-0", in_goal=False, step="Begin", move="Start"),
        "members_apply_configuration",
        waits("ApplyingConfiguration", "agents", STEP),
        "demo-0 has no configuration, 7 is wanted: Start, Begin",
    ),
    "applied, and not in its goal": row(
        demo().says_("demo-0", configuration=7, in_goal=False),
        "members_apply_configuration",
        waits("ApplyingConfiguration", "agents", STEP),
        "demo-0",
    ),
    "a server tells another version": row(
        demo().says_("demo-1", server=answers.Server("4.0.0")),
        "members_tell_the_version",
        Waits("VersionDiffers", "agents", 600.0, again=states.BUSY),
        "demo-1 tells 4.0.0, and its image is called 5.0.0",
    ),
    "a server needs what is out of order": row(
        demo()
        .says_("demo-1", server=answers.Server("5.0.0", ("Solr",)))
        .says_("demo-2", server=answers.Server("5.0.0", ("CatalogMongoDB", "Solr"))),
        "all_is_well",
        waits("DependencyDown", "agents", STARTUP),
        "CatalogMongoDB (demo-2), Solr (demo-1, demo-2)",
    ),
    "the MASTER is not ready": row(
        demo().pod(MASTER, ready=False, trouble="it starts"),
        "all_is_well",
        waits("MasterNotReady", "pod", STARTUP),
        f"{MASTER} (it starts)",
    ),
    "a server does not answer": row(
        demo().says_("demo-1", server=None, server_fault="connection refused"),
        "all_is_well",
        waits("MembersNotReady", "agents", STARTUP),
        "the server of demo-1 (connection refused) does not answer",
    ),
    "a server that is switched off need not": row(
        demo(automationConfig=DISABLED).says_("demo-1", server=None),
        "",
        SETTLED,
    ),
    "another server is no less wanted for that": row(
        demo(automationConfig={"processes": [{"name": "demo-1", "disabled": True}, {"name": "demo-2"}]}).says_(
            "demo-2", server=None
        ),
        "all_is_well",
        waits("MembersNotReady", "agents", STARTUP),
        "demo-2",
    ),
    "nobody is wanted": row(demo(0), "", SETTLED),
}

LAST_ONE = f"apply StatefulSet/demo-client master-uid if may_hibernate {MASTER}"
HIBERNATES = demo(hibernate=True)
MASTER_LEFT = HIBERNATES.but(live=states.workload(0)).no_pod("demo-0", "demo-1", "demo-2")

HIBERNATION: dict[str, Row] = {
    "REST servers are stopped first, all at once": row(
        HIBERNATES,
        "members_are_right",
        acts(
            "Resizing",
            "apply StatefulSet/demo sts-uid if may_hibernate demo-0 if may_hibernate demo-1 if may_hibernate demo-2",
        ),
        "from 3 to 0 pods",
    ),
    "REST servers end, and the MASTER stays": row(
        HIBERNATES.but(live=states.workload(0)).no_pod("demo-1").pod("demo-0", deleting=True),
        "servers_have_stopped",
        waits("Hibernating", "pod", STARTUP),
        f"still to end: demo-0, demo-2; then {MASTER}",
    ),
    "then the MASTER is stopped": row(MASTER_LEFT, "master_is_right", acts("Resizing", LAST_ONE), "from 1 to 0 pods"),
    "a MASTER that has begun to install when REST servers are stopped": row(
        MASTER_LEFT.says(catalog_version="").says_(MASTER, move="CatalogInstall", step="Run", since=NOW - 60.0),
        "servers_have_stopped",
        waits("Hibernating", "agents", MIGRATION),
        f"{MASTER} is at CatalogInstall, Run; it is stopped after that",
    ),
    "the MASTER ends": row(
        asleep().pod(MASTER, deleting=True),
        "servers_have_stopped",
        waits("Hibernating", "pod", STARTUP),
        f"still to end: {MASTER}",
    ),
    "it hibernates, and is well": row(asleep(), "", SETTLED),
    "it hibernates, and nobody has asked anybody": row(asleep().fact(told=NOT_YET), "", SETTLED),
    "it hibernates, and another version is wanted": row(asleep(version="5.0.1"), "", SETTLED),
    "it was made to hibernate": row(
        asleep().but(live=None),
        "members_are_right",
        acts("Creating", "apply StatefulSet/demo new if name_is_free StatefulSet demo"),
        "made with 0 pods",
    ),
    "not while the MASTER migrates": row(
        upgrade().wants(hibernate=True).says_(MASTER, move="Migrate", step="Run", since=NOW - 60.0),
        "catalog_is_migrated",
        waits("Migrating", "agents", MIGRATION),
    ),
    "not before the MASTER's agent was asked": row(
        HIBERNATES.fact(told=NOT_YET), "agents_are_asked", unknown("MembersUnknown", "agents", unseen=True)
    ),
    "it wakes up: the MASTER": row(
        asleep().wants(hibernate=False),
        "master_is_right",
        acts("Resizing", "apply StatefulSet/demo-client master-uid"),
        "from 0 to 1 pods",
    ),
    "it wakes up: REST members, all at once": row(
        asleep().wants(hibernate=False).but(master=states.workload(1, "master-uid")),
        "members_are_right",
        acts("Resizing", "apply StatefulSet/demo sts-uid"),
        "from 0 to 3 pods",
    ),
}

ROWS = PLACE | GIVEN | OBJECTS | CATALOG | ROLLING | GOAL | HIBERNATION


@pytest.mark.parametrize("name", ROWS)
def test_a_situation_and_what_comes_of_it(name: str) -> None:
    """One row of the tables."""
    verdicts.check(ROWS[name], control.STEPS)


def test_a_version_that_is_reached_is_noted_and_the_steps_go_on() -> None:
    """What was reached is the status's version, although something else may still be waited for."""
    found = decision.decide(migrated().says(version="5.0.0").seen, steps=control.STEPS)
    told = {n: answers.Server("5.0.1") for n in ("demo-0", "demo-1", "demo-2")}
    it = migrated()
    for name, server in told.items():
        it = it.says_(name, server=server)
    noted = decision.decide(it.seen, steps=control.STEPS)

    assert found.standing is not None
    assert "members_tell_the_version" == found.standing.name
    assert noted.standing is None
    assert ["remember version"] == [verdicts.short(action) for act in noted.acts for action in act.actions]
    assert [{"version": "5.0.1"}] == [
        action.fields for act in noted.acts for action in act.actions if isinstance(action, decision.Remember)
    ]


def test_a_step_that_is_overdue_is_a_persons_business() -> None:
    """A wait for an agent begins with its step, and says whose log to read."""
    standing = decision.decide(demo().behind("demo-1").seen, steps=control.STEPS).standing

    assert standing is not None
    assert isinstance(standing.verdict, decision.Wait)
    assert states.ago(60.0) == standing.verdict.since
    assert "kubectl logs demo-1" in standing.verdict.fix


def test_rest_servers_are_stopped_for_one_version_alone() -> None:
    """Not once the catalog is of it, nor when somebody wants another one instead."""
    it = all_stopped(forbidding(), *MEMBERS)

    assert it.seen.placed.stopped
    assert it.seen.document["upgrade"] == {"migration": "Offline", "stopped": True}
    assert not it.wants(version="5.0.0").seen.placed.stopped
    assert not it.wants(version="5.0.2").seen.placed.stopped
    assert not it.says(catalog_version="5.0.1").seen.placed.stopped
    assert not demo().seen.placed.stopped


def test_rest_members_are_of_the_catalogs_version_whatever_the_spec_says() -> None:
    """So they roll when it was migrated, and not before; the MASTER is always ahead."""
    before, after = upgrade().seen, migrated().seen

    assert ("5.0.0", "5.0.1") == (before.placed.rest, before.placed.master)
    assert ("5.0.1", "5.0.1") == (after.placed.rest, after.placed.master)


@pytest.mark.parametrize(
    ("live", "members", "good", "places", "replicas"),
    [
        (None, 3, True, 3, 3),
        (3, 3, True, 3, 3),
        (3, 5, True, 3, 4),
        (3, 1, True, 2, 2),
        (3, 1, False, 2, 3),
        (1, 0, True, 0, 0),
        (0, 2, True, 2, 2),
    ],
)
def test_a_place_comes_after_the_pod_and_goes_before_it(
    live: int | None, members: int, good: bool, places: int, replicas: int
) -> None:
    """In the document, and in the StatefulSet."""
    it = demo(live or 0).wants(members=members)
    it = it.but(live=None) if live is None else it
    seen = (it if good else it.but(published=automation.Published(7, "another"))).seen

    assert (places, replicas) == (seen.placed.members, seen.replicas)


@pytest.mark.parametrize(
    ("it", "kept"),
    [
        (demo(), ""),
        (demo().says_(MASTER, move="CatalogInstall", step="WaitMongo", since=NOW), ""),  # its catalog is installed
        (fresh(), f"{MASTER} is at CatalogInstall, WaitMongo"),
        (upgrade().says_(MASTER, move="Migrate", step="Run", since=NOW), f"{MASTER} is at Migrate, Run"),
        (upgrade().says_(MASTER, move="Migrate", step="Run", since=NOW - MIGRATION - 1.0), ""),
        (upgrade().says_(MASTER, move="Migrate", step="Run", since=NOW, error="x"), ""),
        (upgrade().says_(MASTER, move="Backup", step="WaitCommand", since=NOW), f"{MASTER} is at Backup, WaitCommand"),
        (forbidding(), ""),  # it waits until all have stopped, and has begun nothing
        (demo().says_(MASTER, fault="no answer"), f"{MASTER} is ready, and its agent does not tell what it does"),
        (demo().says_(MASTER, fault="no answer").pod(MASTER, ready=False), ""),
        (demo().fact(told=DOWN), f"the agent of {MASTER} is to be asked first"),
        (demo().but(master=states.workload(0, "master-uid")).fact(told=DOWN), ""),
        (demo().but(master=None).fact(told=DOWN), ""),
    ],
)
def test_what_keeps_one_awake(it: states.It, kept: str) -> None:
    """Only what must not be broken off, and what is not known; the document stays as it was either way."""
    seen = it.wants(hibernate=True).seen

    assert (kept, not kept) == (seen.kept_awake, seen.asleep)
    assert it.seen.document == seen.document


def test_who_has_stopped_stays_so_whatever_is_not_known() -> None:
    """No server comes back for an agent that was not asked, or that has begun something meanwhile."""
    for it in (MASTER_LEFT.fact(told=NOT_YET), MASTER_LEFT.says_(MASTER, move="Migrate", step="Run", since=NOW)):
        assert it.seen.asleep
        assert (0, 1) == (it.seen.replicas, it.seen.masters)
        assert 3 == it.seen.placed.members


def test_nobody_comes_by_what_was_told_a_while_ago() -> None:
    """Nor by a document that is not the one that is wanted: all members must be well, by fresh words of it."""
    it = demo().wants(members=6)
    told = freshness.value_of(it.seen.told)
    assert told is not None

    assert 4 == it.seen.replicas
    assert 3 == it.fact(told=freshness.Stale(told, 0.0, "it took too long")).seen.replicas
    assert 3 == it.but(published=automation.Published(7, "another")).seen.replicas
    assert 3 == it.fact(secrets=NOT_YET).seen.replicas


def test_pods_that_wait_bear_what_is_wrong_with_them() -> None:
    """A wait about pods has the cause that most needs somebody."""
    it = fresh().pod(MASTER, cause="ImagePull", trouble="it can't get the image")
    standing = decision.decide(it.seen, steps=control.told(control.STEPS)).standing

    assert standing is not None
    assert isinstance(standing.verdict, decision.Wait)
    assert "ImagePull" == standing.verdict.cause


# --- on the way out ------------------------------------------------------------------------------------------------

GOING = demo(volumes={"data": {"reclaimOnDelete": "Delete"}})
GONE = GOING.but(live=None, master=None, pods={}, volumes={})
LAST = acts("Leaving", "delete RoleBinding/moorage-opencga rb-uid", "finalizer off")

LEAVING: dict[str, Row] = {
    "the namespace ends": row(
        demo().fact(namespace_ending=True, binding=DOWN), "namespace_ends", acts("Leaving", "finalizer off")
    ),
    "nothing was made": row(
        demo().fact(allowed=False, binding=freshness.Fresh(None)), "nothing_was_made", acts("Leaving", "finalizer off")
    ),
    "nobody knows what was made": row(demo().fact(binding=DOWN), "nothing_was_made", unknown("Binding", "binding")),
    "all is left where it is": row(
        demo().object(annotations={"moorage.dev/on-delete": "Orphan"}),
        "orphaning_is_honoured",
        acts(
            "Leaving",
            "patch Service/demo-svc uid-Service/demo-svc /metadata/ownerReferences=[]",
            "patch Service/demo-rest uid-Service/demo-rest /metadata/ownerReferences=[]",
            "patch PodDisruptionBudget/demo uid-PodDisruptionBudget/demo /metadata/ownerReferences=[]",
            "patch Secret/demo-config uid-document /metadata/ownerReferences=[]",
            "patch Secret/demo-agent-password uid-token /metadata/ownerReferences=[]",
            "patch StatefulSet/demo-client master-uid /metadata/ownerReferences=[]",
            "patch StatefulSet/demo sts-uid /metadata/ownerReferences=[]",
            "finalizer off",
        ),
    ),
    "REST members first": row(GOING, "workloads_are_gone", acts("Removing", "delete StatefulSet/demo sts-uid")),
    "then the MASTER": row(
        GOING.but(live=None), "workloads_are_gone", acts("Removing", "delete StatefulSet/demo-client master-uid")
    ),
    "a StatefulSet ends": row(
        GOING.but(live=msgspec.structs.replace(states.workload(3), child=apply.Child("u", deleting=True))),
        "workloads_are_gone",
        Waits("Removing", "pod", 900.0),
    ),
    "volumes go, each once its pod is gone": row(
        GOING.but(live=None, master=None).no_pod("demo-1", "demo-2", MASTER),
        "volumes_go",
        acts(
            "ClearingVolume",
            "delete PersistentVolumeClaim/data-volume-demo-1 pvc-demo-1",
            "delete PersistentVolumeClaim/data-volume-demo-2 pvc-demo-2",
        ),
    ),
    "the MASTER's volume goes too": row(
        GOING.but(live=None, master=None, pods={}, volumes={MASTER: states.volume(MASTER)}),
        "volumes_go",
        acts("ClearingVolume", f"delete PersistentVolumeClaim/data-volume-{MASTER} pvc-{MASTER}"),
    ),
    "pods end": row(demo().but(live=None, master=None), "pods_are_gone", Waits("Removing", "pod", 900.0), "demo-0"),
    "volumes end": row(
        GONE.volume("demo-0", deleting=True), "volumes_are_gone", Waits("ClearingVolume", "volume", 600.0)
    ),
    "volumes stay": row(demo().but(live=None, master=None, pods={}), "installation_may_go", LAST),
    "nothing is left": row(GONE, "installation_may_go", LAST),
    "others stay in the namespace": row(
        GONE.fact(neighbours=1), "installation_may_go", acts("Leaving", "finalizer off if others_stay")
    ),
    "a spec that can't be worked with is no reason to stay": row(
        demo(additionalOpenCGAConfig={"password": "x"})
        .object(annotations={"moorage.dev/on-delete": "Orphan"})
        .but(live=None, master=None),
        "orphaning_is_honoured",
        acts("Leaving", "finalizer off"),
    ),
}


@pytest.mark.parametrize("name", LEAVING)
def test_on_the_way_out(name: str) -> None:
    """One row of the table."""
    verdicts.check(LEAVING[name], control.DELETION_STEPS)


def test_every_reason_of_a_verdict_is_in_a_table() -> None:
    """No verdict and no reason is left out; facts alone have the others."""
    of_facts = {Reason.INSTALLED, Reason.SERVING, Reason.NOBODY_WANTED, Reason.CURRENT, Reason.VERSION_REACHED}
    of_facts |= {Reason.HIBERNATED, Reason.HIBERNATION_WAITS}
    of_facts |= {Reason.UNKNOWN_KEYS, Reason.UNHEEDED, Reason.HEEDED}
    found = {getattr(each.shape, "reason", "") for each in (ROWS | LEAVING).values()} - {""}

    assert {str(each) for each in Reason} - {str(each) for each in of_facts} == found


def test_every_step_is_in_a_table() -> None:
    """Each is the place where some list stops, but for the one that is tested by itself."""
    found = {each.step for each in ROWS.values()}

    assert {step.__name__ for step in control.STEPS} == found - {""}
    assert {step.__name__ for step in control.DELETION_STEPS} - {"rights_are_bound", "cluster_is_known"} == {
        each.step for each in LEAVING.values()
    }


CLEARS = demo(volumes={"data": {"reclaimOnScaleDown": "Delete"}})


@pytest.mark.parametrize(
    ("it", "clears"),
    [
        (CLEARS.no_pod("demo-1"), False),
        (CLEARS.set_of(2).no_pod("demo-2"), False),
        (CLEARS.wants(members=2).no_pod("demo-2"), False),
        (CLEARS.volume("demo-3"), True),
        (CLEARS.volume("demo-3").pod("demo-3"), False),
        (demo().volume("demo-3"), False),
    ],
    ids=["its pod is made anew", "it is still to come", "it is still to go", "it has left", "its pod ends", "Retain"],
)
def test_a_volume_is_cleared_once_its_member_has_left_and_never_for_want_of_a_pod(it: states.It, clears: bool) -> None:
    """Whose pod is away for a moment comes back to what it had."""
    found = objects.volumes_are_reclaimed(it.seen)

    assert clears is isinstance(found, decision.Act)
    assert clears or found == decision.DONE


def test_only_the_master_is_spared_for_what_it_does_to_the_catalog() -> None:
    """By the moves that the dialect names; not once it has given up."""
    at_work = answers.Agent(move="Migrate", step="Run")

    assert objects.is_at_work(at_work, "CatalogInstall", "Migrate")
    assert not objects.is_at_work(at_work, "CatalogInstall")
    assert not objects.is_at_work(msgspec.structs.replace(at_work, error="x"), "Migrate")
    assert not objects.is_at_work(None, "Migrate")
    assert names.MASTER == "master"


def carried_out(it: states.It) -> list[str]:
    """All that one pass would do."""
    made = decision.decide(it.seen, steps=control.STEPS)
    return [verdicts.short(action) for act in made.acts for action in act.actions]


def test_what_is_well_has_nothing_carried_out() -> None:
    """Not even a note that changes nothing; nor is a version noted that not all have told."""
    assert [] == carried_out(demo())
    assert [] == carried_out(migrated().says_("demo-0", server=None))


def test_a_master_that_does_something_else_is_replaced() -> None:
    """Only its work at the catalog is not broken off."""
    it = upgrade().pod(MASTER, revision="old").says_(MASTER, move="Start", step="WaitPing", since=NOW - 60.0)
    standing = decision.decide(it.seen, steps=control.STEPS).standing

    assert standing is not None
    verdicts.same(standing.verdict, acts("ReplacingMaster", f"evict {MASTER} uid-{MASTER} if master_is_idle {MASTER}"))


def test_an_agent_at_no_step_is_told_without_one() -> None:
    """It has an old configuration, and has not begun: nothing is known of a step, nor since when."""
    standing = decision.decide(demo().says_("demo-1", configuration=1).seen, steps=control.STEPS).standing

    assert standing is not None
    assert isinstance(standing.verdict, decision.Wait)
    assert "demo-1 has version 1 of the configuration, 7 is wanted" == standing.verdict.message
    assert "" == standing.verdict.since
