"""Guards of the Spark source: what is planned is what comes; and of the sink: never back."""

from tests.mutation.guard import Guard, guards_in

PLANNING = guards_in(
    "spark_integration/source/planning.py",
    ["tests/unit/spark_integration/source/test_planning.py"],
    Guard(
        name="Spark: a partition that an offset does not name begins at 0",
        without_it="the first events of a new partition are never read",
        words="EventRange(partition_id=partition_id, start=start.get(partition_id, 0), end=stop)",
        mutated="EventRange(partition_id=partition_id, start=start.get(partition_id, stop), "
        "end=stop)",
        is_simulated=False,
    ),
    Guard(
        name="Spark: events that are gone take no place in a batch",
        without_it="a query whose position was overtaken never gets to what is left",
        words="max(start.get(p, 0), span.first)",
        mutated="start.get(p, 0)",
        is_simulated=False,
    ),
    Guard(
        name="Spark: a partition missing from an answer stays where it is",
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
        name="Spark: an event before the position is left out",
        without_it="a receiver that begins early repeats events",
        words="            if number < self._next:\n",
        mutated="            if number < 0:\n",
        is_simulated=False,
    ),
    Guard(
        name="Spark: reading ends at the end of the range",
        without_it="the next batch has the same events again",
        words="            if number >= self._planned.end:\n                break\n",
        mutated="",
        is_simulated=False,
    ),
    Guard(
        name="Spark: a gap is an error unless it may be skipped",
        without_it="events that retention took are missing without a word",
        words="        if self._options.fails_on_data_loss:\n",
        mutated="        if False:\n",
        is_simulated=False,
    ),
    Guard(
        name="Spark: a range of which nothing comes any more is asked about",
        without_it="a task waits for ever for events that are gone",
        words="        if span.first > self._next:\n",
        mutated="        if False:\n",
        is_simulated=False,
    ),
    Guard(
        name="Spark: a hub that ends before the range is refused",
        without_it="a query waits for a deleted hub, and then reads the events of another one",
        words="        if span.next < self._planned.end:\n",
        mutated="        if False:\n",
        is_simulated=False,
    ),
    Guard(
        name="Spark: receivers are closed before the task ends",
        without_it="the next attempts find all five places taken",
        words="            runner.run(reader.close())\n",
        mutated="",
        is_simulated=False,
    ),
    Guard(
        name="Spark: what a recipe opens is closed before the task ends",
        without_it="Python processes of Spark live on, and keep every credential open",
        words="            runner.run(source_context.__aexit__(None, None, None))\n",
        mutated="",
        is_simulated=False,
    ),
    Guard(
        name="Spark: an outage has an end",
        without_it="a task waits for ever, and nobody hears of it",
        words="        if now + wait_s - outage.begun_at > patience_s:\n",
        mutated="        if False:\n",
        is_simulated=False,
    ),
)

OPTIONS = guards_in(
    "spark_integration/options.py",
    ["tests/integration/spark_integration/test_reading.py"],
    Guard(
        name="Spark: receivers are shared",
        without_it="two attempts of a task throw each other out",
        words="is_exclusive=self.is_exclusive,",
        mutated="is_exclusive=True,",
        is_simulated=False,
    ),
)

PLANNER = guards_in(
    "spark_integration/source/planner.py",
    ["tests/integration/spark_integration/test_planner.py"],
    Guard(
        name="Spark: a fixed end is not passed",
        without_it="a query that is to end with what there is never ends on a busy hub",
        words="        if self._is_final:\n            return self._known\n",
        mutated="",
        is_simulated=False,
    ),
    Guard(
        name="Spark: a hub that ends before the offset is refused",
        without_it="a hub that was created anew is read from the middle",
        words="        if behind := beyond_end(start, spans):\n",
        mutated="        if behind := {}:\n",
        is_simulated=False,
    ),
    Guard(
        name="Spark: an idle query waits before it asks again",
        without_it="it uses up what the service answers for a whole namespace",
        words="        if fresh_for_s > 0:\n",
        mutated="        if False:\n",
        is_simulated=False,
    ),
)

HUB = guards_in(
    "spark_integration/source/hub.py",
    ["tests/integration/spark_integration/test_hub.py"],
    Guard(
        name="Spark: a checkpoint names the last handled event",
        without_it="a group that moves to Spark repeats an event of each partition",
        words="return EventPosition.from_sequence_number(checkpoint.sequence_number)",
        mutated="return EventPosition.from_sequence_number(\n"
        "        checkpoint.sequence_number, is_inclusive=True\n    )",
        is_simulated=False,
    ),
    Guard(
        name="Spark: an empty partition begins where it ends",
        without_it="events that are gone are planned, and waited for",
        words="    first = end if properties.is_empty else properties.beginning_sequence_number\n",
        mutated="    first = 0 if properties.is_empty else properties.beginning_sequence_number\n",
        is_simulated=False,
    ),
)

