"""Guards of checkpoints, of pumps and of starting and stopping."""

from tests.mutation.guard import Guard, guards_in

CHECKPOINTER = guards_in(
    "eventproc/partition/checkpointer.py",
    ["tests/unit/eventproc/partition/test_checkpointer.py"],
    Guard(
        name="a new owner adopts the checkpoint before it reads the first event",
        without_it="the former owner can still move the position after the new owner began",
        words="        if update is None:\n",
        mutated="        if True:\n",
    ),
    Guard(
        name="ownership is verified between reading a checkpoint and adopting it",
        without_it="a pump that starts late fences the owner that came after it",
        words="""if not await self.verify():
            raise""",
        mutated="""if False:
            raise""",
    ),
    Guard(
        name="ownership is verified after a checkpoint of another writer was read",
        without_it="a former owner reads its successor's checkpoint and writes over it",
        words="if is_foreign and (self.is_exact or not await self.verify()):",
        mutated="if False:",
    ),
    Guard(
        name="a checkpoint write with an unknown outcome does not count as won",
        without_it="a pump closes without a checkpoint",
        words="""        if result.outcome is WriteOutcome.WON:
            self.confirm(""",
        mutated="""        if result.outcome is not WriteOutcome.LOST:
            self.confirm(""",
    ),
    Guard(
        name="a position below the stored one is not written",
        without_it="a position that an operator or another owner moved on goes back",
        words="if rules.is_behind(progress.sequence_number, self.stored):",
        mutated="if False:",
    ),
    Guard(
        name="a checkpointer whose partition was lost writes nothing more",
        killers=(
            "tests/unit/eventproc/partition/test_checkpointer.py::test_after_the_loss_of_the_partition_nothing_is_written",
        ),
        without_it="one more write of a former owner reaches the store",
        words="""                if self._is_lost:
                    raise OwnershipLostError(self._partition_id)
""",
        mutated="",
    ),
    Guard(
        name="a pump has one checkpoint write in flight at a time",
        without_it="two writes of one pump make each other fail",
        words="""        async with self._writing:
            self._retry_now.clear()
""",
        mutated="""        if True:
            self._retry_now.clear()
""",
    ),
    suites=("edges", "safety"),
)

UPDATES = guards_in(
    "eventproc/models/checkpoint.py",
    [
        "tests/unit/eventproc/models/test_checkpoint.py",
        "tests/unit/eventproc/partition/test_checkpointer.py",
    ],
    Guard(
        name="an update whose position goes back cannot be created",
        without_it="a defect anywhere above reaches the store",
        words="self.sequence_number < previous and not self.is_reset",
        mutated="False and not self.is_reset",
    ),
    suites=("safety",),
)

CALL_TESTS = (
    "tests/unit/eventproc/partition/test_pump.py",
    "tests/unit/eventproc/partition/test_handler_calls.py",
)

STOP_SCOPE = guards_in(
    "eventproc/pumps/stop_scope.py",
    ["tests/unit/eventproc/pumps/test_stop_scope.py"],
    Guard(
        name="a handler's call is cancelled when the lease is not trusted any more",
        without_it="a handler acts at the same time as that of the next owner",
        words="            self._expire([timeout])",
        mutated="            pass",
    ),
    Guard(
        name="a handler's call is cancelled at once when its partition is lost",
        without_it="the handler of a stolen partition runs to its end",
        words="""        self.reason = CloseReason.OWNERSHIP_LOST
        self._expire(self._waits)
        self._expire(self._calls)
""",
        mutated="""        self.reason = CloseReason.OWNERSHIP_LOST
        self._expire(self._waits)
""",
    ),
    Guard(
        name="a call is watched again after its lease was renewed",
        without_it="a call is cancelled although its lease was renewed",
        words="        if self._remaining_s() > 0:\n            loop.call_later",
        mutated="        if False:\n            loop.call_later",
    ),
    Guard(
        name="the lease of a call is checked at short intervals",
        without_it="after its machine was suspended, a handler acts at the same time as that of "
        "the next owner",
        words="        return min(max(self._remaining_s(), TRUST_CHECK_MIN_S), TRUST_CHECK_MAX_S)",
        mutated="        return max(self._remaining_s(), TRUST_CHECK_MIN_S)",
    ),
    Guard(
        name="a context whose pump has closed is not trusted",
        without_it="a handler that outlives its pump acts at the same time as the next one",
        words="return not self.is_lost and not self._is_over and",
        mutated="return not self.is_lost and",
    ),
    suites=("edges", "safety"),
)

