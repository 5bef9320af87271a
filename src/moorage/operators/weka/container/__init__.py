"""WekaContainer: one container of a cluster, which is one pod, on one node for good."""
