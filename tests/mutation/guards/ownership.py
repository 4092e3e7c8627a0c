"""Guards of leases and of the look at the group."""

from tests.mutation.guard import Guard, guards_in

LEASES = guards_in(
    "eventproc/ownership/leases.py",
    ["tests/unit/eventproc/ownership/test_leases.py"],
    Guard(
        name="session: a lease is trusted no longer than its record was looked at",
        without_it="who was robbed and cannot look acts on, for as long as its session lives",
        words="return min(trusted_until_s(seen_at_s, self._expiration), by_session_s)",
        mutated="return by_session_s",
        killers=("tests/stories/test_session_silence.py",),
    ),
    Guard(
        name="a claim's lease counts from before it was sent",
        without_it="an answer that was long under way makes a lease that has expired already",
        words="""            results = await self._write(claims)
            for result""",
        mutated="""            results = await self._write(claims)
            sent_at_s = self._clock()
            for result""",
    ),
    Guard(
        name="a renewal counts from before it was sent",
        without_it="an answer that was long under way makes a lease that has expired already",
        words="""        results = await self._write(claims)
        if epoch""",
        mutated="""        results = await self._write(claims)
        sent_at_s = self._clock()
        if epoch""",
    ),
    Guard(
        name="an unknown renewal is not taken for won",
        without_it="an owner that nobody renewed goes on acting",
        words="replace(lease, is_doubtful=True)\n        self._note_failure",
        mutated="replace(lease, sent_at_s=sent_at_s)\n        self._note_failure",
    ),
    Guard(
        name="an unknown claim is not taken for won",
        without_it="two processors believe to own a partition",
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
        name="a refused renewal may have met one's own earlier write",
        without_it="a lost answer costs a partition",
        words="still_ours = await self._resolve_doubtful([p for p in lost if p in doubtful])",
        mutated="still_ours = set[str]()",
    ),
    Guard(
        name="what a namesake may have written is no renewal of one's own",
        without_it="two processors with one name both take a record for their own",
        words="""                return set()
        except StoreError:""",
        mutated="""                pass
        except StoreError:""",
    ),
    Guard(
        name="what is taken up again after doubt is proven by a renewal",
        without_it="a lease is trusted that only a listing vouches for",
        words="""        results = await self._renew_once(renewed)
        return {r.claim.partition_id for r in results if r.outcome is not WriteOutcome.LOST}""",
        mutated="""        return set(partition_ids)""",
    ),
    Guard(
        name="what was being written when all was declared lost counts as little",
        without_it="who was declared dead goes on with a lease that somebody took over",
        words="if result.outcome is WriteOutcome.WON and epoch == self._epoch:",
        mutated="if result.outcome is WriteOutcome.WON:",
    ),
    Guard(
        name="an operator's touch is seen: another etag under one's own name",
        without_it="a position that an operator moved is written over",
        words="return lease.is_doubtful or ownership.etag == lease.etag",
        mutated="return True",
        killers=("tests/unit/eventproc/test_admin.py",),
    ),
    Guard(
        name="nobody knows is not yes: verification fails while a lease is in doubt",
        without_it="a former owner writes over its successor's checkpoint",
        words="""if lease is not None and lease.is_doubtful:
            raise StoreError""",
        mutated="""if lease is not None and lease.is_doubtful and not partition_id:
            raise StoreError""",
    ),
    Guard(
        name="a listing that contradicts a lease is looked into",
        without_it="who was robbed learns it only at its next renewal",
        words="""        if suspect:
            await self._renew(suspect, stored)
""",
        mutated="",
    ),
    Guard(
        name="a listing asked for before the lease was confirmed contradicts nothing",
        without_it="each claim is written twice",
        words="if lease.answered_at_s <= asked_at_s and not",
        mutated="if not",
    ),
    Guard(
        name="a lease ends before it is given away",
        without_it="the giver still trusts its lease while the taker begins",
        words="""lease = self._lease_by_partition.pop(partition_id, None)
            if lease is None:""",
        mutated="""lease = self._lease_by_partition.get(partition_id)
            if lease is None:""",
    ),
    Guard(
        name="an unclear gift is looked into",
        without_it="who stopped still stands in a record, until that expires",
        words="if is_unclear or result.outcome is WriteOutcome.UNKNOWN:",
        mutated="if is_unclear and False:",
    ),
    Guard(
        name="a lost lease is told to its pump",
        without_it="a handler goes on until its lease would have expired",
        words="                    self._on_lost(partition_id)\n",
        mutated="                    pass\n",
    ),
    suites=("edges", "safety"),
)

