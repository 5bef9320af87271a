"""What the product's commands print, read. Pure.

They print for people, and launchers log around it. What can't be read for sure is as if it had not been said: then
the catalog is not reachable, and every migration forbids the old version.

`migration search` prints one of these, as its sources of several versions have it: a table, in colours or between
bars; or as JSON one object for each migration, under the text of its annotation. A list is what the stand-in prints.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from . import plan

MOST_BEGINS = 200
TO_APPLY = ("PENDING", "ERROR", "OUTDATED")
STATUSES = frozenset({*TO_APPLY, "ON_HOLD", "DONE", "REDUNDANT"})
BOOLEANS = {"true": True, "false": False}


class _Found(msgspec.Struct, frozen=True):
    id: str
    status: str = "PENDING"
    offline: bool | None = None
    manual: bool = False


def catalog(output: str) -> plan.Catalog:
    """What `catalog status` printed: a mapping in JSON, with whatever the launcher logs around it."""
    try:
        found = _mapping(output)
    except ValueError:
        return plan.Catalog(reachable=False)
    if not isinstance(found, dict):
        return plan.Catalog(reachable=False)
    return plan.Catalog(found.get("mongodbStatus") is True, found.get("installed") is True)


def migrations(code: int, output: str) -> tuple[plan.Migration, ...] | None:
    """What `migration search` printed: those to be applied. None where it can't be read.

    One that does not say otherwise stops all: `offline` is the product's word. One that is said to need only that
    nothing is written stops all too, as nothing keeps servers from writing.
    """
    if code != 0:
        return None
    plain = _COLOURS.sub("", output)
    for read in (_listed, _annotated, _tabled):
        found = read(plain)
        if found is not None:
            waiting = [each for each in found if each.status in TO_APPLY]
            return tuple(plan.Migration(each.id, each.offline is not False, each.manual) for each in waiting)
    return None


def by_number(output: str) -> tuple[plan.Migration, ...] | None:
    """What `migration summary` printed, where the list of them can't be read: any may forbid the old version."""
    try:
        found = _mapping(output)
        each = [found] if "migrationsToBeApplied" in found else list(found.values())
        number = sum(int(it["migrationsToBeApplied"]) for it in each)
    except (ValueError, LookupError, TypeError, AttributeError):
        return None
    return (plan.Migration(f"{number} that migration search lists"),) if number else ()


def _mapping(output: str) -> Any:
    """The JSON in it, with whatever the launcher logs around. Raises ValueError."""
    return msgspec.json.decode(output[output.index("{") : output.rindex("}") + 1])


# --- a list -------------------------------------------------------------------------------------------------------


def _listed(output: str) -> list[_Found] | None:
    """From the beginning of a line to the end of one: a launcher's log has brackets within its lines."""
    begins = [0] * output.startswith("[") + [it.end() - 1 for it in re.finditer(r"\n\[", output)]
    end = output.rfind("]") + 1
    if output[end:].partition("\n")[0].strip():
        return None
    for begin in begins[:MOST_BEGINS]:
        try:
            return msgspec.json.decode(output[begin:end], type=list[_Found])
        except (msgspec.MsgspecError, RecursionError):
            continue
    return None


# --- objects under annotations ------------------------------------------------------------------------------------

_MEMBER = re.compile(r'\b(\w+)=("(?:[^"\\]|\\.)*"|[^,"()]*)')


def _annotated(output: str) -> list[_Found] | None:
    """Each migration as a mapping from its annotation's text to how it was run, one after another."""
    found = []
    for each in _objects(output):
        if len(each) != 1:
            return None
        annotation, run = next(iter(each.items()))
        if "Migration(" not in annotation or not isinstance(run, dict | None):
            return None
        members = {name: value.strip('"') for name, value in _MEMBER.findall(annotation)}
        status = (run or {}).get("status", "PENDING")
        if not members.get("id") or members.get("manual") not in BOOLEANS or status not in STATUSES:
            return None
        offline = BOOLEANS.get(members.get("offline", ""))
        found.append(_Found(members["id"], status, offline, BOOLEANS[members["manual"]]))
    return found or None


def _objects(output: str) -> Iterator[dict[str, Any]]:
    """Those that begin at the beginning of a line. One that can't be read is an empty one."""
    decoder, after = json.JSONDecoder(), 0
    for begin in (it.start() for it in re.finditer(r"^\{", output, re.MULTILINE)):
        if begin < after:
            continue  # within the one before
        try:
            found, after = decoder.raw_decode(output, begin)
        except (ValueError, RecursionError):
            found = {}
        yield found


# --- tables -------------------------------------------------------------------------------------------------------

_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
NEEDED = ("ID", "Manual", "Status")


def _tabled(output: str) -> list[_Found] | None:
    """Rows below a header, whose words say where each column begins. One line that is no row, and all is unsure."""
    lines = iter(output.splitlines())
    header = next((line for line in lines if set(NEEDED) <= set(line.replace("|", " ").split())), None)
    if header is None:
        return None
    places = {it[0]: it.start() for it in re.finditer(r"[^\s|]+", header)}
    ends = dict(zip(places, [*list(places.values())[1:], None], strict=True))
    found = []
    for line in lines:
        if not line.strip(" -|+"):
            continue
        cell = {name: line[begin : ends[name]].strip(" |") for name, begin in places.items()}
        if not cell["ID"] or cell["Manual"] not in BOOLEANS or cell["Status"] not in STATUSES:
            return None
        offline = BOOLEANS.get(cell.get("Offline", ""))
        found.append(_Found(cell["ID"], cell["Status"], offline, BOOLEANS[cell["Manual"]]))
    return found
