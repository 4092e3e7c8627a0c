"""A checkpoint store in a SQLite file."""

from checkpointstores.sqlite._store import SqliteCheckpointStore
from eventproc._base import public as _public

__all__ = ["SqliteCheckpointStore"]

_public.set_module(__name__, globals())
