"""The processors that users run: ``EventProcessor`` and ``ResourceProcessor``.

They check the arguments; ``group_processor.py`` starts, runs and stops both.
"""

from collections.abc import Callable
from random import Random

from eventproc._base.settings import checked
from eventproc._delivery.checks import (
    check_handler,
    check_positions,
    check_resource_handler,
    check_sink,
    check_transactions,
    class_of,
)
from eventproc._delivery.config import EventProcessorConfig
from eventproc._delivery.handler import HandlerFactory
from eventproc._delivery.partition_pump import PartitionPump
from eventproc._group.resources.config import ResourceProcessorConfig
from eventproc._group.resources.handler import ResourceHandlerFactory
from eventproc._group.resources.names import Resources
from eventproc._group.resources.resource_pump import ResourcePump
from eventproc._group.resources.work import NamedResources
from eventproc._runtime.group_processor import GroupProcessor
from eventproc._runtime.partitions import Partitions
from eventproc._runtime.parts import MemberParts
from eventproc.models import ConsumerGroup
from eventproc.models._statistics import (
    DeliveryCounters,
    HoldCounters,
    ProcessorStatistics,
    ResourceProcessorStatistics,
)
from eventproc.ports import CheckpointStore, DeadLetterSink, EventSource, HealthReporter, Roster
from eventproc.telemetry import Telemetry


class EventProcessor(GroupProcessor[PartitionPump]):
    """Serves a fair share of a hub's partitions with the user's handlers.

    ``processor.run()`` blocks until SIGINT or SIGTERM. Inside an event loop, use
    ``await processor.serve()``, or ``async with processor:`` to run it beside other code. A
    processor may be started again after it stopped.
    """

    __module__ = "eventproc"

    @checked
    def __init__(
        self,
        *,
        source: EventSource,
        store: CheckpointStore,
        handler: HandlerFactory,
        dead_letters: DeadLetterSink | None = None,
        consumer_group: str = "$Default",
        owner_id: str | None = None,
        roster: Roster | None = None,
        config: EventProcessorConfig | None = None,
        rng: Random | None = None,
        clock: Callable[[], float] | None = None,
        identity_bits: Callable[[int], int] | None = None,
        telemetry: Telemetry | None = None,
        health: HealthReporter | None = None,
    ) -> None:
        """Check the arguments; nothing is opened before ``start``.

        Args:
            source: Where events come from. One for each processor.
            store: Where the group keeps ownership and checkpoints. One for each processor.
            handler: Makes the handler of a partition: usually the handler class.
            dead_letters: Where events that are given up are stored, if the failure policy's action
                is ``DEAD_LETTER``. One for each processor.
            consumer_group: The consumer group that the processor is a member of.
            owner_id: A name that stays the same over restarts: a crashed processor that restarts
                under it before its leases expire keeps its partitions. If not given, the one in the
                roster, or else a random one for each run.
            roster: Which processors the group should have; with a ``Published`` placement. One for
                each processor.
            config: Every other setting.
            rng: Source of randomness for jitter; identities never come from it.
            clock: Returns seconds, also counting suspended time; for lease times.
            identity_bits: Returns so many random bits, for the identity of each run: only for
                simulations that must repeat. The system's randomness if not given.
            telemetry: Where metrics and spans go; OpenTelemetry's global providers if not given.
            health: Reports whether the processor is healthy: a ``HealthServer``.

        Raises:
            ConfigurationError: the arguments cannot work; the message names the remedy.
        """
        config = config or EventProcessorConfig()
        check_sink(config, dead_letters, handler)
        check_positions(config, source)
        check_handler(handler, key_concurrency=config.key_concurrency)
        handler_class = class_of(handler)
        if handler_class is not None:
            check_transactions(handler_class, store, source, config)
        group = ConsumerGroup(
            fully_qualified_namespace=source.fully_qualified_namespace,
            eventhub_name=source.eventhub_name,
            name=consumer_group,
        )
        parts = MemberParts.of(
            group,
            store,
            config,
            owner_id=owner_id,
            roster=roster,
            rng=rng,
            clock=clock,
            identity_bits=identity_bits,
            telemetry=telemetry,
            health=health,
            statistics=self.statistics,
            log_fields={
                "fully_qualified_namespace": group.fully_qualified_namespace,
                "eventhub_name": group.eventhub_name,
                "consumer_group": consumer_group,
            },
            offset_format=source.offset_format,
        )
        work = Partitions(parts, config, source=source, handler=handler, dead_letters=dead_letters)
        super().__init__(parts, work)

    def statistics(self) -> ProcessorStatistics:
        """Return a snapshot; counters stay after a stop. Call it on the processor's event loop."""
        run, counted = self._current_run, self._newest_run
        counters = DeliveryCounters()
        if counted:
            counted.pumps.add_counts(counters)
        return ProcessorStatistics(
            **self._group_statistics(),
            pumps=tuple(pump.statistics() for pump in run.pumps.current) if run else (),
            stopped=run.pumps.restarts.stopped if run else (),
            counters=counters,
            abandoned=counted.pumps.abandoned if counted else (),
        )

    def pause(self, partition_id: str) -> bool:
        """Receive nothing from this partition until ``resume``; it stays owned.

        Returns whether this processor owns it. A pause ends when the ownership ends: a new owner is
        not paused. Call it on the processor's own event loop.
        """
        run = self._current_run
        return run is not None and run.pause(partition_id)

    def resume(self, partition_id: str) -> bool:
        """End a pause, or serve a partition again that the failure policy stopped.

        Returns whether this processor owns it. Call it on the processor's own event loop.
        """
        run = self._current_run
        return run is not None and run.resume(partition_id)


