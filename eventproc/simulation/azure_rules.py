"""How the processors of Azure's SDKs decide, each as a function of what it sees.

These are re-implementations of what their sources do, for comparison and for mixed fleets; Python's
own is called, not re-implemented, and lives in ``azure_python_rule``. All sources are in
https://github.com/Azure/azure-sdk-for-<net|java|js|go> below the folder of Event Hubs.

All of them know the others by their ownership records alone: who owns nothing is not counted.
"""

from random import Random

from eventproc.simulation.rules import Answer, Rule, Seen


def dotnet(seen: Seen, rng: Random) -> Answer:
    """.NET, both strategies: at most one claim in a cycle; greedy only repeats sooner.

    A processor below the floor claims; so does one at the floor while nobody is below it. What is
    free comes first, then partitions of owners with more than floor + 1 and, for one below the
    floor, of owners with exactly that.

    Source: ``PartitionLoadBalancer.cs``, ``FindAndClaimOwnershipAsync``.
    """
    floor = len(seen.partition_ids) // len(seen.held_by_owner)
    own_count = len(seen.mine)
    is_anybody_below = any(len(held) < floor for held in seen.held_by_owner.values())
    if own_count > floor or (own_count == floor and is_anybody_below):
        return Answer(is_balanced=own_count >= floor)
    others = [held for owner, held in seen.held_by_owner.items() if owner != seen.owner_id]
    excessive = [p for held in others if len(held) > floor + 1 for p in held]
    at_most = [p for held in others if len(held) == floor + 1 for p in held]
    wanted = seen.free or excessive or (at_most if own_count < floor else ())
    if not wanted:
        return Answer(is_balanced=own_count >= floor)
    return Answer(claims=(rng.choice(wanted),), is_balanced=False)


def java(seen: Seen, rng: Random) -> Answer:
    """Java, both strategies: at most one claim in a cycle; greedy repeats at once.

    Where the counts are not exactly those of a balanced group, a processor below the floor, or
    with fewer partitions than anybody, takes any free partition, else one of the owner with most.

    Source: ``PartitionBasedLoadBalancer.java``, ``isLoadBalanced``, ``shouldOwnMorePartitions``.
    """
    floor, extra_count = divmod(len(seen.partition_ids), len(seen.held_by_owner))
    counts = [len(held) for held in seen.held_by_owner.values()]
    is_even = all(floor <= count <= floor + 1 for count in counts)
    if is_even and sum(count == floor + 1 for count in counts) == extra_count:
        return Answer()
    own_count = len(seen.mine)
    if own_count >= floor and own_count != min(counts):
        return Answer()
    wanted = seen.free or max(seen.held_by_owner.values(), key=len)
    return Answer(claims=(rng.choice(wanted),), is_balanced=False)


def javascript_greedy(seen: Seen, rng: Random) -> Answer:
    """JavaScript, greedy: everything that is its share, free or not, in one cycle."""
    return Answer(claims=tuple(_javascript_available(seen, rng)))


def javascript_balanced(seen: Seen, rng: Random) -> Answer:
    """JavaScript, balanced: any one of what greedy would take, even a steal before a free one.

    Source: ``balancedStrategy.ts``, ``greedyStrategy.ts``.
    """
    available = _javascript_available(seen, rng)
    return Answer(claims=(rng.choice(available),) if available else ())


def _javascript_available(seen: Seen, rng: Random) -> list[str]:
    """What the reader may claim.

    Its share is one above the floor only while too few owners have an extra partition; an owner
    with too many counts as having one. Free partitions come first, then those of the largest
    owners, of whom as many keep an extra one as may.

    Source: ``loadBalancingStrategy.ts``, ``listAvailablePartitions``.
    """
    if not seen.owner_by_partition:
        return list(seen.partition_ids)
    floor, extra_count = divmod(len(seen.partition_ids), len(seen.held_by_owner))
    counts = [len(held) for held in seen.held_by_owner.values()]
    if (
        sum(count == floor + 1 for count in counts) == extra_count
        and sum(count == floor for count in counts) == len(counts) - extra_count
    ):
        return []
    share = floor + (sum(count > floor for count in counts) < extra_count)
    missing = share - len(seen.mine)
    if missing <= 0:
        return []
    claims = rng.sample(seen.free, min(missing, len(seen.free)))
    larger = sorted(
        (
            held
            for owner, held in seen.held_by_owner.items()
            if owner != seen.owner_id and len(held) > floor
        ),
        key=len,
        reverse=True,
    )
    for place, held in enumerate(larger):
        kept = floor + (place < extra_count)
        count = min(missing - len(claims), len(held) - kept)
        claims += rng.sample(held, max(count, 0))
    return claims


def go_greedy(seen: Seen, rng: Random) -> Answer:
    """Go, greedy: all that is missing, free ones first, then of owners above the most.

    Where there are more than it needs, it takes the first ones of the list, in another order: so
    all processors contend for the same partitions.

    Source: ``processor_load_balancer.go``, ``greedyLoadBalancer``, ``getRandomOwnerships``.
    """
    missing, excessive = _go_missing(seen, rng)
    free = _go_free(seen)
    return Answer(claims=(*free[:missing], *excessive[: max(missing - len(free), 0)]))


def go_balanced(seen: Seen, rng: Random) -> Answer:
    """Go, balanced: one of the free ones, else one of owners above the most."""
    missing, excessive = _go_missing(seen, rng)
    wanted = _go_free(seen) or excessive
    return Answer(claims=(rng.choice(wanted),) if missing and wanted else ())


def _go_missing(seen: Seen, rng: Random) -> tuple[int, list[str]]:
    """How many the reader may still claim, and the partitions of owners with too many.

    The most that anybody may have is the floor, and one more where there is a remainder and the
    reader has the floor. The owners come in the chance order of a Go map.
    """
    most, rest = divmod(len(seen.partition_ids), len(seen.held_by_owner))
    most += rest > 0 and len(seen.mine) >= most
    owners = rng.sample(list(seen.held_by_owner), len(seen.held_by_owner))
    excessive = [
        p
        for owner in owners
        if owner != seen.owner_id and len(seen.held_by_owner[owner]) > most
        for p in seen.held_by_owner[owner]
    ]
    return max(most - len(seen.mine), 0), excessive


def _go_free(seen: Seen) -> list[str]:
    """Expired records first, as they are listed, then partitions without a record."""
    free = set(seen.free)
    recorded = [record.partition_id for record in seen.records]
    known = set(recorded)
    return [p for p in recorded if p in free] + [p for p in seen.free if p not in known]


def python(*, is_greedy: bool) -> Rule:
    """Return the genuine rule of the installed ``azure-eventhub``.

    Raises:
        ModuleNotFoundError: it is not installed.
    """
    from eventproc.simulation.azure_python_rule import python_rule  # noqa: PLC0415 - an extra

    return python_rule(is_greedy=is_greedy)
