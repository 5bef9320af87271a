"""What asks the API server about owned objects: watches, reads on demand, and last looks right before an act."""
