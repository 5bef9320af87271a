"""In which order runtimes take their turns."""

from __future__ import annotations

from benchmarks import place


def test_each_runtime_is_first_equally_often_and_none_is_left_out():
    """Who comes first meets a machine that has rested."""
    orders = [place.rotated(place.RUNTIMES, number) for number in range(2 * len(place.RUNTIMES))]

    assert sorted([*place.RUNTIMES] * 2) == sorted(order[0] for order in orders)
    assert all(sorted(place.RUNTIMES) == sorted(order) for order in orders)


def test_every_runtime_has_a_command_of_its_own():
    """Or two columns of the table would show the same."""
    commands = {tuple(place.command(runtime)) for runtime in place.RUNTIMES}

    assert len(place.RUNTIMES) == len(commands)
