"""The options of the rules by which a group is scaled."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

import typer

from eventproc.core.scaling.decision import ScalingRules

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
        timedelta, typer.Option(help="How soon a backlog should be drained.")
    ] = _DEFAULTS.drain_target
    cooldown: Annotated[
        timedelta,
        typer.Option(help="How long fewer processes must be enough before there are fewer."),
    ] = _DEFAULTS.cooldown
    start_time: Annotated[
        timedelta, typer.Option(help="How long a new process takes until it handles events.")
    ] = _DEFAULTS.start_time
    checkpoint_interval: Annotated[
        timedelta,
        typer.Option(
            help="At least the longest time between two checkpoints of a partition. Rates are "
            "averages over this time."
        ),
    ] = _DEFAULTS.checkpoint_interval
    rate_of_one: Annotated[
        float | None,
        typer.Option(
            "--rate",
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
