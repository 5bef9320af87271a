"""OpenCGA: REST servers and one MASTER on a catalog in MongoDB, configured by an agent in each pod.

The operator reaches into no container. It publishes one configuration document with a version, which the agents apply,
and asks them how far they are; what it decides on beside that are objects of the cluster. One direction each:

    spec -> document in a Secret (`wanted.automation`) -> agent -> the server's files, the server, the catalog
    agent's health, server's own word -> `members` -> steps

The steps of an installation (`control`), in order, with what each comes to:

| step | acts | waits | blocks |
|---|---|---|---|
| its place: allowed, finalizer, rights, a fresh try | TakingCare, Binding, Retrying | Binding | NamespaceNotAllowed |
| what is given: spec, database, version | | | SpecUnsound, DatabaseMissing, CatalogTaken, Downgrade |
| what is given: Secrets | | SecretsUnknown | SecretInvalid |
| its objects: Services, budget, token, document | Applying, MakingToken, Publishing | ClusterUnknown | |
| the MASTER's StatefulSet, then that of REST | Creating, Resizing, ReplacingWorkload | ChildEnding | |
| pods that never came up; volumes | ReplacingDeadPod, GrowingVolumes, ClearingVolume | Creating | VolumeCannotGrow |
| one that hibernates has no pod; what follows is for others | | Hibernating | |
| the MASTER's pod is current | ReplacingMaster | ReplacingMaster, UpdateWaits | |
| agents were asked | | MembersUnknown | |
| the catalog is installed | | InstallingCatalog | CatalogFailed |
| the catalog is migrated | Migrated, Stopping | Migrating, Stopping | BackupFailed, MigrationFailed, MigrationHeld |
| REST members are replaced, one after another | Updating | Updating, UpdateWaits | UpdateStalled |
| all have applied the document | | ApplyingConfiguration, MemberSilent | MemberFailed |
| servers tell the version | VersionReached | VersionDiffers | |
| all is well | | DependencyDown, MembersNotReady, MasterNotReady | |
| surplus goes; what somebody deletes comes back | SurplusObject | SurplusStays, ChildEnding | |

An upgrade follows from data, not from a mode: the MASTER is always of `spec.version`, REST members are of the version
that the catalog was migrated to. So they roll when it was, and a kill anywhere changes nothing. Back to the old version
is possible until then.

Going up or down is by one member at a time, but from none. A member that comes gets its pod and then its place in
the document; one that goes loses its place first, and its pod when the document without it is really there.

`names` what all is called; `types` spec and status; `dialect` what the product and the agents are guessed to say;
`wanted` spec to objects and document; `answers` and `members` who is asked, `tokens` by what agents are believed;
`secrets` what is checked of Secrets; `observation`, `control`, `deletion`, `facts` what is decided; `kind` what is
watched; `screen` what people see of it, and `shell` where they have its command line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moorage.operators import system
from moorage.runtime import kind as runtime_kind

from . import config, control, kind, names, reasons, screen, shell, types


def _kinds(settings: config.Config, environment: system.Environment) -> Sequence[runtime_kind.Kind[Any, Any]]:
    return (kind.CommunityKind(settings, environment.namespace),)


SYSTEM = system.System(
    name=names.SYSTEM,
    title="OpenCGA",
    config=config.Config,
    definitions=lambda: (types.definition(),),
    described=(
        system.Described(
            names.COMMUNITY,
            types.CommunityStatus,
            control.STEPS,
            control.DELETION_STEPS,
            screen.rows,
            screen.pods,
            shell.enter,
        ),
    ),
    reasons=(reasons.Reason,),
    kinds=_kinds,
)
