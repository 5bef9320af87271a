"""Rendered manifests as objects: what a release holds, which of it are hooks, and what must not be there. Pure.

Reads the output of `helm template` as well as the manifest text of a release record. What can go wrong is text that
is no YAML or no object: `ManifestError` names the document by its source comment.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from moorage.api import meta
from moorage.helm.parsing import helm_yaml
from moorage.helm.reasons import Reason
from moorage.helm.runs import failures
from moorage.runtime import decision

__all__ = [
    "Hook",
    "InventoryItem",
    "IsNamespaced",
    "Manifest",
    "ManifestError",
    "Problem",
    "ProblemKind",
    "dump_inventory",
    "inventory",
    "load_inventory",
    "parse",
    "problems",
]

Object = dict[str, Any]
IsNamespaced = Callable[[str, str], bool | None]
"""(apiVersion, kind) -> namespaced or not, None when the cluster doesn't serve the kind."""
Served = Callable[[str, str], tuple[str, ...]]
"""(apiVersion, kind) -> in which other versions the cluster serves the kind."""

MAX_OBJECTS = 1_000  # of one release
MAX_INVENTORY = 3 * MAX_OBJECTS  # a release, what it is upgraded to, and what is not removed yet

HOOK = "helm.sh/hook"
HOOK_WEIGHT = "helm.sh/hook-weight"
HOOK_DELETE_POLICY = "helm.sh/hook-delete-policy"
RESOURCE_POLICY = "helm.sh/resource-policy"

_SOURCE = re.compile(r"^# Source: (\S+)", re.MULTILINE)
_SEPARATOR = re.compile(r"^---[ \t]*(?:#.*)?$", re.MULTILINE)
_INSTALL_ORDER = (
    "PriorityClass Namespace NetworkPolicy ResourceQuota LimitRange PodSecurityPolicy PodDisruptionBudget "
    "ServiceAccount Secret SecretList ConfigMap StorageClass PersistentVolume PersistentVolumeClaim "
    "CustomResourceDefinition ClusterRole ClusterRoleList ClusterRoleBinding ClusterRoleBindingList Role RoleList "
    "RoleBinding RoleBindingList Service DaemonSet Pod ReplicationController ReplicaSet Deployment "
    "HorizontalPodAutoscaler StatefulSet Job CronJob IngressClass Ingress APIService MutatingWebhookConfiguration "
    "ValidatingWebhookConfiguration"
)
_RANK = {kind: rank for rank, kind in enumerate(_INSTALL_ORDER.split())}


class ManifestError(ValueError):
    """A manifest that can't be read, or an inventory."""


class Hook(msgspec.Struct, frozen=True):
    """An object that helm makes at a moment of its own; it is no part of the release's steady state."""

    object: Object
    events: tuple[str, ...]  # "pre-install", "post-upgrade", "test", ...
    weight: int = 0
    delete_policies: tuple[str, ...] = ("before-hook-creation",)

    @property
    def lasting(self) -> bool:
        """Whether the object stays when the hook has succeeded."""
        return "hook-succeeded" not in self.delete_policies


class Manifest(msgspec.Struct, frozen=True):
    """The objects of a release in helm's install order, and its hooks by weight."""

    objects: tuple[Object, ...]
    hooks: tuple[Hook, ...] = ()


class InventoryItem(msgspec.Struct, frozen=True, order=True):
    """One object that a release makes. `keep`: helm leaves it behind on uninstall and when the chart drops it."""

    ref: meta.ObjectRef
    hook: bool = False
    keep: bool = False


class ProblemKind(enum.Enum):
    """Why a manifest can't be applied as it is."""

    NAMELESS = "Nameless"
    CLUSTER_SCOPED = "ClusterScoped"
    OTHER_NAMESPACE = "OtherNamespace"
    DUPLICATE = "Duplicate"
    UNKNOWN_KIND = "UnknownKind"

    @property
    def reason(self) -> decision.Reason:
        """What it is to the owner of the release."""
        match self:
            case ProblemKind.CLUSTER_SCOPED | ProblemKind.OTHER_NAMESPACE:
                return Reason.REACHES_OUTSIDE
            case ProblemKind.UNKNOWN_KIND:
                return failures.FailureKind.UNKNOWN_KIND
        return Reason.CHART_INVALID


