"""What a version is to have in NATS, and whether what is there is that."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.operators.kre import kinds, names
from moorage.operators.kre.version import streams
from moorage.operators.kre.version.streams import StreamSeen

from . import versions
from .versions import STREAM

MARK = {"metadata": {kinds.OF_VERSION: "one"}}


def wanted(servers: int = 1, **changed: Any) -> dict[str, streams.Wanted]:
    found = streams.wanted(names.Names("demo", "v1"), versions.spec(**changed).graph, "one", servers, 90.0)
    return {each.name: each for each in found}


def test_a_workflow_s_stream_keeps_what_somebody_is_to_read() -> None:
    """And no more: what all have read is gone."""
    subjects = [f"{STREAM}.{each}" for each in ("entrypoint", "first", "first.*", "last", "last.*")]

    assert {
        "name": STREAM,
        "subjects": subjects,
        "storage": "file",
        "retention": "interest",
        "num_replicas": 1,
        **MARK,
    } == wanted()[STREAM].config


def test_each_subscription_has_a_consumer_that_the_product_s_runners_take() -> None:
    """Of that name, as a queue, from now on, with that patience; and with stars where NATS takes none."""
    flow = {**versions.SPEC["workflows"][0]}
    flow["nodes"] = [*flow["nodes"], {"name": "all", "image": "a", "src": "a", "subscriptions": ["first.*"]}]
    found = wanted(workflows=[flow])[STREAM].consumers
    name = f"{STREAM}-first-=-all"

    assert {f"{STREAM}-entrypoint-first", f"{STREAM}-first-last", name} == found.keys()
    assert {
        "durable_name": name,
        "filter_subject": f"{STREAM}.first.*",
        "deliver_subject": f"_deliver.{name}",
        "deliver_group": name,
        "deliver_policy": "new",
        "ack_policy": "explicit",
        "ack_wait": 90_000_000_000,
        **MARK,
    } == found[name]


def test_stores_and_buckets_are_as_nats_own_clients_make_them() -> None:
    """By a convention of theirs; so the product's nodes open them."""
    common = {"storage": "file", "retention": "limits", "discard": "new", "num_replicas": 1, **MARK}
    common |= {"allow_rollup_hdrs": True, "allow_direct": True}
    found = wanted()

    store = "demo_v1_greet_models"
    assert {
        "name": f"OBJ_{store}",
        "subjects": [f"$O.{store}.C.>", f"$O.{store}.M.>"],
        **common,
    } == found[f"OBJ_{store}"].config
    bucket = "key-store_demo_v1_greet_last"
    assert {
        "name": f"KV_{bucket}",
        "subjects": [f"$KV.{bucket}.>"],
        "max_msgs_per_subject": 1,
        "deny_delete": True,
        **common,
    } == found[f"KV_{bucket}"].config
    assert 6 == len(found)


def test_a_store_that_several_share_is_one() -> None:
    """By its name and scope."""
    flow = dict(versions.SPEC["workflows"][0])
    flow["nodes"] = [{**node, "objectStore": {"name": "all", "scope": "project"}} for node in flow["nodes"]]
    other = {**flow, "name": "other", "entrypoint": "Other"}

    assert ["OBJ_demo_v1_all"] == [name for name in wanted(workflows=[flow, other]) if name.startswith("OBJ_")]


@pytest.mark.parametrize(("servers", "copies"), [(0, 1), (1, 1), (2, 1), (3, 3), (5, 3)])
def test_copies_are_kept_where_one_server_may_be_lost(servers: int, copies: int) -> None:
    """Two of two would be lost with one."""
    assert {copies} == {each.config["num_replicas"] for each in wanted(servers).values()}


def seen(mark: str = "one", **changed: Any) -> StreamSeen:
    config = {key: value for key, value in wanted(3)[STREAM].config.items() if key != "metadata"}
    return StreamSeen(config | {"discard": "old"} | changed, mark)


@pytest.mark.parametrize(
    ("live", "differs"),
    [
        (seen(), ()),
        (seen(subjects=list(reversed(wanted()[STREAM].config["subjects"]))), ()),
        (seen(num_replicas=5), ()),
        (seen(num_replicas=1), ("num_replicas",)),
        (seen(num_replicas=None), ("num_replicas",)),
        (seen(subjects=[]), ("subjects",)),
        (seen(subjects=None), ("subjects",)),
        (seen(retention="limits", storage="memory"), ("storage", "retention")),
        (seen("two"), ("metadata",)),
    ],
)
def test_what_differs_is_told_by_its_field(live: StreamSeen, differs: tuple[str, ...]) -> None:
    """Order is nothing, and more copies are a person's choice."""
    assert set(differs) == set(streams.differs(wanted(3)[STREAM].config, live))


def test_a_stream_that_says_nothing_of_its_copies_has_one() -> None:
    """Which is enough on a single server, and not in a cluster."""
    live = seen(num_replicas=None)

    assert () == streams.differs(wanted(1)[STREAM].config, live)
    assert ("num_replicas",) == streams.differs({**wanted(1)[STREAM].config, "num_replicas": 2}, live)


def test_a_stream_is_widened_by_what_it_keeps_now() -> None:
    """Each subject once."""
    config = wanted()[STREAM].config

    assert config == streams.widened(config, seen())
    more = streams.widened(config, seen(subjects=["b", "a", config["subjects"][0]]))
    assert [*config["subjects"], "a", "b"] == more["subjects"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (STREAM, ("stream", STREAM)),
        ("OBJ_a", ("object store", "a")),
        ("KV_a", ("key-value bucket", "a")),
        ("XOBJ_a", ("stream", "XOBJ_a")),
    ],
)
def test_what_a_stream_is_is_told_by_its_name(name: str, expected: tuple[str, str]) -> None:
    """As people call it."""
    assert expected == streams.kind_of(name)


def test_each_is_called_as_people_call_it() -> None:
    """Not by the name of the stream that it is to NATS."""
    assert {
        f"stream {STREAM}",
        "object store demo_v1_greet_models",
        "key-value bucket key-store_demo_v1",
        "key-value bucket key-store_demo_v1_greet",
        "key-value bucket key-store_demo_v1_greet_first",
        "key-value bucket key-store_demo_v1_greet_last",
    } == {each.id for each in wanted().values()}
