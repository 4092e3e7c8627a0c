"""The URL of a storage account."""

import pytest

from eventproc.errors import ConfigurationError
from eventproc.identity.storage_account import account_url, require_endpoint


@pytest.mark.parametrize(
    ("account", "url"),
    [
        ("contoso", "https://contoso.blob.core.windows.net"),
        ("contoso.blob.core.usgovcloudapi.net", "https://contoso.blob.core.usgovcloudapi.net"),
        ("https://127.0.0.1:10000/dev/", "https://127.0.0.1:10000/dev"),
        ("http://127.0.0.1:10000/dev", "http://127.0.0.1:10000/dev"),
    ],
)
def test_an_account_is_a_name_a_host_or_a_url(account, url):
    """A slash at the end is left out."""
    assert account_url(account, option="storageAccount") == url


@pytest.mark.parametrize(
    ("account", "url"),
    [
        ("contoso", "https://contoso.table.core.windows.net"),
        ("contoso.table.core.windows.net", "https://contoso.table.core.windows.net"),
        ("https://contoso.blob.core.windows.net", "https://contoso.table.core.windows.net"),
        ("http://127.0.0.1:10002/dev", "http://127.0.0.1:10002/dev"),
    ],
)
def test_the_address_of_another_service_of_the_account_is_adapted(account, url):
    """One --storage-account serves a store of tables and dead letters in blobs."""
    assert account_url(account, option="storageAccount", service="table") == url


@pytest.mark.parametrize("account", ["Con/toso", "", "no", "Contoso", "a.b/c"])
def test_anything_else_is_refused(account):
    """The message names the option."""
    with pytest.raises(ConfigurationError, match=r"^storageAccount is .*: give the account's name"):
        account_url(account, option="storageAccount")


@pytest.mark.parametrize(("service", "other"), [("blob", "Table"), ("table", "Blob")])
def test_a_connection_string_with_the_endpoints_of_other_services_alone_is_refused(service, other):
    """A client would look for a host that the string does not name."""
    given = f"AccountName=shop;AccountKey=aHVzaA==;{other}Endpoint=http://127.0.0.1:1/shop"
    own = f"{service.upper()}Endpoint=http://127.0.0.1:2/shop"
    with pytest.raises(
        ConfigurationError,
        match=rf"has {other}Endpoint=\.\.\. and no {service.capitalize()}Endpoint=",
    ) as refused:
        require_endpoint(given, service)

    assert "aHVzaA" not in str(refused.value)
    require_endpoint(f"{given}; {own}", service)


@pytest.mark.parametrize(
    "given", ["AccountName=shop;AccountKey=aHVzaA==", "UseDevelopmentStorage=true"]
)
def test_a_connection_string_without_any_endpoint_is_accepted(given):
    """Its services have the usual addresses."""
    require_endpoint(given, "blob")
