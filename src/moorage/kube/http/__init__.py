"""Bytes to the API server and back: the transport, its connections, and websockets for `exec`."""
