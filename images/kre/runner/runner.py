"""A stand-in for the product's Python runner: it runs a node's handler for each message that the node subscribes to.

The handler is the file KRT_HANDLER_PATH below KRT_BASE_PATH: `init(ctx)` once, if it has one, then
`default_handler(ctx, data)` for each message, `data` a google.protobuf.Any; either may be a coroutine. A message is
acknowledged once it is handled and what came of it is with NATS. A handler that fails is told to whoever waits for the
answer: what has an error in its header is handed on by all nodes, and handled by none.

Its messages are its own, and those of images/kre/entrypoint: see flow.go there.
"""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import nats
from google.protobuf import any_pb2, message
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext

REQUEST, ERROR = "Kre-Request", "Kre-Error"
ANSWER_WITHIN = 30.0
"""Seconds that NATS gets to take a message."""


class Context:
    """What a handler is given: its node's memory, and the way on."""

    def __init__(self, runner: Runner, request: str = "") -> None:
        self._runner, self.request_id = runner, request

    def set(self, key: str, value: Any) -> None:
        """Keep something for the next messages of this pod."""
        self._runner.memory[key] = value

    def get(self, key: str) -> Any:
        """What was kept; None where nothing was."""
        return self._runner.memory.get(key)

    async def send_output(self, value: message.Message, topic: str = "") -> None:
        """To whoever subscribes to this node, or to that topic of it; what the exitpoint sends answers the call."""
        packed = any_pb2.Any()
        packed.Pack(value)
        subject = f"{self._runner.output}.{topic}" if topic else self._runner.output
        await self._runner.send(subject, packed.SerializeToString(), {REQUEST: self.request_id})


class Runner:
    """One node's pod."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.memory: dict[str, Any] = {}
        self.output = environment["KRT_NATS_OUTPUT"]
        self._stream, self._node = environment["KRT_NATS_STREAM"], environment["KRT_NODE_NAME"]
        self._inputs = environment["KRT_NATS_INPUTS"].split(",")
        self._server = environment["KRT_NATS_SERVER"]
        handler = load(environment["KRT_BASE_PATH"], environment["KRT_HANDLER_PATH"])
        self._init: Callable[[Context], Any] | None = getattr(handler, "init", None)
        self._handle: Callable[[Context, any_pb2.Any], Any] = handler.default_handler
        self._jetstream: JetStreamContext

    async def run(self, ending: asyncio.Event) -> None:
        """Until the end is asked for; what was taken by then is handled."""
        if self._init is not None:
            await _done(self._init(Context(self)))
        connection: Client = await nats.connect(self._server, name=f"node {self._node}", max_reconnect_attempts=-1)
        self._jetstream = connection.jetstream(timeout=ANSWER_WITHIN)
        reading = [await self._subscribed(subject) for subject in self._inputs]
        print(f"node {self._node} reads {', '.join(self._inputs)}", flush=True)
        await ending.wait()
        # these first: what they still handle needs the answers of NATS, which the connection's own drain would end
        await asyncio.gather(*(each.drain() for each in reading))
        await connection.drain()

    async def _subscribed(self, subject: str) -> JetStreamContext.PushSubscription:
        """By the consumer that is there for it, which the pods of a node share."""
        durable = f"{subject.replace('.', '-').replace('*', '=')}-{self._node}"
        return await self._jetstream.subscribe(
            subject, queue=durable, durable=durable, stream=self._stream, cb=self._take, manual_ack=True
        )

    async def send(self, subject: str, body: bytes, headers: dict[str, str]) -> None:
        """To NATS, which says that it has it."""
        await self._jetstream.publish(subject, body, stream=self._stream, headers=headers)

    async def _take(self, taken: Msg) -> None:
        headers = taken.headers or {}
        request = headers.get(REQUEST, "")
        if ERROR in headers:
            await self.send(self.output, b"", {REQUEST: request, ERROR: headers[ERROR]})
        else:
            try:
                data = any_pb2.Any()
                data.ParseFromString(taken.data)
                await _done(self._handle(Context(self, request), data))
            except Exception as error:  # whatever a handler raises
                traceback.print_exc()
                said = " ".join(f"node {self._node} failed: {error!r}".split())  # a header is one line
                await self.send(self.output, b"", {REQUEST: request, ERROR: said})
        await taken.ack()


async def _done(value: Any) -> None:
    if inspect.isawaitable(value):
        await value


def load(base: str, path: str) -> Any:
    """The handler's module; it finds what lies beside it, and at the top of the archive."""
    file = os.path.join(base, path)
    sys.path[:0] = [os.path.dirname(file), base]
    spec = importlib.util.spec_from_file_location("handler", file)
    if spec is None or spec.loader is None:
        sys.exit(f"{file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def main() -> None:
    """Run the node that the environment describes."""
    ending = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ending.set)
    await Runner(os.environ).run(ending)


if __name__ == "__main__":
    asyncio.run(main())
