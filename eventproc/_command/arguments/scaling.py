"""The options of the rules by which a group is scaled."""

from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeAlias

import typer
from typer import Option

from eventproc._command.arguments.grouped import ConfigOptions
from eventproc._core.scaling.decision import ScalingRules
from eventproc._simulation.script import Scaling
from eventproc.errors import ConfigurationError

SCALING: Final[dict[str, Any]] = {
    "replicas_min": Option(metavar="N", help="The fewest processes; may be 0."),
    "replicas_max": Option(
        metavar="N",
        help="The most processes. There are never more than the hub has partitions, unless "
        "--min says so.",
    ),
    "drain_target": Option(help="In what time a backlog should be handled."),
    "cooldown": Option(
        help="How long fewer processes must have been enough before their number falls."
    ),
    "start_time": Option(help="How long a new process takes until it handles events."),
    "checkpoint_interval": Option(
        help="What the processes of the group have as --checkpoint-interval, or more. Rates "
        "are averages over this time."
    ),
    "rate_of_one": Option(
        metavar="EVENTS",
        help="How many events per second one process can handle. By default it is measured "
        "while processes have a backlog.",
    ),
}
"""What an operator asks of a group, by setting of ``ScalingRules``."""

RulesOption: TypeAlias = Annotated[ScalingRules, ConfigOptions(SCALING, ScalingRules())]


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

    def scaling(self, rules: ScalingRules) -> Scaling | None:
        """Return the scaler of the script, if there is one.

        Raises:
            ConfigurationError: An option is missing, or is of no use.
        """
        if not self.autoscale:
            if (self.load, self.process_rate, rules) != (None, None, ScalingRules()):
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
        return Scaling(load=self.load, process_rate=self.process_rate, rules=rules)
