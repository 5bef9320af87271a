"""How the product is spoken to: every name, path and command in one table that a user can override.

The vendor publishes only part of it. A field marked "guess" is not known from any public source; a live server shows
its own names at https://MEMBER:9445/ibm/api/explorer. The override is the mapping `dialect` of the system's
configuration (`systems.xsld.dialect` of the chart), with the names below in camel case and only what differs:

    dialect:
      commands: {leave: RemoveServerTaskCommand}
      paths: {group: /group}

Where a field of an answer is named (sections `member`, `task`, `grid`, `template`) several names may stand, with spaces
between: the first that the answer has counts. `list` names the field that holds the list; empty: the answer is it.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from moorage.operators.dialect_fields import Port, Word


class Ports(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a member listens."""

    ui: Port = 9443
    data: Port = 9444
    admin: Port = 9445
    catalog: Port = 4809


class Paths(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Below `base`; {id} and {name} are filled in."""

    base: Word = "/wxsadmin/v1"
    tasks: Word = "/task"
    task_status: Word = "/task/{id}/status"
    task_cancel: Word = "/task/cancel/{id}/force"
    group: Word = "/cacheMemberGroup"  # guess
    grids: Word = "/grid"
    grid: Word = "/grid/{name}"
    templates: Word = "/gridTemplate"  # guess
    template: Word = "/gridTemplate/{name}"  # guess


class Commands(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Names of asynchronous commands."""

    join: Word = "NewMemberJoinTaskCommand"
    leave: Word = "RemoveMemberTaskCommand"  # guess
    replicate: Word = "DerbyReplicationTaskCommand"  # guess
    failover: Word = "DerbyFailoverTaskCommand"  # guess


class Parameters(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Names of the commands' parameters; all values are texts."""

    secret_key: Word = "secretKey"
    member: Word = "memberName"
    host: Word = "cacheMemberGroupHost"
    catalog: Word = "isCatalog"
    master: Word = "masterMemberName"  # guess
    slave: Word = "slaveMemberName"  # guess
    new_master: Word = "newMasterMemberName"  # guess


class MemberFields(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Fields of a member in the answer to `paths.group`; all of them guesses."""

    list: str = "members"
    name: Word = "memberName"
    address: Word = "ipAddress"
    status: Word = "status"
    catalog: Word = "catalogServer"
    primary: Word = "primary"
    role: Word = "derbyRole"
    online: Word = "Online"
    joining: Word = "Joining"
    leaving: Word = "Leaving"
    master: Word = "master"
    slave: Word = "slave"


class TaskFields(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Fields of a task in the answer to `paths.tasks`, and words of its status; all of them guesses.

    The words Running, Success and Failed are the vendor's own, and stand.
    """

    list: str = ""
    id: Word = "taskId id"
    command: Word = "command"
    description: Word = "description"
    status: Word = "status"
    progress: Word = "progress"
    message: Word = "message"
    pending: Word = "Pending"
    cancelled: Word = "Cancelled"


SETTINGS = (
    "description",
    "gridType",
    "templateName",
    "ownerName",
    "groupName",
    "useAuthentication",
    "useAuthorization",
    "gridCapacity",
    "useCapLRUEvictor",
    "transactionTimeout",
    "numPartition",
    "numSyncReplicas",
    "numAsyncReplicas",
    "timeToLive",
    "lockTimeout",
)
"""What a grid is sent with, under the vendor's own names."""


class GridFields(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Fields of a grid in the answer to `paths.grids`; all of them guesses."""

    list: str = ""
    name: Word = "name gridName"
    status: Word = "status"
    settings: Annotated[dict[str, Word], msgspec.Meta(extra_json_schema={"propertyNames": {"enum": [*SETTINGS]}})] = {}
    """How an answer calls a setting, where that is not the name under which it is sent."""

    def __post_init__(self) -> None:
        """Raises ValueError for a setting that is none."""
        if unknown := sorted(set(self.settings) - set(SETTINGS)):
            raise ValueError(f"grids have no setting {', '.join(unknown)}")


class TemplateFields(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Fields of a template in the answer to `paths.templates`, and those that it is uploaded with; all guesses."""

    list: str = ""
    name: Word = "name templateName"
    method: Literal["PUT", "POST"] = "PUT"
    description: Word = "description"
    object_grid: Word = "objectGridXml"
    deployment: Word = "deploymentXml"


class Container(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What is inside the image."""

    entrypoint: Word = "/entrypoint.sh"  # guess
    home: Word = "/opt/ibm/WebSphere/eXtremeScale/wxs"
    sql_tool: Word = "/opt/ibm/WebSphere/eXtremeScale/derby/bin/ij"  # guess
    sql_connect: Word = "CONNECT 'jdbc:derby://127.0.0.1:1527/xsadmin';"  # guess
    sql_read_address: Word = "SELECT IP_ADDRESS FROM XSADMIN.MEMBER WHERE MEMBER_NAME = '{member}';"  # guess
    sql_write_address: Word = (  # guess
        "UPDATE XSADMIN.MEMBER SET IP_ADDRESS = '{address}' WHERE MEMBER_NAME = '{member}';"
    )
    sql_count_members: Word = "SELECT COUNT(*) FROM XSADMIN.MEMBER;"  # guess
    volume: Word = "/vol"
    env: dict[str, str] = {}  # more environment for every member


class Dialect(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The whole table."""

    ports: Ports = Ports()
    paths: Paths = Paths()
    commands: Commands = Commands()
    parameters: Parameters = Parameters()
    member: MemberFields = MemberFields()
    task: TaskFields = TaskFields()
    grid: GridFields = GridFields()
    template: TemplateFields = TemplateFields()
    container: Container = Container()
    user: Word = "xsadmin"
    join_host: Word = "{pod}.{service}.{namespace}.svc"  # or {address}
    grid_online: Word = "Online"
    grid_error: Word = "Error"
    transient_status: Word = "Failed to get the task status"
