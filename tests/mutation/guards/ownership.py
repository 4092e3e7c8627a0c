"""Guards of leases, member records and the load-balancing cycle."""

from tests.mutation.guard import Guard, guards_in

LEASES = guards_in(
    "eventproc/ownership/leases.py",
    ["tests/unit/eventproc/ownership/test_leases.py"],
    Guard(
        name="session: a lease is trusted for one expiration after its record was last read",
        without_it="a processor whose partition was stolen, and which cannot read, acts as long "
        "as its session lives",
        words="return min(trusted_until_s(seen_at_s, self._expiration), by_session_s)",
        mutated="return by_session_s",
        killers=("tests/stories/test_session_silence.py",),
    ),
    Guard(
        name="a claimed lease counts from before the claim was sent",
        without_it="after a slow answer, a lease that has already expired is trusted",
        words="""            results = await self.write(claims)
            for result""",
        mutated="""            results = await self.write(claims)
            sent_at_s = self._clock()
            for result""",
    ),
    Guard(
        name="a renewed lease counts from before the renewal was sent",
        without_it="after a slow answer, a lease that has already expired is trusted",
        words="""        results = await self.write(claims)
        if generation""",
        mutated="""        results = await self.write(claims)
        sent_at_s = self._clock()
        if generation""",
    ),
    Guard(
        name="a renewal with an unknown outcome does not count as won",
        without_it="an owner whose record was not renewed goes on acting",
        words="replace(lease, is_doubtful=True)\n        self._renewal_failure",
        mutated="replace(lease, sent_at_s=sent_at_s)\n        self._renewal_failure",
    ),
    Guard(
        name="a claim with an unknown outcome does not count as won",
        without_it="two processors believe that they own a partition",
        words="""            self.conflict_count +=""",
        mutated="""            for result in results:
                if result.outcome is WriteOutcome.UNKNOWN:
                    self._lease_by_partition[result.claim.partition_id] = Lease(
                        partition_id=result.claim.partition_id,
                        etag=result.claim.expected_etag or "",
                        sent_at_s=sent_at_s,
                        answered_at_s=self._clock(),
                    )
            self.conflict_count +=""",
    ),
    Guard(
        name="a lost renewal after an unknown one is compared with the record",
        without_it="a lost answer costs a partition",
        words="still_ours = await self._resolve_doubtful([p for p in lost if p in doubtful])",
        mutated="still_ours = set[str]()",
    ),
    Guard(
        name="a record that another process with the same owner id may have written does not "
        "count as renewed",
        without_it="two processes with one owner id both take a record for their own",
        words="""                return set()
        except StoreError:""",
        mutated="""                pass
        except StoreError:""",
    ),
    Guard(
        name="a lease in doubt is confirmed by a renewal before it is used again",
        without_it="a lease is trusted on the word of a listing alone",
        words="""        results = await self._renew_once(renewed)
        return {r.claim.partition_id for r in results if r.outcome is not WriteOutcome.LOST}""",
        mutated="""        return set(partition_ids)""",
    ),
    Guard(
        name="an answer that arrives after all leases were dropped is ignored",
        without_it="a fenced processor goes on with a lease that another has claimed",
        words="if result.outcome is WriteOutcome.WON and generation == self._generation:",
        mutated="if result.outcome is WriteOutcome.WON:",
    ),
    Guard(
        name="verification fails while a lease is in doubt",
        without_it="a former owner writes over its successor's checkpoint",
        words="""if lease is not None and lease.is_doubtful:
            raise StoreError""",
        mutated="""if lease is not None and lease.is_doubtful and not partition_id:
            raise StoreError""",
    ),
    Guard(
        name="a lease that a listing contradicts is verified by a renewal",
        without_it="a processor whose partition was stolen notices it only at its next renewal",
        words="""        if doubted:
            await self._renew(doubted, stored)
""",
        mutated="",
    ),
    Guard(
        name="a lease ends before its partition is handed over",
        without_it="the former owner still trusts its lease when the new one begins",
        words="""lease = self._lease_by_partition.pop(partition_id, None)
            if lease is None:""",
        mutated="""lease = self._lease_by_partition.get(partition_id)
            if lease is None:""",
    ),
    Guard(
        name="a hand-over with an unknown outcome is verified",
        without_it="a stopped processor remains in an ownership record until that expires",
        words="if is_unclear or result.outcome is WriteOutcome.UNKNOWN:",
        mutated="if is_unclear and False:",
    ),
    Guard(
        name="a hand-over is repeated only if no other process has this owner id",
        without_it="a suspended process that stops releases a partition of its successor",
        words="return ownership if await self._membership.is_sole_holder() else None",
        mutated="return ownership",
    ),
    Guard(
        name="a lost lease ends its pump at once",
        without_it="a handler goes on until its lease would have expired",
        words="                    self._on_lost(partition_id)\n",
        mutated="                    pass\n",
    ),
    suites=("edges", "safety"),
)