class ResourceProcessor(GroupProcessor[ResourcePump]):
    """Holds a fair share of a group's named resources with the user's handlers.

    Each resource has one holder in the whole group. It is used like an ``EventProcessor``:
    ``run()``, ``await serve()``, or ``async with processor:``.
    """

    __module__ = "eventproc"

    @checked
    def __init__(
        self,
        *,
        resources: Resources,
        store: CheckpointStore,
        group: str,
        handler: ResourceHandlerFactory,
        owner_id: str | None = None,
        roster: Roster | None = None,
        config: ResourceProcessorConfig | None = None,
        rng: Random | None = None,
        clock: Callable[[], float] | None = None,
        identity_bits: Callable[[int], int] | None = None,
        telemetry: Telemetry | None = None,
        health: HealthReporter | None = None,
    ) -> None:
        """Check the arguments; nothing is opened before ``start``.

        Args:
            resources: Which resources there are.
            store: Where the group keeps its records. One for each processor.
            group: The name of the group: processors with the same name share the resources. A
                store may have any number of groups. Upper and lower case do not matter.
            handler: Makes the handler of a resource: usually the handler class.
            owner_id: A name that stays the same over restarts: a crashed processor that restarts
                under it before its leases expire keeps its resources. If not given, the one in the
                roster, or else a random one for each run.
            roster: Which processors the group should have; with a ``Published`` placement. One for
                each processor.
            config: Every other setting.
            rng: Source of randomness for jitter; identities never come from it.
            clock: Returns seconds, also counting suspended time; for lease times.
            identity_bits: Returns so many random bits, for the identity of each run: only for
                simulations that must repeat. The system's randomness if not given.
            telemetry: Where metrics go; OpenTelemetry's global providers if not given.
            health: Reports whether the processor is healthy: a ``HealthServer``.

        Raises:
            ConfigurationError: the arguments cannot work; the message names the remedy.
        """
        config = config or ResourceProcessorConfig()
        check_resource_handler(handler)
        parts = MemberParts.of(
            ConsumerGroup.of_resources(group),
            store,
            config,
            owner_id=owner_id,
            roster=roster,
            rng=rng,
            clock=clock,
            identity_bits=identity_bits,
            telemetry=telemetry,
            health=health,
            statistics=self.statistics,
            log_fields={"resource_group": group},
        )
        work = NamedResources(resources, handler, config=config, rng=parts.rng, log=parts.log)
        super().__init__(parts, work)

    def statistics(self) -> ResourceProcessorStatistics:
        """Return a snapshot; counters stay after a stop. Call it on the processor's event loop."""
        run, counted = self._current_run, self._newest_run
        counters = HoldCounters()
        if counted:
            counted.pumps.add_counts(counters)
        return ResourceProcessorStatistics(
            **self._group_statistics(),
            resources=tuple(pump.statistics() for pump in run.pumps.current) if run else (),
            counters=counters,
        )
