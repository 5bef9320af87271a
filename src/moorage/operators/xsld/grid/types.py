"""The DataGrid kind: the original's fields with their types; those that it lacks are marked "Added" in their text."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from moorage.api import common_status, crd, meta
from moorage.operators.xsld import names
from moorage.operators.xsld.within_cache import common_steps
from moorage.operators.xsld.within_cache import rules as cache_rules

Int32 = {"format": "int32"}
INT32_MAX = 2**31 - 1
"""Said as a limit, as the API server does not hold a number to its format."""


class Recovery(msgspec.Struct, frozen=True, rename="camel"):
    """What to do with a grid that is lost, or in Error."""

    policy: Annotated[
        Literal["Recreate", "None"],
        msgspec.Meta(description="Recreate deletes it and makes it anew, which can't bring its data back."),
    ] = "Recreate"
    max_attempts: Annotated[int, msgspec.Meta(ge=1, le=100)] = 5


_PRIME = crd.Rule(  # `has`: the server also tries a rule on the default of the whole spec, which is empty
    "!has(self.numPartition) || self.numPartition == 1 || [2,3,5,7,11,13,17,19,23,29,31].all(p, "
    "self.numPartition == p || self.numPartition % p != 0)",
    "numPartition must be 1 or a prime number",
    field_path=".numPartition",
)


class DataGridSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The desired state."""

    description: Annotated[str, msgspec.Meta(max_length=1024)] = ""
    grid_type: Annotated[
        Literal["Simple", "Session", "DynaCache", "Custom"],
        msgspec.Meta(description="Custom is made of a template, see templateName."),
    ] = "Simple"
    template_name: Annotated[str, msgspec.Meta(max_length=253)] = ""
    grid_capacity: Annotated[
        int, msgspec.Meta(ge=0, description="In MB; 0 is unlimited.", extra_json_schema={"format": "int64"})
    ] = 0
    num_partition: Annotated[
        int, msgspec.Meta(ge=1, le=1000, description="1 or a prime number.", extra_json_schema=Int32)
    ] = 3
    num_sync_replicas: Annotated[int, msgspec.Meta(ge=0, le=100, extra_json_schema=Int32)] = 0
    num_async_replicas: Annotated[int, msgspec.Meta(ge=0, le=100, extra_json_schema=Int32)] = 1
    lock_timeout: Annotated[int, msgspec.Meta(ge=0, le=INT32_MAX, description="Seconds.", extra_json_schema=Int32)] = 15
    transaction_timeout: Annotated[
        int, msgspec.Meta(ge=0, le=INT32_MAX, description="Seconds.", extra_json_schema=Int32)
    ] = 30
    time_to_live: Annotated[
        int, msgspec.Meta(ge=0, le=INT32_MAX, description="Seconds; 0 keeps entries for ever.", extra_json_schema=Int32)
    ] = 0
    owner_name: Annotated[str, msgspec.Meta(max_length=253)] = "xsadmin"
    group_name: Annotated[
        str, msgspec.Meta(max_length=253, description="A group of users; passed on only when it is set.")
    ] = ""
    use_authentication: bool = False
    use_authorization: bool = False
    use_cap_lru_evictor: bool = msgspec.field(name="useCapLRUEvictor", default=False)
    cache_ref: Annotated[
        common_steps.CacheRef | None, msgspec.Meta(description="Which cache; needed where the namespace has several.")
    ] = None
    grid_name: Annotated[
        str, msgspec.Meta(max_length=253, description="The name on the server; empty: metadata.name.")
    ] = ""
    deletion_policy: Annotated[
        Literal["Delete", "Retain"], msgspec.Meta(description="What becomes of the grid on the server.")
    ] = "Delete"
    recovery: Recovery = Recovery()

    __cel__ = (
        _PRIME,
        crd.Rule(
            "!has(self.gridType) || self.gridType != 'Custom' || (has(self.templateName) && self.templateName != '')",
            "a grid of type Custom needs templateName",
            field_path=".templateName",
        ),
        *crd.immutable("gridName"),
    )


class DataGridStatus(common_status.Status, frozen=True, kw_only=True, rename="camel"):
    """The observed state."""

    status: Annotated[str, msgspec.Meta(description="As the server says it: Created, Online, Stopped or Error.")] = ""
    cache: Annotated[str, msgspec.Meta(description="The cache that holds the grid.")] = ""
    task_id: Annotated[int, msgspec.Meta(description="The last task at the server.")] = 0
    asked: Annotated[
        str, msgspec.Meta(description="What was asked last: Create, Update or Delete, until it shows.")
    ] = ""
    asked_at: str = ""
    asked_generation: Annotated[int, msgspec.Meta(description="Of the spec that it was asked for.")] = 0
    made: Annotated[bool, msgspec.Meta(description="The grid was made by this resource, or found and taken over.")] = (
        False
    )
    last_applied_hash: Annotated[str, msgspec.Meta(description="Of the settings that the server has taken.")] = ""
    attempts: Annotated[
        int, msgspec.Meta(description="Failures since it was last well, and since the spec changed.")
    ] = 0
    failed_generation: Annotated[int, msgspec.Meta(description="Of the spec with which it failed so often.")] = 0
    refused: Annotated[str, msgspec.Meta(description="Why the server would not take the settings.")] = ""
    refused_generation: int = 0
    failed_at: str = ""


class DataGrid(msgspec.Struct, frozen=True):
    """A DataGrid, as its cache holds it."""

    metadata: meta.ObjectMeta
    spec: DataGridSpec = DataGridSpec()
    status: DataGridStatus = DataGridStatus()

    @property
    def server_name(self) -> str:
        """The grid's name on the server."""
        return self.spec.grid_name or self.metadata.name

    @property
    def holder(self) -> str:
        """The cache that the grid is in; empty: none yet."""
        return self.status.cache if self.status.made or self.status.asked else ""


def definition() -> dict[str, object]:
    """The CustomResourceDefinition."""
    return crd.crd(
        group=names.GROUP,
        version=names.VERSION,
        kind=names.GRID.kind,
        plural=names.GRID.plural,
        short_names=("grid",),
        spec=DataGridSpec,
        status=DataGridStatus,
        rules=(
            cache_rules.stays_in_its_cache(
                "(has(self.status.made) && self.status.made) || (has(self.status.asked) && self.status.asked != '')"
            ),
        ),
        columns=(
            crd.Column("Type", ".spec.gridType"),
            crd.Column("Capacity", ".spec.gridCapacity", type="integer"),
            crd.Column("Status", ".status.status"),
            crd.Column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
            crd.Column("Message", '.status.conditions[?(@.type=="Ready")].message', priority=1),
            crd.Column("Age", ".metadata.creationTimestamp", type="date"),
        ),
    )
