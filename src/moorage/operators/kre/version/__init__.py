"""Versions that run in a Runtime."""
