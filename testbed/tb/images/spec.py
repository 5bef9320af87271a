"""Reads an image specification: a TOML file that says what goes into an image and how it starts.

Paths of sources are relative to the file's folder, and may name environment variables as `${NAME}`.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tb.errors import TestbedError

SCRATCH = "scratch"
DEFAULT_SUITE = "bookworm"
Value = TypeVar("Value")


@dataclass(frozen=True)
class Owner:
    """Numbers only: an image need not have /etc/passwd."""

    user: int = 0
    group: int = 0


@dataclass(frozen=True)
class Files:
    """A file or a whole folder that is copied in; with `text`, a file with that content."""

    target: str
    source: Path | None
    text: str | None
    mode: int | None
    owner: Owner
    exclude: tuple[str, ...]


@dataclass(frozen=True)
class Folder:
    """An empty folder."""

    path: str
    mode: int
    owner: Owner


@dataclass(frozen=True)
class Requirements:
    """A hash-pinned requirements file whose wheels are unpacked into `target`."""

    file: Path
    target: str


@dataclass(frozen=True)
class Spec:
    """One image. `packages` are Debian's; empty for an image that starts from nothing."""

    name: str
    suite: str
    packages: tuple[str, ...]
    requirements: tuple[Requirements, ...]
    files: tuple[Files, ...]
    folders: tuple[Folder, ...]
    prune: tuple[str, ...]
    compile: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    entrypoint: tuple[str, ...]
    cmd: tuple[str, ...]
    user: str
    workdir: str


def read(path: Path, environment: Mapping[str, str]) -> Spec:
    """The specification in this file; TestbedError when it cannot be read or has a key that means nothing."""
    try:
        content = tomllib.loads(path.read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise TestbedError(f"cannot read the image specification {path}: {error}") from error
    try:
        return _spec(_Table(content), path.absolute().parent, environment)
    except _SpecError as error:
        raise TestbedError(f"{path}: {error}") from error


class _SpecError(Exception):
    """What is wrong with a specification."""


class _Table:
    """A TOML table of which every key must be taken."""

    def __init__(self, content: dict[str, Any]) -> None:
        self._content = dict(content)

    def take(self, key: str, kind: type[Value], default: Value | None = None) -> Value:
        """The value of a key, which is required when there is no default."""
        value = self._content.pop(key, default)
        if value is None:
            raise _SpecError(f"the key `{key}` is missing")
        if not isinstance(value, kind):
            raise _SpecError(f"`{key}` must be of type {kind.__name__}, not {type(value).__name__}")
        return value

    def optional(self, key: str) -> str | None:
        return self.take(key, str) if key in self._content else None

    def strings(self, key: str) -> tuple[str, ...]:
        values = self.take(key, list, [])
        if not all(isinstance(value, str) for value in values):
            raise _SpecError(f"`{key}` must be a list of strings")
        return tuple(values)

    def tables(self, key: str) -> list["_Table"]:
        values = self.take(key, list, [])
        if not all(isinstance(value, dict) for value in values):
            raise _SpecError(f"`{key}` must be a list of tables, written as [[{key}]]")
        return [_Table(value) for value in values]

    def end(self) -> None:
        if self._content:
            raise _SpecError(f"unknown key: {', '.join(sorted(self._content))}")


def _spec(table: _Table, folder: Path, environment: Mapping[str, str]) -> Spec:
    base = table.take("base", object, SCRATCH)
    if base != SCRATCH and not (isinstance(base, list) and base and all(isinstance(package, str) for package in base)):
        raise _SpecError(f'`base` must be a list of Debian packages or "{SCRATCH}"')
    env = table.take("env", dict, {})
    spec = Spec(
        name=table.take("name", str),
        suite=table.take("suite", str, DEFAULT_SUITE),
        packages=tuple(sorted(base)) if isinstance(base, list) else (),
        requirements=tuple(_requirements(part, folder, environment) for part in table.tables("requirements")),
        files=tuple(_files(part, folder, environment) for part in table.tables("files")),
        folders=tuple(_folder(part) for part in table.tables("folders")),
        prune=table.strings("prune"),
        compile=table.strings("compile"),
        env=tuple((key, str(value)) for key, value in env.items()),
        entrypoint=table.strings("entrypoint"),
        cmd=table.strings("cmd"),
        user=table.take("user", str, ""),
        workdir=table.take("workdir", str, "/"),
    )
    table.end()
    return spec


def _requirements(table: _Table, folder: Path, environment: Mapping[str, str]) -> Requirements:
    made = Requirements(_path(table.take("file", str), folder, environment), _inside(table.take("target", str)))
    table.end()
    return made


def _files(table: _Table, folder: Path, environment: Mapping[str, str]) -> Files:
    source, text, mode = table.optional("source"), table.optional("text"), table.optional("mode")
    made = Files(
        target=_inside(table.take("target", str)),
        source=None if source is None else _path(source, folder, environment),
        text=text,
        mode=None if mode is None else _mode(mode),
        owner=_owner(table.take("owner", str, "0:0")),
        exclude=table.strings("exclude"),
    )
    table.end()
    if (source is None) == (text is None):
        raise _SpecError(f"the files for {made.target} need either `source` or `text`")
    return made


def _folder(table: _Table) -> Folder:
    path, mode = _inside(table.take("path", str)), _mode(table.take("mode", str, "0755"))
    made = Folder(path, mode, _owner(table.take("owner", str, "0:0")))
    table.end()
    return made


def _path(text: str, folder: Path, environment: Mapping[str, str]) -> Path:
    def value(match: re.Match[str]) -> str:
        if match[1] not in environment:
            raise _SpecError(f"the environment variable {match[1]} in `{text}` is not set")
        return environment[match[1]]

    return folder / re.sub(r"\$\{(\w+)\}", value, text)


def _inside(path: str) -> str:
    """A path in the image, without its leading slash, as a layer has it."""
    if not path.startswith("/") or ".." in Path(path).parts:
        raise _SpecError(f"`{path}` must be an absolute path in the image")
    return path.strip("/")


def _mode(text: str) -> int:
    if not re.fullmatch(r"[0-7]{3,4}", text):
        raise _SpecError(f"the mode `{text}` must be octal digits, such as 0644")
    return int(text, 8)


def _owner(text: str) -> Owner:
    match = re.fullmatch(r"(\d+):(\d+)", text)
    if not match:
        raise _SpecError(f"the owner `{text}` must be two numbers, such as 0:0")
    return Owner(int(match[1]), int(match[2]))
