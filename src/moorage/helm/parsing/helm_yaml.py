"""YAML exactly as Helm reads it, within limits. Pure.

Helm and the API server read YAML 1.1 in the dialect of their Go library, which differs from PyYAML's default: `1:30`
and `2024-01-01` are strings, `1e3` is a number and `1e400` a string, `y` and `off` are booleans, a key that is a number
or a boolean becomes a string, a tag of one's own makes a string of a scalar, and a merge key overrides what stands
before it. A value that is read differently here than by helm would be drift that is not there, so documents are
composed here, from the parser's events. Of a key given twice helm silently takes the last; so does this, unless
`strict`: what a user wrote should be refused, as it is nearly always a mistake, but a published chart must work as it
does with helm.

Texts come from people who need not mean well. Nodes are counted while they are composed, what an alias or a merge key
stands for each time it is used, so that a text costs no more than its limits, however it is written.
"""

from __future__ import annotations

import base64
import contextlib
import decimal
import json
import math
import re
import struct
from collections.abc import Iterator
from typing import Any

import yaml

__all__ = ["Budget", "DocumentError", "TooLarge", "count", "load", "load_all", "load_layers"]

MAX_DEPTH = 200
MAX_NODES = 100_000  # keys and values of one text, once aliases are expanded
MAX_TEXT = 8 << 20  # characters
MAX_KEY = 1000
"""Characters of a key, with those counted six times that are escaped, where `strict`: values are passed on in a form
in which YAML allows 1024."""

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_TRUE = frozenset(["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"])
_FALSE = frozenset(["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"])
_NULL = frozenset(["", "~", "null", "Null", "NULL"])
_INT = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO][0-7]+|[0-9]+)")
_FLOAT = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}([Tt ]\d{1,2}:\d{1,2}:\d{1,2}(\.\d+)?(Z|[-+]\d{2}:\d{2})?)?")
_SEPARATOR = re.compile(r"^---(.*)$", re.MULTILINE)
_YAML = "tag:yaml.org,2002:"
_NO_KEY = object()
_MERGE = object()


class DocumentError(ValueError):
    """A text that is not the YAML that helm would take. Lines and columns count from 1; 0 means unknown."""

    def __init__(self, message: str, line: int = 0, column: int = 0) -> None:
        self.reason, self.line, self.column = message, line, column
        super().__init__(f"line {line}, column {column}: {message}" if line else message)


class TooLarge(DocumentError):  # noqa: N818 - names what it is
    """More than a limit allows; the message has the figure."""


class Budget:
    """How many nodes may still be composed, by one text or by several together."""

    def __init__(self, nodes: int = MAX_NODES) -> None:
        self.limit = self.left = nodes

    def take(self, nodes: int, line: int, column: int) -> None:
        """Raises TooLarge when there are not so many left."""
        self.left -= nodes
        if self.left < 0:
            message = f"more than {self.limit} keys and values, with what aliases and merge keys stand for"
            raise TooLarge(message, line, column)


def load(text: str, *, strict: bool = False, budget: Budget | None = None) -> Any:
    """The single document of `text`; None for an empty text. A `---` may begin and end it."""
    _check_length(text)
    return _single(text, 0, _Composer(strict, budget or Budget()))


def load_all(text: str, *, strict: bool = False, budget: Budget | None = None) -> Iterator[Any]:
    """The documents of `text`, in order; empty ones are None."""
    _check_length(text)
    return _compose(text, 0, _Composer(strict, budget or Budget()))


def load_layers(text: str, *, strict: bool = False, budget: Budget | None = None) -> list[Any]:
    """The documents of a values file, which helm cuts at lines that begin with `---` and lays over one another."""
    _check_length(text)
    composer, begin, lines = _Composer(strict, budget or Budget()), 0, 0
    layers: list[Any] = []
    for line in _SEPARATOR.finditer(text):
        above = text.count("\n", begin, line.start())
        if (rest := line.group(1).strip()) and not rest.startswith("#"):
            raise DocumentError("only a comment may follow '---'", lines + above + 1, 1)
        layers.append(_single(text[begin : line.start()], lines, composer))
        begin, lines = line.end(), lines + above
    return [*layers, _single(text[begin:], lines, composer)]


def count(value: Any, most: int) -> int:
    """How many keys and values there are in what is composed; more than `most` are not counted to the end."""
    stack, found = [value], 1
    while stack and found <= most:
        each = stack.pop()
        if isinstance(each, dict):
            found += 2 * len(each)
        elif isinstance(each, list):
            found += len(each)
        else:
            continue
        if found <= most:
            stack.extend(each.values() if isinstance(each, dict) else each)
    return found


def _check_length(text: str) -> None:
    if len(text) > MAX_TEXT:
        raise TooLarge(f"text of {len(text)} characters; at most {MAX_TEXT} are read")


def _single(text: str, lines: int, composer: _Composer) -> Any:
    documents = list(_compose(text, lines, composer))
    while documents and documents[-1] is None:
        documents.pop()
    if len(documents) > 1:
        raise DocumentError(f"{len(documents)} documents where one is expected; remove the '---' lines")
    return documents[0] if documents else None