OFFSETS = guards_in(
    "spark_integration/source/offsets.py",
    ["tests/unit/spark_integration/test_options.py"],
    Guard(
        name="Spark: an offset log belongs to one hub",
        without_it="numbers of one hub are read from another",
        words='    if offset.get("hub") != hub:\n',
        mutated="    if False:\n",
        is_simulated=False,
    ),
)

BY_PARTITION = ["tests/unit/spark_integration/sink/test_partition.py"]

SINK_RECORDS = guards_in(
    "spark_integration/sink/records.py",
    BY_PARTITION,
    Guard(
        name="Spark sink: who was overtaken by its own query refuses to begin",
        without_it="a driver that wakes up handles its old batch once more",
        words="    if other.batch_id > me.batch_id:\n",
        mutated="    if False:\n",
        is_simulated=False,
    ),
    Guard(
        name="Spark sink: a batch that is begun leaves its mark",
        without_it="nobody knows that a batch was handed over before: a replay looks new",
        words="delivery_count=max(1, found.delivery_count),",
        mutated="delivery_count=found.delivery_count,",
        is_simulated=False,
    ),
    Guard(
        name="Spark sink: a commit replaces exactly what its task has marked",
        without_it="no commit succeeds, or every one does",
        words="        replaces=begun,\n",
        mutated="        replaces=None,\n",
        is_simulated=False,
    ),
    Guard(
        name="Spark sink: a commit that was carried out is recognised",
        without_it="a query fails on its own write, whose answer was lost",
        words="        and found.writer == update.writer\n",
        mutated="        and found.writer != update.writer\n",
        is_simulated=False,
    ),
    Guard(
        name="Spark sink: a commit is known by its position, too",
        without_it="what another attempt committed is taken for all of it: rows are lost",
        words="        and found.sequence_number == update.sequence_number\n",
        mutated="",
        is_simulated=False,
    ),
    Guard(
        name="Spark sink: above its position, a checkpoint covers what lanes have done",
        without_it="a group that comes from key lanes handles events twice",
        words="    return max([position, *(done.last for done in found.completed)])\n",
        mutated="    return position\n",
        is_simulated=False,
    ),
    Guard(
        name="Spark sink: rows of a partition come from one task",
        without_it="of two tasks the one that commits last decides where the partition stands",
        words="            if other != report.task.task:\n",
        mutated="            if False:\n",
        is_simulated=False,
    ),
)

SINK_STORE = guards_in(
    "spark_integration/sink/store.py",
    BY_PARTITION,
    Guard(
        name="Spark sink: what lost against somebody else is not tried over it",
        without_it="a driver that wakes up moves checkpoints back",
        words="            raise fenced(update, found)\n",
        mutated='            update = __import__("dataclasses").replace(update, replaces=found)\n',
        is_simulated=False,
    ),
    Guard(
        name="Spark sink: what was begun before is handed over as a replay",
        without_it="a handler repeats its effects elsewhere without knowing it",
        words="                is_replay = found is not None and found.delivery_count > 0\n",
        mutated="                is_replay = False\n",
        is_simulated=False,
    ),
    Guard(
        name="Spark sink: another attempt at a task is a replay",
        without_it="what the first attempt did is done again without a word",
        words="                is_replay = found.delivery_count > 0  "
        "# Another attempt at this task.\n",
        mutated="                is_replay = False\n",
        is_simulated=False,
    ),
    Guard(
        name="Spark sink: one's own mark, whose answer was lost, is no replay",
        without_it="an outage of the store makes new events look repeated",
        words="            elif not is_unsure:\n",
        mutated="            else:\n",
        is_simulated=False,
    ),
    Guard(
        name="Spark sink: a commit without an answer is asked about",
        without_it="Spark goes on, and the checkpoint stays behind",
        words="                continue  "
        "# If it was written, the next write loses, and is_committed() shows it.\n",
        mutated="                return\n",
        is_simulated=False,
    ),
)

SINK_PARTITION = guards_in(
    "spark_integration/sink/partition.py",
    BY_PARTITION,
    Guard(
        name="Spark sink: what a checkpoint covers is not handed over",
        without_it="a batch that Spark repeats after its commit is handled twice",
        words="        is_left = [not is_handled(number, found) for number in rows.numbers]\n",
        mutated="        is_left = [True for _ in rows.numbers]\n",
        is_simulated=False,
    ),
    Guard(
        name="Spark sink: rows come in order, each once",
        without_it="what a shuffle has put behind is passed over for ever",
        words="            if last is not None and number <= last:\n",
        mutated="            if False:\n",
        is_simulated=False,
    ),
    Guard(
        name="Spark sink: rows that come later are behind those that came",
        without_it="rows of two batches of columns may be in any order",
        words="        is_next = last is None or last < numbers[0]\n",
        mutated="        is_next = True\n",
        is_simulated=False,
    ),
    Guard(
        name="Spark sink: nothing is handed over before the mark",
        without_it="who is overtaken between reading and marking repeats what was done",
        words="            if len(still.numbers) == len(left.numbers):\n",
        mutated="            if True:\n",
        is_simulated=False,
    ),
)
