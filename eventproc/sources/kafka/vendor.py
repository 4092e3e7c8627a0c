"""librdkafka's consumer, held by the few handles that we need: the importer of ``confluent_kafka``.

Rule 1: a consumer is used by one thread at a time; its makers promise no more.
Rule 2: partitions are assigned by hand. The client never joins a group and never commits.
Rule 3: whatever the client raises leaves this file as one of ``eventproc.errors``.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, cast

from confluent_kafka import Consumer as KafkaConsumer
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from eventproc.errors import ConfigurationError, SourceRejectedError
from eventproc.sources.kafka.event import Message
from eventproc.sources.kafka.options import DEFAULTS, FIXED
from eventproc.sources.kafka.position import Bounds
from eventproc.sources.kafka.refusal import Trouble, error_for

READ_MAX: Final = 1000
"""Most messages of one read: what a partition's bound may be exceeded by."""

_CLIENT_LOG: Final = logging.getLogger("eventproc.sources.kafka.librdkafka")


class Consumer:
    """A consumer of one topic. Making one begins to connect."""

    def __init__(
        self, bootstrap_servers: str, topic: str, group: str, settings: Mapping[str, object]
    ) -> None:
        """Make the client.

        Raises:
            ConfigurationError: it does not take a setting.
        """
        self._topic = topic
        self._troubles: list[Trouble] = []
        config: dict[str, Any] = {
            **DEFAULTS,
            **settings,
            **FIXED,
            "bootstrap.servers": bootstrap_servers,
            "group.id": group,
            "error_cb": self._note,
        }
        config.setdefault("logger", _CLIENT_LOG)
        try:
            self._client = KafkaConsumer(config)
        except (KafkaException, TypeError, ValueError) as error:
            raise ConfigurationError(
                f"the Kafka client does not take its settings: {_text(error)}"
            ) from error

    def _note(self, error: KafkaError) -> None:
        self._troubles.append(Trouble(error.name(), error.str(), error.fatal()))

    def troubles(self) -> list[Trouble]:
        """What the client said of itself since the last call; ``read`` listens."""
        troubles, self._troubles = self._troubles, []
        return troubles

    def read(self, wait_s: float) -> Sequence[Message]:
        """Return what there is as soon as there is something, or nothing after *wait_s*.

        In place of a message may stand an error.
        """
        with _translated("reading"):
            # ``consume`` alone waits until it has all that it was asked for.
            first = self._client.poll(wait_s)
            if first is None:
                return ()
            return cast("list[Message]", [first, *self._client.consume(READ_MAX - 1, timeout=0)])

    def assign(self, partition: int, offset: int) -> None:
        """Begin to read a partition."""
        with _translated(f"assigning partition {partition}"):
            self._client.incremental_assign([TopicPartition(self._topic, partition, offset)])

    def unassign(self, partition: int) -> None:
        """Read a partition no more."""
        with _translated(f"letting go of partition {partition}"):
            self._client.incremental_unassign([TopicPartition(self._topic, partition)])

    def pause(self, partition: int) -> None:
        """Read a partition no more for now; what was fetched and not read is fetched again."""
        with _translated(f"pausing partition {partition}"):
            self._client.pause([TopicPartition(self._topic, partition)])

    def resume(self, partition: int) -> None:
        """Take back ``pause``."""
        with _translated(f"resuming partition {partition}"):
            self._client.resume([TopicPartition(self._topic, partition)])

    def high(self, partition: int) -> int | None:
        """The offset after the newest message, as the last fetch told; asks nobody."""
        with _translated(f"asking for the end of partition {partition}"):
            at = TopicPartition(self._topic, partition)
            _, high = self._client.get_watermark_offsets(at, cached=True)
        return high if high >= 0 else None

    # Questions to the broker.

    def partition_count(self, timeout_s: float) -> int:
        """How many partitions the topic has."""
        with _translated("asking for the partitions"):
            found = self._client.list_topics(self._topic, timeout=timeout_s).topics[self._topic]
        if found.error is not None:
            raise error_for(f"topic {self._topic!r}", found.error.name(), found.error.str())
        return len(found.partitions)

    def bounds(self, partition: int, timeout_s: float) -> Bounds:
        """What a partition has."""
        at = TopicPartition(self._topic, partition)
        try:
            return self._bounds(at, timeout_s)
        except SourceRejectedError:
            # The client judges by what it knows of the topic, and a topic may have grown.
            if self.partition_count(timeout_s) <= partition:
                raise
        return self._bounds(at, timeout_s)

    def _bounds(self, at: TopicPartition, timeout_s: float) -> Bounds:
        with _translated(f"asking where partition {at.partition} begins and ends"):
            low, high = self._client.get_watermark_offsets(at, timeout=timeout_s)
        return Bounds(low, high)

    def offset_at(self, partition: int, time_ms: int, timeout_s: float) -> int | None:
        """The offset of the first message of this time or later; ``None`` where there is none."""
        with _translated(f"asking for a time in partition {partition}"):
            wanted = TopicPartition(self._topic, partition, time_ms)
            (found,) = self._client.offsets_for_times([wanted], timeout=timeout_s)
        if found.error is not None:
            raise error_for(f"partition {partition}", found.error.name(), found.error.str())
        return found.offset if found.offset >= 0 else None

    def close(self) -> None:
        """Disconnect. Never raises."""
        try:
            self._client.close()
        except (KafkaException, RuntimeError):
            _CLIENT_LOG.debug("closing the client failed", exc_info=True)


MakeConsumer = Callable[[str], Consumer]
"""Makes a consumer for a group."""


@contextmanager
def _translated(what: str) -> Iterator[None]:
    try:
        yield
    except KafkaException as error:
        said = error.args[0]
        raise error_for(what, said.name(), said.str()) from error
    except RuntimeError as error:  # what the binding raises for a consumer that was closed
        raise error_for(what, "_STATE", str(error)) from error


def _text(error: Exception) -> str:
    said = error.args[0] if error.args else error
    return said.str() if isinstance(said, KafkaError) else str(said)
