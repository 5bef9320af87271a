"""What members answer, as data, and what that says about their group. Pure.

Each member tells of the group as it sees it. A member that never joined tells of a group of its own, of which it is the
only one; so of all answers the one is believed that knows most of those who are remembered as members.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from moorage.operators.xsld import names as names_

from . import dialect as dialects

LONGEST = 253
"""Characters of a name or another word that are read."""

MOST_DIGITS = 18
"""Of a task's id: what a status can hold."""

MOST_LISTED = 2 * names_.MOST_MEMBERS
"""Members of one answer: those who leave may still be listed beside those who came."""

MOST_GRIDS = 1000


class Phase(enum.Enum):
    """How far a task is."""

    RUNNING = "Running"
    DONE = "Success"
    FAILED = "Failed"


class Task(msgspec.Struct, frozen=True):
    """One task at one member."""

    id: int
    command: str
    description: str
    phase: Phase
    progress: int = 0
    message: str = ""


class Member(msgspec.Struct, frozen=True):
    """One member as a group's list has it."""

    name: str
    address: str
    status: str
    online: bool
    catalog: bool = False
    primary: bool = False
    role: str = ""  # master, slave or empty


class Fault(enum.Enum):
    """Why a member's answer is missing."""

    UNREACHABLE = "Unreachable"
    TIMEOUT = "TimedOut"
    UNAUTHORIZED = "Unauthorized"
    UNAVAILABLE = "Unavailable"
    MALFORMED = "Malformed"


class Answer(msgspec.Struct, frozen=True):
    """What one pod said, or why it did not."""

    pod: str
    uid: str
    address: str
    fault: Fault | None = None
    words: str = ""
    members: tuple[Member, ...] = ()
    tasks: tuple[Task, ...] = ()


class Grid(msgspec.Struct, frozen=True):
    """A grid on the server: its state, and its fields as it names them."""

    name: str
    status: str
    fields: dict[str, Any] = {}


class Polled(msgspec.Struct, frozen=True):
    """All that one round of asking has brought."""

    answers: tuple[Answer, ...] = ()
    primary: str = ""  # who was asked for grids and templates; empty when nobody could be
    grids: tuple[Grid, ...] | None = None  # None: not known
    templates: tuple[str, ...] | None = None

    def answer(self, pod: str) -> Answer | None:
        """What that pod said, if it said anything."""
        return next((a for a in self.answers if a.pod == pod and a.fault is None), None)

    @property
    def running(self) -> tuple[tuple[Answer, Task], ...]:
        """Tasks that run, whoever started them, each with the answer that tells of it."""
        return tuple((a, t) for a in self.answers for t in a.tasks if t.phase is Phase.RUNNING)

    @property
    def rejected(self) -> bool:
        """Somebody refused the credentials, and nobody took them."""
        faults = [a.fault for a in self.answers]
        return Fault.UNAUTHORIZED in faults and None not in faults


class Group(msgspec.Struct, frozen=True):
    """The group as its most trusted member sees it."""

    teller: str  # the pod that told it
    members: tuple[Member, ...]

    def member(self, name: str) -> Member | None:
        """The member of that name."""
        return next((m for m in self.members if m.name == name), None)

    @property
    def names(self) -> frozenset[str]:
        """All members, whatever their state."""
        return frozenset(m.name for m in self.members)

    @property
    def primary(self) -> Member | None:
        """Who takes writes."""
        return next((m for m in self.members if m.primary), None)

    @property
    def online(self) -> tuple[Member, ...]:
        """Members that work."""
        return tuple(m for m in self.members if m.online)

    def among(self, up: Collection[str]) -> Group:
        """The same with none but these Online, whatever the group says: it is slow to notice one that is gone."""
        members = tuple(msgspec.structs.replace(m, online=m.online and m.name in up) for m in self.members)
        return msgspec.structs.replace(self, members=members)


def group(polled: Polled, *, remembered: Collection[str], primary: str) -> Group | None:
    """The group, or None when nobody tells of it.

    `remembered` are those who were members when last seen, `primary` who was their primary, or is to form the group:
    while nobody is remembered, no other forms one. Where several tell different stories, the one that counts most of
    the remembered wins, then the one with more members Online, then the remembered primary's, then the one in which
    the teller itself is primary. But whom that story calls primary has the last word, unless it knows none of the
    others: a member that has just left may still tell the old story.
    """
    told = [a for a in polled.answers if a.fault is None and a.members]
    if not remembered:
        told = [a for a in told if len(a.members) > 1 or a.pod == primary]
    if not told:
        return None

    def trust(answer: Answer) -> tuple[int, int, bool, bool, str]:
        known = sum(m.name in remembered for m in answer.members)
        online = sum(m.online for m in answer.members)
        return (-known, -online, answer.pod != primary, not _leads(answer), answer.pod)

    best = min(told, key=trust)
    if remembered and not any(m.name in remembered for m in best.members):
        return None
    listed = {m.name for m in best.members}
    for answer in told:
        others = {m.name for m in answer.members} - {answer.pod}
        if _leads(answer) and others & listed and any(m.primary and m.name == answer.pod for m in best.members):
            return Group(answer.pod, answer.members)
    return Group(best.pod, best.members)


def _leads(answer: Answer) -> bool:
    """Whether the teller takes itself for the primary."""
    return any(m.primary and m.name == answer.pod for m in answer.members)


