"""What the API server itself holds grids and templates to. Pure."""

from __future__ import annotations

from moorage.api import crd


def stays_in_its_cache(made: str) -> crd.Rule:
    """For the whole object: its cache can't be changed once it is `made` there, by that rule over its status.

    A name that is none of the cache that holds it was a mistake, and may be taken back or corrected at any time.
    """
    return crd.Rule(
        "!has(oldSelf.spec.cacheRef) || (has(self.spec.cacheRef) && self.spec.cacheRef == oldSelf.spec.cacheRef) || "
        f"!has(self.status) || !({made}) || (has(self.status.cache) && "
        "oldSelf.spec.cacheRef.name != self.status.cache && "
        "(!has(self.spec.cacheRef) || self.spec.cacheRef.name == self.status.cache))",
        "cacheRef can't be changed once it is made in that cache: delete it, and make it anew in the other one",
        field_path=".spec.cacheRef",
    )
