"""What is inside a `.krt` archive, a tar in a gzip. I/O: reads the file it is given, unpacks nothing to the disk.

An archive may come from anybody, so all is bounded while it is read: what it unpacks to, how many files, names, and the
headers that a tar may put before a file. Links are refused, as they may lead anywhere, and so is what unpackers read
differently: a name that is there twice, something after the end.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import tarfile
import zlib
from typing import BinaryIO

from . import files
from .files import KrtError

__all__ = ["KrtError", "digest", "read"]

_MAX_TAR = files.MAX_UNPACKED + (64 << 20)  # bytes, with all headers
_MAX_HEADERS = 16 << 10  # bytes before one file; names and times need less
_LONG_NUMBER = re.compile(rb"\d{200}")  # on which Python's reader may spend the square of its length
_CHUNK = 1 << 16
_AGAIN = "pack it anew: tar -czf NAME.krt -C FOLDER ."


def read(file: BinaryIO, size: int) -> files.Files:
    """The files of an archive of so many bytes. Raises KrtError where it can't be read to its end."""
    if size > files.MAX_PACKED:
        fix = "leave out what the nodes don't need"
        raise KrtError(f"the archive has {size} bytes; at most {files.MAX_PACKED} are read", fix)
    inventory = files.Inventory()
    try:
        with gzip.GzipFile(fileobj=file, mode="rb") as plain:
            tar = _Tar(plain)
            with tarfile.TarFile(fileobj=tar, mode="r", encoding="utf-8") as packed:  # type: ignore[arg-type]
                for member in packed:
                    _take(tar, member, inventory)
                    tar.headers = 0
            tar.end()
    except (gzip.BadGzipFile, zlib.error) as error:
        raise KrtError(f"it is no .krt archive, a tar in a gzip: {error}", _AGAIN) from None
    except EOFError:
        raise KrtError("the archive is cut off", f"copy it again, or {_AGAIN}") from None
    except (tarfile.TarError, ValueError, OverflowError, IndexError) as error:
        raise KrtError(f"it is no .krt archive, a tar in a gzip: {error}", _AGAIN) from None
    return inventory.files()


def digest(file: BinaryIO) -> str:
    """By which an archive is known: of its bytes, from the start."""
    file.seek(0)
    return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"  # type: ignore[arg-type]


def _take(tar: _Tar, member: tarfile.TarInfo, inventory: files.Inventory) -> None:
    name = inventory.entry(member.name)
    if not name:
        return
    if member.isdir():
        inventory.folder(name)
    elif member.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not member.issparse():
        inventory.file(name, member.size, lambda: tar.content(member.size))
    elif member.issym() or member.islnk():
        fix = "pack what it leads to instead: tar --dereference --hard-dereference -czf NAME.krt -C FOLDER ."
        inventory.tell(f"{name} is a link", fix)
    else:
        inventory.tell(f"{name} is neither a file nor a folder", "leave it out")


class _Tar:
    """The tar while it is unpacked: forward only. What `tarfile` asks of it are headers, which are held small here.

    Python's reader takes a header's word for any size, and a header that it can't read for the end of the archive.
    """

    def __init__(self, plain: gzip.GzipFile) -> None:
        self.headers = 0  # bytes since the last file
        self._plain, self._at, self._last = plain, 0, b""

    def tell(self) -> int:
        """How far it was read."""
        return self._at

    def seek(self, position: int) -> None:
        """Go forward to there."""
        if position < self._at:
            raise KrtError("a header in it tells a size below zero", _AGAIN)
        while self._at < position:
            self._more(min(position - self._at, _CHUNK))

    def read(self, size: int) -> bytes:
        """A header of so many bytes."""
        self.headers += max(size, 0)
        if size < 0 or self.headers > _MAX_HEADERS:
            raise KrtError(f"it has more than {_MAX_HEADERS} bytes of headers before a file", _AGAIN)
        self._last = self._more(size) if size else b""
        if _LONG_NUMBER.search(self._last):
            raise KrtError("it has a number of hundreds of digits in a header", _AGAIN)
        return self._last

    def content(self, size: int) -> bytes:
        """The content of the file whose header was read last."""
        pieces = []
        while size > 0:
            pieces.append(self._more(min(size, _CHUNK)))
            size -= len(pieces[-1])
        return b"".join(pieces)

    def end(self) -> None:
        """See that it ends as a tar does: the last header is empty, and so is all that follows."""
        if len(self._last) < tarfile.BLOCKSIZE:
            raise EOFError
        if any(self._last):
            raise KrtError("a header in it is damaged", _AGAIN)
        while chunk := self._plain.read(_CHUNK):
            self._count(chunk)
            if any(chunk):
                raise KrtError("something follows the end of the archive", _AGAIN)

    def _more(self, size: int) -> bytes:
        data = self._plain.read(size)
        if not data:
            raise EOFError
        self._count(data)
        return data

    def _count(self, data: bytes) -> None:
        self._at += len(data)
        if self._at > _MAX_TAR:
            raise KrtError(f"it unpacks to more than {files.MAX_UNPACKED} bytes", "leave out what the nodes don't need")
