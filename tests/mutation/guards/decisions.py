"""Guards of the pure decisions: the plan, a processor's lines of it, and who counts as alive."""

from tests.mutation.guard import Guard, guards_in

PLAN = guards_in(
    "eventproc/core/plan.py",
    ["tests/unit/eventproc/core/test_plan.py", "tests/stories/test_plan_small_worlds.py"],
    Guard(
        name="an extra place goes by who holds more than the minimum, never by exact counts",
        without_it="two owners swap quotas while they carry the plan out: partitions move twice",
        words="return (not holds_extra, (owner_id in foreign) != holds_extra, rank(owner_id)",
        mutated="return (not holds_extra, (owner_id in foreign) != holds_extra, "
        "-held_count_by_owner[owner_id]",
    ),
    Guard(
        name="extra places go first to who holds more than the minimum",
        without_it="more partitions move than must",
        words="return (not holds_extra, (owner_id in foreign) != holds_extra, rank",
        mutated="return (False, False, rank",
    ),
    Guard(
        name="among holders of extras a foreign owner comes first, among the others last",
        suites=("liveness",),
        without_it="the plan wants what nobody can make a foreign owner do",
        words="(owner_id in foreign) != holds_extra, ",
        mutated="False, ",
    ),
    Guard(
        name="surplus is chosen by rank",
        without_it="two processors that got their listings in other orders plan differently",
        words="            held.sort(key=_precedence)\n",
        mutated="",
        is_simulated=False,
    ),
    Guard(
        name="free partitions are dealt by rank",
        without_it="the plan changes with the order of a listing",
        words="for partition_id in sorted(free, key=_precedence):",
        mutated="for partition_id in free:",
        is_simulated=False,
    ),
    Guard(
        name="owners stand on the ring by rank",
        without_it="the plan changes with the order of a listing",
        words="if count > 0), key=_precedence)",
        mutated="if count > 0))",
        is_simulated=False,
    ),
    Guard(
        name="a record of no partition does not hide one that nobody owns",
        without_it="where a hub was made anew with fewer partitions, one of them lies unread",
        words="        and owner_by_partition.keys() == set(partition_ids)\n",
        mutated="",
        is_simulated=False,
    ),
    Guard(
        name="the ring: a place and the partition that filled it leave the rest as it was",
        without_it="the plan changes while it is carried out",
        words="bisect_left(points, rank(partition_id)) % len(ring)",
        mutated="max(range(len(ring)), key=left.__getitem__)",
    ),
    suites=("moves",),
)

BALANCE = guards_in(
    "eventproc/core/balance.py",
    ["tests/unit/eventproc/core/test_balance.py", "tests/stories/test_balance_rounds.py"],
    Guard(
        name="one steal in each cycle",
        without_it="a newcomer robs everybody at once",
        words="for p in [*resumed, *orphans])",
        mutated="for p in dict.fromkeys([*resumed, *orphans, *stealable]))",
    ),
    Guard(
        name="BALANCED: one claim in each cycle",
        without_it="the strategy is not what its document says",
        words="orphans = sorted(orphans, key=rank)[:1]",
        mutated="orphans = sorted(orphans, key=rank)",
    ),
    Guard(
        name="BALANCED: a claim or a steal, not both",
        without_it="the strategy is not what its document says",
        words="stealable = [] if orphans else stealable",
        mutated="pass",
    ),
    Guard(
        name="who hands over is not robbed in time",
        without_it="a planned move costs duplicates",
        words="return not lets_go or partition_id in view.overdue",
        mutated="return True",
    ),
    Guard(
        name="who leaves is not robbed in time",
        suites=("planned", "moves", "safety"),
        without_it="what a leaver still serves is taken away under its hands",
        words=" or owner_id in view.leaving",
        mutated="",
    ),
    Guard(
        name="settling: a new membership is acted upon when it was seen twice",
        without_it="processors that start together claim what others claim, and move it again",
        words="    if view.is_unstable:\n",
        mutated="    if False:\n",
    ),
    Guard(
        name="settling ends, even where members change all the time",
        suites=("liveness", "safety"),
        without_it="in a group that flaps nobody serves what is free",
        words="return is_new and now_s - self.unstable_since_s < wait_max_s",
        mutated="return is_new",
    ),
    Guard(
        name="a hand-over that has begun goes on while the membership settles",
        suites=("planned", "moves"),
        without_it="a partition that was drained for another is started again",
        words="{p: to for p, to in hand_overs.items() if p in view.handing_over}",
        mutated="{}",
    ),
    Guard(
        name="who does not hand over in time is robbed",
        suites=("liveness",),
        without_it="an owner that hangs keeps its surplus for ever",
        words=" or partition_id in view.overdue",
        mutated="",
    ),
    Guard(
        name="never from oneself",
        without_it="a processor takes its own partition away from its own pump",
        words="""if owner_id is None or owner_id == view.owner_id:
        return False""",
        mutated="""if owner_id is None:
        return False""",
    ),
    Guard(
        name="a hand-over goes only to who takes it up",
        suites=("liveness",),
        without_it="a partition lies unread until an owner of another SDK happens to look",
        words="        and (target in view.cooperative or target in view.present)\n",
        mutated="",
    ),
    Guard(
        name="what a foreign owner does not come for is taken by others",
        suites=("liveness",),
        without_it="a partition stays unread for ever",
        words="planned |= _reassigned(view, waiting)",
        mutated="pass",
        killers=("tests/unit/eventproc/core/test_unclaimed.py",),
    ),
    Guard(
        name="what stands in one's name is taken up, though a foreign owner shall have it",
        suites=("liveness",),
        without_it="after a restart a partition lies unread until its record expires",
        words=" or (p in waiting and live.get(p) == me)",
        mutated="",
        killers=("tests/unit/eventproc/core/test_unclaimed.py",),
    ),
    Guard(
        name="only a foreign owner's share is taken by others",
        suites=("liveness",),
        without_it="a dead owner is handed its share again and again, and never counts as dead",
        words="unclaimed = waiting & view.unclaimed",
        mutated="unclaimed = view.unclaimed",
        killers=("tests/unit/eventproc/core/test_unclaimed.py",),
    ),
    Guard(
        name="patience counts from when a partition was first due",
        suites=("liveness",),
        without_it="an owner that hangs is never overdue",
        words="(p, keeper): known.get((p, keeper), now_s)",
        mutated="(p, keeper): now_s",
    ),
    suites=("moves", "safety", "liveness"),
)

