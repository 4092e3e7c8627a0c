"""Read and change the records of a group: shared by ``status`` and ``checkpoints``."""
