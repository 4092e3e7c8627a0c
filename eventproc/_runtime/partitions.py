"""The partitions of a hub, as the work that a group shares."""

from collections.abc import Sequence
from datetime import timedelta

from eventproc._core.delivery.checkpoints import pumps_writer
from eventproc._delivery.checkpointer import CheckpointRecord, Write
from eventproc._delivery.checks import check_transactions, first_checked
from eventproc._delivery.config import EventProcessorConfig
from eventproc._delivery.flow_control import RateLimiter
from eventproc._delivery.handler import BlockingPartitionHandler, HandlerFactory, PartitionHandler
from eventproc._delivery.handler_threads import ThreadedHandler
from eventproc._delivery.links import Links, QueueLinks
from eventproc._delivery.partition_pump import PartitionPump
from eventproc._delivery.scope import PartitionIdentity
from eventproc._group.pumps.pump import Grant, Opening, Work
from eventproc._runtime.descriptors import warn_if_scarce
from eventproc._runtime.parts import MemberParts
from eventproc.ports import DeadLetterSink, EventSource, QueueSource


class Partitions(Work[PartitionPump]):
    """Opens source and dead letters, and makes the pumps of partitions."""

    handler_kinds = (PartitionHandler, BlockingPartitionHandler)

    def __init__(
        self,
        parts: MemberParts,
        config: EventProcessorConfig,
        *,
        source: EventSource,
        handler: HandlerFactory,
        dead_letters: DeadLetterSink | None,
    ) -> None:
        self._parts = parts
        self._config = config
        self._source = source
        self._queue = source if isinstance(source, QueueSource) else None
        """The source, if its service keeps the position; ``None`` if it is a log."""

        self._given_handler = self._handler = handler
        self._dead_letters = dead_letters
        self.names_interval = config.partition_ids_interval
        self._known_count = 0
        self._pump_count = 0
        self._transactions = parts.store.transactions()
        rate_max = config.rate_max
        self._rate_limits = [] if rate_max is None else [RateLimiter(rate_max)]

    def check(self) -> None:
        """Check the first handler that is made."""
        concurrency = self._config.key_concurrency
        self._handler = first_checked(
            self._given_handler, key_concurrency=concurrency, check=self._check_handler
        )

    def _check_handler(self, cls: type) -> None:
        check_transactions(cls, self._parts.store, self._source, self._config)

    async def open(self, opening: Opening) -> None:
        """Open source and dead letters, and check the consumer group."""
        self._source.reserve(self)  # Before it is changed.
        if self._queue is not None:
            self._queue.set_expiration(self._config.ownership_expiration)
            self._warn_of_late_settling(self._queue.unsettled_span_max)
        await self._source.open_for(self)
        opening.push("source", self._source.close_for_others)
        if self._dead_letters is not None:
            await self._dead_letters.open_for(self)
            opening.push("dead_letters", self._dead_letters.close_for_others)
        await self._source.check_consumer_group(self._parts.group.name)
        if self._transactions is not None:
            await self._transactions.open()
            opening.push("transactions", self._transactions.close)

    def _warn_of_late_settling(self, span: timedelta | None) -> None:
        """Warn if the service takes an event back before a call that hangs is noticed."""
        stall = self._config.stall_timeout
        if span is not None and (stall is None or stall >= span):
            self._parts.log.warning(
                "acknowledgement_timeout_short",
                stall_timeout_s=None if stall is None else stall.total_seconds(),
                acknowledgement_timeout_s=span.total_seconds(),
                remedy="the broker delivers a message again that is not acknowledged in time, and "
                "the call with it may still run: set stall_timeout below its consumer_timeout, or "
                "raise that above the longest call of the handler; see docs/rabbitmq.md",
            )

    async def names(self) -> Sequence[str]:
        """Read the partition ids: a hub may grow."""
        partition_ids = await self._source.partition_ids()
        if len(partition_ids) > self._known_count:
            self._known_count = len(partition_ids)
            per_partition = self._source.descriptors_per_partition
            warn_if_scarce(self._known_count, per_partition, self._parts.log)
        return partition_ids

    def make_handler(self) -> PartitionHandler | BlockingPartitionHandler:
        """Return a new handler."""
        return self._handler()

    def display_name(self, name: str) -> str:
        """Return the partition's id."""
        return name

    def make_pump(
        self, grant: Grant, handler: PartitionHandler | BlockingPartitionHandler
    ) -> PartitionPump:
        """Return a pump, which calls a blocking handler in threads."""
        partition_id, me, call = grant.name, grant.member, grant.call
        parts, group, store = self._parts, self._parts.group, self._parts.store
        self._pump_count += 1
        has_transactions = handler.uses_transactions
        if isinstance(handler, BlockingPartitionHandler):
            handler = ThreadedHandler(handler)
        identity = PartitionIdentity(partition_id=partition_id, group=group, owner_id=me.owner_id)
        queue = self._queue
        links = Links(self._source, identity) if queue is None else QueueLinks(queue, identity)

        def reported(write: Write) -> Write:
            return parts.reported.write(write, partition_id)

        return PartitionPump(
            identity,
            record=CheckpointRecord(
                partition_id=partition_id,
                writer=pumps_writer(me.owner_id, me.incarnation, self._pump_count),
                read=lambda: call(store.read_checkpoint(group, partition_id)),
                write=reported(lambda update: call(store.update_checkpoint(group, update))),
                verify=grant.verify,
                reported=reported,
            ),
            handler=handler,
            report=parts.reported.calls(partition_id),
            links=links,
            transactions=self._transactions if has_transactions else None,
            dead_letters=self._dead_letters,
            rate_limits=self._rate_limits,
            stop=grant.stop,
            ready=grant.ready,
            is_forced=grant.is_forced,
            config=self._config,
            rng=parts.rng,
            log=parts.log.bind(partition_id=partition_id),
        )
