"""What storage operations cost: arithmetic on a price list.

Azure bills each request by its type. A write of metadata is a write, a listing is billed for each
page, and deleting is free: "Map each REST operation to a price",
https://learn.microsoft.com/azure/storage/blobs/map-rest-apis-transaction-categories.
"""

from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias

from eventproc.settings import Wanted, Within, check_settings

BLOBS_PER_PAGE: Final = 5000
"""Maximum number of records in one page of a listing, as the service sets it."""

HOURS_PER_MONTH: Final = 730
"""As in Azure's price calculator."""

_PRICED: Final = 10_000

Price: TypeAlias = Annotated[
    float, Within(least=0), Wanted("US dollars for 10,000 operations, 0 or more")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceList:
    """US dollars for 10,000 operations.

    The defaults are assumed: a standard general-purpose v2 account, hot tier, LRS, in East US, as
    https://azure.microsoft.com/pricing/details/storage/blobs/ listed them when this was written.
    Your region and redundancy have others.
    """

    writes: Price = 0.05
    lists: Price = 0.05

    def __post_init__(self) -> None:
        """Check that every price is 0 or more."""
        check_settings(self)

    def of(self, *, writes: float, pages: float) -> float:
        """Return the cost of this many writes and pages of listings, in US dollars."""
        return (writes * self.writes + pages * self.lists) / _PRICED


def pages_of(record_count: int) -> int:
    """Return how many pages a listing of this many records has."""
    return max(-(-record_count // BLOBS_PER_PAGE), 1)
