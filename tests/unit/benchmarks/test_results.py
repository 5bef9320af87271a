"""Figures of a run, as they are kept."""

from __future__ import annotations

from pathlib import Path

import msgspec

from benchmarks import results


def kept(file: Path) -> results.Rounds:
    return msgspec.json.decode(file.read_bytes(), type=results.Rounds)


def test_each_round_is_written_down(tmp_path: Path) -> None:
    file = tmp_path / "new" / "latest.json"
    it = results.Results(file)
    for seconds in (1.0, 2.0):
        it.add("cold", "limit", {"seconds": seconds})
        it.save()

    assert {"cold": {"limit": {"seconds": [1.0, 2.0]}}} == kept(file)


def test_a_run_begins_anew_unless_it_is_to_keep_what_it_does_not_take(tmp_path: Path) -> None:
    file = tmp_path / "latest.json"
    first = results.Results(file, keep=True)
    first.add("cold", "limit", {"seconds": 1.0})
    first.add("cold", "kopf", {"seconds": 9.0})
    first.set("pods", "kopf", "stall", [3.0, 4.0])
    first.save()
    second = results.Results(file, keep=True)
    for seconds in (5.0, 6.0):
        second.add("cold", "limit", {"seconds": seconds})
    second.save()

    assert {"cold": {"limit": {"seconds": [5.0, 6.0]}}, "pods": {"kopf": {"stall": [3.0, 4.0]}}} == kept(file)
    results.Results(file).save()
    assert {} == kept(file)
