"""Guards of checkpoints, of pumps and of starting and stopping."""

from tests.mutation.guard import Guard, guards_in

CHECKPOINTER = guards_in(
    "eventproc/partition/checkpointer.py",
    ["tests/unit/eventproc/partition/test_checkpointer.py"],
    Guard(
        name="a checkpoint is written back before the first event is read",
        without_it="the former owner may still move the position after its successor began",
        words="        if update is None:\n",
        mutated="        if True:\n",
    ),
    Guard(
        name="ownership is proven between reading a checkpoint and adopting it",
        without_it="a pump that comes late shuts out the owner that came after it",
        words="""if not await self._verify():
            raise""",
        mutated="""if False:
            raise""",
    ),
    Guard(
        name="ownership is proven after another's checkpoint was read",
        without_it="a former owner reads its successor's checkpoint and writes over it",
        words="if self._is_written_by_another(found) and not await self._verify():",
        mutated="if False:",
    ),
    Guard(
        name="an unknown checkpoint write is not taken for won",
        without_it="a close ends without a checkpoint",
        words="""        if result.outcome is WriteOutcome.WON:
            self._stored = result.checkpoint
            self._note""",
        mutated="""        if result.outcome is not WriteOutcome.LOST:
            self._stored = result.checkpoint or self._stored
            self._note""",
    ),
    Guard(
        name="a position below the stored one is not written",
        without_it="a position that somebody else moved on goes back",
        words="if is_behind(progress.sequence_number, self._stored):",
        mutated="if False:",
    ),
    Guard(
        name="who is told of its loss writes no more",
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
        name="one checkpoint write at a time",
        without_it="two writes of one pump refuse each other",
        words="""        async with self._writing:
            self._urged.clear()
""",
        mutated="""        if True:
            self._urged.clear()
""",
    ),
    suites=("edges", "safety"),
)

RECORDS = guards_in(
    "eventproc/models/checkpoint.py",
    [
        "tests/unit/eventproc/models/test_checkpoint.py",
        "tests/unit/eventproc/partition/test_checkpointer.py",
    ],
    Guard(
        name="no update can be built that goes back",
        without_it="a mistake anywhere above reaches the store",
        words="self.sequence_number < previous and not self.is_reset",
        mutated="False and not self.is_reset",
    ),
    suites=("safety",),
)

CALLS = (
    "tests/unit/eventproc/partition/test_pump.py",
    "tests/unit/eventproc/partition/test_handler_calls.py",
)

ENDING = guards_in(
    "eventproc/partition/stop_scope.py",
    ["tests/unit/eventproc/partition/test_stop_scope.py"],
    Guard(
        name="self-fence of a call: cut when the lease cannot be trusted any more",
        without_it="a handler acts while the next owner does",
        words="            self._cut([scope])",
        mutated="            pass",
    ),
    Guard(
        name="a lost partition's call is cut at once",
        without_it="a robbed handler goes on to its end",
        words="""        self.reason = CloseReason.OWNERSHIP_LOST
        self._cut(self._waits)
        self._cut(self._calls)
""",
        mutated="""        self.reason = CloseReason.OWNERSHIP_LOST
        self._cut(self._waits)
""",
    ),
    Guard(
        name="a renewed lease goes on guarding its call",
        without_it="a call is cut although its lease was renewed",
        words="        if self._trust.remaining_s > 0:\n            loop.call_later",
        mutated="        if False:\n            loop.call_later",
    ),
    Guard(
        name="the lease of a call is looked at all the time",
        without_it="after its machine slept a handler goes on beside the next owner",
        words="        return min(max(self._trust.remaining_s, TRUST_STEP_S), TRUST_LOOK_S)",
        mutated="        return max(self._trust.remaining_s, TRUST_STEP_S)",
    ),
    Guard(
        name="a context whose pump has closed trusts nothing",
        without_it="a handler that outlives its pump acts beside the next one",
        words="return not self.is_lost and not self._is_over and",
        mutated="return not self.is_lost and",
    ),
    suites=("edges", "safety"),
)

