"""The reasons of WekaManualOperations."""

from __future__ import annotations

from moorage.operators.weka import reasons
from moorage.runtime import decision
from moorage.runtime.decision import WARNS


class OperationReason(decision.Reason):
    """Of a WekaManualOperation."""

    NAMESPACE_NOT_ALLOWED = reasons.NAMESPACE_NOT_ALLOWED
    IMAGE_NOT_ALLOWED = reasons.IMAGE_NOT_ALLOWED
    ACTION_NOT_SERVED = (
        "ActionNotServed",
        "This action is not looked after yet: those on drives are.",
        "delete the operation, or have another operator look after it",
        WARNS,
    )
    UNCONFIRMED = (
        "Unconfirmed",
        "The operation destroys what drives hold, and the annotation weka.io/confirm does not say that this is meant.",
        "annotate the operation as the message says, or delete it",
        WARNS,
    )
    TAKING_CARE = reasons.TAKING_CARE
    BINDING = "Binding", "The operator is given its rights in the operation's namespace.", reasons.BINDS
    OBJECTS_UNKNOWN = "ObjectsUnknown", "The operation's pods and nodes are not looked at yet.", reasons.LOOKS
    NO_NODES = (
        "NoNodes",
        "No node is as the payload says, so that there is nothing to do.",
        "label the nodes, or make another operation with another nodeSelector or node",
        WARNS,
    )
    TOO_MANY_NODES = (
        "TooManyNodes",
        "More nodes are as the payload says than one operation may be for.",
        "make several operations, each with a nodeSelector of fewer nodes",
        WARNS,
    )
    BEGINNING = "Beginning", "The nodes that it is for are written down before anything is done.", reasons.GOES_ON
    WRITING_SCRIPTS = (
        "WritingScripts",
        "What runs in the pods is written into the namespace's ConfigMap.",
        reasons.GOES_ON,
    )
    DRIVE_TAKEN = (
        "DriveTaken",
        "A drive that is to be signed anew is a WekaContainer's, whose cluster may hold data on it.",
        "delete that WekaContainer and wait until it is gone; then make the operation anew",
        WARNS,
    )
    NODE_UNREADABLE = (
        "NodeUnreadable",
        "An annotation of the node that tells of its drives can't be read, so that nothing is added to it.",
        "mend the annotation, or remove it: kubectl annotate node NODE ANNOTATION-",
        WARNS,
    )
    NODE_NOT_READY = (
        "NodeNotReady",
        "A node's kubelet does not report, so that nothing can be done there.",
        "the node is awaited; mend it, or delete it, and the operation goes on with the others",
        WARNS,
    )
    LOOKING = (
        "Looking",
        "Pods look at the drives of their nodes, and sign what they were told to.",
        "the pods are awaited",
    )
    NOTING = "Noting", "What a pod found is written into its node's annotations, and into the status.", reasons.GOES_ON
    ENDING = "Ending", "All nodes are done; the result is written down.", reasons.GOES_ON
    DONE = "Done", "It is done, and deleted after spec.deletionDelay.", "nothing; it is deleted by itself"
    FAILED = (
        "Failed",
        "It did not succeed on every node; what has come of it is in status.nodes and status.result.",
        "mend what the message says, delete this operation, and make it anew",
        WARNS,
    )
    LEAVING = "Leaving", "Nothing keeps the operation any more; the finalizer goes.", "the API server removes it"

    UNHEEDED = reasons.UNHEEDED
    HEEDED = reasons.HEEDED
