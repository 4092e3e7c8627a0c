"""The options of a verb that is one process of a group, or that supervises several workers."""

from dataclasses import dataclass
from typing import Annotated

import typer

from eventproc._command.arguments.modules import RosterOption, check_supervised
from eventproc._command.arguments.options import Http, StopAtEof, Workers
from eventproc._command.terminal.ends import stop_at_end_of_input
from eventproc._command.terminal.log_lines import LogFormat, LogLevel, log_to_stderr
from eventproc._command.workers.supervisor import supervise
from eventproc._group.config import GroupConfig
from eventproc._runtime.descriptors import raise_soft_limit


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessOptions:
    """Options of ``run`` and ``hold``: name, workers, logs and health."""

    owner_id: Annotated[
        str,
        typer.Option(
            envvar="EVENTPROC_OWNER_ID",
            metavar="NAME",
            help="The name of this process in the group. Give one that stays the same over "
            "restarts, such as the name of a pod. By default each start has a new one; with "
            "--workers it is the name of the host, and the workers are NAME-0, NAME-1 and so on.",
        ),
    ] = ""
    workers: Workers = 0
    roster: RosterOption = ""
    http: Http = ""
    log_format: Annotated[
        LogFormat,
        typer.Option(
            help="The format of log lines. text, for people, has the local time; json, for "
            "programs, UTC. auto: text on a terminal, json otherwise."
        ),
    ] = LogFormat.AUTO
    log_level: Annotated[
        LogLevel, typer.Option(help="The lowest level that is logged to standard error.")
    ] = LogLevel.INFO
    stop_at_eof: StopAtEof = False

    def supervise(self, config: GroupConfig) -> int | None:
        """With ``--workers``, run them until a signal and return the exit code; else ``None``.

        Raises:
            ConfigurationError: the workers would need other options.
        """
        if self.stop_at_eof:
            stop_at_end_of_input()
        if not self.workers:
            return None
        check_supervised(self.roster)
        return supervise(
            self.workers,
            owner_id=self.owner_id,
            config=config,
            log_format=self.log_format,
            log_level=self.log_level,
            http=self.http,
        )

    def prepare(self) -> None:
        """Set up logs and limits of the process that does the work itself."""
        log_to_stderr(self.log_format, self.log_level)
        raise_soft_limit()
