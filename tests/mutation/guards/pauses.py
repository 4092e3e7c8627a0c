"""Guards of an operator's pauses: nothing of a paused partition reaches a handler."""

from tests.mutation.guard import Guard, guards_in

STORIES = ("tests/stories/test_group_pauses.py", "tests/stories/test_paused_calls.py")
SUITES = ("planned",)
"""Only small worlds have pauses; a suite without them shows that nothing else fails."""

RECORD = guards_in(
    "eventproc/core/pauses.py",
    ["tests/unit/eventproc/core/test_pauses.py", *STORIES],
    Guard(
        name="a pause of the group is one of every partition",
        without_it="a paused group goes on",
        words="return self.by_partition.get(partition_id, self.group)",
        mutated="return self.by_partition.get(partition_id)",
    ),
    suites=SUITES,
)

READER = guards_in(
    "eventproc/ownership/pauses.py",
    ["tests/unit/eventproc/ownership/test_pauses.py", *STORIES],
    Guard(
        name="the record of pauses is read again when it has changed",
        without_it="only processors that start later hear of a pause",
        words="if etag == self._etag and self._is_readable:",
        mutated="if self._etag is not None:",
    ),
    Guard(
        name="a listing without the record of pauses does not end them: the record is read",
        without_it="a listing of a replica that lags ends a pause",
        words="record = await self._store.read_record(self._group, PAUSES_RECORD)\n",
        mutated="record = await self._store.read_record(self._group, PAUSES_RECORD) if etag else "
        "None\n",
    ),
    Guard(
        name="a record that cannot be read pauses a processor that knows no other",
        without_it="a damaged record ends a pause when the group restarts",
        words="self.known = unreadable(error, as_of)",
        mutated="pass",
        is_simulated=False,
    ),
    suites=SUITES,
)

PUMPS = guards_in(
    "eventproc/pumps/pumps.py",
    STORIES,
    Guard(
        name="a pump that starts has the pauses of the group",
        without_it="a pause ends when a partition moves or its processor restarts",
        words="                pump.follow(self._group_pauses.of(partition_id))\n",
        mutated="",
    ),
    Guard(
        name="running pumps are told of a pause",
        without_it="a pause begins only when a partition moves",
        words="            pump.follow(pauses.of(partition_id))\n",
        mutated="            pass\n",
    ),
    suites=SUITES,
)

RUN = guards_in(
    "eventproc/runtime/run.py",
    STORIES,
    Guard(
        name="pauses are followed before pumps start",
        without_it="a partition that moves delivers events before it is paused",
        words="""        try:
            done = await self.executor.call(cycle)
        finally:  # A cycle that failed may have read them.
            self.pumps.follow(self._balancer.pauses)
""",
        mutated="        done = await self.executor.call(cycle)\n",
    ),
    Guard(
        name="a processor that leaves follows the pauses",
        without_it="it delivers events of a paused partition until its partitions are drained",
        words="        self.pumps.follow(self._balancer.pauses)\n        return done.actions",
        mutated="        return done.actions",
        is_simulated=False,
    ),
    suites=SUITES,
)

CALLS = guards_in(
    "eventproc/partition/handler_calls.py",
    STORIES,
    Guard(
        name="no call with events begins during a pause, whatever was received before",
        without_it="a failed call is repeated during a pause until its event is given up",
        words="if is_delivery and self._pause_switch is not None and self._pause_switch.is_paused:",
        mutated="if False:",
    ),
    Guard(
        name="whether the partition is paused is asked again after a wait for the lease",
        without_it="a pause that began in an outage of the store is not kept after it",
        words="if not await self._stop_scope.until_trusted():\n                return\n",
        mutated="if not await self._stop_scope.until_trusted():\n"
        "                return\n            is_delivery = False\n",
    ),
    suites=SUITES,
)

SWITCH = guards_in(
    "eventproc/partition/flow_control.py",
    [*STORIES, "tests/stories/test_pauses.py"],
    Guard(
        name="the end of a process's pause does not end that of the group",
        without_it="a handler that resumes its partition undoes what an operator ordered",
        words="if not self.is_paused_here and self.group_pause is None:",
        mutated="if not self.is_paused_here:",
    ),
    suites=SUITES,
)

PUMP = guards_in(
    "eventproc/partition/pump.py",
    STORIES,
    Guard(
        name="a pump that ends passes on the pause of its process alone",
        without_it="a partition stays paused after the group resumed",
        words="return self._pause_switch.is_paused_here",
        mutated="return self._pause_switch.is_paused",
    ),
    suites=SUITES,
)