HANDLER_CALLS = guards_in(
    "eventproc/partition/handler_calls.py",
    CALL_TESTS,
    Guard(
        name="no handler is called without a trusted lease",
        without_it="a handler is called while that of the next owner acts",
        words="if not await self._stop_scope.until_trusted():\n                return\n",
        mutated="return\n",
        killers=("tests/unit/eventproc/pumps/test_stop_scope.py",),
    ),
    Guard(
        name="events count as done only after the handler returned",
        without_it="failed events are never handled",
        words="context.end_call((part,) if outcome.is_done else outcome.report.done or None)",
        mutated="context.end_call((part,))",
    ),
    Guard(
        name="events of a cancelled call do not count as done",
        without_it="events of a cancelled call are never handled",
        words="timeout, outcome = None, CANCELLED",
        mutated="cut, outcome = None, DONE",
    ),
    suites=("safety", "edges", "lanes"),
)

PUMP = guards_in(
    "eventproc/partition/pump.py",
    CALL_TESTS,
    Guard(
        name="a pump whose checkpoint write was lost ends",
        without_it="a former owner handles events whose position it can never store",
        words="        await self._checkpointer.run()\n        self.lose()\n",
        mutated="        await self._checkpointer.run()\n",
        killers=("tests/unit/eventproc/test_admin.py",),
    ),
    suites=("edges", "safety"),
)

PARTITION_READER = guards_in(
    "eventproc/partition/reader.py",
    CALL_TESTS,
    Guard(
        name="a processor whose link was stolen reads the ownership record",
        without_it="two receivers of one partition steal the link from each other for ever",
        words="is_owned = await self._verify()",
        mutated="is_owned = True",
        killers=("tests/stories/test_leaving.py",),
    ),
    Guard(
        name="while a receiver fails, the lag is not known",
        without_it="in an outage of the hub every metric shows a lag of zero",
        words="return None if self.failing_s else self._last_enqueued_known",
        mutated="return self._last_enqueued_known",
        killers=("tests/stories/test_hub_outages.py",),
        is_simulated=False,
    ),
    suites=("edges", "safety"),
)

START = guards_in(
    "eventproc/partition/start.py",
    CALL_TESTS,
    Guard(
        name="a first owner that begins at the end stores its position at once",
        without_it="its successor skips the events that arrived between them",
        words="        await checkpointer.flush()\n",
        mutated="        pass\n",
        is_simulated=False,
    ),
)

LANES = guards_in(
    "eventproc/partition/lanes.py",
    ["tests/stories/test_key_concurrency.py"],
    Guard(
        name="key lanes: there is one call at a time for each key",
        without_it="events of a key are handled out of order",
        words="                self._queues.finish(key)\n",
        mutated="                pass\n",
    ),
    suites=("lanes", "planned-lanes"),
)

CRASH_GUARD = guards_in(
    "eventproc/partition/crash_guard.py",
    ["tests/stories/test_crash_loops.py"],
    Guard(
        name="the delivery count is stored before the event is delivered",
        without_it="an event that kills its process kills one process after another",
        words="            self._progress.count_delivery(isolation.mark)\n",
        mutated="            pass\n",
        suites=("troubled", "troubled-lanes"),
    ),
)

STALL_WATCHDOG = guards_in(
    "eventproc/partition/stall_watchdog.py",
    ["tests/stories/test_stall_failover.py"],
    Guard(
        name="a stalled partition is released",
        without_it="a processor that completes nothing owns a partition for ever",
        words="                self._stop_scope.abort(CloseReason.STALLED)\n",
        mutated="                pass\n",
        suites=("troubled", "troubled-lanes"),
    ),
)

