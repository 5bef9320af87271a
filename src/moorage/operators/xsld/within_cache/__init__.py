"""What lives within a cache, DataGrids and GridTemplates: what both decide, and what both are as kinds."""