def _list(body: Any, key: str) -> list[Any] | None:
    """The list of an answer: the answer itself, or its field of that name."""
    found = body.get(key) if key and isinstance(body, dict) else None if key else body
    return found if isinstance(found, list) else None


def _pick(item: Mapping[str, Any], names: str) -> Any:
    """The field under the first of its names that is there and not empty."""
    return next((item[name] for name in names.split() if item.get(name) not in (None, "")), None)


def _word(item: Mapping[str, Any], names: str) -> str:
    return str(_pick(item, names) or "")[:LONGEST]


def _number(value: Any) -> int | None:
    """An id, or the text of one; None for anything else."""
    if isinstance(value, str):
        return int(value) if value.isdecimal() and len(value) <= MOST_DIGITS else None
    is_id = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**MOST_DIGITS
    return value if is_id else None


def members(body: Any, said: dialects.MemberFields) -> tuple[Member, ...]:
    """The members of an answer to `paths.group`. Raises ValueError for one that is none."""
    found = _list(body, said.list)
    if found is None:
        raise ValueError(f"no list {said.list!r} in the group" if said.list else "the group is no list")
    if len(found) > MOST_LISTED:
        raise ValueError(f"{len(found)} members are listed, of {names_.MOST_MEMBERS} that a group can have")
    listed = tuple(
        Member(
            name=_word(item, said.name),
            address=_word(item, said.address),
            status=_word(item, said.status),
            online=_pick(item, said.status) == said.online,
            catalog=_truth(_pick(item, said.catalog)),
            primary=_truth(_pick(item, said.primary)),
            role={said.master: "master", said.slave: "slave"}.get(_word(item, said.role), ""),
        )
        for item in found
        if isinstance(item, dict) and _pick(item, said.name)
    )
    if len({member.name for member in listed}) < len(listed):
        raise ValueError("a member is listed twice")
    return listed


def tasks(body: Any, said: dialects.TaskFields) -> tuple[Task, ...]:
    """The tasks of an answer to `paths.tasks`; entries without an id are left out."""
    found = _list(body, said.list) or []
    return tuple(task for item in found if isinstance(item, dict) and (task := _task(item, said)) is not None)


def task_phase(text: str, said: dialects.Dialect) -> Phase | None:
    """How the vendor's own scripts read a task's status; None: poll again.

    Running wins over everything, then Success; a text that ends in Failed, or an error, is failed, but for the one that
    appears while Derby replication starts.
    """
    if "Running" in text or said.task.pending in text:
        return Phase.RUNNING
    if "Success" in text:
        return Phase.DONE
    if said.transient_status in text:
        return None
    if any(word in text for word in ("Failed", said.task.cancelled, "error")):
        return Phase.FAILED
    return None


def task_id(body: Any) -> int:
    """The id in an answer to a submitted task: one key, of any name, with a number or the text of one.

    Raises ValueError for anything else.
    """
    values = list(body.values()) if isinstance(body, dict) else []
    if len(values) == 1 and (number := _number(values[0])) is not None:
        return number
    raise ValueError("the answer names no task")


def _task(item: Mapping[str, Any], said: dialects.TaskFields) -> Task | None:
    number = _number(_pick(item, said.id))
    if number is None:
        return None
    status = _word(item, said.status)
    failed = status.endswith("Failed") or status == said.cancelled
    return Task(
        id=number,
        command=_word(item, said.command),
        description=_word(item, said.description),
        phase=Phase.DONE if status == "Success" else Phase.FAILED if failed else Phase.RUNNING,
        progress=_percent(_pick(item, said.progress)),
        message=_word(item, said.message),
    )


def progress(body: Any, said: dialects.TaskFields) -> int | None:
    """How far a task is by its own status call, in percent; None where that does not say."""
    found = _pick(body, said.progress) if isinstance(body, dict) else None
    return None if found is None else _percent(found)


def _percent(value: Any) -> int:
    """A number, or the text of one, with a sign or without; 0 for anything else."""
    try:
        return min(100, max(0, int(float(str(value).strip().rstrip("%")))))
    except (ValueError, OverflowError):
        return 0


def _truth(value: Any) -> bool:
    return value is True or value == "true"


def grids(body: Any, said: dialects.GridFields) -> tuple[Grid, ...]:
    """The grids of an answer to `paths.grids`, by name; their settings under the names by which they are sent.

    Raises ValueError for more than are read.
    """
    found = _list(body, said.list) or []
    if len(found) > MOST_GRIDS:
        raise ValueError(f"{len(found)} grids are listed, of which at most {MOST_GRIDS} are read")
    told = [
        Grid(_word(item, said.name), _word(item, said.status), _settings(item, said))
        for item in found
        if isinstance(item, dict) and _pick(item, said.name)
    ]
    return tuple(sorted(told, key=lambda grid: grid.name))


def _settings(item: Mapping[str, Any], said: dialects.GridFields) -> dict[str, Any]:
    own = {*said.name.split(), *said.status.split()}
    plain = {key: value for key, value in item.items() if key not in own and key not in said.settings}
    told = ((sent, names.split()) for sent, names in said.settings.items())
    return plain | {sent: item[key] for sent, names in told for key in names[::-1] if key in item}


def template_names(body: Any, said: dialects.TemplateFields) -> tuple[str, ...]:
    """The names in an answer to `paths.templates`, which are entries of the list, or a field of each."""
    found = _list(body, said.list) or []
    named = (_pick(item, said.name) if isinstance(item, dict) else item for item in found)
    return tuple(sorted(str(name) for name in named if name))