TURNS = guards_in(
    "eventproc/concurrency/turns.py",
    ["tests/unit/eventproc/ownership/test_leases.py"],
    Guard(
        name="one write at a time for a partition",
        without_it="a second write meets the first one's etag: a lease is lost to nobody",
        words="await self._written.wait_for(lambda: not wanted & self._writing)",
        mutated="pass",
    ),
    suites=("edges", "safety"),
)

PARTING = guards_in(
    "eventproc/ownership/leases.py",
    ["tests/stories/test_leaving.py"],
    Guard(
        name="what comes to a leaver at its last moment is released",
        without_it="a gift that came too late lies unread until it expires",
        words="results = await self._write(idle) if idle else []",
        mutated="results: list[ClaimResult] = []",
    ),
    Guard(
        name="a leaver releases nothing of who came under its name",
        without_it="a restarted processor loses what it just took up",
        words="if idle and self._is_sole_holder is not None and not await self._is_sole_holder():",
        mutated="if False:",
    ),
    Guard(
        name="what a handler is at work on is not released at the end",
        without_it="the next owner begins beside a call that did not end",
        words="            if o.partition_id not in running\n",
        mutated="",
    ),
    Guard(
        name="who leaves a handler behind is still seen to leave",
        without_it="it looks like an owner that does not let go, and is robbed at once",
        words="return is_clear and len(idle) == len(mine)",
        mutated="return is_clear",
    ),
    suites=("safety", "liveness", "planned"),
)

BALANCER = guards_in(
    "eventproc/ownership/balancer.py",
    ["tests/unit/eventproc/ownership/test_balancer.py"],
    Guard(
        name="who leaves claims nothing any more",
        without_it="a look under way at the farewell wins partitions that nobody serves",
        words="""        if self._is_leaving:
            acquisitions = []
""",
        mutated="",
    ),
    Guard(
        name="what I hold is mine, whatever an old listing says",
        without_it="a stale listing makes a processor claim what it holds",
        words="        live.update(dict.fromkeys(held, self._owner_id))\n",
        mutated="",
    ),
    Guard(
        name="what is being handed over counts as held",
        without_it="a partition whose lease lapsed while it drains is claimed a second time",
        words="self._leases.held | frozenset(busy)",
        mutated="self._leases.held",
    ),
    Guard(
        name="who leaves is no member",
        without_it="a leaver is given new partitions",
        words="            owner_ids - leaving,\n",
        mutated="            everybody,\n",
    ),
    Guard(
        name="a silence of the store is noticed",
        without_it="after an outage the first to look takes everything",
        words="if now_s - self._read_at_s > outage_s.total_seconds():",
        mutated="if now_s < self._read_at_s:",
    ),
    Guard(
        name="after a silence everybody has all its time to hand over",
        without_it="who just got a partition is robbed, for it had it before the silence, too",
        words="                self._due_since_s, self._awaiting_since_s = {}, {}\n",
        mutated="",
    ),
    Guard(
        name="what a handler is at work on is not given on, though its lease is lost",
        without_it="the next owner begins beside a call that goes on",
        words="view.held.union(running)",
        mutated="view.held",
    ),
    Guard(
        name="what was never taken up is given on at a farewell",
        without_it="a gift that came in the last moment lies unread until it expires",
        words="""            await self._transfer_unstarted(targets, view, running)
            return""",
        mutated="            return",
    ),
    suites=("moves", "safety", "planned"),
)

CONTEST = guards_in(
    "eventproc/ownership/duplicate_owner.py",
    ["tests/unit/eventproc/ownership/test_membership.py"],
    Guard(
        name="who was displaced and comes back stays",
        without_it="two holders of one name go on writing over each other",
        words="""        if other.incarnation in self._displaced:
            return True
""",
        mutated="",
    ),
    Guard(
        name="whoever was not answered in time is in",
        without_it="a holder that was paused claims a name that has gone to another",
        words="""            and as_of - written > answer_within + present.resolution
""",
        mutated="            and False\n",
    ),
    Guard(
        name="of two that write over each other one yields",
        without_it="two holders of one name go on for ever",
        words="return is_after and self._counts[other.incarnation] > OVERWRITES_MAX",
        mutated="return is_after and False",
    ),
)

