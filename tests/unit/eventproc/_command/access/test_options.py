"""What the options say about hub and storage account reaches both."""

from eventproc._base.identity import DIRECT, Network
from eventproc._base.network import HttpProxy
from eventproc._command.access.hub import HubAccess, TransportName
from eventproc._command.access.options import HubOptions
from eventproc._command.access.storage import StorageAccess


def test_without_options_nothing_is_set():
    """No certificates and no proxy but the usual ones."""
    assert HubOptions().network() == DIRECT == Network(ca_bundle=None, proxy=None)
    assert HubOptions().hub_access() == HubAccess()
    assert HubOptions().storage_access() == StorageAccess()


def test_each_option_arrives_where_it_belongs():
    """Hub and storage account share CA and proxy."""
    options = HubOptions(
        connection_string="hub-key",
        namespace="namespace",
        custom_endpoint="sb://gateway",
        transport=TransportName.WEBSOCKET,
        storage_connection_string="storage-key",
        storage_account="account",
        ca_bundle="ca.pem",
        proxy="http://anna:p%40ss@proxy:3128",
    )
    proxy = HttpProxy(host="proxy", port=3128, username="anna", password="p@ss")
    network = Network(ca_bundle="ca.pem", proxy=proxy)

    assert options.hub_access() == HubAccess(
        connection_string="hub-key",
        namespace="namespace",
        custom_endpoint="sb://gateway",
        transport=TransportName.WEBSOCKET,
        network=network,
    )
    assert options.storage_access() == StorageAccess(
        hub="namespace", connection_string="storage-key", account="account", network=network
    )
