"""What an agent does next. Pure: read `decide` top to bottom.

An observation in, one stand out: an act, or what is waited for, or an error that only a person can mend.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import msgspec

from . import document

INSTALL, BACKUP, MIGRATE = "CatalogInstall", "Backup", "Migrate"
READ, RENDER, START, CHANGE = "ReadConfiguration", "RenderConfig", "Start", "ChangeVersion"
TURN, DRAIN, STOP = "WaitTurn", "Drain", "Stop"
"""Steps until a REST server is stopped: others go first, then it is no longer ready, and then it is stopped."""

SETTLE = "Settle"
"""The step of one that is switched off until its container is known as not ready: from then on the agent may be."""

MOST_OF_BACKUP = 200
"""Characters of what a backup said last that are told with its failure."""

HELD, STOPPED, MIGRATED = "Held", "WaitStopped", "WaitMigrated"
"""The MASTER may not migrate as things are; it waits until no REST server runs; a REST server is stopped for that."""


class Command(msgspec.Struct, frozen=True):
    """A command of the product that the hook has run, or runs: the last one."""

    id: str
    running: bool
    exit: int = 0
    output: str = ""


class Hook(msgspec.Struct, frozen=True):
    """What the hook tells of the server's container."""

    running: bool  # the server
    command: Command | None = None
    boot: str = ""  # names this life of the server's container


class Catalog(msgspec.Struct, frozen=True):
    """What `catalog status` said."""

    reachable: bool
    installed: bool = False


class Migration(msgspec.Struct, frozen=True):
    """One that is to be applied, by the product's word."""

    id: str
    stops: bool = True  # no server of the old version may touch the catalog meanwhile
    manual: bool = False  # only a person can run it


class Intent(msgspec.Struct, frozen=True):
    """A command that was noted before it was begun, and is not known to have ended."""

    move: str
    id: str
    document: int  # the version for which it was begun: another one lets it be tried again
    version: str = ""  # of the server's image that began it
    boot: str = ""  # the container's life in which it was begun
    offline: bool = False  # no REST server runs meanwhile


class Other(msgspec.Struct, frozen=True):
    """Another agent, by its own word."""

    in_goal: bool = False
    document: int = -1
    catalog: str = ""  # the version that it has migrated an installed catalog to
    stopped: int = -1  # the version of the document by which its server is stopped for a migration


class Seen(msgspec.Struct, frozen=True):
    """All that is decided on."""

    me: str
    version: str  # of the server's image
    document: document.Document | None
    fault: str = ""  # why there is none
    hook: Hook | None = None  # None: nobody answers at its socket
    wanted: str = ""  # names the files as they should be; empty: that is not known
    unknown: str = ""  # why
    present: str = ""  # names the files that there are
    ping: bool = False
    catalog: Catalog | None = None  # None: it was not asked
    migrations: tuple[Migration, ...] | None = None  # those to be applied; None: that was not asked
    intent: Intent | None = None
    migrated: str = ""  # the version that the catalog was migrated to by this one
    backed_up: str = ""  # the version before whose migration a backup was made
    others: dict[str, Other] = {}
    drained: bool = False  # it has not been ready for long enough, so that nobody asks its server any more
    settled: bool = False  # it has been switched off for long enough, so that its container is not ready


# --- acts ---------------------------------------------------------------------------------------------------------


class Stop(msgspec.Struct, frozen=True, tag=True):
    """The server is stopped in order."""


class Render(msgspec.Struct, frozen=True, tag=True):
    """The files are written."""


class Begin(msgspec.Struct, frozen=True, tag=True):
    """A command at the catalog is noted, and then begun."""

    move: str
    offline: bool = False


class Forget(msgspec.Struct, frozen=True, tag=True):
    """What was noted is over; `migrated`: the catalog is of this version now; `backed_up`: it may be migrated to it.

    A backup for another version counts for nothing any more.
    """

    migrated: bool = False
    backed_up: bool = False


class Ask(msgspec.Struct, frozen=True, tag=True):
    """How the catalog is."""


class AskMigrations(msgspec.Struct, frozen=True, tag=True):
    """Which are to be applied, and what each forbids."""


class Begun(msgspec.Struct, frozen=True, tag=True):
    """The server is started."""


Act: TypeAlias = Stop | Render | Begin | Forget | Ask | AskMigrations | Begun