DELIVERY = guards_in(
    "eventproc/partition/handler_calls.py",
    CALLS,
    Guard(
        name="self-fence before a call: no lease, no call",
        without_it="a handler is called while the next owner acts",
        words="if await self._stop_scope.until_trusted():",
        mutated="if False:",
        killers=("tests/unit/eventproc/partition/test_stop_scope.py",),
    ),
    Guard(
        name="progress only after the handler returned",
        without_it="events that failed are never handled",
        words="""                self._note_done(run, part, FailureReport(failed={}), context)
                if outcome.error""",
        mutated="""                run.settle(part, context)
                if outcome.error""",
    ),
    Guard(
        name="a call that was cut is not taken for done",
        without_it="events whose call was cut are never handled",
        words="cut, outcome = None, CUT",
        mutated="cut, outcome = None, DONE",
    ),
    suites=("safety", "edges", "lanes"),
)

PUMP = guards_in(
    "eventproc/partition/pump.py",
    CALLS,
    Guard(
        name="what was handled is not delivered again in place",
        without_it="a receiver that begins early makes duplicates",
        words="wanted = [event for event in events if self._context.is_unhandled(event)]",
        mutated="wanted = list(events)",
        killers=("tests/stories/test_early_receiver.py",),
    ),
    Guard(
        name="a pump whose checkpoints are refused ends",
        without_it="a former owner goes on handling what it can never store",
        words="        await self._checkpointer.run()\n        self.lose()\n",
        mutated="        await self._checkpointer.run()\n",
        killers=("tests/unit/eventproc/test_admin.py",),
    ),
    suites=("edges", "safety"),
)

RECEPTION = guards_in(
    "eventproc/partition/reader.py",
    CALLS,
    Guard(
        name="a displaced receiver asks the record who owns the partition",
        without_it="the owner and the receiver that took its link go on displacing each other",
        words="is_owned = await self._verify()",
        mutated="is_owned = True",
        killers=("tests/stories/test_leaving.py",),
    ),
    suites=("edges", "safety"),
)

BEGINNING = guards_in(
    "eventproc/partition/start.py",
    CALLS,
    Guard(
        name="a position is stored for a first owner that begins at the end",
        without_it="its successor skips what arrived between",
        words="        await context.checkpoint()\n",
        mutated="        pass\n",
        is_simulated=False,
    ),
)

CONTEXT = guards_in(
    "eventproc/partition/context.py",
    ["tests/unit/eventproc/partition/test_handler_calls.py", "tests/stories/test_failures.py"],
    Guard(
        name="what a failed call did to the state is undone",
        without_it="events that come again are counted twice",
        words="        if not keeps_state:\n            self._state = self._state_before_call\n",
        mutated="",
    ),
    Guard(
        name="a checkpoint during a call stores the state of its own position",
        without_it="state and position come apart",
        words="return place.state if self._is_in_call or self._is_held else self._state",
        mutated="return self._state",
    ),
    suites=("safety", "edges"),
)

LANES = guards_in(
    "eventproc/partition/lanes.py",
    ["tests/stories/test_key_concurrency.py"],
    Guard(
        name="key lanes: one call at a time for each key",
        without_it="events of a key are handled out of order",
        words="                self._queues.back(key)\n",
        mutated="                pass\n",
    ),
    Guard(
        name="key lanes: no handled event is taken for what processes died of",
        without_it="a receiver that begins early makes an innocent event a dead letter",
        words="return self._watermark.is_wanted(event.sequence_number)",
        mutated="return True",
        is_simulated=False,
        killers=("tests/stories/test_early_receiver.py",),
    ),
    suites=("lanes", "planned-lanes"),
)

WATERMARK = guards_in(
    "eventproc/core/key_queues.py",
    ["tests/unit/eventproc/core/test_key_queues.py", "tests/stories/test_key_concurrency.py"],
    Guard(
        name="key lanes: an event is taken in once",
        without_it="a receiver that begins again makes duplicates",
        words="        if sequence_number <= self._admitted_number:\n            return False\n",
        mutated="",
    ),
    Guard(
        name="key lanes: what was done above the position is not done again",
        without_it="a restart repeats what the checkpoint says is done",
        words="        if self._was_done(sequence_number):\n            self._join",
        mutated="        if False:\n            self._join",
    ),
    Guard(
        name="key lanes: the position rises only over what is done",
        without_it="a checkpoint covers what no lane has handled yet",
        words="span = self._span_by_first.pop(self._passed_count, None)",
        mutated="span = self._span_by_first.pop(min(self._span_by_first, default=-1), None)",
    ),
    suites=("lanes", "planned-lanes"),
)

