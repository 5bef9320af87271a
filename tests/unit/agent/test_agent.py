"""An agent's loop with a hook and a database that are played: its life, and that it may be killed anywhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import pytest

from moorage.agent import document, files, health, hook, main, outside, plan, truststore
from moorage.operators.opencga import answers, dialect, names
from moorage.operators.opencga.wanted import build
from tests.unit.agent import test_truststore
from tests.unit.agent.played import Killed, World
from tests.unit.opencga.test_build import wanted


@pytest.fixture
def pool() -> Iterator[futures.ThreadPoolExecutor]:
    with futures.ThreadPoolExecutor(1) as made:
        yield made


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(tmp_path)
    monkeypatch.setattr(outside, "ping", lambda _: made.hook.running)
    monkeypatch.setattr(main, "TRIES_EVERY", 0.0)
    monkeypatch.setattr(main.notes.os, "fsync", lambda _: None)  # no node fails here, and disks are slow
    return made


def lives(world: World, pool: futures.Executor, steps: int = 40) -> main.Agent:
    """An agent, until it is in its goal for what is published, or has gone so many steps."""
    agent = main.Agent(world.settings, world.hook, pool)
    for _ in range(steps):
        agent.step()
        if world.state()["IsInGoalState"]:
            return agent
    return agent


def test_the_catalog_is_installed_and_migrated_once_and_then_the_master_runs(
    world: World, pool: futures.Executor
) -> None:
    """With the administrator's password on standard input; what it tells is the catalog's version."""
    world.publish()
    lives(world, pool)

    assert ["install", "migrate", "start catalog"] == world.hook.done
    assert {"Change-Me-2-day\n"} == world.hook.passwords
    assert world.state()["IsInGoalState"]
    assert (1, 0) == (world.progress()["lastGoalVersionAchieved"], world.progress()["errorCode"])
    assert {"installed": True, "version": "5.0.0"} == world.told()["catalog"]


def test_the_products_files_are_the_images_with_what_the_document_says(world: World, pool: futures.Executor) -> None:
    """Whoever reads them reads YAML."""
    world.publish(logLevel="debug")
    lives(world, pool)

    assert {"logLevel": "debug", "databasePrefix": "opencga", "catalog": {"database": {"options": {"a": 1}}}} == (
        json.loads((world.settings.conf / "configuration.yml").read_text())
    )
    assert set(files.NAMES.values()) == {path.name for path in world.settings.conf.iterdir()}


def test_another_content_restarts_the_server_once_and_another_version_alone_does_not(
    world: World, pool: futures.Executor
) -> None:
    """As when a member comes or goes."""
    world.publish(1)
    lives(world, pool)
    done = list(world.hook.done)
    world.publish(2)
    lives(world, pool)

    assert done == world.hook.done
    assert 2 == world.progress()["lastGoalVersionAchieved"]
    world.publish(3, logLevel="debug")
    lives(world, pool)
    assert [*done, "stop", "start catalog"] == world.hook.done
    assert 3 == world.progress()["lastGoalVersionAchieved"]


def test_another_authority_of_the_database_restarts_the_server_once(world: World, pool: futures.Executor) -> None:
    """As the JVM reads it when it starts; the same one in another document does not, and without one its file goes."""
    world.authority = test_truststore.ONE
    world.publish(1)
    lives(world, pool)
    done, path = list(world.hook.done), world.settings.conf / truststore.FILE
    first = path.read_bytes()
    world.publish(2)
    lives(world, pool)
    assert done == world.hook.done

    world.authority = test_truststore.TWO
    world.publish(3)
    lives(world, pool)
    assert [*done, "stop", "start catalog"] == world.hook.done
    assert path.read_bytes() not in (b"", first)

    world.authority = "PEM"
    world.publish(4)
    lives(world, pool)
    assert "the authority of the database has no certificate" == world.progress()["errorString"]
    assert world.hook.running

    world.authority = ""
    world.publish(5)
    lives(world, pool)
    assert not path.exists()
    assert world.state()["IsInGoalState"]


def test_a_pair_that_is_being_replaced_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kubelet puts both in place at once, and they are read one after the other."""
    for name in ("tls.crt", "tls.key"):
        (tmp_path / name).write_text("old")
    tls = document.Tls(certificate_file=str(tmp_path / "tls.crt"), key_file=str(tmp_path / "tls.key"))
    honest = Path.read_text

    def replaced(path: Path) -> str:
        text = honest(path)
        if path.name == "tls.key":
            (tmp_path / "tls.crt").write_text("new")
        return text

    assert ("old", "old") == main._pair(tls)
    assert ("", "") == main._pair(document.Tls())
    monkeypatch.setattr(Path, "read_text", replaced)
    with pytest.raises(OSError, match="is being replaced"):
        main._pair(tls)