class Stand(msgspec.Struct, frozen=True):
    """Where the agent stands: at a step of a move, with an act or without; with neither it is in its goal."""

    move: str = ""
    step: str = ""
    act: Act | None = None
    error: str = ""
    expected: bool = True  # the server should run

    @property
    def in_goal(self) -> bool:
        """Nothing is left to do for the document as it is."""
        return not self.step

    @property
    def waits(self) -> bool:
        """It waits for others, and its server is left alone meanwhile."""
        return self.act is None and self.step.startswith("Wait")


def decide(seen: Seen) -> Stand:
    """The one thing that comes next."""
    if seen.document is None:
        return Stand(READ, "WaitConfiguration", error=seen.fault)
    if seen.hook is None:
        return Stand(START, "WaitHook")
    if seen.hook.command is not None and seen.hook.command.running:
        return Stand(seen.intent.move if seen.intent else INSTALL, "WaitCommand")
    place = seen.document.process(seen.me)
    if place is None or place.disabled:
        return _off(seen, seen.document, seen.hook)
    if seen.document.upgrade.stopped and place.process_type == document.REST:
        return _stops(seen, seen.document) if seen.hook.running else Stand(MIGRATE, MIGRATED)
    if place.version != seen.version:  # what runs goes on; what does not run is not begun in an old version
        return Stand(CHANGE, "WaitCanUpdate")
    if not seen.wanted:
        return Stand(RENDER, "WaitSecrets", error=seen.unknown)
    if seen.present != seen.wanted:
        return _rendered(seen, seen.document, seen.hook)
    if place.process_type == document.MASTER and (stand := _catalog(seen, seen.document, seen.hook)) is not None:
        return stand
    if place.process_type == document.REST and not seen.hook.running and not _may_serve(seen, seen.document):
        return Stand(START, "WaitCatalog")
    if not seen.hook.running:
        return Stand(START, "Begin", Begun())
    return Stand() if seen.ping else Stand(START, "WaitPing")


def _off(seen: Seen, found: document.Document, hook: Hook) -> Stand:
    """Its server should not run. One of REST is asked no more before it is stopped, as its pod is not ready.

    Nor after that: the agent is not ready again before the container is known as not ready by its own probe.
    """
    if not hook.running:
        settled = seen.settled or found.master == seen.me
        return Stand(expected=False) if settled else Stand(START, SETTLE, expected=False)
    return _leaves(seen, found, START, expected=False)


def _rendered(seen: Seen, found: document.Document, hook: Hook) -> Stand:
    """Files are written while no server reads them; one that runs is stopped when its turn has come.

    A REST server serves on until Services have seen that its pod is not ready, and send it no more queries.
    """
    if not hook.running:
        return Stand(RENDER, "Render", Render())
    if any(not _has_applied(seen, name, found.version) for name in found.before(seen.me)):
        return Stand(RENDER, TURN)
    return _leaves(seen, found, RENDER)


def _leaves(seen: Seen, found: document.Document, move: str, *, expected: bool = True) -> Stand:
    """Its server is stopped; one of REST once nobody asks it any more."""
    if found.master != seen.me and not seen.drained:
        return Stand(move, DRAIN)
    return Stand(move, STOP, Stop(), expected=expected)


def _stops(seen: Seen, found: document.Document) -> Stand:
    """For a migration. The last one serves until the others have stopped, so that no query fails before it must."""
    if found.is_last(seen.me):
        others = [each for each in found.rest if each.name != seen.me]
        return Stand(MIGRATE, STOP, Stop()) if _are_stopped(seen, others, found.version) else Stand(MIGRATE, TURN)
    return _leaves(seen, found, MIGRATE)


def _are_stopped(seen: Seen, members: Iterable[document.Process], version: int) -> bool:
    """By the word of each that it is so by this document; who is switched off has stopped once it has applied it."""

    def is_stopped(each: document.Process) -> bool:
        other = seen.others.get(each.name)
        return other is not None and other.stopped == version

    return all(is_stopped(each) or (each.disabled and _has_applied(seen, each.name, version)) for each in members)


def _has_applied(seen: Seen, name: str, version: int) -> bool:
    other = seen.others.get(name)
    return other is not None and other.in_goal and other.document == version


def _may_serve(seen: Seen, found: document.Document) -> bool:
    """The catalog is of this version, by the MASTER's word: neither half installed, nor ahead of it or behind."""
    master = seen.others.get(found.master)
    return master is not None and master.catalog == seen.version


# --- the MASTER ---------------------------------------------------------------------------------------------------


