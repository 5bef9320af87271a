"""What the objects of a version are made from. Pure."""

from __future__ import annotations

import msgspec

from moorage.api import meta
from moorage.operators.kre import config, kinds, names

from . import types


class Wanted(msgspec.Struct, frozen=True):
    """A version, and what is around it."""

    metadata: meta.ObjectMeta
    spec: types.RuntimeVersionSpec
    runtime: str  # its name
    images: config.Images
    inputs: str = ""  # changes with what ConfigMaps and Secrets of the namespace hold

    @property
    def names(self) -> names.Names:
        """How all of it is called."""
        return names.Names(self.runtime, self.spec.version)

    @property
    def ref(self) -> meta.ObjectRef:
        """The version, which owns all of them."""
        return kinds.RUNTIME_VERSION.ref(self.metadata.namespace, self.metadata.name, self.metadata.uid)

    @property
    def labels(self) -> dict[str, str]:
        """On every object."""
        return {
            kinds.OF_VERSION: self.metadata.name,
            "runtime-id": self.runtime,
            "version-name": self.spec.version,
            "app.kubernetes.io/managed-by": "moorage",
        }
