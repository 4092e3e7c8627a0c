"""The accounts of the demo, from the journals alone. All functions are pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from eventproc.cli.demo.rabbitmq.journal import Call
from eventproc.cli.demo.rabbitmq.orders import Order


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounts:
    """What became of the orders."""

    published: int
    handled: int
    """Of them, at least once."""

    lost: int
    duplicates: int
    """Deliveries of an order after its first one."""

    duplicates_unexplained: int
    """Of these, not because a process was killed or frozen."""

    out_of_order: int
    """Orders that were handled for the first time before an earlier one of the same customer."""

    overlaps: int
    """Pairs of calls for one queue in two processes at the same time."""

    overlaps_unexplained: int
    """Of these, not with a call during which its process was frozen."""


Freeze = tuple[str, int, int]
"""A process, and from when to when it was suspended."""

FOREVER: Final = 2**63
"""The end of a call that has not ended."""


def make_accounts(
    published: Mapping[str, int],
    calls: Sequence[Call],
    *,
    killed: Mapping[str, int] | None = None,
    frozen: Collection[Freeze] = (),
) -> Accounts:
    """Compare what was published, by customer, with the calls of all processes.

    Args:
        published: How many orders of each customer were published.
        calls: All calls.
        killed: When a process that was killed had ended, in nanoseconds.
        frozen: When processes were suspended.
    """
    killed = killed or {}
    times = Counter(order for call in calls for order in call.orders)
    pairs = list(_overlaps(_closed(call, killed.get(call.writer, FOREVER)) for call in calls))
    abrupt = {*killed, *(writer for writer, _, _ in frozen)}
    count = sum(published.values())
    return Accounts(
        published=count,
        handled=len(times),
        lost=count - len(times),
        duplicates=times.total() - len(times),
        duplicates_unexplained=_repeated_without(calls, abrupt),
        out_of_order=_out_of_order(calls),
        overlaps=len(pairs),
        overlaps_unexplained=sum(
            not any(_is_frozen_in(call, frozen) for call in pair) for pair in pairs
        ),
    )


def _repeated_without(calls: Iterable[Call], abrupt: Collection[str]) -> int:
    """Count second deliveries to processes that were neither killed nor frozen."""
    times = Counter(o for call in calls if call.writer not in abrupt for o in call.orders)
    return times.total() - len(times)


def _out_of_order(calls: Iterable[Call]) -> int:
    """Count the orders that overtook an earlier one of the same customer."""
    following: Counter[str] = Counter()
    seen: set[Order] = set()
    count = 0
    ended = [call for call in calls if call.left_ns is not None]
    for call in sorted(ended, key=lambda call: call.left_ns or 0):
        for order in call.orders:
            customer, number = order
            if order in seen:
                continue
            seen.add(order)
            count += number != following[customer]
            following[customer] = max(following[customer], number + 1)
    return count


def _closed(call: Call, end_ns: int) -> Call:
    return call if call.left_ns is not None else replace(call, left_ns=end_ns)


def _overlaps(calls: Iterable[Call]) -> Iterable[tuple[Call, Call]]:
    """Yield each pair of calls for one queue that two processes made at the same time."""
    running: dict[str, list[Call]] = {}
    for call in sorted(calls, key=lambda call: call.entered_ns):
        others = running.setdefault(call.queue, [])
        others[:] = [other for other in others if (other.left_ns or 0) > call.entered_ns]
        yield from ((other, call) for other in others if other.writer != call.writer)
        others.append(call)


def _is_frozen_in(call: Call, frozen: Iterable[Freeze]) -> bool:
    """Whether a process was suspended in this call."""
    return any(
        writer == call.writer and begin < (call.left_ns or 0) and call.entered_ns < end
        for writer, begin, end in frozen
    )
