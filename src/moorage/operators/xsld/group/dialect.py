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

from typing import Literal

import msgspec


class Ports(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a member listens."""

    ui: int = 9443
    data: int = 9444
    admin: int = 9445
    catalog: int = 4809


class Paths(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Below `base`; {id} and {name} are filled in."""

    base: str = "/wxsadmin/v1"
    tasks: str = "/task"
    task_status: str = "/task/{id}/status"
    task_cancel: str = "/task/cancel/{id}/force"
    group: str = "/cacheMemberGroup"  # guess
    grids: str = "/grid"
    grid: str = "/grid/{name}"
    templates: str = "/gridTemplate"  # guess
    template: str = "/gridTemplate/{name}"  # guess


class Commands(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Names of asynchronous commands."""

    join: str = "NewMemberJoinTaskCommand"
    leave: str = "RemoveMemberTaskCommand"  # guess
    replicate: str = "DerbyReplicationTaskCommand"  # guess
    failover: str = "DerbyFailoverTaskCommand"  # guess


class Parameters(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Names of the commands' parameters; all values are texts."""

    secret_key: str = "secretKey"
    member: str = "memberName"
    host: str = "cacheMemberGroupHost"
    catalog: str = "isCatalog"
    master: str = "masterMemberName"  # guess
    slave: str = "slaveMemberName"  # guess
    new_master: str = "newMasterMemberName"  # guess


class MemberFields(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Fields of a member in the answer to `paths.group`; all of them guesses."""

    list: str = "members"
    name: str = "memberName"
    address: str = "ipAddress"
    status: str = "status"
    catalog: str = "catalogServer"
    primary: str = "primary"
    role: str = "derbyRole"
    online: str = "Online"
    joining: str = "Joining"
    leaving: str = "Leaving"
    master: str = "master"
    slave: str = "slave"


class TaskFields(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Fields of a task in the answer to `paths.tasks`, and words of its status; all of them guesses.

    The words Running, Success and Failed are the vendor's own, and stand.
    """

    list: str = ""
    id: str = "taskId id"
    command: str = "command"
    description: str = "description"
    status: str = "status"
    progress: str = "progress"
    message: str = "message"
    pending: str = "Pending"
    cancelled: str = "Cancelled"


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
    name: str = "name gridName"
    status: str = "status"
    settings: dict[str, str] = {}  # how an answer calls a setting, where that is not the name under which it is sent

    def __post_init__(self) -> None:
        """Raises ValueError for a setting that is none."""
        if unknown := sorted(set(self.settings) - set(SETTINGS)):
            raise ValueError(f"grids have no setting {', '.join(unknown)}")


class TemplateFields(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Fields of a template in the answer to `paths.templates`, and those that it is uploaded with; all guesses."""

    list: str = ""
    name: str = "name templateName"
    method: Literal["PUT", "POST"] = "PUT"
    description: str = "description"
    object_grid: str = "objectGridXml"
    deployment: str = "deploymentXml"


class Container(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What is inside the image."""

    entrypoint: str = "/entrypoint.sh"  # guess
    home: str = "/opt/ibm/WebSphere/eXtremeScale/wxs"
    sql_tool: str = "/opt/ibm/WebSphere/eXtremeScale/derby/bin/ij"  # guess
    sql_connect: str = "CONNECT 'jdbc:derby://127.0.0.1:1527/xsadmin';"  # guess
    sql_read_address: str = "SELECT IP_ADDRESS FROM XSADMIN.MEMBER WHERE MEMBER_NAME = '{member}';"  # guess
    sql_write_address: str = (  # guess
        "UPDATE XSADMIN.MEMBER SET IP_ADDRESS = '{address}' WHERE MEMBER_NAME = '{member}';"
    )
    sql_count_members: str = "SELECT COUNT(*) FROM XSADMIN.MEMBER;"  # guess
    volume: str = "/vol"
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
    user: str = "xsadmin"
    join_host: str = "{pod}.{service}.{namespace}.svc"  # or {address}
    grid_online: str = "Online"
    grid_error: str = "Error"
    transient_status: str = "Failed to get the task status"