class Problem(msgspec.Struct, frozen=True):
    """A fault of one object; `what` names the object, `message` is a sentence."""

    kind: ProblemKind
    what: str
    message: str


def parse(text: str, budget: helm_yaml.Budget | None = None) -> Manifest:
    """Objects and hooks of a multi-document text; Lists are opened, empty documents skipped.

    Raises documents.TooLarge beyond the budget, or when there are more than MAX_OBJECTS.
    """
    objects: list[Object] = []
    hooks: list[Hook] = []
    for body in _documents(text, budget or helm_yaml.Budget()):
        if len(objects) + len(hooks) == MAX_OBJECTS:
            raise helm_yaml.TooLarge(f"more than {MAX_OBJECTS} objects")
        hook = _as_hook(body)
        if hook is None:
            objects.append(body)
        else:
            hooks.append(hook)
    return Manifest(
        tuple(sorted(objects, key=_install_order)),
        tuple(sorted(hooks, key=lambda h: (h.weight, _install_order(h.object)))),
    )


def inventory(
    objects: Iterable[Object], hooks: Iterable[Hook], namespace: str, is_namespaced: IsNamespaced
) -> tuple[InventoryItem, ...]:
    """Every object that the release can leave in the cluster; not test hooks, which only `helm test` makes."""
    found = {_item(body, namespace, is_namespaced, hook=False) for body in objects}
    found |= {_item(h.object, namespace, is_namespaced, hook=True) for h in hooks if set(h.events) != {"test"}}
    return tuple(sorted(found))


def dump_inventory(items: Iterable[InventoryItem]) -> str:
    """A compact JSON text, equal for equal items: rows of [apiVersion, kind, namespace, name, flags]."""
    rows = [
        (i.ref.api_version, i.ref.kind, i.ref.namespace, i.ref.name, ("h" if i.hook else "") + ("k" if i.keep else ""))
        for i in sorted(items)
    ]
    return msgspec.json.encode(rows).decode()


def load_inventory(text: str) -> tuple[InventoryItem, ...]:
    """The inverse of dump_inventory. Raises ManifestError for any other text."""
    try:
        rows = msgspec.json.decode(text, type=list[tuple[str, str, str, str, str]])
    except msgspec.MsgspecError as error:
        raise ManifestError(f"not an inventory: {error}") from None
    if len(rows) > MAX_INVENTORY:
        raise ManifestError(f"an inventory of {len(rows)} objects; at most {MAX_INVENTORY} are kept")
    return tuple(InventoryItem(meta.ObjectRef(*row[:4]), "h" in row[4], "k" in row[4]) for row in rows)


def rewrite(text: str, change: Callable[[Object], Object | None], budget: helm_yaml.Budget | None = None) -> str:
    """The text with each object as `change` gives it, or without it where that is None.

    Documents of which nothing changes keep their letters; others are written as JSON, which is YAML.
    """
    parts: list[str] = []
    same, budget = True, budget or helm_yaml.Budget()
    for part in _SEPARATOR.split(text):
        before = list(_documents(part, budget))
        after = [changed for body in before if (changed := change(body)) is not None]
        if after == before:
            parts.append(part)
            continue
        same, source = False, _SOURCE.search(part)
        head = f"{source.group(0)}\n" if source else ""
        parts += [f"\n{head}{msgspec.json.encode(body).decode()}\n" for body in after]
    return text if same else "---".join(parts)


def problems(
    objects: Iterable[Object], namespace: str, is_namespaced: IsNamespaced, served: Served = lambda *_: ()
) -> tuple[Problem, ...]:
    """What a release confined to one namespace must not hold, in the order of the objects."""
    out: list[Problem] = []
    seen: set[tuple[str, str, str]] = set()
    for body in objects:
        api_version, kind, name = str(body.get("apiVersion") or ""), str(body.get("kind") or ""), _name(body)
        what = f"{kind or 'object'} {name or '(no name)'}"
        if not (api_version and kind and name):
            missing = [
                w for w, there in (("apiVersion", api_version), ("kind", kind), ("metadata.name", name)) if not there
            ]
            generated = (body.get("metadata") or {}).get("generateName")
            why = f", but generateName {generated}: it could not be found again" if generated and not name else ""
            out.append(Problem(ProblemKind.NAMELESS, what, f"{what} has no {' and no '.join(missing)}{why}"))
            continue
        out.extend(_placement(body, api_version, kind, what, namespace, is_namespaced, served))
        key = (api_version.rpartition("/")[0], kind, name)
        if key in seen:
            out.append(Problem(ProblemKind.DUPLICATE, what, f"{what} is rendered more than once"))
        seen.add(key)
    return tuple(out)


