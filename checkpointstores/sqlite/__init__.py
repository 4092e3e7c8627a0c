"""A checkpoint store in a SQLite file."""

from checkpointstores.sqlite._store import SqliteCheckpointStore

__all__ = ["SqliteCheckpointStore"]