def _compose(text: str, lines: int, composer: _Composer) -> Iterator[Any]:
    """The documents of a text that stands below so many lines."""
    try:
        for event in yaml.parse(text, Loader=_Base):
            if composer.take(event):
                yield composer.document
    except DocumentError as error:
        raise type(error)(error.reason, error.line and error.line + lines, error.column) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = (mark.line + 1 + lines, mark.column + 1) if mark else (0, 0)
        raise DocumentError(_words(error), *where) from None
    except yaml.YAMLError as error:
        raise DocumentError(str(error).split("\n", 1)[0]) from None
    except UnicodeEncodeError as error:
        raise DocumentError(f"character {error.start} is half of a surrogate pair") from None


def _words(error: yaml.MarkedYAMLError) -> str:
    return " ".join(part for part in (error.problem, f"({error.context})" if error.context else "") if part)


class _Frame:
    """A mapping or sequence that is being composed. `size` counts its nodes, `height` how deep they are nested."""

    __slots__ = ("anchor", "height", "key", "seen", "size", "value")

    def __init__(self, value: dict[str, Any] | list[Any], anchor: str | None) -> None:
        self.value, self.anchor, self.size, self.height = value, anchor, 1, 1
        self.key: Any = _NO_KEY
        self.seen: set[str] = set()


class _Anchored:
    __slots__ = ("height", "size", "value")

    def __init__(self, value: Any, size: int, height: int) -> None:
        self.value, self.size, self.height = value, size, height


class _Composer:
    """Makes documents of the events of a parser, one after another."""

    def __init__(self, strict: bool, budget: Budget) -> None:
        self.document: Any = None
        self._strict, self._budget = strict, budget
        self._frames: list[_Frame] = []
        self._anchors: dict[str, _Anchored | None] = {}

    def take(self, event: yaml.Event) -> bool:
        """Whether a document is complete."""
        match event:
            case yaml.ScalarEvent():
                self._count(1, event)
                if self._wants_key and event.value == "<<" and _merges(event):
                    self._frames[-1].key = _MERGE
                else:
                    self._put(_scalar(event), 1, 0, event)
            case yaml.MappingStartEvent():
                self._open({}, event)
            case yaml.SequenceStartEvent():
                self._open([], event)
            case yaml.CollectionEndEvent():
                frame = self._frames.pop()
                self._put(frame.value, frame.size, frame.height, event, frame.anchor)
            case yaml.AliasEvent():
                self._alias(event)
            case yaml.DocumentStartEvent():
                self.document, self._anchors = None, {}
            case yaml.DocumentEndEvent():
                return True
        return False

    @property
    def _wants_key(self) -> bool:
        frame = self._frames[-1] if self._frames else None
        return frame is not None and isinstance(frame.value, dict) and frame.key is _NO_KEY

    def _count(self, nodes: int, event: Any) -> None:
        self._budget.take(nodes, event.start_mark.line + 1, event.start_mark.column + 1)

    def _open(self, value: dict[str, Any] | list[Any], event: Any) -> None:
        self._count(1, event)
        self._deepen(1, event)
        if self._wants_key:
            raise _problem("a key must be a string", event)
        if event.anchor:
            self._anchors[event.anchor] = None  # not complete yet
        self._frames.append(_Frame(value, event.anchor))

    def _deepen(self, height: int, event: Any) -> None:
        if len(self._frames) + height > MAX_DEPTH:
            raise TooLarge(f"nested deeper than {MAX_DEPTH}", event.start_mark.line + 1, event.start_mark.column + 1)

    def _alias(self, event: yaml.AliasEvent) -> None:
        if event.anchor not in self._anchors:
            raise _problem(f"alias {event.anchor!r} has no anchor before it", event)
        found = self._anchors[event.anchor]
        if found is None:
            raise _problem(f"anchor {event.anchor!r} holds itself", event)
        self._count(found.size, event)
        merged = bool(self._frames) and self._frames[-1].key is _MERGE  # it is laid beside, not below
        self._deepen(found.height - merged, event)
        self._put(found.value, found.size, found.height, event)

    def _put(self, value: Any, size: int, height: int, event: Any, anchor: str | None = None) -> None:
        if name := anchor or (event.anchor if isinstance(event, yaml.ScalarEvent) else None):
            self._anchors[name] = _Anchored(value, size, height)
        if not self._frames:
            self.document = _narrow(value)
            return
        frame = self._frames[-1]
        frame.size += size
        frame.height = max(frame.height, height + (frame.key is not _MERGE))
        if isinstance(frame.value, list):
            frame.value.append(_narrow(value))
        elif frame.key is _NO_KEY:
            frame.key = self._key(frame, value, event)
        elif frame.key is _MERGE:
            _merge(frame.value, value, event)
            frame.key = _NO_KEY
        else:
            frame.value[frame.key] = _narrow(value)
            frame.key = _NO_KEY

    def _key(self, frame: _Frame, value: Any, event: Any) -> str:
        key = _key(value, event)
        if self._strict:
            if key in frame.seen:
                raise _problem(f"key {key!r} is given twice", event)
            if (length := len(json.dumps(key))) > MAX_KEY:
                raise _problem(f"key of {length} characters; at most {MAX_KEY} may be", event)
            frame.seen.add(key)
        return key


