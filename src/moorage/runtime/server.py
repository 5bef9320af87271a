"""/healthz, /readyz and /metrics over plain HTTP.

/healthz says no when a watch has had no contact for too long: a silent watch is a dead operator. /readyz says yes once
all caches are filled, leader or not, so that a standby counts as available.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web

from . import telemetry


class Server:
    """Serves what the three callables say."""

    def __init__(
        self,
        *,
        host: str,
        port: int,
        unhealthy: Callable[[], list[str]],
        unready: Callable[[], list[str]],
        metrics: Callable[[], telemetry.Metrics],
    ) -> None:
        self._host, self._port = host, port
        self._unhealthy, self._unready, self._metrics = unhealthy, unready, metrics
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Listen. Raises OSError when the port is taken."""
        app = web.Application()
        app.router.add_get("/healthz", self._answer(self._unhealthy))
        app.router.add_get("/readyz", self._answer(self._unready))
        app.router.add_get("/metrics", self._on_metrics)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False)
        await self._runner.setup()
        await web.TCPSite(self._runner, self._host, self._port).start()

    async def stop(self) -> None:
        """Close the socket."""
        if self._runner:
            await self._runner.cleanup()

    @staticmethod
    def _answer(complaints: Callable[[], list[str]]) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(_: web.Request) -> web.Response:
            wrong = complaints()
            return web.Response(text="\n".join(wrong) or "ok", status=503 if wrong else 200)

        return handle

    async def _on_metrics(self, _: web.Request) -> web.Response:
        return web.Response(body=self._metrics().render(), headers={"Content-Type": "text/plain; version=0.0.4"})
