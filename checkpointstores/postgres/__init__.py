"""A checkpoint store in a PostgreSQL database."""

from eventproc._base import public_names as _public_names
from eventproc._base.extras import needing

with needing("postgres"):
    from checkpointstores.postgres._store import PostgresCheckpointStore

__all__ = ["PostgresCheckpointStore"]

_public_names.set_module(__name__, globals())
