"""A checkpoint store in a PostgreSQL database."""

from eventproc.extras import needing

with needing("postgres"):
    from checkpointstores.postgres.store import PostgresCheckpointStore

__all__ = ["PostgresCheckpointStore"]
