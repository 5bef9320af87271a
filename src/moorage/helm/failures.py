"""Helm's words on stderr, turned into typed failures. Pure.

Helm has one exit code for everything, so what went wrong is read from its text. The table below is tried in order,
special before general; each line was seen on the real binary or in the API server's source. What a message may hold is
also decided here: a value that the user gave is replaced by the name of the value, since it may be a password.
"""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

__all__ = ["FailureKind", "HelmFailed", "classify", "redact", "warnings", "words"]

MAX_WORDS = 2000  # characters; a condition's message may have 32768, an event's 1024


class FailureKind(enum.Enum):
    """What went wrong, and whether trying the same again may work without anyone changing the input."""

    FORBIDDEN = "Forbidden", True  # rights may be given without a change of the release
    UNAUTHORIZED = "Unauthorized", True  # a token that has just been rotated
    QUOTA = "Quota", True
    DENIED = "Denied", False  # an admission webhook or policy said no
    WEBHOOK_DOWN = "WebhookDown", True
    IMMUTABLE = "Immutable", False
    SCHEMA_VIOLATION = "SchemaViolation", False  # values against the chart's schema
    RENDER = "Render", False  # a template failed, often by its own `fail` or `required`
    HOOK_FAILED = "HookFailed", False
    INVALID = "Invalid", False  # the API server refuses an object
    UNKNOWN_KIND = "UnknownKind", False  # a CRD is missing
    ALREADY_OWNED = "AlreadyOwned", False  # the object exists and is another's
    NO_NAMESPACE = "NoNamespace", True
    NAMESPACE_ENDING = "NamespaceEnding", True
    PENDING = "Pending", False  # the record says that another operation runs: unlock it, see `records`
    CONFLICT = "Conflict", True
    NOT_FOUND = "NotFound", False  # there is no such release, revision or chart
    RECORD_TOO_LARGE = "RecordTooLarge", False
    NOT_REACHABLE = "NotReachable", True
    TLS = "Tls", False
    CHART_INVALID = "ChartInvalid", False
    TIMED_OUT = "TimedOut", True
    KILLED = "Killed", True
    NO_SPACE = "NoSpace", True
    BINARY_MISSING = "BinaryMissing", False
    OTHER = "Other", True

    def __init__(self, word: str, transient: bool) -> None:
        self.word, self.transient = word, transient


class HelmFailed(Exception):  # noqa: N818 - what happened, as httpx and others name theirs
    """A helm command did not succeed. The message is helm's own words, without given values.

    What it had already written is unknown: look at the release record and the objects before acting again.
    """

    def __init__(self, kind: FailureKind, message: str, *, command: str = "", exit_code: int | None = None) -> None:
        self.kind, self.message, self.command, self.exit_code = kind, message, command, exit_code
        super().__init__(f"helm {command}: {message}" if command else f"{kind.word}: {message}")

    @property
    def transient(self) -> bool:
        return self.kind.transient