CRASHES = guards_in(
    "eventproc/partition/crash_guard.py",
    ["tests/stories/test_crash_loops.py"],
    Guard(
        name="an event is counted before it is handed over",
        without_it="an event of which processes die kills one after another",
        words="            self._context.count_delivery(care.mark)\n",
        mutated="            pass\n",
        suites=("troubled", "troubled-lanes"),
    ),
)

WATCHDOG = guards_in(
    "eventproc/partition/stall_watchdog.py",
    ["tests/stories/test_stalls.py"],
    Guard(
        name="a partition that stalls is given up",
        without_it="a partition is owned for ever by who gets nothing done",
        words="                self._stop_scope.give_up(CloseReason.STALLED)\n",
        mutated="                pass\n",
        suites=("troubled", "troubled-lanes"),
    ),
)

PUMPS = guards_in(
    "eventproc/partition/pumps.py",
    ["tests/unit/eventproc/test_processor.py", "tests/stories/test_group_stories.py"],
    Guard(
        name="a partition is drained before it is handed over",
        without_it="events come twice at a planned change",
        words="            await self._end(partition_id, CloseReason.HANDED_OVER)\n",
        mutated="",
        killers=("tests/simulation/test_planned_changes.py",),
    ),
    Guard(
        name="a partition is released only after its pump has closed",
        without_it="events come twice at a stop",
        words="await self._end(partition_id, CloseReason.SHUTDOWN, within * DRAIN_FRACTION)",
        mutated="pass",
        killers=("tests/simulation/test_planned_changes.py",),
    ),
    Guard(
        name="a partition that is being handed over gets no second pump",
        without_it="a pump starts for a lease that is about to be given away",
        words="ending=self._hand_overs,\n",
        mutated="ending=(),\n",
        killers=("tests/stories/test_leaving.py",),
    ),
    Guard(
        name="a hand-over asks once more for whom, after draining",
        without_it="a partition goes to who has left meanwhile",
        words="""            await self._end(partition_id, CloseReason.HANDED_OVER)
            # The plan may have changed while the partition was drained.
            if partition_id in self._target_by_partition:
                target = self._target_by_partition[partition_id]
""",
        mutated="""            target = self._target_by_partition[partition_id]
            await self._end(partition_id, CloseReason.HANDED_OVER)
            if True:
""",
        killers=("tests/stories/test_leaving.py",),
    ),
    suites=("planned", "safety", "moves"),
)

SESSION = guards_in(
    "eventproc/runtime/run.py",
    ["tests/unit/eventproc/test_processor.py", "tests/stories/test_group_stories.py"],
    Guard(
        name="notice before leaving",
        without_it="what is handed over lies unread until its new owner looks",
        words="            await asyncio.sleep(self._drain_delay_s())\n",
        mutated="",
        killers=("tests/stories/test_leaving.py",),
    ),
    Guard(
        name="who leaves while it expects gifts waits for them",
        without_it="a gift arrives after its receiver has gone",
        words="        elif self._is_rebalancing:\n",
        mutated="        elif False:\n",
        killers=("tests/stories/test_leaving.py",),
    ),
    Guard(
        name="who lost its name touches no record",
        without_it="it releases the partitions of who took the name",
        words="            if is_displaced:\n",
        mutated="            if False:\n",
        killers=("tests/stories/test_leaving.py",),
    ),
    Guard(
        name="who lost its name renews nothing and gives nothing away",
        without_it="what it had begun is written into the records of who took the name",
        words="""        self.leases.lose_all()
        await self._cancel_renewals()""",
        mutated="        pass",
        killers=("tests/stories/test_displaced.py",),
    ),
    Guard(
        name="renewals run apart from handlers",
        without_it="a handler that blocks loses its partitions",
        words="if parts.config.uses_store_thread:",
        mutated="if False:",
        is_simulated=False,
        killers=("tests/unit/eventproc/partition/test_handler_threads.py",),
    ),
    Guard(
        name="presence is taken back at the end",
        without_it="the plan goes on giving a share to who has gone",
        words="await self._control.call(self._balancer.deregister(self.pumps.running))",
        mutated="pass",
    ),
    suites=("planned", "safety", "moves"),
)
