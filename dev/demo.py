"""`make demo`: from nothing to a telemetry collector that moorage deployed and that answers, on a real Kubernetes.

Every stage is skipped when its outcome is there already, so a second run takes seconds.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from typing import Any, TypeVar

from . import deploy, stage
from . import place as places

T = TypeVar("T")

EXAMPLE = "examples/collector/hello.yaml"
NAME, NAMESPACE = "acme-collector", "default"
READY_WITHIN, SEEN_WITHIN = 180.0, 120.0  # seconds

CORES = os.cpu_count() or 1
PARTS = tuple(
    (what, seconds * 2 / CORES, made)
    for what, seconds, made in (
        ("Kubernetes, from its Go modules", 300, places.BIN / "kubernetes"),
        ("helm, from its Go modules", 90, places.BIN / "helm"),
        ("the cluster's DNS and volumes, from Go modules", 65, places.BIN / "provisioner"),
        ("the OpenTelemetry Collector, from its Go modules", 70, deploy.IMAGES / "collector.tar"),
        ("moorage's image: Debian's Python and moorage", 30, deploy.IMAGES / "operator.tar"),
    )
)
"""What is made once: its name, the seconds that it takes (measured on two cores), and where it is."""

START = 45.0
"""Seconds for all that comes each time."""


def work() -> None:
    """The whole demonstration."""
    began = time.monotonic()
    place = places.find()
    deploy.chart(place, _cluster(place))
    release, tenant = _collector(place)
    _telemetry(place, release, tenant)
    _show(place)
    print(_next(place, release, tenant, time.monotonic() - began))


def _cluster(place: places.Place) -> dict[str, str]:
    """A cluster with the images; returns the hash of each image's inputs."""
    print(_outlook(place), flush=True)
    if place.context:
        places.up(place)
        return deploy.images(place)
    places.packages()

    def own() -> dict[str, str]:
        return deploy.build(["collector"])

    def testbed() -> dict[str, str]:
        places.bring_up(place, "node")
        return deploy.build(["operator"])  # helm, which was built with the testbed, is part of it

    # what compiles, what downloads and what starts leave room for one another
    collector, operator = stage.together(own, testbed)
    digests = {**collector, **operator}
    deploy.load(place, digests)
    return digests


def _outlook(place: places.Place) -> str:
    """What comes and how long it takes, by what is there already."""
    todo = [(what, seconds) for what, seconds, made in PARTS if not (made.exists() or place.context)]
    total = sum(seconds for _, seconds in todo) + START
    lines = [f"  {what:<50} {_minutes(seconds)}" for what, seconds in todo]
    lines.append(f"  {'start it, install moorage, apply an example':<50} {_minutes(START)}")
    again = " Built once, the next time takes half a minute." if todo else ""
    return "\n".join(
        [f"From here to a Collector that answers: {_minutes(total)}, on {CORES} cores.{again}", *lines, ""]
    )


def _minutes(seconds: float) -> str:
    minutes = seconds / 60
    return f"about {seconds:.0f} s" if minutes < 1 else f"about {minutes:.0f} min"


def _collector(place: places.Place) -> tuple[str, str]:
    """Apply the example and follow it until it is ready; returns the release and its namespace."""
    with stage.stage(f"apply {EXAMPLE}") as it:
        it.hint(place.kubectl("apply", "-f", str(stage.ROOT / EXAMPLE)).strip())
    with stage.stage(f"Collector {NAME}") as it:

        def ready() -> Any:
            found = place.get("collector", NAME, "-n", NAMESPACE)
            conditions = {c["type"]: c for c in found.get("status", {}).get("conditions", ())}
            said = conditions.get("Ready")
            it.say(f"Ready={said['status']}  {said['reason']}: {said['message']}" if said else "not looked at yet")
            current = found["status"].get("observedGeneration") == found["metadata"]["generation"]
            if said and said["status"] == "True" and current:
                return found
            if conditions.get("Stalled", {}).get("status") == "True":
                raise stage.Failed(f"{said['reason'] if said else ''}: {said['message'] if said else ''}")
            return None

        found = _until(ready, READY_WITHIN, lambda: f"it is not ready.\n{deploy.trouble(place)}")
    release = found["status"]["release"]
    return release["name"], release["namespace"]


def _telemetry(place: places.Place, release: str, tenant: str) -> None:
    """Send a log record by OTLP over HTTP to the collector's Service, and find it in the collector's own log."""
    marker = f"hello-{secrets.token_hex(4)}"
    record = {"timeUnixNano": str(time.time_ns()), "severityText": "INFO", "body": {"stringValue": marker}}
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "demo"}}]}
    body = {"resourceLogs": [{"resource": resource, "scopeLogs": [{"logRecords": [record]}]}]}
    with stage.stage("send one log record by OTLP") as it, place.forwarded(f"service/{release}", tenant, 4318) as url:

        def sent() -> bool:
            request = urllib.request.Request(
                f"{url}/v1/logs", json.dumps(body).encode(), {"Content-Type": "application/json"}
            )
            try:
                with urllib.request.urlopen(request, timeout=5) as answer:
                    return bool(answer.status == 200)
            except OSError as error:
                it.hint(str(error))
                return False

        _until(sent, SEEN_WITHIN, lambda: f"the Service {tenant}/{release} takes no OTLP at port 4318")
        it.hint(f"POST /v1/logs to service/{release}, port 4318: {marker}")
    with stage.stage("find it in the collector's log") as it:

        def seen() -> str:
            log = place.kubectl("logs", f"deployment/{release}", "-n", tenant, "--tail=200")
            return next((line for line in log.splitlines() if marker in line), "")

        it.hint(_until(seen, SEEN_WITHIN, lambda: f"{marker} did not come out of deployment/{release}").strip())


def _show(place: places.Place) -> None:
    command = [sys.executable, "-m", "moorage", "status", f"collector/{NAME}", "-n", NAMESPACE, *place.flags]
    print(f"\n$ moorage status collector/{NAME}", flush=True)
    subprocess.run(command, env={**os.environ, **place.environment}, check=False)


def _next(place: places.Place, release: str, tenant: str, seconds: float) -> str:
    how = f"kubectl config use-context {place.context}" if place.context else 'eval "$(make -s env)"'
    tries = (
        (how, "" if place.context else "kubectl, helm and moorage of this tree, on the testbed"),
        ("kubectl get collectors", ""),
        (f"helm history {release} -n {tenant}", "what moorage did, in Helm's own records"),
        (f"kubectl delete service {release} -n {tenant}", "moorage puts it back"),
        (f"moorage explain collector/{NAME}", "every step, and why it stands where it does"),
        (f"kubectl delete -f {EXAMPLE}", "and nothing of it stays behind"),
    )
    lines = [f"  {command:<50}{f'# {why}' if why else ''}".rstrip() for command, why in tries]
    down = "" if place.context else " `make down` takes the testbed away."
    return "\n".join(
        [
            "",
            f"Done in {seconds:.0f} s. What to try next:",
            "",
            *lines,
            "",
            f"docs/quickstart.md goes on from here.{down}",
        ]
    )


def _until(look: Callable[[], T], within: float, otherwise: Callable[[], str]) -> T:
    """The first true answer. Raises Failed with `otherwise()` after `within` seconds."""
    end = time.monotonic() + within
    while not (found := look()):
        if time.monotonic() >= end:
            raise stage.Failed(f"after {within:g} s {otherwise()}")
        time.sleep(0.3)
    return found


if __name__ == "__main__":
    sys.exit(stage.main(["make demo"], work))
