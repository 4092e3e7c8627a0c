"""Guards of what operators rely on: recreated hubs, dead letters, decoding, health, workers."""

from tests.mutation.guard import Guard, guards_in

FALSE_LENGTHS = "tests/stories/test_false_lengths.py"

RECREATED_HUB = guards_in(
    "eventproc/core/checkpoint_rules.py",
    ["tests/stories/test_recreated_hub.py"],
    Guard(
        name="a checkpoint that an owner marked is of a former hub",
        without_it="the first events of the new hub are skipped once it has grown",
        words="return is_marked or is_older_than_hub(checkpoint, hub_created_at)",
        mutated="return is_older_than_hub(checkpoint, hub_created_at)",
        is_simulated=False,
    ),
    Guard(
        name="a checkpoint that is older than the hub is of a former one",
        without_it="a position of the deleted hub skips events of the new one",
        words="and checkpoint.last_modified < hub_created_at",
        mutated="and False",
        is_simulated=False,
    ),
)

RECREATED_HUB_POLICY = guards_in(
    "eventproc/partition/checkpointer.py",
    ["tests/stories/test_recreated_hub.py"],
    Guard(
        name="by default a recreated hub stops the partition",
        without_it="events of a former hub are taken for handled, without an operator",
        words="            if is_stopped:\n",
        mutated="            if False:\n",
        is_simulated=False,
    ),
    Guard(
        name="with the policy earliest the new hub is read from its first event",
        without_it="a position of the deleted hub skips events of the new one",
        words="update = rules.restart_in_new_hub(found, self._writer)",
        mutated="pass",
        is_simulated=False,
    ),
)

BATCHES = guards_in(
    "eventproc/config/events.py",
    ["tests/stories/test_batches.py"],
    Guard(
        name="a call waits for batch_min events",
        without_it="batch_wait has no effect",
        words="return Gathering(self.batch_min or self.batch_size_max, self.batch_wait)",
        mutated="return AT_ONCE",
        is_simulated=False,
    ),
    Guard(
        name="batch_min without batch_wait is refused",
        without_it="the last events of a partition wait for ever",
        words="if self.batch_min is not None and self.batch_wait is None:",
        mutated="if False:",
        is_simulated=False,
    ),
)

REPLAY = guards_in(
    "eventproc/dead_letters/replay.py",
    ["tests/stories/test_letters_to_hub.py"],
    Guard(
        name="a letter is removed after its event was taken",
        without_it="an event is lost if the hub does not answer",
        words="            await target.take(letter)\n",
        mutated="            await _remove(reader, stored); await target.take(letter)\n",
        is_simulated=False,
    ),
    Guard(
        name="a refused event holds back the later ones of its key",
        without_it="events of a key are replayed out of order",
        words="refused.add(lane)",
        mutated="pass",
        is_simulated=False,
    ),
    Guard(
        name="a letter that another replay removed ends this one",
        without_it="two replays at once publish each event twice",
        words="if not await reader.remove(stored):",
        mutated="await reader.remove(stored)\n    if False:",
        is_simulated=False,
    ),
)

LENGTHS = guards_in(
    "eventproc/sources/amqp/values.py",
    [f"{FALSE_LENGTHS}::test_a_false_length_inside_a_property_returns_nothing_of_the_next_event"],
    Guard(
        name="AMQP: what a list holds ends with it",
        without_it="a false length of an item returns what stands behind its list",
        words="    if at != end:\n",
        mutated="    if False:\n",
        is_simulated=False,
    ),
)

DECODING = guards_in(
    "eventproc/core/failure.py",
    ["tests/stories/test_decoding.py"],
    Guard(
        name="an event that cannot be decoded gets no other attempt",
        without_it="it is retried for ever, and its partition does not move",
        words="self._final.add(number)",
        mutated="pass",
        is_simulated=False,
    ),
    Guard(
        name="an undecodable event counts as failed even if every error is transient",
        without_it="it is retried for ever, and its partition does not move",
        words="if isinstance(error, DecodeError) or not isinstance(error, transient):",
        mutated="if not isinstance(error, transient):",
        is_simulated=False,
    ),
)

