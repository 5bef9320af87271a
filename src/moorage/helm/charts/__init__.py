"""Charts and values: found, fetched, verified, kept on disk, and read."""
