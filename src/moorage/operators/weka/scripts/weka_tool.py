"""What is asked of a container from outside, and told to it: `weka_tool.py WHAT ARGUMENTS`, both in one line of JSON.

It runs in the pod, by exec, and prints one line of JSON: of a question what was found, of an order {fault, message,
value}. An order looks first whether it is carried out already, so that it can be repeated. What is secret is read from
files in the pod, and handed on by the environment, never by arguments that a list of processes shows, unless the
settings say so. The standard library alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
DEADLINE = 24.0  # seconds for all of it, which is less than whoever asks waits


class Refused(Exception):
    """The product said no, and nothing has happened."""


class Unknown(Exception):
    """Nobody knows whether it has happened."""


class Tools:
    """The product's own tools. `end` is when all must be over, by the monotonic clock."""

    def __init__(self, settings: dict[str, Any], environ: dict[str, str], end: float) -> None:
        self.files, self.commands = settings["files"], settings["commands"]
        self.environ, self.end = environ, end

    def path(self, name: str) -> str:
        return os.path.join(self.files["runtime"], name)

    def secret(self, key: str) -> str:
        """The text of one key of the login that is mounted here; empty where there is none."""
        try:
            with open(os.path.join(self.files["login"], key), encoding="utf-8") as file:
                return file.read()
        except OSError:
            return ""

    def login(self) -> dict[str, str]:
        names = (("user_variable", "username"), ("password_variable", "password"), ("org_variable", "org"))
        given = {self.commands[variable]: self.secret(key) for variable, key in names}
        return {name: text for name, text in given.items() if text}

    def run(self, *words: str, secrets: tuple[tuple[str, str, str], ...] = ()) -> str:
        """What `weka` says. `secrets` are (variable, argument, text)."""
        command, environ = [self.commands["weka"], *words], {**self.environ, **self.login()}
        for variable, argument, text in secrets:
            if self.commands["secrets_by"] == "Arguments":
                command.append(f"{argument}={text}")
            else:
                environ[self.commands[variable]] = text
        return self.call(command, environ)

    def call(self, command: list[str], environ: dict[str, str] | None = None) -> str:
        seconds = min(self.commands["seconds"], self.end - time.monotonic())
        if seconds <= 0:
            raise Unknown("there was no time left")
        what = " ".join(command[:3])
        try:
            done = subprocess.run(command, env=environ, capture_output=True, timeout=seconds, check=False)
        except subprocess.TimeoutExpired:
            raise Unknown(f"{what}: no answer within {seconds:.0f} s") from None
        except OSError as error:
            raise Refused(f"{what}: {error}") from None
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip() or f"it ended with {done.returncode}"
            raise Refused(f"{what}: {said[-500:]}")
        return done.stdout.decode(errors="replace")

    def read(self, *words: str) -> Any:
        return parsed(self.run(*words), " ".join(words[:2]))


