"""The sink: calls handlers with the rows of a query and commits checkpoints batch by batch."""

from spark_integration.sink.sink import CheckpointingSink

__all__ = ["CheckpointingSink"]
