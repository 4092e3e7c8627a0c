"""Guards of the offset_format: a group keeps to one protocol; and of reading Kafka."""

from tests.mutation.guard import Guard, guards_in

NUMBERING_TESTS = ["tests/stories/test_offset_format.py"]
READER_TESTS = ["tests/unit/eventproc/sources/kafka/test_reader.py"]

NUMBERS = guards_in(
    "eventproc/core/offset_format.py",
    NUMBERING_TESTS,
    Guard(
        name="who has no presence reads over AMQP",
        without_it="a Kafka processor joins a group of an Azure SDK's",
        words="format_by_owner.get(owner_id, OffsetFormat.AMQP)",
        mutated="format_by_owner.get(owner_id, offset_format)",
        is_simulated=False,
    ),
    Guard(
        name="who owns something is alive, however old its presence",
        without_it="a steady processor of the other protocol is not seen",
        words="""        for ownership in owned.ownerships
        if ownership.owner_id is not None
""",
        mutated="""        for ownership in owned.ownerships
        if ownership.owner_id is None
""",
        is_simulated=False,
    ),
    Guard(
        name="a checkpoint without an offset is AMQP's",
        without_it="its sequence number is taken for an offset of Kafka",
        words="        return OffsetFormat.AMQP\n    return offset_format_of",
        mutated="        return None\n    return offset_format_of",
        is_simulated=False,
    ),
)

ADMISSION = guards_in(
    "eventproc/ownership/compatibility.py",
    NUMBERING_TESTS,
    Guard(
        name="checkpoints of the other protocol are refused for ever",
        without_it="a group goes on at a number that may name another event",
        words="    elif partitions:\n",
        mutated="    elif False:\n",
        is_simulated=False,
    ),
)

TAKING_UP = guards_in(
    "eventproc/partition/start.py",
    NUMBERING_TESTS,
    Guard(
        name="a checkpoint of the other protocol is not taken up",
        without_it="what an Azure processor wrote meanwhile is gone on from",
        words="    if other not in {None, mine}:\n",
        mutated="    if other is mine is None:\n",
        is_simulated=False,
    ),
)

READER = guards_in(
    "eventproc/sources/kafka/reader.py",
    READER_TESTS,
    Guard(
        name="a full feed is paused",
        without_it="memory grows while a handler is slow",
        words="            if feed.is_full:\n",
        mutated="            if False:\n",
        is_simulated=False,
    ),
    Guard(
        name="a pause ends with its feed",
        without_it="a partition that is opened again never delivers",
        words="            self._consumer.resume(feed.partition)  # the pause would",
        mutated="            pass  # the pause would",
        is_simulated=False,
    ),
)

FEED = guards_in(
    "eventproc/sources/kafka/feed.py",
    READER_TESTS,
    Guard(
        name="what was read before is dropped",
        without_it="a client that fetches anew delivers twice",
        words="        if offset is None or offset < self._next:",
        mutated="        if offset is None:",
        is_simulated=False,
    ),
    Guard(
        name="at the end of a partition there is no lag",
        without_it="the mark of a transaction looks like an event that never comes: a stall",
        words="        if not self._is_at_end and self.high is not None:",
        mutated="        if self.high is not None:",
        is_simulated=False,
    ),
)

POSITION = guards_in(
    "eventproc/sources/kafka/position.py",
    ["tests/unit/eventproc/sources/kafka/test_position.py"],
    Guard(
        name="an offset without the mark is refused",
        without_it="a sequence number of AMQP is taken for an offset",
        words='    if f"{mark}:" != KAFKA_OFFSET_PREFIX:',
        mutated="    if False:",
        is_simulated=False,
    ),
)
