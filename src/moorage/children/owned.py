"""Which objects a kind owns, as people's tools find them with the user's own rights: plain data. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from moorage.api import meta


class Owned(msgspec.Struct, frozen=True):
    """`pods` tell why another object is not ready; `live` is what was read with them: None is gone."""

    refs: tuple[meta.ObjectRef, ...] = ()
    pods: tuple[Mapping[str, Any], ...] = ()
    live: Mapping[meta.ObjectRef, Mapping[str, Any] | None] = {}
