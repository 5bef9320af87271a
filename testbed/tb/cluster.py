"""Brings a testbed up to a level, keeps it whole, and tells how it is.

Observes the recorded processes, the components' health endpoints and the API; writes below the state folder alone.
What can go wrong is a component that ends or never gets ready: the error then carries the last lines of its log.
"""

import dataclasses
import fcntl
import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from tb import (
    build,
    certificates,
    containers,
    control_plane,
    host,
    network,
    nodes,
    objects,
    parts,
    process,
    removal,
)
from tb import (
    settings as settings_module,
)
from tb.api import Api, port_is_free
from tb.component import Component, Level
from tb.errors import TestbedError
from tb.progress import Step
from tb.settings import Settings

READY_WITHIN = 180.0
"""Seconds after which a component that runs counts as hanging; one that has ended is told at once."""

POLL_INTERVAL = 0.1
LOG_LINES = 15


def up(settings: Settings, level: Level, count: int = 1) -> None:
    """Bring the testbed to this level, with so many nodes: start what is missing, restart what ended.

    What runs is left alone, and neither level nor number of nodes is ever lowered. With the second node only, what has
    to notice the loss of one is started anew.
    """
    host.check(level)
    build.build(settings, level)
    with alone(settings):
        removal.claim(settings)
        wanted = dataclasses.replace(settings, nodes=max(settings.nodes, count))
        if settings.nodes == 1 < wanted.nodes:
            _end_those_that_watch_nodes(settings)
        settings_module.record(wanted)
        network.up(wanted)
        certificates.up(wanted)
        api = Api(wanted)
        for component in control_plane.COMPONENTS:
            if component.level <= level:
                ensure(wanted, component, api=api)
        if level >= Level.NODE:
            objects.apply(api)
            join(nodes.all_of(wanted), api)
            for component in parts.BESIDE:
                ensure(wanted, component, api=api)


def join(wanted: list[nodes.Node], api: Api) -> None:
    """Have these nodes run and be Ready, whatever had become of them, with all images that the others have."""
    for one in wanted:
        network.join(one)
        certificates.join(one)
        process.resume(parts.processes(one))
    for part in parts.OF_NODE:
        ensure(wanted[0].settings, *(part(one) for one in wanted), api=api)
        if part is parts.containerd:
            for one in wanted:
                containers.share_images(one)


def ensure(settings: Settings, *components: Component, api: Api) -> None:
    """Start the components unless they run, and wait until they are ready."""
    for component in components:
        if not process.alive(settings, component.name):
            component.prepare(settings)
            command = component.command(settings)
            process.start(settings, component.name, command, component.environment, component.namespace)
    for component in components:
        wait(settings, component.name, f"{component.name} to be ready", partial(component.ready, settings, api))


def restart(settings: Settings, name: str) -> None:
    """Stop one component and start it again."""
    component = find(settings, name)
    with alone(settings):
        process.stop(settings, name)
        if name == "apiserver":
            _wait_for_port(settings)
        ensure(settings, component, api=Api(settings))


def kill(settings: Settings, name: str) -> None:
    """Kill one component and leave it so, until the next `up`."""
    if not process.kill(settings, name):
        raise TestbedError(f"no component {name} runs; `testbed status` lists those that do")


def components(settings: Settings) -> list[Component]:
    """All that the testbed may have, those of the first node before those of the others."""
    first, *others = ([part(one) for part in parts.OF_NODE] for one in nodes.all_of(settings))
    return [*control_plane.COMPONENTS, *first, *parts.BESIDE, *itertools.chain(*others)]


def find(settings: Settings, name: str) -> Component:
    known = ", ".join(component.name for component in components(settings))
    for component in components(settings):
        if component.name == name:
            return component
    raise TestbedError(f"there is no component {name}; there are {known}")


def wait(settings: Settings, name: str, what: str, condition: Callable[[], bool], within: float = READY_WITHIN) -> None:
    """Wait until the condition holds; TestbedError with the end of the component's log when it doesn't, or ended."""
    deadline = time.monotonic() + within
    with Step(f"waiting for {what}", quiet=True):
        while not _holds(condition):
            if not process.alive(settings, name):
                raise TestbedError(f"{name} ended while waiting for {what}; its log ends with:\n{tail(settings, name)}")
            if time.monotonic() > deadline:
                raise TestbedError(
                    f"waited {within:.0f} s for {what}; the log of {name} ends with:\n{tail(settings, name)}"
                )
            time.sleep(POLL_INTERVAL)


def tail(settings: Settings, name: str, lines: int = LOG_LINES) -> str:
    """The last lines of a component's log."""
    path = settings.logs / f"{name}.log"
    if not path.exists():
        return "(no log)"
    return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])


def status(settings: Settings) -> list[tuple[str, str, int | None, int]]:
    """Each component that was started: name, `ready`, `not ready`, `frozen` or `ended`, pid, resident memory in KiB."""
    rows: list[tuple[str, str, int | None, int]] = []
    known = [component.name for component in components(settings)]
    started = process.names(settings)
    for name in sorted(started, key=lambda name: known.index(name) if name in known else len(known)):
        running = process.recorded(settings, name)
        if running is None or not running.alive():
            rows.append((name, "ended", None, 0))
        elif process.suspended(running):
            rows.append((name, "frozen", running.pid, process.memory(running.pid)))
        else:
            word = "ready" if _is_ready(settings, name) else "not ready"
            rows.append((name, word, running.pid, process.memory(running.pid)))
    return rows


@contextmanager
def alone(settings: Settings) -> Iterator[None]:
    """Hold the state folder's lock, so that two commands never change one testbed at the same time."""
    settings.state.mkdir(parents=True, exist_ok=True)
    # The folder may lie in a repository, which must not see it.
    (settings.state / ".gitignore").write_text("*\n")
    with (settings.state / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _is_ready(settings: Settings, name: str) -> bool:
    """What no component describes, such as a registry, is ready for as long as it runs."""
    api, known = Api(settings), components(settings)
    return all(_holds(partial(component.ready, settings, api)) for component in known if component.name == name)


def _holds(condition: Callable[[], bool]) -> bool:
    try:
        return condition()
    except OSError:
        return False


def _end_those_that_watch_nodes(settings: Settings) -> None:
    """Those that know how long a silent node is waited for: with one node that is another time than with several."""
    served = process.alive(settings, "apiserver")
    for name in ("kubelet", "controller-manager", "apiserver"):
        process.stop(settings, name)
    if served:
        _wait_for_port(settings)


def _wait_for_port(settings: Settings) -> None:
    """The socket of an ended API server may outlive it for a moment."""
    deadline = time.monotonic() + READY_WITHIN
    while not port_is_free(settings) and time.monotonic() < deadline:
        time.sleep(POLL_INTERVAL)
