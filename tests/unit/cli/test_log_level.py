"""The log level can be changed while the operator runs, by its configuration file alone."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from moorage.cli import log_level
from moorage.runtime.reporting import telemetry

log = structlog.get_logger("test")


@pytest.fixture(autouse=True)
def _reset() -> Iterator[None]:
    yield
    structlog.reset_defaults()


def _mount(folder: Path, text: str) -> Path:
    """As the kubelet renews a mounted ConfigMap: a link is moved to a new folder."""
    version = folder / f"..{len(list(folder.iterdir()))}"
    version.mkdir()
    (version / "config.yaml").write_text(text)
    link = folder / "..new"
    link.symlink_to(version.name)
    os.replace(link, folder / "..data")
    path = folder / "config.yaml"
    if not path.is_symlink():
        path.symlink_to("..data/config.yaml")
    return path


def test_only_what_is_at_least_of_the_level_is_logged_and_the_level_follows_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also a logger that was made before."""
    path = _mount(tmp_path, "logLevel: info")
    telemetry.configure_logging("info", as_json=True)
    it = log_level.Follower(path, "info")
    seen = []
    for text in ("logLevel: info", "logLevel: debug\nsystems: {of: {no: concern}}", "logLevel: ERROR", "workers: 3"):
        _mount(tmp_path, text)
        it.turn()
        for level in ("debug", "info", "error"):
            getattr(log, level)("told")
        seen.append(capsys.readouterr().err.count('"event":"told"'))

    assert [2, 3, 1, 2] == seen


@pytest.mark.parametrize("text", ["logLevel: loud", "logLevel: [", "logLevel: 7"])
def test_what_can_not_be_used_is_told_once_and_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    path = _mount(tmp_path, "logLevel: info")
    telemetry.configure_logging("info", as_json=True)
    it = log_level.Follower(path, "info")
    _mount(tmp_path, text)
    for _ in range(3):
        it.turn()
    path.unlink()
    it.turn()

    assert 2 == capsys.readouterr().err.count("log level stays"), "once for the text, once for the missing file"
    assert "info" == it.level


async def test_it_looks_again_and_again(tmp_path: Path) -> None:
    path = _mount(tmp_path, "logLevel: info")
    it = log_level.Follower(path, "info")
    following = asyncio.create_task(it.run(every=0.001))
    _mount(tmp_path, "logLevel: error")
    async with asyncio.timeout(30):
        while it.level != "error":
            await asyncio.sleep(0.001)
    following.cancel()
