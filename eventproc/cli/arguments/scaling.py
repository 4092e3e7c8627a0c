"""The options of the rules by which a group is scaled."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

import typer

from eventproc.core.scaling.decision import ScalingRules
from eventproc.errors import ConfigurationError
from eventproc.simulation.script import Scaling

_DEFAULTS = ScalingRules()


@dataclass(frozen=True, kw_only=True)
class ScalingOptions:
    """What an operator asks of a group."""

    replicas_min: Annotated[
        int, typer.Option("--min", metavar="N", help="The fewest processes; may be 0.")
    ] = _DEFAULTS.replicas_min
    replicas_max: Annotated[
        int,
        typer.Option(
            "--max",
            metavar="N",
            help="The most processes. There are never more than the hub has partitions, unless "
            "--min says so.",
        ),
    ] = _DEFAULTS.replicas_max
    drain_target: Annotated[
        timedelta, typer.Option(help="In what time a backlog should be handled.")
    ] = _DEFAULTS.drain_target
    cooldown: Annotated[
        timedelta,
        typer.Option(
            help="How long fewer processes must have been enough before their number falls."
        ),
    ] = _DEFAULTS.cooldown
    start_time: Annotated[
        timedelta, typer.Option(help="How long a new process takes until it handles events.")
    ] = _DEFAULTS.start_time
    checkpoint_interval: Annotated[
        timedelta,
        typer.Option(
            help="What the processes of the group have as --checkpoint-interval, or more. Rates "
            "are averages over this time."
        ),
    ] = _DEFAULTS.checkpoint_interval
    rate_of_one: Annotated[
        float | None,
        typer.Option(
            metavar="EVENTS",
            help="How many events per second one process can handle. By default it is measured "
            "while processes have a backlog.",
            show_default=False,
        ),
    ] = None

    def rules(self) -> ScalingRules:
        """Return the rules.

        Raises:
            ConfigurationError: An option is out of its bounds, or two contradict each other.
        """
        return ScalingRules(
            replicas_min=self.replicas_min,
            replicas_max=self.replicas_max,
            drain_target=self.drain_target,
            cooldown=self.cooldown,
            start_time=self.start_time,
            checkpoint_interval=self.checkpoint_interval,
            rate_of_one=self.rate_of_one,
        )


@dataclass(frozen=True, kw_only=True)
class SimulatedScalingOptions:
    """A scaler in a simulation."""

    autoscale: Annotated[
        bool,
        typer.Option(
            "--autoscale",
            help="Let the rule of `eventproc scale` decide the number of processors, which is "
            "--processors at first. Needs --load and --process-rate.",
        ),
    ] = False
    load: Annotated[
        float | None,
        typer.Option(
            metavar="EVENTS",
            help="How many events arrive in a second at first.",
            show_default=False,
        ),
    ] = None
    process_rate: Annotated[
        float | None,
        typer.Option(
            metavar="EVENTS",
            help="How many events per second a process handles. The scaler does not know it, "
            "unless --rate-of-one tells it.",
            show_default=False,
        ),
    ] = None

    def scaling(self, options: ScalingOptions) -> Scaling | None:
        """Return the scaler of the script, if there is one.

        Raises:
            ConfigurationError: An option is missing or out of its bounds, or is of no use.
        """
        if not self.autoscale:
            if (self.load, self.process_rate, options) != (None, None, ScalingOptions()):
                raise ConfigurationError(
                    "--load, --process-rate and the options of the scaler (--min, --max, "
                    "--rate-of-one, --drain-target, --cooldown, --start-time, "
                    "--checkpoint-interval) have an effect only with --autoscale"
                )
            return None
        if self.load is None or self.process_rate is None:
            raise ConfigurationError(
                "--autoscale needs --load and --process-rate: how many events arrive in a second, "
                "and how many one process handles"
            )
        return Scaling(load=self.load, process_rate=self.process_rate, rules=options.rules())
