"""The command line: parses it, calls the module that does the work, and turns errors into messages."""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tb import build, cluster, containers, host, loss, registry, removal
from tb import settings as settings_module
from tb.component import Level
from tb.errors import TestbedError
from tb.images import recipe
from tb.images import spec as image_spec
from tb.settings import MOST_NODES, Settings

Action = Callable[[Settings, argparse.Namespace], int | None]
LEVELS = {level.name.lower(): level for level in Level}


def main(words: list[str]) -> int:
    """Run one command and return the exit code."""
    options = _parser().parse_args(words)
    try:
        settings = settings_module.resolve(options.state, options.index, dict(os.environ))
        return options.action(settings, options) or 0
    except TestbedError as error:
        print(f"testbed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _up(settings: Settings, options: argparse.Namespace) -> None:
    if options.nodes > 1 and LEVELS[options.level] < Level.NODE:
        raise TestbedError(f"there are no nodes at level {options.level}; leave out --level, or --nodes")
    began = time.monotonic()
    cluster.up(settings, LEVELS[options.level], options.nodes)
    elapsed = time.monotonic() - began
    print(f"the testbed is up at level {options.level} after {elapsed:.1f} s; KUBECONFIG={settings.kubeconfig}")


def _down(settings: Settings, options: argparse.Namespace) -> None:
    host.check(Level.API)
    with cluster.alone(settings):
        removal.remove(settings)


def _status(settings: Settings, options: argparse.Namespace) -> int:
    rows = cluster.status(settings)
    for name, state, pid, memory in rows:
        print(f"{name:20} {state:10} {pid or '-':>8} {memory // 1024:>6} MiB")
    if not rows:
        print("down")
    return 0 if rows and all(state == "ready" for _, state, _, _ in rows) else 1


def _kubeconfig(settings: Settings, options: argparse.Namespace) -> None:
    if not settings.kubeconfig.exists():
        raise TestbedError("the testbed is down; bring it up with `testbed up`")
    print(settings.kubeconfig)


def _load(settings: Settings, options: argparse.Namespace) -> None:
    for image in options.images:
        print(containers.load(settings, image), end="")


def _shell(settings: Settings, options: argparse.Namespace) -> int:
    command = options.words or [os.environ.get("SHELL", "/bin/sh")]
    path = f"{settings.bin}{os.pathsep}{os.environ.get('PATH', '')}"
    environment = {**os.environ, "KUBECONFIG": str(settings.kubeconfig), "PATH": path}
    return subprocess.run(command, env=environment).returncode


def _build(settings: Settings, options: argparse.Namespace) -> None:
    build.build(settings, LEVELS[options.level])


def _restart(settings: Settings, options: argparse.Namespace) -> None:
    cluster.restart(settings, options.component)


def _kill(settings: Settings, options: argparse.Namespace) -> None:
    cluster.kill(settings, options.component)


def _logs(settings: Settings, options: argparse.Namespace) -> None:
    print(cluster.tail(settings, options.component, options.lines))


def _registry_up(settings: Settings, options: argparse.Namespace) -> None:
    print(registry.up(settings, options.port, htpasswd=options.htpasswd, tls=options.tls))


def _registry_down(settings: Settings, options: argparse.Namespace) -> None:
    registry.down(settings, options.port)


def _image_build(settings: Settings, options: argparse.Namespace) -> None:
    read = image_spec.read(options.spec, {"TESTBED_BIN": str(settings.bin), **os.environ})
    print(f"{options.output} {recipe.build(read, options.output, settings.cache)}")


def _node(settings: Settings, options: argparse.Namespace) -> None:
    loss.ACTIONS[options.what](settings, options.node)


def _deps(settings: Settings, options: argparse.Namespace) -> None:
    host.install()


def _count(word: str) -> int:
    if not word.isdecimal() or not 1 <= int(word) <= MOST_NODES:
        raise argparse.ArgumentTypeError(f"{word} is not between 1 and {MOST_NODES}")
    return int(word)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="testbed", description="A whole Kubernetes on a bare Linux machine.")
    parser.add_argument(
        "--state", help="the testbed's folder (default: TESTBED_STATE, else .testbed beside the tool's folder)"
    )
    parser.add_argument("--index", type=int, help="which network namespace and addresses it has, 0 to 11 (default: 0)")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_cluster_commands(commands)
    _add_component_commands(commands)
    _add_node_commands(commands)
    _add_registry_commands(commands)
    images = _command(commands, "image", None, "build container images").add_subparsers(
        required=True, metavar="COMMAND"
    )
    image = _command(images, "build", _image_build, "build an image archive from a specification")
    image.add_argument("spec", type=Path, metavar="SPEC.toml")
    image.add_argument("-o", "--output", type=Path, required=True, metavar="OUT.tar")
    _command(commands, "deps", _deps, "install the Debian packages that a testbed uses")
    return parser


def _command(commands: Any, name: str, action: Action | None, text: str) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    made.set_defaults(action=action)
    return made


def _add_cluster_commands(commands: Any) -> None:
    up = _command(commands, "up", _up, "bring the testbed up to a level; start again what ended")
    up.add_argument("--level", choices=LEVELS, default="node", help="api, control or node (default: node)")
    up.add_argument("--nodes", type=_count, default=1, help=f"at least so many, of {MOST_NODES} at most (default: 1)")
    _command(commands, "down", _down, "take the testbed away; binaries, caches and logs stay")
    _command(commands, "status", _status, "say which components run")
    _command(commands, "kubeconfig", _kubeconfig, "print the path of the admin's kubeconfig")
    load = _command(commands, "load", _load, "load image archives into the nodes")
    load.add_argument("images", nargs="+", type=Path, metavar="IMAGE.tar")
    shell = _command(commands, "shell", _shell, "run a command, or a shell, with KUBECONFIG and PATH set")
    shell.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND")
    binaries = _command(commands, "build", _build, "build the binaries only")
    binaries.add_argument("--level", choices=LEVELS, default="node", help="those of this level (default: node)")


def _add_component_commands(commands: Any) -> None:
    _command(commands, "restart", _restart, "stop a component and start it again").add_argument("component")
    _command(commands, "kill", _kill, "kill a component and leave it so until the next `up`").add_argument("component")
    logs = _command(commands, "logs", _logs, "print the end of a component's log")
    logs.add_argument("component")
    logs.add_argument("--lines", type=int, default=100, help="how many lines (default: 100)")


def _add_node_commands(commands: Any) -> None:
    about = _command(commands, "node", None, "lose a node, and have it back").add_subparsers(
        required=True, metavar="COMMAND"
    )
    for name, action in loss.ACTIONS.items():
        one = _command(about, name, _node, loss.said(action))
        one.add_argument("node", metavar="NAME")
        one.set_defaults(what=name)


def _add_registry_commands(commands: Any) -> None:
    registries = _command(commands, "registry", None, "run OCI registries in the testbed").add_subparsers(
        required=True, metavar="COMMAND"
    )
    up = _command(registries, "up", _registry_up, "start a registry and print its address")
    up.add_argument("--port", type=int, default=registry.DEFAULT_PORT, help="(default: 5000)")
    up.add_argument("--htpasswd", type=Path, metavar="FILE", help="ask for a login of this file, with bcrypt passwords")
    up.add_argument("--tls", action="store_true", help="serve HTTPS with a certificate of the testbed's authority")
    down = _command(registries, "down", _registry_down, "stop registries")
    down.add_argument("--port", type=int, help="only the one on this port")
