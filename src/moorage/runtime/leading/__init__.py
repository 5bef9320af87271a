"""Who may write: the Lease, shards of the objects, and other installations of moorage."""