def _catalog(seen: Seen, found: document.Document, hook: Hook) -> Stand | None:
    """The catalog is installed once, and migrated to this version; None where both are so."""
    if seen.intent is not None:
        return _ended(seen, seen.intent, found, hook)
    if seen.backed_up not in ("", seen.version):
        return Stand(BACKUP, "Note", Forget())  # of an upgrade that was taken back; the catalog goes on from there
    if seen.migrated == seen.version and seen.catalog is not None and seen.catalog.installed:
        return None
    if seen.catalog is None:
        return Stand(INSTALL, "AskCatalog", Ask())
    if not seen.catalog.reachable:
        return Stand(INSTALL, "WaitMongo", Ask())
    if not seen.catalog.installed:
        return Stand(INSTALL, "Begin", Begin(INSTALL))
    if hook.running:
        return Stand(MIGRATE, STOP, Stop())  # no jobs meanwhile
    if seen.migrations is None:
        return Stand(MIGRATE, "AskMigrations", AskMigrations())
    if held := _held(seen, seen.migrations, found.upgrade.migration):
        return Stand(MIGRATE, HELD, AskMigrations(), error=held)
    offline = any(each.stops for each in seen.migrations)
    if offline and not (found.upgrade.stopped and _are_stopped(seen, found.rest, found.version)):
        return Stand(MIGRATE, STOPPED)
    if found.upgrade.backup and seen.migrations and seen.backed_up != seen.version:
        return Stand(BACKUP, "Begin", Begin(BACKUP, offline))
    return Stand(MIGRATE, "Begin", Begin(MIGRATE, offline))


def _held(seen: Seen, migrations: tuple[Migration, ...], mode: str) -> str:
    """Why a person must decide; empty where nobody must. Whoever runs them by hand is seen at the next look."""
    mine = [each.id for each in migrations if each.manual or mode == "Manual"]
    if mine:
        return (
            f"to be run by hand: {_some(mine)}; run opencga-admin.sh migration in {seen.me}, after which it goes on "
            f"by itself, or set spec.version back"
        )
    stop = [each.id for each in migrations if each.stops]
    if stop and mode != "Offline":
        return (
            f"the old version may not touch the catalog during {_some(stop)}: set spec.upgrade.migration to Offline, "
            f"by which REST servers are stopped meanwhile, or set spec.version back; nothing was migrated so far"
        )
    return ""


def _some(names: list[str], most: int = 3) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(each[:60] for each in names[:most]) + more


def _ended(seen: Seen, intent: Intent, found: document.Document, hook: Hook) -> Stand:
    """How a command that was begun has ended, as far as anybody knows."""
    if intent.move == MIGRATE and number(intent.version) > number(seen.version):
        said = f"a migration to {intent.version} was begun, and this is {seen.version}: go on with {intent.version}"
        return Stand(MIGRATE, "Failed", error=said)
    if hook.command is not None and hook.command.id == intent.id:
        if hook.command.exit == 0:
            over = Forget(migrated=intent.move == MIGRATE, backed_up=intent.move == BACKUP)
            return Stand(intent.move, "Note", over)
        if intent.document != found.version:
            return Stand(intent.move, "TryAgain", Forget())
        said = hook.command.output or f"it ended with {hook.command.exit}, and said nothing"
        if intent.move == BACKUP:
            said = f"the backup failed, so that nothing is migrated: {said[-MOST_OF_BACKUP:]}"
        return Stand(intent.move, "Failed", error=said)
    if hook.boot == intent.boot:  # the hook would know it: it was noted, and never begun
        return Stand(intent.move, "TryAgain", Forget())
    # the product keeps count of its migrations; a backup is nothing without its end
    if intent.move in (BACKUP, MIGRATE):
        return Stand(intent.move, "TryAgain", Forget())
    if seen.catalog is None or not seen.catalog.reachable:
        return Stand(INSTALL, "WaitMongo", Ask())
    if seen.catalog.installed or intent.document != found.version:
        return Stand(INSTALL, "Note", Forget())
    said = (
        "the installation of the catalog was begun, and its container ended before it did: see what is in the "
        "database, and drop what is half made; with the next configuration it is tried again"
    )
    return Stand(INSTALL, "Failed", error=said)


def number(version: str) -> tuple[int, ...]:
    """A version in an order; of one that is none, the least."""
    parts = version.split(".")
    return tuple(map(int, parts)) if all(part.isascii() and part.isdecimal() for part in parts) else ()
