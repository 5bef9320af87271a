"""Helm's words on stderr, turned into typed failures. Pure.

Helm has one exit code for everything, so what went wrong is read from its text. The table below is tried in order,
special before general; each line was seen on the real binary or in the API server's source. What a message may not tell
is `redaction`'s matter.
"""

from __future__ import annotations

import enum
import re

import msgspec

from moorage.runtime import decision
from moorage.runtime.decision import WARNS

__all__ = [
    "Cure",
    "FailureKind",
    "HelmFailed",
    "Refusal",
    "classify",
    "cure",
    "refusal",
    "rule",
    "shorten",
    "warnings",
    "words",
]

MAX_WORDS = 2000  # characters; a condition's message may have 32768, an event's 1024
MAX_READ = 16_000  # characters that are looked at: what is secret must be found whole before anything is cut


class Cure(enum.Enum):
    """By what a failure can pass: how it is gone on with after it follows from this alone."""

    TIME = "it passes by itself"  # tried again with growing delays
    CLUSTER = "somebody changes the cluster"  # blocked; tried again seldom, as nothing announces such a change
    INPUT = "somebody changes chart or values"  # blocked; never tried again as it is
    UNKNOWN = "nobody knows"  # tried again some times, then blocked


class FailureKind(decision.Reason):
    """What went wrong, and by what it can pass.

    Declared as `NAME = "CamelCase", cure, "what it means", "what comes next"`, with `WARNS` where a person should look
    although it is tried again.
    """

    cure: Cure

    def __new__(cls, word: str, cure: Cure, text: str = "", next_: str = "", warns: bool = False) -> FailureKind:
        """As every reason; also says by what it passes."""
        member = cls._made(word, text, next_, warns)
        member.cure = cure
        return member

    @property
    def transient(self) -> bool:
        """Whether trying the same again may work without anyone changing anything."""
        return self.cure in (Cure.TIME, Cure.UNKNOWN)

    FORBIDDEN = (
        "Forbidden",
        Cure.CLUSTER,
        "Rights are missing; the message names the rule.",
        "an administrator must add the rule that the message names to the system's extraTenantRules, in the values of "
        "moorage's chart, or the chart must do without that object",
        WARNS,
    )
    UNAUTHORIZED = (
        "Unauthorized",
        Cure.TIME,
        "The API server or a registry does not take the credentials.",
        "whoever keeps the credentials must see to them; tried again, as they may have been rotated a moment ago",
        WARNS,
    )
    QUOTA = (
        "Quota",
        Cure.TIME,
        "A quota of the tenant's namespace is used up.",
        "raise the quota that the message names, or ask for less; tried again, as it may be raised",
        WARNS,
    )
    DENIED = (
        "Denied",
        Cure.INPUT,
        "An admission policy or webhook, or the namespace's pod security, said no.",
        "correct values or chart to what the policy asks, or have its owner admit it",
        WARNS,
    )
    WEBHOOK_DOWN = (
        "WebhookDown",
        Cure.TIME,
        "An admission webhook of the cluster gives no answer.",
        "whoever runs the webhook that the message names must bring it back; tried again until then",
        WARNS,
    )
    IMMUTABLE = (
        "Immutable",
        Cure.INPUT,
        "The change touches a field that Kubernetes lets nobody change.",
        "take the change back, or delete the object that the message names, to have it made anew",
        WARNS,
    )
    SCHEMA_VIOLATION = (
        "SchemaViolation",
        Cure.INPUT,
        "The values don't fit the chart's schema.",
        "correct the configuration where the message says",
        WARNS,
    )
    RENDER = (
        "Render",
        Cure.INPUT,
        "A template of the chart failed with these values.",
        "correct the configuration or the chart, by the template's words in the message",
        WARNS,
    )
    HOOK_FAILED = (
        "HookFailed",
        Cure.INPUT,
        "A hook of the chart failed; the message has its words.",
        "see why the hook failed (its pod's log), and correct the configuration or the chart",
        WARNS,
    )
    INVALID = (
        "Invalid",
        Cure.INPUT,
        "The API server refuses an object of the chart.",
        "correct the field that the message names, in the values or the chart",
        WARNS,
    )
    UNKNOWN_KIND = (
        "UnknownKind",
        Cure.CLUSTER,
        "The chart has an object of a kind, or in a version, that the cluster does not serve.",
        "install the definition (CRD) of that kind, or use a chart for what the cluster serves",
        WARNS,
    )
    ALREADY_OWNED = (
        "AlreadyOwned",
        Cure.INPUT,
        "An object of that name exists and is another's.",
        "remove or rename one of the two, or adopt the release with moorage.dev/adopt=true",
        WARNS,
    )
    NO_NAMESPACE = (
        "NoNamespace",
        Cure.TIME,
        "The tenant's namespace is gone.",
        "moorage makes the namespace anew, and tries again after that",
    )
    NAMESPACE_ENDING = (
        "NamespaceEnding",
        Cure.TIME,
        "The tenant's namespace is being deleted.",
        "the end of the namespace is awaited; if it hangs, its conditions (kubectl describe namespace) say on what",
    )
    PENDING = (
        "Pending",
        Cure.TIME,
        "The release's record says that another helm is at work.",
        "moorage gives the other helm ten minutes, then frees the record",
    )
    CONFLICT = (
        "Conflict",
        Cure.TIME,
        "Something else changed an object at the same time.",
        "tried again; if it stays, find who else writes that object (metadata.managedFields) and let one of the two be",
    )
    NOT_FOUND = (
        "NotFound",
        Cure.INPUT,
        "There is no such chart, release or revision.",
        "correct the name or version that the message names, or publish it",
        WARNS,
    )
    RECORD_TOO_LARGE = (
        "RecordTooLarge",
        Cure.INPUT,
        "Chart and values together are too large for Helm's record (1 MiB).",
        "make the values smaller, or have the chart's maintainer make the chart smaller",
        WARNS,
    )
    NOT_REACHABLE = (
        "NotReachable",
        Cure.TIME,
        "The API server or a registry gave no answer.",
        "tried again with growing delays; if it stays, whoever runs that server or the network must look",
    )
    TLS = (
        "Tls",
        Cure.INPUT,
        "A registry's certificate is not trusted.",
        "put the certificate's authority into the Secret of that source, as ca.crt",
        WARNS,
    )
    CHART_INVALID = (
        "ChartInvalid",
        Cure.INPUT,
        "The chart can't be used as it is.",
        "publish a corrected version, or ask for another one",
        WARNS,
    )
    TIMED_OUT = (
        "TimedOut",
        Cure.UNKNOWN,
        "Helm took too long.",
        "tried again some times; if it stays, see what the message says it was at, such as a hook that hangs",
        WARNS,
    )
    KILLED = (
        "Killed",
        Cure.TIME,
        "Helm was stopped, as at the operator's end.",
        "tried again at once; if it stays, see whether the operator's pod runs out of memory",
    )
    NO_SPACE = (
        "NoSpace",
        Cure.TIME,
        "The operator's scratch volume is full.",
        "moorage's administrator must raise scratch.sizeLimit of its chart; tried again, as files may go",
        WARNS,
    )
    BINARY_MISSING = (
        "BinaryMissing",
        Cure.CLUSTER,
        "The operator's image has no helm.",
        "moorage's administrator must use the published image, or name the binary by `moorage run --helm`",
        WARNS,
    )
    OUTSIDE = (
        "ReachesOutside",
        Cure.INPUT,
        "The chart makes or looks up an object outside the namespace of its release, where it never has rights.",
        "use a chart or values that neither make nor look up objects outside the namespace",
        WARNS,
    )
    NOT_REMOVED = (
        "NotRemoved",
        Cure.TIME,
        "An uninstall could not delete an object, and helm does not say which.",
        "tried again with growing delays; what a live look finds gone is not asked of helm again",
    )
    OTHER = (
        "Other",
        Cure.UNKNOWN,
        "Something that has no word yet; the message has Helm's own.",
        "act by Helm's words in the message; tried again some times with growing delays",
        WARNS,
    )

    @property
    def word(self) -> str:
        return str(self)


