"""Who takes part in what."""

from __future__ import annotations

from benchmarks import cases, results, table


def test_a_runtime_takes_part_in_every_round_unless_it_is_said_otherwise():
    """And then in the first ones, so that those of all others stand beside them."""
    assert [True] * 7 == [cases.takes("restart", "moorage", number) for number in range(7)]
    assert [True] + [False] * 6 == [cases.takes("restart", "kopf", number) for number in range(7)]


def test_no_target_hangs_on_a_case_that_a_runtime_takes_less_often():
    """Or it would be judged by a few rounds, and nobody would see it."""
    less = {(case, runtime) for case, runtime in cases.ROUNDS}
    less |= {(case, runtime) for of, runtime in less if of == "restart" for case in ("idle", "steady")}

    assert {runtime for _, runtime in less} <= set(results.RUNTIMES)
    assert less.isdisjoint((target.case, target.peer or "moorage") for target in table.TARGETS)
