"""The read model as text: a table of many objects, one screen about one, and the explanation of where it stands.

`width` is that of the terminal, 0 where there is none: then nothing is cut.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from . import model

Paint = Callable[[str, str], str]
"""(text, colour) -> text; colours: green, yellow, red, dim, bold."""

_EVENTS = 6
_GUTTER = 12


def plain(text: str, _: str) -> str:
    """No colour."""
    return text


def table(
    views: Sequence[model.ObjectView],
    paint: Paint = plain,
    width: int = 0,
    *,
    operator: str = "",
    missing: Sequence[str] = (),
) -> str:
    """One line per object, one that counts them, and what is wrong with moorage itself or not installed."""
    notes = [paint(operator, "red")] if operator else []
    if missing:
        notes.append(f"not installed here, by the values of moorage's chart: {', '.join(missing)}")
    if not views:
        return "\n".join(["no objects; `kubectl apply` one, such as those below examples/", *notes])
    rows = [("KIND", "NAMESPACE", "NAME", "READY", "REASON")]
    rows += [(v.kind, v.namespace, v.name, v.ready, v.reason) for v in views]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    messages = ["MESSAGE", *(v.message for v in views)]
    colours = ["bold", *(_colour(v) for v in views)]
    lines = []
    for row, message, colour in zip(rows, messages, colours, strict=True):
        cells = [cell.ljust(width_) for cell, width_ in zip(row, widths, strict=True)]
        room = width - sum(widths) - 2 * len(widths) if width else 0
        cells[3] = paint(cells[3], colour)
        lines.append("  ".join([*cells, _cut(message, room)]).rstrip())
    return "\n".join([*lines, "", _count(views), *notes])


def _count(views: Sequence[model.ObjectView]) -> str:
    stalled = sum(v.exit_code == 2 for v in views)
    ready = sum(v.ready == "True" and v.exit_code != 2 for v in views)
    words = [f"{ready} of {len(views)} ready"]
    if stalled:
        words.append(f"{stalled} stalled")
    if under_way := len(views) - ready - stalled:
        words.append(f"{under_way} on the way")
    return ", ".join(words)


# --- one object -----------------------------------------------------------------------------------------------------


def one_screen(views: Sequence[model.ObjectView], paint: Paint = plain, width: int = 0) -> str:
    """All that a person looks for first, of each."""
    return "\n\n".join(_screen(view, paint, width) for view in views)


def _screen(view: model.ObjectView, paint: Paint, width: int) -> str:
    told = f"{view.reason}: {view.message}" if view.message else view.reason
    lines = [
        paint(f"{view.kind} {view.namespace}/{view.name}", "bold") + ("  (being deleted)" if view.deleting else "")
    ]
    lines += _row("Ready", f"{paint(view.ready, _colour(view))}  {told}", width)
    if view.changed_at:
        lines += _row("Changed", f"{view.changed_at}, and not looked at since", width)
    if view.operator:
        lines += _row("Operator", paint(view.operator, "red"), width)
    if since := _since(view):
        lines += _row("Since", since, width)
    if view.paused:
        lines += _row("Paused", "nothing is carried out while moorage.dev/paused=true", width)
    lines += _release(view, width)
    lines += _children(view, paint, width)
    lines += _group(view, paint, width)
    if view.status.get("lastError"):
        lines += _row("Last error", str(view.status["lastError"]), width)
    lines += _row("Next", view.next, width)
    if view.events:
        lines.append("  Events")
        lines += [
            _cut(f"    {event.at[:19]}  {event.reason:<18} {event.message}", width) for event in view.events[-_EVENTS:]
        ]
    return "\n".join(lines)


def _release(view: model.ObjectView, width: int) -> Iterable[str]:
    chart, release = view.status.get("chart") or {}, view.status.get("release") or {}
    if chart:
        digest = str(chart.get("digest", ""))[:19]
        asked = f'  for "{chart["constraint"]}"' if chart.get("constraint") else ""
        yield from _row("Chart", f"{chart.get('name')} {chart.get('version')}  {digest}{asked}", width)
    if release:
        made = f"revision {release['revision']} {release.get('status', '')}" if release.get("revision") else "none yet"
        yield from _row("Release", f"{release.get('namespace')}/{release.get('name')}  {made}", width)


def _children(view: model.ObjectView, paint: Paint, width: int) -> Iterable[str]:
    counted = view.status.get("inventory") or {}
    if not counted.get("objects") and not view.children:
        return
    yield from _row("Objects", _counted(view), width)
    for child in view.children:
        colour = {"True": "green", "Unknown": "dim"}.get(child.ready, "yellow")
        mark = {"True": "✓", "Unknown": "·"}.get(child.ready, "✗")
        why = f"  {child.reason}: {child.message}" if child.ready == "False" else ""
        yield f"    {paint(mark, colour)} {_cut(f'{child.kind} {child.name}{why}', max(width - 6, 0))}"


def _counted(view: model.ObjectView) -> str:
    """Of the rows below it, as they are live; without any, of what status says."""
    counted = view.status.get("inventory") or {}
    by_kind, ready, total = counted.get("kinds") or {}, counted.get("ready", 0), counted.get("objects", 0)
    unread = ""
    if view.children:
        by_kind = collections.Counter(child.kind for child in view.children)
        read = [child for child in view.children if child.ready != "Unknown"]
        ready, total = sum(child.ready == "True" for child in read), len(read)
        unread = f", {left} not read" if (left := len(view.children) - total) else ""
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(by_kind.items()))
    return f"{ready} of {total} ready{unread}  ({kinds})"


def _group(view: model.ObjectView, paint: Paint, width: int) -> Iterable[str]:
    """A group of members: who is in it, in which role, and the task that is under way."""
    status = view.status
    if phase := status.get("phase"):
        yield from _row("Phase", str(phase), width)
    members = status.get("memberStatuses") or ()
    if members:
        wanted = f", {size} wanted" if (size := status.get("size", 0)) != len(members) else ""
        yield from _row("Members", f"{_online(members)} of {len(members)} online{wanted}", width)
    for member in members:
        online = member.get("state") == "Online"
        roles = [word for word, is_so in _roles(status, member) if is_so]
        address = str(member.get("podIP") or "no pod")
        if member.get("registeredIP") not in (member.get("podIP"), "", None):
            address += f" (the group knows {member['registeredIP']})"
        cells = [
            str(member["name"]),
            str(member.get("state", "")),
            " ".join(roles),
            address,
            str(member.get("image", "")),
        ]
        mark = paint("✓", "green") if online else paint("✗", "yellow")
        yield f"    {mark} {_cut('  '.join(cell for cell in cells if cell), max(width - 6, 0))}"
    if task := status.get("currentTask"):
        percent = (status.get("taskProgress") or {}).get("percent", 0)
        said = f"{task['command']} {task['target']} at {task['endpoint']}: {percent} %"
        yield from _row("Task", f"{said}, attempt {task.get('attempts', 1)}, since {task.get('startedAt', '')}", width)
    for trouble in status.get("troubles") or ():
        said = f"{trouble['command']} {trouble['target']}: {trouble['attempts']} times, last: {trouble.get('message')}"
        yield from _row("Failed", said, width)
    if grids := status.get("grids"):
        yield from _row("Grids", ", ".join(grids), width)


def _online(members: Sequence[dict[str, Any]]) -> int:
    return sum(member.get("state") == "Online" for member in members)


def _roles(status: dict[str, Any], member: dict[str, Any]) -> tuple[tuple[str, bool], ...]:
    return (
        ("primary", member["name"] == status.get("primary")),
        ("copy", member["name"] == (status.get("replication") or {}).get("slave")),
        ("catalog", bool(member.get("catalog"))),
    )


def explanation(views: Sequence[model.ObjectView], paint: Paint = plain, width: int = 0) -> str:
    """Why each stands where it stands: the first blocker on top, then facts and steps."""
    return "\n\n".join(_explanation(view, paint, width) for view in views)


def _explanation(view: model.ObjectView, paint: Paint, width: int) -> str:
    head = f"{view.kind} {view.namespace}/{view.name}"
    if view.exit_code == 0:
        lines = [f"{head} is {paint('ready', 'green')}."]
    else:
        lines = [f"{head} is {_where(view, paint)}: {view.reason}", f"  {view.message}"]
        if view.operator:
            lines.append(f"  {view.operator}")
        lines += [f"  {child.kind} {child.name}: {child.message}" for child in view.children if child.ready == "False"]
    lines.append(f"Next: {view.next}")
    if since := _since(view):
        lines.append(f"Since: {since}")
    lines += ["", "Facts"]
    longest = max((len(fact.type) for fact in view.facts), default=0)
    lines += [
        _cut(f"  {fact.type:<{longest}}  {fact.status:<7}  {fact.reason:<14}  {fact.message}".rstrip(), width)
        for fact in view.facts
    ]
    lines += ["", "Steps"]
    marks = {"Done": paint("✓", "green"), "Standing": paint("▶", "yellow"), "NotReached": paint("·", "dim")}
    lines += [f"  {marks[step.state]} {step.name:<30} {step.says}" for step in view.steps]
    return "\n".join(lines)


def _since(view: model.ObjectView) -> str:
    """Since when it has stood where it stands; empty if it stands nowhere, or that is of an earlier spec."""
    at = view.status.get("progress") or {}
    if not view.looked_at or not at.get("since"):
        return ""
    return f"{at['since']}, which is longer than expected" if at.get("overdue") else str(at["since"])


def _where(view: model.ObjectView, paint: Paint) -> str:
    """In a word where it stands."""
    if not view.facts:
        return paint("new", "yellow")
    if not view.looked_at:
        since = f" at {view.changed_at}" if view.changed_at else ""
        return paint(f"changed{since}", "yellow")
    if view.stalled:
        return paint("stalled", "red")
    return paint("on its own" if view.operator else "on its way", "yellow")


# --- shared ---------------------------------------------------------------------------------------------------------


def _row(label: str, text: str, width: int) -> list[str]:
    """A labelled row; a text that is wider than the terminal goes on below itself."""
    indent = " " * (_GUTTER + 2)
    first, room = f"  {label:<{_GUTTER}}", max(width - _GUTTER - 2, 40)
    if not width or len(text) <= room:
        return [first + text]
    lines, line = [], ""
    for word in text.split(" "):
        if line and len(line) + 1 + len(word) > room:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    return [first + lines[0], *(indent + each for each in [*lines[1:], line])] if lines else [first + line]


def _cut(text: str, room: int) -> str:
    return text if room <= 0 or len(text) <= room else text[: max(room - 1, 1)] + "…"


def _colour(view: model.ObjectView) -> str:
    if view.stalled:
        return "red"
    return "green" if view.ready == "True" else "yellow"
