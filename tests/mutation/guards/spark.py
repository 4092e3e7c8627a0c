"""Guards of the Spark source, which reads exactly the planned ranges, and of the sink."""

from tests.mutation.guard import Guard, guards_in

PLANNING = guards_in(
    "spark_integration/source/planning.py",
    ["tests/unit/spark_integration/source/test_planning.py"],
    Guard(
        name="||",
        without_it="the first events of a new partition are never read",
        words="EventRange(partition_id=partition_id, start=start.get(partition_id, 0), end=stop)",
        mutated="EventRange(partition_id=partition_id, start=start.get(partition_id, stop), "
        "end=stop)",
        is_simulated=False,
    ),
    Guard(
        name="Spark: events that no longer exist take no room in a batch",
        without_it="a query behind retention never reaches the events that are left",
        words="max(start.get(p, 0), span.first)",
        mutated="start.get(p, 0)",
        is_simulated=False,
    ),
    Guard(
        name="Spark: a partition missing from an answer keeps its position",
        without_it="it is read from its beginning again",
        words="end = {**start, **moved}",
        mutated="end = {**moved}",
        is_simulated=False,
    ),
)

READING = guards_in(
    "spark_integration/source/reading.py",
    ["tests/integration/spark_integration/test_reading.py"],
    Guard(
        name="Spark: an event before the start of the range is skipped",
        without_it="a receiver that begins too early repeats events",
        words="        begin = bisect_left(events, first, key=_number)\n",
        mutated="        begin = 0\n",
        is_simulated=False,
    ),
    Guard(
        name="Spark: an event behind the end of the range is left to the next batch",
        without_it="the next batch has the same events again",
        words="        end = bisect_left(events, self._planned.end, begin, key=_number)\n",
        mutated="        end = len(events)\n",
        is_simulated=False,
    ),
    Guard(
        name="Spark: a gap is an error unless failOnDataLoss is off",
        without_it="events that retention deleted are missing without an error",
        words="        if self._options.fails_on_data_loss:\n",
        mutated="        if False:\n",
        is_simulated=False,
    ),
    Guard(
        name="Spark: a task that receives nothing asks for the partition's range",
        without_it="a task waits for ever for events that no longer exist",
        words="        if span.first > self._next:\n",
        mutated="        if False:\n",
        is_simulated=False,
    ),
    Guard(
        name="|| a query waits for a hub that was deleted, and then reads the events of another "
        "one",
        without_it="a query waits for a deleted hub, and then reads the events of another one",
        words="        if span.next < self._planned.end:\n",
        mutated="        if False:\n",
        is_simulated=False,
    ),
    Guard(
        name="|| the next attempts find all five receivers of the partition in use",
        without_it="the next attempts find all five places taken",
        words="            runner.run(reader.close())\n",
        mutated="",
        is_simulated=False,
    ),
    Guard(
        name="Spark: a source made by a recipe is closed before the task ends",
        without_it="Spark's reused Python processes keep every credential open",
        words="            runner.run(source_context.__aexit__(None, None, None))\n",
        mutated="",
        is_simulated=False,
    ),
)

OUTAGE = guards_in(
    "spark_integration/source/outage.py",
    ["tests/unit/spark_integration/source/test_outage.py"],
    Guard(
        name="Spark: a task gives up on an outage after operationTimeout",
        without_it="a task waits for ever, without an error",
        words="wait_s if now_s + wait_s - self._began_s <= self._patience_s else None\n",
        mutated="wait_s\n",
        is_simulated=False,
    ),
)

OPTIONS = guards_in(
    "spark_integration/options.py",
    ["tests/integration/spark_integration/test_reading.py"],
    Guard(
        name="Spark: receivers are exclusive only on request",
        without_it="two attempts of a task steal the link from each other",
        words="is_exclusive=self.is_exclusive,",
        mutated="is_exclusive=True,",
        is_simulated=False,
    ),
)

PLANNER = guards_in(
    "spark_integration/source/planner.py",
    ["tests/integration/spark_integration/test_planner.py"],
    Guard(
        name="Spark: a query with a fixed end does not read beyond it",
        without_it="a query with availableNow never ends on a busy hub",
        words="        if self._is_final:\n            return self._known\n",
        mutated="",
        is_simulated=False,
    ),
    Guard(
        name="|| a hub that was created again is read from the middle",
        without_it="a hub that was created anew is read from the middle",
        words="        if beyond := beyond_end(start, spans):\n",
        mutated="        if beyond := {}:\n",
        is_simulated=False,
    ),
    Guard(
        name="Spark: an idle query waits before it asks the hub again",
        without_it="it uses up the management requests that the service allows for a namespace",
        words="        if fresh_for_s > 0:\n",
        mutated="        if False:\n",
        is_simulated=False,
    ),
)

