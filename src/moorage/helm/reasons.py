"""The reasons that every helm-backed kind gives. They are API: documented, stable.

What helm's runs fail with is in `failures`; why the objects of a release are not ready, here too.
"""

from __future__ import annotations

from moorage.runtime import decision
from moorage.runtime.decision import WARNS

_HELM_RUNS = "the end of helm's run is awaited; it has ten minutes"
_LOOKS = "moorage's own look is awaited, which takes seconds"


class Reason(decision.Reason):
    """Each with what it means, and with what comes next."""

    CLAIM_UNREADABLE = (
        "ClaimUnreadable",
        "The release's claim can't be read; usually rights in the namespace are still missing.",
        "asked again every few seconds; an administrator must give moorage the right that the message names, or "
        "correct or delete the ConfigMap that it calls unreadable",
    )
    CLAIMING = (
        "Claiming",
        "The release's name is being claimed for this resource, so that no other can use it.",
        "moorage goes on with the chart as soon as the claim is written",
    )
    CLAIM_BROKEN = (
        "ClaimBroken",
        "The release's claim was edited by hand, and says what moorage would not have written.",
        "whoever may write ConfigMaps in the release's namespace takes the change back, or deletes the claim",
    )
    TAKING_OVER = (
        "TakingOver",
        "The claim is of an earlier incarnation of this resource, as after a restore from a backup.",
        "moorage goes on with the release as it finds it",
    )
    CLAIMED = (
        "Claimed",
        "Another resource owns a release of this name.",
        "rename one of the two resources, or delete the other",
    )
    FOREIGN_RELEASE = (
        "ForeignRelease",
        "A release of this name exists that moorage did not make.",
        "annotate the resource with moorage.dev/adopt=true to take the release over, or use another name",
    )
    RUNNING_HELM = "RunningHelm", "Helm is at work for this release.", _HELM_RUNS
    ANOTHER_HELM = (
        "AnotherHelm",
        "Somebody else's helm is at work for this release.",
        "the end of that helm is awaited, ten minutes at most; then its record is set to failed and moorage goes on",
    )
    INTERRUPTED = (
        "Interrupted",
        "A former process of moorage was lost while its helm was at work for this release.",
        "moorage goes on once nothing of that helm can be under way any more, a lease's duration after it took over",
    )
    UNLOCKING = (
        "Unlocking",
        "The release was left pending by a helm that died; its record is set to failed.",
        "moorage goes on with the release",
    )
    RUN_FAILED = (
        "RunFailed",
        "Helm failed; the message has its own words.",
        "act by Helm's words; tried again with growing delays",
        WARNS,
    )
    RETRYING = (
        "Retrying",
        "A fresh try was asked for by moorage.dev/reconcile-at.",
        "moorage tries what failed once more, at once",
    )
    RESTORING = (
        "Restoring",
        "Objects of the release were changed or removed by hand and are put right.",
        "moorage looks whether they stay right; whoever changes them by hand must change the spec instead",
    )
    CHOOSING_CHART = (
        "ChoosingChart",
        "The chart's source is being asked.",
        "the answer of the chart's source is awaited, for two minutes at most",
    )
    CHART_CHOSEN = (
        "ChartChosen",
        "The version constraint was resolved to this chart, which is kept until the constraint changes.",
        "moorage renders the chart",
    )
    CHART_NOT_FOUND = (
        "ChartNotFound",
        "The source has no chart of that name or version.",
        "correct the name or version in the spec, or publish the chart",
    )
    CHART_UNREACHABLE = (
        "ChartUnreachable",
        "The chart's source gave no answer.",
        "asked again with growing delays; if it stays, whoever runs the chart's source or the network must look",
        WARNS,
    )
    CHART_INVALID = (
        "ChartInvalid",
        "The chart can't be used as it is.",
        "publish a corrected version of the chart, or ask for another version",
    )
    DIGEST_MISMATCH = (
        "DigestMismatch",
        "The source now serves other content under the version that was resolved earlier.",
        "have the chart's maintainer publish the new content as a new version, and ask for that",
    )
    RENDERING = "Rendering", "The chart is being rendered.", "helm's rendering is awaited, for a minute at most"
    SCHEMA_VIOLATION = (
        "SchemaViolation",
        "The values don't fit the chart's schema.",
        "correct the configuration where the message says",
    )
    RENDER_FAILED = (
        "RenderFailed",
        "The chart can't be rendered with these values.",
        "correct the configuration or the chart, by the template's words in the message",
    )
    REACHES_OUTSIDE = (
        "ReachesOutside",
        "The chart makes or looks up objects outside the tenant's namespace, which no resource may do.",
        "use a chart, or values, without the objects that the message names",
    )
    UPGRADE_FAILED = (
        "UpgradeFailed",
        "This chart with these values failed and is not tried again.",
        "change the spec, or ask for a fresh try with the annotation moorage.dev/reconcile-at",
    )
    ROLLING_BACK = (
        "RollingBack",
        "The last good revision is being restored.",
        "the end of helm's rollback is awaited; then the spec must be corrected",
        WARNS,
    )
    RECORD_BROKEN = (
        "RecordBroken",
        "The latest release record is none that helm wrote, or is too large to be read.",
        "whoever may write Secrets in the release's namespace takes the change back, or deletes that Secret",
    )
    READING_RECORD = (
        "ReadingRecord",
        "The release's record is being read.",
        "asked again every few seconds; if it stays, the message says what an administrator must see to",
    )
    INSTALLING = "Installing", "Helm installs the release.", _HELM_RUNS
    UPGRADING = "Upgrading", "Helm upgrades the release, as its chart or values changed.", _HELM_RUNS
    REVERTING = "Reverting", "The release was changed by hand and is put back to what the spec says.", _HELM_RUNS
    PRUNING = (
        "Pruning",
        "Objects that left the chart are removed.",
        "the end of the objects that the message names is awaited, and of the finalizers that hold them",
    )
    INVENTORY = (
        "Inventory",
        "The inventory in the claim is brought up to date.",
        "moorage goes on with the objects' health",
    )
    LOOKING = "Looking", "The release's objects are being looked at.", _LOOKS
    HELD = (
        "Held",
        "An object that should be gone is still there, as a finalizer of another controller holds it.",
        "the controller whose finalizer the message names must take it away; if that is gone for good, a person must",
    )
    NOT_READY = (
        "NotReady",
        "An object of the release is not ready; the message names it and why.",
        "act by what the message says of the object",
    )
    NOT_READY_IN_TIME = (
        "NotReadyInTime",
        "The upgrade did not become ready in time.",
        "moorage restores the last good revision; then the spec must be corrected",
        WARNS,
    )
    READY = "Ready", "All objects of the release are ready.", "nothing"
    RELEASED = "Released", "The release is what the spec says.", "nothing"
    NOT_RELEASED = (
        "NotReleased",
        "The release is not yet what the spec says.",
        "the step where the object stands says what comes first",
    )
    DRIFTED = (
        "Drifted",
        "Objects of the release differ from its record.",
        "moorage puts them right where it may and the server takes it; the message says where not",
    )
    IN_SYNC = "InSync", "All objects of the release are as recorded.", "nothing"
    ORPHANING = (
        "Orphaning",
        "The resource is deleted and its release stays, as asked by moorage.dev/on-delete.",
        "the resource goes at once; the release belongs to whoever takes it over",
    )
    UNINSTALLING = "Uninstalling", "Helm uninstalls the release.", _HELM_RUNS
    SWEEPING = (
        "Sweeping",
        "Objects that the uninstall left are removed.",
        "the end of the objects that the message names is awaited, and of the finalizers that hold them",
    )
    LEAVING = "Leaving", "Nothing is left of the release; the claim and the finalizer go.", "the resource goes at once"


