"""What shall happen to a fleet, and when."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from itertools import pairwise
from typing import Final

from eventproc.config import EventProcessorConfig
from eventproc.errors import ConfigurationError


class Action(Enum):
    """What can happen."""

    JOIN = "join"
    """Processors start."""

    LEAVE = "leave"
    """Processors stop in good order."""

    CRASH = "crash"
    """Processors end without a word."""

    RESTART = "restart"
    """Processors crash, and come back under their own names after ``RESTART_AFTER_S``."""

    BOUNCE = "bounce"
    """One after the other, processors stop in good order, keep what they own, and come back under
    their own names after ``RESTART_AFTER_S``: a rolling deploy where names stay."""

    ROLL = "roll"
    """A rolling deploy: one after the other, a new one starts and an old one stops. The new ones
    are of another generation, and wait for the old ones' shares."""

    GROW = "grow"
    """Partitions are added to the hub."""


RESTART_AFTER_S: Final = 5.0
"""How long a process takes to come back."""

_EVENT: Final = re.compile(r"([a-z]+):(\d+)(?:@(\d+(?:\.\d+)?)(s|m|h)?)?")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedEvent:
    """So many processors (or partitions) do this, at a time."""

    action: Action
    count: int
    at: timedelta | None = None
    """Since the beginning; ``None``: where the script puts it."""

    @property
    def name(self) -> str:
        """The event as it is written in a script: ``join:4``."""
        return f"{self.action.value}:{self.count}"


def parse_event(text: str) -> ScriptedEvent:
    """Read ``join:4``, or with a time ``crash:3@20m``; a bare number is seconds.

    Raises:
        ConfigurationError: It is none of these.
    """
    match = _EVENT.fullmatch(text.strip().lower())
    actions = {action.value: action for action in Action}
    if match is None or match[1] not in actions or int(match[2]) == 0:
        raise ConfigurationError(
            f"event {text!r}: give {', '.join(actions)} with a count, such as join:4, and if you "
            "like a time, such as crash:3@20m"
        )
    at_s = None if match[3] is None else float(match[3]) * _SECONDS[match[4] or "s"]
    return ScriptedEvent(
        action=actions[match[1]],
        count=int(match[2]),
        at=None if at_s is None else timedelta(seconds=at_s),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A fleet and what happens to it. Everything starts at once, at zero."""

    partition_count: int
    processor_count: int
    events: Sequence[ScriptedEvent] = ()
    duration: timedelta = timedelta(hours=1)
    latency: timedelta = timedelta(milliseconds=20)
    """Of a storage operation, on average; each takes half of it to one and a half."""

    config: EventProcessorConfig = field(
        default_factory=lambda: EventProcessorConfig(uses_store_thread=False)
    )
    """How every processor behaves; its ``uses_store_thread`` must be off."""

    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse, with the remedy, what cannot be played."""
        if self.partition_count < 1 or self.processor_count < 1:
            raise ConfigurationError("a fleet needs at least 1 partition and 1 processor")
        if self.duration <= timedelta(0):
            raise ConfigurationError(f"duration is {self.duration}: give a positive time")
        if self.latency < timedelta(0):
            raise ConfigurationError(f"latency is {self.latency}: give zero or more")
        if self.config.uses_store_thread:
            raise ConfigurationError("a thread cannot take part in virtual time: turn it off")
        count = self.processor_count
        for _, event in self.timed():
            taken = event.action not in {Action.JOIN, Action.GROW}
            if taken and event.count > count:
                raise ConfigurationError(
                    f"event {event.name}: there are only {count} processors by then"
                )
            count += {Action.JOIN: 1, Action.LEAVE: -1, Action.CRASH: -1}.get(
                event.action, 0
            ) * event.count
            if count == 0:
                raise ConfigurationError(f"event {event.name}: would leave nobody")

    @property
    def has_bounce(self) -> bool:
        """Whether processors come back in it, so that all keep what they own when they stop."""
        return any(event.action is Action.BOUNCE for event in self.events)

    def timed(self) -> list[tuple[float, ScriptedEvent]]:
        """The events with their times, in order; those without one are spread evenly."""
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
                    f"event {event.name}: another one has the same time, so nobody could tell "
                    "which of them cost what"
                )
        for at_s, event in timed:
            if not 0 < at_s < whole_s:
                raise ConfigurationError(
                    f"event {event.name} at {at_s:.0f} s: its time must lie within the "
                    f"{whole_s:.0f} s that are simulated"
                )
        return timed