HUB = guards_in(
    "spark_integration/source/hub.py",
    ["tests/integration/spark_integration/test_hub.py"],
    Guard(
        name="Spark: reading starts behind the event that a checkpoint names",
        without_it="a group that moves to Spark repeats an event of each partition",
        words="return EventPosition.from_sequence_number(checkpoint.sequence_number)",
        mutated="return EventPosition.from_sequence_number(\n"
        "        checkpoint.sequence_number, is_inclusive=True\n    )",
        is_simulated=False,
    ),
    Guard(
        name="Spark: the first event of an empty partition is its next one",
        without_it="events that no longer exist are planned and waited for",
        words="    first = end if properties.is_empty else properties.beginning_sequence_number\n",
        mutated="    first = 0 if properties.is_empty else properties.beginning_sequence_number\n",
        is_simulated=False,
    ),
)

OFFSETS = guards_in(
    "spark_integration/source/offsets.py",
    ["tests/unit/spark_integration/test_options.py"],
    Guard(
        name="Spark: an offset of another hub is refused",
        without_it="numbers of one hub are read from another",
        words='    if offset.get("hub") != hub:\n',
        mutated="    if False:\n",
        is_simulated=False,
    ),
)

BY_PARTITION = [
    "tests/unit/spark_integration/sink/test_partition.py",
    "tests/unit/spark_integration/sink/test_store.py",
]

SINK_RECORDS = guards_in(
    "spark_integration/sink/records.py",
    BY_PARTITION,
    Guard(
        name="Spark sink: a driver whose query has begun a later batch is fenced",
        without_it="a driver that was paused handles its old batch once more",
        words="    if other.batch_id > me.batch_id:\n",
        mutated="    if False:\n",
        is_simulated=False,
    ),
    Guard(
        name="Spark sink: the begin record of a batch counts a delivery",
        without_it="a batch that was delivered before does not look like a replay",
        words="delivery_count=max(1, found.delivery_count),",
        mutated="delivery_count=found.delivery_count,",
        is_simulated=False,
    ),
    Guard(
        name="Spark sink: a commit replaces exactly the begin record of its own task",
        without_it="no commit succeeds, or every one does",
        words="        replaces=begun,\n",
        mutated="        replaces=None,\n",
        is_simulated=False,
    ),
    Guard(
        name="|| a query fails on its own write, whose answer was lost",
        without_it="a query fails on its own write, whose answer was lost",
        words="        and found.writer == update.writer\n",
        mutated="        and found.writer != update.writer\n",
        is_simulated=False,
    ),
    Guard(
        name="Spark sink: a commit is recognised by its position as well as its writer",
        without_it="a partial commit of another attempt is taken for the whole, and rows are lost",
        words="        and found.sequence_number == update.sequence_number\n",
        mutated="",
        is_simulated=False,
    ),
    Guard(
        name="Spark sink: a checkpoint also covers the completed ranges above its position",
        without_it="a group that comes from key lanes handles events twice",
        words="    return max([position, *(done.last for done in found.completed)])\n",
        mutated="    return position\n",
        is_simulated=False,
    ),
    Guard(
        name="Spark sink: the rows of a partition come from one task",
        without_it="of two tasks, the one that commits last decides the position of the partition",
        words="            if other != report.task.task:\n",
        mutated="            if False:\n",
        is_simulated=False,
    ),
)

SINK_STORE = guards_in(
    "spark_integration/sink/store.py",
    BY_PARTITION,
    Guard(
        name="Spark sink: a lost write is not repeated over the record of another driver",
        without_it="a driver that was paused moves checkpoints back",
        words="                raise fenced(update, found)\n",
        mutated="                from dataclasses import replace\n"
        "                await self._commit(replace(update, replaces=found))\n",
        is_simulated=False,
    ),
    Guard(
        name="Spark sink: a batch that was begun before is delivered as a replay",
        without_it="a handler repeats its external effects without knowing it",
        words="                is_replay = found is not None and found.delivery_count > 0\n",
        mutated="                is_replay = False\n",
        is_simulated=False,
    ),
    Guard(
        name="|| a handler repeats the effects of the first attempt without knowing it",
        without_it="what the first attempt did is done again without a word",
        words="            if not (is_begun and is_unsure):",
        mutated="            if not is_begun:",
        is_simulated=False,
    ),
    Guard(
        name="Spark sink: a task's own begin record, whose answer was lost, is not a replay",
        without_it="an outage of the store makes new events look repeated",
        words="            if not (is_begun and is_unsure):",
        mutated="            if True:",
        is_simulated=False,
    ),
    Guard(
        name="Spark sink: a commit with an unknown outcome is tried again",
        without_it="Spark goes on, and the checkpoint stays behind",
        words=" the next write loses, and is_committed() shows it.\n"
        "            raise _unknown(update, result.error)\n",
        mutated="\n            return\n",
        is_simulated=False,
    ),
)

