"""The read model as text: a table of many objects, one screen about one, and the explanation of where it stands.

`width` is that of the terminal, 0 where there is none: then nothing is cut.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from moorage.runtime.reporting import screen_rows

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


def one_screen(
    views: Sequence[model.ObjectView],
    paint: Paint = plain,
    width: int = 0,
    *,
    rows: Mapping[str, screen_rows.Rows] = MappingProxyType({}),
) -> str:
    """All that a person looks for first, of each; `rows` are those of each kind, by its name."""
    return "\n\n".join(_screen(view, rows.get(view.kind, screen_rows.nothing), paint, width) for view in views)


def _screen(view: model.ObjectView, rows: screen_rows.Rows, paint: Paint, width: int) -> str:
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
    lines += _own(view, rows, paint, width)
    lines += _row("Next", view.next, width)
    if view.events:
        lines.append("  Events")
        lines += [
            _cut(f"    {event.at[:19]}  {event.reason:<18} {event.message}", width) for event in view.events[-_EVENTS:]
        ]
    return "\n".join(lines)


def _own(view: model.ObjectView, rows: screen_rows.Rows, paint: Paint, width: int) -> Iterable[str]:
    """What the kind shows of itself, with its objects at their place, or below all else."""
    shown = list(rows(view.status))
    if all(row.label != screen_rows.OBJECTS for row in shown):
        shown.append(screen_rows.Row(screen_rows.OBJECTS))
    for row in shown:
        if row.label == screen_rows.OBJECTS:
            yield from _children(view, row.text, paint, width)
            continue
        yield from _row(row.label, row.text, width)
        for item in row.items:
            mark = paint("✓", "green") if item.good else paint("✗", "yellow")
            yield f"    {mark} {_cut(item.text, max(width - 6, 0))}"


def _children(view: model.ObjectView, counted: str, paint: Paint, width: int) -> Iterable[str]:
    """The objects as they are live; without any, how many status counts."""
    if not counted and not view.children:
        return
    yield from _row(screen_rows.OBJECTS, _counted(view.children) if view.children else counted, width)
    for child in view.children:
        colour = {"True": "green", "Unknown": "dim"}.get(child.ready, "yellow")
        mark = {"True": "✓", "Unknown": "·"}.get(child.ready, "✗")
        why = f"  {child.reason}: {child.message}" if child.ready == "False" else ""
        yield f"    {paint(mark, colour)} {_cut(f'{child.kind} {child.name}{why}', max(width - 6, 0))}"


def _counted(children: Sequence[model.ChildView]) -> str:
    by_kind = collections.Counter(child.kind for child in children)
    read = [child for child in children if child.ready != "Unknown"]
    unread = f", {left} not read" if (left := len(children) - len(read)) else ""
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(by_kind.items()))
    return f"{sum(child.ready == 'True' for child in read)} of {len(read)} ready{unread}  ({kinds})"


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
