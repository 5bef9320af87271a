"""One pass over one object: observe, decide, execute, write the status, and say when to look again."""