def _problem(message: str, event: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=message, problem_mark=event.start_mark)


def _merges(event: Any) -> bool:
    return event.tag == f"{_YAML}merge" or bool(event.implicit[0])


def _merge(into: dict[str, Any], value: Any, event: Any) -> None:
    """What is merged overrides what stands before it; of several the first counts most."""
    layers = value if isinstance(value, list) else [value]
    if not all(isinstance(layer, dict) for layer in layers):
        raise _problem("a merge key needs a mapping, or a list of mappings", event)
    for layer in reversed(layers):
        into.update(layer)


def _key(key: Any, event: Any) -> str:
    match key:
        case str():
            return key
        case bool():
            return "true" if key else "false"
        case int() if -(1 << 63) <= key < 1 << 63:
            return str(key)
        case float():
            return _short(key)
    raise _problem("a key must be a string", event)


def _short(key: float) -> str:
    """The shortest decimal for a float of 32 bits, as Go writes it."""
    try:
        wanted = struct.pack("<f", key)
    except OverflowError:
        return ".inf" if key > 0 else "-.inf"
    text = next(text for digits in range(17) if struct.pack("<f", float(text := f"{key:.{digits}e}")) == wanted)
    mantissa, exponent = text.split("e")
    if -4 <= int(exponent) < 6:
        return f"{decimal.Decimal(text):f}"
    return f"{mantissa}e{exponent}"


def _scalar(event: yaml.ScalarEvent) -> Any:
    tag = event.tag
    if tag is None:
        return _plain(event) if event.implicit[0] else event.value
    read = _TAGGED.get(tag)
    return event.value if read is None else read(event)


def _plain(event: yaml.ScalarEvent) -> Any:
    text = event.value
    if text in _NULL:
        return None
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    if text[0] in "+-.0123456789" and (number := _number(text)) is not None:
        if isinstance(number, float) and not math.isfinite(number):
            raise _problem(f"{text} is no number that JSON has", event)
        return number
    return text


def _number(text: str) -> int | float | None:
    """None for what Go's library takes for text, which is so for numbers out of range too."""
    digits = text if text[0] == "." else text.replace("_", "")
    if _NOT_FINITE.fullmatch(text):
        return math.nan
    if _INT.fullmatch(digits) and (whole := _whole(digits)) is not None:
        return whole
    if not _FLOAT.fullmatch(digits):
        return None
    value = float(digits)
    if not math.isfinite(value):
        return None
    return value


def _narrow(value: Any) -> Any:
    """A whole float as an int, but for the zero below zero, which Go tells apart."""
    if type(value) is float and value.is_integer() and abs(value) < 1 << 53 and (value or math.copysign(1, value) > 0):
        return int(value)
    return value


def _whole(digits: str) -> int | None:
    """A whole number of at most 64 bits; None for a longer one, and for an octal one with an 8 in it."""
    bare = digits.lstrip("+-")
    if len(bare) > 70:
        return None
    base = 0 if bare[1:2].isalpha() else 8 if bare[0] == "0" and bare != "0" else 10
    with contextlib.suppress(ValueError):
        value = int(bare, base) * (-1 if digits[0] == "-" else 1)
        return value if -(1 << 63) <= value < 1 << 64 else None
    return None


def _tagged_plain(*kinds: type) -> Any:
    """Reads a scalar as if it were plain, and refuses what is of another kind than its tag says."""

    def read(event: yaml.ScalarEvent) -> Any:
        value = _plain(event)
        if type(value) not in kinds:
            raise _problem(f"{event.value!r} is no {str(event.tag).removeprefix(_YAML)}", event)
        return value

    return read


def _integer(event: yaml.ScalarEvent) -> int:
    text = event.value.replace("_", "")
    value = _whole(text) if _INT.fullmatch(text) else None
    if value is None:
        raise _problem(f"{event.value!r} is no int", event)
    return value


def _binary(event: yaml.ScalarEvent) -> str:
    try:
        return base64.b64decode("".join(event.value.split()), validate=True).decode()
    except ValueError:
        raise _problem("!!binary that is no UTF-8 text", event) from None


def _timestamp(event: yaml.ScalarEvent) -> str:
    if not _DATE.fullmatch(event.value):
        raise _problem(f"{event.value!r} is no timestamp", event)
    return str(event.value)


_TAGGED: dict[str, Any] = {
    f"{_YAML}binary": _binary,
    f"{_YAML}bool": _tagged_plain(bool),
    f"{_YAML}float": _tagged_plain(int, float),
    f"{_YAML}int": _integer,
    f"{_YAML}null": _tagged_plain(type(None)),
    f"{_YAML}timestamp": _timestamp,
}
"""Every other tag makes a string of a scalar, and is ignored on a mapping or a sequence."""
