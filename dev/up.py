"""`make up`: the testbed, or a look at the context that is named."""

from __future__ import annotations

import sys

from . import place as places
from . import stage


def work() -> None:
    """Bring it up, and say how to reach it."""
    place = places.find()
    places.up(place)
    if not place.context:
        print('\neval "$(make -s env)" puts kubectl, helm and moorage on your PATH, and points them at it.')


if __name__ == "__main__":
    sys.exit(stage.main(["make up"], work))
