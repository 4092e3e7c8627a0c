"""A wrapper around librdkafka's consumer and producer; the only importer of ``confluent_kafka``.

Rule 1: only one thread at a time uses a client, because librdkafka guarantees no more.
Rule 2: partitions are assigned manually. The client never joins a group and never commits.
Rule 3: every exception of the client leaves this module as one of ``eventproc.errors``.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from confluent_kafka import Consumer as KafkaConsumer
from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka import Producer as KafkaProducer
from confluent_kafka.admin import AdminClient

from eventproc.errors import (
    ConfigurationError,
    SourceRejectedError,
    SourceUnavailableError,
    SuspectSettingError,
)
from eventproc.sources.kafka import _producer_config as producer_config
from eventproc.sources.kafka._address import Tokens, TopicAddress
from eventproc.sources.kafka._errors import (
    NO_TOKEN,
    PERMANENT,
    SUSPECT,
    UNKNOWN_PARTITION,
    ClientError,
    error_for,
)
from eventproc.sources.kafka._event import Message
from eventproc.sources.kafka._offsets import Bounds
from eventproc.sources.kafka._options import DEFAULTS, FIXED

READ_MAX: Final = 500
"""Most messages of one read. A partition may exceed its ``prefetch`` by this many.

Python's garbage collector starts when there are 700 more of the objects that it tracks. The
messages of a read are gone before."""

_AUTHENTICATION: Final = "_AUTHENTICATION"
"""The client's name of any failure of authentication, a missing token among them."""

_ALL_DOWN: Final = "_ALL_BROKERS_DOWN"

_NO_CAUSE: Final = "the client gives no reason, as when a port expects another security.protocol"

REFUSALS: Final = PERMANENT | SUSPECT | {NO_TOKEN}
"""Names of errors that the client reports beside a request, and that say more than its time-out."""

CHECK_SLICE_S: Final = 1.0
"""How long one request of ``Producer.check`` waits: between two, the client reports errors."""

_CLIENT_LOG: Final = logging.getLogger("eventproc.sources.kafka.librdkafka")


class Consumer:
    """A consumer of one topic. It starts to connect when it is created."""

    def __init__(
        self,
        address: TopicAddress,
        group: str,
    ) -> None:
        """Create the client. With tokens it blocks for a second or more, until it has one.

        Raises:
            ConfigurationError: the client refuses a setting.
        """
        self._topic = address.topic
        self._tokens = address.tokens
        self._client_errors: list[ClientError] = []
        self._cause = _NO_CAUSE
        """The text of the last error, but for "all brokers are down", which follows it and does not
        say why."""

        settings = _settings(address, DEFAULTS, FIXED, self._note)
        with _created(self._tokens):
            self._client = KafkaConsumer({**settings, "group.id": group})

    def _note(self, error: KafkaError) -> None:
        noted = _client_error(error, self._tokens)
        if noted.name == _ALL_DOWN:
            noted = replace(noted, text=f"{noted.text}: {self._cause}")
        else:
            self._cause = noted.text
        self._client_errors.append(noted)

    def client_errors(self) -> list[ClientError]:
        """Return the errors that the client reported in calls of ``read`` since the last call."""
        client_errors, self._client_errors = self._client_errors, []
        return client_errors

    def read(self, wait_s: float) -> Sequence[Message]:
        """Return messages as soon as there are any, or an empty list after *wait_s* seconds.

        An item may be an error instead of a message.
        """
        with _translated("reading"):
            if not wait_s:
                return cast("list[Message]", self._client.consume(READ_MAX, timeout=0))
            # ``consume`` alone would wait until it has all READ_MAX messages.
            first = self._client.poll(wait_s)
            if first is None:
                return ()
            return cast("list[Message]", [first, *self._client.consume(READ_MAX - 1, timeout=0)])

    def assign(self, partition: int, offset: int, leader_epoch: int | None = None) -> None:
        """Start to read a partition at the offset; with an epoch, check where its log ended."""
        known: dict[str, Any] = {} if leader_epoch is None else {"leader_epoch": leader_epoch}
        with _translated(f"assigning partition {partition}"):
            at = TopicPartition(self._topic, partition, offset, **known)
            self._client.incremental_assign([at])

    def unassign(self, partition: int) -> None:
        """Stop reading a partition."""
        with _translated(f"unassigning partition {partition}"):
            self._client.incremental_unassign([TopicPartition(self._topic, partition)])

    def pause(self, partition: int) -> None:
        """Pause a partition. Messages that were fetched but not read will be fetched again."""
        with _translated(f"pausing partition {partition}"):
            self._client.pause([TopicPartition(self._topic, partition)])

    def resume(self, partition: int) -> None:
        """End the effect of ``pause``."""
        with _translated(f"resuming partition {partition}"):
            self._client.resume([TopicPartition(self._topic, partition)])

    def high(self, partition: int) -> int | None:
        """Return the offset after the newest message according to the last fetch, if known."""
        with _translated(f"asking for the end of partition {partition}"):
            at = TopicPartition(self._topic, partition)
            _, high = self._client.get_watermark_offsets(at, cached=True)
        return high if high >= 0 else None

    # Requests to the broker.

    def partition_count(self, timeout_s: float) -> int:
        """Return the number of partitions of the topic."""
        return _partition_count(self._client, self._topic, "asking for the partitions", timeout_s)

    def bounds(self, partition: int, timeout_s: float) -> Bounds:
        """Return the first offset and the end offset of a partition."""
        at = TopicPartition(self._topic, partition)
        try:
            return self._bounds(at, timeout_s)
        except SourceRejectedError:
            # The client uses cached metadata, and partitions may have been added since.
            if self.partition_count(timeout_s) <= partition:
                raise
        return self._bounds(at, timeout_s)

    def _bounds(self, at: TopicPartition, timeout_s: float) -> Bounds:
        with _translated(f"asking where partition {at.partition} begins and ends"):
            low, high = self._client.get_watermark_offsets(at, timeout=timeout_s)
        return Bounds(low, high)

    def offset_at(self, partition: int, time_ms: int, timeout_s: float) -> int | None:
        """Return the offset of the first message of this time or later, or ``None``."""
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

    def abandon(self) -> None:
        """Close it on a thread of its own: one that has forgotten all brokers may wait for ever."""
        threading.Thread(target=self.close, name="eventproc-kafka-abandoned", daemon=True).start()


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaGroup:
    """A consumer group that the broker keeps; this library's groups are none."""

    following: Mapping[int, int]
    """The offset that it has committed, of the next message to read, by partition of the topic."""

    is_active: bool
    """Whether it has members now."""

    members: Sequence[str]
    """Client and host of each of them, if the broker says so."""


