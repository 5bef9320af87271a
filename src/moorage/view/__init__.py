"""The read model that people's tools share: from an object's status to one screen. No I/O."""
