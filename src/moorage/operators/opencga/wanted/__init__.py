"""What is wanted by a spec: objects (`build`, `overrides`), and the agents' document (`automation`, `trees`)."""
