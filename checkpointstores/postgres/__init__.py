"""A checkpoint store in a PostgreSQL database."""

from eventproc._base import public as _public
from eventproc._base.extras import needing

with needing("postgres"):
    from checkpointstores.postgres._store import PostgresCheckpointStore

__all__ = ["PostgresCheckpointStore"]

_public.set_module(__name__, globals())
