"""The reasons of XSLD caches, grids and templates."""

from __future__ import annotations

from moorage.runtime import decision


class Reason(decision.Reason):
    """Each with what it means, and what to do where the user must act."""

    # --- the place ---
    NAMESPACE_NOT_ALLOWED = (
        "NamespaceNotAllowed",
        "moorage looks after no caches in this namespace. The administrator of moorage lists the namespaces in "
        "systems.xsld.namespaces of its chart; those of Kubernetes itself are never allowed.",
    )
    TAKING_CARE = "TakingCare", "The finalizer is set, so that nothing is left behind when the resource is deleted."
    BINDING = "Binding", "The operator is given its rights in the namespace."
    CLUSTER_UNKNOWN = "ClusterUnknown", "The objects of the cache are not looked at yet."

    # --- what the user gives ---
    CREDENTIALS_UNKNOWN = "CredentialsUnknown", "The Secret with the credentials is not looked at yet."
    CREDENTIALS_INVALID = (
        "CredentialsInvalid",
        "The Secret with the credentials is missing, lacks a key, or breaks the password rule; or the Secret with the "
        "CA is missing or holds no certificate. Correct the Secret, spec.credentialsSecretRef or spec.tls.caSecretRef.",
    )
    CREDENTIALS_REJECTED = (
        "CredentialsRejected",
        "The members refuse the administrator's password. Put the password that the group was made with into the "
        "Secret; it is tried again by itself.",
    )
    ENTRYPOINT_MISSING = (
        "EntrypointMissing",
        "The ConfigMap in spec.entrypointConfigMap, or its key entrypoint.sh, is missing. Create it.",
    )

    # --- the objects of the cluster ---
    APPLYING = "Applying", "Services, scripts and the like are made, or put right."
    CREATING = "Creating", "The StatefulSet is made, or put right."
    RESIZING = "Resizing", "The StatefulSet gets another number of pods."
    REPLACING_WORKLOAD = (
        "ReplacingWorkload",
        "The StatefulSet is made anew around its pods, as a field changed that can't be changed in place.",
    )
    CHILD_ENDING = "ChildEnding", "An object of the cache is being deleted by somebody; it is made anew after that."
    LEFTOVER_VOLUME = (
        "LeftoverVolume",
        "A volume of an earlier member is in the way of a new one, as an old volume breaks the group. It is kept by "
        "storage.reclaimOnScaleDown=Retain: save what you need of it and delete the PersistentVolumeClaim.",
    )
    CLEARING_VOLUME = "ClearingVolume", "The volume of a member that has left is deleted."
    GROWING_VOLUMES = "GrowingVolumes", "The volumes are asked to grow."
    VOLUME_CANNOT_GROW = (
        "VolumeCannotGrow",
        "The storage class does not allow volumes to grow. Set allowVolumeExpansion on it.",
    )
    REPLACING_DEAD_POD = (
        "ReplacingDeadPod",
        "A pod that never started is made anew from the current template; nothing is lost by it.",
    )
    SURPLUS_OBJECT = "SurplusObject", "An object that the spec no longer asks for is deleted."

    # --- the group ---
    LOOKING = "Looking", "The group is asked anew after something was done."
    GROUP_UNREACHABLE = (
        "GroupUnreachable",
        "No member answers on its admin API. Look at the pods; the first start of a member takes 5 to 10 minutes.",
    )
    PRIMARY_UNAVAILABLE = (
        "PrimaryUnavailable",
        "The member that takes administrative writes does not answer; the others serve on. It is waited for, or its "
        "copy takes over after derbyReplication.failoverSeconds.",
    )
    PRIMARY_LOST = (
        "PrimaryLost",
        "The primary has lost its volume and forms a group of its own, and there is no copy to take over. Restore "
        "the volume of the primary from a backup, or delete the cache and make it anew.",
    )
    FAILING_OVER = "FailingOver", "The copy of the administrative database becomes the primary."
    TASK_RUNNING = "TaskRunning", "A task that somebody else started runs at the group; it is waited for."
    JOINING = "Joining", "A member joins the group."
    JOIN_FAILED = "JoinFailed", "A member could not join the group; it is tried again, less and less often."
    JOIN_GIVEN_UP = (
        "JoinGivenUp",
        "A member failed to join too often. Look at its log and at the message; set the annotation "
        "moorage.dev/reconcile-at to any new value to have it tried again.",
    )
    MEMBER_STARTING = "MemberStarting", "A pod has not yet begun to answer, so that it can't join."
    REJOINING = "Rejoining", "A member that came back without its state leaves the group, and then joins anew."
    DISJOINING = "Disjoining", "A member leaves the group; its data moves to the others first."
    DISJOIN_FAILED = "DisjoinFailed", "A member could not leave the group; it is tried again, less and less often."
    DISJOIN_GIVEN_UP = (
        "DisjoinGivenUp",
        "A member failed to leave too often. Look at the log of the primary and at the message; set the annotation "
        "moorage.dev/reconcile-at to any new value to have it tried again.",
    )
    GROUP_DEGRADED = "GroupDegraded", "A member is not Online; nobody leaves or is replaced meanwhile."
    PRIMARY_IS_SURPLUS = (
        "PrimaryIsSurplus",
        "The member that would have to leave is the primary, and no other can take over. Enable derbyReplication, or "
        "raise the size again.",
    )
    CATALOGS_CHANGING = (
        "CatalogsChanging",
        "A member leaves and joins anew, to become a catalog server or to be none any more.",
    )
    GATING = "Gating", "Pods are told ready, or not ready, by what the group says of their members."
    TASK_DONE = "TaskDone", "A task of the group has ended well."
    RETRYING = "Retrying", "What failed is tried anew, as moorage.dev/reconcile-at asks for it."
    TASK_CANCELLED = "TaskCancelled", "A task that took too long, or was stuck, is cancelled by force."
    MEMBERS_NOT_ONLINE = "MembersNotOnline", "Members have not come Online yet."
    ADDRESS_STALE = "AddressStale", "The group knows a member under an address that its pod no longer has."

    # --- replication ---
    REPLICATING = "Replicating", "The copy of the administrative database is set up."
    REPLICATION_FAILED = (
        "ReplicationFailed",
        "The copy could not be set up; it is tried again, less and less often. The members serve on.",
    )
    REPLICATION_OFF = "ReplicationOff", "There is no copy: a single member, or derbyReplication.mode is Disabled."
    REPLICATION_MISSING = "ReplicationMissing", "There should be a copy, and there is none at the moment."

    # --- updates ---
    UPDATING = "Updating", "A member is replaced by one of the current template."
    UPDATE_WAITS = "UpdateWaits", "Members of an old template wait for the group to be well."
    UPDATE_ON_DELETE = "UpdateOnDelete", "Pods of an old template are left alone until somebody deletes them."
    UPDATE_STALLED = (
        "UpdateStalled",
        "A member did not come back in time after its replacement; the others are left as they are. Correct the spec.",
    )
    UPDATE_ROLLED_BACK = (
        "UpdateRolledBack",
        "A member of a new image did not come back in time, and the last good image is run again. Name another image; "
        "the same is tried again with updateStrategy.rollback: false.",
    )
    DOWNTIME_EXPECTED = (
        "DowntimeExpected",
        "A single member, or grids without replicas: data that has no second holder is lost by the replacement.",
    )

    # --- facts ---
    AVAILABLE = "Available", "As many members as wanted are Online, and the primary answers."
    MAJORITY = "MajorityOnline", "Most members are Online, and the primary answers."
    UNAVAILABLE = "Unavailable", "The primary, or most members, do not answer."
    ALL_ONLINE = "AllOnline", "Every wanted member is Online."
    WATCHING = "Watching", "The group's state is read regularly."
    IDLE = "Idle", "Nothing of this kind is under way."
    STANDS = "Stands", "It is as it should be."

    # --- grids and templates ---
    CACHE_NOT_FOUND = (
        "CacheNotFound",
        "There is no XsldCache of that name in this namespace. Create it, or correct spec.cacheRef.",
    )
    AMBIGUOUS_CACHE = (
        "AmbiguousCache",
        "There are several XsldCaches in this namespace. Say in spec.cacheRef.name which one is meant.",
    )
    MADE_ELSEWHERE = (
        "MadeElsewhere",
        "spec.cacheRef names another XsldCache than the one that the grid or template was made in, and nothing moves "
        "from cache to cache. Delete the resource, which removes it from the cache that it is in unless "
        "moorage.dev/on-delete=Orphan keeps it there, and make it anew with the right spec.cacheRef.",
    )
    NAME_TAKEN = (
        "NameTaken",
        "An older DataGrid, or GridTemplate, means the same name in the same XsldCache; what is on the server is the "
        "older one's, and stays when this one is deleted. Delete one of the two, or make this one anew with another "
        "gridName or templateName.",
    )
    CACHE_NOT_AVAILABLE = "CacheNotAvailable", "The cache can't take administrative changes at the moment."
    TEMPLATE_MISSING = (
        "TemplateMissing",
        "The grid's template is not uploaded; a GridTemplate of that name is waited for.",
    )
    GRID_CREATING = "GridCreating", "The grid is being created."
    GRID_UPDATING = "GridUpdating", "The grid's settings are being changed."
    GRID_RECREATING = "GridRecreating", "The grid is deleted, to be made anew."
    GRID_DELETING = "GridDeleting", "The grid is being deleted on the server."
    GRID_FAILED = "GridFailed", "The server refused or failed; it is tried again, less and less often."
    GRID_GIVEN_UP = (
        "GridGivenUp",
        "The grid could not be brought Online often enough. Look at the message and correct the spec, or set the "
        "annotation moorage.dev/reconcile-at to any new value to have it tried again.",
    )
    GRID_REFUSED = "GridRefused", "The server refuses these settings. Correct the spec."
    RECREATE_NEEDED = (
        "RecreateNeeded",
        "The change can't be made in place. To delete the grid with its data and make it anew, set the annotation "
        "xsld.ibm.com/allow-recreate=true; else undo the change.",
    )
    TEMPLATE_SOURCE = (
        "TemplateSource",
        "The ConfigMap or Secret with the template is missing or lacks a key. Create it.",
    )
    UPLOADING = "Uploading", "The template is uploaded."
    TEMPLATE_IN_USE = "TemplateInUse", "Grids are made of the template, so that it can't be deleted yet."
    LEAVING = "Leaving", "Nothing is left to remove."
    REMOVING = "Removing", "The pods of the cache are removed."
