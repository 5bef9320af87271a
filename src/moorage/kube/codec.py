"""Bytes of the API server to typed values, in one pass, by decoders that are made once per model. No I/O.

An object that does not decode never hides its neighbours: its page is then decoded item by item, and the bad are named.
What tells one kind of value from another for each event asks for its `type`: isinstance takes four times as long here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Generic, TypeVar, final

import msgspec

from moorage.api.meta import ListMeta, ObjectMeta, Partial

from . import errors

__all__ = [
    "Added",
    "Bookmark",
    "Deleted",
    "Event",
    "Failed",
    "Modified",
    "Page",
    "Unreadable",
    "decode",
    "decode_events",
    "decode_page",
    "encode",
    "failure",
]

T = TypeVar("T")


class Added(msgspec.Struct, Generic[T], frozen=True, gc=False, tag_field="type", tag="ADDED"):
    """A line of a watch: an object that is new, or there already when a streaming list begins."""

    kind: ClassVar[str] = "ADDED"

    object: T


class Modified(msgspec.Struct, Generic[T], frozen=True, gc=False, tag_field="type", tag="MODIFIED"):
    """A line of a watch: an object that was changed."""

    kind: ClassVar[str] = "MODIFIED"

    object: T


class Deleted(msgspec.Struct, Generic[T], frozen=True, gc=False, tag_field="type", tag="DELETED"):
    """A line of a watch: an object's last state."""

    kind: ClassVar[str] = "DELETED"

    object: T


@final
class Bookmark(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="BOOKMARK"):
    """A line of a watch: all before this version has been sent."""

    object: Partial

    @property
    def ends_list(self) -> bool:
        """True when a streaming list is complete with it."""
        return self.object.metadata.annotations.get("k8s.io/initial-events-end") == "true"


@final
class Failed(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="ERROR"):
    """A line of a watch: its last, saying why."""

    object: errors.Status


Event = Added[T] | Modified[T] | Deleted[T] | Bookmark | Failed


class Page(msgspec.Struct, Generic[T], frozen=True):
    """One page of a list. Some servers send null for no items."""

    metadata: ListMeta = ListMeta()
    items: list[T] | None = None


@final
class Unreadable(msgspec.Struct, frozen=True):
    """An object that is there but does not fit the model: who it is and what is wrong with it."""

    metadata: ObjectMeta
    why: str


encode = msgspec.json.Encoder().encode
_PARTIAL = msgspec.json.Decoder(Partial)
_RAW_PAGE = msgspec.json.Decoder(Page[msgspec.Raw])
_STATUS = msgspec.json.Decoder(errors.Status)


_decoder: Callable[[Any], msgspec.json.Decoder[Any]] = functools.cache(msgspec.json.Decoder)
_event_decoder: Callable[[Any], msgspec.json.Decoder[Any]] = functools.cache(lambda model: _decoder(_of(Event, model)))
_page_decoder: Callable[[Any], msgspec.json.Decoder[Any]] = functools.cache(lambda model: _decoder(_of(Page, model)))


def _of(generic: Any, model: Any) -> Any:
    return generic[model]


def decode(body: bytes | msgspec.Raw, model: type[T], what: str = "the answer") -> T:
    """A body as `model`. Raises MalformedAnswer."""
    try:
        value: T = _decoder(model).decode(body)
    except msgspec.DecodeError as error:  # ValidationError is one of these
        name = getattr(model, "__name__", str(model))
        raise errors.MalformedAnswer(f"{what}: does not decode as {name}: {error}") from error
    return value


def decode_events(lines: bytes | memoryview, model: type[T]) -> Iterable[Event[T] | Event[Unreadable]]:
    """Whole lines of a watch. Raises MalformedAnswer at the first of which not even the metadata can be read."""
    decoder = _event_decoder(model)
    try:
        events: list[Event[T] | Event[Unreadable]] = decoder.decode_lines(lines)
    except msgspec.DecodeError:
        return (_decode_event(line, decoder) for line in bytes(lines).split(b"\n") if line.strip())
    return events


def _decode_event(line: bytes, decoder: msgspec.json.Decoder[Event[T]]) -> Event[T] | Event[Unreadable]:
    try:
        event: Event[T] = decoder.decode(line)
    except msgspec.DecodeError as error:
        try:
            bare = _event_decoder(Partial).decode(line)
        except msgspec.DecodeError:
            raise errors.MalformedAnswer(f"watch: a line that is no event: {error}") from error
        unfit: Event[Unreadable] = type(bare)(Unreadable(bare.object.metadata, str(error)))
        return unfit
    return event


def decode_page(body: bytes, model: type[T], what: str) -> tuple[ListMeta, list[T], list[Unreadable]]:
    """(list metadata, items, unreadable items). Raises MalformedAnswer when the body is no list."""
    try:
        page: Page[T] = _page_decoder(model).decode(body)
    except msgspec.DecodeError:
        return _decode_one_by_one(body, model, what)
    return page.metadata, page.items or [], []


def _decode_one_by_one(body: bytes, model: type[T], what: str) -> tuple[ListMeta, list[T], list[Unreadable]]:
    try:
        page = _RAW_PAGE.decode(body)
    except msgspec.DecodeError as error:
        raise errors.MalformedAnswer(f"{what}: not a list: {error}") from error
    items: list[T] = []
    bad: list[Unreadable] = []
    for raw in page.items or []:
        try:
            items.append(_decoder(model).decode(raw))
        except msgspec.DecodeError as error:
            bad.append(Unreadable(decode(raw, Partial, what).metadata, str(error)))
    return page.metadata, items, bad


def failure(what: str, code: int, body: bytes, retry_after: str, *, secret: bool = False) -> errors.ApiError:
    """The error for a status of 400 or more. Of a Secret only code and reason are told: messages may quote values."""
    try:
        status = _STATUS.decode(body)
    except msgspec.DecodeError:
        text = body[:200].decode(errors="replace").strip()  # a proxy's page, or plain text from a handler
        status = errors.Status(message=text)
    if secret:
        status = errors.Status(reason=status.reason, message="details withheld, as they may quote secret data")
    status = msgspec.structs.replace(status, code=status.code or code)
    return errors.from_status(what, status, float(retry_after) if retry_after.isdigit() else 0)
