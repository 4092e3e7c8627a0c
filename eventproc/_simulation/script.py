"""Scripts: which events happen to a simulated fleet, and when."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from itertools import pairwise
from typing import Annotated, Final

from eventproc._base.settings import Count, PositiveSpan, Span, Within, check_settings
from eventproc._core.option_values import parse_duration
from eventproc._core.scaling.decision import ScalingRules
from eventproc._delivery.config import EventProcessorConfig
from eventproc._group.config import Weight
from eventproc.errors import ConfigurationError


class Action(Enum):
    """The kinds of events."""

    JOIN = "join"
    """Processors start."""

    LEAVE = "leave"
    """Processors stop gracefully."""

    CRASH = "crash"
    """Processors end without releasing anything."""

    RESTART = "restart"
    """Processors crash, and start again under the same owner ids after ``RESTART_AFTER_S``."""

    BOUNCE = "bounce"
    """One after the other, processors stop gracefully, keep their partitions, and start again under
    the same owner ids after ``RESTART_AFTER_S``: a rolling deployment with static membership."""

    ROLL = "roll"
    """A rolling deployment: one after the other, a new processor starts and an old one stops. The
    new ones have another deployment id, and stand by until an old one leaves. With a placement
    that admits no standby, such as ``Ordinal``, the old one ends before the new one starts, as in a
    StatefulSet, whose new pod has the number of the old one."""

    GROW = "grow"
    """Partitions are added to the hub."""

    LOAD = "load"
    """From now on so many events arrive in a second. Only with ``Script.scaling``."""


RESTART_AFTER_S: Final = 5.0
"""Seconds from the end of a process to its next start."""

UNSCALED: Final = (Action.JOIN, Action.LEAVE, Action.CRASH)
"""Events that change the number of processors, which the scaler decides if there is one."""

_EVENT: Final = re.compile(r"([a-z]+):(\d+)(?:@(\d+(?:\.\d+)?[smh]?))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedEvent:
    """An action of this many processors, partitions or events per second, at one time."""

    action: Action
    count: Annotated[int, Within(least=0)]
    """0 only for a load."""

    at: Span | None = None
    """Time since the start of the simulation; ``None``: the script spreads such events evenly."""

    def __post_init__(self) -> None:
        """Check the count and the time."""
        check_settings(self)
        if self.count == 0 and self.action is not Action.LOAD:
            raise ConfigurationError(f"event {self.name}: the count must be 1 or more")

    @property
    def name(self) -> str:
        """The event in the notation of ``parse_event``: ``join:4``."""
        return f"{self.action.value}:{self.count}"

    @property
    def takes_processors(self) -> bool:
        """Whether it happens to processors that run already."""
        return self.action not in {Action.JOIN, Action.GROW, Action.LOAD}


def parse_event(text: str) -> ScriptedEvent:
    """Read ``join:4``, or with a time ``crash:3@20m``; a bare number is seconds.

    Raises:
        ConfigurationError: The text is not an event.
    """
    match = _EVENT.fullmatch(text.strip().lower())
    actions = {action.value: action for action in Action}
    if match is None or match[1] not in actions:
        raise ConfigurationError(
            f"event {text!r}: give {', '.join(actions)} with a count of 1 or more, such as "
            "join:4, and optionally a time, such as crash:3@20m"
        )
    return ScriptedEvent(
        action=actions[match[1]],
        count=int(match[2]),
        at=None if match[3] is None else parse_duration(f"event {text!r}", match[3]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """A scaler that decides the number of processors, and the work that they have."""

    load: Annotated[float, Within(least=0)]
    """Events that arrive in a second at first."""

    process_rate: Annotated[float, Within(above=0)]
    """Events that one process can handle in a second."""

    rules: ScalingRules = field(default_factory=ScalingRules)
    """The scaler's. ``start_time`` is also the time that a process really takes to start."""

    every: PositiveSpan = timedelta(seconds=10)
    """Time between two votes."""

    def __post_init__(self) -> None:
        """Check the values."""
        check_settings(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A group and the events that happen to it. All processors start at time zero."""

    partition_count: Count
    processor_count: Count
    events: Sequence[ScriptedEvent] = ()
    duration: PositiveSpan = timedelta(hours=1)
    latency: Span = timedelta(milliseconds=20)
    """Mean duration of a storage operation; each one takes 0.5 to 1.5 times as long."""

    config: EventProcessorConfig = field(
        default_factory=lambda: EventProcessorConfig(uses_store_thread=False)
    )
    """The configuration of every processor; ``uses_store_thread`` must be off."""

    weights: tuple[Weight, ...] = (1.0,)
    """The weights of the processors, by their number in the order of joining; then they repeat."""

    scaling: Scaling | None = None
    """``None``: only the events change the number of processors, and handlers have no work."""

    seed: int = 0

    def __post_init__(self) -> None:
        """Check that the script can be simulated.

        Raises:
            ConfigurationError: It cannot; the message names the remedy.
        """
        check_settings(self)
        if self.config.uses_store_thread:
            raise ConfigurationError(
                "virtual time does not work with threads: set uses_store_thread to False"
            )
        count = self.processor_count
        for _, event in self.timed():
            if self.scaling is None and event.action is Action.LOAD:
                raise ConfigurationError(f"event {event.name}: only with a scaler (--autoscale)")
            if self.scaling is not None:
                if event.action in UNSCALED:
                    raise ConfigurationError(
                        f"event {event.name}: with a scaler, which decides the number of "
                        "processors, give load, restart, bounce, roll or grow"
                    )
                continue  # There may be more or fewer by then.
            if event.takes_processors and event.count > count:
                raise ConfigurationError(
                    f"event {event.name}: there are only {count} processors by then"
                )
            count += {Action.JOIN: 1, Action.LEAVE: -1, Action.CRASH: -1}.get(
                event.action, 0
            ) * event.count
            if count == 0:
                raise ConfigurationError(f"event {event.name}: would leave no processor")

    def timed(self) -> list[tuple[float, ScriptedEvent]]:
        """Return the events with their times in seconds, in order; spread untimed ones evenly."""
        whole_s = self.duration.total_seconds()
        step_s = whole_s / (len(self.events) + 1)
        timed = [
            (number * step_s if event.at is None else event.at.total_seconds(), event)
            for number, event in enumerate(self.events, start=1)
        ]
        timed.sort(key=lambda pair: pair[0])
        for (at_s, _), (next_s, event) in pairwise(timed):
            if at_s == next_s:
                raise ConfigurationError(
                    f"event {event.name}: another event has the same time, so their costs "
                    "could not be told apart"
                )
        for at_s, event in timed:
            if not 0 < at_s < whole_s:
                raise ConfigurationError(
                    f"event {event.name} at {at_s:.0f} s: its time must lie within the "
                    f"{whole_s:.0f} s that are simulated"
                )
        return timed