def read_kafka_group(address: TopicAddress, name: str, timeout_s: float) -> KafkaGroup:
    """Return what the broker knows of a consumer group; it blocks until then.

    Raises:
        ConfigurationError: the client refuses a setting.
        SourceError: the broker did not answer, or refuses.
    """
    noted: list[ClientError] = []

    with _created(address.tokens):
        client = AdminClient(
            _settings(address, {}, {}, lambda e: noted.append(_client_error(e, address.tokens)))
        )
    what, until_s = f"asking for Kafka group {name!r}", time.monotonic() + timeout_s
    try:
        with _translated(what):
            client.poll(0)
            committed = client.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)])
            stored = committed[name].result(timeout_s).topic_partitions
            left_s = max(0.0, until_s - time.monotonic())
            group = client.describe_consumer_groups([name])[name].result(left_s)
    except (TimeoutError, SourceUnavailableError) as error:
        client.poll(0)
        for said in noted:
            if said.name in REFUSALS:
                raise error_for(what, said.name, said.text) from error
        raise error_for(what, "_TIMED_OUT", f"no answer within {timeout_s:g} s") from error
    return KafkaGroup(
        following={
            at.partition: at.offset
            for at in stored
            if address.is_topic(at.topic) and at.error is None and at.offset >= 0
        },
        is_active=group.state not in {ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD},
        members=[f"{member.client_id} at {member.host}" for member in group.members],
    )


def _partition_count(
    client: KafkaConsumer | KafkaProducer, topic: str, what: str, timeout_s: float
) -> int:
    """Return the number of partitions of a topic, which the client notes."""
    with _translated(what):
        found = client.list_topics(topic, timeout=timeout_s).topics[topic]
    if found.error is not None:
        raise error_for(f"topic {topic!r}", found.error.name(), found.error.str())
    return len(found.partitions)


def _settings(
    address: TopicAddress,
    defaults: Mapping[str, object],
    fixed: Mapping[str, object],
    note: Callable[[KafkaError], None],
) -> dict[str, Any]:
    """Return the settings of a client, those of the user among them."""
    return {
        "logger": _CLIENT_LOG,
        "client.id": "eventproc",
        "reconnect.backoff.max.ms": 1000,
        # Otherwise the client writes to standard error at each failed attempt to connect.
        "log_level": 2,
        **defaults,
        **address.settings,
        **fixed,
        "bootstrap.servers": address.bootstrap_servers,
        "error_cb": note,
    }


@contextmanager
def _created(tokens: Tokens | None) -> Iterator[None]:
    """Translate the errors of a client's constructor."""
    try:
        yield
    except (KafkaException, TypeError, ValueError) as error:
        if tokens is not None and tokens.reason:
            raise error_for("the Kafka client", NO_TOKEN, tokens.reason) from error
        raise ConfigurationError(
            f"the Kafka client refuses its settings: {_text(error)}"
        ) from error


