"""The limit of open files: a source may need a file descriptor for each partition.

The library only warns if the limit is too low. It does not change it, because the limit belongs to
the whole program: child processes inherit it, and other code may rely on it (``select`` cannot use
a descriptor above 1,023). The command raises it in its own process.
"""

import sys
from contextlib import suppress
from typing import Final

from eventproc._base.logs import Logger

if sys.platform != "win32":
    import resource

SPARE: Final = 64
"""Descriptors for everything but the source: store, log, event loops, the handler's files."""

SOFT_LIMIT_WANTED: Final = 65_536
"""The limit that the command sets: many times what one process needs, at no cost."""


def warn_if_scarce(partition_count: int, per_partition: int, log: Logger) -> None:
    """Log a warning if one processor could not serve all partitions, should it have to."""
    needed, limit = partition_count * per_partition + SPARE, soft_limit()
    if per_partition and limit is not None and needed > limit:
        log.warning(
            "descriptors_scarce",
            limit=limit,
            needed=needed,
            remedy=f"raise the limit of open files to {needed} or more: `ulimit -n`, LimitNOFILE= "
            "of systemd, --ulimit nofile= of Docker",
        )


def soft_limit() -> int | None:
    """Return how many descriptors this process may have; ``None``: unlimited."""
    if sys.platform == "win32":
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if limit == resource.RLIM_INFINITY else limit


def raise_soft_limit() -> None:
    """Raise this process's limit to ``SOFT_LIMIT_WANTED``, as far as the system allows."""
    if sys.platform == "win32":
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = SOFT_LIMIT_WANTED if hard == resource.RLIM_INFINITY else min(hard, SOFT_LIMIT_WANTED)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        # macOS refuses values above a limit of its own. Then ``warn_if_scarce`` may warn.
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
