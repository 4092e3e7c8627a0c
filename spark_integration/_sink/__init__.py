"""The sink: calls handlers with the rows of a query and commits checkpoints batch by batch."""
