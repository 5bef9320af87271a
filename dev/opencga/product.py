"""OpenCGA's configuration classes in a JVM, which load files and tell which keys they know; and its storage server."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import msgspec

HERE = Path(__file__).parent
JARS = HERE.parents[1] / "build" / "opencga-product"
VERSIONS = ("2.4.4", "3.4.0", "4.0.0")
"""Those of which all three classes are published."""

_CORE = "org.opencb.opencga.core.config"
CLASSES = {
    "configuration": f"{_CORE}.Configuration",
    "storage": f"{_CORE}.storage.StorageConfiguration",
    "client": f"{_CORE}.client.ClientConfiguration",
}
OLDER = {"client": "org.opencb.opencga.client.config.ClientConfiguration"}
"""Where a class was before 4.0."""

WITHIN = 120.0
"""Seconds that a JVM may take to begin and to end."""


class MissingError(Exception):
    """What is needed is not here, or is not what it should be."""


class RefusedError(Exception):
    """A class does not take a file; the message is its own."""


def jars() -> Path:
    """The folder with the classes and what they need, by version. Raises MissingError."""
    return _brought("classes", "dependency:copy")


def server_jars() -> Path:
    """The folder with the storage server and all that it needs. Raises MissingError."""
    return _brought("storage-server", "dependency:copy-dependencies")


def _brought(what: str, goal: str) -> Path:
    """By the ordinary Maven, once; one that is another than it was is none."""
    lines = (line.split() for line in (HERE / f"{what}.sha256").read_text().splitlines())
    wanted, folder = {name: digest for digest, name in lines}, JARS / what
    if not all((folder / name).is_file() for name in wanted):
        _run("mvn", "-q", "-B", "-f", str(HERE / f"{what}.xml"), goal, f"-Djars={folder}")
    for name, digest in wanted.items():
        if hashlib.sha256((folder / name).read_bytes()).hexdigest() != digest:
            raise MissingError(f"{name} is another than it was; see what has come into {folder}, and delete it")
    return folder


def _run(tool: str, *words: str) -> None:
    if not shutil.which(tool):
        raise MissingError(f"there is no {tool}: install Java 17 and Maven")
    done = subprocess.run([tool, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise MissingError(f"{tool} failed: {(done.stdout + done.stderr)[-2000:]}")


def own(version: str) -> dict[str, str]:
    """The product's own files, by name, of the jars that have them."""
    found: dict[str, str] = {}
    for jar in sorted((jars() / version).glob("opencga-*.jar")):
        with zipfile.ZipFile(jar) as opened:
            found |= {name: opened.read(name).decode() for name in opened.namelist() if _is_file(name)}
    return found


def _is_file(name: str) -> bool:
    return name.endswith("configuration.yml") and "/" not in name


class Product:
    """The classes of one version."""

    def __init__(self, version: str, asked: IO[bytes], answers: IO[bytes]) -> None:
        self._version, self._asked, self._answers = version, asked, answers

    def load(self, file: str, text: bytes) -> Any:
        """What the class of that file holds once it has loaded it. Raises RefusedError."""
        return self._ask({"type": self._type(file), "text": text.decode()})

    def keys(self, file: str) -> Any:
        """The keys that it knows: mappings of names; `*` is any name, and True whatever there may be."""
        return self._ask({"type": self._type(file)})

    def _type(self, file: str) -> str:
        return OLDER.get(file, CLASSES[file]) if int(self._version.split(".")[0]) < 4 else CLASSES[file]

    def _ask(self, question: dict[str, str]) -> Any:
        self._asked.write(msgspec.json.encode(question) + b"\n")
        self._asked.flush()
        answer = msgspec.json.decode(self._answers.readline() or b'{"error": "the JVM has ended"}')
        if "error" in answer:
            raise RefusedError(answer["error"])
        return answer["said"]


@contextlib.contextmanager
def product(version: str) -> Iterator[Product]:
    """Its JVM, which ends with it. Raises MissingError."""
    words = ["java", "-cp", f"{jars() / version}/*", str(HERE / "Product.java")]
    env = {key: value for key, value in os.environ.items() if not key.startswith("OPENCGA")}  # the classes heed these
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        try:
            yield Product(version, running.stdin, running.stdout)
            running.stdin.close()
            running.wait(WITHIN)
        finally:
            running.kill()


@contextlib.contextmanager
def storage_server(home: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The product's storage server, by the files in `conf` of that folder; it ends with the context."""
    words = ["java", "-cp", f"{server_jars()}/*", str(HERE / "StorageServer.java")]
    with (
        (home / "log").open("wb") as log,
        subprocess.Popen(words, stdout=log, stderr=log, env={**os.environ, "OPENCGA_HOME": str(home)}) as running,
    ):
        try:
            yield running
        finally:
            running.kill()
