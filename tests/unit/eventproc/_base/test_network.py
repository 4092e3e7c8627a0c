"""The credential of a process."""

from eventproc._base.identity import Network
from eventproc._base.network import HttpProxy


def test_a_process_has_one_credential_for_each_way_to_reach_entra_id():
    """Hub and storage account share it, so that its tokens are requested once."""
    proxy = HttpProxy(host="proxy", port=8080)

    assert Network().credential() is Network().credential()
    assert Network(proxy=proxy).credential() is Network(proxy=proxy).credential()
    assert Network(proxy=proxy).credential() is not Network().credential()
