"""The options of a verb that is one process of a group, or that supervises several workers."""

from dataclasses import dataclass
from typing import Annotated

import typer

from eventproc._command.arguments.modules import KUBERNETES
from eventproc._command.arguments.options import StopAtEof
from eventproc._command.terminal.ends import stop_at_end_of_input
from eventproc._command.terminal.log_lines import LogFormat, LogLevel, log_to_stderr
from eventproc._command.workers.supervisor import supervise
from eventproc._group.config import GroupConfig
from eventproc._runtime.descriptors import raise_soft_limit
from eventproc.errors import ConfigurationError
from eventproc.ports import HealthReporter


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessOptions:
    """Options of ``run`` and ``hold``: name, workers, logs and health."""

    owner_id: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The name of this process in the group. Give one that stays the same over "
            "restarts, such as the name of a pod. By default each start has a new one; with "
            "--workers it is the name of the host, and the workers are NAME-0, NAME-1 and so on.",
        ),
    ] = ""
    workers: Annotated[
        int,
        typer.Option(
            "--workers",
            metavar="N",
            min=0,
            help="Run N processes on this host, to use N cores, and restart those that die. They "
            "are named NAME-0, NAME-1 and so on in the group; NAME is --owner-id, by default the "
            "host's name. Without --workers this process does the work itself.",
            show_default=False,
        ),
    ] = 0
    roster: Annotated[
        str,
        typer.Option(
            metavar="ROSTER",
            help="Which processes the group should have, whether they run yet or not: statefulset "
            "or replicaset, read from Kubernetes for this pod, or MODULE:NAME for a Roster of your "
            "own. Only with --placement Published:... An --owner-id has to be the name of the pod, "
            "which is the default.",
        ),
    ] = ""
    http: Annotated[
        str,
        typer.Option(
            metavar="[HOST:]PORT",
            help="Serve /live, /ready, /partitions, /metrics and /status for probes, Prometheus "
            "and people. PORT alone listens on 127.0.0.1, which probes of Kubernetes do not reach: "
            "in a container give 0.0.0.0:PORT. Needs `pip install 'eventproc[http]'`.",
        ),
    ] = ""
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
        if self.roster in KUBERNETES:
            raise ConfigurationError(
                f"--roster {self.roster} has the names of pods, and with --workers each pod has "
                "several members: leave --workers out and start more pods, or give MODULE:NAME of "
                "a Roster that names each worker, such as pod-0-0 and pod-0-1"
            )
        return supervise(
            self.workers,
            owner_id=self.owner_id,
            config=config,
            log_format=self.log_format,
            log_level=self.log_level,
            http=self.http,
        )

    def reporter(self) -> HealthReporter | None:
        """Return what serves ``--http``; ``None`` without it.

        Raises:
            ConfigurationError: the address has another form, or the extra is missing.
        """
        if not self.http:
            return None
        from eventproc.health import HealthServer  # noqa: PLC0415 - an extra

        return HealthServer(self.http, name="--http")

    def prepare(self) -> None:
        """Set up logs and limits of the process that does the work itself."""
        log_to_stderr(self.log_format, self.log_level)
        raise_soft_limit()
