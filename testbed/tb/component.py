"""What a component is: a command, the level it belongs to, and how to tell that it is ready."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum

from tb.api import Api
from tb.settings import Settings


class Level(IntEnum):
    """How much of a cluster runs; each level includes the ones before it."""

    API = 1
    CONTROL = 2
    NODE = 3


@dataclass(frozen=True)
class Component:
    """One long-running process of a testbed.

    `ready` is asked again and again while the component comes up; `prepare` writes the files that its command names.
    """

    name: str
    level: Level
    command: Callable[[Settings], list[str]]
    ready: Callable[[Settings, Api], bool]
    prepare: Callable[[Settings], None] = lambda _: None
    environment: dict[str, str] = field(default_factory=dict)
    namespace: str = ""  # the network namespace it runs in, if not the testbed's


def kubernetes(settings: Settings, part: str, flags: dict[str, object]) -> list[str]:
    """A command of the multi-call binary."""
    return [str(settings.bin / "kubernetes"), part, *(f"--{name}={value}" for name, value in flags.items())]