@pytest.mark.parametrize("why", ["files", "migration", "off"])
def test_a_rest_server_is_stopped_once_nobody_asks_it_any_more(
    tmp_path: Path, pool: futures.Executor, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    """Its pod is not ready from the first moment on, and the server serves on for as long as that takes to be known."""
    world, now = World(tmp_path, me="demo-0"), [1.8e9]
    world.settings = main.dataclasses.replace(world.settings, drain=20.0)
    monkeypatch.setattr(outside, "ping", lambda _: world.hook.running)
    monkeypatch.setattr(main.time, "time", lambda: now[0])
    master = {"demo-client-0": plan.Other(True, 2, "5.0.0")}
    monkeypatch.setattr(outside, "others", lambda *_: master)
    world.publish(1)
    agent = lives(world, pool)
    assert ["start server"] == world.hook.done
    if why == "files":
        world.publish(2, logLevel="debug")
    elif why == "off":
        world.publish(2)
        off(world)
    else:
        amended(world, 2, {"migration": "Offline", "stopped": True}, "demo-1")
    for later in (0.0, 10.0, 9.9):
        now[0] += later
        agent.step()
        assert ("Drain", False) == standing(world)
        assert ["start server"] == world.hook.done
    now[0] += 0.1
    for _ in range(9):
        agent.step()

    again = ["start server"] if why == "files" else []
    assert ["start server", "stop", *again] == world.hook.done


def test_who_is_switched_off_is_ready_again_once_its_container_is_not(
    tmp_path: Path, pool: futures.Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else Services would lead to it for a moment; another document later makes no difference, another agent waits."""
    world, now = World(tmp_path, me="demo-0"), [1.8e9]
    world.settings = main.dataclasses.replace(world.settings, settle=9.0)
    monkeypatch.setattr(main.time, "time", lambda: now[0])
    world.publish(1)
    off(world)
    agent = main.Agent(world.settings, world.hook, pool)
    for later in (0.0, 5.0, 3.9):
        now[0] += later
        agent.step()
        assert (("Settle", False), False) == (standing(world), world.state()["IsInGoalState"])
    now[0] += 0.1
    agent.step()
    assert (True, False) == (world.state()["IsInGoalState"], world.state()["ExpectedToBeUp"])

    world.publish(2)
    off(world)
    agent.step()
    assert world.state()["IsInGoalState"]
    main.Agent(world.settings, world.hook, pool).step()
    assert ("Settle", False) == standing(world)


def off(world: World) -> None:
    """The document has demo-0 switched off."""
    text = world.settings.document.read_text().replace('"name": "demo-0"', '"name": "demo-0", "disabled": true')
    world.settings.document.write_text(text)


def standing(world: World) -> tuple[str, bool]:
    """The step at which the agent says that it is, and whether it holds nobody back."""
    (step,) = world.progress()["plans"][-1]["moves"][-1]["steps"]
    return step["step"], step["isWaitStep"]


def test_only_who_serves_on_while_it_waits_holds_nobody_back(
    world: World, pool: futures.Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that is about to come up does not."""
    world.publish(1)
    lives(world, pool)
    world.publish(2, of="5.0.1")
    agent = lives(world, pool, 3)
    assert ("WaitCanUpdate", True) == standing(world)
    world.hook.restarts()
    agent.step()
    assert ("WaitCanUpdate", False) == standing(world)
    world.publish(3)
    monkeypatch.setattr(outside, "ping", lambda _: False)
    for _ in range(5):
        agent.step()
    assert world.hook.running
    assert ("WaitPing", False) == standing(world)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("point", range(6))
def test_an_agent_is_killed_at_each_of_its_requests(
    world: World, pool: futures.Executor, when: str, point: int
) -> None:
    """The next one goes on: the catalog is installed once, and migrated once, as the hook goes on by itself."""
    world.publish(1)
    setattr(world.hook, when, point)
    try:
        lives(world, pool)
        world.publish(2, logLevel="debug")
        lives(world, pool)
    except Killed:
        lives(world, pool)
        world.publish(2, logLevel="debug")
        lives(world, pool)

    assert world.state()["IsInGoalState"]
    assert 1 == world.hook.done.count("install")
    assert 1 == world.hook.done.count("migrate")
    assert world.hook.running


def test_a_container_that_ends_while_it_installs_is_told_and_nothing_is_repeated(
    world: World, pool: futures.Executor
) -> None:
    """What is half made is for a person to see; another configuration lets it be tried again."""
    world.publish(1)
    world.hook.takes = 1000
    lives(world, pool, 5)
    world.hook.restarts()
    world.hook.takes = 1
    lives(world, pool)

    assert ["install"] == world.hook.done
    assert "was begun, and its container ended before it did" in world.progress()["errorString"]
    world.publish(2)
    lives(world, pool)
    assert ["install", "install", "migrate", "start catalog"] == world.hook.done
    assert 0 == world.progress()["errorCode"]


def test_a_container_that_ends_while_it_migrates_goes_on(world: World, pool: futures.Executor) -> None:
    """The product keeps count of its migrations."""
    world.publish(1)
    world.hook.installed = True
    world.hook.takes = 1000
    lives(world, pool, 5)
    world.hook.restarts()
    world.hook.takes = 1
    lives(world, pool)

    assert ["migrate", "migrate", "start catalog"] == world.hook.done
    assert world.state()["IsInGoalState"]


@pytest.mark.parametrize("word", ["install", "migrate"])
def test_a_command_that_fails_is_told_with_its_words(world: World, pool: futures.Executor, word: str) -> None:
    """And tried again with another configuration, as when the password was corrected."""
    world.publish(1)
    world.hook.exits = {word: 1}
    lives(world, pool)

    assert ("no", 1) == (world.progress()["errorString"], world.progress()["errorCode"])
    assert 1 == world.hook.done.count(word)
    assert not world.hook.running
    world.hook.exits = {}
    world.publish(2)
    lives(world, pool)
    assert world.state()["IsInGoalState"]


def test_a_database_that_is_away_is_waited_for(world: World, pool: futures.Executor) -> None:
    """Nothing is begun, and nothing is an error."""
    world.publish(1)
    world.hook.reachable = False
    lives(world, pool, 10)
    (one,) = world.progress()["plans"]

    assert [] == world.hook.done
    assert ("CatalogInstall", "WaitMongo") == (one["moves"][0]["move"], one["moves"][0]["steps"][0]["step"])
    assert "catalog" not in world.told()
    world.hook.reachable = True
    lives(world, pool)
    assert world.state()["IsInGoalState"]


def test_a_new_version_migrates_once_more(world: World, pool: futures.Executor) -> None:
    """In another pod of the same volume: what was migrated before is known."""
    world.publish(1)
    lives(world, pool)
    world.hook.restarts()
    later = World.__new__(World)
    later.__dict__.update(world.__dict__)
    later.settings = main.dataclasses.replace(world.settings, version="5.0.1")
    later.publish(2, of="5.0.1")
    lives(later, pool)

    assert ["install", "migrate", "start catalog", "migrate", "start catalog"] == world.hook.done
    assert "5.0.1" == later.told()["catalog"]["version"]


SAVES = {"migration": "Auto", "backup": ["/bin/save", "all"]}


def upgraded(world: World, pool: futures.Executor) -> World:
    """The MASTER's pod of the next version, before a migration that lets the old version work on."""
    world.publish(1)
    lives(world, pool)
    world.hook.restarts()
    world.hook.done.clear()
    later = later_master(world, 2, **SAVES)
    later.hook.migrations = [{"id": "to-5.0.1", "status": "PENDING", "offline": False}]
    return later


def test_a_backup_comes_before_a_migration_and_once(world: World, pool: futures.Executor) -> None:
    """Without the administrator's password; a migration that is tried again has none before its second try."""
    later = upgraded(world, pool)
    later.hook.exits = {"migrate": 1}
    lives(later, pool)
    assert ["save", "migrate"] == later.hook.done
    later.hook.exits = {}
    amended(later, 3, SAVES)
    lives(later, pool)

    assert ["save", "migrate", "migrate", "start catalog"] == later.hook.done
    assert "" == later.kept().backed_up
    assert "5.0.1" == later.told()["catalog"]["version"]


def test_a_backup_that_fails_holds_the_migration(world: World, pool: futures.Executor) -> None:
    """With its words, until the configuration is another; the old version may come back, and knows nothing of it."""
    later = upgraded(world, pool)
    later.hook.exits = {"save": 1}
    lives(later, pool)
    assert ["save"] == later.hook.done
    assert ("Failed", False) == standing(later)
    assert "the backup failed, so that nothing is migrated: no" == later.progress()["errorString"]
    assert "5.0.0" == later.told()["catalog"]["version"]

    world.hook.restarts()
    world.hook.migrations = []
    world.publish(3)
    lives(world, pool)
    assert ["save", "start catalog"] == world.hook.done
    assert world.state()["IsInGoalState"]


def test_a_backup_counts_for_its_upgrade_alone(world: World, pool: futures.Executor) -> None:
    """One that was taken back before it began to migrate is backed up again, when it comes once more."""
    later = upgraded(world, pool)
    agent = main.Agent(later.settings, later.hook, pool)
    for _ in range(12):
        if later.kept().backed_up == "":
            agent.step()
    assert ["save"] == later.hook.done
    world.hook.restarts()
    world.publish(3)
    lives(world, pool)
    assert "" == world.kept().backed_up
    world.hook.restarts()
    amended(later, 4, SAVES)
    lives(later, pool)

    assert ["save", "start catalog", "save", "migrate", "start catalog"] == later.hook.done


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("point", range(4))
def test_an_agent_is_killed_at_each_request_of_a_backup(
    world: World, pool: futures.Executor, when: str, point: int
) -> None:
    """One backup and one migration, in this order."""
    later = upgraded(world, pool)
    setattr(later.hook, when, point)
    try:
        lives(later, pool)
    except Killed:
        lives(later, pool)

    assert ["save", "migrate", "start catalog"] == later.hook.done
    assert later.state()["IsInGoalState"]


def later_master(world: World, version: int, **upgrade: Any) -> World:
    """The MASTER's pod of the next version, on the same volume, with a migration that forbids the old one."""
    made = World.__new__(World)
    made.__dict__.update(world.__dict__)
    made.settings = main.dataclasses.replace(world.settings, version="5.0.1")
    made.hook.migrations = [{"id": "to-5.0.1", "status": "PENDING", "offline": True}, {"id": "old", "status": "DONE"}]
    amended(made, version, upgrade)
    return made


def amended(world: World, version: int, upgrade: dict[str, Any], *further: str) -> None:
    """Another document, which says this of an upgrade, and has these REST members too."""
    world.publish(version, of="5.0.1")
    text = json.loads(world.settings.document.read_text())
    more = [{**text["processes"][-1], "name": name, "hostname": f"{name}.demo-svc"} for name in further]
    made = {**text, "upgrade": upgrade, "processes": [*text["processes"], *more]}
    world.settings.document.write_text(json.dumps(made))


def test_a_migration_that_forbids_the_old_version_begins_once_no_server_runs(
    world: World, pool: futures.Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is held until it is allowed; from then on the catalog is told to be of no version, until it is of the new."""
    world.publish(1)
    lives(world, pool)
    done = list(world.hook.done)
    world.hook.restarts()
    later = later_master(world, 2, migration="Auto")
    agent = lives(later, pool, 5)
    assert ("Held", False) == standing(later)
    assert "the old version may not touch the catalog during to-5.0.1" in later.progress()["errorString"]
    assert "5.0.0" == later.told()["catalog"]["version"]

    amended(later, 3, {"migration": "Offline"})
    agent.step()
    assert ("WaitStopped", False) == standing(later)
    assert "" == later.told()["catalog"]["version"]
    amended(later, 4, {"migration": "Offline", "stopped": True})
    told = {"demo-0": plan.Other(stopped=3)}
    monkeypatch.setattr(outside, "others", lambda *_: told)
    agent.step()
    assert ("WaitStopped", "") == (standing(later)[0], later.told()["catalog"]["version"])
    assert done == later.hook.done
    told = {"demo-0": plan.Other(stopped=4)}
    agent.step()
    assert [*done, "migrate --offline"] == later.hook.done
    assert "" == (later.told().get("catalog") or {"version": ""})["version"]
    lives(later, pool)
    assert [*done, "migrate --offline", "start catalog"] == later.hook.done
    assert "5.0.1" == later.told()["catalog"]["version"]


def test_an_offline_migration_that_fails_lets_no_old_server_start(
    world: World, pool: futures.Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knows of which version the catalog is; another configuration tries again."""
    world.publish(1)
    lives(world, pool)
    world.hook.restarts()
    monkeypatch.setattr(outside, "others", lambda *_: {"demo-0": plan.Other(stopped=2)})
    later = later_master(world, 2, migration="Offline", stopped=True)
    later.hook.exits = {"migrate --offline": 1}
    lives(later, pool)
    assert ("Failed", "no") == (standing(later)[0], later.progress()["errorString"])
    assert "version" not in (later.told().get("catalog") or {}) or "" == later.told()["catalog"]["version"]
    later.hook.exits = {}
    monkeypatch.setattr(outside, "others", lambda *_: {"demo-0": plan.Other(stopped=3)})
    amended(later, 3, {"migration": "Offline", "stopped": True})
    lives(later, pool)
    assert 2 == later.hook.done.count("migrate --offline")
    assert "5.0.1" == later.told()["catalog"]["version"]


def test_the_last_rest_server_serves_until_the_others_have_stopped(
    tmp_path: Path, pool: futures.Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It asks them, and nobody else; meanwhile it holds nobody back, and is ready."""
    world, asked = World(tmp_path, me="demo-1"), dict[str, plan.Other]()
    monkeypatch.setattr(outside, "ping", lambda _: world.hook.running)
    told = {"demo-client-0": plan.Other(True, 2, "5.0.0"), "demo-0": plan.Other(True, 1)}
    monkeypatch.setattr(outside, "others", lambda hosts, *_: asked.update(hosts) or {it: told[it] for it in hosts})
    amended(world, 1, {}, "demo-1")
    world.settings = main.dataclasses.replace(world.settings, version="5.0.1")
    told["demo-client-0"] = plan.Other(True, 2, "5.0.1")
    lives(world, pool)
    asked.clear()
    amended(world, 2, {"migration": "Offline", "stopped": True}, "demo-1")
    agent = lives(world, pool, 3)
    assert ("WaitTurn", True) == standing(world)
    assert ({"demo-0"}, ["start server"]) == (set(asked), world.hook.done)
    told["demo-0"] = plan.Other(stopped=2)
    agent.step()
    agent.step()

    assert ["start server", "stop"] == world.hook.done
    assert 2 == health.other(agent.told, "demo-1").stopped


def test_a_rest_server_that_is_stopped_for_a_migration_says_so_to_the_master(
    tmp_path: Path, pool: futures.Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the document that it was stopped by; it is not ready, and not in its goal."""
    world = World(tmp_path, me="demo-0")
    monkeypatch.setattr(outside, "ping", lambda _: world.hook.running)
    monkeypatch.setattr(outside, "others", lambda *_: {"demo-client-0": plan.Other(True, 2, "5.0.0")})
    world.publish(1)
    lives(world, pool)
    amended(world, 2, {"migration": "Offline", "stopped": True})
    agent = lives(world, pool, 3)

    assert ["start server", "stop"] == world.hook.done
    assert ("WaitMigrated", False) == standing(world)
    assert 2 == health.other(agent.told, "demo-0").stopped
    world.publish(3, of="5.0.1")
    agent.step()
    assert -1 == health.other(agent.told, "demo-0").stopped
    assert ["start server", "stop"] == world.hook.done


def test_a_list_of_migrations_for_people_is_no_reason_to_stand_still(world: World, pool: futures.Executor) -> None:
    """The summary is asked; with nothing to be applied the MASTER goes on."""
    asked, honest = [], world.hook.ask

    def ask(args: Any, within: float, stdin: str = "") -> tuple[int, str]:
        asked.append(args[-1])
        tables = {"search": "| id | status |", "summary": '{"demo": {"migrationsToBeApplied": 0}}'}
        return (0, tables[args[-1]]) if args[-1] in tables else honest(args, within, stdin)

    world.hook.ask = ask  # type: ignore[method-assign]
    world.publish()
    lives(world, pool)

    assert ["search", "summary"] == [word for word in asked if word != "status"]
    assert ["install", "migrate", "start catalog"] == world.hook.done


def test_the_old_version_goes_on_and_is_not_begun_anew(world: World, pool: futures.Executor) -> None:
    """Until its pod is replaced."""
    world.publish(1)
    lives(world, pool)
    done = list(world.hook.done)
    world.publish(2, of="5.0.1")
    lives(world, pool, 5)

    assert world.hook.running
    world.hook.restarts()
    lives(world, pool, 5)
    assert done == world.hook.done
    assert not world.state()["IsInGoalState"]
    assert world.state()["ExpectedToBeUp"], "so that it is not ready"


def test_the_operator_reads_what_the_agent_tells(world: World, pool: futures.Executor) -> None:
    """In its goal, at a step, and with an error."""

    def read() -> answers.Agent:
        return answers.agent(world.settings.health.read_bytes(), world.settings.me, dialect.Health())

    world.publish(1)
    world.hook.reachable = False
    lives(world, pool, 5)
    assert ("CatalogInstall", "WaitMongo", None) == (read().move, read().step, read().installed)
    assert read().since > 0
    world.hook.reachable, world.hook.exits = True, {"install": 1}
    lives(world, pool)
    assert ("CatalogInstall", "no", False) == (read().move, read().error, read().installed)
    world.hook.exits = {}
    world.publish(2)
    lives(world, pool)
    assert answers.Agent(in_goal=True, configuration=2, installed=True, catalog="5.0.0") == read()


def test_a_password_is_in_the_products_file_and_nowhere_else(world: World, pool: futures.Executor) -> None:
    """Not in what is told, nor in what is kept."""
    login = {name: str(world.folder / f"secrets/{name}") for name in ("user", "word")}
    (world.folder / "secrets/user").write_text("opencga")
    (world.folder / "secrets/word").write_text("Hidden-1")
    world.publish(1)
    made = json.loads(world.settings.document.read_text())
    made["auth"]["database"] = {"userFile": login["user"], "passwordFile": login["word"], "revision": "r"}
    world.settings.document.write_text(json.dumps(made))
    lives(world, pool)
    conf = json.loads((world.settings.conf / "configuration.yml").read_text())

    assert {"user": "opencga", "password": "Hidden-1", "options": {"a": 1}} == conf["catalog"]["database"]
    for path in (*world.settings.data.iterdir(), world.settings.health):
        assert "Hidden-1" not in path.read_text()
        assert "Change-Me" not in path.read_text()


def test_without_a_document_or_a_hook_it_says_what_it_waits_for(world: World, pool: futures.Executor) -> None:
    """And an unreadable one is an error."""
    agent = lives(world, pool, 1)
    assert "WaitConfiguration" == agent._stand.step
    world.settings.document.write_text("{")
    agent.step()
    assert "the configuration can't be read" in world.progress()["errorString"]
    world.publish()

    def silent() -> plan.Hook:
        raise hook.HookError("gone")

    world.hook.state = silent  # type: ignore[method-assign]
    agent.step()
    assert ("WaitHook", 0) == (agent._stand.step, world.progress()["errorCode"])


def test_a_disk_that_is_full_is_told_and_looked_at_anew(
    world: World, pool: futures.Executor, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The process does not end."""
    world.publish()
    agent = main.Agent(world.settings, world.hook, pool)

    def full(*_: Any, **__: Any) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(main.notes, "replace", full)
        assert not main._stepped(agent)
    assert "no space left on device" in capsys.readouterr().out
    lives(world, pool)
    assert world.state()["IsInGoalState"]


def test_flags_and_variables_are_those_that_the_operator_sets() -> None:
    """By the very container that it makes."""
    it = wanted()
    for role, body in (
        (names.REST, build.members(it, 3, "5.0.0").body),
        (names.MASTER, build.master(it, "5.0.0").body),
    ):
        containers = {each["name"]: each for each in body["spec"]["template"]["spec"]["containers"]}
        agent: dict[str, Any] = containers["opencga-agent"]
        env = {each["name"]: each.get("value", "demo-0") for each in agent["env"]}
        found = main.settings(agent["args"], env)

        assert ("demo-0", "5.0.0", 5000) == (found.me, found.version, found.port)
        assert "/var/lib/automation/config/cluster-config.json" == str(found.document)
        assert ("/opencga-conf", "/data", "/opt/scripts/control.sock") == (
            str(found.conf),
            str(found.data),
            str(found.socket),
        )
        assert found.ping.endswith("meta/ping" if role == names.REST else "monitor/admin/test")
