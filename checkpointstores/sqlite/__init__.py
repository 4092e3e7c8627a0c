"""A checkpoint store in a SQLite file."""

from checkpointstores.sqlite._store import SqliteCheckpointStore
from eventproc._base import public_names as _public_names

__all__ = ["SqliteCheckpointStore"]

_public_names.set_module(__name__, globals())
