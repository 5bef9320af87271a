"""The reasons that objects of every kind can have. They are API: documented, stable."""

from __future__ import annotations

from . import decision
from .decision import WARNS


class Reason(decision.Reason):
    """Each with what it means, and with what comes next."""

    READY = "Ready", "Everything is done and the facts that readiness needs are true.", "nothing"
    SETTLED = (
        "Settled",
        "Of Reconciling and Stalled, when they are False: nothing is under way and nothing is in the way.",
        "nothing",
    )
    PAUSED = (
        "Paused",
        "The annotation moorage.dev/paused=true holds everything back.",
        "remove the annotation moorage.dev/paused to go on",
    )
    ACTIVE = "Active", "Of Paused, when it is False: it was paused before.", "nothing"
    UNREADABLE = (
        "Unreadable",
        "The object does not fit its kind's definition, as after a downgrade; nothing is done for it.",
        "correct the field that the message names, or use the version of moorage that wrote it",
        WARNS,
    )

    OTHER_OPERATOR = (
        "OtherOperator",
        "Two installations of moorage see this object. The one whose name it bears looks after it, or the one that is "
        "there for its namespace alone; the other leaves it alone, and says so in this Event.",
        "whoever runs them removes one, or limits each to namespaces of its own; when one is gone for two minutes the "
        "other takes over by itself",
        WARNS,
    )

    # --- what becomes of an act ---
    GUARDED = (
        "Guarded",
        "Right before an act, a live look found that it must not be done; the message says why.",
        "moorage looks anew at once, and decides by what it finds",
    )
    OUTCOME_UNKNOWN = (
        "OutcomeUnknown",
        "An answer was lost, so nobody knows whether the act happened.",
        "moorage looks at the world anew before it does anything else",
    )
    NOT_SENT = (
        "NotSent",
        "The server that was to be asked could not be reached.",
        "tried again with growing delays; if it stays, whoever runs that server or the network must look",
    )
    THROTTLED = (
        "Throttled",
        "The API server asked for patience, or a disruption budget lets no pod go at the moment.",
        "tried again when the server said, then with growing delays",
    )
    NOT_LEADING = "NotLeading", "This process lost the lease.", "the next leader goes on, within a lease's duration"
    STOPPING = "Stopping", "This process of moorage is being stopped.", "the next leader goes on"
    MOVED = "Moved", "What an act was decided on is no longer at hand.", "moorage looks anew at once"
    FORBIDDEN = (
        "Forbidden",
        "The API server refused an act for want of rights; the message names them.",
        "an administrator must give moorage the right that the message names; tried again with growing delays",
        WARNS,
    )
    UNAUTHORIZED = (
        "Unauthorized",
        "A server does not take moorage's credentials.",
        "an administrator must see to moorage's account or the credentials; tried again with growing delays",
        WARNS,
    )
    INVALID = (
        "Invalid",
        "The API server refuses an object for what is in it; the message names the field.",
        "correct the field that the message names where it comes from: spec, values or chart",
        WARNS,
    )
    BAD_REQUEST = (
        "BadRequest",
        "The API server does not take a request as it is.",
        "correct what the message names; if it names nothing of yours, it is a defect of moorage: please report it",
        WARNS,
    )
    TOO_LARGE = (
        "RequestEntityTooLarge",
        "An object is larger than the API server takes.",
        "make it smaller: fewer or shorter values",
        WARNS,
    )
    METHOD_NOT_ALLOWED = (
        "MethodNotAllowed",
        "The API server does not do such a thing to objects of that kind.",
        "see whether moorage and the cluster are of versions that fit together, and report it",
        WARNS,
    )
    GONE = "Gone", "What was asked about is too old for the API server to know.", "moorage reads it anew at once"
    EXPIRED = "Expired", "What was asked about is too old for the API server to know.", "moorage reads it anew at once"
    TIMED_OUT = (
        "TimedOut",
        "A server was asked and gave no answer in time.",
        "tried again with growing delays; if it stays, whoever runs that server must look",
    )
    UNREACHABLE = (
        "Unreachable",
        "A server can't be reached.",
        "tried again with growing delays; if it stays, whoever runs that server or the network must look",
    )
    UNAVAILABLE = (
        "Unavailable",
        "A server says that it can't answer at the moment.",
        "tried again with growing delays; if it stays, whoever runs that server must look",
    )
    MALFORMED = (
        "Malformed",
        "A server's answer can't be understood.",
        "tried again with growing delays; if it stays, see whether that server is of a version that moorage knows",
        WARNS,
    )

    # --- what becomes of a pass ---
    DEADLINE_EXCEEDED = (
        "DeadlineExceeded",
        "A pass hung and was cut short.",
        "tried again with growing delays; if it stays, moorage's administrator finds in its log what hung",
        WARNS,
    )
    INTERNAL_ERROR = (
        "InternalError",
        "A defect of moorage. The message and the operator's log say where.",
        "report it with the operator's log; it is tried again after a long pause, and on every change",
        WARNS,
    )
