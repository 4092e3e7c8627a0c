"""The owner of a partition, as the invariants saw it written."""

from dataclasses import dataclass

from tests.simulation.actor import Actor


@dataclass(slots=True)
class Holding:
    """The owner of a partition: the process that wrote the record last, and named itself."""

    actor: Actor
    since_s: float
    """When its record first named it, also if the processor that gave it the partition did so."""

    has_served: bool = False
    """Whether the owner called its handler since."""
