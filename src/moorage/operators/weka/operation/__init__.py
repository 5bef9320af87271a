"""WekaManualOperation: what is done once to drives of nodes."""
