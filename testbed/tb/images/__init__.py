"""Builds small container images without a container engine.

`spec` says what, `sources` and `recipe` collect it, `archive` writes it.
"""
