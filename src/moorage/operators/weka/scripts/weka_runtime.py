"""The first process of a container's pod: it waits for what the container gets, starts it, and ends only when it may.

It never ends by itself. Asked to end (SIGTERM), it waits until somebody who knows says that it may, by a file; then it
stops the container, gracefully or at once, and ends when that is stopped. The files alone end nothing. The standard
library alone; what talks to it from outside is weka_tool.py.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import time
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
PACE = 1.0  # seconds between looks at files
STOP_SECONDS = 180.0  # for one call that stops the container
PAUSE = 3.0  # seconds between two of them
FORGET = "forget"  # in the file by which it may stop at once: nobody comes back to what it kept
WAITS_FOR_LEAVE = ("client", "s3", "nfs", "drive", "compute")
STOPS_GRACEFULLY = ("s3", "drive", "compute", "nfs", "data-services")


class Instructions:
    """What it is allowed, by files that somebody else writes."""

    def __init__(self, stop: bool, force: bool, forget: bool = False) -> None:
        self.stop, self.force, self.forget = stop, force, forget

    @classmethod
    def read(cls, files: dict[str, str]) -> Instructions:
        try:
            with open(files["allow_force_stop"], encoding="utf-8") as file:
                return cls(os.path.exists(files["allow_stop"]), True, file.read() == FORGET)
        except OSError:
            return cls(os.path.exists(files["allow_stop"]), False)


def may_end(mode: str, told: Instructions) -> bool:
    """Whether one that was asked to end may begin with it."""
    return mode not in WAITS_FOR_LEAVE or told.stop or told.force


def is_forced(mode: str, told: Instructions) -> bool:
    """Whether it stops at once; those who hold nothing always do."""
    return told.force or mode not in STOPS_GRACEFULLY


def is_stopped(containers: list[Any], name: str) -> bool:
    """Whether the agent says that the container is stopped, or knows of none of that name."""
    mine = [it for it in containers if isinstance(it, dict) and it.get("name") == name]
    return all(it.get("runStatus") == "Stopped" for it in mine)


def read_resources(text: str) -> dict[str, Any] | None:
    """What the container gets; None for what is empty or cut."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) and found.get("wekaPort") else None


def setup_words(commands: dict[str, str], environ: dict[str, str], resources: dict[str, Any]) -> list[str]:
    """How the container is made; what is not known as a word of the pattern is not there.

    UDP needs no device. Without a core, a device or memory that is named the product chooses them.
    """
    given = {"name": environ["NAME"], "mode": environ["MODE"], "cores": environ.get("CORES", "1")}
    given["port"] = str(resources["wekaPort"])
    words = []
    for word in commands["setup"].split():
        for key, value in given.items():
            word = word.replace("{" + key + "}", value)
        words.append(word)
    if resources.get("failureDomain"):
        words += ["--failure-domain", resources["failureDomain"]]
    if environ.get("JOIN_IPS"):
        words += ["--join-ips", environ["JOIN_IPS"]]
    if environ.get("CORE_IDS", "auto") != "auto":
        words += [commands["core_ids_flag"], environ["CORE_IDS"]]
    if environ.get("MEMORY", "0") != "0":
        words += [commands["memory_flag"], environ["MEMORY"]]
    devices = [it for it in environ.get("NETWORK_DEVICE", "").split(",") if it]
    for device in ["udp"] if environ.get("UDP_MODE") == "true" else devices:
        words += [commands["network_flag"], device]
    return words


