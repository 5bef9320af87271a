"""An operator as a process of its own, which tells of each write by a line on its output, before it is sent.

python -m tests.api.runtime.process KUBECONFIG NAMESPACE
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time

import structlog

from moorage.kube import client as kube_client
from moorage.kube import credentials, transport
from tests.api.runtime import operate


class TellingWire(operate.Wire):
    """Says `epoch-seconds what` of each write."""

    async def request(self, method: str, path: str, **given: object) -> transport.Response:
        if method != "GET":
            print(time.time(), method, path, flush=True)
        return await super().request(method, path, **given)


class TellingOperator(operate.Operator):
    """Its client tells."""

    wire_of = TellingWire


async def _run(kubeconfig: str, namespace: str) -> bool:
    wire = transport.AiohttpTransport(await credentials.from_kubeconfig(kubeconfig))
    try:
        return await TellingOperator(kube_client.Client(wire), namespace, elect=True).task
    finally:
        await wire.close()


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    sys.exit(0 if asyncio.run(_run(*sys.argv[1:])) else 1)
