"""The first node: greets whoever is named in the request."""

import os
from typing import Any

from public_input_pb2 import Request, Response


def init(ctx: Any) -> None:
    """Once, when the node starts."""
    ctx.set("greeting", os.environ["GREETING"])


async def default_handler(ctx: Any, data: Any) -> None:
    """For each message of those whom the node subscribes to."""
    request = Request()
    data.Unpack(request)
    await ctx.send_output(Response(message=f"{ctx.get('greeting')} {request.name}"))
