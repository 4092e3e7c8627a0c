"""The command line of a worker: that of the supervisor, with what differs in a worker."""

import socket
from collections.abc import Sequence

from eventproc.cli.terminal.log_lines import LogFormat
from eventproc.config import GroupConfig
from eventproc.core.placement.state import ordinal_in
from eventproc.endpoints.address import ListenAddress

END_OF_OPTIONS = "--"


def owner_ids(count: int, owner_id: str) -> tuple[str, ...]:
    """Return the owner ids of all workers, the same ones at each start.

    They are made of the supervisor's owner id, or of the host's name if none was given.
    """
    base = owner_id or socket.gethostname()
    return tuple(f"{base}-{number}" for number in range(count))


def first_ordinal(count: int, owner_id: str, config: GroupConfig) -> int | None:
    """Return the ordinal of the first worker, if the supervisor has one; others follow.

    So supervisors with the ordinals 0, 1, 2 and *count* workers each have no ordinal twice.
    ``None`` also with a placement that does not use ordinals: a worker would refuse its own.
    """
    if not config.placement.uses_ordinals:
        return None
    own = ordinal_in(owner_id) if config.ordinal is None else config.ordinal
    return None if own is None else own * count


def worker_arguments(
    given: Sequence[str],
    *,
    owner_id: str,
    ordinal: int | None,
    log_format: LogFormat,
    http: ListenAddress | None,
) -> list[str]:
    """Return the arguments of a worker; of an option that is given twice, the last one counts."""
    own = ["--workers", "0", "--owner-id", owner_id, "--log-format", log_format, "--stop-at-eof"]
    if ordinal is not None:
        own += ["--ordinal", str(ordinal)]
    if http is not None:
        own += ["--http", str(http)]
    arguments = list(given)
    end = arguments.index(END_OF_OPTIONS) if END_OF_OPTIONS in arguments else len(arguments)
    return [*arguments[:end], *own, *arguments[end:]]
