"""The GridTemplate: what grids of type Custom are made of."""
