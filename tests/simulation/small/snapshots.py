"""What a small world is like at one moment."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cost:
    """What happened up to some moment."""

    duplicate_count: int
    stolen_count: int
    restart_count: int


@dataclass(frozen=True, slots=True)
class Shares:
    """The owners of partitions at one moment."""

    owners: Mapping[str, str | None]
    counts: Mapping[str, int]
