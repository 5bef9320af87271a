"""Pods whose servers run within the test, on a node of `kubelet`: each listens at its pod's own address on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from aiohttp import web

from moorage.api import conditions
from tests import listening
from tests.api.xsld import kubelet

Answer = Callable[[str], Awaitable[Any]]
"""A path to what is answered there, as JSON."""


class Server(kubelet.Container):
    """One incarnation of a pod. It is ready while `serving` is entered, which is until the pod is deleted."""

    listens = False

    def serving(self) -> contextlib.AbstractAsyncContextManager[None]:
        """What runs in it listens."""
        raise NotImplementedError

    async def _run_once(self) -> None:
        began = {"startedAt": conditions.timestamp(time.time())}
        self.listens = True
        try:
            async with self.serving():
                await self._tell("Running", {"running": began}, ready=True)
                await self.deleted.wait()
        finally:
            self.listens = False


Prove = Callable[[Mapping[str, str], bytes], Mapping[str, str]]
"""Headers of a question, and what is answered, to headers of the answer. Raises PermissionError for who may not ask."""


@contextlib.asynccontextmanager
async def http(address: str, port: int, answer: Answer, prove: Prove = lambda _, __: {}) -> AsyncIterator[None]:
    """A server for every path."""

    async def handle(asked: web.BaseRequest) -> web.Response:
        text = json.dumps(await answer(asked.path)).encode()
        try:
            return web.Response(body=text, content_type="application/json", headers=prove(asked.headers, text))
        except PermissionError as error:
            return web.Response(status=401, text=str(error))

    server = web.Server(handle)
    entrance = await asyncio.get_running_loop().create_server(server, address, port)
    try:
        yield
    finally:
        await listening.close(entrance)
        await server.shutdown(0)