def _client_error(error: KafkaError, tokens: Tokens | None) -> ClientError:
    """Return what the client reports; of a missing token the reason."""
    name, text = error.name(), error.str()
    if name == _AUTHENTICATION and tokens is not None and tokens.reason:
        name, text = NO_TOKEN, tokens.reason
    return ClientError(name, text, error.fatal())


@contextmanager
def _translated(what: str) -> Iterator[None]:
    try:
        yield
    except KafkaException as error:
        said = error.args[0]
        raise error_for(what, said.name(), said.str()) from error
    except RuntimeError as error:  # the consumer is closed
        raise error_for(what, "_STATE", str(error)) from error


def _text(error: Exception) -> str:
    said = error.args[0] if error.args else error
    return said.str() if isinstance(said, KafkaError) else str(said)


Outcome = Callable[[int, str | None, str], None]
"""Called for each message: its number, the name of the error or ``None``, and the error's text."""


class Producer:
    """A producer for one topic, which retries by itself. It starts to connect when it is created.

    ``outcome`` is called in ``send``, ``wait`` and ``give_up``.
    """

    def __init__(
        self,
        address: TopicAddress,
        outcome: Outcome,
    ) -> None:
        """Create the client. With tokens it blocks for a second or more, until it has one.

        Raises:
            ConfigurationError: the client refuses a setting.
            TokenError: there is no token.
        """
        self._topic = address.topic
        self._outcome = outcome
        self._tokens = address.tokens
        self.last_error: ClientError | None = None
        """The error that the client reported last, for no particular message."""

        defaults, fixed = producer_config.DEFAULTS, producer_config.FIXED
        with _created(self._tokens):
            self._client = KafkaProducer(_settings(address, defaults, fixed, self._note))

    def _note(self, error: KafkaError) -> None:
        noted = _client_error(error, self._tokens)
        # "All brokers are down" follows a refused credential, and says less.
        if self.last_error is None or noted.name != _ALL_DOWN:
            self.last_error = noted

    def check(self, timeout_s: float) -> None:
        """Request the metadata of the topic, until there is an answer or a permanent error."""
        what, until_s = f"asking for topic {self._topic!r}", time.monotonic() + timeout_s
        while True:
            left_s = until_s - time.monotonic()
            try:
                slice_s = max(0.01, min(CHECK_SLICE_S, left_s))
                _partition_count(self._client, self._topic, what, slice_s)
            except SuspectSettingError:
                raise
            except SourceUnavailableError:
                self._client.poll(0)  # Errors of the client are reported in it.
                last = self.last_error
                if last is not None and last.name in REFUSALS:
                    raise error_for(what, last.name, last.text) from None
                if left_s <= CHECK_SLICE_S:
                    raise
            else:
                return

    def send(
        self,
        number: int,
        body: bytes | None,
        key: bytes | None,
        partition: int | None,
        headers: Sequence[tuple[str, bytes | None]],
    ) -> bool:
        """Queue a message; return false, after a moment, if the queue has no room for it.

        An error of the message is an outcome.
        """

        def done(error: KafkaError | None, _: object) -> None:
            if error is None:
                self._outcome(number, None, "")
            else:
                self._outcome(number, error.name(), error.str())

        place: dict[str, Any] = {} if partition is None else {"partition": partition}
        try:
            self._client.produce(
                self._topic, body, key, headers=list(headers), on_delivery=done, **place
            )
        except BufferError:
            self._client.poll(0.1)
            return False
        except KafkaException as error:
            if self._is_added_since(error.args[0], partition):
                return False
            done(error.args[0], None)
        self._client.poll(0)
        return True

    def _is_added_since(self, error: KafkaError, partition: int | None) -> bool:
        """Whether the client refused a partition that the topic has: it asks every five minutes."""
        if error.name() != UNKNOWN_PARTITION or partition is None:
            return False
        try:
            what = "asking for the partitions"
            return partition < _partition_count(self._client, self._topic, what, CHECK_SLICE_S)
        except SourceUnavailableError:
            return True

    def wait(self, timeout_s: float) -> None:
        """Wait until every message has an outcome, at most so long."""
        self._client.flush(timeout_s)

    def give_up(self) -> None:
        """End every message without an acknowledgement as failed. It may be stored nevertheless."""
        self._client.purge()
        self._client.flush(1)

    def abandon(self) -> None:
        """End it on a thread of its own, as a consumer; it cannot be used afterwards."""
        clients = [self._client]
        del self._client  # So the thread has the last reference, and ends the client.
        threading.Thread(
            target=clients.clear, name="eventproc-kafka-abandoned", daemon=True
        ).start()
