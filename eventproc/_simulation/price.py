"""What storage operations cost: arithmetic on a price list.

Azure bills each request by its type. A write of metadata is a write, a listing is billed for each
page, and deleting is free: "Map each REST operation to a price",
https://learn.microsoft.com/azure/storage/blobs/map-rest-apis-transaction-categories.

Sources differ in whether a table's transaction is billed once or for each of its entities, so each
entity counts as a write here: the price is at most that.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Final, TypeAlias

from eventproc._base.settings import Count, Wanted, Within, check_settings

HOURS_PER_MONTH: Final = 730
"""As in Azure's price calculator."""

_PRICED: Final = 10_000

_BLOBS_PER_PAGE: Final = 5000
_ENTITIES_PER_PAGE: Final = 1000
"""Maximum number of records in one page of a listing, as the services set it."""

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
    records_per_page: Count = _BLOBS_PER_PAGE
    """Most records in a page of a listing."""

    def __post_init__(self) -> None:
        """Check that every price is 0 or more."""
        check_settings(self)

    def of(self, *, writes: float, pages: float) -> float:
        """Return the cost of this many writes and pages of listings, in US dollars."""
        return (writes * self.writes + pages * self.lists) / _PRICED

    def of_a_write_every(self, interval: timedelta) -> float:
        """Return the cost of a month with a write in each interval, in US dollars."""
        return self.of(writes=timedelta(hours=HOURS_PER_MONTH) / interval, pages=0)

    def pages_of(self, record_count: int) -> int:
        """Return how many pages a listing of this many records has."""
        return max(-(-record_count // self.records_per_page), 1)


PRICES: Final[Mapping[str, PriceList]] = {
    "blob": PriceList(),
    "tables": PriceList(writes=0.00036, lists=0.00036, records_per_page=_ENTITIES_PER_PAGE),
    "postgres": PriceList(writes=0, lists=0),
}
"""By store. Of a table: https://azure.microsoft.com/pricing/details/storage/tables/, LRS, East US,
assumed like those of blobs. A PostgreSQL server is paid by the hour, not by the request."""
