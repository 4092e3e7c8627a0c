"""Guards of session mode: what keeps all leases of a processor alive, and what that says."""

from tests.mutation.guard import Guard, guards_in

SESSION_LEASES = guards_in(
    "eventproc/ownership/leases.py",
    ["tests/unit/eventproc/ownership/test_leases.py", "tests/stories/test_lease_doubts.py"],
    Guard(
        name="session: a look counts from when it was asked for",
        without_it="who was robbed while a slow answer came acts on for longer than it may",
        words="        self._compared_at_s = asked_at_s\n",
        mutated="        self._compared_at_s = self._clock()\n",
    ),
    suites=("edges", "safety"),
)

SESSION_LOOK = guards_in(
    "eventproc/ownership/balancer.py",
    ["tests/stories/test_session_silence.py"],
    Guard(
        name="session: the time of a look is read before it is asked for",
        without_it="who was robbed while a slow answer came acts on for longer than it may",
        words="""        asked_at_s = self._clock()
        owned = await self._store.list_ownership(self._group)
""",
        mutated="""        owned = await self._store.list_ownership(self._group)
        asked_at_s = self._clock()
""",
    ),
    Guard(
        name="session: in the grace after an outage nobody is declared dead",
        without_it="the first to see the store again robs everybody who could not renew either",
        words="            if not self._is_grace(now_s):\n",
        mutated="            if True:\n",
        killers=("tests/stories/test_session_polls.py",),
    ),
    suites=("edges", "safety"),
)

SESSION_PRESENCE = guards_in(
    "eventproc/ownership/membership.py",
    [
        "tests/unit/eventproc/ownership/test_membership.py",
        "tests/stories/test_session_membership.py",
    ],
    Guard(
        name="session: a renewal counts from before it was sent",
        without_it="who is declared dead meanwhile acts on beside the one that takes over",
        words="        self._sent_at_s = sent_at_s\n",
        mutated="        self._sent_at_s = self._clock()\n",
    ),
    Guard(
        name="session: who has withdrawn is not brought back by a late renewal",
        without_it="a processor that is gone seems to be there, and its share is served by nobody",
        words="if self._is_withdrawn or (mine and mine.incarnation != self._member.incarnation):",
        mutated="if mine and mine.incarnation != self._member.incarnation:",
    ),
    suites=("edges", "safety"),
)

SESSIONS = guards_in(
    "eventproc/core/session_lease.py",
    [
        "tests/unit/eventproc/core/test_session_lease.py",
        "tests/unit/eventproc/ownership/test_session_mode.py",
    ],
    Guard(
        name="session: nobody is dead until it was declared",
        without_it="a taker and a renewal that was under way both succeed",
        words="is_live = member.status is not MemberStatus.DEAD",
        mutated="is_live = is_alive(member, snapshot, expiration)",
    ),
    Guard(
        name="session: an owner without a presence record is watched for an expiration",
        without_it="who lost its presence record by a hand's mistake is robbed",
        words="                or absent_s <= expiration.total_seconds()\n",
        mutated="",
    ),
    Guard(
        name="session: if the first does not declare a death, everybody has to",
        without_it="a duty of one that hangs leaves the dead one's partitions unread",
        words="(is_first or _is_overdue(member, present.as_of, expiration))",
        mutated="is_first",
    ),
    Guard(
        name="session: what the dead wrote since may seem older than its declaration",
        without_it="who just claimed a partition under its new session is robbed of it",
        words="ownership.last_modified + snapshot.resolution < dead.last_modified",
        mutated="ownership.last_modified < dead.last_modified",
        is_simulated=False,
    ),
    suites=("edges", "safety"),
)

SESSION_GROUP = guards_in(
    "eventproc/ownership/session_mode.py",
    ["tests/unit/eventproc/ownership/test_session_mode.py"],
    Guard(
        name="session: ownership is read now and then, though nobody came or went",
        without_it="who was robbed never learns it",
        words="now_s - last.at_s <= self._full_poll_interval_s",
        mutated="now_s >= last.at_s",
    ),
    Guard(
        name="session: while a stranger is there each record is renewed",
        without_it="a processor of another SDK takes everything",
        words="        return self._has_foreign_members\n",
        mutated="        return False\n",
        is_simulated=False,
    ),
    Guard(
        name="session: a group has one lease mode",
        without_it="processors that judge each other by different records take each other's",
        words="    if others:\n",
        mutated="    if False:\n",
        is_simulated=False,
    ),
    suites=("edges", "safety"),
)
