"""Makes views of groups for tests."""

from dataclasses import replace
from datetime import UTC, datetime

from eventproc._command.group.view import GroupView
from eventproc._core.watching.group import HubEnd, WatchedMember, WatchedPartition
from eventproc._group.resources.names import id_of, name_of
from eventproc.models import ConsumerGroup, Member

NOW = datetime(2026, 1, 31, 8, tzinfo=UTC)
GROUP = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="orders")


def partition(partition_id, owner_id="host-1", *, lag=0, age_s=1.0, error=None, is_expired=False):
    """Return a partition as it is shown."""
    return WatchedPartition(
        partition_id=str(partition_id),
        name=name_of(str(partition_id)),
        owner_id=owner_id,
        renewed_ago_s=2.0,
        epoch=3,
        is_expired=is_expired,
        position=1200,
        written_ago_s=age_s,
        error=error,
        end=None if lag is None else HubEnd(at_s=0.0, last=1200 + lag, lag=lag),
    )


def member(owner_id, partition_count=1):
    """Return a member as it is shown."""
    record = Member(owner_id=owner_id, incarnation="i", version="0.1.0")
    return WatchedMember(record=record, partition_count=partition_count)


def group_view(*rows, members=()):
    """Return the view of a group with these partitions."""
    return GroupView(
        group=GROUP,
        as_of=NOW,
        placement="Even",
        published=None,
        partitions=rows,
        members=tuple(members),
    )


def resources_view(*names):
    """Return the view of a group that shares resources with these names."""
    rows = [partition(id_of(name), f"holder-of-{name}", lag=None) for name in names]
    return replace(group_view(*rows), group=ConsumerGroup.of_resources("keys"))
