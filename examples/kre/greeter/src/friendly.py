"""The last node: what it sends is the answer to the call."""

from typing import Any

from public_input_pb2 import Response


async def default_handler(ctx: Any, data: Any) -> None:
    """For each message of those whom the node subscribes to."""
    response = Response()
    data.Unpack(response)
    await ctx.send_output(Response(message=f"{response.message}! Nice to meet you."))
