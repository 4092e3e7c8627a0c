"""Guards of the votes on the number of processes."""

from tests.mutation.guard import Guard, guards_in

DECISION = guards_in(
    "eventproc/core/scaling/decision.py",
    ["tests/unit/eventproc/core/scaling/test_decision.py"],
    Guard(
        name="no answer keeps the last vote",
        without_it="an outage of the store scales the group to its minimum",
        words="return memory, Decision(replicas=memory.replicas, reason=Reason.NO_ANSWER)",
        mutated="return memory, Decision(replicas=rules.replicas_min, reason=Reason.NO_ANSWER)",
        is_simulated=False,
    ),
    Guard(
        name="a backlog that drains is no reason for more processes",
        without_it="a restart of all processes scales out",
        words="if drained_in_s <= PATIENCE * rules.drain_target.total_seconds():",
        mutated="if False:",
        is_simulated=False,
    ),
    Guard(
        name="rates are measured after the owners had time to write a checkpoint",
        without_it="processes that have just started seem slow, so a restart scales out",
        words="since_s = reading.at_s + span_s",
        mutated="since_s = reading.at_s",
        is_simulated=False,
    ),
    Guard(
        name="the backlog that grows until new processes work is counted",
        without_it="the drain target is missed",
        words="reading.backlog + growth, memory",
        mutated="reading.backlog, memory",
        is_simulated=False,
    ),
    Guard(
        name="no more processes are asked for before those that were asked for are there",
        without_it="while processes start, votes grow to the maximum",
        words="if len(reading.member_ids) < current:",
        mutated="if False:",
        is_simulated=False,
    ),
    Guard(
        name="the rate of a process is not measured where drain and arrival are the same",
        without_it="a long time between checkpoints is taken for full processes, and scales out",
        words="if rates.of_one is not None and not _is_steady(rates):",
        mutated="if rates.of_one is not None:",
        is_simulated=False,
    ),
)

READINGS = guards_in(
    "eventproc/core/scaling/readings.py",
    ["tests/unit/eventproc/core/scaling/test_readings.py"],
    Guard(
        name="what retention deleted is no backlog",
        without_it="a group whose checkpoints are old is scaled for events that are gone",
        words="return before_first if self.handled is None else max(self.handled, before_first)",
        mutated="return before_first if self.handled is None else self.handled",
        is_simulated=False,
    ),
    Guard(
        name="what arrives in a paused partition does not count",
        without_it="processes are started for events that none may handle",
        words="return 0 if new.is_paused else max(0, new.last - old.last)",
        mutated="return max(0, new.last - old.last)",
        is_simulated=False,
    ),
    Guard(
        name="to skip deleted events is no progress",
        without_it="the rate of a process is measured far too high",
        words="new.start - max(old.start, new.first - 1)",
        mutated="new.start - old.start",
        is_simulated=False,
    ),
    Guard(
        name="a process without progress does not count for the rate of one",
        without_it="a handler that waits for a database lowers the rate, and scales out",
        words="if done and least_by_owner",
        mutated="if least_by_owner",
        is_simulated=False,
    ),
)