DECODER = guards_in(
    "eventproc/decoders/decoder.py",
    ["tests/unit/eventproc/decoders/test_decoder.py"],
    Guard(
        name="whatever a decoder raises is a DecodeError",
        without_it="a body that no attempt can decode is retried for ever",
        words="        except Exception as error:\n",
        mutated="        except ZeroDivisionError as error:\n",
        is_simulated=False,
    ),
    Guard(
        name="a lack of memory is no failure of an event",
        without_it="good events are given up while memory is short",
        words="        except MemoryError:\n            raise\n",
        mutated="",
        is_simulated=False,
    ),
)

HEALTH = guards_in(
    "eventproc/core/health.py",
    ["tests/unit/eventproc/core/test_health.py"],
    Guard(
        name="a processor outside of its group is not ready",
        without_it="a rolling update goes on while new pods cannot join",
        words="if phase is not Phase.SERVING:",
        mutated="if False:",
        is_simulated=False,
    ),
    Guard(
        name="a partition whose lease is not confirmed is not served",
        without_it="a pod that lost the store is shown as ready",
        words="if not pump.is_trusted:",
        mutated="if False:",
        is_simulated=False,
    ),
    Guard(
        name="what is handed over is not missed",
        without_it="each rebalance turns readiness red",
        words="owned = set(statistics.owned) - set(statistics.handing_over)",
        mutated="owned = set(statistics.owned)",
        is_simulated=False,
    ),
    Guard(
        name="a stalled partition is red",
        without_it="a handler that hangs is shown as healthy",
        words="    if pump.is_stalled:\n",
        mutated="    if False:\n",
        is_simulated=False,
    ),
    Guard(
        name="a thread that has not answered is not asked again",
        without_it="the beats of a blocked thread are forgotten, and /live stays green",
        words="        is_asked = self._is_answered\n",
        mutated="        is_asked = True\n",
        is_simulated=False,
    ),
)

WORKER_ENDS = guards_in(
    "eventproc/cli/workers/ends.py",
    ["tests/unit/eventproc/cli/workers/test_ends.py"],
    Guard(
        name="a worker that keeps failing waits longer and longer",
        without_it="a handler that cannot start uses a whole core",
        words="else self.early_count + 1)",
        mutated="else 1)",
        is_simulated=False,
    ),
    Guard(
        name="a worker that ran for a minute had started well",
        without_it="a worker that dies once a day is restarted more and more slowly",
        words="1 if ran_s >= STEADY.total_seconds() else",
        mutated="1 if False else",
        is_simulated=False,
    ),
    Guard(
        name="a worker that a stop ended while Python started is no failure",
        without_it="a stop soon after the start ends with an error",
        words="if was_asked and code == -signal.SIGTERM:",
        mutated="if False:",
        is_simulated=False,
    ),
    Guard(
        name="the exit code of a supervisor is the worst one",
        without_it="a stop that did not store all progress is shown as a good one",
        words="return max(codes, key=_SEVERITY.index, default=OK)",
        mutated="return min(codes, key=_SEVERITY.index, default=OK)",
        is_simulated=False,
    ),
)

WORKER_COMMAND = guards_in(
    "eventproc/cli/workers/command.py",
    ["tests/unit/eventproc/cli/workers/test_command.py"],
    Guard(
        name="each worker has a name of its own",
        without_it="the second worker is refused as a duplicate of the first",
        words='f"{base}-{number}" for number',
        mutated="base for number",
        is_simulated=False,
    ),
    Guard(
        name="two supervisors have no ordinal twice",
        without_it="two workers take the same partitions, and others have no owner",
        words="own * count",
        mutated="own",
        is_simulated=False,
    ),
)
