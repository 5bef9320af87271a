"""What the operator tells: Events, logs, metrics, traces, and whether it is alive and ready."""
