"""Runs of the helm binary: prepared, supervised, given up in time, and their failures understood."""
