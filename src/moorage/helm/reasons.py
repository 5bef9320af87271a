"""The reasons that every helm-backed kind gives. They are API: documented, stable."""

from __future__ import annotations

from moorage.runtime import decision


class Reason(decision.Reason):
    """Each with what it means, and what to do where the user must act."""

    CLAIM_UNREADABLE = (
        "ClaimUnreadable",
        "The release's claim can't be read; usually rights in the namespace are still missing.",
    )
    CLAIM_BROKEN = (
        "ClaimBroken",
        "The release's claim was edited by hand, and says what moorage would not have written.",
        "Whoever may write ConfigMaps in the release's namespace takes the change back, or deletes the claim.",
    )
    CLAIMING = "Claiming", "The release's name is being claimed for this resource, so that no other can use it."
    TAKING_OVER = (
        "TakingOver",
        "The claim is of an earlier incarnation of this resource, as after a restore from a backup.",
    )
    CLAIMED = "Claimed", "Another resource owns a release of this name. Rename one of the two, or delete the other."
    FOREIGN_RELEASE = (
        "ForeignRelease",
        "A release of this name exists that moorage did not make. Annotate the resource with moorage.dev/adopt=true "
        "to take it over, or use another name.",
    )
    RUNNING_HELM = "RunningHelm", "Helm is at work for this release."
    ANOTHER_HELM = "AnotherHelm", "Somebody else's helm is at work for this release; it is given ten minutes."
    UNLOCKING = (
        "Unlocking",
        "The release was left pending by a helm that died; its record is set to failed, so that work goes on.",
    )
    RUN_FAILED = "RunFailed", "Helm failed; the message has its own words. Tried again with growing delays."
    RETRYING = "Retrying", "A fresh try was asked for by moorage.dev/reconcile-at."
    RESTORING = "Restoring", "Objects of the release were changed or removed by hand and are put right."
    CHOOSING_CHART = "ChoosingChart", "The chart's source is being asked."
    CHART_CHOSEN = (
        "ChartChosen",
        "The version constraint was resolved to this chart, which is kept until the constraint changes.",
    )
    CHART_NOT_FOUND = (
        "ChartNotFound",
        "The source has no chart of that name or version. Correct the name or version, or publish it.",
    )
    CHART_UNREACHABLE = "ChartUnreachable", "The chart's source gave no answer. Asked again with growing delays."
    CHART_INVALID = "ChartInvalid", "The chart can't be used as it is. Publish a corrected version."
    DIGEST_MISMATCH = (
        "DigestMismatch",
        "The source now serves other content under the version that was resolved earlier. Publish it as a new version.",
    )
    RENDERING = "Rendering", "The chart is being rendered."
    SCHEMA_VIOLATION = "SchemaViolation", "The values don't fit the chart's schema. Correct the configuration."
    RENDER_FAILED = (
        "RenderFailed",
        "The chart can't be rendered with these values. Correct the configuration or the chart.",
    )
    REACHES_OUTSIDE = (
        "ReachesOutside",
        "The chart renders objects outside the tenant's namespace, which no resource may do. Use a chart without them.",
    )
    UPGRADE_FAILED = (
        "UpgradeFailed",
        "This chart with these values failed and is not tried again. Change the spec, or ask for a fresh try with "
        "moorage.dev/reconcile-at.",
    )
    ROLLING_BACK = "RollingBack", "The last good revision is being restored."
    READING_RECORD = "ReadingRecord", "The release's record is being read."
    INSTALLING = "Installing", "Helm installs the release."
    UPGRADING = "Upgrading", "Helm upgrades the release, as its chart or values changed."
    REVERTING = "Reverting", "The release was changed by hand and is put back to what the spec says."
    PRUNING = "Pruning", "Objects that left the chart are removed."
    INVENTORY = "Inventory", "The inventory in the claim is brought up to date."
    LOOKING = "Looking", "The release's objects are being looked at."
    NOT_READY = "NotReady", "An object of the release is not ready; the message names it and why."
    NOT_READY_IN_TIME = "NotReadyInTime", "The upgrade did not become ready in time."
    READY = "Ready", "All objects of the release are ready."
    RELEASED = "Released", "The release is what the spec says."
    NOT_RELEASED = "NotReleased", "The release is not yet what the spec says."
    DRIFTED = "Drifted", "Objects of the release differ from its record."
    IN_SYNC = "InSync", "All objects of the release are as recorded."
    ORPHANING = "Orphaning", "The resource is deleted and its release stays, as asked by moorage.dev/on-delete."
    UNINSTALLING = "Uninstalling", "Helm uninstalls the release."
    SWEEPING = "Sweeping", "Objects that the uninstall left are removed."
    LEAVING = "Leaving", "Nothing is left of the release; the claim and the finalizer go."
