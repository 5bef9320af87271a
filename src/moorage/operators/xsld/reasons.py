"""The reasons of XSLD caches, grids and templates."""

from __future__ import annotations

from moorage.runtime import decision
from moorage.runtime.decision import WARNS


class Reason(decision.Reason):
    """Each with what it means, and with what comes next."""

    # --- the place ---
    NAMESPACE_NOT_ALLOWED = (
        "NamespaceNotAllowed",
        "moorage looks after no caches in this namespace: not in those of Kubernetes itself, nor in any that "
        "systems.xsld.namespaces of its chart leaves out.",
        "make the cache in another namespace, or have moorage's administrator list this one in systems.xsld.namespaces",
    )
    TAKING_CARE = (
        "TakingCare",
        "The finalizer is set, so that nothing is left behind when the resource is deleted.",
        "moorage goes on with the next step at once",
    )
    BINDING = (
        "Binding",
        "The operator is given its rights in the namespace.",
        "the API server is awaited, which takes seconds to know the rights",
    )
    CLUSTER_UNKNOWN = (
        "ClusterUnknown",
        "The objects of the cache are not looked at yet.",
        "moorage's own look is awaited, which takes seconds; if it stays, an administrator must see to what the "
        "message names",
    )

    # --- what the user gives ---
    CREDENTIALS_UNKNOWN = (
        "CredentialsUnknown",
        "The Secret with the credentials is not looked at yet.",
        "moorage's own look is awaited, which takes seconds; if it stays, an administrator must see to what the "
        "message names",
    )
    CREDENTIALS_INVALID = (
        "CredentialsInvalid",
        "The Secret with the credentials is missing, lacks a key, or breaks the password rule; or the Secret with "
        "the CA is missing or holds no certificate.",
        "correct the Secret, spec.credentialsSecretRef or spec.tls.caSecretRef, as the message says",
    )
    CREDENTIALS_REJECTED = (
        "CredentialsRejected",
        "The members refuse the administrator's password; it is tried again regularly.",
        "put the password that the group was made with into the Secret",
    )
    ENTRYPOINT_MISSING = (
        "EntrypointMissing",
        "The ConfigMap in spec.entrypointConfigMap, or its key entrypoint.sh, is missing.",
        "create the ConfigMap with the key entrypoint.sh, or take spec.entrypointConfigMap out",
    )

    # --- the objects of the cluster ---
    APPLYING = (
        "Applying",
        "Services, scripts and the like are made, or put right.",
        "moorage goes on with the next step at once",
    )
    CREATING = (
        "Creating",
        "The StatefulSet is made, or put right.",
        "the pods are awaited; the first start of a member takes 5 to 10 minutes",
    )
    RESIZING = (
        "Resizing",
        "The StatefulSet gets another number of pods.",
        "the StatefulSet's controller is awaited, which makes or ends the pods; members join or have left",
    )
    REPLACING_WORKLOAD = (
        "ReplacingWorkload",
        "The StatefulSet is made anew around its pods, as a field changed that can't be changed in place.",
        "moorage makes the StatefulSet anew at once; the pods stay",
    )
    CHILD_ENDING = (
        "ChildEnding",
        "An object of the cache is being deleted by somebody; it is made anew after that.",
        "the end of the object that the message names is awaited, and of the finalizers that hold it; then it is "
        "made anew",
    )
    LEFTOVER_VOLUME = (
        "LeftoverVolume",
        "A volume of an earlier member is in the way of a new one, as an old volume breaks the group. It is kept by "
        "storage.reclaimOnScaleDown=Retain.",
        "save what you need of the volume that the message names, and delete its PersistentVolumeClaim",
    )
    CLEARING_VOLUME = (
        "ClearingVolume",
        "The volume of a member that has left is deleted.",
        "the end of the volume's claim is awaited, which takes as long as a pod or a finalizer holds it",
    )
    GROWING_VOLUMES = (
        "GrowingVolumes",
        "The volumes are asked to grow.",
        "the storage class's provisioner is awaited",
    )
    VOLUME_CANNOT_GROW = (
        "VolumeCannotGrow",
        "The storage class does not allow volumes to grow.",
        "set allowVolumeExpansion on the storage class, or set spec.storage.size back",
    )
    REPLACING_DEAD_POD = (
        "ReplacingDeadPod",
        "A pod of an old template that was never ready, or whose container can't be kept running, is made anew from "
        "the current template, whatever else is to be done; nothing is lost by it.",
        "the new pod is awaited, of the StatefulSet's controller",
    )
    SURPLUS_OBJECT = (
        "SurplusObject",
        "An object that the spec no longer asks for is deleted.",
        "the objects go at once",
    )

    SURPLUS_STAYS = (
        "SurplusStays",
        "A pod, volume or other object that should be gone is there still; the message says what holds it.",
        "its end is awaited, of Kubernetes; a finalizer is its owner's to take away, and a pod on a node that is gone "
        "ends when the administrator deletes the node, or taints it node.kubernetes.io/out-of-service",
    )

    # --- the group ---
    LOOKING = (
        "Looking",
        "The group is asked anew after something was done.",
        "the members' next answer is awaited, which takes seconds",
    )
    GROUP_UNREACHABLE = (
        "GroupUnreachable",
        "No member answers on its admin API.",
        "an answer of any member is awaited, 5 to 10 minutes for a first start; if it stays, look at the pods that "
        "the message names",
    )
    PRIMARY_UNAVAILABLE = (
        "PrimaryUnavailable",
        "The member that takes administrative writes does not answer; the others serve on.",
        "the primary is awaited; where there is a copy, it takes over after derbyReplication.failoverSeconds",
    )
    PRIMARY_LOST = (
        "PrimaryLost",
        "The primary has lost its volume and forms a group of its own, and there is no copy to take over.",
        "restore the volume of the primary from a backup, or delete the cache and make it anew",
    )
    FAILING_OVER = (
        "FailingOver",
        "The copy of the administrative database becomes the primary.",
        "the group's task is awaited, until the copy is the primary",
    )
    TASK_RUNNING = (
        "TaskRunning",
        "A task that somebody else started runs at the group.",
        "the end of the task that the message names is awaited, of whoever started it",
    )
    JOINING = (
        "Joining",
        "A member joins the group.",
        "the group's task is awaited, for spec.timeouts.join at most",
    )
    JOIN_FAILED = (
        "JoinFailed",
        "A member could not join the group.",
        "look at the log of the member that the message names; it is tried again, less and less often, and in the "
        "end given up",
        WARNS,
    )
    JOIN_GIVEN_UP = (
        "JoinGivenUp",
        "A member failed to join too often.",
        "correct what the member's log and the message say, then set the annotation moorage.dev/reconcile-at to any "
        "new value",
    )
    MEMBER_STARTING = (
        "MemberStarting",
        "A pod has not yet begun to answer, so that it can't join.",
        "the member's pod is awaited; the first start takes 5 to 10 minutes, and the message says what keeps it",
    )
    REJOINING = (
        "Rejoining",
        "A member that came back without its state leaves the group, and then joins anew.",
        "the group's task is awaited; then the member joins anew",
    )
    DISJOINING = (
        "Disjoining",
        "A member leaves the group; its data moves to the others first.",
        "the group's task is awaited, for spec.timeouts.disjoin at most",
    )
    DISJOIN_FAILED = (
        "DisjoinFailed",
        "A member could not leave the group.",
        "look at the log of the primary; it is tried again, less and less often, and in the end given up",
        WARNS,
    )
    DISJOIN_GIVEN_UP = (
        "DisjoinGivenUp",
        "A member failed to leave too often.",
        "correct what the primary's log and the message say, then set the annotation moorage.dev/reconcile-at to "
        "any new value",
    )
    GROUP_DEGRADED = (
        "GroupDegraded",
        "A member is not Online; nobody joins, leaves or changes its role meanwhile, as far as that hangs on it.",
        "the members that the message names are awaited, of their pods; if one stays away, look at its pod and log",
    )
    PRIMARY_IS_SURPLUS = (
        "PrimaryIsSurplus",
        "The member that would have to leave is the primary, and no other can take over.",
        "set derbyReplication.mode to Auto, or raise spec.size again",
    )
    CATALOGS_CHANGING = (
        "CatalogsChanging",
        "A member leaves and joins anew, to become a catalog server or to be none any more.",
        "the group's task is awaited; then the member joins anew",
    )
    GATING = (
        "Gating",
        "Pods are told ready, or not ready, by what the group says of their members.",
        "moorage goes on with the next step at once",
    )
    TASK_DONE = (
        "TaskDone",
        "A task of the group has ended well.",
        "moorage goes on with the next step at once",
    )
    TASK_FORGOTTEN = (
        "TaskForgotten",
        "The status names a task of the group that moorage can't have asked for.",
        "moorage forgets it and goes on; see who else writes the status of this cache",
        WARNS,
    )
    RETRYING = (
        "Retrying",
        "What failed is tried anew, as moorage.dev/reconcile-at asks for it.",
        "moorage tries what failed once more, at once",
    )
    TASK_CANCELLED = (
        "TaskCancelled",
        "A task that took too long, or was stuck, is cancelled by force.",
        "see the log of the member that the message names for why the task hung; it is tried again, less and less "
        "often",
        WARNS,
    )
    MEMBERS_NOT_ONLINE = (
        "MembersNotOnline",
        "Members have not come Online yet.",
        "the members that the message names are awaited, of their pods; if one stays away, look at its pod and log",
    )
    ADDRESS_STALE = (
        "AddressStale",
        "The group knows a member under an address that its pod no longer has.",
        "the group is awaited, which takes up a new address within minutes; if it stays, restart that member's pod",
    )
    MEMBER_SILENT = (
        "MemberSilent",
        "A member is Online, and its admin API does not answer, or answers with an error. Clients are served; but it "
        "can't be asked to take over, to join anew, or what it knows.",
        "the member is awaited; if it stays so, look at its log, and at NetworkPolicies between moorage and it",
    )
    RENEWING_CREDENTIALS = (
        "RenewingCredentials",
        "A pod that is older than the last change of the credentials, and is off, is started anew, with those of now.",
        "the new pod is awaited, of the StatefulSet's controller; then it comes Online, or joins",
    )

    # --- replication ---
    REPLICATING = (
        "Replicating",
        "The copy of the administrative database is set up.",
        "the group's task is awaited, for spec.timeouts.replication at most",
    )
    REPLICATION_FAILED = (
        "ReplicationFailed",
        "The copy could not be set up. The members serve on.",
        "see the primary's log for why; it is tried again, less and less often",
        WARNS,
    )
    REPLICATION_OFF = (
        "ReplicationOff",
        "There is no copy: a single member, or derbyReplication.mode is Disabled.",
        "nothing",
    )
    REPLICATION_MISSING = (
        "ReplicationMissing",
        "There should be a copy, and there is none at the moment.",
        "the copy's member is awaited, or another one that is Online to take it",
    )

    # --- updates ---
    UPDATING = (
        "Updating",
        "A member is replaced by one of the current template.",
        "the replaced member is awaited, for updateStrategy.memberTimeout at most; then the next one follows",
    )
    UPDATE_WAITS = (
        "UpdateWaits",
        "Members of an old template wait for the group to be well.",
        "the members or grids that the message names are awaited; if one stays away, look at its pod and log",
    )
    UPDATE_ON_DELETE = (
        "UpdateOnDelete",
        "Pods of an old template are left alone until somebody deletes them.",
        "delete the pods that the message names when it suits you",
    )
    UPDATE_STALLED = (
        "UpdateStalled",
        "A member did not come back in time after its replacement; the others are left as they are.",
        "correct the image or the pod's settings in the spec",
    )
    UPDATE_ROLLED_BACK = (
        "UpdateRolledBack",
        "A member of a new image did not come back in time, and the last good image is run again.",
        "name another image in spec.image; the same is tried again with updateStrategy.rollback: false",
        WARNS,
    )
    DOWNTIME_EXPECTED = (
        "DowntimeExpected",
        "A single member, or grids without replicas: data that has no second holder is lost by the replacement.",
        "the replacement of the pods that the message names; save what you need of their data before",
    )

    # --- what the server refuses ---
    NOT_CANCELLED = (
        "NotCancelled",
        "The server does not cancel a task that took too long.",
        "asked again with growing delays; if it stays, see the server's words in the message and its log",
        WARNS,
    )
    NOT_DELETED = (
        "NotDeleted",
        "The server does not delete a template.",
        "act by the server's words in the message; asked again with growing delays",
        WARNS,
    )

    # --- facts ---
    AVAILABLE = (
        "Available",
        "As many members as wanted are Online, and the primary answers.",
        "nothing",
    )
    MAJORITY = (
        "MajorityOnline",
        "Most members that have joined are Online, and the primary answers: clients are served, grids can be edited.",
        "the missing members are awaited; MembersReady and Degraded tell of them",
    )
    UNAVAILABLE = (
        "Unavailable",
        "The primary does not answer: grids and members can't be changed.",
        "the primary is awaited, or its copy takes over; the step where the cache stands says which, and why",
    )
    CERTIFICATES_VERIFIED = (
        "CertificatesVerified",
        "The certificates of members are verified before the administrator's password is sent to them.",
        "nothing",
    )
    CERTIFICATES_NOT_VERIFIED = (
        "CertificatesNotVerified",
        "Any certificate is taken, as the product signs its own: the administrator's password goes to whoever answers "
        "at the address of a pod of the cache.",
        "nothing has to be done; whoever wants certificates verified names their authority in spec.tls.caSecretRef",
    )
    ALL_ONLINE = (
        "AllOnline",
        "Every wanted member is Online.",
        "nothing",
    )
    WATCHING = (
        "Watching",
        "The group's state is read regularly.",
        "nothing",
    )
    IDLE = (
        "Idle",
        "Nothing of this kind is under way.",
        "nothing",
    )
    STANDS = (
        "Stands",
        "It is as it should be.",
        "nothing",
    )

    # --- grids and templates ---
    CACHE_NOT_FOUND = (
        "CacheNotFound",
        "There is no XsldCache of that name in this namespace.",
        "correct spec.cacheRef to one of the XsldCaches that the message lists, or create that one",
    )
    AMBIGUOUS_CACHE = (
        "AmbiguousCache",
        "There are several XsldCaches in this namespace, and the spec says not which one is meant.",
        "say in spec.cacheRef.name which XsldCache is meant",
    )
    MADE_ELSEWHERE = (
        "MadeElsewhere",
        "spec.cacheRef names another XsldCache than the one that the grid or template was made in, and nothing "
        "moves from cache to cache.",
        "take spec.cacheRef back; or delete the resource, with moorage.dev/on-delete=Orphan if the old cache is to "
        "keep it, and make it anew with that spec.cacheRef",
    )
    NAME_TAKEN = (
        "NameTaken",
        "An older DataGrid, or GridTemplate, means the same name in the same XsldCache; what is on the server is "
        "the older one's, and stays when this one is deleted.",
        "delete one of the two, or make this one anew with another gridName or templateName",
    )
    CACHE_NOT_AVAILABLE = (
        "CacheNotAvailable",
        "The cache can't take administrative changes at the moment.",
        "the cache is awaited; its own status says what it stands at",
    )
    TEMPLATE_MISSING = (
        "TemplateMissing",
        "The grid's template is not uploaded.",
        "make a GridTemplate of that name, or correct spec.templateName; the upload of the template is awaited",
    )
    GRID_CREATING = (
        "GridCreating",
        "The grid is being created.",
        "the server is awaited, until the grid is Online",
    )
    GRID_UPDATING = (
        "GridUpdating",
        "The grid's settings are being changed.",
        "the server is awaited, until it shows the new settings",
    )
    GRID_RECREATING = (
        "GridRecreating",
        "The grid is deleted, to be made anew.",
        "the server is awaited, until the grid is gone; then it is made anew",
    )
    GRID_DELETING = (
        "GridDeleting",
        "The grid is being deleted on the server.",
        "the server is awaited, until the grid is gone",
    )
    GRID_FAILED = (
        "GridFailed",
        "The server refused or failed.",
        "act by the server's words in the message; it is tried again, less and less often, and in the end given up",
        WARNS,
    )
    GRID_GIVEN_UP = (
        "GridGivenUp",
        "The grid could not be brought Online often enough.",
        "correct the spec by the message, or set the annotation moorage.dev/reconcile-at to any new value to try again",
    )
    GRID_REFUSED = (
        "GridRefused",
        "The server refuses these settings.",
        "correct the spec by the server's words in the message",
    )
    RECREATE_NEEDED = (
        "RecreateNeeded",
        "The change can't be made in place: the grid would have to be deleted with its data and made anew.",
        "set the annotation xsld.ibm.com/allow-recreate=true to lose the grid's data for the change, or undo the "
        "change",
    )
    TEMPLATE_SOURCE = (
        "TemplateSource",
        "The ConfigMap or Secret with the template is missing or lacks a key.",
        "create the ConfigMap or Secret, or correct spec.source",
    )
    UPLOADING = (
        "Uploading",
        "The template is uploaded.",
        "the server is awaited, until it lists the template",
    )
    TEMPLATE_IN_USE = (
        "TemplateInUse",
        "Grids are made of the template, so that it can't be deleted yet.",
        "delete the grids that the message names, or let them be: the template stays as long as they do",
    )
    LEAVING = (
        "Leaving",
        "Nothing is left to remove.",
        "the resource goes at once",
    )
    REMOVING = (
        "Removing",
        "The pods of the cache are removed.",
        "the end of the pods that the message names is awaited; if one hangs, see its finalizers and its node",
    )
