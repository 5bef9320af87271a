"""What Collectors' configurations say, read once per text. They may hold secrets, and stay here.

A tenant's texts are read one at a time, and what may be large aside (see `helm.aside`), so that nobody else waits.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Hashable

import msgspec

from moorage.helm.charts import values
from moorage.helm.parsing import aside, helm_yaml, jobs
from moorage.runtime import freshness, source


class Read(msgspec.Struct, frozen=True):
    """The values of a configuration, or what is wrong with it."""

    given: values.Given | None
    fault: str = ""


@dataclasses.dataclass(frozen=True)
class Key:
    """One text of one tenant; the text itself only travels along."""

    tenant: str
    digest: bytes
    text: str = dataclasses.field(compare=False, repr=False)


class Configurations:
    """All that somebody reads now."""

    def __init__(self, work: aside.Aside, enqueue: Callable[[Hashable], None]) -> None:
        self._aside = work
        self._source: source.Source[Key, Read] = source.Source(
            "configuration", self._read, enqueue, concurrency=1, group=lambda key: key.tenant
        )

    def of(self, tenant: str, text: str, reader: Hashable) -> freshness.Observed[Read]:
        """What that text says; `reader` is enqueued when it is known."""
        return self._source.follow(Key(tenant, hashlib.sha256(text.encode()).digest(), text), reader)

    def forget(self, reader: Hashable) -> None:
        """The reader is gone."""
        self._source.forget(reader)

    async def stop(self) -> None:
        """End all reading."""
        await self._source.stop()

    async def _read(self, key: Key) -> Read:
        try:
            return Read(values.Given(await self._aside.run(key.tenant, jobs.configuration, key.text)))
        except (values.ValuesError, helm_yaml.TooLarge) as error:
            return Read(None, str(error))
        except aside.AsideError as error:
            raise source.SourceError("Unavailable", f"the configuration could not be read: {error}") from error
