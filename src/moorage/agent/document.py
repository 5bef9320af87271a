"""The configuration as it is published: as much of it as an agent reads. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

REST, MASTER = "rest", "master"


class Process(msgspec.Struct, frozen=True, rename="camel"):
    """One server: which pod it is in, and of which version."""

    name: str
    hostname: str
    process_type: str
    version: str
    disabled: bool = False


class Admin(msgspec.Struct, frozen=True, rename="camel"):
    """OpenCGA's administrator; the password is in a file."""

    email: str
    password_file: str
    revision: str = ""


class Login(msgspec.Struct, frozen=True, rename="camel"):
    """The database's user, by files."""

    user_file: str
    password_file: str
    revision: str = ""


class Auth(msgspec.Struct, frozen=True):
    """Who logs in where."""

    admin: Admin
    database: Login | None = None


class Tls(msgspec.Struct, frozen=True):
    """TLS to the database: in which file its authority is, if it is not one that everybody knows.

    And in which the certificate that servers show it, with its key, if they show one.
    """

    ca_file_path: str = msgspec.field(name="CAFilePath", default="")
    revision: str = ""
    certificate_file: str = msgspec.field(name="certificateFile", default="")
    key_file: str = msgspec.field(name="keyFile", default="")


class Deployment(msgspec.Struct, frozen=True):
    """Which of the processes is the MASTER."""

    master: str


class Upgrade(msgspec.Struct, frozen=True):
    """What a migration may do; `stopped`: REST servers are stopped for one that forbids the old version.

    `backup` is run before it, where there is something to be migrated.
    """

    migration: str = "Auto"
    stopped: bool = False
    backup: tuple[str, ...] = ()


class Document(msgspec.Struct, frozen=True):
    """All of it."""

    version: int
    auth: Auth
    args: dict[str, dict[str, Any]]
    processes: tuple[Process, ...]
    deployments: tuple[Deployment, ...]
    upgrade: Upgrade = Upgrade()
    tls: Tls | None = None

    def process(self, name: str) -> Process | None:
        """The place of that pod."""
        return next((each for each in self.processes if each.name == name), None)

    @property
    def master(self) -> str:
        """Whose agent installs the catalog."""
        return self.deployments[0].master if self.deployments else ""

    @property
    def rest(self) -> tuple[Process, ...]:
        """The REST members."""
        return tuple(each for each in self.processes if each.process_type == REST)

    def is_last(self, name: str) -> bool:
        """Whether that one is the last of the REST members that serve."""
        return [each.name for each in self.rest if not each.disabled][-1:] == [name]

    def before(self, name: str) -> tuple[str, ...]:
        """Who is restarted before that one: never two at once."""
        order = [each.name for each in self.processes if not each.disabled]
        return tuple(order[: order.index(name)]) if name in order else ()


def read(text: bytes) -> Document:
    """The document. Raises ValueError for one that can't be read."""
    try:
        return msgspec.json.decode(text, type=Document)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(f"the configuration can't be read: {error}") from error
