"""A checkpoint store in a PostgreSQL database."""

from eventproc._base.extras import needing
from eventproc._base.public import set_public_module

with needing("postgres"):
    from checkpointstores.postgres._store import PostgresCheckpointStore

__all__ = ["PostgresCheckpointStore"]

set_public_module(__name__, globals())
