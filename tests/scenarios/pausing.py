"""An operator who pauses and resumes the group of a setup, as the commands do."""

from datetime import timedelta

from checkpointstores.memory import MemoryCheckpointStore
from eventproc.admin import pause_group, resume_group

EXPIRATION = timedelta(seconds=60)
POLLED_S = 15.0
"""Longer than a poll of a balanced group, with its variation."""


def store_of(setup):
    """Return an operator's own connection to the store."""
    return MemoryCheckpointStore(setup.account)


async def pause(setup, *partition_ids, reason="a test"):
    """Pause as the command does."""
    async with store_of(setup) as store:
        return await pause_group(
            store, setup.group, partition_ids or None, reason=reason, expiration=EXPIRATION
        )


async def resume(setup, *partition_ids):
    """Resume as the command does."""
    async with store_of(setup) as store:
        return await resume_group(store, setup.group, partition_ids or None)
