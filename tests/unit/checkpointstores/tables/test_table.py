"""Keys: what Azure allows, different for different records."""

import re

from hypothesis import given
from hypothesis import strategies as st

from checkpointstores.tables._table import RecordKind, group_record_key, partition_of, record_key
from eventproc.models import ConsumerGroup

GROUP = ConsumerGroup(
    fully_qualified_namespace="contoso.servicebus.windows.net", eventhub_name="orders"
)
ALLOWED = re.compile(r"[A-Za-z0-9._~$! -]{1,512}")


def test_keys_can_be_read_in_the_portal():
    """Usual names stay as they are."""
    key = record_key(GROUP, RecordKind.OWNERSHIP, "0")

    assert key.partition == "contoso.servicebus.windows.net orders $default ownership"
    assert key.row == "0"


@given(st.text(min_size=1), st.text(min_size=1))
def test_different_names_have_different_keys_that_azure_allows(one, other):
    """Slashes, control characters, percent signs and long names are encoded."""
    for key_of in (
        lambda name: record_key(GROUP, RecordKind.MEMBER, name),
        lambda name: group_record_key(GROUP, name),
    ):
        assert ALLOWED.fullmatch(key_of(one).row)
        assert (key_of(one) == key_of(other)) == (one == other)
    assert record_key(GROUP, RecordKind.MEMBER, one) != group_record_key(GROUP, other)


def test_long_names_keep_groups_and_kinds_apart():
    """Each group and kind has a partition key of at most 512 characters."""
    groups = [
        ConsumerGroup(
            fully_qualified_namespace="n" * 128, eventhub_name="🚀" * 64, name="x" * 100 + end
        )
        for end in "ab"
    ]
    keys = {partition_of(group, kind) for group in groups for kind in RecordKind}

    assert len(keys) == len(groups) * len(RecordKind)
    assert all(ALLOWED.fullmatch(key) for key in keys)
