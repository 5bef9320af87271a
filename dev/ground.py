"""What tests stand on: binaries, images, and a testbed for each worker. Each part is there as soon as it can be.

    binaries of level api ─┬─ binaries of level node ── testbeds ─┬─ the images in them
                           └─ images ── servers for some tests ───┘

Workers share no cluster, so that a test may restart the operator, drain the node or count what is written while others
run. $MOORAGE_TEST_KUBECONFIG names one cluster for all, with the images loaded; then nothing is made here.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from concurrent import futures
from pathlib import Path

from . import deploy, stage
from . import place as places

INDEXES = ("4", "5", "6", "8", "9", "10", "11")
"""Of testbeds: the lower ones are for people, 7 is for the testbed's own tests."""

SERVED = "e2e"
"""The tier whose tests have a Runtime's servers run as pods."""

ROOMS = 32
"""Threads, all of which wait most of the time: more than there are parts."""


class Ground:
    """Its parts are begun by `begin`; asking for one waits for it, and raises Failed when it can't be had."""

    def __init__(self) -> None:
        given = os.environ.get("MOORAGE_TEST_KUBECONFIG", "")
        self.given = places.Place(given, name="the cluster") if given else None
        self._states = Path(os.environ.get("TESTBED_STATE") or stage.ROOT / "build" / "testbed")
        self._pool = futures.ThreadPoolExecutor(ROOMS)
        self._claims = threading.Lock()
        self._beds: dict[str, list[futures.Future[places.Place]]] = {}

    def begin(self, wanted: Mapping[str, int]) -> None:
        """Begin to make what these need: name of a tier -> number of its testbeds."""
        if self.given:
            return
        self._tools = self._pool.submit(self._binaries, "api")
        self._rest = self._pool.submit(self._binaries, "node")
        if wanted:
            self._images = self._pool.submit(self._built)
        if SERVED in wanted:
            self._servers = self._pool.submit(self._built_servers)
        for tier, number in wanted.items():
            self._beds[tier] = [self._pool.submit(self._bed, f"{tier}-{n}") for n in range(number)]

    def helm(self) -> None:
        """Return when helm and kubectl are there."""
        if not self.given:
            self._tools.result()

    def binaries(self) -> None:
        """Return when all that a testbed is made of is there."""
        if not self.given:
            self._rest.result()

    def beds(self, tier: str) -> list[places.Place]:
        """The clusters of a tier, one for each worker."""
        return [self.given] if self.given else [bed.result() for bed in self._beds[tier]]

    def settle(self) -> None:
        """Leave nothing half-made behind when the tests ended first."""
        self._pool.shutdown(wait=True)

    def _binaries(self, level: str) -> None:
        if level == "api":
            places.packages()
        else:
            self._tools.result()
        with stage.stage(f"binaries of level {level}") as it:
            it.run(places.TESTBED, "build", "--level", level)

    def _built(self) -> dict[str, str]:
        self._tools.result()  # helm is part of an image
        return deploy.build(name for name in deploy.INPUTS if name not in deploy.SERVERS)

    def _built_servers(self) -> dict[str, str]:
        self._images.result()  # all wait for those
        return deploy.build(deploy.SERVERS)

    def _bed(self, name: str) -> places.Place:
        place = places.Place(str(self._states / name / "kubeconfig"), state=self._states / name, name=f"testbed {name}")
        self._tools.result()
        with self._claims:  # an index is seen to be taken when something runs there
            places.bring_up(place, "api", indexes=INDEXES)
        self._rest.result()
        places.bring_up(place, "node")
        deploy.load(place, self._images.result())
        if name.startswith(f"{SERVED}-"):
            deploy.load(place, self._servers.result())
        return place
