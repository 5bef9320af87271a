"""The read model as text for a terminal."""

from __future__ import annotations

from collections.abc import Callable

from . import model

Paint = Callable[[str, str], str]
"""(text, colour) -> text; colours: green, yellow, red, dim, bold."""

_COLOURS = {"True": "green", "Unknown": "yellow", "False": "yellow"}


def plain(text: str, _: str) -> str:
    """No colour."""
    return text


def table(views: list[model.ObjectView], paint: Paint = plain) -> str:
    """One line per object."""
    if not views:
        return "nothing found"
    rows = [("KIND", "NAMESPACE", "NAME", "READY", "REASON", "MESSAGE")]
    rows += [(v.kind, v.namespace, v.name, v.ready, v.reason, v.message[:80]) for v in views]
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    lines = []
    for index, row in enumerate(rows):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        colour = "bold" if index == 0 else _colour(views[index - 1])
        cells[3] = paint(cells[3], colour)
        lines.append("  ".join([*cells, row[5]]).rstrip())
    return "\n".join(lines)


def status(view: model.ObjectView, paint: Paint = plain) -> str:
    """One screen about one object."""
    lines = [
        f"{paint(f'{view.kind} {view.namespace}/{view.name}', 'bold')}",
        f"  Ready      {paint(view.ready, _colour(view))}  {view.reason}: {view.message}",
    ]
    chart, release = view.status.get("chart") or {}, view.status.get("release") or {}
    inventory = view.status.get("inventory") or {}
    if chart:
        lines.append(f"  Chart      {chart.get('name')} {chart.get('version')}  {str(chart.get('digest', ''))[:19]}")
    if release:
        revision = (
            f"revision {release['revision']} {release.get('status', '')}" if release.get("revision") else "none yet"
        )
        lines.append(f"  Release    {release.get('namespace')}/{release.get('name')}  {revision}")
    if inventory:
        kinds = ", ".join(f"{count} {kind}" for kind, count in (inventory.get("kinds") or {}).items())
        lines.append(f"  Objects    {inventory.get('ready', 0)}/{inventory.get('objects', 0)} ready  ({kinds})")
    if view.status.get("lastError"):
        lines.append(f"  Last error {view.status['lastError']}")
    lines.append(f"  Next       {view.next}")
    if view.events:
        lines.append("  Events")
        lines += [f"    {event.at[:19]}  {event.reason:<18} {event.message[:110]}" for event in view.events[-6:]]
    return "\n".join(lines)


def explain(view: model.ObjectView, paint: Paint = plain) -> str:
    """Why it stands where it stands: the first blocker on top, then facts and steps."""
    head = f"{view.kind} {view.namespace}/{view.name}"
    if view.ready == "True":
        lines = [f"{head} is {paint('ready', 'green')}."]
    else:
        word = paint("stalled", "red") if view.stalled else paint("not ready yet", "yellow")
        lines = [f"{head} is {word}: {view.reason}", f"  {view.message}"]
    lines += [f"Next: {view.next}", "", "Facts"]
    lines += [f"  {fact.type:<12} {fact.status:<8} {fact.reason}  {fact.message}" for fact in view.facts]
    lines += ["", "Steps"]
    marks = {"Done": paint("✓", "green"), "Standing": paint("▶", "yellow"), "NotReached": paint("·", "dim")}
    lines += [f"  {marks[step.state]} {step.name:<30} {step.says}" for step in view.steps]
    return "\n".join(lines)


def _colour(view: model.ObjectView) -> str:
    return "red" if view.stalled else _COLOURS.get(view.ready, "yellow")
