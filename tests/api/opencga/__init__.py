"""Installations of OpenCGA on a real API server."""
