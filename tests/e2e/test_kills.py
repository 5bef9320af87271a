"""The operator killed -9 in every state that a release passes through; each time it must converge as if nothing was.

Each case is one life of one Collector: install, upgrade, a failing upgrade, uninstall, as far as its state needs. When
the state is reached the operator is killed, after a delay from the seed, and started again at once. A case is replayed
by its name alone:

    pytest tests/e2e/test_kills.py -k 'upgrading-record-2'            (state and repetition)
    MOORAGE_TEST_SEED=7 pytest tests/e2e/test_kills.py -m campaign    (another seed: other delays, another slice)
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from . import conftest, outside, tools, trouble

SEED = int(os.environ.get("MOORAGE_TEST_SEED", "1"))
TIMES = 3
SLICE = 6
HOOK = "import time; time.sleep(0.5)"
HOOKED = ("record", "hook", "sweep")
"""States that last for the time of a hook, or are about its leavings."""


@dataclasses.dataclass(frozen=True)
class State:
    """A moment of a release. `phase` is what is done to the Collector, `sign` what shows that the moment has come."""

    phase: str
    name: str
    sign: str
    value: str

    def __str__(self) -> str:
        return f"{self.phase}-{self.name}"


def _states() -> Iterator[State]:
    yield State("install", "finalizer", "log", "finalizer_is_set")
    yield State("install", "namespace", "log", "tenant_admits")
    yield State("install", "rights", "log", "rights_are_bound")
    yield State("install", "claim", "claim", "")
    yield State("install", "chart", "log", "chart_is_chosen")
    yield State("install", "remembered", "attempt", "upgrade")
    for phase, pending in (("install", "pending-install"), ("upgrade", "pending-upgrade")):
        yield State(phase, "helm", "helm", phase)
        yield State(phase, "record", "record", pending)
        yield State(phase, "hook", "hook", "")
        yield State(phase, "deployed", "record", "deployed")
        yield State(phase, "helm-ended", "helm-ended", phase)
        yield State(phase, "pods", "log", "children_are_ready")
    yield State("upgrade", "remembered", "attempt", "upgrade")
    yield State("rollback", "failed", "log", "last_run_is_noted")
    yield State("rollback", "remembered", "attempt", "rollback")
    yield State("rollback", "helm", "helm", "rollback")
    yield State("rollback", "record", "record", "pending-rollback")
    yield State("rollback", "helm-ended", "helm-ended", "rollback")
    yield State("uninstall", "remembered", "attempt", "uninstall")
    yield State("uninstall", "helm", "helm", "uninstall")
    yield State("uninstall", "record", "record", "uninstalling")
    yield State("uninstall", "helm-ended", "helm-ended", "uninstall")
    yield State("uninstall", "sweep", "log", "leftovers_are_gone")
    yield State("uninstall", "claim", "claim-gone", "")


REVISION = {"install": 1, "upgrade": 2, "rollback": 3, "uninstall": 1}
"""The revision that is made, or removed, in each phase."""

CASES = [(state, nth) for nth in range(1, TIMES + 1) for state in _states()]
EVERYDAY = random.Random(SEED).sample(CASES, SLICE)
_table: list[tuple[str, int, float, int]] = []


@pytest.fixture(scope="module")
def operator(
    moorage: tools.Cluster, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[outside.Operator]:
    """The operator outside the cluster, with the charts of these tests."""
    with outside.instead(moorage, tmp_path_factory.mktemp("operator"), charts=conftest.CHARTS) as running:
        yield running
    with request.config.pluginmanager.get_plugin("capturemanager").global_and_fixture_disabled():
        print(f"\nseed {SEED}: {len(_table)} kills\n{'state':<24} nth  seconds  revisions")
        for state, nth, seconds, revisions in _table:
            print(f"{state:<24} {nth:>3} {seconds:>8.1f} {revisions:>10}")


@pytest.mark.parametrize(
    ("state", "nth"),
    [
        pytest.param(*case, id=f"{case[0]}-{case[1]}", marks=[] if case in EVERYDAY else [pytest.mark.campaign])
        for case in CASES
    ],
)
def test_a_kill_is_survived(state: State, nth: int, operator: outside.Operator, collector: conftest.Make) -> None:
    """Ready with the right configuration, no revision without cause, nothing stuck, and at the end nothing left."""
    delay = random.Random(f"{SEED}/{state}/{nth}").uniform(0, 0.1)
    life = Life(operator, collector)
    try:
        life.run(state, delay)
    except AssertionError as error:
        raise AssertionError(f"seed {SEED}, state {state}, repetition {nth}, delay {delay:.3f} s: {error}") from error
    _table.append((str(state), nth, life.seconds, life.revisions))


class Life:
    """One Collector, from its first apply to its end, with one kill on the way."""

    def __init__(self, operator: outside.Operator, collector: conftest.Make) -> None:
        self._operator, self._one = operator, collector(chart="tricky", apply=False)
        self._hooked = False
        self.seconds, self.revisions = 0.0, 0

    def run(self, state: State, delay: float) -> None:
        """All phases up to that of the state, in which the kill happens; then the end."""
        self._hooked = state.name in HOOKED
        self._phase("install", state, delay, lambda: self._apply("first"), lambda: self._is_ready("first"))
        self._check(changes=1)
        if state.phase == "upgrade":
            self._phase("upgrade", state, delay, lambda: self._apply("second"), lambda: self._is_ready("second"))
            self._check(changes=2)
        if state.phase == "rollback":
            self._phase("rollback", state, delay, lambda: self._apply("broken"), self._is_rolled_back)
            self._check(changes=3)
        self._phase("uninstall", state, delay, self._delete, lambda: self._one.object() is None)
        assert self._one.leftovers() == []

    def _phase(
        self, phase: str, state: State, delay: float, begin: Callable[[], None], ended: Callable[[], Any]
    ) -> None:
        if phase != state.phase:
            begin()
            outside.converged(f"the end of {phase}", ended)
            return
        with Moment(self._operator, self._one, state) as moment:
            begin()
            moment.wait()
            time.sleep(delay)  # where in the state it is hit, by the seed
            children = self._operator.kill()
        tools.wait("no helm outlives its operator", lambda: not any(map(outside.alive, children)), within=30)
        self._operator.start()
        self.seconds = outside.converged(f"the end of {phase} after the kill", ended)

    # --- what is done

    def _apply(self, said: str) -> None:
        pod = trouble.pod(f"{trouble.SLEEP}  # {said}", labels={"colour": "red" if said == "broken" else "blue"})
        values = pod | {"data": {"said": said}}
        if self._hooked:
            values["hook"] = {"event": "post-install,post-upgrade,post-rollback", "run": HOOK}
        configuration = tools.configuration(values)
        if said == "first":
            self._one.cluster.apply(_body(self._one, configuration))
        else:
            self._one.edit(collector={"configuration": configuration})

    def _delete(self) -> None:
        self._one.cluster.kubectl("delete", "collector", self._one.name, "--wait=false")

    # --- what must come of it

    def _is_ready(self, said: str) -> bool:
        found = self._one.object()
        if found["status"]["observedGeneration"] != found["metadata"]["generation"]:
            return False
        if self._one.condition("Ready").get("status") != "True":
            return False
        data = self._one.cluster.get("configmap", self._one.release, "-n", self._one.tenant)["data"]
        assert data["said"] == said, "Ready with another configuration"
        return True

    def _is_rolled_back(self) -> bool:
        ready = self._one.condition("Ready")
        if ready.get("reason") != "UpgradeFailed" or "was restored" not in ready["message"]:
            return False
        return bool(self._one.condition("Available")["status"] == "True")

    def _check(self, changes: int) -> None:
        """As many revisions as there were causes: changes of the spec, and runs that the kill cut short."""
        history = self._one.history()
        cut_short = [each for each in history if "interrupted" in each["description"]]
        self.revisions = len(history)
        assert len(history) == changes + len(cut_short), history
        assert len(cut_short) <= 1, history
        assert history[-1]["status"] == "deployed", history
        assert {each["status"] for each in history} <= {"deployed", "superseded", "failed"}, history
        claim = self._one.cluster.get("configmap", f"release.{self._one.release}", "-n", self._one.tenant)
        assert self._one.object()["metadata"]["uid"] in claim["data"]["owner"]
        assert self._one.release in claim["data"]["inventory"]


class Moment:
    """Notices when a state is reached, by the operator's log, its children, or watches of the cluster."""

    def __init__(self, operator: outside.Operator, one: tools.Collector, state: State) -> None:
        self._operator, self._one, self._state = operator, one, state
        self._come = threading.Event()
        self._over = threading.Event()
        self._revision = str(REVISION[state.phase])
        self._jobs = 0
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Moment:
        sign, value, one = self._state.sign, self._state.value, self._one
        if sign == "log":
            self._operator.on_line = self._on_line
        elif sign in ("helm", "helm-ended"):
            threading.Thread(target=self._follow_helm, daemon=True).start()
        elif sign == "attempt":
            self._watch("collectors", "-n", one.namespace, "--field-selector", f"metadata.name={one.name}")
        elif sign == "record":
            self._watch("secrets", "-n", one.tenant, "-l", f"owner=helm,name={one.release}")
        elif sign == "hook":
            self._watch("jobs", "-n", one.tenant)
        elif sign in ("claim", "claim-gone"):
            self._watch("configmaps", "-n", one.tenant, "-l", "moorage.dev/claim")
        else:
            raise ValueError(f"no way to notice {sign} {value}")
        return self

    def __exit__(self, *_: object) -> None:
        self._operator.on_line = lambda _: None
        self._over.set()
        self._stack.close()

    def wait(self) -> None:
        """Until the moment has come."""
        assert self._come.wait(tools.PATIENCE), f"{self._state} was never reached"

    def _watch(self, *args: str) -> None:
        watch = self._one.cluster.reader.watch(*args, on_event=self._on_event)
        self._stack.callback(watch.close)

    def _on_line(self, line: dict[str, Any]) -> None:
        if line.get("name") == self._one.name and line.get("step") == self._state.value:
            self._come.set()

    def _on_event(self, event: str, body: dict[str, Any]) -> None:
        match self._state.sign:
            case "attempt":
                attempt = body.get("status", {}).get("attempt") or {}
                seen = [attempt.get("action"), str(attempt.get("revision")), attempt.get("reason")]
                come = seen == [self._state.value, self._revision, None]
            case "record":
                labels = body["metadata"]["labels"]
                come = [labels.get("status"), labels.get("version")] == [self._state.value, self._revision]
            case "hook":  # that of the install is there when an upgrade begins
                self._jobs += event == "ADDED"
                come = self._jobs == REVISION[self._state.phase]
            case "claim":
                come = event == "ADDED"
            case _:
                come = event == "DELETED"
        if come:
            self._come.set()

    def _follow_helm(self) -> None:
        """Often, as nothing tells of a child's start."""
        running = False
        while not self._over.is_set():
            now = any(self._state.value in _command(pid) for pid in self._operator.children())
            if (now and self._state.sign == "helm") or (running and not now):
                self._come.set()
                return
            running = now
            time.sleep(0.003)  # the pace of polling, not a condition


def _command(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")[1:2]
    except (FileNotFoundError, ProcessLookupError):
        return []


def _body(one: tools.Collector, configuration: str) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1alpha",
        "kind": "Collector",
        "metadata": {"name": one.name, "namespace": one.namespace},
        "spec": {
            "collector": {"name": "tricky", "configuration": configuration},
            "tenant": {"reference": one.tenant, "instance": "main"},
            "policy": {"readyTimeoutSeconds": 30},
        },
    }