SINK_PARTITION = guards_in(
    "spark_integration/sink/partition.py",
    BY_PARTITION,
    Guard(
        name="Spark sink: rows that the checkpoint covers are not delivered",
        without_it="a batch that Spark repeats after its commit is handled twice",
        words="        is_left = [not is_handled(number, found) for number in rows.numbers]\n",
        mutated="        is_left = [True for _ in rows.numbers]\n",
        is_simulated=False,
    ),
    Guard(
        name="Spark sink: rows of a partition must come in order, each once",
        without_it="rows that a shuffle moved back are skipped for ever",
        words="            if last is not None and number <= last:\n",
        mutated="            if False:\n",
        is_simulated=False,
    ),
    Guard(
        name="Spark sink: a later Arrow batch must have later rows",
        without_it="rows of two Arrow batches may be in any order",
        words="        is_next = last is None or last < numbers[0]\n",
        mutated="        is_next = True\n",
        is_simulated=False,
    ),
    Guard(
        name="Spark sink: no row is delivered before the begin record is written",
        without_it="a task that another overtakes before its begin record repeats what was done",
        words="            if len(still.numbers) == len(left.numbers):\n",
        mutated="            if True:\n",
        is_simulated=False,
    ),
)

PUBLISHED = "tests/integration/sources/test_publishers.py"

HUB_PUBLISHER = guards_in(
    "eventproc/sources/eventhubs/publisher.py",
    ["tests/unit/eventproc/sources/eventhubs/test_publisher.py", PUBLISHED],
    Guard(
        name="Publishing: the last batch is sent and acknowledged, too",
        without_it="a task succeeds, and its last rows are lost",
        words="            )\n        await attempts(self._send, number, target, batch)\n",
        mutated="            )\n",
        is_simulated=False,
    ),
    Guard(
        name="Publishing: a full batch is sent before the next one is begun",
        without_it="the events of every batch but the last are lost",
        words="                await attempts(self._send, number, target, batch)\n",
        mutated="",
        is_simulated=False,
    ),
    Guard(
        name="Publishing: a key is sent over one connection",
        without_it="its events overtake each other",
        words="indexes_by_target.setdefault(_target(index, event), []).append(index)",
        mutated="indexes_by_target.setdefault((None, None), []).append(index)",
        is_simulated=False,
    ),
    Guard(
        name="Publishing: a partition that does not exist is refused",
        without_it="a wrong partition id is taken for an outage",
        words="        if unknown := sorted(wanted - self._partition_ids):\n",
        mutated="        if unknown := []:\n",
        is_simulated=False,
    ),
)

HUB_BATCH = guards_in(
    "eventproc/sources/eventhubs/batch.py",
    ["tests/unit/eventproc/sources/amqp/test_encoding.py", PUBLISHED],
    Guard(
        name="Publishing: a batch takes no more than its limit",
        without_it="the service refuses every full batch",
        words="        if size > self.bytes_max:\n",
        mutated="        if size > self.bytes_max + 1:\n",
        is_simulated=False,
    ),
)

KAFKA_PUBLISHER = guards_in(
    "eventproc/sources/kafka/publisher.py",
    [PUBLISHED],
    Guard(
        name="Publishing to Kafka: a message without an outcome is a failure",
        without_it="a task succeeds while the broker is down, and its rows are lost",
        words="open_count := len(self._failures) + self._unanswered",
        mutated="open_count := 0",
        is_simulated=False,
    ),
)

PUBLISH_TASK = guards_in(
    "spark_integration/publish/task.py",
    ["tests/unit/spark_integration/publish/test_task.py"],
    Guard(
        name="Publishing: an error names the row in its task, not in its Arrow batch",
        without_it="users look for the error in another row",
        words="        done += batch.num_rows\n",
        mutated="        done = batch.num_rows\n",
        is_simulated=False,
    ),
)
