"""How five published descriptions would share the partitions, each as a function of what is seen.

They are taken to the letter where they are exact; where they leave something open, the reading that
serves them best is taken, and said. What one of them knows from elsewhere (an orchestrator's list
of pods, ZooKeeper's, heartbeats) is ``Seen.listed``, which is always right and at once: better than
it could be. What it calls a lock, a lease or a single active consumer is our ownership record.
"""

from collections.abc import Sequence
from random import Random

from eventproc.core.plan import rank
from eventproc.simulation.rules import Answer, Seen


def event_processor_load_balancing(seen: Seen, rng: Random) -> Answer:
    """One claim or steal in each cycle; steal only from who has more than P/N + 1.

    A processor with up to P/N partitions takes any free one. Where none is free, it takes any one
    of those owners. The owners of records are everybody who counts, and the reader.

    "Event Processor Load balancing", by srnagar:
    https://gist.github.com/srnagar/7ef8566cfef0673288275c450dc99590
    """
    floor = len(seen.partition_ids) // len(seen.held_by_owner)
    if len(seen.mine) > floor:
        return Answer()
    excessive = [p for held in seen.held_by_owner.values() if len(held) > floor + 1 for p in held]
    wanted = seen.free or excessive
    return Answer(claims=(rng.choice(wanted),) if wanted else ())


def hashring_leases(seen: Seen, rng: Random) -> Answer:  # noqa: ARG001 - a rule is given chance
    """The hash of a partition falls into one of N equal arcs, one for each pod in sorted order.

    A pod takes the lease of a partition of its own arc as soon as it is free, and drops one of
    another's arc.

    "Hashrings to the rescue", by the makers of Knock, on their leases on Kinesis shards.
    """
    pods = sorted(seen.listed)
    arc_of = {p: pods[rank(p) * len(pods) >> 64] for p in seen.partition_ids}
    return _follow([p for p, pod in arc_of.items() if pod == seen.owner_id], seen)


def statefulset_partition_queues(seen: Seen, rng: Random) -> Answer:  # noqa: ARG001 - as above
    """Pod number i takes the i-th P div N partitions, and the last pod the rest as well.

    It waits until the former owner has let go. A pod's number is its place in the sorted list.

    "Distributed balanced partition-queues assignment using Kubernetes statefulSet", T. Dresher.
    """
    pods = sorted(seen.listed)[: len(seen.partition_ids)]
    if seen.owner_id not in pods:
        return Answer(releases=tuple(seen.mine))
    size = len(seen.partition_ids) // len(pods)
    number = pods.index(seen.owner_id)
    end = len(seen.partition_ids) if number == len(pods) - 1 else (number + 1) * size
    return _follow(seen.partition_ids[number * size : end], seen)


def parallel_processing_partitions(seen: Seen, rng: Random) -> Answer:
    """Everybody asks for an equal share of locks, and lets go of what is above it.

    The share is P/N rounded up, for else some partitions would stay without an owner. Which of the
    free ones is not said: any.

    "Managing parallel processing in stateful streaming services", section "Mechanics of assigning
    partitions".
    """
    share = -(-len(seen.partition_ids) // len(seen.listed))
    missing = share - len(seen.mine)
    if missing < 0:
        return Answer(releases=tuple(seen.mine[missing:]))
    return Answer(claims=tuple(rng.sample(seen.free, min(missing, len(seen.free)))))


def kafka_rebalancer(seen: Seen, rng: Random) -> Answer:  # noqa: ARG001 - as above
    """One rebalancer deals the partitions anew; what nobody may open twice is opened at once.

    Its "bit complicated" way that "preserves connections where they currently are if possible" is
    read as: who has most keeps most, and the rest goes to whoever has least. Here every processor
    does the rebalancer's work for itself, by the same list, and has no lease to wait for.

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
    return Answer(claims=tuple(claims))


def _follow(due: Sequence[str], seen: Seen) -> Answer:
    """Let go of what is not due, and take what is due as soon as it is free."""
    wanted = set(due)
    free = set(seen.free)
    return Answer(
        claims=tuple(p for p in due if p in free),
        releases=tuple(p for p in seen.mine if p not in wanted),
    )
