"""In which order runtimes take their turns."""

from __future__ import annotations

import collections
import itertools
from pathlib import Path

import pytest

from benchmarks import place, results


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6])
def test_each_runtime_is_first_equally_often_and_follows_each_other_equally_often(count: int):
    """What comes before it may have left it a rested machine, or a full one."""
    runtimes = results.RUNTIMES[:count]
    orders = [place.order(runtimes, number) for number in range(2 * count)]

    followed = collections.Counter(pair for order in orders for pair in itertools.pairwise(order))

    assert all(sorted(runtimes) == sorted(order) for order in orders)
    assert collections.Counter(order[0] for order in orders) == dict.fromkeys(runtimes, 2)
    assert followed == dict.fromkeys(itertools.permutations(runtimes, 2), 2)


def test_without_cargo_the_others_go_on_without_kube_rs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """And whoever looks is told why."""
    monkeypatch.setattr(place, "BUILD", tmp_path)
    monkeypatch.setattr(place, "_environment", lambda *_: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CARGO_HOME", str(tmp_path))

    assert ["moorage", "limit"] == place.build(["moorage", "kube-rs", "limit"])
    assert "no cargo here, so kube-rs is left out" in capsys.readouterr().err


def test_cargo_is_found_where_it_is_installed_for_one_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """A shell's profile adds that to the PATH, and not every process comes from a shell."""
    tool = tmp_path / "bin" / "cargo"
    tool.parent.mkdir()
    tool.touch(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CARGO_HOME", str(tmp_path))

    assert tool == place.cargo()


def test_every_runtime_has_a_command_of_its_own():
    """Or two columns of the table would show the same."""
    commands = {tuple(place.command(runtime)) for runtime in results.RUNTIMES}

    assert len(results.RUNTIMES) == len(commands)