def parsed(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise Unknown(f"{what}: an answer that is no JSON") from None


def number(text: Any, otherwise: int = -1) -> int:
    """The number in 7, "7" or "HostId<7>"."""
    digits = "".join(it for it in str(text) if it.isdigit())
    return int(digits) if digits and len(digits) < 10 else otherwise


def listed(found: Any) -> list[dict[str, Any]]:
    return [it for it in found if isinstance(it, dict)] if isinstance(found, list) else []


def mapping(found: Any) -> dict[str, Any]:
    return found if isinstance(found, dict) else {}


def text_of(it: dict[str, Any], *names: str) -> str:
    """The first of these fields that is there, as a text that is not too long."""
    return next((str(it[name])[:253] for name in names if it.get(name) is not None), "")


# --- questions --------------------------------------------------------------------------------------------------------


def local(tools: Tools, environ: dict[str, str]) -> dict[str, Any]:
    """This container, by its files and its agent."""
    name = environ.get("NAME", "")
    files = tools.files
    found: dict[str, Any] = {
        "pod": environ.get("POD_ID", ""),
        "persistent": os.path.exists(tools.path("persistency-configured")),
        "resources": digest(tools.path("resources.json")),
        "allow_stop": os.path.exists(files["allow_stop"]),
        "allow_force_stop": os.path.exists(files["allow_force_stop"]),
        "addresses": lines(tools.path("management_ips")),
    }
    try:
        mine = next((it for it in listed(tools.read("local", "ps", "--json")) if it.get("name") == name), {})
        inside = mapping(mine.get("internalStatus"))
        found["run_status"] = text_of(mine, "runStatus")
        found["internal"] = text_of(inside, "state", "display_status")
        found["last_failure"] = text_of(mine, "lastFailure")
        found.update(identity(tools, name))
    except (Refused, Unknown) as error:
        found["agent"] = str(error)[:1000]
    if environ.get("MODE") == "drive":
        found["devices"] = devices(tools)
    return found


def identity(tools: Tools, name: str) -> dict[str, Any]:
    """The cluster that the container belongs to, and its number there."""
    words = [it.replace("{name}", name) for it in tools.commands["identity"].split()]
    said = tools.read(*words)
    value = said.get("value") if isinstance(said, dict) and said.get("has_value") else None
    if not isinstance(value, dict) or not value.get("cluster_guid"):
        return {}
    return {"cluster": text_of(value, "cluster_guid"), "host": number(value.get("host_id"))}


def devices(tools: Tools) -> list[dict[str, Any]]:
    """Block devices of the node by their serials."""
    try:
        found = parsed(tools.call([tools.commands["sign"], "list", "-j"]), "the list of drives")
    except (Refused, Unknown):
        return []
    return [
        {
            "serial": text_of(it, "serial_id", "serial"),
            "path": text_of(it, "block_device", "path"),
            "signed": bool(it.get("is_signed")),
            "guid": text_of(it, "weka_guid"),
            "mounted": bool(it.get("mounted")),
        }
        for it in listed(found)[:512]
        if text_of(it, "serial_id", "serial")
    ]


def digest(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return ""


def lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8") as file:
            return [it.strip() for it in file if it.strip()][:64]
    except OSError:
        return []


def cluster(tools: Tools, environ: dict[str, str]) -> dict[str, Any]:
    """The cluster that this container belongs to; without a guid where it belongs to none."""
    mine = identity(tools, environ.get("NAME", ""))
    if not mine:
        return {}
    status = mapping(tools.read("status", "--json"))
    rebuild, capacity = mapping(status.get("rebuild")), mapping(status.get("capacity"))
    states = listed(rebuild.get("protectionState"))
    return {
        "guid": mine["cluster"],
        "name": text_of(status, "name"),
        "status": text_of(status, "status"),
        "io": text_of(status, "io_status"),
        "data": number(status.get("stripe_data_drives"), 0),
        "parity": number(status.get("stripe_protection_drives"), 0),
        "hot_spare": number(status.get("hot_spare"), 0),
        "unprotected": sum(number(it.get("MiB"), 0) for it in states if number(it.get("numFailures"), 0) > 0),
        "moving": bool(rebuild.get("movingData")),
        "phase": text_of(status, "upgrade_phase"),
        "capacity": int(capacity.get("total_bytes") or 0),
        "members": [
            {
                "host": number(it.get("host_id")),
                "name": text_of(it, "container_name"),
                "address": text_of(it, "host_ip"),
                "status": text_of(it, "status"),
                "state": text_of(it, "state"),
            }
            for it in listed(tools.read("cluster", "container", "--json"))
        ],
        "drives": [drive(it) for it in listed(tools.read("cluster", "drive", "--json"))],
        "users": [text_of(it, "username") for it in listed(tools.read("user", "-J"))],
        "groups": [text_of(it, "name") for it in listed(tools.read(*tools.commands["groups"].split()))],
        "filesystems": [text_of(it, "name") for it in listed(tools.read("fs", "--json"))],
    }


def drive(it: dict[str, Any]) -> dict[str, Any]:
    return {
        "uuid": text_of(it, "uuid"),
        "serial": text_of(it, "serial_number"),
        "status": text_of(it, "status"),
        "host": number(it.get("host_id")),
        "path": text_of(it, "device_path"),
        "added": text_of(it, "added_time"),
    }


# --- orders -----------------------------------------------------------------------------------------------------------


def replace(path: str, text: str) -> None:
    """Whole or not at all: whoever reads it never finds half of it."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path)


def write_resources(tools: Tools, environ: dict[str, str], args: dict[str, Any]) -> None:
    if environ.get("POD_ID", "") != args["pod"]:
        raise Refused("another pod has taken its place")
    replace(tools.path("resources.json"), args["text"])


def allow_stop(tools: Tools, environ: dict[str, str], args: dict[str, Any]) -> None:
    """The runtime may end once it is asked to; this alone ends nothing. `forget`: what it kept goes with it."""
    if environ.get("POD_ID", "") != args["pod"]:
        raise Refused("another pod has taken its place")
    replace(tools.files["allow_force_stop" if args["force"] else "allow_stop"], "forget" if args.get("forget") else "")


def join(tools: Tools, environ: dict[str, str], args: dict[str, Any]) -> None:
    if identity(tools, environ.get("NAME", "")):
        return
    name = environ["NAME"]
    tools.run("local", "resources", "join-ips", *args["to"], "--container", name)
    tools.run("local", "resources", "apply", "-f", "--container", name)
    tools.run("local", "restart", "--force", name)


def form(tools: Tools, environ: dict[str, str], args: dict[str, Any]) -> None:
    if identity(tools, environ.get("NAME", "")):
        return
    addresses = [str(ip) for ip, _ in args["members"]]
    at = ",".join(f"{ip}:{port}" for ip, port in args["members"])
    words = ["cluster", "create", *addresses, "--host-ips", at]
    if args.get("leadership"):
        words += ["--leadership-size", str(args["leadership"])]
    secrets = (
        ("join_secret_variable", "--join-secret", tools.secret("join-secret")),
        ("admin_password_variable", "--admin-password", tools.secret("password")),
    )
    if not all(text for _, _, text in secrets):
        raise Refused("the login has no key join-secret or password")
    tools.run(*words, secrets=secrets)


SETTINGS = (
    ("name", "--cluster-name"),
    ("parity", "--parity-drives"),
    ("data", "--data-drives"),
    ("raft", "--bucket-raft-size"),
)


def set_(tools: Tools, environ: dict[str, str], args: dict[str, Any]) -> None:
    words = []
    for name, flag in SETTINGS:
        if args.get(name):
            words += [flag, str(args[name])]
    if words:
        tools.run("cluster", "update", *words)
    if "hot_spare" in args:
        tools.run("cluster", "hot-spare", str(args["hot_spare"]))


def start_io(tools: Tools, environ: dict[str, str], args: dict[str, Any]) -> None:
    """`started` are the words that say that it is, or with STARTING about to be."""
    said = text_of(mapping(tools.read("status", "--json")), "io_status").upper()
    if said not in ("STARTING", *args["started"].upper().split()):
        tools.run("cluster", "start-io")


def add_user(tools: Tools, environ: dict[str, str], args: dict[str, Any]) -> None:
    if args["user"] in [text_of(it, "username") for it in listed(tools.read("user", "-J"))]:
        return
    password = tools.secret("user-password")
    if not password:
        raise Refused("the login has no key user-password")
    tools.run("user", "add", args["user"], "clusteradmin", secrets=(("new_password_variable", "--password", password),))


def add_group(tools: Tools, environ: dict[str, str], args: dict[str, Any]) -> None:
    if args["name"] not in [text_of(it, "name") for it in listed(tools.read(*tools.commands["groups"].split()))]:
        tools.run("fs", "group", "create", args["name"])


def add_filesystem(tools: Tools, environ: dict[str, str], args: dict[str, Any]) -> None:
    if args["name"] in [text_of(it, "name") for it in listed(tools.read("fs", "--json"))]:
        return
    most, least = ("--thin-provision-max-ssd", str(args["most"])), ("--thin-provision-min-ssd", str(args["least"]))
    tools.run("fs", "create", args["name"], args["group"], str(args["total"]), *most, *least)


def add_drive(tools: Tools, environ: dict[str, str], args: dict[str, Any]) -> None:
    """Only one that this node shows under that serial now, and that nobody else has."""
    mine = identity(tools, environ.get("NAME", ""))
    found = [drive(it) for it in listed(tools.read("cluster", "drive", "--json"))]
    at = {it["host"] for it in found if it["serial"] == args["serial"]}
    if at & {-1, mine.get("host")}:
        return
    if at:
        raise Refused(f"the cluster lists drive {args['serial']} as that of another container")
    shown = next((it for it in devices(tools) if it["serial"] == args["serial"]), None)
    if shown is None or shown["path"] != args["path"] or mine.get("host") != args["host"]:
        raise Refused(f"drive {args['serial']} is not here as it was seen")
    if shown["mounted"] or shown["guid"] not in ("", mine["cluster"]):
        raise Refused(f"drive {args['serial']} may hold somebody's data")
    tools.run("cluster", "drive", "add", str(args["host"]), args["path"])


def _drive_is(tools: Tools, uuid: str) -> dict[str, Any] | None:
    found = [drive(it) for it in listed(tools.read("cluster", "drive", "--json"))]
    return next((it for it in found if it["uuid"] == uuid), None)


def deactivate_drive(tools: Tools, environ: dict[str, str], args: dict[str, Any]) -> None:
    if _drive_is(tools, args["uuid"]) is not None:
        tools.run("cluster", "drive", "deactivate", args["uuid"], "-f")


def remove_drive(tools: Tools, environ: dict[str, str], args: dict[str, Any]) -> None:
    if _drive_is(tools, args["uuid"]) is not None:
        tools.run("cluster", "drive", "remove", args["uuid"], "-f")


def _member_is(tools: Tools, host: int) -> dict[str, Any] | None:
    found = listed(tools.read("cluster", "container", "--json"))
    return next((it for it in found if number(it.get("host_id")) == host), None)


def deactivate_member(tools: Tools, environ: dict[str, str], args: dict[str, Any]) -> None:
    found = _member_is(tools, args["host"])
    if found is not None and text_of(found, "state") == "ACTIVE":
        tools.run("cluster", "container", "deactivate", str(args["host"]))


def remove_member(tools: Tools, environ: dict[str, str], args: dict[str, Any]) -> None:
    if _member_is(tools, args["host"]) is not None:
        tools.run("cluster", "container", "remove", str(args["host"]), "--no-unimprint")


def _phase(tools: Tools) -> str:
    return text_of(mapping(tools.read("status", "--json")), "upgrade_phase")


def upgrade_phase(tools: Tools, environ: dict[str, str], args: dict[str, Any]) -> None:
    if _phase(tools) == args["phase"]:
        return
    tools.run("debug", "jrpc", "prepare_leader_for_upgrade")
    target = (f"target_phase_type={args['phase']}", f"target_version_name={args['version']}")
    tools.run("debug", "jrpc", "upgrade_phase_start", *target)


def upgrade_finish(tools: Tools, environ: dict[str, str], args: dict[str, Any]) -> None:
    """Without a phase an earlier order may have ended between the two; the second may be refused then."""
    in_phase = bool(_phase(tools))
    if in_phase:
        tools.run("debug", "jrpc", "upgrade_phase_finish")
    try:
        tools.run("debug", "jrpc", "unprepare_leader_for_upgrade")
    except Refused:
        if in_phase:
            raise


QUESTIONS = {"local": local, "cluster": cluster}
ORDERS = {
    "container.write_resources": write_resources,
    "container.allow_stop": allow_stop,
    "container.join": join,
    "cluster.form": form,
    "cluster.set": set_,
    "cluster.start_io": start_io,
    "user.add": add_user,
    "group.add": add_group,
    "filesystem.add": add_filesystem,
    "drive.add": add_drive,
    "drive.deactivate": deactivate_drive,
    "drive.remove": remove_drive,
    "member.deactivate": deactivate_member,
    "member.remove": remove_member,
    "upgrade.phase": upgrade_phase,
    "upgrade.finish": upgrade_finish,
}


def answer(what: str, args: dict[str, Any], settings: dict[str, Any], environ: dict[str, str]) -> dict[str, Any]:
    """What is printed."""
    tools = Tools(settings, environ, time.monotonic() + DEADLINE)
    try:
        if what in QUESTIONS:
            return QUESTIONS[what](tools, environ)
        ORDERS[what](tools, environ, args)
    except Refused as error:
        return {"fault": "Refused", "message": str(error)[:2000]}
    except (Unknown, OSError) as error:
        return {"fault": "Unknown", "message": str(error)[:2000]}
    return {}


def main(argv: list[str]) -> None:
    with open(os.path.join(HERE, "settings.json"), encoding="utf-8") as file:
        settings = json.load(file)
    print(json.dumps(answer(argv[1], json.loads(argv[2]), settings, dict(os.environ))))


if __name__ == "__main__":
    main(sys.argv)
