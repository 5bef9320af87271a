"""Writes the table of the keys that the product's classes know: `python -m dev.opencga`."""

from __future__ import annotations

import msgspec

from moorage.operators.opencga.wanted import product_keys

from . import product


def table() -> bytes:
    """All of it, by version and file. Raises product.MissingError."""
    made = {}
    for version in product.VERSIONS:
        with product.product(version) as asked:
            made[version] = {file: asked.keys(file) for file in product.CLASSES}
    return msgspec.json.format(msgspec.json.encode(made, order="sorted"), indent=1) + b"\n"


if __name__ == "__main__":
    product_keys.TABLE.write_bytes(table())
