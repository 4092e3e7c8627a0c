"""The load-balancing rules of Azure's SDKs, each as a function of what one processor reads.

They are re-implemented from the SDKs' sources, for mixed groups. Python's own
rule is called, not re-implemented: see ``python_rule``. All sources are in
https://github.com/Azure/azure-sdk-for-<net|java|js|go> below the folder of Event Hubs.

All rules know the other processors by ownership records alone: one that owns nothing is not
counted. *Floor* is the number of partitions divided by the number of owners, rounded down.
"""

from random import Random

from tests.simulation.azure.rule import Decision, ObservedGroup


def dotnet(seen: ObservedGroup, rng: Random) -> Decision:
    """.NET, both strategies: at most one claim in a cycle; greedy only repeats sooner.

    A processor below the floor claims; so does one at the floor if no processor is below it. It
    takes free partitions first, then partitions of owners with more than floor + 1 and, if it is
    itself below the floor, of owners with exactly floor + 1.

    Source: ``PartitionLoadBalancer.cs``, ``FindAndClaimOwnershipAsync``.
    """
    floor = len(seen.partition_ids) // len(seen.held_by_owner)
    own_count = len(seen.mine)
    is_anybody_below = any(len(held) < floor for held in seen.held_by_owner.values())
    if own_count > floor or (own_count == floor and is_anybody_below):
        return Decision(is_balanced=own_count >= floor)
    others = [held for owner, held in seen.held_by_owner.items() if owner != seen.owner_id]
    excessive = [p for held in others if len(held) > floor + 1 for p in held]
    at_most = [p for held in others if len(held) == floor + 1 for p in held]
    wanted = seen.free or excessive or (at_most if own_count < floor else ())
    if not wanted:
        return Decision(is_balanced=own_count >= floor)
    return Decision(claims=(rng.choice(wanted),), is_balanced=False)


def java(seen: ObservedGroup, rng: Random) -> Decision:
    """Java, both strategies: at most one claim in a cycle; greedy repeats at once.

    If the counts are not exactly those of a balanced group, a processor that is below the floor,
    or has the fewest partitions, takes any free partition, else one of the owner with most.

    Source: ``PartitionBasedLoadBalancer.java``, ``isLoadBalanced``, ``shouldOwnMorePartitions``.
    """
    floor, extra_count = divmod(len(seen.partition_ids), len(seen.held_by_owner))
    counts = [len(held) for held in seen.held_by_owner.values()]
    is_even = all(floor <= count <= floor + 1 for count in counts)
    if is_even and sum(count == floor + 1 for count in counts) == extra_count:
        return Decision()
    own_count = len(seen.mine)
    if own_count >= floor and own_count != min(counts):
        return Decision()
    wanted = seen.free or max(seen.held_by_owner.values(), key=len)
    return Decision(claims=(rng.choice(wanted),), is_balanced=False)


def javascript_greedy(seen: ObservedGroup, rng: Random) -> Decision:
    """JavaScript, greedy: claims its whole share in one cycle, free partitions or not."""
    return Decision(claims=tuple(_javascript_available(seen, rng)))


def javascript_balanced(seen: ObservedGroup, rng: Random) -> Decision:
    """JavaScript, balanced: one random partition of those that greedy takes, free or not.

    Source: ``balancedStrategy.ts``, ``greedyStrategy.ts``.
    """
    available = _javascript_available(seen, rng)
    return Decision(claims=(rng.choice(available),) if available else ())


def _javascript_available(seen: ObservedGroup, rng: Random) -> list[str]:
    """Return what the processor may claim.

    Its share is one above the floor only while too few owners have an extra partition; an owner
    with too many counts as having one. Free partitions come first, then those of the largest
    owners. As many of those keep an extra partition as the remainder allows.

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


def go_greedy(seen: ObservedGroup, rng: Random) -> Decision:
    """Go, greedy: its whole missing share, free partitions first, then of owners with too many.

    If more are free than it needs, it takes the first ones of the list and shuffles only those.
    So all processors contend for the same partitions.

    Source: ``processor_load_balancer.go``, ``greedyLoadBalancer``, ``getRandomOwnerships``.
    """
    missing, excessive = _go_missing(seen, rng)
    free = _go_free(seen)
    return Decision(claims=(*free[:missing], *excessive[: max(missing - len(free), 0)]))


def go_balanced(seen: ObservedGroup, rng: Random) -> Decision:
    """Go, balanced: one free partition, else one of an owner with too many."""
    missing, excessive = _go_missing(seen, rng)
    wanted = _go_free(seen) or excessive
    return Decision(claims=(rng.choice(wanted),) if missing and wanted else ())


def _go_missing(seen: ObservedGroup, rng: Random) -> tuple[int, list[str]]:
    """Return how many partitions the processor may claim, and those of owners with too many.

    The maximum per owner is the floor, plus one if there is a remainder and the processor has the
    floor already. The owners come in random order, as from a Go map.
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


def _go_free(seen: ObservedGroup) -> list[str]:
    """Return partitions with expired records, as listed, then those without a record."""
    free = set(seen.free)
    recorded = [record.partition_id for record in seen.records]
    known = set(recorded)
    return [p for p in recorded if p in free] + [p for p in seen.free if p not in known]
