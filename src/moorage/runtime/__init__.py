"""The operator runtime: from a watch event to a written status, with nothing lost in between.

    observe(key) -> Observation      caches and sources, no I/O      `kind`, `freshness`, `source`, `namespace_watches`
    decide(Observation) -> Decision  pure                            `decision`, `reasons`
    execute(Decision) -> Outcome     guarded writes, tasks, status   `gate`, `task_pool`, `reconcile.executor`

What operators use is here; the rest is in folders by job, and `manager` starts and stops all of it in order:

    workqueue   which key is next: `queue` with its fair turns, `workers`, `lanes`, and `pressure` of the API server
    reconcile   one pass: `controller`, `executor`, `status`, and `schedule`, which says when the key comes back
    leading     who may write: `election`, `shards`, other `installations`
    reporting   what is told: `event_recorder`, `telemetry`, `tracing`, and the probes by `http_server`
"""
