"""Guards of a cycle: what a processor remembers, what it decides, and its member record."""

from tests.mutation.guard import Guard, guards_in

GROUP = guards_in(
    "eventproc/core/ownership/group.py",
    [
        "tests/unit/eventproc/core/ownership/test_balance.py",
        "tests/unit/eventproc/core/ownership/test_cycle.py",
    ],
    Guard(
        name="a leaving owner is not stolen from before handoff_timeout",
        suites=("planned", "moves", "safety"),
        without_it="a partition that a leaving processor still serves is stolen, and events come "
        "twice",
        words="LEAVING: Final = Standing(has_share=False, follows_plan=True, lets_go=True)",
        mutated="LEAVING: Final = Standing(has_share=False, follows_plan=True, lets_go=False)",
    ),
    Guard(
        name="a leaving processor is not a member of the plan",
        without_it="a leaving processor is given new partitions",
        words="        if owner_id in leaving:\n",
        mutated="        if owner_id in leaving and owner_id != me:\n",
    ),
    suites=("moves", "safety", "planned"),
)

STABILITY = guards_in(
    "eventproc/core/ownership/stability.py",
    [
        "tests/unit/eventproc/core/ownership/test_memory.py",
        "tests/unit/eventproc/core/ownership/test_cycle.py",
    ],
    Guard(
        name="the wait for a stable membership ends, even if members change all the time",
        suites=("liveness", "safety"),
        without_it="in a group whose members restart all the time, free partitions are served by "
        "nobody",
        words="self.unstable_since_s + UNSTABLE_CYCLES_MAX * rebalance_s,",
        mutated="self.since_s + UNSTABLE_CYCLES_MAX * rebalance_s,",
    ),
    Guard(
        name="the wait for a stable membership ends, even if each poll shows another one",
        suites=("liveness", "safety"),
        without_it="in a group whose members restart all the time, free partitions are served by "
        "nobody",
        words="if self.unconfirmed_count >= UNSTABLE_CYCLES_MAX:",
        mutated="if False:",
    ),
    Guard(
        name="handoff_timeout is counted from when a partition was first due",
        suites=("liveness",),
        without_it="an owner that hangs is never overdue",
        words="{key: known.get(key, now_s) for key in true_now}",
        mutated="dict.fromkeys(true_now, now_s)",
    ),
)

LIVING = guards_in(
    "eventproc/core/ownership/living.py",
    [
        "tests/unit/eventproc/core/ownership/test_memory.py",
        "tests/unit/eventproc/core/ownership/test_cycle.py",
    ],
    Guard(
        name="a partition with a lease counts as owned, whatever an old listing says",
        without_it="an old listing makes a processor claim what it owns",
        words="    live.update("
        "dict.fromkeys(listing.held - _taken_from_me(suspects, live, me), me))\n",
        mutated="",
    ),
    Guard(
        name="a member whose last partition was taken stays one, however old its member record",
        without_it="the others follow a plan without it, and partitions move twice",
        words="{*live.values(), *written_at}",
        mutated="{*live.values()}",
    ),
    Guard(
        name="a member whose record is missing keeps its share while it owns something",
        without_it="when an operator deletes a member record, partitions move",
        words="    members += _unrecorded(known, unrecorded - absent, live)\n",
        mutated="",
    ),
    suites=("moves", "safety", "liveness"),
)

LISTING = guards_in(
    "eventproc/core/ownership/listing.py",
    [
        "tests/unit/eventproc/core/ownership/test_memory.py",
        "tests/unit/eventproc/core/ownership/test_cycle.py",
    ],
    Guard(
        name="a partition that is being handed over counts as held",
        without_it="a partition whose lease expires while it drains is claimed a second time",
        words="return self.handing_over.union(self.leases)",
        mutated="return frozenset(self.leases)",
    ),
    suites=("moves", "safety", "liveness"),
)

MEMORY = guards_in(
    "eventproc/core/ownership/memory.py",
    [
        "tests/unit/eventproc/core/ownership/test_memory.py",
        "tests/unit/eventproc/core/ownership/test_cycle.py",
    ],
    Guard(
        name="a pause between polls as long as an outage is noticed",
        without_it="after an outage the first processor that polls claims everything",
        words="now_s - memory.read_at_s > outage.total_seconds()",
        mutated="now_s < memory.read_at_s",
    ),
    Guard(
        name="after an outage handoff_timeout starts again for every partition",
        without_it="a processor that has just got a partition is stolen from, because the time "
        "before the outage counts",
        words=", waiting_since_s={})",
        mutated=")",
    ),
    Guard(
        name="a contradicted lease holds up claims and steals until it is verified",
        without_it="a processor whose partition was stolen plans as if it held it, and partitions "
        "move twice",
        words="""is_unsure = (schema_age or membership).is_unstable(now_s, rules) or any(
        not lease.is_doubtful for lease in living.contradicted
    )""",
        mutated="is_unsure = (schema_age or membership).is_unstable(now_s, rules)",
        is_simulated=False,
    ),
    suites=("moves", "safety", "liveness"),
)

