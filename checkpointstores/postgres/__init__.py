"""A checkpoint store in a PostgreSQL database."""

from eventproc._base.installed import needing

with needing("postgres"):
    from checkpointstores.postgres._store import PostgresCheckpointStore

__all__ = ["PostgresCheckpointStore"]
