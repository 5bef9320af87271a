"""What the API server has, kept in memory: a reflector lists and watches, a replica keeps it true, a store holds it."""
