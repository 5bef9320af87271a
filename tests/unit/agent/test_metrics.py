"""What an agent tells Prometheus: in its format, and nothing that anybody but this code has said."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import parser

from moorage.agent import health, main, metrics, outside, plan
from tests.unit.agent.played import World

ME = metrics.Me("master", "5.0.0")
UP = metrics.Server(up=True, up_at=1.8e9, took=0.25, starts=2)
PROCESS = metrics.Process(1.7e9, 1.5, 30 * 2**20)
GOAL = health.Place(plan.Stand(), 1.7e9, 7, 7)
WAITS = health.Place(plan.Stand("Migrate", "Held", error="drop table users; pass=Hunter2"), 1.75e9, 6, 7)

Read = dict[str, list[tuple[dict[str, str], float]]]


def read(text: bytes) -> Read:
    """The samples by name, as Prometheus' own library reads them."""
    families = list(parser.text_string_to_metric_families(text.decode()))
    assert all(it.documentation and it.type in ("gauge", "counter") for it in families)
    return {
        name: [(each.labels, each.value) for it in families for each in it.samples if each.name == name]
        for name in {each.name for it in families for each in it.samples}
    }


def told(place: health.Place = GOAL, server: metrics.Server = UP, catalog: Any = None) -> Read:
    return read(metrics.text(ME, place, server, PROCESS, catalog=catalog))


def test_what_an_operator_of_the_product_wants_to_know() -> None:
    """Of one that is well, each with its value."""
    found = told(catalog=(True, "5.0.0"))

    assert [({"role": "master", "version": "5.0.0"}, 1.0)] == found.pop("opencga_agent_info")
    assert {name: samples[0][1] for name, samples in found.items()} == {
        "opencga_server_up": 1.0,
        "opencga_server_expected": 1.0,
        "opencga_server_last_up_timestamp_seconds": 1.8e9,
        "opencga_server_ping_seconds": 0.25,
        "opencga_server_starts_total": 2.0,
        "opencga_configuration_wanted_version": 7.0,
        "opencga_configuration_applied_version": 7.0,
        "opencga_agent_in_goal": 1.0,
        "opencga_agent_error": 0.0,
        "opencga_catalog_installed": 1.0,
        "process_start_time_seconds": 1.7e9,
        "process_cpu_seconds_total": 1.5,
        "process_resident_memory_bytes": 30 * 2**20,
    }


def test_where_it_stands_and_since_when_and_not_in_whose_words() -> None:
    """What servers, the catalog and users say is for who has a token, or may read the resource."""
    text = metrics.text(ME, WAITS, UP, PROCESS, catalog=None)
    found = read(text)

    assert [({"move": "Migrate", "step": "Held"}, 1.75e9)] == found["opencga_agent_step_timestamp_seconds"]
    assert (0.0, 1.0) == (found["opencga_agent_in_goal"][0][1], found["opencga_agent_error"][0][1])
    assert (7.0, 6.0) == (
        found["opencga_configuration_wanted_version"][0][1],
        found["opencga_configuration_applied_version"][0][1],
    )
    assert b"Hunter2" not in text
    assert b"drop" not in text


def test_of_a_server_that_never_answered_no_time_is_told() -> None:
    """Nor of one that does not answer now how long it took."""
    never = told(server=metrics.Server(up=False, up_at=0.0, took=0.0, starts=0))
    once = told(server=metrics.Server(up=False, up_at=1.8e9, took=0.25, starts=1))

    assert 0.0 == never["opencga_server_up"][0][1]
    assert not {"opencga_server_last_up_timestamp_seconds", "opencga_server_ping_seconds"} & set(never)
    assert 1.8e9 == once["opencga_server_last_up_timestamp_seconds"][0][1]
    assert "opencga_server_ping_seconds" not in once
    assert "opencga_catalog_installed" not in never
    assert [({}, 0.0)] == told(catalog=(False, ""))["opencga_catalog_installed"]
    assert [({}, 0.0)] == told(health.Place(plan.Stand(), 0.0, -1, -1))["opencga_configuration_wanted_version"]


def test_a_value_that_is_no_word_spoils_no_line() -> None:
    """As a version would be that somebody put into the pod's environment."""
    odd = 'a"b\\c\nd'
    found = read(metrics.text(metrics.Me(odd, "5.0.0"), GOAL, UP, PROCESS, catalog=None))

    assert odd == found["opencga_agent_info"][0][0]["role"]


@pytest.fixture
def pool() -> Iterator[futures.ThreadPoolExecutor]:
    with futures.ThreadPoolExecutor(1) as made:
        yield made


@pytest.mark.parametrize("port", [0, 9216])
def test_an_agent_counts_what_it_has_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pool: futures.ThreadPoolExecutor, port: int
) -> None:
    """From its first look to its goal, and after a restart; where metrics are off it makes none."""
    world = World(tmp_path)
    monkeypatch.setattr(outside, "ping", lambda _: world.hook.running)
    monkeypatch.setattr(main, "TRIES_EVERY", 0.0)
    agent = main.Agent(dataclasses.replace(world.settings, role="master", metrics=port), world.hook, pool)
    world.publish()
    for _ in range(40):
        agent.step()
    if not port:
        assert b"" == agent.metrics
        return
    before = read(agent.metrics)
    world.hook.restarts()
    for _ in range(10):
        agent.step()
    after = read(agent.metrics)

    assert [1.0, 2.0] == [it["opencga_server_starts_total"][0][1] for it in (before, after)]
    assert [1.0, 1.0] == [it["opencga_server_up"][0][1] for it in (before, after)]
    assert 0.0 < after["process_resident_memory_bytes"][0][1]
    assert 0.0 < after["process_cpu_seconds_total"][0][1]


def test_the_port_is_where_the_operator_says() -> None:
    """Nowhere, where it says nothing."""
    flags = ["-healthCheckFilePath=/h", "-cluster=/c"]
    names = ("VERSION", "CONF", "DATA", "HOOK", "TOOL", "PING", "TOKEN_FILE")
    env = {f"OPENCGA_{name}": "x" for name in names} | {"OPENCGA_ROLE": "rest"}

    assert (0, "rest") == ((found := main.settings(flags, env)).metrics, found.role)
    assert 9216 == main.settings(flags, env | {"OPENCGA_METRICS_PORT": "9216"}).metrics
