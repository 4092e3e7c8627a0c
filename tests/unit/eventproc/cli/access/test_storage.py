"""The storage account, with a key or with an identity."""

import pytest

from eventproc.cli.access.storage import StorageAccess
from eventproc.errors import ConfigurationError

KEY = "DefaultEndpointsProtocol=https;AccountName=contoso;AccountKey=c2VjcmV0;"


def make(*arguments, **settings):
    return arguments, settings


@pytest.mark.parametrize(
    ("account", "url"),
    [
        ("contoso", "https://contoso.blob.core.windows.net"),
        ("contoso.blob.core.usgovcloudapi.net", "https://contoso.blob.core.usgovcloudapi.net"),
        ("https://127.0.0.1:10000/dev/", "https://127.0.0.1:10000/dev"),
    ],
)
def test_an_account_is_a_name_a_host_or_a_url(account, url):
    """The credential is the same for all that is made."""
    (found, container, credential), _ = StorageAccess(account=account).make(make, "box", "it")
    (_, _, another), _ = StorageAccess(account=account).make(make, "box", "it")

    assert (found, container) == (url, "box")
    assert credential is another


@pytest.mark.parametrize(
    ("access", "message"),
    [
        (StorageAccess(), "--store needs the storage account"),
        (StorageAccess(account="Con/toso"), "give the account's name"),
        (StorageAccess(account="contoso", connection_string=KEY), "not both"),
    ],
)
def test_an_account_that_is_not_clear_is_refused(access, message):
    """The message names the option."""
    with pytest.raises(ConfigurationError, match=message):
        access.make(make, "box", "--store")
