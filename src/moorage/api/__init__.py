"""Plain data of the Kubernetes API: no I/O, no clock. Every other package may import it; it imports none."""
