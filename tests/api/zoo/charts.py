"""The charts of the zoo, what is done with each, and in what they may differ from plain helm.

A chart is a folder with an optional `zoo.yaml` in it; a version is the same folder with that version in Chart.yaml, so
that a template can ask for `.Chart.Version`.
"""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import yaml

ROOT = Path(__file__).parents[2] / "e2e" / "charts"
FILE = "zoo.yaml"


class Change(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What somebody does by hand in both namespaces: one of these to an object."""

    kind: str
    name: str
    merge: dict[str, Any] = {}
    scale: int | None = None
    delete: bool = False
    create: dict[str, Any] = {}
    """The body, without its kind and name."""


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One install or upgrade by both."""

    values: str = ""
    """The YAML text, given to both as it stands."""

    version: str = ""
    """Of the chart; the first step has 0.1.0 and later ones a number more unless they say otherwise."""

    meanwhile: tuple[Change, ...] = ()
    """What is done before."""

    fails: bool = False
    """Plain helm fails."""

    rollback: int = 0
    """The revision that helm is told to go back to after its failure, as moorage does by itself."""

    reason: str = ""
    """A pattern of the reason of `Ready` that moorage comes to, where that is neither ready after helm's success nor
    stalled after its failure.
    """


class Difference(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A difference that is meant, and why. It must be there, if it is said to be always."""

    where: str
    """A pattern that is found in the words of the difference: `uninstall: Job hook`."""

    why: str
    always: bool = True


class Chart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One `zoo.yaml`."""

    steps: tuple[Step, ...] = (Step(), Step())
    policy: dict[str, Any] = {}
    """spec.policy of the Collector; what plain helm does on failure is `onFailure: Keep`."""

    rules: tuple[dict[str, Any], ...] = ()
    """What the chart needs beyond the tenant role, as a Role's rules."""

    stays: str = ""
    """Plain helm can't uninstall it, and the Collector stays with this reason."""

    differs: tuple[Difference, ...] = ()
    mask: tuple[str, ...] = ()
    """Patterns of what is drawn by chance or told by a clock."""

    broken: str = ""
    """The line of the issue that says why it is not as with plain helm. The test fails when it is."""

    patience: float = 180.0
    """Seconds after which a step that has not come to an end, by moorage or plain helm, counts as hanging."""


class Odd(msgspec.Struct, frozen=True):
    """A folder with its story."""

    folder: Path
    told: Chart

    @property
    def name(self) -> str:
        """The chart's name, which is the folder's."""
        return self.folder.name

    def versions(self) -> Iterator[tuple[str, Step]]:
        """Each step with its version."""
        for number, step in enumerate(self.told.steps, 1):
            yield step.version or f"0.{number}.0", step

    def pack(self, version: str, into: Path) -> None:
        """Write NAME-VERSION.tgz, without the story."""
        with tarfile.open(into / f"{self.name}-{version}.tgz", "w:gz") as out:
            for path in sorted(self.folder.rglob("*")):
                inside = path.relative_to(self.folder)
                if not path.is_file() or str(inside) == FILE:
                    continue
                data = path.read_bytes()
                if str(inside) == "Chart.yaml":
                    data = re.sub(rb"(?m)^version: .*$", f"version: {version}".encode(), data)
                member = tarfile.TarInfo(f"{self.name}/{inside}")
                member.size = len(data)
                out.addfile(member, io.BytesIO(data))


def every() -> list[Odd]:
    """All charts of the tests: those of the zoo, and those that other tests use, which have no story."""
    folders = sorted(path.parent for pattern in ("zoo/*", "*") for path in ROOT.glob(f"{pattern}/Chart.yaml"))
    return [Odd(folder, _story(folder)) for folder in folders]


def _story(folder: Path) -> Chart:
    file = folder / FILE
    return msgspec.convert(yaml.safe_load(file.read_text()) or {}, Chart) if file.exists() else Chart()
