"""Guards of session leases: one lease for all partitions of a processor."""

from tests.mutation.guard import Guard, guards_in

SESSION_LEASES = guards_in(
    "eventproc/ownership/leases.py",
    ["tests/unit/eventproc/ownership/test_leases.py", "tests/stories/test_lease_doubts.py"],
    Guard(
        name="session: a listing counts from when it was requested",
        without_it="a processor whose partition was stolen during a slow answer acts longer than "
        "it may",
        words="        self._compared_at_s = asked_at_s\n",
        mutated="        self._compared_at_s = self._clock()\n",
    ),
    suites=("edges", "safety"),
)

SESSION_BALANCER = guards_in(
    "eventproc/ownership/balancer.py",
    ["tests/stories/test_session_silence.py"],
    Guard(
        name="session: the time of a listing is taken before the request is sent",
        without_it="a processor whose partition was stolen during a slow answer acts longer than "
        "it may",
        words="                asked_at_s=asked_at_s,\n",
        mutated="                asked_at_s=self._clock(),\n",
    ),
    suites=("edges", "safety"),
)

SESSION_MEMBERSHIP = guards_in(
    "eventproc/ownership/membership.py",
    [
        "tests/unit/eventproc/ownership/test_membership.py",
        "tests/stories/test_session_membership.py",
    ],
    Guard(
        name="session: a session lease counts from before its renewal was sent",
        without_it="a processor that is fenced meanwhile acts at the same time as the one that "
        "takes over",
        words="            sent_at_s=sent_at_s,\n",
        mutated="            sent_at_s=self._clock(),\n",
    ),
    Guard(
        name="session: a cycle that failed after it read the records does not count as an answer",
        without_it="a process that was paused ends its successor",
        words="self.own = replace(self.own, silent_s=asked_at_s - known_at_s)",
        mutated="self.own = replace(\n"
        "            self.own, acted_at_s=asked_at_s, silent_s=asked_at_s - known_at_s\n        )",
    ),
    Guard(
        name="session: a late renewal does not restore a deleted member record",
        without_it="a processor that is gone seems alive, and its share is served by nobody",
        words="if self._is_withdrawn or self.own.is_rival(mine):",
        mutated="if self.own.is_rival(mine):",
    ),
    suites=("edges", "safety"),
)

SESSION_LEASE_RULES = guards_in(
    "eventproc/core/ownership/lease_mode.py",
    [
        "tests/unit/eventproc/core/ownership/test_lease_mode.py",
        "tests/stories/test_session_leases.py",
    ],
    Guard(
        name="after a store outage no owner counts as dead",
        without_it="the first processor that reaches the store again claims every partition",
        words="return recorded_owners(owned) if is_grace else fresh_owners(owned, expiration)",
        mutated="return fresh_owners(owned, expiration)",
    ),
    Guard(
        name="session: a member is alive until its record is marked as dead",
        without_it="a claim and a renewal that was under way both succeed",
        words="return session.status is not MemberStatus.DEAD or (",
        mutated="return is_fresh(session, present, expiration) or (",
    ),
    Guard(
        name="session: an owner without a member record counts as alive for one expiration",
        without_it="a live member whose record was deleted by an operator loses its partitions",
        words="return ownership.owner_id not in suspects or is_fresh",
        mutated="return is_fresh",
    ),
    Guard(
        name="session: if the first member does not fence an expired one in time, every member "
        "does",
        without_it="if the first member hangs, the partitions of the expired one are read by "
        "nobody",
        words="fence_after += expiration * DUTY_FRACTION",
        mutated="fence_after += expiration * 1000",
    ),
    Guard(
        name="session: an ownership record as old as the status dead of its owner is live",
        without_it="a fenced processor that claims in its new session at once loses that partition",
        words="return ownership.last_modified + resolution >= dead.last_modified",
        mutated="return ownership.last_modified >= dead.last_modified",
        is_simulated=False,
    ),
    suites=("edges", "safety"),
)

SESSION_MEMORY = guards_in(
    "eventproc/core/ownership/memory.py",
    ["tests/unit/eventproc/core/ownership/test_cycle.py"],
    Guard(
        name="session: ownership is read at intervals, even while membership is unchanged",
        without_it="a processor whose partition was stolen never notices it",
        words="        or now_s - known.at_s > full_poll_interval.total_seconds()\n",
        mutated="",
    ),
    suites=("edges", "safety"),
)

SESSION_LIVING = guards_in(
    "eventproc/core/ownership/living.py",
    ["tests/unit/eventproc/core/ownership/test_cycle.py"],
    Guard(
        name="session: no member is fenced in the grace period after a store outage",
        without_it="the first processor that reaches the store again fences all that could not "
        "renew either",
        words="    has_to_fence = is_session and not is_grace\n",
        mutated="    has_to_fence = is_session\n",
        killers=("tests/stories/test_session_polls.py",),
    ),
    Guard(
        name="after a store outage members that own nothing have time to renew",
        without_it="partitions move and come back, because the plan changes for a moment",
        words="*written_at} | spared",
        mutated="*written_at}",
        killers=("tests/unit/eventproc/core/ownership/test_memory.py",),
        is_simulated=False,
    ),
    suites=("edges", "safety"),
)

SESSION_CYCLE = guards_in(
    "eventproc/core/ownership/cycle.py",
    ["tests/stories/test_session_leases.py"],
    Guard(
        name="session: each ownership record is renewed while a foreign member is in the group",
        without_it="a processor of an Azure SDK claims every partition",
        words="rules.lease_mode is LeaseMode.PARTITION or bool(observed.outsiders)",
        mutated="rules.lease_mode is LeaseMode.PARTITION",
        is_simulated=False,
    ),
    Guard(
        name="session: a standby stays one until the silent member that it waits for is fenced",
        without_it="it gets a share of all members, though the one that it replaces has renewed",
        words="(*living.members, *living.silent)",
        mutated="living.members",
        killers=("tests/unit/eventproc/core/ownership/test_cycle.py",),
        is_simulated=False,
    ),
    suites=("edges", "safety"),
)

COMPATIBILITY = guards_in(
    "eventproc/ownership/compatibility.py",
    ["tests/stories/test_session_leases.py"],
    Guard(
        name="session: a group has one lease mode",
        without_it="processors judge each other by different records, and take live partitions",
        words="    if others:\n",
        mutated="    if False:\n",
        is_simulated=False,
    ),
    suites=("edges", "safety"),
)
