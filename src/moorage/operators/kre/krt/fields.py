"""Reads the fields of a text one by one, and keeps what is wrong with each instead of stopping at the first. Pure."""

from __future__ import annotations

import collections
import difflib
import posixpath
import re
from collections.abc import Collection, Sequence
from typing import Any

from . import located, problems

MAX_PROBLEMS = 100
"""Of one severity. More are not listed: by then the text is something else."""

NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
NAME_LENGTH = 19  # characters
VARIABLE = re.compile(r"[A-Z0-9]([_A-Z0-9]*[A-Z0-9])?")
VARIABLE_LENGTH = 253  # that of a key in a ConfigMap
METHOD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
METHOD_LENGTH = 63

_HOST = r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*(?::[0-9]{1,5})?"
_PART = r"[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*"
IMAGE = re.compile(rf"(?:{_HOST}/)?{_PART}(?:/{_PART})*(?::\w[\w.-]{{0,127}})?(?:@sha256:[a-f0-9]{{64}})?", re.ASCII)
IMAGE_LENGTH = 512

_KINDS = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list", dict: "a mapping"}


class Fields:
    """One text's fields. What can't be read is told once, and comes as None."""

    def __init__(self, text: located.Located, file: str, around: Collection[str] | None = None) -> None:
        """`around` are the names of the files beside the text, where they are known."""
        self._text, self._file, self._around = text, file, around
        self.problems: list[problems.Problem] = []
        self._told: collections.Counter[str] = collections.Counter()

    @property
    def errors(self) -> int:
        """How many errors there were so far, listed or not."""
        return self._told["error"]

    def tell(
        self, severity: problems.Severity, path: problems.Path, message: str, fix: str = "", *, key: bool = False
    ) -> None:
        """Note a problem with what stands at `path`, or with its key."""
        self._told[severity] += 1
        if self._told[severity] <= MAX_PROBLEMS:
            line, column = self._text.of(path, key=key)
            self.problems.append(problems.Problem(severity, message, fix, self._file, line, column))

    def error(self, path: problems.Path, message: str, fix: str = "", *, key: bool = False) -> None:
        """Note what keeps the text from being a version."""
        self.tell("error", path, message, fix, key=key)

    def mapping(self, value: Any, path: problems.Path, what: str, known: Sequence[str]) -> dict[str, Any]:
        """A mapping of known keys; empty for what is none. What is nearly a known key is told, and taken for it."""
        if not isinstance(value, dict):
            self.error(path, f"{what} is {kind(value)}, where a mapping is expected", f"write its {_either(known)}")
            return {}
        found = {name: item for name, item in value.items() if name in known}
        for name in value:
            if name not in known and self.errors < MAX_PROBLEMS:
                told = f"{what} has no field {name[:80]!r}, so nothing would read it"
                self.error((*path, name), told, problems.meant(name, known), key=True)
                found.setdefault(problems.nearest(name, known), value[name])
        return found

    def items(self, value: Any, path: problems.Path, what: str, most: int) -> list[Any]:
        """A list of at most so many; empty for what is none. Nothing at all is an empty list."""
        if value is None:
            return []
        if not isinstance(value, list):
            self.error(path, f"{what} is {kind(value)}, where a list is expected", "begin each entry with '- '")
            return []
        if len(value) > most:
            self.error(path, f"{what} has {len(value)} entries; at most {most} are taken", "split the version")
            return value[:most]
        return value

    def text(self, of: dict[str, Any], field: str, path: problems.Path, fix: str, most: int = 1000) -> str:
        """A text that must be there and not be empty; empty for what is none."""
        if of.get(field) in (None, ""):
            if not of:
                return ""  # what should hold it was told of
            self.error((*path, field), f"{field} is missing", fix)
            return ""
        return self.is_text(of[field], (*path, field), field, most)

    def is_text(self, value: Any, path: problems.Path, what: str, most: int = 1000) -> str:
        """A text of at most so many characters; empty for what is none."""
        if not isinstance(value, str):
            quoted = "put it in quotes" if isinstance(value, bool | int | float) else ""
            self.error(path, f"{what} is {kind(value)}, where text is expected", quoted)
            return ""
        if len(value) > most:
            self.error(path, f"{what} has {len(value)} characters; at most {most} are taken", "make it shorter")
            return ""
        return value

    def name(
        self, of: dict[str, Any], path: problems.Path, what: str, field: str = "name", most: int = NAME_LENGTH
    ) -> str:
        """A name that may stand in those of objects; empty for what is none."""
        found = self.text(of, field, path, f"give {what} a name, such as hello-v1")
        path, told = (*path, field), f"{field} {found[:80]!r}"
        if found and not NAME.fullmatch(found):
            fix = "use lower-case letters, digits and '-', beginning and ending with a letter or digit"
            better = re.sub(r"[^a-z0-9]+", "-", found.lower()).strip("-")[:most].strip("-")
            self.error(path, f"{told} can't be part of an object's name", f"{fix}: {better}" if better else fix)
            return ""
        if len(found) > most:
            message = f"{told} has {len(found)} characters; the names made of it have room for {most}"
            self.error(path, message, "make it shorter")
            return ""
        return found

    def image(self, of: dict[str, Any], path: problems.Path) -> str:
        """A reference to a container image."""
        found = self.text(of, "image", path, "name the container image, such as registry.example.com/team/runner:1.0")
        if found and (len(found) > IMAGE_LENGTH or not IMAGE.fullmatch(found)):
            fix = "write [REGISTRY/]NAME[:TAG][@sha256:...], the name in lower case"
            self.error((*path, "image"), f"image {found[:80]!r} is no reference to an image", fix)
        return found

    def path_inside(self, of: dict[str, Any], field: str, path: problems.Path, fix: str) -> str:
        """The path of a file that the version brings along, relative to krt.yml."""
        found, path = self.text(of, field, path, fix), (*path, field)
        if not found:
            return ""
        shown = f"{field} {found[:80]!r}"
        if found.startswith("/") or ".." in found.split("/") or "\\" in found or not found.isprintable():
            fix = "write it relative to krt.yml, with '/' between folders and without '..'"
            self.error(path, f"{shown} leads out of the archive", fix)
            return ""
        inside = posixpath.normpath(found)
        if self._around is not None and inside not in self._around:
            if any(name.startswith(f"{inside}/") for name in self._around):
                self.error(path, f"{shown} is a folder", "name a file in it")
            else:
                self.error(path, f"{shown} is not among the files", _near(inside, self._around))
            return ""
        return inside

    def boolean(self, of: dict[str, Any], field: str, path: problems.Path) -> bool:
        """True or false; false where nothing is said."""
        value = of.get(field)
        if value is None or isinstance(value, bool):
            return bool(value)
        fix = "write true or false, without quotes"
        self.error((*path, field), f"{field} is {kind(value)}, where true or false is expected", fix)
        return False

    def whole(self, of: dict[str, Any], field: str, path: problems.Path, default: int, most: int) -> int:
        """A whole number from 1."""
        value = of.get(field)
        if value is None:
            return default
        if type(value) is not int or not 1 <= value <= most:
            shown = value if type(value) in (int, float) else kind(value)
            self.error((*path, field), f"{field} is {shown}", f"write a whole number from 1 to {most}, without quotes")
            return default
        return value


def kind(value: Any) -> str:
    """What a value is, for people."""
    return "nothing" if value is None else _KINDS.get(type(value), "something else")


def _near(name: str, known: Collection[str]) -> str:
    """The file that was probably meant: of the same name elsewhere, or of nearly this one."""
    base = posixpath.basename(name)
    same = sorted(each for each in known if posixpath.basename(each) == base)
    near = same[:3] or difflib.get_close_matches(name, sorted(known)[:1000], n=1, cutoff=0.8)
    return f"did you mean {' or '.join(near)}?" if near else "add the file, or correct the name"


def _either(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
