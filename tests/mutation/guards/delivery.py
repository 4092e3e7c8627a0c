"""Guards of checkpoints, of pumps and of starting and stopping."""

from tests.mutation.guard import Guard, guards_in

CHECKPOINTER = guards_in(
    "eventproc/checkpointer.py",
    ["tests/unit/eventproc/test_checkpointer.py"],
    Guard(
        name="a checkpoint is written back before the first event is read",
        without_it="the former owner may still move the position after its successor began",
        words="            if update is None:\n",
        mutated="            if True:\n",
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
        words="if self._is_of_another(found) and not await self._verify():",
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
            while""",
        mutated="""        if True:
            while""",
    ),
)

RECORDS = guards_in(
    "eventproc/checkpoint.py",
    ["tests/unit/eventproc/test_checkpoint.py", "tests/unit/eventproc/test_checkpointer.py"],
    Guard(
        name="no update can be built that goes back",
        without_it="a mistake anywhere above reaches the store",
        words="self.sequence_number < previous and not self.is_reset",
        mutated="False and not self.is_reset",
        is_simulated=False,
    ),
)

ENDING = guards_in(
    "eventproc/ending.py",
    ["tests/unit/eventproc/test_pump.py", "tests/unit/eventproc/test_handler_calls.py"],
    Guard(
        name="self-fence of a call: cut when the lease cannot be trusted any more",
        without_it="a handler acts while the next owner does",
        words="""            loop.call_later(wait_s, self._enforce_trust, scope)
        else:
            self._cut()""",
        mutated="""            loop.call_later(wait_s, self._enforce_trust, scope)
        else:
            pass""",
    ),
    Guard(
        name="a lost partition's call is cut at once",
        without_it="a robbed handler goes on to its end",
        words="""        self.reason = CloseReason.OWNERSHIP_LOST
        self._cut()
""",
        mutated="        self.reason = CloseReason.OWNERSHIP_LOST\n",
    ),
    Guard(
        name="a renewed lease goes on guarding its call",
        without_it="a call is cut although its lease was renewed",
        words="""        if self._trust.remaining_s > 0:
            wait_s""",
        mutated="""        if False:
            wait_s""",
    ),
)

PUMP = guards_in(
    "eventproc/pump.py",
    ["tests/unit/eventproc/test_pump.py", "tests/unit/eventproc/test_handler_calls.py"],
    Guard(
        name="self-fence before a call: no lease, no call",
        without_it="a handler is called while the next owner acts",
        words="if await self._ending.until_trusted():",
        mutated="if False:",
    ),
    Guard(
        name="progress only after the handler returned",
        without_it="events that failed are never handled",
        words="""            if is_done:
                self._context.advance""",
        mutated="""            if True:
                self._context.advance""",
    ),
    Guard(
        name="what was handled is not delivered again in place",
        without_it="a receiver that begins early makes duplicates",
        words="        return [event for event in events if self._context.is_unhandled(event)]",
        mutated="        return list(events)",
    ),
    Guard(
        name="a displaced receiver asks the record who owns the partition",
        without_it="the owner and the receiver that took its link go on displacing each other",
        words="""        if not is_owned:
            raise OwnershipLostError""",
        mutated="""        if False:
            raise OwnershipLostError""",
    ),
    Guard(
        name="a position is stored for a first owner that begins at the end",
        without_it="its successor skips what arrived between",
        words="""        await self._context.checkpoint()
        return EventPosition.from_offset(offset)""",
        mutated="        return EventPosition.from_offset(offset)",
        is_simulated=False,
    ),
)

CONTEXT = guards_in(
    "eventproc/context.py",
    ["tests/unit/eventproc/test_handler_calls.py", "tests/unit/eventproc/test_pump.py"],
    Guard(
        name="what a failed call did to the state is undone",
        without_it="events that come again are counted twice",
        words="""        if not is_done:
            self._state = self._state_before_call
""",
        mutated="",
    ),
    Guard(
        name="a checkpoint during a call stores the state of its own position",
        without_it="state and position come apart",
        words="state=self._state_before_call if self._is_in_call else self._state",
        mutated="state=self._state",
    ),
)

PUMPS = guards_in(
    "eventproc/pumps.py",
    ["tests/unit/eventproc/test_processor.py", "tests/unit/eventproc/test_group_stories.py"],
    Guard(
        name="a partition is drained before it is handed over",
        without_it="events come twice at a planned change",
        words="            await self._end(partition_id, CloseReason.HANDED_OVER)\n",
        mutated="",
    ),
    Guard(
        name="a partition is released only after its pump has closed",
        without_it="events come twice at a stop",
        words="await self._end(partition_id, CloseReason.SHUTDOWN, within * DRAIN_FRACTION)",
        mutated="pass",
    ),
    Guard(
        name="a partition that is being handed over gets no second pump",
        without_it="a pump starts for a lease that is about to be given away",
        words="ending=self._hand_overs\n",
        mutated="ending=()\n",
    ),
    Guard(
        name="a hand-over asks once more for whom, after draining",
        without_it="a partition goes to who has left meanwhile",
        words="""            await self._end(partition_id, CloseReason.HANDED_OVER)
            # While it was drained the plan may have changed its mind.
            if partition_id in self._target_by_partition:
                target = self._target_by_partition[partition_id]
""",
        mutated="""            target = self._target_by_partition[partition_id]
            await self._end(partition_id, CloseReason.HANDED_OVER)
            if True:
""",
    ),
)

SESSION = guards_in(
    "eventproc/session.py",
    ["tests/unit/eventproc/test_processor.py", "tests/unit/eventproc/test_group_stories.py"],
    Guard(
        name="notice before leaving",
        without_it="what is handed over lies unread until its new owner looks",
        words="            await asyncio.sleep(self._leaving_notice_s())\n",
        mutated="",
    ),
    Guard(
        name="who leaves while it expects gifts waits for them",
        without_it="a gift arrives after its receiver has gone",
        words="        elif self._is_expecting:\n",
        mutated="        elif False:\n",
    ),
    Guard(
        name="who lost its name touches no record",
        without_it="it releases the partitions of who took the name",
        words="            if is_displaced:\n",
        mutated="            if False:\n",
    ),
    Guard(
        name="renewals run apart from handlers",
        without_it="a handler that blocks loses its partitions",
        words="if parts.config.uses_store_thread:",
        mutated="if False:",
        is_simulated=False,
    ),
    Guard(
        name="presence is taken back at the end",
        without_it="the plan goes on giving a share to who has gone",
        words="                await self._control.call(self._balancer.part())\n",
        mutated="                pass\n",
    ),
)
