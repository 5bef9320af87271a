"""What an agent does next, by a table: each step, each act, each error."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.agent import document, plan
from moorage.agent.plan import (
    Ask,
    AskMigrations,
    Begin,
    Begun,
    Catalog,
    Command,
    Forget,
    Hook,
    Intent,
    Migration,
    Other,
    Render,
    Seen,
    Stand,
    Stop,
)

MASTER, REST = "demo-client-0", "demo-1"
RUNS, STANDS = Hook(running=True, boot="b"), Hook(running=False, boot="b")
DONE = Catalog(reachable=True, installed=True)
READY = {MASTER: Other(True, 7, "5.0.0"), "demo-0": Other(True, 7)}


def found(version: str = "5.0.0", **changes: Any) -> document.Document:
    processes = [
        document.Process(name, f"{name}.demo-svc", kind, version)
        for name, kind in ((MASTER, "master"), ("demo-0", "rest"), ("demo-1", "rest"), ("demo-2", "rest"))
    ]
    made = document.Document(
        7, document.Auth(document.Admin("a@b", "/p")), {}, tuple(processes), (document.Deployment(MASTER),)
    )
    return msgspec.structs.replace(made, **changes)


def rest(**changes: Any) -> Seen:
    """A REST member in its goal."""
    base = {
        "me": REST, "version": "5.0.0", "document": found(), "hook": RUNS, "wanted": "w", "present": "w", "ping": True,
        "others": READY,
    }  # fmt: skip
    return Seen(**base | changes)


def master(**changes: Any) -> Seen:
    """The MASTER in its goal."""
    return rest(**{"me": MASTER, "catalog": DONE, "migrated": "5.0.0", "others": {}} | changes)


def disabled(name: str, made: document.Document | None = None) -> document.Document:
    made = made or found()
    processes = tuple(msgspec.structs.replace(it, disabled=it.name == name) for it in made.processes)
    return msgspec.structs.replace(made, processes=processes)


def upgrade(migration: str = "Auto", *, stopped: bool = False, without: str = "") -> document.Document:
    return disabled(without, found(upgrade=document.Upgrade(migration, stopped)))


def migrates(*migrations: Migration, **changes: Any) -> Seen:
    """The MASTER before its migration."""
    return master(**{"migrated": "4.0.0", "hook": STANDS, "migrations": migrations} | changes)


def stopped(*names: str, version: int = 7) -> dict[str, Other]:
    return {name: Other(stopped=version) for name in names}


ONLINE, OFFLINE, BY_HAND = Migration("a", stops=False), Migration("b"), Migration("c", stops=False, manual=True)
MEMBERS = ("demo-0", "demo-1", "demo-2")
OFF = {"demo-2": Other(True, 7)}


def begun(move: str, **changes: Any) -> Intent:
    return msgspec.structs.replace(Intent(move, "i", 7, "5.0.0", "b"), **changes)


def ended(exit_: int = 0, output: str = "") -> Hook:
    return Hook(running=False, command=Command("i", running=False, exit=exit_, output=output), boot="b")


INSTALL, BACKUP, MIGRATE = plan.INSTALL, plan.BACKUP, plan.MIGRATE
SAVES = document.Upgrade(backup=("/bin/save", "all"))
ROWS: dict[str, tuple[Seen, Stand]] = {
    "all is well": (rest(), Stand()),
    "no document yet": (rest(document=None), Stand("ReadConfiguration", "WaitConfiguration")),
    "a document that can't be read": (
        rest(document=None, fault="it is no JSON"),
        Stand("ReadConfiguration", "WaitConfiguration", error="it is no JSON"),
    ),
    "no hook": (rest(hook=None), Stand("Start", "WaitHook")),
    "no place in the document, and it is still asked": (rest(me="demo-9"), Stand("Start", "Drain")),
    "no place in the document": (rest(me="demo-9", drained=True), Stand("Start", "Stop", Stop(), expected=False)),
    "no place, and it stands": (rest(me="demo-9", hook=STANDS, settled=True), Stand(expected=False)),
    "switched off, and its container may still be ready": (
        rest(document=disabled(REST), hook=STANDS),
        Stand("Start", "Settle", expected=False),
    ),
    "a MASTER that is switched off stands: no Service knows it": (
        master(document=disabled(MASTER), hook=STANDS),
        Stand(expected=False),
    ),
    "switched off, and it is still asked": (rest(document=disabled(REST)), Stand("Start", "Drain")),
    "switched off": (
        rest(document=disabled(REST), drained=True),
        Stand("Start", "Stop", Stop(), expected=False),
    ),
    "a MASTER that is switched off": (
        master(document=disabled(MASTER)),
        Stand("Start", "Stop", Stop(), expected=False),
    ),
    "another version, and it runs": (rest(document=found("5.0.1")), Stand("ChangeVersion", "WaitCanUpdate")),
    "another version, and it stands: it is not begun": (
        rest(document=found("5.0.1"), hook=STANDS),
        Stand("ChangeVersion", "WaitCanUpdate"),
    ),
    "Secrets are not there": (rest(wanted=""), Stand("RenderConfig", "WaitSecrets")),
    "the image's files can't be read": (
        rest(wanted="", unknown="it is no YAML"),
        Stand("RenderConfig", "WaitSecrets", error="it is no YAML"),
    ),
    "files to be written, and nobody reads them": (
        rest(present="", hook=STANDS),
        Stand("RenderConfig", "Render", Render()),
    ),
    "files to be written, it is its turn, and it is still asked": (rest(present="old"), Stand("RenderConfig", "Drain")),
    "files to be written, and nobody asks it any more": (
        rest(present="old", drained=True),
        Stand("RenderConfig", "Stop", Stop()),
    ),
    "files to be written, and another goes first": (
        rest(present="old", others={**READY, "demo-0": Other(in_goal=False, document=7)}),
        Stand("RenderConfig", "WaitTurn"),
    ),
    "files to be written, and another has old ones": (
        rest(present="old", others={**READY, "demo-0": Other(in_goal=True, document=6)}),
        Stand("RenderConfig", "WaitTurn"),
    ),
    "files to be written, and another says nothing": (
        rest(present="old", others={MASTER: READY[MASTER]}),
        Stand("RenderConfig", "WaitTurn"),
    ),
    "files to be written, and who goes first is switched off": (
        rest(present="old", drained=True, document=disabled("demo-0"), others={MASTER: READY[MASTER]}),
        Stand("RenderConfig", "Stop", Stop()),
    ),
    "files to be written, and its turn is over before it was drained": (
        rest(present="old", drained=True, others={MASTER: READY[MASTER]}),
        Stand("RenderConfig", "WaitTurn"),
    ),
    "the MASTER goes first": (master(present="old"), Stand("RenderConfig", "Stop", Stop())),
    "no catalog": (rest(hook=STANDS, others={MASTER: Other()}), Stand("Start", "WaitCatalog")),
    "nobody tells of a catalog": (rest(hook=STANDS, others={}), Stand("Start", "WaitCatalog")),
    "a catalog of another version": (
        rest(hook=STANDS, others={MASTER: Other(True, 7, "5.0.1")}),
        Stand("Start", "WaitCatalog"),
    ),
    "it is started": (rest(hook=STANDS), Stand("Start", "Begin", Begun())),
    "one that runs needs nobody's word": (rest(others={}), Stand()),
    "it does not answer yet": (rest(ping=False), Stand("Start", "WaitPing")),
    # the MASTER
    "the MASTER is well": (master(), Stand()),
    "the catalog was not asked": (master(catalog=None, hook=STANDS), Stand(INSTALL, "AskCatalog", Ask())),
    "the database is away": (master(catalog=Catalog(reachable=False), hook=STANDS), Stand(INSTALL, "WaitMongo", Ask())),
    "nothing is installed": (
        master(catalog=Catalog(reachable=True), hook=STANDS),
        Stand(INSTALL, "Begin", Begin(INSTALL)),
    ),
    "to be migrated, and jobs run": (master(migrated=""), Stand(MIGRATE, "Stop", Stop())),
    "which migrations there are was not asked": (
        migrates(migrations=None),
        Stand(MIGRATE, "AskMigrations", AskMigrations()),
    ),
    "to be migrated, and nothing is to be applied": (migrates(), Stand(MIGRATE, "Begin", Begin(MIGRATE))),
    "to be migrated, and the old version works on": (migrates(ONLINE), Stand(MIGRATE, "Begin", Begin(MIGRATE))),
    "REST servers are to be stopped, and may be": (
        migrates(ONLINE, OFFLINE, document=upgrade("Offline")),
        Stand(MIGRATE, "WaitStopped"),
    ),
    "one of them still runs": (
        migrates(OFFLINE, document=upgrade("Offline", stopped=True), others=stopped("demo-0", "demo-2")),
        Stand(MIGRATE, "WaitStopped"),
    ),
    "one of them was stopped by another document": (
        migrates(
            OFFLINE,
            document=upgrade("Offline", stopped=True),
            others=stopped("demo-0", "demo-2") | stopped("demo-1", version=6),
        ),
        Stand(MIGRATE, "WaitStopped"),
    ),
    "they are told, by a document that does not say it any more": (
        migrates(OFFLINE, document=upgrade("Offline"), others=stopped(*MEMBERS)),
        Stand(MIGRATE, "WaitStopped"),
    ),
    "all are stopped": (
        migrates(OFFLINE, document=upgrade("Offline", stopped=True), others=stopped(*MEMBERS)),
        Stand(MIGRATE, "Begin", Begin(MIGRATE, offline=True)),
    ),
    "all are stopped, of which one was switched off before": (
        migrates(
            OFFLINE,
            document=upgrade("Offline", stopped=True, without="demo-2"),
            others=stopped("demo-0", "demo-1") | OFF,
        ),
        Stand(MIGRATE, "Begin", Begin(MIGRATE, offline=True)),
    ),
    # a backup before it
    "a backup first": (migrates(ONLINE, document=found(upgrade=SAVES)), Stand(BACKUP, "Begin", Begin(BACKUP))),
    "a backup once all are stopped": (
        migrates(
            OFFLINE,
            document=found(upgrade=msgspec.structs.replace(SAVES, migration="Offline", stopped=True)),
            others=stopped(*MEMBERS),
        ),
        Stand(BACKUP, "Begin", Begin(BACKUP, offline=True)),
    ),
    "no backup while servers are to be stopped": (
        migrates(OFFLINE, document=found(upgrade=msgspec.structs.replace(SAVES, migration="Offline"))),
        Stand(MIGRATE, "WaitStopped"),
    ),
    "no backup where nothing is to be migrated": (
        migrates(document=found(upgrade=SAVES)),
        Stand(MIGRATE, "Begin", Begin(MIGRATE)),
    ),
    "a backup was made": (
        migrates(ONLINE, document=found(upgrade=SAVES), backed_up="5.0.0"),
        Stand(MIGRATE, "Begin", Begin(MIGRATE)),
    ),
    "a backup was made for another version": (
        migrates(ONLINE, document=found(upgrade=SAVES), backed_up="5.0.1"),
        Stand(BACKUP, "Note", Forget()),
    ),
    "a backup was made for an upgrade that was taken back": (
        master(backed_up="5.0.1"),
        Stand(BACKUP, "Note", Forget()),
    ),
    "a backup has ended": (
        migrates(ONLINE, hook=ended(), intent=begun(BACKUP)),
        Stand(BACKUP, "Note", Forget(backed_up=True)),
    ),
    "a backup failed": (
        migrates(ONLINE, hook=ended(2, "the beginning" + "." * 190 + "disk full"), intent=begun(BACKUP)),
        Stand(BACKUP, "Failed", error="the backup failed, so that nothing is migrated: g" + "." * 190 + "disk full"),
    ),
    "a backup failed, and there is another configuration": (
        migrates(ONLINE, hook=ended(2, "x"), intent=begun(BACKUP, document=6)),
        Stand(BACKUP, "TryAgain", Forget()),
    ),
    "a backup whose container has ended": (
        migrates(ONLINE, intent=begun(BACKUP, boot="a")),
        Stand(BACKUP, "TryAgain", Forget()),
    ),
    "a backup runs": (
        migrates(ONLINE, hook=Hook(running=False, command=Command("i", running=True)), intent=begun(BACKUP)),
        Stand(BACKUP, "WaitCommand"),
    ),
    "a REST server is to stop for a migration, and is still asked": (
        rest(document=upgrade("Offline", stopped=True)),
        Stand(MIGRATE, "Drain"),
    ),
    "a REST server is to stop for a migration, and nobody asks it any more": (
        rest(document=upgrade("Offline", stopped=True), drained=True),
        Stand(MIGRATE, "Stop", Stop()),
    ),
    "the last REST server is to stop for a migration, and others serve": (
        rest(me="demo-2", document=upgrade("Offline", stopped=True), others=stopped("demo-0"), drained=True),
        Stand(MIGRATE, "WaitTurn"),
    ),
    "the last REST server is to stop for a migration, and others have": (
        rest(me="demo-2", document=upgrade("Offline", stopped=True), others=stopped("demo-0", REST)),
        Stand(MIGRATE, "Stop", Stop()),
    ),
    "the last REST server but for one that is switched off is to stop for a migration, and others have": (
        rest(document=upgrade("Offline", stopped=True, without="demo-2"), others=stopped("demo-0") | OFF),
        Stand(MIGRATE, "Stop", Stop()),
    ),
    "it is not known whether the server that is switched off stands": (
        rest(document=upgrade("Offline", stopped=True, without="demo-2"), others=stopped("demo-0")),
        Stand(MIGRATE, "WaitTurn"),
    ),
    "a REST server has stopped for a migration": (
        rest(document=upgrade("Offline", stopped=True), hook=STANDS),
        Stand(MIGRATE, "WaitMigrated"),
    ),
    "the MASTER goes on": (master(document=upgrade("Offline", stopped=True)), Stand()),
    "migrated, and to be started": (master(hook=STANDS), Stand("Start", "Begin", Begun())),
    # what was begun
    "a command runs": (
        master(hook=Hook(running=False, command=Command("i", running=True)), intent=begun(MIGRATE)),
        Stand(MIGRATE, "WaitCommand"),
    ),
    "a command runs of which nobody knows": (
        master(hook=Hook(running=False, command=Command("x", running=True))),
        Stand(INSTALL, "WaitCommand"),
    ),
    "installed": (master(hook=ended(), intent=begun(INSTALL)), Stand(INSTALL, "Note", Forget())),
    "migrated": (master(hook=ended(), intent=begun(MIGRATE)), Stand(MIGRATE, "Note", Forget(migrated=True))),
    "it failed": (
        master(hook=ended(3, "another password"), intent=begun(INSTALL)),
        Stand(INSTALL, "Failed", error="another password"),
    ),
    "it failed without a word": (
        master(hook=ended(3), intent=begun(MIGRATE)),
        Stand(MIGRATE, "Failed", error="it ended with 3, and said nothing"),
    ),
    "it failed, and there is another configuration": (
        master(hook=ended(3, "x"), intent=begun(MIGRATE, document=6)),
        Stand(MIGRATE, "TryAgain", Forget()),
    ),
    "noted, and never begun": (master(hook=STANDS, intent=begun(INSTALL)), Stand(INSTALL, "TryAgain", Forget())),
    "a migration whose container has ended": (
        master(hook=STANDS, intent=begun(MIGRATE, boot="a")),
        Stand(MIGRATE, "TryAgain", Forget()),
    ),
    "an installation whose container has ended, and nobody was asked": (
        master(hook=STANDS, intent=begun(INSTALL, boot="a"), catalog=None),
        Stand(INSTALL, "WaitMongo", Ask()),
    ),
    "an installation whose container has ended, and the database is away": (
        master(hook=STANDS, intent=begun(INSTALL, boot="a"), catalog=Catalog(reachable=False)),
        Stand(INSTALL, "WaitMongo", Ask()),
    ),
    "an installation whose container has ended, and it is through": (
        master(hook=STANDS, intent=begun(INSTALL, boot="a")),
        Stand(INSTALL, "Note", Forget()),
    ),
    "an installation that may be half done, and another configuration": (
        master(hook=STANDS, intent=begun(INSTALL, boot="a", document=6), catalog=Catalog(reachable=True)),
        Stand(INSTALL, "Note", Forget()),
    ),
}


WAITS = {
    *("WaitConfiguration", "WaitHook", "WaitCanUpdate", "WaitSecrets", "WaitTurn", "WaitCatalog", "WaitPing"),
    *("WaitCommand", "WaitMongo", "WaitStopped", "WaitMigrated"),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_situation_and_what_comes_next(name: str) -> None:
    """One row of the table."""
    seen, stand = ROWS[name]

    assert stand == plan.decide(seen)
    assert stand.in_goal == (stand.step == "")
    assert stand.waits == (stand.step in WAITS and stand.act is None)


@pytest.mark.parametrize(
    ("mode", "migrations", "words"),
    [
        (
            "Auto",
            (ONLINE, OFFLINE),
            "the old version may not touch the catalog during b: set spec.upgrade.migration to",
        ),
        ("Auto", (BY_HAND,), "to be run by hand: c; run opencga-admin.sh migration in demo-client-0"),
        ("Offline", (OFFLINE, BY_HAND), "to be run by hand: c"),
        ("Manual", (ONLINE, OFFLINE), "to be run by hand: a, b"),
        ("Manual", tuple(Migration(f"m{n}") for n in range(3)), "to be run by hand: m0, m1, m2; run"),
        ("Manual", tuple(Migration(f"m{n}") for n in range(5)), "to be run by hand: m0, m1, m2 and 2 more"),
        ("Auto", (Migration("x" * 99),), "during " + "x" * 60 + ":"),
    ],
)
def test_a_migration_that_a_person_must_decide_on(mode: str, migrations: tuple[Migration, ...], words: str) -> None:
    """Nothing is begun and nobody is stopped; it is asked again, as somebody may run it, and both ways out are told."""
    stand = plan.decide(migrates(*migrations, document=upgrade(mode)))

    assert (MIGRATE, "Held", AskMigrations()) == (stand.move, stand.step, stand.act)
    assert words in stand.error
    assert "set spec.version back" in stand.error


def test_an_installation_that_may_be_half_done_is_a_persons_business() -> None:
    """It is neither repeated nor forced: the product would drop what is there."""
    intent = begun(INSTALL, boot="a")
    stand = plan.decide(master(hook=STANDS, intent=intent, catalog=Catalog(reachable=True)))

    assert ("CatalogInstall", "Failed", None) == (stand.move, stand.step, stand.act)
    assert "was begun, and its container ended before it did" in stand.error


@pytest.mark.parametrize(("begun_by", "me", "failed"), [("5.0.10", "5.0.9", True), ("5.0.9", "5.0.10", False)])
def test_nobody_goes_back_behind_a_migration_that_was_begun(begun_by: str, me: str, failed: bool) -> None:
    """Whatever became of it: the catalog may be half of the later version."""
    intent = begun(MIGRATE, version=begun_by, boot="a")
    stand = plan.decide(master(version=me, document=found(me), hook=STANDS, intent=intent))

    assert failed == bool(stand.error)
    if failed:
        assert "a migration to 5.0.10 was begun, and this is 5.0.9" in stand.error


def test_two_are_never_restarted_at_once() -> None:
    """Of all members that wait for their turn, whoever is where, one at most may go, or be asked no more."""
    known: dict[str, Any] = {"present": "old", "catalog": DONE, "migrated": "5.0.0"}
    names = [it.name for it in found().processes]
    for applied in range(len(names)):
        others = {name: Other(in_goal=place < applied, document=7) for place, name in enumerate(names)}
        for drained in (True, False):
            stands = {
                name: plan.decide(rest(me=name, others=others, drained=drained, **known)) for name in names[applied:]
            }
            assert [names[applied]] == [name for name, stand in stands.items() if stand.step != "WaitTurn"]