CYCLE = guards_in(
    "eventproc/core/ownership/cycle.py",
    [
        "tests/unit/eventproc/core/ownership/test_cycle.py",
        "tests/unit/eventproc/ownership/test_balancer.py",
    ],
    Guard(
        name="after it answered a second process with its owner id, a processor polls again soon",
        without_it="an answer that was refused waits for a whole interval, and the live one of two "
        "processes may end",
        words="            and self.member.rival is None\n",
        mutated="",
        killers=("tests/stories/test_second_process.py",),
        is_simulated=False,
    ),
    Guard(
        name="the member record of one that gave its last partition away is not deleted",
        without_it="others follow a plan without it for a moment, and a partition is stolen",
        words="{*owners, *living.written_at}",
        mutated="owners",
        killers=("tests/unit/eventproc/core/ownership/test_memory.py",),
        suites=("planned", "moves"),
    ),
    Guard(
        name="a partition whose handler still runs is not handed on, even if its lease is lost",
        without_it="the next owner begins while the old call goes on",
        words="if p not in group.held | running and",
        mutated="if p not in group.held and",
    ),
    Guard(
        name="a leaving processor hands on partitions that it never started",
        without_it="a partition handed over at the last moment is read by nobody until its record"
        " expires",
        words="        transfers=_transfers(observed, listing.running, moved.hand_overs),\n",
        mutated="",
    ),
    Guard(
        name="a fenced processor writes nothing else in the cycle that finds it",
        without_it="it hands over partitions that others claim",
        words="if member.is_fenced or member.yields_because is not None:",
        mutated="if member.yields_because is not None:",
    ),
    suites=("moves", "safety", "planned"),
)

STATUS = guards_in(
    "eventproc/core/ownership/members/status.py",
    [
        "tests/unit/eventproc/core/ownership/test_cycle.py",
        "tests/unit/eventproc/ownership/test_membership.py",
    ],
    Guard(
        name="a live processor writes its member record again if another process replaced it",
        without_it="a second process takes over the owner id of a live one",
        words="return MemberStep(write=write, rival=found.incarnation)",
        mutated="return MemberStep()",
    ),
    Guard(
        name="a processor that was paused yields to one that took its owner id",
        without_it="the paused process displaces the healthy one",
        words="if (is_over and not is_trusted) or own.rivals.must_yield(",
        mutated="if own.rivals.must_yield(",
    ),
    Guard(
        name="a processor that owns nothing renews its member record",
        without_it="a processor without partitions leaves and joins the plan again and again",
        words="is_due and is_new and rules.lease_mode is not LeaseMode.SESSION",
        mutated="False",
    ),
    Guard(
        name="a new processor of another deployment begins as standby",
        without_it="a rolling deployment moves each partition nearly twice",
        words="return STANDBY if is_replacing else ACTIVE",
        mutated="return ACTIVE",
        killers=("tests/stories/test_deploys.py",),
    ),
    Guard(
        name="a standby processor takes part after standby_timeout",
        without_it="a canary never gets its share",
        words="return has_replaced or is_over or not",
        mutated="return has_replaced or not",
    ),
    Guard(
        name="session: a fenced processor drops all its partitions in its next cycle",
        without_it="it goes on with partitions that others claim",
        words="is_fenced=own.is_fenced(found)",
        mutated="is_fenced=False",
    ),
    Guard(
        name="a listing requested before the member record was written shows nothing of it",
        without_it="a session that was restored a moment ago loses all its leases again",
        words="    if asked_at_s < own.answered_at_s:\n",
        mutated="    if False:\n",
        is_simulated=False,
    ),
    Guard(
        name="only member records of processors that own nothing are deleted",
        without_it="a long-lived owner looks like one that does not hand over, and is stolen from",
        words="        if member.owner_id not in owning\n",
        mutated="        if True\n",
    ),
    suites=("edges", "safety", "planned"),
)

RIVALS = guards_in(
    "eventproc/core/ownership/members/rivals.py",
    [
        "tests/unit/eventproc/core/ownership/members/test_rivals.py",
        "tests/unit/eventproc/ownership/test_membership.py",
    ],
    Guard(
        name="of two processes with one owner id, a displaced one that returns stays",
        without_it="two processes with one owner id write over each other for ever",
        words="if other.incarnation in self.displaced or is_late:",
        mutated="if is_late:",
    ),
    Guard(
        name="a process that waited long enough for an answer keeps the owner id",
        without_it="a process that was paused claims with an owner id that another has taken over",
        words="            and present.as_of - written > answer_within + present.resolution\n",
        mutated="            and False\n",
    ),
    Guard(
        name="of two processes that write over each other's member record one yields",
        without_it="two processes with one owner id go on for ever",
        words="return is_after and write_count > OVERWRITES_MAX",
        mutated="return is_after and False",
    ),
)
