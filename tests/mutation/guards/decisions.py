"""Guards of the pure decisions: the plan, the actions that follow, and which owners live."""

from tests.mutation.guard import Guard, guards_in

EVEN = guards_in(
    "eventproc/core/placement/even.py",
    ["tests/unit/eventproc/core/placement/test_even.py", "tests/stories/test_plan_small_worlds.py"],
    Guard(
        name="an extra partition goes to an owner that holds more than the minimum, whatever its "
        "exact count",
        without_it="two owners exchange quotas while the plan is carried out, and partitions move"
        " twice",
        words="return (not holds_extra, (owner_id in foreign) != holds_extra, rank(owner_id)",
        mutated="return (not holds_extra, (owner_id in foreign) != holds_extra, "
        "-held_count_by_owner[owner_id]",
    ),
    Guard(
        name="extra partitions go first to owners that hold more than the minimum",
        without_it="more partitions move than have to",
        words="return (not holds_extra, (owner_id in foreign) != holds_extra, rank",
        mutated="return (False, False, rank",
    ),
    Guard(
        name="among owners above the minimum a foreign one gets its extra partition first, among "
        "the others last",
        suites=("liveness",),
        without_it="the plan needs a foreign owner to give up or to take a partition, which "
        "nobody can make it do",
        words="(owner_id in foreign) != holds_extra, ",
        mutated="False, ",
    ),
    suites=("moves",),
)

PLAN = guards_in(
    "eventproc/core/placement/plan.py",
    ["tests/unit/eventproc/core/placement/test_plan.py"],
    Guard(
        name="the partitions that an owner gives up are chosen by rank",
        without_it="processors that got their listings in different orders compute different plans",
        words="            held.sort(key=by_rank)\n",
        mutated="",
        killers=("tests/unit/eventproc/core/placement/test_even.py",),
        is_simulated=False,
    ),
    Guard(
        name="free partitions are assigned in the order of their rank",
        without_it="the plan depends on the order of a listing",
        words="by_order = sorted(free, key=by_rank)",
        mutated="by_order = list(free)",
        killers=("tests/unit/eventproc/core/placement/test_even.py",),
        is_simulated=False,
    ),
    Guard(
        name="a record of a partition that does not exist is no part of the plan",
        without_it="after a hub was created again with fewer partitions, its former partitions are "
        "handed over",
        words="        and state.owner_by_resource.keys() == set(state.resources)\n",
        mutated="",
        is_simulated=False,
    ),
    Guard(
        name="with capacities that are too small, a partition that was released is dealt as before",
        without_it="with RELEASE the plan changes while it is carried out",
        words="return sorted(by_order, key=lambda resource: resource not in placed)",
        mutated="return owned_last",
        is_simulated=False,
    ),
    suites=("moves",),
)

CIRCLE = guards_in(
    "eventproc/core/placement/clockwise.py",
    ["tests/unit/eventproc/core/placement/test_clockwise.py"],
    Guard(
        name="owners are placed on the hash ring in the order of their rank",
        without_it="the plan depends on the order of a listing",
        words="ordered = sorted(points, key=itemgetter(0))",
        mutated="ordered = list(points)",
        is_simulated=False,
    ),
    Guard(
        name="assigning one partition by the hash ring does not change the assignment of the "
        "others",
        without_it="the plan changes while it is carried out",
        words="index = self._circle.index(resource) if self._open_count else 0",
        mutated="index = max(range(len(self._left)), key=[*self._left.values()].__getitem__)",
    ),
    suites=("moves",),
)

