"""Partition ids as parts of a record's key."""

import pytest

from checkpointstores._fields import require_partition_id
from eventproc.errors import ConfigurationError


@pytest.mark.parametrize("partition_id", ["", " 0", "0 ", "a/b", "a\\b", "a\nb", ".", ".."])
def test_an_id_that_would_split_a_key_is_refused(partition_id):
    """By every store."""
    with pytest.raises(ConfigurationError, match="cannot be part of a record's key"):
        require_partition_id(partition_id)


@pytest.mark.parametrize("partition_id", ["0", "31", "東京", "a b", "..."])
def test_any_other_id_is_accepted(partition_id):
    """Ids are text, even if they look like numbers."""
    assert require_partition_id(partition_id) == partition_id
