"""What may be large is done in child processes, within limits, one at a time for each owner."""

from __future__ import annotations

import asyncio
import base64
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from moorage.helm.charts import chart_archive, values
from moorage.helm.parsing import aside, aside_child, helm_yaml, jobs
from moorage.helm.release import manifest, records
from tests.unit.helm.charts import test_chart_archive
from tests.unit.helm.release import test_records

NOTHING = jobs.Limits(text=-1, nodes=0, live=0, archive=0)


@pytest.fixture
async def work() -> AsyncIterator[aside.Aside]:
    """Nothing is done in place."""
    made = aside.Aside(here=NOTHING)
    yield made
    await made.stop()


Spoil = Callable[[str], aside.Aside]


@pytest.fixture
async def spoilt(tmp_path: Path) -> AsyncIterator[Spoil]:
    """Children do these lines when they are asked for a configuration."""
    made: list[aside.Aside] = []

    def make(body: str) -> aside.Aside:
        script = tmp_path / f"child-{len(made)}.py"
        script.write_text(
            "import os, time\nfrom moorage.helm.parsing import aside_child, jobs\n"
            f"def configuration(limits, text: str) -> bytes:\n    {body}\n    return b''\n"
            "jobs.JOBS['configuration'] = configuration\naside_child.CPU = 1\naside_child.main()\n"
        )
        made.append(aside.Aside(here=NOTHING, command=(sys.executable, str(script))))
        return made[-1]

    yield make
    for each in made:
        await each.stop()


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def chain(links: int) -> str:
    """Nested merge keys: each mapping holds all before it."""
    return "a0: &a0 {k: 1}\n" + "".join(f"a{i}: &a{i} {{<<: *a{i - 1}, k{i}: 1}}\n" for i in range(1, links))


TEXT = (
    "# Source: a/b.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: {x: 😀}}\ndata: {a: -0.0}\n"
)
RECORD = test_records.pack({**test_records.BODY, "manifest": TEXT, "hooks": []})
ARGS: dict[str, tuple[Any, ...]] = {
    "configuration": (b64("a: {b: 1.5}\nc: 18446744073709551615"),),
    "rendered": (TEXT + "---\n" + TEXT.replace("{x: 😀}", "{helm.sh/hook: pre-install}"),),
    "record": (RECORD,),
    "with_status": (test_records.pack(test_records.BODY), "failed", "x"),
    "carrying": (test_records.pack({**test_records.BODY, "manifest": TEXT}), ()),
    "with_manifest": (test_records.pack(test_records.BODY), "x"),
    "kinds_of": (RECORD,),
    "naming": (RECORD, (("v1", "ConfigMap", "v2"),), (("", "ConfigMap", "ns", "gone"),), "ns"),
    "changed": (
        RECORD,
        test_records.pack({**test_records.BODY, "manifest": TEXT.replace("data:", "spec:"), "hooks": []}),
        *("ConfigMap", "a"),
    ),
    "differing": ({"a": {"b": 1}}, {"a": {"b": 2}}, ()),
}


@pytest.mark.parametrize("name", sorted(jobs.JOBS))
async def test_each_job_has_the_same_result_in_place_and_aside(work: aside.Aside, tmp_path: Path, name: str) -> None:
    (tmp_path / "c.tgz").write_bytes(test_chart_archive.archive({**test_chart_archive.BASE, "c/values.yaml": b"a: 1"}))
    args = {**ARGS, "contents": (str(tmp_path / "c.tgz"),)}[name]

    assert jobs.JOBS[name](jobs.ASIDE, *args) == await work.run("me", jobs.JOBS[name], *args)


