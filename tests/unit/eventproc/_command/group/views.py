"""Makes views of groups for tests."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from eventproc._command.group.view import GroupView, MemberRow, PartitionRow
from eventproc._group.resources.names import id_of
from eventproc.models import ConsumerGroup

NOW = datetime(2026, 1, 31, 8, tzinfo=UTC)
GROUP = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="orders")


def partition(partition_id, owner_id="host-1", *, lag=0, age_s=1.0, error=None, is_expired=False):
    """Return a row for a partition."""
    return PartitionRow(
        partition_id=str(partition_id),
        owner_id=owner_id,
        record_age=timedelta(seconds=2),
        epoch=3,
        is_expired=is_expired,
        sequence_number=1200,
        checkpoint_age=timedelta(seconds=age_s),
        checkpoint_error=error,
        lag=lag,
    )


def member(owner_id, partition_count=1):
    """Return a row for a member."""
    return MemberRow(
        owner_id=owner_id,
        partition_count=partition_count,
        has_member_record=True,
        is_leaving=False,
        hands_over=True,
        placement="Even",
        weight=1.0,
        capacity=None,
        ordinal=None,
        version="0.1.0",
    )


def group_view(*rows, members=()):
    """Return the view of a group with these partitions."""
    return GroupView(
        group=GROUP,
        as_of=NOW,
        placement="Even",
        schema=None,
        partitions=rows,
        members=tuple(members),
    )


def resources_view(*names):
    """Return the view of a group that shares resources with these names."""
    rows = [replace(partition(id_of(name), f"holder-of-{name}"), lag=None) for name in names]
    return replace(group_view(*rows), group=ConsumerGroup.of_resources("keys"))
