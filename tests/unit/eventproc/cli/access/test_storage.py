"""The storage account, with a key or with an identity."""

import pytest

from eventproc.cli.access.storage import StorageAccess
from eventproc.errors import ConfigurationError

KEY = "DefaultEndpointsProtocol=https;AccountName=contoso;AccountKey=c2VjcmV0;"


def make(*arguments, **settings):
    return arguments, settings


def test_an_account_is_reached_with_the_identity():
    """The credential is the same for all that is made."""
    (url, container, credential), _ = StorageAccess(account="contoso").make(make, "box", "it")
    (_, _, another), _ = StorageAccess(account="contoso").make(make, "box", "it")

    assert (url, container) == ("https://contoso.blob.core.windows.net", "box")
    assert credential is another


@pytest.mark.parametrize(
    ("access", "message"),
    [
        (StorageAccess(), "--store needs the storage account"),
        (
            StorageAccess(account="Con/toso"),
            "--storage-account is 'Con/toso'",
        ),
        (StorageAccess(account="contoso", connection_string=KEY), "not both"),
    ],
)
def test_an_account_that_is_not_clear_is_refused(access, message):
    """The message names the option."""
    with pytest.raises(ConfigurationError, match=message):
        access.make(make, "box", "--store")
