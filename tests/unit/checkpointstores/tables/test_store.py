"""Building a table store: addresses that can never work are refused before anything connects."""

import pytest

from checkpointstores.tables import TableCheckpointStore
from eventproc.errors import ConfigurationError

URL = "https://contoso.table.core.windows.net"
SAS = f"{URL}?sv=2019-02-02&sig=hush"


def test_the_name_of_a_store_has_no_secret():
    """It appears in messages and logs."""
    assert repr(TableCheckpointStore(SAS, "leases")) == (
        "TableCheckpointStore('contoso.table.core.windows.net/leases')"
    )


@pytest.mark.parametrize(
    ("url", "table", "message"),
    [
        ("contoso", "leases", "begin it with https://"),
        (SAS, "my-table", "3 to 63 letters and digits"),
        (SAS, "1table", "beginning with a letter"),
        (SAS, "ab", "3 to 63"),
        (URL, "leases", "give a credential"),
    ],
)
def test_an_address_that_cannot_work_is_refused(url, table, message):
    """The message says what is wanted."""
    with pytest.raises(ConfigurationError, match=message):
        TableCheckpointStore(url, table)
