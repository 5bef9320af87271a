"""The agent's loop: looks, decides, does one thing, tells. Flags and variables are those that the operator sets.

What can go wrong is told in the health file and on stdout; the process itself ends on SIGTERM alone.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import signal
import socket
import sys
import threading
import time
import uuid
from concurrent import futures
from pathlib import Path

import msgspec

from moorage.api import proof

from . import answers, document, files, health, hook, metrics, notes, outside, plan, serving

TICK = 1.0
"""Seconds between two looks, where nothing was done."""

ASKS_WITHIN = 120.0
"""Seconds that the product may take to say how the catalog is: it starts a JVM for that."""

TRIES_EVERY = 15.0
"""Seconds between two questions about a catalog that was not reachable."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """Where everything is."""

    me: str
    version: str  # of the server's image
    health: Path
    port: int
    document: Path
    conf: Path
    data: Path
    socket: Path
    tool: str  # opencga-admin.sh, as it is called in the server's container
    ping: str  # where the server says that it is well
    token: Path = Path()  # what proves who asks, and who tells
    drain: float = 0.0  # seconds after which a pod that is not ready gets no more queries
    settle: float = 0.0  # seconds after which a container without a server is not ready
    role: str = ""
    metrics: int = 0  # the port at which they are told; 0: nowhere


class Agent:
    """One of them; `step` is one turn of the loop."""

    def __init__(self, settings: Settings, asked: hook.Client, pool: futures.Executor) -> None:
        self._settings, self._hook, self._pool = settings, asked, pool
        self._own: dict[str, str] | None = None  # the image's files
        self._made: tuple[object, dict[str, bytes], str] | None = None
        self._catalog: plan.Catalog | None = None
        self._asked_at = 0.0
        self._migrations: tuple[plan.Migration, ...] | None = None
        self._searched_at = -TRIES_EVERY
        self._up_at = self._took = 0.0
        self._starts = 0
        self._stand, self._since = plan.Stand("ReadConfiguration", "WaitConfiguration"), time.time()
        self._wanted = -1
        self.told, self.metrics = b"{}", b""

    def step(self) -> bool:
        """Look, decide, act, tell. Whether something was done, so that there is more to see at once."""
        kept = notes.read(self._settings.data)
        seen, secrets, made = self._look(kept)
        stand = plan.decide(seen)
        if (stand.move, stand.step) != (self._stand.move, self._stand.step):
            self._since = time.time()
            _log("step", move=stand.move, step=stand.step, error=stand.error)
        self._stand = stand
        did = False
        try:
            did = self._act(stand.act, seen, kept, secrets, made)
        except (hook.HookError, OSError) as error:
            _log("not done", move=stand.move, step=stand.step, error=str(error))
        self._tell(seen)
        return did

    # --- what there is --------------------------------------------------------------------------------------------

    def _look(self, kept: notes.Notes) -> tuple[plan.Seen, files.Secrets | None, dict[str, bytes]]:
        found, fault = self._document()
        try:
            told: plan.Hook | None = self._hook.state()
            if self._own is None:
                self._own = self._hook.files()
        except hook.HookError:
            told = None
        secrets: files.Secrets | None = None
        made: dict[str, bytes] = {}
        unknown = ""
        if found is not None:
            secrets = self._secrets(found)
            if secrets is not None and self._own is not None:
                made, unknown = self._rendered(found, self._own, secrets)
        began = time.perf_counter()
        up = told is not None and told.running and outside.ping(self._settings.ping)
        if up:
            self._up_at, self._took = time.time(), time.perf_counter() - began
        seen = plan.Seen(
            me=self._settings.me,
            version=self._settings.version,
            document=found,
            fault=fault,
            hook=told,
            wanted=files.digest(made),
            unknown=unknown,
            present=files.digest(self._present()),
            ping=up,
            catalog=self._catalog,
            migrations=self._migrations,
            intent=kept.intent,
            migrated=kept.migrated,
            backed_up=kept.backed_up,
            others=self._others(found, told, made, kept) if found is not None else {},
            drained=self._drained(),
            settled=self._settled(),
        )
        return seen, secrets, made

    def _drained(self) -> bool:
        """From the moment at which it began to tell that it is not ready."""
        if self._stand.step == plan.DRAIN:
            return time.time() >= self._since + self._settings.drain
        return self._stand.step == plan.STOP  # it ends in its time

    def _settled(self) -> bool:
        """From the moment at which its server was seen to be stopped; an agent that has just begun knows of none."""
        if self._stand.step == plan.SETTLE:
            return time.time() >= self._since + self._settings.settle
        return self._stand.in_goal and not self._stand.expected

    def _document(self) -> tuple[document.Document | None, str]:
        try:
            found = document.read(self._settings.document.read_bytes())
        except FileNotFoundError:
            return None, ""  # the kubelet brings it
        except (OSError, ValueError) as error:
            return None, str(error)
        self._wanted = found.version
        return found, ""

    def _rendered(
        self, found: document.Document, own: dict[str, str], secrets: files.Secrets
    ) -> tuple[dict[str, bytes], str]:
        """The files, or why there are none; made once for each content, as it takes a while."""
        key = (found, own, msgspec.structs.astuple(secrets))
        if self._made is None or self._made[0] != key:
            try:
                self._made = key, files.rendered(found, own, secrets), ""
            except ValueError as error:
                self._made = key, {}, str(error)
        return self._made[1], self._made[2]

    def _secrets(self, found: document.Document) -> files.Secrets | None:
        login, tls = found.auth.database, found.tls or document.Tls()
        try:
            admin = Path(found.auth.admin.password_file).read_text()
            authority = Path(tls.ca_file_path).read_text() if tls.ca_file_path else ""
            certificate, key = _pair(tls)
            if login is None:
                return files.Secrets(admin, authority=authority, certificate=certificate, key=key)
            user, password = Path(login.user_file).read_text(), Path(login.password_file).read_text()
            return files.Secrets(admin, user, password, authority, certificate, key)
        except (OSError, UnicodeDecodeError):
            return None

    def _present(self) -> dict[str, bytes]:
        found = {}
        for name in files.ALL:
            try:
                found[name] = (self._settings.conf / name).read_bytes()
            except OSError:
                continue
        return found

    def _others(
        self, found: document.Document, told: plan.Hook | None, made: dict[str, bytes], kept: notes.Notes
    ) -> dict[str, plan.Other]:
        """Asked only where it counts: before a server is started or stopped, and before all are for a migration."""
        me = self._settings.me
        place = found.process(me)
        if place is None or told is None:
            return {}
        if place.process_type == document.MASTER:
            if not found.upgrade.stopped or kept.intent is not None or kept.migrated == self._settings.version:
                return {}
            wanted = {each.name for each in found.rest}
        elif told.running and found.upgrade.stopped:
            wanted = {each.name for each in found.rest} - {me} if found.is_last(me) else set()
        elif told.running and files.digest(self._present()) == files.digest(made):
            return {}
        else:
            wanted = {found.master, *found.before(me)} if told.running else {found.master}
        hosts = {each.name: each.hostname for each in found.processes if each.name in wanted}
        token = self.token()
        return outside.others(hosts, self._settings.port, token, self._pool) if token else {}

    def token(self) -> str:
        """As it is now: the kubelet brings another one. Empty where there is none by which anybody is believed."""
        try:
            found = self._settings.token.read_text()
        except (OSError, UnicodeDecodeError):
            return ""
        return found if proof.sound(found) else ""

    @property
    def me(self) -> str:
        """Its pod."""
        return self._settings.me

    # --- what is done ---------------------------------------------------------------------------------------------

    def _act(
        self,
        act: plan.Act | None,
        seen: plan.Seen,
        kept: notes.Notes,
        secrets: files.Secrets | None,
        made: dict[str, bytes],
    ) -> bool:
        """One act. Raises HookError and OSError, after which all is looked at anew."""
        data = self._settings.data
        match act:
            case plan.Stop():
                self._hook.stop()
                return False  # it ends in its time
            case plan.Render():
                for name in set(files.ALL) - set(made):
                    (self._settings.conf / name).unlink(missing_ok=True)
                for name, text in made.items():
                    notes.replace(self._settings.conf / name, text)
            case plan.Begun() if secrets is not None:
                self._hook.start(self._server(seen), f"{secrets.admin}\n")
                self._starts += 1
                return False
            case plan.Begin(move=move, offline=offline) if (
                secrets is not None and seen.document is not None and seen.hook is not None
            ):
                names = (seen.document.version, seen.version, seen.hook.boot)
                intent = plan.Intent(move, uuid.uuid4().hex, *names, offline)
                notes.write(data, msgspec.structs.replace(kept, intent=intent))
                stdin = "" if move == plan.BACKUP else f"{secrets.admin}\n"
                self._hook.run(intent.id, self._command(move, seen.document, offline=offline), stdin)
            case plan.Forget(migrated=migrated, backed_up=backed_up):
                reached = seen.version if migrated else kept.migrated
                counts = backed_up or (kept.backed_up == seen.version and not migrated)
                changed = {"migrated": reached, "backed_up": seen.version if counts else ""}
                notes.write(data, msgspec.structs.replace(kept, intent=None, **changed))
                self._catalog = self._migrations = None
                self._searched_at = -TRIES_EVERY
            case plan.Ask():
                return self._ask_catalog()
            case plan.AskMigrations() if secrets is not None:
                return self._ask_migrations(secrets)
            case _:
                return self._applied(seen, kept)
        return True

    def _applied(self, seen: plan.Seen, kept: notes.Notes) -> bool:
        if not self._stand.in_goal or seen.document is None or kept.document == seen.document.version:
            return False
        notes.write(
            self._settings.data, msgspec.structs.replace(kept, document=seen.document.version, files=seen.present)
        )
        return False

    def _ask_catalog(self) -> bool:
        if time.monotonic() < self._asked_at + TRIES_EVERY and self._catalog is not None:
            return False
        self._asked_at = time.monotonic()
        _, output = self._hook.ask([self._settings.tool, "catalog", "status"], ASKS_WITHIN)
        self._catalog = answers.catalog(output)
        return True

    def _ask_migrations(self, secrets: files.Secrets) -> bool:
        if time.monotonic() < self._searched_at + TRIES_EVERY:
            return False
        self._searched_at = time.monotonic()
        tool = [self._settings.tool, "migration", "search"]
        code, output = self._hook.ask(tool, ASKS_WITHIN, f"{secrets.admin}\n")
        self._migrations = answers.migrations(code, output)
        if self._migrations is None and code == 0:
            _, output = self._hook.ask([*tool[:-1], "summary"], ASKS_WITHIN, f"{secrets.admin}\n")
            self._migrations = answers.by_number(output)
        if self._migrations is None:
            _log("migrations are not known", exit=str(code))
        return self._migrations is not None

    def _server(self, seen: plan.Seen) -> list[str]:
        place = seen.document.process(seen.me) if seen.document else None
        if place is not None and place.process_type == document.MASTER:
            return [self._settings.tool, "catalog", "daemon", "--start"]
        return [self._settings.tool, "server", "rest", "--start"]

    def _command(self, move: str, found: document.Document, *, offline: bool) -> list[str]:
        if move == plan.INSTALL:
            return [self._settings.tool, "catalog", "install", "--email", found.auth.admin.email]
        if move == plan.BACKUP:
            return list(found.upgrade.backup)
        return [self._settings.tool, "migration", "run", *(["--offline"] if offline else [])]

    # --- what is told ---------------------------------------------------------------------------------------------

    def _tell(self, seen: plan.Seen) -> None:
        kept = notes.read(self._settings.data)
        known = self._catalog
        # while the old version may not touch it, it is of no version by which a server is started
        stopped = seen.document is not None and seen.document.upgrade.stopped and kept.migrated != seen.version
        offline = kept.intent is not None and kept.intent.offline
        forbidden = stopped or offline or self._stand.step == plan.STOPPED
        told = (known.installed, "" if forbidden else kept.migrated) if known is not None and known.reachable else None
        place = health.Place(self._stand, self._since, kept.document, self._wanted)
        self.told = health.text(self._settings.me, place, up=seen.ping, up_at=self._up_at, catalog=told)
        notes.replace(self._settings.health, self.told)
        if self._settings.metrics:
            server = metrics.Server(seen.ping, self._up_at, self._took, self._starts)
            me = metrics.Me(self._settings.role, self._settings.version)
            self.metrics = metrics.text(me, place, server, metrics.Process.now(), catalog=told)


def _pair(tls: document.Tls) -> tuple[str, str]:
    """(certificate, key). Raises OSError where both are being replaced just now, so that they would not fit."""
    if not tls.certificate_file:
        return "", ""
    certificate, key = Path(tls.certificate_file).read_text(), Path(tls.key_file).read_text()
    if Path(tls.certificate_file).read_text() != certificate:
        raise OSError("the certificate is being replaced")
    return certificate, key


# --- the process --------------------------------------------------------------------------------------------------


def settings(args: list[str], env: dict[str, str]) -> Settings:
    """From the flags of the original's parent, and from variables. Raises SystemExit for what can't be."""
    flags = argparse.ArgumentParser(prog="opencga-agent", allow_abbrev=False)
    flags.add_argument("-healthCheckFilePath", dest="health", type=Path, required=True)
    flags.add_argument("-serveStatusPort", dest="port", type=int, default=5000)
    flags.add_argument("-cluster", dest="document", type=Path, required=True)
    for ignored in ("-skipMongoStart", "-noDaemonize", "-useLocalOpencgaTools"):
        flags.add_argument(ignored, action="store_true", help="taken, as it is always so")
    given = flags.parse_args(args)
    return Settings(
        me=env.get("POD_NAME") or socket.gethostname(),
        version=env["OPENCGA_VERSION"],
        health=given.health,
        port=given.port,
        document=given.document,
        conf=Path(env["OPENCGA_CONF"]),
        data=Path(env["OPENCGA_DATA"]),
        socket=Path(env["OPENCGA_HOOK"]),
        tool=env["OPENCGA_TOOL"],
        ping=env["OPENCGA_PING"],
        token=Path(env["OPENCGA_TOKEN_FILE"]),
        drain=float(env.get("OPENCGA_DRAIN_SECONDS") or 0.0),
        settle=float(env.get("OPENCGA_SETTLE_SECONDS") or 0.0),
        role=env.get("OPENCGA_ROLE", ""),
        metrics=int(env.get("OPENCGA_METRICS_PORT") or 0),
    )


def main() -> int:
    """Run until SIGTERM."""
    found = settings(sys.argv[1:], dict(os.environ))
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    with futures.ThreadPoolExecutor(4, thread_name_prefix="others") as pool:
        agent = Agent(found, hook.Client(found.socket), pool)
        servers = [serving.health(agent, found.port)]
        if found.metrics:
            servers.append(serving.metrics(agent, found.metrics))
        while not ended.is_set():
            if not _stepped(agent):
                ended.wait(TICK)
        for server in servers:
            server.shutdown()
    return 0


def _stepped(agent: Agent) -> bool:
    """One turn of the loop. A disk that is full, or a file that can't be read, is told, and looked at anew."""
    try:
        return agent.step()
    except (OSError, ValueError) as error:
        _log("no step", error=str(error))
        return False


def _log(event: str, **fields: str) -> None:
    """One line of JSON on stdout, where the kubelet keeps it."""
    sys.stdout.write(json.dumps({"event": event, "at": round(time.time(), 3), **fields}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
