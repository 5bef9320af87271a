"""Runtimes on a real API server."""
