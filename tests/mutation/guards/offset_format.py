"""Guards of the offset format, which is one for each group; and of reading Kafka."""

from tests.mutation.guard import Guard, guards_in

OFFSET_FORMAT_TESTS = ["tests/stories/test_offset_format.py"]
KAFKA_READER_TESTS = ["tests/unit/eventproc/sources/kafka/test_reader.py"]

OFFSET_FORMATS = guards_in(
    "eventproc/core/offset_format.py",
    OFFSET_FORMAT_TESTS,
    Guard(
        name="an owner without a member record counts as one with AMQP offsets",
        without_it="a Kafka processor joins a group of processors of an Azure SDK",
        words="format_by_owner.get(owner_id, OffsetFormat.AMQP)",
        mutated="format_by_owner.get(owner_id, offset_format)",
        is_simulated=False,
    ),
    Guard(
        name="an owner of a partition counts as alive, however old its member record",
        without_it="a long-lived processor with the other offset format is overlooked",
        words="    live |= set(fresh_owners(owned, expiration).values())\n",
        mutated="",
        is_simulated=False,
    ),
    Guard(
        name="a checkpoint without an offset has the AMQP format",
        without_it="its sequence number is used as a Kafka offset",
        words="        return OffsetFormat.AMQP\n    return offset_format_of",
        mutated="        return None\n    return offset_format_of",
        is_simulated=False,
    ),
)

COMPATIBILITY = guards_in(
    "eventproc/ownership/compatibility.py",
    OFFSET_FORMAT_TESTS,
    Guard(
        name="a group whose checkpoints have the other offset format is refused",
        without_it="reading continues at a number that may belong to another event",
        words="    elif partitions:\n",
        mutated="    elif False:\n",
        is_simulated=False,
    ),
)

START = guards_in(
    "eventproc/partition/start.py",
    OFFSET_FORMAT_TESTS,
    Guard(
        name="a pump does not start from a checkpoint with the other offset format",
        without_it="it continues at a position that a processor of an Azure SDK wrote meanwhile",
        words="    if other not in {None, mine}:\n",
        mutated="    if other is mine is None:\n",
        is_simulated=False,
    ),
)

KAFKA_READER = guards_in(
    "eventproc/sources/kafka/reader.py",
    KAFKA_READER_TESTS,
    Guard(
        name="a partition whose feed is full is paused",
        without_it="memory grows while a handler is slow",
        words="            if feed.is_full:\n",
        mutated="            if False:\n",
        is_simulated=False,
    ),
    Guard(
        name="closing a feed resumes its paused partition",
        without_it="a partition that is opened again delivers nothing",
        words="            self._consumer.resume(feed.partition)  # the pause would",
        mutated="            pass  # the pause would",
        is_simulated=False,
    ),
)

KAFKA_FEED = guards_in(
    "eventproc/sources/kafka/feed.py",
    KAFKA_READER_TESTS,
    Guard(
        name="an event that was read before is dropped",
        without_it="a client that fetches again delivers events twice",
        words="            if (offset := message.offset()) > newest:",
        mutated="            if (offset := message.offset()) >= 0:",
        is_simulated=False,
    ),
    Guard(
        name="at the end of a partition the lag is 0",
        without_it="a transaction marker looks like an event that never comes, so the partition "
        "counts as stalled",
        words="        if not self._is_at_end and self.high is not None:",
        mutated="        if self.high is not None:",
        is_simulated=False,
    ),
)

LOG_OFFSETS = guards_in(
    "eventproc/sources/log_offsets.py",
    ["tests/unit/eventproc/sources/test_log_offsets.py"],
    Guard(
        name="an offset without the log's prefix is refused",
        without_it="a sequence number of AMQP is used as an offset of Kafka or of a stream",
        words='        if f"{mark}:" != self.prefix:',
        mutated="        if False:",
        is_simulated=False,
    ),
)