PARTITION_LOCKS = guards_in(
    "eventproc/concurrency/partition_locks.py",
    ["tests/unit/eventproc/ownership/test_leases.py"],
    Guard(
        name="there is one ownership write at a time for a partition",
        without_it="a second write does not know the ETag of the first, and a lease is lost "
        "without a rival",
        words="await self._written.wait_for(lambda: not wanted & self._writing)",
        mutated="pass",
    ),
    suites=("edges", "safety"),
)

LEAVING = guards_in(
    "eventproc/ownership/balancer.py",
    ["tests/stories/test_leaving.py"],
    Guard(
        name="a partition handed to a processor that is about to leave is released",
        without_it="it is read by nobody until its record expires",
        words="            await self.leases.write(actions.transfers)\n",
        mutated="            pass\n",
    ),
    Guard(
        name="a leaving processor releases nothing if another process has its owner id",
        without_it="a restarted processor loses partitions that it has just claimed",
        words="if actions.transfers and await self.membership.is_sole_holder():",
        mutated="if actions.transfers:",
        killers=("tests/unit/eventproc/ownership/test_balancer.py",),
    ),
    Guard(
        name="a processor that was replaced between its two listings claims nothing",
        without_it="a suspended process takes partitions from its successor when it is resumed",
        words="if may_claim and actions.is_resuming:",
        mutated="if may_claim and False:",
        killers=("tests/unit/eventproc/ownership/test_balancer.py",),
    ),
    suites=("safety", "liveness", "planned"),
)

STOP = guards_in(
    "eventproc/runtime/run.py",
    ["tests/stories/test_leaving.py"],
    Guard(
        name="the member record stays while a partition could not be released",
        without_it="the leaver looks like an owner that does not hand over, and is stolen from at"
        " once",
        words="            if actions and actions.is_balanced:\n",
        mutated="            if actions:\n",
    ),
    suites=("safety", "liveness", "planned"),
)

BALANCER = guards_in(
    "eventproc/ownership/balancer.py",
    ["tests/unit/eventproc/ownership/test_balancer.py"],
    Guard(
        name="nothing is claimed after a refused write of a member record",
        without_it="a partition is claimed whose owner has renewed its session",
        words="results = await self._claim(actions) if may_claim else []",
        mutated="results = await self._claim(actions)",
    ),
    Guard(
        name="nothing is claimed if a silent member renewed before it was fenced",
        without_it="a partition has two owners: the former one's session never ended",
        words="may_claim, actions = False, unfenced(actions, self._memory)",
        mutated="actions = unfenced(actions, self._memory)",
    ),
    Guard(
        name="nothing is handed over if a silent member renewed before it was fenced",
        without_it="a late renewal of one member moves partitions of two others",
        words="may_claim, actions = False, unfenced(actions, self._memory)",
        mutated="may_claim = False",
    ),
    suites=("moves", "safety", "planned"),
)

