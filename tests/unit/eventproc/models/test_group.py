"""Records of a group."""

import pytest

from eventproc.errors import ConfigurationError
from eventproc.models import RECORD_BYTES_MAX, GroupRecord


def test_a_record_that_no_store_can_keep_is_refused():
    """Without a name, or larger than the most that a read returns."""
    with pytest.raises(ConfigurationError, match="the name of a group record is empty"):
        GroupRecord(name="", content=b"")
    GroupRecord(name="large", content=bytes(RECORD_BYTES_MAX))
    with pytest.raises(ConfigurationError, match="'larger' has 4,194,305 bytes: the most is 4,1"):
        GroupRecord(name="larger", content=bytes(RECORD_BYTES_MAX + 1))
