"""What an agent and a REST server say of themselves, and what is to be made of it. Pure.

Whoever runs the images has written it, so that every text is cut, every number has bounds, and what does not fit its
place is as if it were not said.
"""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.api import conditions

from . import dialect as dialects

MOST_WORDS = 300


class AnswerError(Exception):
    """An answer that can't be read; the message says why."""


class Agent(msgspec.Struct, frozen=True):
    """How far an agent is."""

    in_goal: bool = False
    configuration: int = -1  # the version that it has applied; -1: none
    expected: bool = True  # its server should run
    move: str = ""  # of its plan, where it stands in one
    step: str = ""
    since: float = 0.0  # epoch seconds, since when it is at that step
    error: str = ""  # its own words
    installed: bool | None = None  # the catalog is in the database; None: it says nothing of it
    catalog: str = ""  # the version that the catalog is of

    @property
    def busy(self) -> bool:
        """Whether it stands in a plan."""
        return bool(self.step)


def holds_catalog(agent: Agent | None, moves: dialects.Moves, catalog: str) -> bool:
    """Whether it has begun something at the catalog that must not be broken off, as far as anybody knows.

    Who only looks for the database of a catalog that is installed (`catalog` is its version), or waits until REST
    servers have stopped, has begun nothing.
    """
    if agent is None or not agent.busy or agent.error:
        return False
    if agent.move == moves.install:
        return not catalog
    return agent.move == moves.backup or (agent.move == moves.migrate and agent.step != moves.stop)


class Server(msgspec.Struct, frozen=True):
    """How a REST server is, by its own word."""

    version: str = ""
    failing: tuple[str, ...] = ()  # what it needs and does not have


class Told(msgspec.Struct, frozen=True):
    """All that was heard of one pod."""

    pod: str
    uid: str
    agent: Agent | None = None
    server: Server | None = None
    fault: str = ""  # why its agent told nothing, in words
    server_fault: str = ""


# --- the agent ----------------------------------------------------------------------------------------------------


class _Step(msgspec.Struct, frozen=True):
    step: str = ""
    started: str | None = None
    completed: str | None = None


class _Move(msgspec.Struct, frozen=True):
    move: str = ""
    steps: tuple[_Step, ...] = ()


class _Plan(msgspec.Struct, frozen=True):
    completed: str | None = None
    moves: tuple[_Move, ...] = ()


class _State(msgspec.Struct, frozen=True, rename="pascal"):
    is_in_goal_state: bool = False
    expected_to_be_up: bool = True


class _Progress(msgspec.Struct, frozen=True, rename="camel"):
    last_goal_version_achieved: int = -1
    plans: tuple[_Plan, ...] = ()
    error_code: int = 0
    error_string: str = ""


class _Health(msgspec.Struct, frozen=True, rename="camel"):
    statuses: dict[str, _State] = {}
    mms_status: dict[str, _Progress] = {}


def agent(text: bytes, pod: str, said: dialects.Health) -> Agent:
    """What the agent of that pod told. Raises AnswerError."""
    try:
        found = msgspec.json.decode(text, type=_Health)
        whole = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise AnswerError(f"its answer can't be read: {words(str(error))}") from error
    state, progress = found.statuses.get(pod), found.mms_status.get(pod)
    if state is None and progress is None:
        others = ", ".join(sorted({*found.statuses, *found.mms_status})) or "nobody"
        raise AnswerError(f"it speaks of {words(others)}, and not of {pod}")
    state, progress = state or _State(), progress or _Progress()
    move, step = _standing(progress.plans[-1:])
    failed = progress.error_code != 0 or bool(progress.error_string)
    catalog = named(whole, said.catalog)
    installed = named(catalog, said.installed)
    return Agent(
        in_goal=state.is_in_goal_state,
        configuration=max(-1, min(progress.last_goal_version_achieved, 2**53)),
        expected=state.expected_to_be_up,
        move=words(move),
        step=words(step.step) if step else "",
        since=conditions.epoch(step.started or "") if step else 0.0,
        error=words(progress.error_string or f"error {progress.error_code}") if failed else "",
        installed=installed if isinstance(installed, bool) else None,
        catalog=version(named(catalog, said.version)),
    )


def _standing(last: tuple[_Plan, ...]) -> tuple[str, _Step | None]:
    """Where the last plan stands: the last step that was begun and not ended. None when it is through."""
    for plan in last:
        if plan.completed is not None:
            return "", None
        for move in reversed(plan.moves):
            for step in reversed(move.steps):
                if step.started is not None and step.completed is None:
                    return move.move, step
    return "", None


# --- the server ---------------------------------------------------------------------------------------------------


def server(about: bytes, status: bytes, said: dialects.About) -> Server:
    """What a REST server told at both places. Raises AnswerError."""
    tells = version(named(_result(about), said.version))
    if not tells:
        raise AnswerError("it does not tell its version")
    checks = _result(status)
    failing = tuple(key for key in said.checks.split() if named(checks, key) == said.failing)
    return Server(tells, failing)


def _result(text: bytes) -> Any:
    try:
        return msgspec.json.decode(text)["responses"][0]["results"][0]
    except (msgspec.MsgspecError, RecursionError, LookupError, TypeError) as error:
        raise AnswerError("its answer has no responses[0].results[0]") from error


# --- what is said -------------------------------------------------------------------------------------------------


def named(found: Any, fields: str) -> Any:
    """The first of these fields that it has."""
    if not isinstance(found, dict):
        return None
    return next((found[field] for field in fields.split() if field in found), None)


def version(found: Any) -> str:
    """X.Y.Z out of what is told, as a build may add to it; empty where there is none."""
    parts = str(found).split("-")[0].split("+")[0].split(".") if isinstance(found, str) else []
    sound = len(parts) == 3 and all(part.isascii() and part.isdecimal() and len(part) <= 3 for part in parts)
    return ".".join(parts) if sound else ""


def words(text: str) -> str:
    """A text of others, in one line, cut, and without what a terminal would obey."""
    plain = "".join(c if c.isprintable() else " " for c in text[: 4 * MOST_WORDS])
    return " ".join(plain.split())[:MOST_WORDS]