class HelmFailed(Exception):  # noqa: N818 - what happened, as httpx and others name theirs
    """A helm command did not succeed. The message is helm's own words, without what may be secret of what it was given.

    What it had already written is unknown: look at the release record and the objects before acting again.
    """

    def __init__(self, kind: FailureKind, message: str, *, command: str = "", exit_code: int | None = None) -> None:
        self.kind, self.message, self.command, self.exit_code = kind, message, command, exit_code
        said = shorten(message)
        super().__init__(f"helm {command}: {said}" if command else f"{kind.word}: {said}")

    @property
    def transient(self) -> bool:
        return self.kind.transient


_K = FailureKind
_TABLE: tuple[tuple[str, FailureKind], ...] = (
    (r"no space left on device|disk quota exceeded", _K.NO_SPACE),
    (r'forbidden: User "[^"]*" cannot \w+ (resource|path) ', _K.FORBIDDEN),  # also of a hook, and of a lookup
    (r"^failed to delete release: ", _K.NOT_REMOVED),
    (
        r"another operation \(install/upgrade/rollback\) is in progress|has no deployed releases"
        r"|cannot reuse a name that is still in use",
        _K.PENDING,
    ),
    (r"don't meet the specifications of the schema|schema validation failed", _K.SCHEMA_VIOLATION),
    (
        r"execution error at \(|executing \".*\" at <|function \"\w+\" not defined|parse error at \("
        r"|YAML parse error on|error calling ",
        _K.RENDER,
    ),
    (r"cannot be imported into the current release|invalid ownership metadata", _K.ALREADY_OWNED),
    (
        r"(pre|post)-(install|upgrade|rollback|delete)( hooks? failed|:)|failed (pre|post)-(install|upgrade)"
        r"|Hook (pre|post)-(install|upgrade|rollback|delete) |resource \w+/\S+ not ready\. status: ",
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
    (r"context canceled|received signal|^interrupted: ", _K.KILLED),
    (r"release: not found|release has no |no revision for release|: not found$|404", _K.NOT_FOUND),
    (r"unable to locate any tags|could not locate a version matching|no chart version found", _K.NOT_FOUND),
    (
        r"\bis invalid: |error validating|unknown field|strict decoding error|unable to build kubernetes objects"
        r"|metadata\.managedFields must be nil|resourceVersion should not be set|cannot both be set"
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
_REFUSAL = re.compile(
    r'cannot (?P<verb>\w+) resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)" '
    r'(?:in the namespace "(?P<namespace>[^"]+)"|at the cluster scope)'
)
_NOISE = re.compile(
    r"^(?:Error: |UPGRADE FAILED: |INSTALLATION FAILED: |ROLLBACK FAILED: |failed to perform \"[^\"]*\" on source: )+"
)
_LOG_LINE = re.compile(
    r"^(?:[WEI]\d{4} [\d:.]+ +\d+ \S+\] |(?:time=\S+ )?level=(?:DEBUG|INFO|WARN) |WARNING: )(.*)$", re.MULTILINE
)


def classify(stderr: str, namespace: str = "") -> FailureKind:
    """The kind of a failed command, by what it wrote. `namespace`: outside of it nobody gives a release rights."""
    text = words(stderr)
    kind = next((kind for pattern, kind in _COMPILED if pattern.search(text)), FailureKind.OTHER)
    if kind is _K.FORBIDDEN and namespace and (found := refusal(text)) and found.outside(namespace):
        return _K.OUTSIDE
    return kind


def cure(word: str) -> Cure:
    """By what a failure of this kind can pass; words that are not of this table are of moorage's own doing."""
    kind = FailureKind.of(word)
    return kind.cure if isinstance(kind, FailureKind) else Cure.TIME


class Refusal(msgspec.Struct, frozen=True):
    """What the API server said that an account may not do. Without a namespace it is asked of the whole cluster."""

    verb: str
    group: str
    resource: str
    namespace: str

    def outside(self, namespace: str) -> bool:
        """Whether the rights of a release in `namespace` can't ever reach there."""
        return self.namespace != namespace

    @property
    def rule(self) -> str:
        """The rule of a role that is missing, as it is written there."""
        return rule(self.group, self.resource)


def rule(group: str, resource: str) -> str:
    """The rule by which a chart may hold objects of a resource, as it is written in a role."""
    resource, verbs = resource.partition("/")[0], "[get, list, watch, create, update, patch, delete]"
    return f'{{apiGroups: ["{group}"], resources: [{resource}], verbs: {verbs}}}'


def refusal(message: str) -> Refusal | None:
    """What was refused for want of rights, if the message says so."""
    found = _REFUSAL.search(message)
    return Refusal(found["verb"], found["group"], found["resource"], found["namespace"] or "") if found else None


def words(stderr: str) -> str:
    """Helm's own sentence: without log lines and repeated prefixes, and not yet without secrets (see `redaction`)."""
    return _NOISE.sub("", _LOG_LINE.sub("", stderr).strip())[:MAX_READ]


def shorten(text: str) -> str:
    """At most MAX_WORDS characters, of what no longer holds a secret."""
    return text if len(text) <= MAX_WORDS else text[: MAX_WORDS - 1] + "…"


def warnings(stderr: str) -> tuple[str, ...]:
    """What the API server or helm warned of in a command that succeeded, each once, in order."""
    found = (line.strip().strip('"') for line in _LOG_LINE.findall(stderr))
    return tuple(dict.fromkeys(re.sub(r'^msg="?|"$', "", line) for line in found if line))
