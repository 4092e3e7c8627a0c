"""The storage account, with a key or with an identity."""

import pytest

from eventproc._base.identity import Network
from eventproc._base.network import HttpProxy
from eventproc._command.access.storage import StorageAccess
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


def test_certificates_and_proxy_reach_the_store():
    """With a key as with an identity, beside the settings of the option."""
    proxy = HttpProxy(host="proxy", port=3128)
    network = Network(ca_bundle="ca.pem", proxy=proxy)
    expected = {"ca_bundle": "ca.pem", "http_proxy": proxy, "creates": True}
    made = []

    class Store:
        def __init__(self, *arguments, **settings):
            made.append((arguments[:2], settings))

        @classmethod
        def from_connection_string(cls, *arguments, **settings):
            return cls(*arguments, **settings)

    StorageAccess(account="contoso", network=network).make(Store, "box", "it", creates=True)
    StorageAccess(connection_string=KEY, network=network).make(Store, "box", "it", creates=True)

    assert made == [
        (("https://contoso.blob.core.windows.net", "box"), expected),
        ((KEY, "box"), expected),
    ]


def test_no_key_is_shown():
    """A connection string has one."""
    assert "c2VjcmV0" not in repr(StorageAccess(connection_string=KEY))