BALANCE = guards_in(
    "eventproc/core/ownership/balance.py",
    ["tests/unit/eventproc/core/ownership/test_balance.py", "tests/stories/test_balance_rounds.py"],
    Guard(
        name="a processor steals at most one partition in a cycle",
        without_it="a new processor steals its whole share at once",
        words="for p in [*resumed, *orphans])",
        mutated="for p in dict.fromkeys([*resumed, *orphans, *stealable]))",
        killers=("tests/unit/eventproc/core/ownership/test_cycle.py",),
    ),
    Guard(
        name="with BALANCED a processor claims at most one partition in a cycle",
        without_it="the strategy does not do what its documentation says",
        words="orphans = sorted(orphans, key=rank)[:1]",
        mutated="orphans = sorted(orphans, key=rank)",
    ),
    Guard(
        name="with BALANCED a processor that claims does not steal in the same cycle",
        without_it="the strategy does not do what its documentation says",
        words="stealable = [] if orphans else stealable",
        mutated="pass",
    ),
    Guard(
        name="an owner that hands over is not stolen from before handoff_timeout",
        without_it="a planned move delivers events twice",
        words="return not lets_go or (partition_id, owner_id) in group.late",
        mutated="return True",
    ),
    Guard(
        name="nothing is claimed until a changed membership was the same in two polls",
        without_it="processors that start together claim each other's share, and partitions move "
        "again",
        words="    if group.is_unsure:\n",
        mutated="    if False:\n",
    ),
    Guard(
        name="a hand-over that has begun goes on while the membership is not stable",
        suites=("planned", "moves"),
        without_it="a partition that was drained for another owner is started again",
        words="{p: to for p, to in hand_overs.items() if p in begun}",
        mutated="{}",
    ),
    Guard(
        name="a partition that is not handed over within handoff_timeout is stolen",
        suites=("liveness",),
        without_it="an owner that hangs keeps its surplus for ever",
        words=" or (partition_id, owner_id) in group.late",
        mutated="",
    ),
    Guard(
        name="a processor never steals from itself",
        without_it="a processor steals a partition from its own pump",
        words="""if owner_id is None or owner_id == group.owner_id:
        return False""",
        mutated="""if owner_id is None:
        return False""",
    ),
    Guard(
        name="a partition is handed over only to an owner that will notice it",
        suites=("liveness",),
        without_it="a partition is read by nobody until a processor of an Azure SDK happens to "
        "poll",
        words="        and group.standing_by_owner[target].follows_plan\n",
        mutated="",
    ),
    Guard(
        name="a processor that leaves hands over only to a member that is known to live",
        suites=("liveness",),
        without_it="after an outage of the store a partition waits until the lease of a dead "
        "member expires",
        words="None if to in group.presumed_live else to for p, to in targets.items()",
        mutated="to for p, to in targets.items()",
        killers=("tests/unit/eventproc/core/ownership/test_memory.py",),
    ),
    Guard(
        name="a partition that a foreign owner does not claim is reassigned to other members",
        suites=("liveness",),
        without_it="a partition is never read",
        words="planned |= _reassigned(group, frozenset(p for p, owner in waits & group.late))",
        mutated="pass",
        killers=("tests/unit/eventproc/core/ownership/test_unclaimed.py",),
    ),
    Guard(
        name="a partition recorded under the own id is claimed, even if the plan gives it to a "
        "foreign owner",
        suites=("liveness",),
        without_it="after a restart the partition is read by nobody until its record expires",
        words=" or (p in shared.unclaimed and live.get(p) == me)",
        mutated="",
        killers=("tests/unit/eventproc/core/ownership/test_unclaimed.py",),
    ),
    Guard(
        name="only the unclaimed share of a foreign owner is reassigned",
        suites=("liveness",),
        without_it="partitions are handed again and again to a dead owner, whose records "
        "therefore never expire",
        words="frozenset(p for p, owner in waits & group.late)",
        mutated="frozenset(p for p, owner in group.late)",
        killers=("tests/unit/eventproc/core/ownership/test_unclaimed.py",),
    ),
    suites=("moves", "safety", "liveness"),
)

STANDBY = guards_in(
    "eventproc/core/ownership/members/standby.py",
    ["tests/unit/eventproc/core/ownership/members/test_standby.py"],
    Guard(
        name="new processors of another deployment wait until one of the old ones leaves",
        without_it="a rolling deployment moves each partition nearly twice",
        words="    if not idle or not stayer_count:\n",
        mutated="    if True:\n",
    ),
    Guard(
        name="a standby processor that owns a partition takes part in the plan",
        without_it="one standby processor after another fills the same vacancy",
        words="idle = {standby for standby in standbys if not held_count[standby]}",
        mutated="idle = set(standbys)",
    ),
    Guard(
        name="standby processors take part if there is no processor that they could replace",
        without_it="a group of standby processors serves nothing",
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
    "eventproc/core/ownership/lease.py",
    ["tests/unit/eventproc/core/ownership/test_lease.py"],
    Guard(
        name="an owner stops delivering some time before its lease expires",
        without_it="if clocks run at different rates, two owners deliver at once",
        words="TRUST_FRACTION: Final = 0.9",
        mutated="TRUST_FRACTION: Final = 1.0",
    ),
    suites=("edges", "moves", "safety"),
)

LIVENESS = guards_in(
    "eventproc/core/ownership/liveness.py",
    [
        "tests/unit/eventproc/core/ownership/test_liveness.py",
        "tests/unit/eventproc/core/ownership/test_cycle.py",
    ],
    Guard(
        name="a record expires later by the resolution of the store's times",
        without_it="a live owner counts as dead up to a second early",
        words="oldest = owned.as_of - expiration - owned.resolution",
        mutated="oldest = owned.as_of - expiration",
        is_simulated=False,
    ),
    Guard(
        name="an expired member record of a processor that owns nothing does not count",
        without_it="a dead processor gets a share, which nobody serves",
        words="(member.owner_id in owning or is_fresh(member, present, expiration))",
        mutated="True",
    ),
    Guard(
        name="a processor that owns a partition is a member, however old its member record",
        without_it="a long-lived owner loses its partitions, because its member record seems "
        "expired",
        words="member.owner_id in owning or is_fresh",
        mutated="is_fresh",
    ),
    suites=("edges", "moves", "safety"),
)
