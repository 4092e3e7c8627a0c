"""Listings, and what a processor writes after each: see ``listings.py`` for the notation."""

from eventproc._core.placement.ordinal import Ordinal
from eventproc._core.placement.placement import MemberFacts
from eventproc._core.placement.ring import Ring
from eventproc._core.placement.weighted import Weighted
from eventproc.models import LoadBalancingStrategy

BALANCED = {"strategy": LoadBalancingStrategy.BALANCED}
GREEDY = {"strategy": LoadBalancingStrategy.GREEDY}
NEW = {"lasting_s": 0.0}
LATE = {"lasting_s": 31.0, "own": "me"}
DUE = {"lasting_s": 20.0, "own": "me"}
WAITED = {"lasting_s": 301.0}
RELEASE = {"strategy": LoadBalancingStrategy.RELEASE}
RING = {"placement": Ring()}
WEIGHTED = {"placement": Weighted()}
ONE = {**WEIGHTED, "facts": MemberFacts(capacity=1)}
FIRST = {"placement": Ordinal(), "facts": MemberFacts(ordinal=0)}
SECOND = {"placement": Ordinal(), "facts": MemberFacts(ordinal=1)}

CLAIM_ALL = "claim 0, claim 1, claim 2, claim 3"

SITUATIONS = {
    # Claims.
    "nothing to change": ("0:me 1:b", "me b", {}, "rest"),
    "never owned": ("0 1", "me", {}, "claim 0, claim 1"),
    "released": ("0:me 1:-", "me", {}, "claim 1"),
    "expired": ("0:me 1:b!", "me", {}, "claim 1"),
    "expired, and planned for another": ("0:me 1:me 2:b 3:x!", "me b", {}, "rest"),
    "recorded as mine, no lease": ("0:me? 1:b", "me b", {}, "check owner id, claim 0"),
    "recorded as mine, expired, no lease": ("0:me!? 1:b", "me b", {}, "check owner id, claim 0"),
    "held, and its record expired": ("0:me! 1:b", "me b", {}, "rest"),
    "BALANCED: one claim": ("0 1 2", "me~", BALANCED, "claim 2"),
    "BALANCED: all that is recorded as mine": (
        "0:me? 1:me? 2",
        "me~",
        BALANCED,
        "check owner id, claim 0, claim 1, claim 2",
    ),
    "new membership": ("0 1", "me", NEW, "wait"),
    "new membership, recorded as mine": ("0:me? 1", "me", NEW, "check owner id, claim 0"),
    # Steals.
    "cooperative owner, at once": ("0:b 1:b", "me b", {}, "wait"),
    "cooperative owner, overdue": ("0:b 1:b", "me b", LATE, "write active, steal 1"),
    "owner without hand-over": ("0:b 1:b", "me b~", {}, "steal 1"),
    "owner without hand-over: one steal in a cycle": ("0:b 1:b 2:b 3:b", "me b~", {}, "steal 3"),
    "foreign owner": ("0:x 1:x", "me", {}, "steal 1"),
    "foreign owner, new membership": ("0:x 1:x", "me", NEW, "wait"),
    "leaving owner": ("0:b", "me b=leaving", {}, "wait"),
    "leaving owner, overdue": ("0:b", "me b=leaving", LATE, "write active, steal 0"),
    "BALANCED: a claim comes before a steal": ("0:b 1:b 2", "me~ b~", BALANCED, "claim 2"),
    # Hand-overs.
    "surplus": ("0:me 1:me", "me b", {}, "drain 1 for b"),
    "surplus, new membership": ("0:me 1:me", "me b", {"lasting_s": 0.0}, "wait"),
    "surplus, begun": ("0:me 1:me>", "me b", NEW, "drain 1 for b"),
    "being handed over, and their records expired": ("0:me!> 1:me!> 2:b 3:-", "me b", {}, "rest"),
    "surplus for a member without hand-over": ("0:me 1:me", "me b~", {}, "drain 1 for b"),
    "surplus for a foreign member": ("0:me 1:me 2:x", "me", {}, "rest"),
    "GREEDY: surplus stays": ("0:me 1:me", "me~ b~", GREEDY, "rest"),
    "a foreign member does not claim its share": ("0:me 1 2:x 3", "me", LATE, "claim 1, claim 3"),
    # Leaving.
    "I leave": ("0:me 1:b", "me=leaving b", {}, "drain 0 for b"),
    "I leave, and my record does not say so": (
        "0:me 1:b",
        "me b",
        {"own": "me=leaving"},
        "write leaving, drain 0 for b",
    ),
    "I leave alone": ("0:me 1", "me=leaving", {}, "drain 0 for None"),
    "I leave, recorded as mine, no lease": ("0:me? 1:b", "me=leaving b", {}, "transfer 0 to b"),
    "GREEDY: I leave": ("0:me 1:b", "me~=leaving b~", GREEDY, "drain 0 for None"),
    # The own member record.
    "it is missing": ("0:me", "b=leaving", {"own": "me"}, "write active"),
    "it is missing, and I am no foreign member": (
        "0 1 2 3",
        "b/Ring",
        {**RING, **GREEDY, "own": "me~/Ring"},
        "write active, claim 2, claim 3",
    ),
    "it says that a former process leaves": (
        "0 1",
        "me=leaving",
        {"own": "me"},
        "write active, claim 0, claim 1",
    ),
    "it is due, and I own nothing": ("0:b", "me b", DUE, "write active"),
    "it is due, and I own something": ("0:me 1:b", "me b", DUE, "rest"),
    "another processor has my owner id": ("0:me", "me#2", {"own": "me"}, "write active"),
    "it came while I was away": ("0:b 1", "me#2 b", {"own": "me", "lasting_s": 55.0}, "yield"),
    "I leave, and it came": ("0:b", "me#2 b", {"own": "me=leaving"}, "yield"),
    "I leave and own something, and it came": (
        "0:me",
        "me#2",
        {"own": "me=leaving"},
        "write leaving, drain 0 for None",
    ),
    "it waited for an objection": ("0:me", "me!#2", {"own": "me"}, "yield"),
    # Standby.
    "standby, nobody to replace": ("0:b", "me=standby@2 b@2", {}, "write active"),
    "standby, no vacancy": ("0:b 1:b", "me=standby@2 b@1", {}, "rest"),
    "standby, a vacancy": ("0:b 1", "me=standby@2 b@1 c=leaving@1", {}, "claim 1"),
    "standby that fills a vacancy": ("0:b 1:b 2:me 3", "me=standby@2 b@1", {}, "claim 3"),
    "standby that has replaced": ("0:b 1:me", "me=standby@2 b@1", {}, "write active"),
    "standby, time-out": ("0:b", "me=standby@2 b@1", WAITED, "write active"),
    # Other members' records.
    "a member of long ago": ("0:me", "me b!!", {}, "forget b"),
    "a member of long ago that owns something": ("0:me 1:b", "me b!!", {}, "rest"),
    # A listing that contradicts a lease.
    "stolen": ("0:me 1:b* 2", "me b", {}, "renew 1"),
    "stolen, and recorded as mine": (
        "0:me? 1:b* 2",
        "me b",
        {},
        "renew 1, check owner id, claim 0",
    ),
    "stolen, a hand-over was begun: it goes on": (
        "0:me 1:me> 2:b* 3:b",
        "me b",
        {},
        "renew 2, drain 1 for b",
    ),
    "stolen, and I leave": (
        "0:me 1:b*",
        "me=leaving b",
        {},
        "renew 1, drain 0 for b, drain 1 for b",
    ),
    # Placements. Of 0 to 3, Even gives me 1 and 3 beside b, and 3 beside b and c; Ring gives me
    # 2 and 3 beside b, and 2 beside b and c.
    "all have Even": ("0 1 2 3", "me b c", {}, "claim 3"),
    "all have Ring": ("0 1 2 3", "me/Ring b/Ring c/Ring", RING, "claim 2"),
    "most have Ring": ("0 1 2 3", "me b/Ring c/Ring", {}, "claim 2"),
    "most have Even": ("0 1 2 3", "me/Ring b c", RING, "claim 3"),
    "as many have Even as Ring": ("0 1 2 3", "me/Ring b", RING, "claim 1, claim 3"),
    "as many have Even as Ring, and I leave with Ring": (
        "0:me 1:me 2:b",
        "me=leaving/Ring b/Ring c",
        RING,
        "drain 0 for c, drain 1 for c",
    ),
    "a member that leaves does not count": ("0 1 2 3", "me/Ring b=leaving", RING, CLAIM_ALL),
    "most have one that I lack: free": ("0:me 1 2:b!", "me b/app.Own c/app.Own", {}, "rest"),
    "most have one that I lack: surplus": ("0:me 1:me", "me b/app.Own c/app.Own", {}, "rest"),
    "most have one that I lack: I leave": (
        "0:me 1:b",
        "me=leaving b/app.Own c/app.Own",
        {},
        "drain 0 for None",
    ),
    "one has one that I lack": ("0 1 2 3", "me b c/app.Own", {}, "claim 3"),
    "Ring, and a foreign member: Even": ("0:x 1 2 3", "me/Ring b/Ring", RING, "claim 3"),
    "heavier than I": (
        "0:me 1:me 2:me 3:b",
        "me/Weighted b/Weighted/x3",
        WEIGHTED,
        "drain 0 for b, drain 1 for b",
    ),
    "Even does not regard weights": ("0:me 1:me 2:b 3:b", "me b/Even/x3", {}, "rest"),
    "I am full": ("0:me 1", "me/Weighted", ONE, "rest"),
    "I have more than my capacity, and a place is left": (
        "0:me 1:me",
        "me/Weighted b/Weighted/<1",
        ONE,
        "drain 1 for b",
    ),
    "I have more than my capacity, and no place is left": (
        "0:me 1:me 2:b",
        "me/Weighted b/Weighted/<1",
        ONE,
        "rest",
    ),
    "too few places: the free one, not another's": (
        "0:b 1:b 2:b 3",
        "me/Weighted b/Weighted/<1",
        ONE,
        "claim 3",
    ),
    "RELEASE: surplus": ("0:me 1:me", "me b", RELEASE, "drain 1 for None"),
    "RELEASE: another's surplus": ("0:b 1:b", "me b", RELEASE, "wait"),
    "RELEASE: it was released": ("0:b 1:-", "me b", RELEASE, "claim 1"),
    "RELEASE: it was not released in time": (
        "0:b 1:b",
        "me b",
        {**RELEASE, **LATE},
        "write active, steal 1",
    ),
    "RELEASE: I leave": ("0:me 1:b", "me=leaving b", RELEASE, "drain 0 for None"),
    "RELEASE: surplus for a foreign member": ("0:me 1:me 2:x", "me", RELEASE, "rest"),
    "Ordinal: its neighbour is away": ("0:me 1:me 2 3", "me/Ordinal/0", FIRST, "claim 2, claim 3"),
    "Ordinal: I return": ("0:b 1:b 2:b 3:b", "me/Ordinal/0 b/Ordinal/1", FIRST, "wait"),
    "Ordinal: its neighbour returns": (
        "0:me 1:me 2:me 3:me",
        "me/Ordinal/1 b/Ordinal/0",
        SECOND,
        "drain 0 for b, drain 1 for b",
    ),
    "a resource that was deleted": ("0:me ~1:me", "me", {}, "drain 1 for None"),
    "a resource that was deleted, with a strategy that lets nothing go": (
        "0:me ~1:me 2:b ~3:b",
        "me b",
        GREEDY,
        "drain 1 for None",
    ),
    "a resource that was deleted, just after the members changed": (
        "0:me ~1:me",
        "me b",
        NEW,
        "drain 1 for None",
    ),
    "a resource that was deleted, recorded as mine without a lease": (
        "0:me ~1:me?",
        "me",
        {},
        "transfer 1 to None",
    ),
    "a resource that was deleted counts in no share": (
        "0:b 1:b ~2:me ~3:me",
        "me b",
        {},
        "drain 2 for None, drain 3 for None",
    ),
    "Ordinal: what was mine is free again": (
        "0:- 1:- 2:b 3:b",
        "me/Ordinal/0 b/Ordinal/1",
        FIRST,
        "claim 0, claim 1",
    ),
}
