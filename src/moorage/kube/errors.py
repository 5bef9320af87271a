# ruff: noqa: N818 - the names are the API server's own reasons, which readers know
"""What can go wrong between moorage and the API server.

    KubeError
    ├── CredentialsError        no usable way in: kubeconfig, token, certificate, exec plugin
    ├── NotWatched              a read of something that no cache watches
    ├── MalformedAnswer         the server answered, but not in the shape the model expects
    ├── TransportError          no complete answer; `sent` says whether the request may have arrived
    └── ApiError                the server said no; `status` is its Status object
        ├── BadRequest          400, and every other 4xx without a class of its own
        ├── Unauthorized        401
        ├── Forbidden           403
        ├── NotFound            404
        ├── Conflict            409: a resourceVersion, uid, field owner or test operation did not match
        ├── AlreadyExists       409 with reason AlreadyExists
        ├── Gone                410: a resourceVersion or continue token is too old
        ├── Invalid             422
        ├── TooManyRequests     429: `retry_after` seconds, also what a PodDisruptionBudget answers
        └── ServerError         5xx

Every error knows `maybe_applied`: True when a write may have taken effect although it failed, so that the caller must
look before it decides anew. Messages name the verb, the kind and the object, then what happened, why, and what to do.
"""

from __future__ import annotations

from typing import Any

import msgspec

__all__ = [
    "AlreadyExists",
    "ApiError",
    "BadRequest",
    "Conflict",
    "CredentialsError",
    "Forbidden",
    "Gone",
    "Invalid",
    "KubeError",
    "MalformedAnswer",
    "NotFound",
    "NotWatched",
    "ServerError",
    "Status",
    "TooManyRequests",
    "TransportError",
    "Unauthorized",
    "from_status",
]


_MESSAGE = 1000  # characters of the server's message that go into ours


class Status(msgspec.Struct, frozen=True, omit_defaults=True):
    """The API server's own account of a failure (meta/v1 Status)."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: dict[str, Any] | None = None

    def causes(self) -> tuple[dict[str, Any], ...]:
        """details.causes: one entry per offending field, or per machine-readable cause."""
        return tuple((self.details or {}).get("causes") or ())

    def retry_after(self) -> float:
        """details.retryAfterSeconds, 0 when the server names no time."""
        return float((self.details or {}).get("retryAfterSeconds") or 0)


class KubeError(Exception):
    """The root of all errors that the `kube` package raises."""

    @property
    def maybe_applied(self) -> bool:
        """True when a failed write may have taken effect all the same."""
        return False


class CredentialsError(KubeError):
    """No usable credentials; the message says which source was tried and what is missing."""


class NotWatched(KubeError):
    """A cache was asked for something that nothing watches: a missing source, not a missing object."""


class MalformedAnswer(KubeError):
    """The server's answer does not decode as the model that was asked for."""

    @property
    def maybe_applied(self) -> bool:
        """True: the server has answered, so a write has been carried out."""
        return True


class TransportError(KubeError):
    """The answer never came, or not whole. `sent` is False only when the request certainly never left."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent

    @property
    def maybe_applied(self) -> bool:
        """The same as `sent`."""
        return self.sent


class ApiError(KubeError):
    """The API server refused. `hint` is what the reader of the message can do about it."""

    hint = ""

    def __init__(self, what: str, status: Status) -> None:
        said = status.message or "no message"
        if len(said) > _MESSAGE:  # some quote the whole object
            said = f"{said[:_MESSAGE]}..."
        hint = f"; {self.hint}" if self.hint else ""
        super().__init__(f"{what}: {status.code} {status.reason or type(self).__name__}: {said}{hint}")
        self.what = what
        self.status = status


class BadRequest(ApiError):
    """400, or a 4xx that has no class of its own: the request itself is wrong."""


class Unauthorized(ApiError):
    """401, after the credentials have been read anew once."""

    hint = "check the token, the client certificate or the exec plugin of the kubeconfig"


class Forbidden(ApiError):
    """403: RBAC or an admission plugin says no."""

    hint = "grant the verb to moorage's service account, or see which admission policy refused"


class NotFound(ApiError):
    """404: the object, its namespace, or the whole kind does not exist."""


class Conflict(ApiError):
    """409: the world moved since it was read, or another manager owns a field."""

    hint = "read the object again and decide anew"


class AlreadyExists(ApiError):
    """409 on a create: the name is taken."""


class Gone(ApiError):
    """410: a resourceVersion or continue token is older than what the server still knows."""

    hint = "list again"


class Invalid(ApiError):
    """422: the object does not satisfy its schema or rules; details.causes name the fields."""

    hint = "correct the fields that the message names"


class TooManyRequests(ApiError):
    """429: the server sheds load, or an eviction would break a disruption budget."""

    hint = "try again later"

    def __init__(self, what: str, status: Status, retry_after: float = 0) -> None:
        super().__init__(what, status)
        self.retry_after = retry_after or status.retry_after()  # seconds; 0 = not said


class ServerError(ApiError):
    """5xx. A gateway or an etcd timeout hides whether a write went through, so every one counts as maybe applied."""

    hint = "the outcome is unknown; look before trying again"

    def __init__(self, what: str, status: Status, retry_after: float = 0) -> None:
        super().__init__(what, status)
        self.retry_after = retry_after or status.retry_after()

    @property
    def maybe_applied(self) -> bool:
        """True, except for 501, which no server sends after doing anything."""
        return self.status.code != 501


_BY_CODE: dict[int, type[ApiError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
}


_SENDERS_FAULT = ("failed to create typed patch object", "failed to convert new object")
"""What a server-side apply is told with a 500 when its body has a wrong type, or a text that can't be read."""


def from_status(what: str, status: Status, retry_after: float = 0) -> ApiError:
    """The error class for a Status. `what` is verb, kind and name; `retry_after` the header's seconds."""
    if status.code == 429:
        return TooManyRequests(what, status, retry_after)
    if status.code == 500 and status.message.startswith(_SENDERS_FAULT):
        return Invalid(what, status)
    if status.code >= 500:
        return ServerError(what, status, retry_after)
    if status.code == 409 and status.reason == "AlreadyExists":
        return AlreadyExists(what, status)
    return _BY_CODE.get(status.code, BadRequest)(what, status)
