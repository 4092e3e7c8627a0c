"""The contract of the ``CheckpointStore`` port, as a test suite for any store."""
