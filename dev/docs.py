"""Writes docs/reasons.md and docs/api.md from the code: the reasons' enums and the CustomResourceDefinitions."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from moorage import operators
from moorage.helm import failures, pods

from . import stage

Schema = dict[str, Any]
NOTE = "<!-- Written by `make docs` from the code; change it there. -->"
_COMMON = (
    ("Ready", "Everything is done and the facts that readiness needs are true."),
    ("Settled", "Of Reconciling and Stalled, when they are False: nothing is under way and nothing is in the way."),
    ("Paused", "The annotation moorage.dev/paused=true holds everything back. Remove it to go on."),
    ("Active", "Of Paused, when it is False: it was paused before."),
    ("Throttled", "The API server asked for patience. Tried again with growing delays."),
    (
        "Guarded",
        "Right before an act, a live look found that it must not be done; the message says why. Looked at anew.",
    ),
    ("OutcomeUnknown", "An answer was lost, so nobody knows whether the act happened. The world is looked at anew."),
    ("NotSent", "The API server could not be reached. Tried again with growing delays."),
    ("NotLeading", "This process lost the lease; the next leader goes on."),
    ("Forbidden", "The API server refused an act for want of rights; the message names them."),
    ("DeadlineExceeded", "A pass hung and was cut short. Tried again; if it stays, the log says what hung."),
    ("InternalError", "A defect of moorage. The message and the operator's log say where; please report it."),
)

_HELM = {
    "Forbidden": "Rights are missing; the message names them. Tried again, as they may be given.",
    "Unauthorized": "The API server or a registry does not take the credentials. Tried again.",
    "Quota": "A quota of the tenant's namespace is used up. Raise it, or ask for less; tried again.",
    "Denied": "An admission policy or webhook, or the namespace's pod security, said no. Correct values or chart.",
    "WebhookDown": "An admission webhook of the cluster gives no answer. Tried again.",
    "Immutable": "The change touches a field that Kubernetes lets nobody change. Take it back, or delete the object.",
    "SchemaViolation": "The values don't fit the chart's schema. Correct the configuration.",
    "Render": "A template of the chart failed with these values. Correct the configuration or the chart.",
    "HookFailed": "A hook of the chart failed; the message has its words.",
    "Invalid": "The API server refuses an object of the chart. Correct the values or the chart.",
    "UnknownKind": "The chart has an object of a kind that the cluster does not know. Install its CRD first.",
    "AlreadyOwned": "An object of that name exists and is another's. Remove or rename one, or adopt the release.",
    "NoNamespace": "The tenant's namespace is gone. Tried again.",
    "NamespaceEnding": "The tenant's namespace is being deleted. Tried again.",
    "Pending": "The release's record says that another helm is at work.",
    "Conflict": "Something else changed an object at the same time. Tried again.",
    "NotFound": "There is no such chart, release or revision.",
    "RecordTooLarge": "Chart and values together are too large for Helm's record (1 MiB). Make them smaller.",
    "NotReachable": "The API server or a registry gave no answer. Tried again.",
    "Tls": "A registry's certificate is not trusted. Put its authority into the Secret of that source, as ca.crt.",
    "ChartInvalid": "The chart can't be used as it is. Publish a corrected version.",
    "TimedOut": "Helm took too long. Tried again.",
    "Killed": "Helm was stopped, as at the operator's end. Tried again.",
    "NoSpace": "The operator's scratch volume is full; see the value scratch.sizeLimit of its chart.",
    "BinaryMissing": "The operator's image has no helm. Use the published image.",
    "Other": "Something that has no word yet; the message has Helm's own. Tried again.",
}
_PODS = {
    "ImagePull": "The node can't get the image; the message has its name and the registry's words.",
    "ContainerConfig": "The container can't be made, as when a Secret or ConfigMap that it names is missing.",
    "OutOfMemory": "The container was killed for using more memory than its limit.",
    "CrashLoop": "The container ends each time it is started; the message has the last line of its log.",
    "Exited": "The container has ended.",
    "Evicted": "The pod was evicted or failed as a whole.",
    "Quota": "A quota of the namespace keeps the pod from being made. Heals when it is raised.",
    "Denied": "Admission or pod security keeps the pod from being made.",
    "Unschedulable": "No node takes the pod; the message has the scheduler's words.",
    "VolumePending": "A volume is not bound or not mounted yet.",
    "Sandbox": "The node can't set up the pod's network or sandbox.",
    "ProbeFailing": "The container runs, and its readiness probe has not passed.",
    "NotReady": "The pod is not ready, as a readiness gate says.",
    "Starting": "The pod is being started.",
}
_OBJECTS = {
    "PodsNotReady": "Fewer pods are ready than wanted.",
    "PodNotReady": "The pod is not ready.",
    "PodFailed": "The pod has failed.",
    "Updating": "Pods of the new revision are being made.",
    "OldPods": "Pods of an older revision are still there.",
    "Scaling": "The number of pods is being changed.",
    "SpecNotObserved": "Its controller has not looked at the latest change yet.",
    "ProgressDeadlineExceeded": "The Deployment made no progress within its deadline.",
    "JobRunning": "The Job has not completed yet.",
    "JobFailed": "The Job has failed.",
    "LoadBalancerPending": "The Service has no address of a load balancer yet.",
    "VolumeLost": "The claim's volume is gone.",
    "BudgetNotMet": "Fewer pods are healthy than the disruption budget asks for.",
    "NotEstablished": "The definition of the kind is not served yet.",
    "Terminating": "The object is being deleted.",
}


def pages() -> dict[str, str]:
    """The generated pages by file name below docs/."""
    return {"reasons.md": _reasons(), "api.md": _api()}


# --- reasons ----------------------------------------------------------------------------------------------------------


def _reasons() -> str:
    lines = [
        "# Reasons",
        "",
        NOTE,
        "",
        "The reason of a condition, of an event and of a log line is one of these words. They are part of the API: a",
        "word keeps its meaning. `moorage explain KIND/NAME` shows the reason with its message and what to do next.",
        "",
        "## Every kind",
        "",
        *_table(_COMMON),
    ]
    words = {kind.word for kind in failures.FailureKind}
    if words != _HELM.keys() or set(pods._RANK) != _PODS.keys():
        raise stage.Failed(f"dev/docs.py does not explain: {(words ^ _HELM.keys()) | (set(pods._RANK) ^ _PODS.keys())}")
    for system in operators.SYSTEMS.values():
        for enum in system.reasons:
            shared = not enum.__module__.startswith(f"moorage.operators.{system.name}")
            lines += ["", f"## {system.title}: its release" if shared else f"## {system.title}", ""]
            lines += _table((str(reason), reason.help) for reason in enum)
    for title, text, table in (
        ("What helm's runs fail with", "For every kind that is a release; the message has Helm's own words.", _HELM),
        ("What keeps pods from being ready", "The message names the pod and the container.", _PODS),
        ("What keeps other objects from being ready", "The message names the object.", _OBJECTS),
    ):
        lines += ["", f"## {title}", "", text, "", *_table(table.items())]
    return "\n".join([*lines, ""])


def _table(rows: Any) -> list[str]:
    made = ["| reason | what it means, and what to do |", "|---|---|"]
    return made + [f"| `{word}` | {_cell(text)} |" for word, text in sorted(rows)]


# --- API --------------------------------------------------------------------------------------------------------------


def _api() -> str:
    lines = [
        "# API",
        "",
        NOTE,
        "",
        "Every field of every kind, as the API server knows it (`kubectl explain` shows the same).",
    ]
    for system in operators.SYSTEMS.values():
        for definition in system.definitions():
            lines += _kind(definition)
    return "\n".join([*lines, ""])


def _kind(definition: Schema) -> list[str]:
    spec = definition["spec"]
    names, version = spec["names"], spec["versions"][0]
    schema = version["schema"]["openAPIV3Schema"]["properties"]
    short = ", ".join(f"`{name}`" for name in names.get("shortNames", ()))
    lines = [
        "",
        f"## {names['kind']}",
        "",
        f"`apiVersion: {spec['group']}/{version['name']}`, plural `{names['plural']}`"
        + (f", short {short}" if short else "")
        + (f", in the categories {', '.join(f'`{c}`' for c in names['categories'])}" if names.get("categories") else "")
        + ".",
    ]
    for part in ("spec", "status"):
        if part in schema:
            lines += [
                "",
                f"### {names['kind']} {part}",
                "",
                "| field | type | default | meaning |",
                "|---|---|---|---|",
            ]
            lines += _fields(schema[part], part)
            if rules := list(_rules(schema[part])):
                lines += ["", "Rules that the API server checks:", "", *(f"- {rule}" for rule in rules)]
    columns = version.get("additionalPrinterColumns", ())
    if columns:
        lines += ["", "Columns of `kubectl get`: " + ", ".join(_column(column) for column in columns) + "."]
    return lines


def _fields(schema: Schema, path: str) -> Iterator[str]:
    required = set(schema.get("required", ()))
    for name, field in schema.get("properties", {}).items():
        here = f"{path}.{name}"
        default = f"`{_default(field['default'])}`" if "default" in field else "required" if name in required else ""
        yield f"| `{here}` | {_type(field)} | {default} | {_cell(_meaning(field))} |"
        yield from _fields(field, here)
        items = field.get("items")
        if isinstance(items, dict):
            yield from _fields(items, f"{here}[]")


def _default(value: Any) -> str:
    if isinstance(value, dict):
        return "{}"
    return f'"{value}"' if isinstance(value, str) else str(value)


def _type(field: Schema) -> str:
    if "enum" in field:
        return " \\| ".join(str(choice) for choice in field["enum"])
    kind = field.get("type", "any")
    if kind == "array":
        return f"list of {field['items'].get('type', 'any')}"
    if kind == "object" and isinstance(field.get("additionalProperties"), dict):
        return f"map of {field['additionalProperties'].get('type', 'any')}"
    return str(kind)


def _meaning(field: Schema) -> str:
    words = [field.get("description", "")]
    low, high = field.get("minimum"), field.get("maximum")
    if low is not None and high is not None:
        words.append(f"From {low} to {high}.")
    if "maxLength" in field:
        words.append(f"At most {field['maxLength']} characters.")
    if "pattern" in field:
        words.append(f"Matches `{field['pattern']}`.")
    return " ".join(word for word in words if word)


def _rules(schema: Schema) -> Iterator[str]:
    for rule in schema.get("x-kubernetes-validations", ()):
        yield f"{rule['message']} (`{rule['rule']}`)"
    for field in schema.get("properties", {}).values():
        yield from _rules(field)


def _column(column: Schema) -> str:
    return f"{column['name']}{' (with `-o wide`)' if column.get('priority') else ''}"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def work() -> None:
    """Write the pages that changed."""
    for name, text in pages().items():
        path = stage.ROOT / "docs" / name
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            print(f"docs/{name}")


if __name__ == "__main__":
    sys.exit(stage.main(["make docs"], work))