STANDBY = guards_in(
    "eventproc/core/standby.py",
    ["tests/unit/eventproc/core/test_standby.py"],
    Guard(
        name="newcomers of another generation wait for a vacancy",
        without_it="a rolling deploy moves each partition nearly twice",
        words="    if not idle or not stayer_count:\n",
        mutated="    if True:\n",
    ),
    Guard(
        name="a reserve that holds something takes part",
        without_it="a vacancy is filled by one reserve after another",
        words="idle = {standby for standby in standbys if not held_count[standby]}",
        mutated="idle = set(standbys)",
    ),
    Guard(
        name="where nobody stays who could be replaced, all reserves take part",
        without_it="a group of reserves serves nothing",
        words="""if not idle or not stayer_count:
        return frozenset(members)""",
        mutated="""if not idle:
        return frozenset(members)
    if not stayer_count:
        return frozenset(members) - idle""",
    ),
    suites=("moves", "liveness"),
)

LEASE = guards_in(
    "eventproc/core/lease.py",
    ["tests/unit/eventproc/core/test_lease.py"],
    Guard(
        name="an owner stops a margin before its lease expires",
        without_it="with clocks that run at other rates, two act at once",
        words="TRUST_FRACTION: Final = 0.9",
        mutated="TRUST_FRACTION: Final = 1.0",
    ),
    Guard(
        name="a record lives longer by the resolution of the store's times",
        without_it="a live owner is called dead up to a second early",
        words="oldest = snapshot.as_of - expiration - snapshot.resolution",
        mutated="oldest = snapshot.as_of - expiration",
        is_simulated=False,
    ),
    Guard(
        name="after an outage nobody is dead",
        without_it="the first to see the store again takes everything",
        words="""    if is_after_outage:
        live = owned
    elif""",
        mutated="    if",
    ),
    Guard(
        name="a store without a clock: only an unchanged record grows old",
        without_it="an owner that renews is called dead",
        words="known is not None and known.etag == ownership.etag",
        mutated="known is not None",
        is_simulated=False,
    ),
    Guard(
        name="a stale presence record of who owns nothing does not count",
        without_it="the dead get a share, which nobody serves",
        words="            or as_of is None\n",
        mutated="            or True\n",
    ),
    Guard(
        name="who owns something is present, however old its presence record",
        without_it="a long-lived owner is robbed, for its presence record seems dead",
        words="""            member.owner_id in owning
            or as_of is None
""",
        mutated="            as_of is None\n",
    ),
    suites=("edges", "moves", "safety"),
)