class Runtime:
    """One run of the pod's container."""

    def __init__(self, settings: dict[str, Any], environ: dict[str, str]) -> None:
        self.files, self.commands, self.environ = settings["files"], settings["commands"], environ
        self.name, self.mode = environ["NAME"], environ["MODE"]
        self.ending = False
        self.agent: subprocess.Popen[bytes] | None = None

    def ask_to_end(self, *_: object) -> None:
        self.ending = True

    def path(self, name: str) -> str:
        return os.path.join(self.files["runtime"], name)

    def told(self) -> Instructions:
        return Instructions.read(self.files)

    def run(self) -> None:
        self.forget_old_leave()
        os.makedirs(self.files["runtime"], exist_ok=True)
        self.write("management_ips", self.environ.get("MANAGEMENT_IP", "") + "\n")
        self.write("persistency-configured", "")
        resources = self.wait_for_resources()
        if resources is not None:
            self.pre_run()
            self.start(resources)
            while not self.ending:
                time.sleep(PACE)
            self.wait_for_leave()
            self.stop()
        if self.told().forget:
            self.forget()
        self.debug_sleep()

    def forget_old_leave(self) -> None:
        """Leave that was given to a container before this one is none of its own."""
        for name in ("allow_stop", "allow_force_stop"):
            if os.path.exists(self.files[name]):
                os.remove(self.files[name])

    def write(self, name: str, text: str) -> None:
        with open(self.path(name) + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(self.path(name) + ".new", self.path(name))

    def wait_for_resources(self) -> dict[str, Any] | None:
        """What it gets; None when it is to end before it has begun."""
        while True:
            try:
                with open(self.path("resources.json"), encoding="utf-8") as file:
                    found = read_resources(file.read())
            except OSError:
                found = None
            if found is not None:
                return found
            if self.ending and may_end(self.mode, self.told()):
                return None
            time.sleep(PACE)

    def pre_run(self) -> None:
        script = self.environ.get("PRE_RUN_SCRIPT", "")
        if script:
            subprocess.run(["/bin/sh", "-e"], input=base64.b64decode(script), check=True)

    def start(self, resources: dict[str, Any]) -> None:
        if self.commands["agent"]:
            self.agent = subprocess.Popen(self.commands["agent"].split())
        containers = self.until_agent_answers()
        if not any(it.get("name") == self.name for it in containers if isinstance(it, dict)):
            self.weka(*setup_words(self.commands, self.environ, resources))
        self.weka("local", "start", self.name)

    def until_agent_answers(self) -> list[Any]:
        while True:
            found = self.containers()
            if found is not None:
                return found
            if self.ending and may_end(self.mode, self.told()):
                return []
            time.sleep(PACE)

    def containers(self) -> list[Any] | None:
        """What the agent lists; None where it does not answer."""
        try:
            found = json.loads(self.weka("local", "ps", "--json", seconds=30.0))
        except (ValueError, OSError, subprocess.SubprocessError):
            return None
        return found if isinstance(found, list) else None

    def wait_for_leave(self) -> None:
        while not may_end(self.mode, self.told()):
            time.sleep(PACE)

    def stop(self) -> None:
        """Again and again, until the agent says that it is stopped. Leave to force, given meanwhile, is heeded."""
        while True:
            force = is_forced(self.mode, self.told())
            found = self.containers()
            if (found is None and force) or (found is not None and is_stopped(found, self.name)):
                return
            self.stop_once(force)
            time.sleep(PAUSE)

    def stop_once(self, force: bool) -> None:
        begun = subprocess.Popen([self.commands["weka"], "local", "stop", "--force" if force else "-g", self.name])
        ends = time.monotonic() + STOP_SECONDS
        while begun.poll() is None and time.monotonic() < ends:
            if not force and self.told().force:
                break
            time.sleep(PACE / 2)
        if begun.poll() is None:
            begun.kill()
        begun.wait()

    def forget(self) -> None:
        """What it kept on its node goes. The folder itself is a mount, and stays."""
        if self.agent is not None:
            self.agent.kill()
            self.agent.wait()
        for name in os.listdir(self.files["data"]):
            path = os.path.join(self.files["data"], name)
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path, ignore_errors=True)
            else:
                os.remove(path)

    def debug_sleep(self) -> None:
        ends = time.monotonic() + float(self.environ.get("WEKA_OPERATOR_DEBUG_SLEEP") or 0)
        while time.monotonic() < ends and not os.path.exists(self.files["cancel_debug_sleep"]):
            time.sleep(PACE)

    def weka(self, *words: str, seconds: float = 120.0) -> str:
        command = [self.commands["weka"], *words]
        done = subprocess.run(command, stdout=subprocess.PIPE, timeout=seconds, check=True)
        return done.stdout.decode(errors="replace")


def main() -> None:
    with open(os.path.join(HERE, "settings.json"), encoding="utf-8") as file:
        settings = json.load(file)
    runtime = Runtime(settings, dict(os.environ))
    for which in (signal.SIGTERM, signal.SIGINT):
        signal.signal(which, runtime.ask_to_end)
    runtime.run()


if __name__ == "__main__":
    main()
