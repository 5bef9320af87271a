"""How a `.krt` file gets into a cluster: into the Runtime's object store, and as a RuntimeVersion."""
