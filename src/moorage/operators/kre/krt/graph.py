"""How messages go through a workflow, and what is wrong with that. Pure.

A node gets what those publish whom it subscribes to. A circle is allowed, as a node may send something back for another
round; it is told, as without a way out messages go round for ever.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from . import model, problems

_TOPIC = re.compile(r"[A-Za-z0-9_-]+|\*")
_GUESSED = 10
"""Names of which it is guessed what was meant: to compare each with all takes time."""


def check(workflow: model.Workflow, path: problems.Path, to: problems.Ear, *, sound: bool) -> None:
    """Tell what is wrong with the graph. Of ways nothing is said unless all before was sound: it would mislead."""
    before = to.errors
    names = _names(workflow, path, to)
    unread = any(not node.name for node in workflow.nodes)  # so one of them may be who is missed
    for at, node in enumerate(workflow.nodes):
        _subscriptions(node, names, (*path, "nodes", at, "subscriptions"), to, unread=unread)
    _readers(workflow, path, to)
    if workflow.exitpoint and workflow.exitpoint not in names and not unread:
        told = f"exitpoint {workflow.exitpoint[:80]!r} is no node of workflow {workflow.name!r}"
        to.tell("error", (*path, "exitpoint"), told, problems.meant(workflow.exitpoint, names))
    if sound and to.errors == before:
        _ways(workflow, path, to)


def _names(workflow: model.Workflow, path: problems.Path, to: problems.Ear) -> set[str]:
    names: set[str] = set()
    for at, node in enumerate(workflow.nodes):
        if node.name and node.name in names:
            told = f"two nodes of workflow {workflow.name!r} are called {node.name!r}, and would publish as one"
            to.tell("error", (*path, "nodes", at, "name"), told, "rename one of them, and who subscribes to it")
        names.add(node.name)
    return names - {""}


def _subscriptions(node: model.Node, names: set[str], path: problems.Path, to: problems.Ear, *, unread: bool) -> None:
    for at, subscription in enumerate(node.subscriptions):
        whom, dot, topic = subscription.partition(".")
        if not subscription:
            continue  # told of where it was read
        if subscription in node.subscriptions[:at]:
            told = f"node {node.name!r} subscribes to {subscription[:80]!r} twice"
            to.tell("error", (*path, at), told, "take one out")
        elif whom == model.ENTRYPOINT:
            if dot:
                told = f"the entrypoint publishes no topics, so {subscription[:80]!r} never brings a message"
                to.tell("error", (*path, at), told, f"write {model.ENTRYPOINT}")
        elif whom not in names and not unread:
            told = f"node {node.name!r} subscribes to {whom[:80]!r}, which is no node of this workflow"
            fix = problems.meant(whom, (*names, model.ENTRYPOINT)) if to.errors < _GUESSED else ""
            to.tell("error", (*path, at), told, fix)
        elif dot and not _TOPIC.fullmatch(topic):
            fix = f"write {whom}.TOPIC, one word of letters, digits, '-' and '_', or {whom}.* for all topics"
            to.tell("error", (*path, at), f"{topic[:80]!r} is no topic of node {whom!r}", fix)
        elif dot and topic != "*" and f"{whom}.*" in node.subscriptions:
            told = f"node {node.name!r} gets {subscription} twice, as it subscribes to {whom}.* too"
            to.tell("warning", (*path, at), told, "take one out")


def _readers(workflow: model.Workflow, path: problems.Path, to: problems.Ear) -> None:
    """Nodes read by consumers whose names say who reads whom, with a dash between; names may have dashes of their own.

    Of two nodes that read by one consumer each message would come to one of them, whichever it was meant for.
    """
    readers: dict[str, tuple[str, str]] = {}
    for at, node in enumerate(workflow.nodes):
        for number, subscription in enumerate(node.subscriptions):
            mine = (node.name, subscription)
            other = readers.setdefault(model.reader(subscription, node.name), mine)
            if other != mine and node.name:
                told = (
                    f"node {node.name!r} with {subscription[:80]!r} and node {other[0]!r} with {other[1][:80]!r} would "
                    "read by one consumer, and take each other's messages"
                )
                to.tell("error", (*path, "nodes", at, "subscriptions", number), told, "rename one of the nodes")


def _ways(workflow: model.Workflow, path: problems.Path, to: problems.Ear) -> None:
    follows = followers(workflow)
    reached = _reached([model.ENTRYPOINT], follows)
    if workflow.exitpoint not in reached:
        first = follows[model.ENTRYPOINT]
        told = f"no way leads from the entrypoint to the exitpoint {workflow.exitpoint!r}, so no call is ever answered"
        fix = (
            f"have {workflow.exitpoint!r}, or a node before it, subscribe to one of: {', '.join(sorted(reached))}"
            if first
            else f"have the first node subscribe to {model.ENTRYPOINT}"
        )
        to.tell("error", (*path, "exitpoint"), told, fix)
        return
    for at, node in enumerate(workflow.nodes):
        if node.name not in reached:
            told = f"no way leads from the entrypoint to node {node.name!r}, so it never gets a message"
            to.tell("warning", (*path, "nodes", at, "subscriptions"), told, "let it subscribe to a node that does")
    for circle in circles(workflow):
        at = next(at for at, node in enumerate(workflow.nodes) if node.name == circle[0])
        told = f"messages can go round: {' -> '.join((*circle, circle[0]))}"
        fix = "see that a node of the circle ends it, by sending nothing on or to a topic outside of it"
        to.tell("note", (*path, "nodes", at, "subscriptions"), told, fix)


def followers(workflow: model.Workflow) -> dict[str, list[str]]:
    """Who subscribes to whom, by the name of who publishes; each name has its list."""
    follows: dict[str, list[str]] = {model.ENTRYPOINT: [], **{node.name: [] for node in workflow.nodes}}
    for node in workflow.nodes:
        for whom in dict.fromkeys(model.source(each) for each in node.subscriptions):
            follows[whom].append(node.name)
    return follows


def circles(workflow: model.Workflow) -> list[tuple[str, ...]]:
    """For each group of nodes that reach each other, a shortest circle through the one that is listed first."""
    follows, told = followers(workflow), set[str]()
    found = []
    for node in workflow.nodes:
        if node.name in told:
            continue
        if circle := _circle(node.name, follows):
            behind = _reached([node.name], follows)
            told |= {each for each in behind if node.name in _reached([each], follows)}
            found.append(circle)
    return found


def _circle(start: str, follows: Mapping[str, list[str]]) -> tuple[str, ...]:
    """A shortest way from a node back to itself; empty where there is none."""
    came: dict[str, str] = {}
    row = [start]
    for each in row:
        for follower in follows[each]:
            if follower == start:
                way = [each]
                while way[-1] != start:
                    way.append(came[way[-1]])
                return tuple(reversed(way))
            if follower not in came:
                came[follower] = each
                row.append(follower)
    return ()


def _reached(start: Iterable[str], follows: Mapping[str, list[str]]) -> set[str]:
    """All that messages of these come to, these included."""
    row = list(start)
    seen = set(row)
    for each in row:
        new = [follower for follower in follows[each] if follower not in seen]
        seen.update(new)
        row += new
    return seen