_K = FailureKind
_TABLE: tuple[tuple[str, FailureKind], ...] = (
    (r"no space left on device|disk quota exceeded", _K.NO_SPACE),
    (r"another operation \(install/upgrade/rollback\) is in progress|has no deployed releases", _K.PENDING),
    (r"don't meet the specifications of the schema|schema validation failed", _K.SCHEMA_VIOLATION),
    (
        r"execution error at \(|executing \".*\" at <|function \"\w+\" not defined|parse error at \("
        r"|YAML parse error on|error calling ",
        _K.RENDER,
    ),
    (r"cannot be imported into the current release|invalid ownership metadata", _K.ALREADY_OWNED),
    (
        r"(pre|post)-(install|upgrade|rollback|delete)( hooks? failed|:)|failed (pre|post)-(install|upgrade)",
        _K.HOOK_FAILED,
    ),
    (r"exceeded quota|must specify limits\.|must specify requests\.", _K.QUOTA),
    (r"because it is being terminated", _K.NAMESPACE_ENDING),
    (r'failed calling webhook|no endpoints available for service "', _K.WEBHOOK_DOWN),
    (r"admission webhook .* denied|ValidatingAdmissionPolicy .* denied|violates PodSecurity", _K.DENIED),
    (
        r"field is immutable|updates to \w+ spec for fields other than|spec is immutable|may not change once set"
        r"|Forbidden: updates to|may not be changed|cannot be changed|field can not be less|may not be updated"
        r"|primary clusterIP can not be unset|cannot change roleRef",
        _K.IMMUTABLE,
    ),
    (r"\bis forbidden: |forbidden: User|403 Forbidden|: 403|forbidden: attempting to grant", _K.FORBIDDEN),
    (
        r"must be logged in|asked for the client to provide credentials|\bUnauthorized\b|: 401|unauthorized:",
        _K.UNAUTHORIZED,
    ),
    (r'namespaces "[^"]*" not found', _K.NO_NAMESPACE),
    (r"no matches for kind|ensure CRDs are installed first|could not find the requested resource", _K.UNKNOWN_KIND),
    (
        r"must have at most \d+ bytes|may not be more than \d+ bytes|request is too large|Request entity too large"
        r"|trying to send message larger than max",
        _K.RECORD_TOO_LARGE,
    ),
    (r"conflict(s)? with \"|Apply failed with \d+ conflict|the object has been modified|already exists", _K.CONFLICT),
    (r"x509:|certificate (is not|has expired|signed by)|tls: failed|server gave HTTP response to HTTPS client", _K.TLS),
    (
        r"cluster unreachable|connection refused|connection reset|no such host|no route to host|network is unreachable"
        r"|i/o timeout|TLS handshake timeout|http2: |unexpected EOF|\bEOF$|currently unable to handle the request"
        r"|etcdserver: |too many requests|Too Many Requests|503 Service Unavailable|502 Bad Gateway"
        r"|server is shutting down"
        r"|apiserver not ready|client rate limiter",
        _K.NOT_REACHABLE,
    ),
    (r"context deadline exceeded|timed out waiting", _K.TIMED_OUT),
    (r"context canceled|received signal", _K.KILLED),
    (r"release: not found|release has no |no revision for release|: not found$|404", _K.NOT_FOUND),
    (r"unable to locate any tags|could not locate a version matching|no chart version found", _K.NOT_FOUND),
    (
        r"\bis invalid: |error validating|unknown field|strict decoding error|unable to build kubernetes objects"
        r"|failed to create typed patch object|is invalid$|cannot unmarshal|unable to decode|Invalid value",
        _K.INVALID,
    ),
    (
        r"Chart\.yaml file is missing|validation: chart\.metadata|does not appear to be a gzipped archive"
        r"|found in Chart.yaml"
        r"|unable to load chart|chart .* invalid|is not installable|incompatible with Kubernetes",
        _K.CHART_INVALID,
    ),
)
_COMPILED = tuple((re.compile(pattern, re.MULTILINE | re.DOTALL), kind) for pattern, kind in _TABLE)
_NOISE = re.compile(
    r"^(?:Error: |UPGRADE FAILED: |INSTALLATION FAILED: |ROLLBACK FAILED: |failed to perform \"[^\"]*\" on source: )+"
)
_LOG_LINE = re.compile(
    r"^(?:[WEI]\d{4} [\d:.]+ +\d+ \S+\] |(?:time=\S+ )?level=(?:DEBUG|INFO|WARN) |WARNING: )(.*)$", re.MULTILINE
)


def classify(stderr: str) -> FailureKind:
    """The kind of a failed command, by what it wrote."""
    text = words(stderr)
    return next((kind for pattern, kind in _COMPILED if pattern.search(text)), FailureKind.OTHER)


def is_transient(word: str) -> bool:
    """Whether a failure of this kind may heal without a change of the release; unknown words may."""
    return next((kind.transient for kind in FailureKind if kind.word == word), True)


def words(stderr: str) -> str:
    """Helm's own sentence: without log lines and repeated prefixes, at most MAX_WORDS characters."""
    text = _NOISE.sub("", _LOG_LINE.sub("", stderr).strip())
    return text if len(text) <= MAX_WORDS else text[: MAX_WORDS - 1] + "…"


def warnings(stderr: str) -> tuple[str, ...]:
    """What the API server or helm warned of in a command that succeeded, each once, in order."""
    found = (line.strip().strip('"') for line in _LOG_LINE.findall(stderr))
    return tuple(dict.fromkeys(re.sub(r'^msg="?|"$', "", line) for line in found if line))


def redact(message: str, given: Mapping[str, Any], keep: Collection[str] = ()) -> str:
    """`message` with every given value replaced by its name, as in `(values: db.password)`.

    `keep` holds texts that are no secret even if they are a value too, such as the release's name. Numbers and
    booleans of less than six characters stay, as they would be found everywhere.
    """
    found: dict[str, str] = {}
    for path, text in _leaves(given, ""):
        for form in _forms(text):
            if form not in keep:
                found.setdefault(form, path)
    for form in sorted(found, key=len, reverse=True):
        edge = (r"(?<!\w)" if form[0].isalnum() else "") + re.escape(form) + (r"(?!\w)" if form[-1].isalnum() else "")
        message = re.sub(edge, _Name(found[form]), message)
    return message


class _Name:
    """A replacement that `re.sub` takes as it is."""

    def __init__(self, path: str) -> None:
        self._text = f"(values: {path})"

    def __call__(self, _: re.Match[str]) -> str:
        return self._text


def _leaves(node: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, Mapping):
        for key, value in node.items():
            yield from _leaves(value, f"{path}.{key}" if path else str(key))
    elif isinstance(node, list | tuple):
        for index, value in enumerate(node):
            yield from _leaves(value, f"{path}[{index}]")
    elif isinstance(node, str):
        yield path, node
    elif isinstance(node, int | float) and len(str(node)) >= 6:
        yield path, str(node)


def _forms(text: str) -> Iterator[str]:
    """The texts by which a value can show up: whole, quoted by Go, and each of its lines."""
    for part in {text, *text.splitlines()}:
        clean = part.strip()
        if len(clean) >= 4:
            yield clean
            yield json.dumps(clean, ensure_ascii=False)[1:-1]