MEMBERSHIP = guards_in(
    "eventproc/ownership/membership.py",
    ["tests/unit/eventproc/ownership/test_membership.py"],
    Guard(
        name="the member record is written before the first plan",
        without_it="a new processor plans with itself while no other counts it",
        words="""        for number in range(ATTEMPTS_MAX):
            present""",
        mutated="""        return False
        for number in range(ATTEMPTS_MAX):
            present""",
    ),
    Guard(
        name="a start that failed leaves the member record of an owner id that another process had",
        without_it="the others do not count a live processor until it writes its record back",
        words="        if self._is_first:\n",
        mutated="        if True:\n",
    ),
    Guard(
        name="a processor that finds a live member with its owner id waits for an answer",
        without_it="two live processes with one owner id serve one partition",
        words="""        if not is_taken:
            return
""",
        mutated="        return\n",
    ),
    Guard(
        name="a repeated first write remembers that the owner id was in use",
        without_it="a lost answer hides a live process with the same owner id, and two use it",
        words="is_taken = is_taken or is_contested(",
        mutated="is_taken = is_contested(",
    ),
    Guard(
        name="the wait for an answer begins when the new member record is written",
        without_it="the answer of a live process comes in time but is ignored, and two use one "
        "owner id",
        words="until_s = self._clock() + answer_within.total_seconds()\n",
        mutated="until_s = self.own.entered_at_s + answer_within.total_seconds()\n",
    ),
    Guard(
        name="a starting processor decides by a listing requested after the wait",
        without_it="a slow listing misses an answer that came in time, and two processes use one "
        "owner id",
        words="            if asked_at_s >= until_s:\n",
        mutated="            if self._clock() >= until_s:\n",
    ),
    Guard(
        name="session: after its session lapsed, a processor reads each record before it trusts it",
        without_it="it acts on a partition whose record was deleted and then claimed by another",
        words="            self.on_lapsed()\n",
        mutated="            pass\n",
        killers=("tests/stories/test_session_silence.py",),
    ),
    Guard(
        name="session: a fenced processor drops all its partitions",
        without_it="it goes on with partitions that others claim",
        words="if self.own.is_fenced(mine):",
        mutated="if False:",
        killers=("tests/stories/test_session_membership.py",),
    ),
    suites=("edges", "safety", "planned"),
)

REFUSAL = guards_in(
    "eventproc/ownership/membership.py",
    ["tests/stories/test_placement_changes.py"],
    Guard(
        name="a processor that cannot join the group is refused before it writes its record",
        without_it="a processor that is started again and again gets partitions each time",
        words="                check(owned, present)\n",
        mutated="                pass\n",
        is_simulated=False,
    ),
)

RUN = guards_in(
    "eventproc/runtime/run.py",
    ["tests/stories/test_deploys.py", "tests/stories/test_leaving.py"],
    Guard(
        name="a stopping processor writes the status leaving",
        without_it="it is given new partitions until it is gone",
        words="        await self._try_until(\n            self._announced_by_s(), "
        "self._membership.change_to(MemberStatus.LEAVING)\n        )\n",
        mutated="",
    ),
    Guard(
        name="a processor with static membership writes the status restarting",
        without_it="its restart waits for an answer of its predecessor, as if that were alive",
        words="await self._try_until(until_s, self._membership.change_to(MemberStatus.RESTARTING))",
        mutated="pass",
    ),
    suites=("edges", "safety", "planned"),
)

LEASE = guards_in(
    "eventproc/core/ownership/lease.py",
    ["tests/unit/eventproc/ownership/test_leases.py"],
    Guard(
        name="a record with the own owner id and another ETag contradicts the lease",
        without_it="a position that an operator moved is written over",
        words="return not self.is_doubtful and stored.etag != self.etag",
        mutated="return False",
        killers=("tests/unit/eventproc/test_admin.py",),
    ),
    Guard(
        name="a deleted record contradicts the lease",
        without_it="its owner delivers until its next renewal, while another one may have claimed "
        "the partition",
        words="        if stored is None or stored.owner_id != me:",
        mutated="        if stored is None:\n            return False\n"
        "        if stored.owner_id != me:",
        killers=("tests/stories/test_lease_doubts.py",),
    ),
    Guard(
        name="beside an Azure SDK a record is renewed sooner",
        without_it="its processors take a live owner for dead",
        words="    if has_foreign:",
        mutated="    if False:",
        killers=("tests/stories/test_foreign_renewals.py",),
    ),
    Guard(
        name="a listing requested before the lease was confirmed does not contradict it",
        without_it="each claim is written twice",
        words="if self.answered_at_s > asked_at_s:",
        mutated="if False:",
    ),
    suites=("edges", "safety"),
)
