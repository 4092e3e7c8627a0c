"""``Ordinal``: each member owns the block of resources that its number stands for."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from eventproc._base.settings import Count, check_settings
from eventproc._core.placement.placement import (
    GroupState,
    MemberFacts,
    Order,
    Placement,
    ordinal_in,
)
from eventproc.errors import ConfigurationError


@dataclass(frozen=True)
class Ordinal(Placement):
    """Splits the resources, in their order, into one block for each ordinal.

    For numbered processes such as the pods of a StatefulSet: it is known beforehand which one owns
    what. The block of an ordinal that is not there is served by its neighbours, resource by
    resource the nearest on alternating sides, and returns when the ordinal does.

    Worked example. 10 licence keys and ordinals 0 to 3: 3, 3, 2 and 2 keys. With ``literal``
    2, 2, 2 and 4.
    """

    __module__ = "eventproc"

    replicas: Count | None = None
    """How many ordinals there are. ``None``: as many as the roster says; without a roster, one more
    than the highest ordinal that is present, so all blocks change when that member ends."""

    literal: bool = False
    """Whether the last ordinal gets the whole remainder, as in "Distributed balanced
    partition-queues assignment using Kubernetes statefulSet" by T. Dresher. Otherwise the blocks
    differ by one at most."""

    is_sticky: ClassVar[bool] = False
    admits_standby: ClassVar[bool] = False
    uses_weights: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Refuse ``replicas`` below one."""
        check_settings(self)

    def check(self, me: MemberFacts) -> None:
        """Refuse a processor that does not know its ordinal, or one above ``replicas``."""
        if me.ordinal is None:
            raise ConfigurationError(
                "the placement Ordinal needs the number of each processor: give it, or an owner "
                "id that ends in a number, such as the host name of a StatefulSet's pod",
                setting="ordinal",
                value="not given",
            )
        if self.replicas is not None and me.ordinal >= self.replicas:
            raise ConfigurationError(
                f"the placement {self.name} has ordinals from 0 to {self.replicas - 1}: correct "
                "one of the two",
                setting="ordinal",
                value=str(me.ordinal),
            )

    def order(self, state: GroupState) -> Order:
        """Return the member with the block's ordinal, then its neighbours by distance."""
        names_by_ordinal: dict[int, list[str]] = {}
        for name in sorted(state.members):
            ordinal = state.members[name].ordinal
            if ordinal is not None:
                names_by_ordinal.setdefault(ordinal, []).append(name)
        count = self.replicas or _count(state)
        number_by_resource = {resource: n for n, resource in enumerate(state.resources)}

        def order(resource: str) -> Iterator[str]:
            number = number_by_resource[resource]
            wanted = self._ordinal(number, len(state.resources), count)
            yield from names_by_ordinal.get(wanted, ())
            side = 1 if number % 2 else -1
            others = names_by_ordinal.keys() - {wanted}
            for other in sorted(others, key=lambda o: (abs(o - wanted), (o - wanted) * side)):
                yield from names_by_ordinal[other]

        return order

    def _ordinal(self, number: int, resource_count: int, ordinal_count: int) -> int:
        """Return the ordinal that owns the resource with this number."""
        size, extra = divmod(resource_count, min(ordinal_count, resource_count))
        if self.literal:
            return min(number // size, min(ordinal_count, resource_count) - 1)
        longer = extra * (size + 1)  # The first blocks have one more.
        return number // (size + 1) if number < longer else extra + (number - longer) // size


def _count(state: GroupState) -> int:
    """Return how many ordinals the roster expects, or else how many the members make likely."""
    expected = [n for n in map(ordinal_in, state.expected) if n is not None]
    present = [facts.ordinal for facts in state.members.values() if facts.ordinal is not None]
    return max(expected or present, default=0) + 1