class PodReason(decision.Reason):
    """Why a pod is not ready."""

    IMAGE_PULL = (
        "ImagePull",
        "The node can't get the image; the message has its name and the registry's words.",
        "correct the image's name or tag in spec or chart, publish it, or give the pods the registry's credentials; "
        "the node asks again by itself, so a registry that comes back heals it too",
        WARNS,
    )
    CONTAINER_CONFIG = (
        "ContainerConfig",
        "The container can't be made, as when a Secret or ConfigMap that it names is missing.",
        "make what the message names, or correct the chart or its values",
        WARNS,
    )
    OUT_OF_MEMORY = (
        "OutOfMemory",
        "The container was killed for using more memory than its limit.",
        "raise the container's memory limit in the values, or have it use less",
        WARNS,
    )
    CRASH_LOOP = (
        "CrashLoop",
        "The container ends each time it is started; its log says why.",
        "read the log (kubectl logs --previous), and correct what it says",
        WARNS,
    )
    EXITED = (
        "Exited",
        "The container has ended.",
        "read the log (kubectl logs), and correct what it says; the kubelet starts it again where the pod wants that",
        WARNS,
    )
    EVICTED = (
        "Evicted",
        "The pod was evicted or failed as a whole.",
        "a new pod by the object's controller is awaited; if it comes back, the message says what the node lacked",
    )
    QUOTA = (
        "Quota",
        "A quota of the namespace keeps the pod from being made.",
        "raise the quota that the message names, or ask for less; the pod is then made by its controller",
        WARNS,
    )
    DENIED = (
        "Denied",
        "Admission or pod security keeps the pod from being made.",
        "correct the chart or its values to what the policy in the message asks, or have its owner admit it",
        WARNS,
    )
    NODE_DOWN = (
        "NodeDown",
        "The pod's node does not answer.",
        "whoever runs the cluster brings the node back, or deletes the Node if it is gone for good; then the pod is "
        "made elsewhere",
        WARNS,
    )
    FINALIZER_LEFT = (
        "FinalizerLeft",
        "The pod, or its claim, is being deleted and is held by the finalizers in the message.",
        "the controllers that set these finalizers must take them away; if one is gone for good, a person must",
        WARNS,
    )
    VOLUME_LOST = (
        "VolumeLost",
        "The claim's volume is gone.",
        "restore the volume from a backup, or delete the claim and what it held",
        WARNS,
    )
    NO_STORAGE_CLASS = (
        "NoStorageClass",
        "The claim names a storage class that is not there, or none, and the cluster has no default one.",
        "whoever runs the cluster makes that class or a default one, or the values name another and the claim is "
        "deleted",
        WARNS,
    )
    UNSCHEDULABLE = (
        "Unschedulable",
        "No node takes the pod; the message has the scheduler's words.",
        "give the cluster a node that fits, or ask for less; the scheduler tries again as soon as something changes",
        WARNS,
    )
    VOLUME_PENDING = (
        "VolumePending",
        "A volume is not bound or not mounted yet.",
        "the storage class's provisioner, or the node, is awaited; if it stays, see the class and the claim's events",
    )
    SANDBOX = (
        "Sandbox",
        "The node can't set up the pod's network or sandbox.",
        "whoever runs the cluster must look at the node's network; the kubelet tries again meanwhile",
        WARNS,
    )
    PROBE_FAILING = (
        "ProbeFailing",
        "The container runs, and its readiness probe has not passed.",
        "the container's readiness is awaited; if it stays, its log (kubectl logs) says what it lacks",
    )
    NOT_READY = (
        "NotReady",
        "The pod is not ready, as a readiness gate says.",
        "whoever sets the readiness gate in the message is awaited",
    )
    ENDING = "Ending", "The pod is being deleted.", "the end of its containers is awaited, at the time in the message"
    STARTING = "Starting", "The pod is being started.", "the scheduler and the node's kubelet are awaited"


