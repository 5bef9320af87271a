"""The DataGrid: one grid in a group."""
