"""What storage operations cost: arithmetic on a price list.

Azure bills each request by its type. A write of metadata is a write, a listing is billed for each
page, and deleting is free: "Map each REST operation to a price",
https://learn.microsoft.com/azure/storage/blobs/map-rest-apis-transaction-categories.
"""

from dataclasses import dataclass
from typing import Final

from eventproc.errors import ConfigurationError

BLOBS_PER_PAGE: Final = 5000
"""The most that one page of a listing has; the service sets it."""

HOURS_PER_MONTH: Final = 730
"""As Azure's price calculator reckons."""

_PRICED: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceList:
    """US dollars for 10,000 operations.

    The defaults are assumed: a standard general-purpose v2 account, hot tier, LRS, in East US, as
    https://azure.microsoft.com/pricing/details/storage/blobs/ listed them when this was written.
    Your region and redundancy have others.
    """

    writes: float = 0.05
    lists: float = 0.05

    def __post_init__(self) -> None:
        """Refuse what no price can be."""
        if self.writes < 0 or self.lists < 0:
            raise ConfigurationError("a price is negative: give US dollars for 10,000 operations")

    def of(self, *, writes: float, pages: float) -> float:
        """What so many writes and pages of listings cost."""
        return (writes * self.writes + pages * self.lists) / _PRICED


def pages_of(record_count: int) -> int:
    """How many pages a listing of so many records has."""
    return max(-(-record_count // BLOBS_PER_PAGE), 1)
