"""A hook that outlives its agents, and a database behind it: played. It counts what must be done once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from moorage.agent import hook, main, notes, plan

DOCUMENT: dict[str, Any] = {
    "version": 1,
    "auth": {"admin": {"email": "a@b", "passwordFile": "", "revision": "r"}},
    "args": {"configuration": {"databasePrefix": "opencga"}, "storage": {}, "client": {}},
    "processes": [
        {"name": "demo-client-0", "hostname": "h", "processType": "master", "version": "5.0.0"},
        {"name": "demo-0", "hostname": "h", "processType": "rest", "version": "5.0.0"},
    ],
    "deployments": [{"_id": "demo", "members": [], "master": "demo-client-0"}],
}


class Killed(BaseException):
    """The agent is no more."""


class Hook(hook.Client):
    """`before` and `after` are counted down by every request that changes something; at 0 the agent is killed."""

    def __init__(self) -> None:
        super().__init__(Path("nowhere"))
        self.running = False
        self.boot = "b-1"
        self.command: plan.Command | None = None
        self.own = {"configuration.yml": "logLevel: info\ncatalog: {database: {options: {a: 1}}}\n"}
        self.done: list[str] = []
        self.passwords: set[str] = set()
        self.installed = False
        self.reachable = True
        self.migrations: list[dict[str, Any]] = []
        self.exits: dict[str, int] = {}
        self.takes = 2  # looks until a command has ended
        self._left = 0
        self.before = self.after = -1

    def _may_end(self, count: str) -> None:
        left = getattr(self, count)
        if left >= 0:
            setattr(self, count, left - 1)
            if left == 0:
                raise Killed

    def state(self) -> plan.Hook:
        if self.command is not None and self.command.running:
            self._left -= 1
            if self._left <= 0:
                self._end(self.command)
        return plan.Hook(self.running, self.command, self.boot)

    def _end(self, command: plan.Command) -> None:
        word = self.done[-1]
        code = self.exits.get(word, 0)
        if word == "install" and not code:
            self.installed = True
        self.command = plan.Command(command.id, running=False, exit=code, output="no" if code else "")

    def files(self) -> dict[str, str]:
        return self.own

    def start(self, args: Sequence[str], stdin: str = "") -> None:
        self._may_end("before")
        self.passwords.add(stdin)
        self.done.append(f"start {args[1]}")
        assert not self.running
        self.running = True
        self._may_end("after")

    def stop(self) -> None:
        self._may_end("before")
        self.done.append("stop")
        self.running = False
        self._may_end("after")

    def run(self, id_: str, args: Sequence[str], stdin: str) -> None:
        self._may_end("before")
        assert self.command is None or not self.command.running, "one at a time"
        assert "--force" not in args
        if args[0] == "/bin/save":
            assert (["/bin/save", "all"], "") == (list(args), stdin)
            self.done.append("save")
        else:
            self.passwords.add(stdin)
            self.done.append("install" if "install" in args else " ".join(["migrate", *args[3:]]))
        self.command, self._left = plan.Command(id_, running=True), self.takes
        self._may_end("after")

    def ask(self, args: Sequence[str], within: float, stdin: str = "") -> tuple[int, str]:
        if "search" in args:
            self.passwords.add(stdin)
            return 0, f"12:00 [main] INFO\n{json.dumps(self.migrations)}\n"
        told = {"mongodbStatus": self.reachable, "installed": self.installed}
        return 0, f"12:00 [main] INFO\n{json.dumps(told)}\n"

    def restarts(self) -> None:
        """The container ends, and another takes its place."""
        self.running, self.command, self.boot = False, None, self.boot + "+"


class World:
    """The folders of a pod, and what is in them."""

    def __init__(self, folder: Path, me: str = "demo-client-0", version: str = "5.0.0") -> None:
        self.folder, self.hook, self.authority = folder, Hook(), ""
        for name in ("conf", "data", "health", "secrets"):
            (folder / name).mkdir()
        (folder / "secrets/password").write_text("Change-Me-2-day")
        (folder / "secrets/token").write_text("t" * 43)
        self.settings = main.Settings(
            me=me,
            version=version,
            health=folder / "health/agent-health-status.json",
            port=0,
            document=folder / "cluster-config.json",
            conf=folder / "conf",
            data=folder / "data",
            socket=folder / "nowhere",
            tool="/opt/opencga/bin/opencga-admin.sh",
            ping="http://nowhere/",
            token=folder / "secrets/token",
        )

    def publish(self, version: int = 1, *, of: str = "5.0.0", **args: Any) -> None:
        """Another document."""
        auth = {"admin": {**DOCUMENT["auth"]["admin"], "passwordFile": str(self.folder / "secrets/password")}}
        processes = [{**it, "version": of} for it in DOCUMENT["processes"]]
        made = {**DOCUMENT, "version": version, "auth": auth, "processes": processes}
        if self.authority:
            (self.folder / "secrets/ca.crt").write_text(self.authority)
            made["tls"] = {"CAFilePath": str(self.folder / "secrets/ca.crt"), "revision": str(version)}
        if args:
            made["args"] = {**DOCUMENT["args"], "configuration": {**DOCUMENT["args"]["configuration"], **args}}
        self.settings.document.write_text(json.dumps(made))

    def told(self) -> dict[str, Any]:
        """The health file."""
        return dict(json.loads(self.settings.health.read_bytes()))

    def state(self) -> dict[str, Any]:
        return dict(self.told()["statuses"][self.settings.me])

    def progress(self) -> dict[str, Any]:
        return dict(self.told()["mmsStatus"][self.settings.me])

    def kept(self) -> notes.Notes:
        return notes.read(self.settings.data)