@pytest.mark.parametrize(
    ("job", "args", "error", "says"),
    [
        (jobs.configuration, (b64("a: ["),), values.ValuesError, "line 2, column 1: not valid YAML"),
        (jobs.configuration, (b64(chain(4000)),), helm_yaml.TooLarge, "more than 100000 keys and values"),
        (jobs.configuration, (b64("[" + "1," * 60_000 + "]\n---\n[" + "1," * 60_000),), helm_yaml.TooLarge, "100000"),
        (jobs.configuration, (b64("{a: " * 300),), helm_yaml.TooLarge, "nested deeper than 200"),
        (jobs.rendered, ("a: [",), manifest.ManifestError, "manifest: line"),
        (jobs.rendered, ("---\na: 1\n" * 1001,), helm_yaml.TooLarge, "more than 1000 objects"),
        (jobs.record, ("x",), records.RecordError, "not a release record"),
        (jobs.record, (test_records.BOMB,), helm_yaml.TooLarge, f"more than {records.MAX_DECODED} bytes"),
        (jobs.contents, ("/nowhere",), chart_archive.ChartInvalid, "can't be read"),
    ],
)
async def test_what_is_wrong_is_said_as_it_would_be_here(
    work: aside.Aside, job: Any, args: tuple[Any, ...], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        await work.run("me", job, *args)
    assert b"{}" == await work.run("me", jobs.configuration, "")


async def test_a_child_at_work_when_all_is_stopped_ends_with_its_job(work: aside.Aside) -> None:
    job = asyncio.create_task(work.run("me", jobs.configuration, b64("a: [" + "1," * 20_000 + "]")))
    while not children():
        await asyncio.sleep(0)
    await work.stop()
    assert (await job).startswith(b"{")
    assert [] == children()


def children() -> list[str]:
    """Processes of this one that run."""
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()


async def test_small_things_are_done_in_place_and_all_else_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    async def ask(order: bytes) -> aside_child.Answer:
        asked.append(aside_child.msgspec.msgpack.decode(order)[0])
        return aside_child.Answer("TooLarge", "aside", aside_child.msgspec.Raw(b"\xc0"), False)

    work = aside.Aside()
    monkeypatch.setattr(work, "_ask", ask)
    small = {"a": [0] * 900}
    large = {"a": [0] * jobs.HERE.live}
    await work.run("me", jobs.configuration, b64("a: 1"))
    await work.run("me", jobs.rendered, TEXT)
    await work.run("me", jobs.differing, small, small, ())
    assert [] == asked

    for job, args in (
        (jobs.configuration, (b64(chain(100)),)),
        (jobs.configuration, (b64("#" * jobs.HERE.text),)),
        (jobs.rendered, ("a: 1\n---\n" * jobs.HERE.nodes,)),
        (jobs.record, (test_records.pack({**test_records.BODY, "extra": " " * jobs.HERE.text}),)),
        (jobs.with_status, (test_records.pack({**test_records.BODY, "extra": " " * jobs.HERE.text}), "a", "b")),
        (jobs.carrying, (test_records.pack({**test_records.BODY, "extra": " " * jobs.HERE.text}), ())),
        (jobs.with_manifest, (test_records.pack(test_records.BODY), " " * jobs.HERE.text)),
        (jobs.differing, (small, large, ())),
        (jobs.differing, (large, None, ())),
        (jobs.contents, ("/nowhere",)),
    ):
        with pytest.raises(helm_yaml.TooLarge, match="aside"):
            await work.run("me", job, *args)
    assert 10 == len(asked)


def test_no_job_composes_more_nodes_in_place_than_one_turn_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = 0
    take = helm_yaml.Budget.take

    def counting(self: helm_yaml.Budget, nodes: int, line: int, column: int) -> None:
        nonlocal taken
        take(self, nodes, line, column)
        taken += nodes

    monkeypatch.setattr(helm_yaml.Budget, "take", counting)
    for text in (
        chain(1000),
        "[" + "1," * 20_000 + "]",
        "a: 1\n---\n" * 5_000,
        "a: &a [1,1]\nb: [" + "*a," * 9_000 + "]",
    ):
        record = test_records.pack({**test_records.BODY, "manifest": text, "hooks": [{"manifest": text}] * 3})
        for job, given in ((jobs.configuration, b64(text)), (jobs.rendered, text), (jobs.record, record)):
            taken = 0
            with pytest.raises(helm_yaml.TooLarge):
                job(jobs.HERE, given)
            assert taken <= jobs.HERE.nodes


async def test_an_owner_with_large_things_waits_for_oneself_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    running: list[str] = []
    most = 0
    go = asyncio.Event()

    async def ask(order: bytes) -> aside_child.Answer:
        nonlocal most
        owner = aside_child.msgspec.msgpack.decode(order)[2][0]
        running.append(owner)
        most = max(most, running.count("greedy"))
        if owner == "greedy":
            await go.wait()
        running.remove(owner)
        return aside_child.Answer("", "", aside_child.msgspec.Raw(aside_child.msgspec.msgpack.encode(b"{}")), False)

    work = aside.Aside(here=NOTHING, children=2)
    monkeypatch.setattr(work, "_ask", ask)
    greedy = [asyncio.create_task(work.run("greedy", jobs.configuration, "greedy")) for _ in range(5)]
    await asyncio.sleep(0)
    others = [work.run(f"other-{i}", jobs.configuration, f"other-{i}") for i in range(5)]
    await asyncio.wait_for(asyncio.gather(*others), 30)

    assert not any(task.done() for task in greedy)
    go.set()
    await asyncio.gather(*greedy)
    assert 1 == most


async def test_a_child_that_uses_up_its_time_is_killed_and_the_next_one_serves(spoilt: Spoil) -> None:
    work = spoilt("while text: pass")

    with pytest.raises(helm_yaml.TooLarge, match="more than 10 s of processor time"):
        await work.run("me", jobs.configuration, "x")
    assert b"" == await work.run("me", jobs.configuration, "")


async def test_a_child_that_takes_too_much_memory_refuses_and_ends(spoilt: Spoil) -> None:
    work = spoilt("return b'x' * (1 << 30)")

    with pytest.raises(helm_yaml.TooLarge, match="more than 160 MiB of memory"):
        await work.run("me", jobs.configuration, "")
    assert [] == work._idle


async def test_a_child_that_is_worn_out_ends_after_its_answer(spoilt: Spoil) -> None:
    work = spoilt("jobs.KEPT = b'x' * (100 << 20); return b'done'")

    assert b"done" == await work.run("me", jobs.configuration, "")
    assert [] == work._idle


async def test_a_child_that_is_killed_is_trouble_that_may_pass(spoilt: Spoil) -> None:
    with pytest.raises(aside.AsideError, match="ended with code -9"):
        await spoilt("os.kill(os.getpid(), 9)").run("me", jobs.configuration, "")
    with pytest.raises(aside.AsideError, match="job configuration failed: ZeroDivisionError"):
        await spoilt("1 / 0").run("me", jobs.configuration, "")
    with pytest.raises(aside.AsideError, match="no child process can be started: No such file"):
        await aside.Aside(here=NOTHING, command=("/nowhere",)).run("me", jobs.configuration, "")


async def test_a_child_that_hangs_is_ended(spoilt: Spoil, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aside, "DEADLINE", 1.0)
    work = spoilt("time.sleep(60)")

    with pytest.raises(aside.AsideError, match="no answer within 1 s"):
        await work.run("me", jobs.configuration, "")
    assert [] == work._idle


async def test_a_job_that_nobody_wants_any_more_leaves_no_child(spoilt: Spoil, tmp_path: Path) -> None:
    work, told = spoilt("open(text, 'w').write(str(os.getpid())); time.sleep(60)"), tmp_path / "pid"
    task = asyncio.create_task(work.run("me", jobs.configuration, str(told)))
    async with asyncio.timeout(30):
        while not (told.exists() and told.read_text()):
            await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    with pytest.raises(ProcessLookupError):
        os.kill(int(told.read_text()), 0)


def test_a_child_dies_with_its_parent(tmp_path: Path) -> None:
    script = (
        "import asyncio, os, signal\n"
        "from moorage.helm.parsing import aside, jobs\n"
        "async def main():\n"
        "    work = aside.Aside(here=jobs.Limits(-1, 0, 0, 0))\n"
        "    await work.run('me', jobs.configuration, '')\n"
        "    print(work._idle[0]._running.pid, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "asyncio.run(main())\n"
    )
    parent = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=False)
    assert -signal.SIGKILL == parent.returncode

    until = time.monotonic() + 30
    while _lives(int(parent.stdout)):
        assert time.monotonic() < until, "the child lives on"
        time.sleep(0.01)


