"""An operator as a process of its own, which tells of each write by a line on its output, before it is sent.

python -m tests.api.runtime.process KUBECONFIG NAMESPACE
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from typing import Any

import structlog

from moorage.kube import client as kube_client
from moorage.kube import credentials, transport
from tests.api.runtime import operate


class Telling(transport.AiohttpTransport):
    """Says `epoch-seconds method path` of each write."""

    async def request(self, method: str, path: str, **given: Any) -> transport.Response:
        if method != "GET":
            print(time.time(), method, path, flush=True)
        return await super().request(method, path, **given)


async def _run(kubeconfig: str, namespace: str) -> bool:
    wire = Telling(await credentials.from_kubeconfig(kubeconfig))
    try:
        return await operate.Operator(kube_client.Client(wire), namespace, elect=True).task
    finally:
        await wire.close()


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    sys.exit(0 if asyncio.run(_run(*sys.argv[1:])) else 1)
