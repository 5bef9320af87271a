"""Everything that is decided on for a WekaManualOperation. Pure, and without secrets."""

from __future__ import annotations

import msgspec

from moorage.children import parts
from moorage.operators.weka import place
from moorage.runtime import freshness

from . import types


class NodeSeen(msgspec.Struct, frozen=True):
    """A node that the operation is for, or may be."""

    name: str
    ready: bool = True
    boot: str = ""  # id of its last start
    drives: tuple[str, ...] = ()  # serials that its annotation has as signed
    blocked: tuple[str, ...] = ()
    blocked_uuids: tuple[str, ...] = ()
    annotations: dict[str, str] = {}  # those that are Weka's, as they are
    taken: dict[str, str] = {}  # serials that containers have, and whose
    fault: str = ""  # what can't be read of it


class PodSeen(msgspec.Struct, frozen=True):
    """The pod of the operation on one node."""

    seen: parts.PodSeen
    node: str = ""
    ended: bool = False
    told: str = ""  # what it left as its last word
    why: str = ""  # why the kubelet ended it


class Objects(msgspec.Struct, frozen=True):
    """What the watches have of the operation."""

    nodes: dict[str, NodeSeen] = {}  # by name: of those that it is for, as status has them or else the spec
    pods: dict[str, PodSeen] = {}  # by name
    scripts: parts.Pair | None = None  # the ConfigMap


class Seen(place.Placed, frozen=True, kw_only=True):
    """The observation."""

    spec: types.WekaManualOperationSpec
    status: types.WekaManualOperationStatus
    objects: freshness.Observed[Objects]

    @property
    def there(self) -> Objects:
        """The objects; only for steps after they are known."""
        found = freshness.value_of(self.objects)
        if found is None:
            raise ValueError("the objects of the operation are not known yet")
        return found
