"""The reasons that every helm-backed kind gives. They are API: documented, stable.

What helm's runs fail with is in `runs.failures`; why the objects of a release are
not ready, in `moorage.children.reasons`.
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
