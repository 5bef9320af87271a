"""The operator's configuration file: YAML, checked whole before anything starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import yaml

from moorage import operators
from moorage.runtime.reporting import event_recorder

DEFAULT_LEVEL = "info"


class ConfigError(Exception):
    """The file can't be used; the message says where and what to do."""


class LeaderElection(msgspec.Struct, frozen=True, rename="camel"):
    """Seconds: duration > renew > retry."""

    enabled: bool = True
    lease_name: str = "moorage"
    duration_seconds: float = 15.0
    renew_seconds: float = 10.0
    retry_seconds: float = 2.0
    shards: int = 1


class Http(msgspec.Struct, frozen=True):
    """Where probes and metrics are served; port 0 for nowhere."""

    host: str = "0.0.0.0"  # noqa: S104 - probes come from the node
    port: int = 8080


class Config(msgspec.Struct, frozen=True, rename="camel"):
    """The whole file. `systems` holds one section per system that is switched on."""

    systems: dict[str, dict[str, Any]]
    namespace_only: bool = False  # for the operator's own namespace alone, with rights in no other
    leader_election: LeaderElection = LeaderElection()
    http: Http = Http()
    log_level: str = DEFAULT_LEVEL
    workers: int = 8
    helm_runs: int = 4
    drain_seconds: float = 40.0
    events: event_recorder.Wanted = "all"

    def section(self, name: str) -> Any:
        """One system's section, decoded. Raises ConfigError."""
        try:
            return msgspec.convert(self.systems[name], operators.SYSTEMS[name].config)
        except msgspec.ValidationError as error:
            raise ConfigError(f"systems.{name}: {error}") from error


def log_level(path: Path) -> str:
    """What the file says now of this one setting, whatever else is in it. Raises ConfigError."""
    raw = _read(path)
    return str(raw["logLevel"]) if isinstance(raw, dict) and "logLevel" in raw else DEFAULT_LEVEL


def _read(path: Path) -> Any:
    try:
        return yaml.safe_load(path.read_text())
    except OSError as error:
        raise ConfigError(f"{path} can't be read: {error.strerror}; name it with --config") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not YAML: {error}") from error


def load(path: Path) -> Config:
    """Read and check the file. Raises ConfigError."""
    raw = _read(path)
    try:
        config = msgspec.convert(raw, Config)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path}: {error}") from error
    if unknown := config.systems.keys() - operators.SYSTEMS.keys():
        known = ", ".join(sorted(operators.SYSTEMS))
        raise ConfigError(f"{path}: unknown systems {', '.join(sorted(unknown))}; there are: {known}")
    for name in config.systems:
        config.section(name)
    if config.namespace_only:
        check_alone(config)
    return config


ALONE = ("kre",)
"""Systems that need nothing outside a namespace."""


def check_alone(config: Config) -> None:
    """Whether all that is switched on can be looked after with rights in one namespace. Raises ConfigError."""
    if wide := sorted(config.systems.keys() - set(ALONE)):
        raise ConfigError(
            f"in a namespace alone only systems.{', '.join(ALONE)} can be looked after: take systems.{wide[0]} out, or "
            "run an installation for the whole cluster"
        )
