"""The load-balancing rules of five published descriptions, each as a function of what is read.

Each description is followed to the letter. Where it leaves something open, the rule takes the
reading that performs best, and its docstring says so. What a description knows from elsewhere (an
orchestrator's list of pods, ZooKeeper, heartbeats) is ``ObservedGroup.listed``, which is always
correct and up to date: better than it could be in production. A lock, a lease or a single active
consumer in a description is our ownership record.
"""

from collections.abc import Sequence
from random import Random

from eventproc.core.placement.rank import rank
from eventproc.simulation.other_systems.rules import Decision, ObservedGroup


def event_processor_load_balancing(seen: ObservedGroup, rng: Random) -> Decision:
    """One claim or steal in each cycle; steal only from owners with more than P/N + 1.

    A processor with up to P/N partitions takes any free one. If none is free, it takes any
    partition of those owners. N counts the owners of records and the processor itself.

    "Event Processor Load balancing", by srnagar:
    https://gist.github.com/srnagar/7ef8566cfef0673288275c450dc99590
    """
    floor = len(seen.partition_ids) // len(seen.held_by_owner)
    if len(seen.mine) > floor:
        return Decision()
    excessive = [p for held in seen.held_by_owner.values() if len(held) > floor + 1 for p in held]
    wanted = seen.free or excessive
    return Decision(claims=(rng.choice(wanted),) if wanted else ())


def hashring_leases(seen: ObservedGroup, rng: Random) -> Decision:  # noqa: ARG001 - every rule takes rng
    """The hash range is split into N equal arcs, one for each pod in sorted order.

    A pod claims a partition whose hash is in its own arc as soon as it is free, and releases
    every other one.

    "Hashrings to the rescue", by the makers of Knock, on their leases on Kinesis shards.
    """
    pods = sorted(seen.listed)
    arc_of = {p: pods[rank(p) * len(pods) >> 64] for p in seen.partition_ids}
    return _follow([p for p, pod in arc_of.items() if pod == seen.owner_id], seen)


def statefulset_partition_queues(seen: ObservedGroup, rng: Random) -> Decision:  # noqa: ARG001 - as above
    """Pod number i takes the i-th P div N partitions, and the last pod the rest as well.

    It waits until the former owner has released. A pod's number is its index in the sorted list.

    "Distributed balanced partition-queues assignment using Kubernetes statefulSet", T. Dresher.
    """
    pods = sorted(seen.listed)[: len(seen.partition_ids)]
    if seen.owner_id not in pods:
        return Decision(releases=tuple(seen.mine))
    size = len(seen.partition_ids) // len(pods)
    number = pods.index(seen.owner_id)
    end = len(seen.partition_ids) if number == len(pods) - 1 else (number + 1) * size
    return _follow(seen.partition_ids[number * size : end], seen)


def parallel_processing_partitions(seen: ObservedGroup, rng: Random) -> Decision:
    """Each processor claims an equal share of locks, and releases what exceeds it.

    The share is P/N rounded up, because otherwise some partitions would have no owner. The source
    does not say which of the free partitions to take: any.

    "Managing parallel processing in stateful streaming services", section "Mechanics of assigning
    partitions".
    """
    share = -(-len(seen.partition_ids) // len(seen.listed))
    missing = share - len(seen.mine)
    if missing < 0:
        return Decision(releases=tuple(seen.mine[missing:]))
    return Decision(claims=tuple(rng.sample(seen.free, min(missing, len(seen.free)))))


def kafka_rebalancer(seen: ObservedGroup, rng: Random) -> Decision:  # noqa: ARG001 - as above
    """One rebalancer assigns all partitions; a processor opens its new ones at once.

    Its "bit complicated" way that "preserves connections where they currently are if possible" is
    read as: the owner with most partitions keeps most, and the rest goes to the processor with
    fewest. Here every processor computes the same assignment itself, from the same list, and does
    not wait for leases.

    "Making of Message Gateway with Kafka, part 3".
    """
    floor, extra_count = divmod(len(seen.partition_ids), len(seen.listed))
    held = {pod: list(seen.held_by_owner.get(pod, ())) for pod in sorted(seen.listed)}
    by_count = sorted(held, key=lambda pod: -len(held[pod]))
    kept = {pod: held[pod][: floor + (i < extra_count)] for i, pod in enumerate(by_count)}
    owned = {p for partitions in kept.values() for p in partitions}
    claims = []
    for partition_id in seen.partition_ids:
        if partition_id not in owned:
            neediest = min(kept, key=lambda pod: len(kept[pod]))
            kept[neediest].append(partition_id)
            claims += [partition_id] if neediest == seen.owner_id else []
    return Decision(claims=tuple(claims))


def _follow(due: Sequence[str], seen: ObservedGroup) -> Decision:
    """Release what is not assigned to the processor; claim what is, as soon as it is free."""
    wanted = set(due)
    free = set(seen.free)
    return Decision(
        claims=tuple(p for p in due if p in free),
        releases=tuple(p for p in seen.mine if p not in wanted),
    )