PRESENCE = guards_in(
    "eventproc/ownership/membership.py",
    ["tests/unit/eventproc/ownership/test_membership.py"],
    Guard(
        name="presence is written before the first plan",
        without_it="a newcomer plans with itself while nobody else counts it",
        words="""        for _ in range(ATTEMPTS_MAX):
            present""",
        mutated="""        return False
        for _ in range(ATTEMPTS_MAX):
            present""",
    ),
    Guard(
        name="who finds signs of life under its name waits for an answer",
        without_it="two live processes with one name act on one partition",
        words="""        if not is_contested:
            return
""",
        mutated="        return\n",
    ),
    Guard(
        name="a second attempt at the first write remembers a sign of life",
        without_it="a lost answer hides a live holder of the name, and two act under it",
        words="is_contested = is_contested or self._shows_life(",
        mutated="is_contested = self._shows_life(",
    ),
    Guard(
        name="an answer is waited for from when the newcomer can be seen",
        without_it="a live holder that answers in time is too late, and two act under one name",
        words="until_s = self._clock() + answer_within.total_seconds()\n",
        mutated="until_s = self._entered_at_s + answer_within.total_seconds()\n",
    ),
    Guard(
        name="a newcomer goes by a look that was asked for when the time was over",
        without_it="an answer in time is missed by a slow look, and two act under one name",
        words="            if asked_at_s >= until_s:\n",
        mutated="            if self._clock() >= until_s:\n",
    ),
    Guard(
        name="a live holder defends its name",
        without_it="a second process takes a live one's name",
        words="""\
            self._log.warning("duplicate_owner_detected", incarnation=mine.incarnation)
            await self._write(replace(self._member, etag=mine.etag))
""",
        mutated="            pass\n",
    ),
    Guard(
        name="who was away yields to who took its name",
        without_it="the sleeper throws out the healthy one",
        words="if (is_stale and not is_trusted) or self._arbiter.must_yield_to(",
        mutated="if self._arbiter.must_yield_to(",
    ),
    Guard(
        name="who owns nothing renews its presence",
        without_it="a processor without partitions is forgotten, and comes and goes",
        words="(is_due and not owns_something)",
        mutated="False",
    ),
    Guard(
        name="session: after a silence each record is looked at before it is trusted",
        without_it="what was deleted by hand meanwhile, and taken by others, is acted upon",
        words="            self._on_lapsed()\n",
        mutated="            pass\n",
        killers=("tests/stories/test_session_silence.py",),
    ),
    Guard(
        name="the leaving mark",
        without_it="a leaver is given new partitions until it is gone",
        words="await self._change_to(MemberStatus.LEAVING)",
        mutated="pass",
    ),
    Guard(
        name="the mark of who stepped away",
        without_it="a planned restart waits whether its predecessor still lives",
        words="await self._change_to(MemberStatus.RESTARTING)",
        mutated="pass",
        killers=("tests/stories/test_deploys.py",),
    ),
    Guard(
        name="a newcomer of another generation begins in reserve",
        without_it="a rolling deploy moves each partition nearly twice",
        words="MemberStatus.STANDBY if is_replacing else MemberStatus.ACTIVE",
        mutated="MemberStatus.ACTIVE",
        killers=("tests/stories/test_deploys.py",),
    ),
    Guard(
        name="a reserve's patience ends",
        without_it="a canary never gets its share",
        words="if has_replaced or is_over or not",
        mutated="if has_replaced or not",
        killers=("tests/stories/test_deploys.py",),
    ),
    Guard(
        name="session: who was declared dead drops everything",
        without_it="it goes on with partitions that others take",
        words="if self.is_session and (mine is None or mine.status is MemberStatus.DEAD):",
        mutated="if False:",
        killers=("tests/unit/eventproc/ownership/test_session_mode.py",),
    ),
    Guard(
        name="only who owns nothing is cleared away",
        without_it="an old owner seems to be one that does not hand over, and is robbed",
        words="""                member.owner_id not in owning
                and""",
        mutated="""                True
                and""",
    ),
    suites=("edges", "safety", "planned"),
)
