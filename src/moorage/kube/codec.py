"""Bytes of the API server to typed values, in one pass, by decoders that are made once per model. No I/O.

An object that does not decode never hides its neighbours: its page is then decoded item by item, and the bad are named.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

from moorage.api.meta import ListMeta, ObjectMeta, Partial

from . import errors

__all__ = [
    "Event",
    "Page",
    "Unreadable",
    "bookmark",
    "decode",
    "decode_event",
    "decode_page",
    "encode",
    "failure",
    "is_control",
]

T = TypeVar("T")


class Event(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """One line of a watch."""

    type: str
    object: T


class Page(msgspec.Struct, Generic[T], frozen=True):
    """One page of a list. Some servers send null for no items."""

    metadata: ListMeta = ListMeta()
    items: list[T] | None = None


class Unreadable(msgspec.Struct, frozen=True):
    """An object that is there but does not fit the model: who it is and what is wrong with it."""

    metadata: ObjectMeta
    why: str


encode = msgspec.json.Encoder().encode
_PARTIAL = msgspec.json.Decoder(Partial)
_RAW_EVENT = msgspec.json.Decoder(Event[msgspec.Raw])
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


def decode_event(line: bytes, model: type[T]) -> Event[T] | Event[Unreadable]:
    """A line of a watch that is not a control event. Raises MalformedAnswer when not even its metadata can be read."""
    try:
        event: Event[T] = _event_decoder(model).decode(line)
    except msgspec.DecodeError as error:
        try:
            bare = _RAW_EVENT.decode(line)
            metadata = _PARTIAL.decode(bare.object).metadata
        except msgspec.DecodeError:
            raise errors.MalformedAnswer(f"watch: a line that is no event: {error}") from error
        return Event(bare.type, Unreadable(metadata, str(error)))
    return event


def is_control(line: bytes) -> bool:
    """True for ERROR and BOOKMARK lines, by their first bytes: the API server writes the type first."""
    return line.startswith((b'{"type":"BOOKMARK"', b'{"type":"ERROR"'))


def bookmark(line: bytes) -> str:
    """The resourceVersion of a BOOKMARK line. Raises the ApiError of an ERROR line, MalformedAnswer for neither."""
    try:
        event = _RAW_EVENT.decode(line)
        if event.type == "ERROR":
            raise errors.from_status("watch", _STATUS.decode(event.object))
        return _PARTIAL.decode(event.object).metadata.resource_version
    except msgspec.DecodeError as error:
        raise errors.MalformedAnswer(f"watch: a control event that does not decode: {error}") from error


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
