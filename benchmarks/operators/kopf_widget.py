"""The benchmark's Widget operator on kopf, in an environment of its own (requirements/benchmarks.txt).

Children are applied over a bare client, as kopf has none. Peering, Events and the scan for new kinds are off, and
ConfigMaps are selected by the server: all of that is in kopf's favour.
"""

from __future__ import annotations

import asyncio
import logging
import os
from typing import Any

import kopf
import uvloop

from benchmarks import bare
from benchmarks.operators import names

WIDGETS = (names.GROUP, names.VERSION, "widgets")
CHILDREN = ("", "v1", "configmaps")


class Keeper:
    """The client, which needs a running loop."""

    client: bare.Client
    namespace: str

    async def apply(self, name: str, uid: str, text: str) -> None:
        path = names.config_maps(self.namespace, names.child(name))
        await self.client.apply(path, names.body(self.namespace, name, uid, text), manager="kopf")


KEEPER = Keeper()


@kopf.on.login()
def login(**given: Any) -> kopf.ConnectionInfo | None:
    return kopf.login_with_kubeconfig(**given)


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.watching.label_selectors[CHILDREN] = names.OWNER


@kopf.index(*CHILDREN, labels={names.OWNER: kopf.PRESENT})
def texts(name: str, body: kopf.Body, **_: Any) -> dict[str, str]:
    return {name: body.get("data", {}).get("text", "")}


@kopf.index(*WIDGETS)
def wanted(name: str, uid: str, spec: kopf.Spec, **_: Any) -> dict[str, tuple[str, str]]:
    return {name: (uid, spec.get("text", ""))}


@kopf.on.resume(*WIDGETS)
@kopf.on.create(*WIDGETS)
@kopf.on.update(*WIDGETS, field="spec")
async def keep(
    name: str,
    uid: str,
    spec: kopf.Spec,
    meta: kopf.Meta,
    status: kopf.Status,
    patch: kopf.Patch,
    texts: kopf.Index[str, str],
    **_: Any,
) -> None:
    text = spec.get("text", "")
    if text not in texts.get(names.child(name), ()):
        await KEEPER.apply(name, uid, text)
    if (status.get("text"), status.get("observedGeneration")) != (text, meta["generation"]):
        patch.status.update(names.status(text, meta["generation"]))


@kopf.on.event(*CHILDREN, labels={names.OWNER: kopf.PRESENT})
async def mend(
    event: kopf.RawEvent,
    body: kopf.Body,
    labels: kopf.Labels,
    wanted: kopf.Index[str, tuple[str, str]],
    **_: Any,
) -> None:
    """A ConfigMap that was deleted or changed is made right at once."""
    text = None if event["type"] == "DELETED" else body.get("data", {}).get("text", "")
    name = labels[names.OWNER]
    for uid, right in wanted.get(name, ()):
        if event["type"] is not None and text != right:
            await KEEPER.apply(name, uid, right)


async def nothing(**_: Any) -> None:
    """What idle watches lead to."""


async def _run() -> None:
    given = names.options()
    os.environ["KUBECONFIG"] = given.kubeconfig
    KEEPER.namespace = given.namespace
    for group, version, _, plural in names.WIDE if given.wide else ():
        kopf.on.event(group, version, plural)(nothing)
    async with bare.connected(given.kubeconfig, connections=given.workers) as client:
        KEEPER.client = client
        await kopf.operator(standalone=True, namespaces=[given.namespace])


def main() -> None:
    """Run until SIGTERM."""
    logging.basicConfig(level=logging.WARNING)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run())


if __name__ == "__main__":
    main()
