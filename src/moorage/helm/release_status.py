"""What the status of every helm-backed kind tells about its release."""

from __future__ import annotations

from typing import Annotated

import msgspec

from moorage.api import common_status


class ChartStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The chart that a version constraint was resolved to, once."""

    name: str = ""
    version: str = ""
    digest: Annotated[str, msgspec.Meta(description="sha256 of the chart's content.")] = ""
    constraint: Annotated[str, msgspec.Meta(description="The constraint that was resolved.")] = ""
    source: Annotated[str, msgspec.Meta(description="Where the chart was found.")] = ""


class ReleaseStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The release as Helm records it."""

    name: str = ""
    namespace: str = ""
    revision: int = 0
    status: str = ""
    digest: Annotated[str, msgspec.Meta(description="Digest of chart and values of this revision.")] = ""


class Attempt(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The last run of helm, written down before it began."""

    id: str = ""
    action: Annotated[str, msgspec.Meta(description="upgrade, rollback or uninstall.")] = ""
    digest: str = ""
    revision: Annotated[int, msgspec.Meta(description="The revision that the run makes.")] = 0
    started: Annotated[str, msgspec.Meta(description="RFC 3339.")] = ""
    tries: Annotated[int, msgspec.Meta(description="Runs for this digest so far.")] = 0
    reason: Annotated[str, msgspec.Meta(description="Why it failed; empty while it runs and after success.")] = ""
    message: Annotated[str, msgspec.Meta(description="Helm's own words.")] = ""
    retry_at: Annotated[str, msgspec.Meta(description="When it is tried again, if it is (RFC 3339).")] = ""


class FailedDigest(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A digest that failed for good: it is not tried again unless asked for."""

    digest: str = ""
    reason: str = ""
    message: str = ""
    rolled_back_to: Annotated[int, msgspec.Meta(description="The revision that was restored, if one was.")] = 0


class Good(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The last revision that was seen ready: where a rollback goes."""

    revision: int = 0
    digest: str = ""


class InventoryStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """How many objects the release consists of, by kind, and how many are ready."""

    objects: int = 0
    ready: int = 0
    kinds: dict[str, int] = {}


class HelmStatus(common_status.Status, frozen=True, kw_only=True, rename="camel"):
    """Status of a helm-backed kind."""

    chart: ChartStatus = ChartStatus()
    release: ReleaseStatus = ReleaseStatus()
    inventory: InventoryStatus = InventoryStatus()
    attempt: Attempt = Attempt()
    failed: FailedDigest = FailedDigest()
    good: Good = Good()
    last_error: Annotated[str, msgspec.Meta(description="The last failure, in Helm's or Kubernetes' own words.")] = ""
