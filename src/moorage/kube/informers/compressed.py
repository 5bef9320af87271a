"""The cold tier: objects that are rarely read, kept as compressed bytes and decoded at each read. Pure: no I/O.

Objects of one kind are much alike, so the first few of them serve as the dictionary of all others: about an eighth of
the JSON then, against half without. The price is CPU: some 40 us for each change of a 3.4-KB object, 15 for a read.
"""

from __future__ import annotations

import zlib
from typing import Generic, TypeVar

import msgspec

__all__ = ["Packer"]

T = TypeVar("T")
_SAMPLES = 2  # objects in the dictionary; more make it slower and the rest hardly smaller
_LEVEL = 3  # likewise
_WINDOW = 32 << 10  # bytes of a dictionary that deflate can look back upon
_COMPRESSED = 0x78  # the first byte of a zlib stream, and of no map in msgpack


class _Packed(msgspec.Struct, Generic[T], gc=False):
    """A `store.Entry` that makes its object anew each time."""

    packer: Packer[T]
    data: bytes
    uid: str
    version: int
    told: bool = True

    @property
    def obj(self) -> T:
        return self.packer.unpack(self.data)


class Packer(Generic[T]):
    """Packs the objects of one cache; what the model drops is not kept."""

    def __init__(self, model: type[T]) -> None:
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(model).decode
        self._samples: list[bytes] = []
        self._dictionary = b""

    def entry(self, obj: T, uid: str, version: int) -> _Packed[T]:
        """A `store.Entry` of the object."""
        return _Packed(self, self._pack(self._encode(obj)), uid, version)

    def unpack(self, data: bytes) -> T:
        """The object in an entry's data."""
        if data[0] == _COMPRESSED:
            data = zlib.decompressobj(zdict=self._dictionary).decompress(data)
        return self._decode(data)

    def _pack(self, data: bytes) -> bytes:
        if not self._dictionary:
            self._samples.append(data)
            if len(self._samples) == _SAMPLES:
                self._dictionary = b"".join(self._samples)[-_WINDOW:]
                self._samples.clear()
            return data  # the samples themselves stay as they are
        packing = zlib.compressobj(_LEVEL, zdict=self._dictionary)
        return packing.compress(data) + packing.flush()
