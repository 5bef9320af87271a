"""The reasons why an object is not ready, a pod or another. They are API: documented, stable."""

from __future__ import annotations

from moorage.runtime import decision
from moorage.runtime.decision import WARNS


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
        "The pod's node does not answer; a pod that is told to go stays until it does, and keeps its name from others.",
        "whoever runs the cluster brings the node back, or says that it is off for good, by the taint "
        "node.kubernetes.io/out-of-service or by deleting the Node; then the pod is made elsewhere",
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
