"""A checkpoint store in a SQLite file."""

from checkpointstores.sqlite._store import SqliteCheckpointStore
from eventproc._base.public import set_public_module

__all__ = ["SqliteCheckpointStore"]

set_public_module(__name__, globals())