class ObjectReason(decision.Reason):
    """Why an object that is no pod is not ready."""

    MISSING = (
        "Missing",
        "The object is not there, or has lost the label that it is seen by.",
        "moorage makes it anew unless drift is not undone here (spec and message say so)",
    )
    PODS_NOT_READY = (
        "PodsNotReady",
        "Fewer pods are ready than wanted.",
        "the missing pods are awaited, of the object's own controller",
    )
    POD_NOT_READY = "PodNotReady", "The pod is not ready.", "the pod's readiness is awaited, of its containers"
    POD_FAILED = (
        "PodFailed",
        "The pod has failed.",
        "read its log (kubectl logs), correct what it says, and delete the pod",
        WARNS,
    )
    UPDATING = (
        "Updating",
        "Pods of the new revision are being made.",
        "the object's own controller is awaited, which replaces pods one after another",
    )
    ROLLOUT_PAUSED = (
        "RolloutPaused",
        "The Deployment is paused, by its chart or by a person, before all its pods are of the current template.",
        "resume it (kubectl rollout resume); nothing is rolled back for it",
        WARNS,
    )
    OLD_PODS = "OldPods", "Pods of an older revision are still there.", "the end of the old pods is awaited"
    SCALING = "Scaling", "The number of pods is being changed.", "the object's own controller is awaited"
    SPEC_NOT_OBSERVED = (
        "SpecNotObserved",
        "Its controller has not looked at the latest change yet.",
        "the object's own controller is awaited; if it stays, see whether that controller runs",
    )
    PROGRESS_DEADLINE = (
        "ProgressDeadlineExceeded",
        "The Deployment made no progress within its deadline.",
        "see its pods (kubectl describe) for what keeps them, and correct the configuration or the chart",
        WARNS,
    )
    JOB_RUNNING = "JobRunning", "The Job has not completed yet.", "the end of the Job's pods is awaited"
    JOB_FAILED = (
        "JobFailed",
        "The Job has failed.",
        "read the log of its pods, correct what it says, and delete the Job, which is then made anew",
        WARNS,
    )
    NOT_ESTABLISHED = (
        "NotEstablished",
        "The definition of the kind is not served yet.",
        "the API server is awaited, which takes seconds",
    )
    NAMES_NOT_ACCEPTED = (
        "NamesNotAccepted",
        "The names of the definition are another definition's.",
        "remove one of the two definitions, or rename",
        WARNS,
    )
    TERMINATING = (
        "Terminating",
        "The object is being deleted.",
        "its end is awaited, and of the finalizers that the message names; then it is made anew",
    )
    NOT_FOUND = "NotFound", "The object does not exist.", "moorage makes it anew"


def of_object(word: str) -> str:
    """The reason of that word; the word itself where a custom resource gives one of its own."""
    found = PodReason.of(word)
    return found if isinstance(found, PodReason) else ObjectReason.of(word)
