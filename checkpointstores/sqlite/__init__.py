"""A checkpoint store in a SQLite file."""

from checkpointstores.sqlite.store import SqliteCheckpointStore

__all__ = ["SqliteCheckpointStore"]
