"""The arguments of ``receive`` and ``receive_batch``, which both clients have in common."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypedDict

from eventproc.compat._caller import Caller
from eventproc.compat._handler import Callbacks
from eventproc.compat._positions import Position, StartingPositions


class ReceiveOptions(TypedDict, total=False):
    """The keyword arguments of Azure's methods, all with Azure's defaults."""

    max_wait_time: float | None
    """Seconds without an event after which the callback is called without one."""

    partition_id: str | None
    """The only partition to receive from; by default all, balanced with other processes."""

    owner_level: int | None
    """The level of exclusive links; by default 0 with a store, and none without."""

    prefetch: int
    track_last_enqueued_event_properties: bool
    starting_position: Position | dict[str, Any] | None
    """Where a partition without a checkpoint begins: by default ``"@latest"``."""

    starting_position_inclusive: bool | dict[str, bool]
    on_error: Callable[..., Any] | None
    on_partition_initialize: Callable[..., Any] | None
    on_partition_close: Callable[..., Any] | None


@dataclass(frozen=True, kw_only=True)
class Receive:
    """The arguments of one call that say what is received."""

    max_wait_time: float | None
    partition_id: str | None
    owner_level: int | None
    prefetch: int | None
    tracks_last_enqueued: bool
    positions: StartingPositions
    batch_size_max: int = 300
    collects: bool = False
    """Whether a batch waits for events: that of the client for threads does."""

    @classmethod
    def of(
        cls, options: ReceiveOptions, *, batch_size_max: int = 300, collects: bool = False
    ) -> "Receive":
        """Return what these arguments say."""
        return cls(
            max_wait_time=options.get("max_wait_time"),
            partition_id=options.get("partition_id"),
            owner_level=options.get("owner_level"),
            prefetch=options.get("prefetch"),
            tracks_last_enqueued=options.get("track_last_enqueued_event_properties", False),
            positions=StartingPositions.of(
                options.get("starting_position"),
                options.get("starting_position_inclusive", False),
            ),
            batch_size_max=batch_size_max,
            collects=collects,
        )


def callbacks_of(
    on_events: Callable[..., Any], options: ReceiveOptions, caller: Caller, *, takes_batches: bool
) -> Callbacks:
    """Return the program's functions."""
    return Callbacks(
        on_events=on_events,
        takes_batches=takes_batches,
        on_error=options.get("on_error"),
        on_partition_initialize=options.get("on_partition_initialize"),
        on_partition_close=options.get("on_partition_close"),
        caller=caller,
    )