PUMPS = guards_in(
    "eventproc/pumps/pumps.py",
    ["tests/unit/eventproc/test_processor.py", "tests/stories/test_group_stories.py"],
    Guard(
        name="a partition is drained before it is handed over",
        without_it="a planned move delivers events twice",
        words="""        await self._end(
            partition_id, CloseReason.SHUTDOWN if is_stopping else CloseReason.HANDED_OVER
        )
        # The""",
        mutated="        # The",
        killers=("tests/simulation/test_planned_changes.py",),
    ),
    Guard(
        name="a partition that is being handed over gets no second pump",
        without_it="a pump starts with a lease that is about to be handed over",
        words="        not_served = waiting | self._stopped | self.running | self.handing_over | ",
        mutated="        not_served = waiting | self._stopped | self.running | ",
        killers=("tests/stories/test_leaving.py",),
    ),
    Guard(
        name="the target of a hand-over is read again after the partition was drained",
        without_it="a partition is handed over to a processor that has left meanwhile",
        words="""        await self._end(
            partition_id, CloseReason.SHUTDOWN if is_stopping else CloseReason.HANDED_OVER
        )
        # The plan may have changed while the partition was drained.
        if partition_id not in self._target_by_partition:
            return
        target = self._target_by_partition[partition_id]
""",
        mutated="""        target = self._target_by_partition[partition_id]
        await self._end(
            partition_id, CloseReason.SHUTDOWN if is_stopping else CloseReason.HANDED_OVER
        )
""",
        killers=("tests/stories/test_leaving.py",),
    ),
    suites=("planned", "safety", "moves"),
)

RUN = guards_in(
    "eventproc/runtime/run.py",
    ["tests/unit/eventproc/test_processor.py", "tests/stories/test_group_stories.py"],
    Guard(
        name="a stopping processor announces that it leaves, and serves for drain_delay",
        without_it="partitions that it hands over are read by nobody until their new owner polls",
        words="            await asyncio.sleep(noticed_s - now_s())\n",
        mutated="",
        killers=("tests/stories/test_leaving.py",),
    ),
    Guard(
        name="a processor that leaves during a rebalance waits for partitions on their way to it",
        without_it="a partition is handed over to a processor that has just gone",
        words="        elif self._is_rebalancing:\n",
        mutated="        elif False:\n",
        killers=("tests/stories/test_leaving.py",),
    ),
    Guard(
        name="a processor that leaves waits while another member is about to let go of a partition",
        without_it="that one hands it over to a processor that has just gone",
        words="        self._is_rebalancing |= actions is not None and actions.others_move\n",
        mutated="",
        killers=("tests/stories/test_leaving.py",),
    ),
    Guard(
        name="a processor that lost its owner id writes no records at its stop",
        without_it="it releases the partitions of the processor that took over its owner id",
        words="            if is_displaced:\n",
        mutated="            if False:\n",
        killers=("tests/stories/test_leaving.py",),
    ),
    Guard(
        name="a processor that lost its owner id renews and hands over nothing",
        without_it="writes that it had begun go into the records of the processor that took over "
        "its owner id",
        words="""        self.leases.lose_all()
        await self._cancel_renewals()""",
        mutated="        pass",
        killers=("tests/stories/test_displaced.py",),
    ),
    Guard(
        name="leases are renewed in another thread than that of handlers",
        without_it="a handler that blocks its event loop loses its partitions",
        words="        elif has_thread:\n",
        mutated="        elif False:\n",
        is_simulated=False,
        killers=("tests/unit/eventproc/partition/test_handler_threads.py",),
    ),
    Guard(
        name="a processor that has stopped deletes its member record",
        without_it="the plan goes on giving a share to a processor that has gone",
        words="await self._try_until(until_s, self._membership.withdraw())",
        mutated="pass",
    ),
    Guard(
        name="a processor whose start failed deletes its member record",
        without_it="partitions are handed over to a processor that does not run",
        words="await self._try_until(self._announced_by_s(), self._membership.retreat())",
        mutated="pass",
        killers=("tests/stories/test_failed_starts.py",),
    ),
    suites=("planned", "safety", "moves"),
)
