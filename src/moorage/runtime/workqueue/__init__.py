"""Which object is looked at next, by which worker, and which not at the same time."""
