"""How the product is spoken to can be overridden in part, from camel case."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.operators.xsld.grid import settings, types
from moorage.operators.xsld.group import dialect

DEFAULT = dialect.Dialect()
OVERRIDES = {
    "nothing": ({}, DEFAULT),
    "one command": (
        {"commands": {"leave": "RemoveServerTaskCommand"}},
        msgspec.structs.replace(DEFAULT, commands=dialect.Commands(leave="RemoveServerTaskCommand")),
    ),
    "one path, in camel case": (
        {"paths": {"taskStatus": "/t/{id}"}},
        msgspec.structs.replace(DEFAULT, paths=dialect.Paths(task_status="/t/{id}")),
    ),
    "a port and a parameter": (
        {"ports": {"admin": 19445}, "parameters": {"newMaster": "to"}},
        msgspec.structs.replace(
            DEFAULT, ports=dialect.Ports(admin=19445), parameters=dialect.Parameters(new_master="to")
        ),
    ),
    "what is inside the image": (
        {"container": {"sqlReadAddress": "SELECT 1", "env": {"A": "b"}}},
        msgspec.structs.replace(DEFAULT, container=dialect.Container(sql_read_address="SELECT 1", env={"A": "b"})),
    ),
    "fields of members": (
        {"member": {"catalog": "isCatalog"}},
        msgspec.structs.replace(DEFAULT, member=dialect.MemberFields(catalog="isCatalog")),
    ),
    "fields of tasks, grids and templates": (
        {
            "task": {"id": "number", "pending": "Queued"},
            "grid": {"list": "grids", "settings": {"lockTimeout": "lock"}},
            "template": {"method": "POST", "objectGrid": "grid"},
        },
        msgspec.structs.replace(
            DEFAULT,
            task=dialect.TaskFields(id="number", pending="Queued"),
            grid=dialect.GridFields(list="grids", settings={"lockTimeout": "lock"}),
            template=dialect.TemplateFields(method="POST", object_grid="grid"),
        ),
    ),
    "words on the top": (
        {"joinHost": "{address}", "gridError": "Broken", "transientStatus": "wait"},
        msgspec.structs.replace(DEFAULT, join_host="{address}", grid_error="Broken", transient_status="wait"),
    ),
}


@pytest.mark.parametrize(("given", "expected"), OVERRIDES.values(), ids=OVERRIDES)
def test_only_what_is_given_differs(given: dict[str, Any], expected: dialect.Dialect) -> None:
    assert expected == msgspec.convert(given, dialect.Dialect)


@pytest.mark.parametrize(
    "given",
    [
        {"ports": {"admin": "9445"}},
        {"paths": "/task"},
        {"commands": {"join": 1}},
        {"container": {"env": {"A": 1}}},
        {"template": {"method": "PATCH"}},
        {"grid": {"settings": {"x": "y"}}},
    ],
    ids=str,
)
def test_a_value_of_another_type_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(given, dialect.Dialect)


def test_settings_are_those_that_a_grid_is_sent_with() -> None:
    spec = msgspec.convert({"gridType": "Custom", "templateName": "t", "groupName": "x"}, types.DataGridSpec)

    assert set(dialect.SETTINGS) == settings.body(spec).keys()


def test_the_vendors_own_names_stand() -> None:
    assert "/wxsadmin/v1" == DEFAULT.paths.base
    assert ("/task", "/task/{id}/status", "/task/cancel/{id}/force", "/grid/{name}") == (
        DEFAULT.paths.tasks,
        DEFAULT.paths.task_status,
        DEFAULT.paths.task_cancel,
        DEFAULT.paths.grid,
    )
    assert (9443, 9444, 9445, 4809) == (
        DEFAULT.ports.ui,
        DEFAULT.ports.data,
        DEFAULT.ports.admin,
        DEFAULT.ports.catalog,
    )
    assert "NewMemberJoinTaskCommand" == DEFAULT.commands.join
    assert ("secretKey", "memberName", "cacheMemberGroupHost", "isCatalog") == (
        DEFAULT.parameters.secret_key,
        DEFAULT.parameters.member,
        DEFAULT.parameters.host,
        DEFAULT.parameters.catalog,
    )
    assert ("xsadmin", "/vol", "Failed to get the task status") == (
        DEFAULT.user,
        DEFAULT.container.volume,
        DEFAULT.transient_status,
    )