def ref(body: Object, namespace: str, is_namespaced: IsNamespaced) -> meta.ObjectRef:
    """Where the object lives when the release is in `namespace`; an unknown kind is taken for namespaced."""
    api_version, kind = str(body.get("apiVersion") or ""), str(body.get("kind") or "")
    own = (body.get("metadata") or {}).get("namespace") or namespace
    return meta.ObjectRef(api_version, kind, "" if is_namespaced(api_version, kind) is False else str(own), _name(body))


def _placement(
    body: Object,
    api_version: str,
    kind: str,
    what: str,
    namespace: str,
    is_namespaced: IsNamespaced,
    served: Served,
) -> Iterator[Problem]:
    scope = is_namespaced(api_version, kind)
    if scope is None:
        others = ", ".join(served(api_version, kind))
        but = f", but in {others}" if others else ", nor in any other version"
        message = f"{what}: the cluster doesn't serve {kind} in {api_version}{but}"
        yield Problem(ProblemKind.UNKNOWN_KIND, what, message)
    elif scope is False:
        yield Problem(ProblemKind.CLUSTER_SCOPED, what, f"{what} belongs to the whole cluster, not to a namespace")
    elif (own := (body.get("metadata") or {}).get("namespace") or namespace) != namespace:
        yield Problem(ProblemKind.OTHER_NAMESPACE, what, f"{what} is meant for namespace {own}, not for {namespace}")


def _documents(text: str, budget: helm_yaml.Budget) -> Iterator[Object]:
    for part in _SEPARATOR.split(text):
        source = _SOURCE.search(part)
        where = source.group(1) if source else "manifest"
        try:
            loaded = helm_yaml.load(part, budget=budget)
        except helm_yaml.TooLarge as error:
            raise helm_yaml.TooLarge(f"{where}: {error.reason}", error.line, error.column) from None
        except helm_yaml.DocumentError as error:
            raise ManifestError(f"{where}: {error}") from None
        if loaded is None:
            continue
        if not isinstance(loaded, dict):
            raise ManifestError(f"{where}: a document that is no object")
        if not isinstance(loaded.get("metadata") or {}, dict):
            raise ManifestError(f"{where}: metadata is not a mapping")
        yield from _opened(loaded, where)


def _opened(body: Object, where: str) -> Iterator[Object]:
    items = body.get("items")
    if not (str(body.get("kind", "")).endswith("List") and isinstance(items, list)):
        yield body
        return
    for item in items:
        if not isinstance(item, dict):
            raise ManifestError(f"{where}: a list with an item that is no object")
        yield from _opened(item, where)


def _as_hook(body: Object) -> Hook | None:
    notes = (body.get("metadata") or {}).get("annotations") or {}
    events = words(notes.get(HOOK))
    if not events:
        return None
    weight = str(notes.get(HOOK_WEIGHT, "0"))
    return Hook(
        body,
        tuple("test" if e in ("test-success", "test-failure") else e for e in events),
        int(weight) if re.fullmatch(r"[-+]?\d+", weight) else 0,
        words(notes.get(HOOK_DELETE_POLICY)) or ("before-hook-creation",),
    )


def words(text: Any) -> tuple[str, ...]:
    """The words of an annotation that lists some, with commas between."""
    return tuple(word for word in (part.strip() for part in str(text or "").split(",")) if word)


def _item(body: Object, namespace: str, is_namespaced: IsNamespaced, *, hook: bool) -> InventoryItem:
    notes = (body.get("metadata") or {}).get("annotations") or {}
    # whatever it says: helm deletes no object on uninstall that bears it, also one of a policy that it doesn't know
    keep = RESOURCE_POLICY in notes
    return InventoryItem(ref(body, namespace, is_namespaced), hook, keep)


def _install_order(body: Object) -> tuple[int, str, str]:
    kind = str(body.get("kind") or "")
    return _RANK.get(kind, len(_RANK)), kind, _name(body)


def _name(body: Object) -> str:
    return str((body.get("metadata") or {}).get("name") or "")
