"""Where workers listen for their supervisor."""

import tempfile
from pathlib import Path

import pytest

from eventproc.cli.workers.supervisor import sockets
from eventproc.errors import ConfigurationError


def test_each_worker_has_a_socket_in_a_folder_of_the_user_that_is_removed_at_the_end():
    """Other users of the machine cannot ask the workers."""
    with sockets(2) as addresses:
        paths = [Path(address.path) for address in addresses]
        mode = paths[0].parent.stat().st_mode & 0o777

    assert len(set(paths)) == 2
    assert mode == 0o700
    assert not paths[0].parent.exists()


def test_without_a_temporary_folder_the_remedy_is_named(monkeypatch):
    """As in a container whose root file system is read-only."""
    monkeypatch.setattr(tempfile, "tempdir", "/nonexistent")

    with pytest.raises(ConfigurationError, match="TMPDIR"), sockets(1):
        pass
