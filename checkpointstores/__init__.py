"""Where a group keeps its ownership and checkpoints; one module for each kind of store."""