def _lives(pid: int) -> bool:
    """It may go while it is looked at."""
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_record_names_what_is_served_and_leaves_out_what_is_gone() -> None:
    """By version, by kind and one by one."""
    other = TEXT.replace("name: a,", "name: b,")
    data = test_records.pack({**test_records.BODY, "manifest": f"{TEXT}---\n{other}", "hooks": []})

    assert (("v1", "ConfigMap"),) == jobs.kinds_of(jobs.ASIDE, data)
    moved = jobs.naming(jobs.ASIDE, data, (("v1", "ConfigMap", "v2"),), (("", "ConfigMap", "ns", "b"),), "ns")
    assert moved is not None
    assert (("v2", "ConfigMap"),) == jobs.kinds_of(jobs.ASIDE, moved)
    (left,) = jobs.record(jobs.ASIDE, moved).manifest.objects
    assert "a" == left["metadata"]["name"]
    assert jobs.naming(jobs.ASIDE, data, (("v1", "ConfigMap", "v1"),), (), "ns") is None


def test_what_two_revisions_have_otherwise_is_told_by_path() -> None:
    """Values are nobody's business."""
    text = (
        "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\nspec: {a: one, list: [{b: 1}, {c: 2}], d: x}\n"
    )
    pack = [
        test_records.pack({**test_records.BODY, "manifest": each, "hooks": []})
        for each in (text, text.replace("one", "two").replace("c: 2", "c: 3"))
    ]

    assert ("spec.a", "spec.list[1].c") == jobs.changed(jobs.ASIDE, *pack, "StatefulSet", "db")
    assert () == jobs.changed(jobs.ASIDE, *pack, "StatefulSet", "other")
