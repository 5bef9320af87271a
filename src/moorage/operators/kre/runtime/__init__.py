"""The Runtime: the servers that versions need, as a release of one chart, and what those servers tell."""
