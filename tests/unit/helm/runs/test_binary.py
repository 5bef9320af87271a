"""The helm process: what it is given, how it ends, what it leaves behind."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from moorage.helm.release import manifest
from moorage.helm.runs import binary, failures, process
from moorage.runtime import decision, gate, task_pool

K = failures.FailureKind
CAPABILITIES = binary.Capabilities("v1.31.0", ("apps/v1", "example.com/v1/Thing"))


def fake(tmp_path: Path, script: str) -> str:
    """A stand-in that runs a few lines of Python, for what real helm does not do on demand."""
    path = tmp_path / "fake-helm"
    path.write_text(f"#!{sys.executable}\nimport os, sys, signal, time, subprocess\n{script}\n")
    path.chmod(0o755)
    return str(path)


def runner(path: str, tmp_path: Path, **kube: str) -> binary.Helm:
    return binary.Helm(path, binary.KubeAccess(**kube), tmp_path / "scratch", grace=0.5)


async def test_template(helm, make_chart):
    chart = make_chart(
        {
            "templates/probe.yaml": '{{ if .Capabilities.APIVersions.Has "example.com/v1/Thing" }}\n'
            "kind: ConfigMap\napiVersion: v1\n"
            "metadata: {name: {{ .Release.Name }}, namespace: {{ .Release.Namespace }}}\n"
            "data: {v: {{ .Values.a | quote }}, k: {{ .Capabilities.KubeVersion.Version }}}\n{{ end }}\n",
            "templates/hook.yaml": "kind: Job\napiVersion: batch/v1\nmetadata:\n  name: h\n  annotations:\n"
            '    helm.sh/hook: pre-install,pre-upgrade\n    helm.sh/hook-weight: "-5"\n'
            "    helm.sh/hook-delete-policy: hook-succeeded\n",
            "templates/test.yaml": "kind: Pod\napiVersion: v1\n"
            "metadata: {name: t, annotations: {helm.sh/hook: test}}\n",
        }
    )
    text = await helm.template(chart, {"a": "ä: 'x'"}, "rel", "ns", CAPABILITIES)
    found = manifest.parse(text)
    assert [(o["metadata"]["name"], o["data"]) for o in found.objects] == [("rel", {"v": "ä: 'x'", "k": "v1.31.0"})]
    (hook,) = found.hooks
    assert (hook.events, hook.weight, hook.lasting) == (("pre-install", "pre-upgrade"), -5, False)
    assert await helm.version() == (await helm.version()).strip() != ""


@pytest.mark.parametrize(
    ("template", "schema", "given", "kind", "says"),
    [
        ('{{ fail (printf "no %s" .Values.pw) }}', "{}", {"pw": "hunter22"}, K.RENDER, "no (values: pw)"),
        ('{{ required "pw is needed" .Values.pw }}', "{}", {}, K.RENDER, "pw is needed"),
        ("a: [", "{}", {}, K.RENDER, ""),
        ("{{ .Values.a.b.c }}", "{}", {}, K.RENDER, "nil pointer"),
        ("{{ nope }}", "{}", {}, K.RENDER, 'function "nope" not defined'),
        ("a: 1", '{"properties":{"n":{"type":"integer"}}}', {"n": "hunter22"}, K.SCHEMA_VIOLATION, "/n"),
        ("a: 1", '{"properties":{"pw":{"pattern":"^x$"}}}', {"pw": "hunter22"}, K.SCHEMA_VIOLATION, "does not match"),
    ],
)
async def test_failures_are_typed_and_hold_no_values(helm, make_chart, template, schema, given, kind, says):
    chart = make_chart({"templates/probe.yaml": template, "values.schema.json": schema})
    with pytest.raises(binary.HelmFailed) as caught:
        await helm.template(chart, given, "rel", "ns", CAPABILITIES)
    assert caught.value.kind is kind
    assert says in caught.value.message
    assert "hunter22" not in str(caught.value)
    assert not caught.value.message.startswith("Error")


@pytest.mark.parametrize(("kinds", "has_kinds"), [(900, True), (15_000, False)])
async def test_a_cluster_may_serve_many_kinds_with_long_names(helm, make_chart, kinds, has_kinds):
    group = ".".join(["g" * 40] * 3)
    names = [f"{group}{i}.io/v{v}{kind}" for i in range(kinds // 2) for v in (1, 2) for kind in ("", f"/Kind{i}")]
    asked = [names[0], names[1], names[-2], names[-1], "other/v1"]
    has = " ".join(f'{{{{ .Capabilities.APIVersions.Has "{name}" }}}}' for name in asked)
    chart = make_chart({"templates/probe.yaml": f"kind: A\napiVersion: v1\nmetadata: {{name: a}}\nhas: {has}\n"})

    text = await helm.template(chart, {}, "rel", "ns", binary.Capabilities("v1.31.0", tuple(names)))

    expected = ["true", str(has_kinds).lower(), "true", str(has_kinds).lower(), "false"]
    assert " ".join(expected) == manifest.parse(text).objects[0]["has"]


async def test_an_api_server_that_is_down(helm, make_chart):
    with pytest.raises(binary.HelmFailed) as caught:
        await helm.upgrade_install("r", "ns", make_chart(), {})
    assert caught.value.kind is K.NOT_REACHABLE
    assert caught.value.transient


async def test_a_missing_binary(tmp_path, make_chart):
    with pytest.raises(binary.HelmFailed) as caught:
        await runner(str(tmp_path / "nothing"), tmp_path).version()
    assert caught.value.kind is K.BINARY_MISSING


async def test_secrets_are_on_no_command_line_in_no_environment_and_in_no_file(tmp_path, make_chart):
    token = tmp_path / "token"
    token.write_text("t0ken-t0ken")
    report = tmp_path / "report"
    script = f"open({str(report)!r},'w').write(repr(sys.argv)+repr(dict(os.environ))+sys.stdin.read())"
    helm = runner(fake(tmp_path, script), tmp_path, server="https://x", token_file=str(token), ca_file="/ca")
    os.environ["MOORAGE_SOME_SECRET"] = "inherit-me"
    try:
        await helm.upgrade_install("r", "ns", make_chart(), {"pw": "hunter22"}, digest_labels={"a": "1", "b": "2"})
    finally:
        del os.environ["MOORAGE_SOME_SECRET"]
    seen = report.read_text()
    assert seen.count("hunter22") == 1
    assert seen.endswith('{"pw":"hunter22"}')
    assert "t0ken-t0ken" not in seen
    assert "inherit-me" not in seen
    for part in (
        "'--install'",
        "'--server-side=true'",
        "'--force-conflicts'",
        "'--labels=a=1,b=2'",
        "'--wait=hookOnly'",
    ):
        assert part in seen
    for part in ("rollback-on-failure", "create-namespace", "'--take-ownership'"):
        assert part not in seen
    kubeconfig = tmp_path / "scratch/kubeconfig"
    assert stat.S_IMODE(kubeconfig.stat().st_mode) == 0o600
    assert stat.S_IMODE(kubeconfig.parent.stat().st_mode) == 0o700
    assert str(token) in kubeconfig.read_text()
    assert "t0ken-t0ken" not in kubeconfig.read_text()
    assert list((tmp_path / "scratch/tmp").iterdir()) == []


async def test_at_the_deadline_it_is_asked_to_end_and_its_words_are_kept(tmp_path):
    script = "signal.signal(15, lambda *_: (sys.stderr.write('Error: context canceled'), sys.exit(1)))\ntime.sleep(60)"
    with pytest.raises(binary.HelmFailed) as caught:
        await runner(fake(tmp_path, script), tmp_path).rollback("r", "ns", 1, limit=2)
    assert caught.value.kind is K.TIMED_OUT
    assert "context canceled" in caught.value.message


async def test_who_does_not_listen_is_killed_with_its_children(tmp_path):
    pids = tmp_path / "pids"
    script = (
        "signal.signal(15, signal.SIG_IGN)\nc = subprocess.Popen(['sleep', '60'])\n"
        f"open({str(pids)!r},'w').write(f'{{os.getpid()}} {{c.pid}}')\ntime.sleep(60)"
    )
    helm = runner(fake(tmp_path, script), tmp_path)
    task = asyncio.create_task(helm.uninstall("r", "ns"))
    for _ in range(1500):
        if pids.exists() and pids.read_text():
            break
        await asyncio.sleep(0.02)
    task.cancel()
    await asyncio.sleep(0.05)
    task.cancel()  # an impatient caller changes nothing
    with pytest.raises(asyncio.CancelledError):
        await task
    for pid in map(int, pids.read_text().split()):
        for _ in range(1500):
            if not _alive(pid):
                break
            await asyncio.sleep(0.02)
        assert not _alive(pid)


def test_it_dies_with_its_parent(tmp_path):
    pid_file = tmp_path / "pid"
    helm = fake(tmp_path, f"open({str(pid_file)!r},'w').write(str(os.getpid()))\ntime.sleep(60)")
    program = (
        "import asyncio, pathlib\nfrom moorage.helm.runs import binary\n"
        f"h = binary.Helm({helm!r}, binary.KubeAccess(), pathlib.Path({str(tmp_path / 's')!r}))\n"
        "asyncio.run(h.uninstall('r', 'ns'))\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program])
    deadline = 1500
    while not (pid_file.exists() and pid_file.read_text()):
        deadline -= 1
        assert deadline
        assert parent.poll() is None
        _nap()
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    child = int(pid_file.read_text())
    for _ in range(1500):
        if not _alive(child):
            return
        _nap()
    pytest.fail("the child outlived its parent")


WRITES = "open({path!r}, 'a').write(f'{{time.monotonic()}}\\n')"


def writer(tmp_path: Path, *, deaf: bool = False) -> tuple[str, Path]:
    """A helm that writes the time again and again, and where; a deaf one does not end when it is asked to."""
    path = tmp_path / "writes"
    deafness = "signal.signal(15, signal.SIG_IGN)\n" if deaf else ""
    return fake(tmp_path, f"{deafness}while True:\n  {WRITES.format(path=str(path))}\n  time.sleep(0.01)"), path


async def written(path: Path) -> None:
    for _ in range(3000):
        if path.exists() and len(path.read_text().splitlines()) > 2:  # noqa: ASYNC240 - a few bytes
            return
        await asyncio.sleep(0.01)
    pytest.fail("it does not write")


def last(path: Path) -> float:
    return float(path.read_text().splitlines()[-1])


@pytest.mark.parametrize("deaf", [False, True])
async def test_it_ends_with_the_lease_although_the_event_loop_stands_still(tmp_path: Path, deaf: bool) -> None:
    """Law 7: who is held up renews nothing and stops nobody, and the next leader begins when the lease has run out."""
    path, writes = writer(tmp_path, deaf=deaf)
    leading, helm = gate.Gate(), runner(path, tmp_path)
    running = task_pool.Tasks(lambda _: None)
    leading.open_until(time.monotonic() + 600)

    async def uninstall() -> decision.Outcome:
        await helm.uninstall("r", "ns")
        return decision.Ok()

    running.start("lane", "uninstall", "1", uninstall, key="key", deadline=60, through=leading)
    await written(writes)
    closes = time.monotonic() + 1.5
    leading.open_until(closes)
    await asyncio.sleep(2 * process.PUT_OFF_EVERY)
    time.sleep(7)  # noqa: ASYNC251 - a loop that is held up
    woke = time.monotonic()

    assert closes - 1 < last(writes) < woke - 2, "it goes on until the gate closes, and is not ended by the loop"
    await running.ended(within=10)
    assert isinstance(running.state("lane").outcome, decision.Unknown | decision.Refused)  # type: ignore[union-attr]


async def test_it_goes_on_while_the_lease_is_renewed(tmp_path: Path) -> None:
    path, writes = writer(tmp_path)
    leading, helm = gate.Gate(), runner(path, tmp_path)
    first_ends = time.monotonic() + 6
    leading.open_until(first_ends)
    with gate.through(leading):
        task = asyncio.create_task(helm.uninstall("r", "ns"))
    while time.monotonic() < first_ends + 2:  # with half a second of grace
        await asyncio.sleep(0.2)
        leading.open_until(time.monotonic() + 6)
    assert not task.done()
    assert last(writes) > first_ends + 1

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert last(writes) < time.monotonic()


async def test_a_render_needs_no_lease(tmp_path: Path, make_chart) -> None:
    """It changes nothing, and what it was asked in may be over."""
    closed = gate.Gate()
    closed.open_until(None)
    with gate.through(closed):
        text = await runner(fake(tmp_path, "print('a: 1')"), tmp_path).template(
            make_chart(), {}, "r", "n", CAPABILITIES
        )
        with pytest.raises(binary.HelmFailed):
            await runner(fake(tmp_path, "time.sleep(60)"), tmp_path).uninstall("r", "n")

    assert text == "a: 1\n"


async def test_the_code_and_the_signal_of_a_supervised_one_are_its_own(tmp_path: Path) -> None:
    for script, code in (("sys.exit(3)", 3), ("os.kill(os.getpid(), 9)", -9), ("os.kill(os.getpid(), 6)", -6)):
        ended = await process.run([fake(tmp_path, script)], stdin=b"", env={}, timeout=60, grace=1, through=gate.Gate())
        assert code == ended.code


async def test_it_dies_with_its_supervisor(tmp_path: Path) -> None:
    """As when the kernel is out of memory and picks that."""
    path, writes = writer(tmp_path)
    task = asyncio.create_task(runner(path, tmp_path).uninstall("r", "ns"))
    await written(writes)
    os.kill(_supervisor(), signal.SIGKILL)
    with pytest.raises(binary.HelmFailed):
        await task
    at = last(writes)
    await asyncio.sleep(0.2)

    assert last(writes) <= at + 0.1


async def test_left_overs_of_a_killed_instance_are_removed(tmp_path):
    runner(fake(tmp_path, ""), tmp_path)
    (tmp_path / "scratch/tmp/old").mkdir()
    runner(fake(tmp_path, ""), tmp_path)
    assert list((tmp_path / "scratch/tmp").iterdir()) == []


async def test_a_flood_of_output_is_refused(tmp_path, make_chart, monkeypatch):
    monkeypatch.setattr("moorage.helm.runs.process.MAX_OUTPUT", 100_000)
    helm = runner(fake(tmp_path, "print('x' * 1_000_000)"), tmp_path)
    with pytest.raises(binary.HelmFailed, match="more than"):
        await helm.template(make_chart(), {}, "r", "ns", binary.Capabilities())


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _supervisor() -> int:
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    (found,) = (pid for pid in children if "supervisor" in Path(f"/proc/{pid}/cmdline").read_text())
    return int(found)


def _nap() -> None:
    import time

    time.sleep(0.02)


def test_a_child_that_ends_before_it_is_fed_is_no_fault():
    """Seen under load: uvloop refuses to write to a pipe whose other end is gone."""
    uvloop = pytest.importorskip("uvloop")

    async def busy() -> None:
        for _ in range(30):
            await asyncio.sleep(0)
            time.sleep(0.01)  # noqa: ASYNC251 - a loop that is held up

    async def many() -> list[process.Ended]:
        runs = [process.run(["/bin/true"], stdin=b"x", env={"TMPDIR": "/tmp"}, timeout=60, grace=1) for _ in range(8)]
        return list((await asyncio.gather(busy(), *runs))[1:])

    for _ in range(5):
        assert [0] * 8 == [ended.code for ended in uvloop.run(many())]
