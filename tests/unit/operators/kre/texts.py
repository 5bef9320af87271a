"""Small krt files, good ones, that tests change in one place."""

from __future__ import annotations

import gzip
import io
import tarfile

V2 = """\
krtVersion: v2
version: greeter-v1
description: Says hello.
entrypoint:
  proto: public_input.proto
  image: konstellation/kre-entrypoint:latest
config:
  variables: [API_KEY]
workflows:
  - name: greet
    entrypoint: Greet
    exitpoint: last
    nodes:
      - name: first
        image: konstellation/kre-py:latest
        src: src/first.py
        subscriptions: [entrypoint]
      - name: last
        image: konstellation/kre-py:latest
        src: src/last.py
        replicas: 2
        subscriptions: [first]
"""

V1 = """\
version: greeter-v1
description: Says hello.
entrypoint:
  proto: public_input.proto
  image: konstellation/kre-entrypoint:latest
config:
  variables: [API_KEY]
nodes:
  - name: first
    image: konstellation/kre-py:latest
    src: src/first.py
  - name: last
    image: konstellation/kre-py:latest
    src: src/last.py
    gpu: true
workflows:
  - name: greet
    entrypoint: Greet
    sequential: [first, last]
"""

PROTO = 'syntax = "proto3";\nservice Entrypoint {\n  rpc Greet (Request) returns (Response);\n}\n'


def changed(text: str, old: str, new: str) -> bytes:
    """The text with one change, which must be one."""
    assert 1 == text.count(old), f"{old!r} is not once in the text"
    return text.replace(old, new).encode()


def files(**others: bytes) -> dict[str, bytes]:
    """All that a version needs, by name; further ones with `__` for a slash."""
    base = {
        "krt.yml": V2.encode(),
        "public_input.proto": PROTO.encode(),
        "src/first.py": b"",
        "src/last.py": b"",
    }
    return base | {name.replace("__", "/"): data for name, data in others.items()}


def packed(contents: dict[str, bytes]) -> bytes:
    """An archive of these files."""
    return archive(*((member(name, len(data)), data) for name, data in contents.items()))


def archive(*members: tuple[tarfile.TarInfo, bytes], form: int = tarfile.GNU_FORMAT) -> bytes:
    """An archive of these entries, whatever they are."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as tar:
        for info, data in members:
            tar.addfile(info, io.BytesIO(data))
    return gzip.compress(out.getvalue(), 1, mtime=0)


def member(name: str, size: int = 0, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    """One entry."""
    info = tarfile.TarInfo(name)
    info.size, info.type, info.linkname = size, kind, link
    return info
