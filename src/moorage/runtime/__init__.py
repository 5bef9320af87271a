"""The operator runtime: from a watch event to a written status, with nothing lost in between.

    observe(key) -> Observation      caches and sources, no I/O           `kind`, `freshness`, `source`
    decide(Observation) -> Decision  pure                                 `decision`, `apply` for owned children
    execute(Decision) -> Outcome     guarded writes, tasks, status        `executor`, `tasks`, `status`, `event_recorder`

`controller` turns keys from `queue` into that sequence and `schedule` says when they come back, `election` says whether
this process may write (with `shards`, `shard_balancer` for which objects) and `gate` asks before each write, and `manager`
starts and stops all of it in order.
"""
